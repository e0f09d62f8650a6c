"""The files of scheduler_perf as structs: test cases, workloads and operations.

A file is a list of test cases. Each has a template of operations, and workloads that fill in the
template's ``$parameters``. Names are upstream's (test/integration/scheduler_perf, v1.37). Other
fields are refused when a file is read: a benchmark that ignores a part of its definition measures
something else.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, dataclass_transform

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
#: A reference to a parameter of the workload.
Parameter = Annotated[str, Meta(pattern=r"^\$.", description="a parameter such as $measurePods")]
Name = Annotated[str, Meta(min_length=1)]
Labels = dict[str, str]


@dataclass_transform(frozen_default=True, kw_only_default=True)
class _FileStruct(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The base of all structs of a file: frozen, camelCase in the file."""


# ---- test cases ----------------------------------------------------------------------------


class ThresholdMetricSelector(_FileStruct, kw_only=True):
    """The metric that a threshold is compared with; default: the average of
    SchedulingThroughput."""

    name: str
    labels: Labels = {}
    data_bucket: str
    expect_lower: bool = False


class LabelValues(_FileStruct, kw_only=True):
    label: str
    values: tuple[str, ...] = ()


class MetricsCollectorConfig(_FileStruct, kw_only=True):
    metrics: dict[str, tuple[LabelValues, ...] | None] = {}


class Workload(_FileStruct, kw_only=True):
    """One size of a test case."""

    name: Name
    params: dict[str, Any] = {}
    labels: tuple[str, ...] = ()
    #: Pods per second, or for each of upstream's topics.
    threshold: float | dict[str, float] = 0.0
    threshold_metric_selector: ThresholdMetricSelector | None = None
    feature_gates: dict[str, bool] = {}


class TestCase(_FileStruct, kw_only=True):
    """One template of operations, and the workloads that fill it."""

    name: Name
    feature_gates: dict[str, bool] = {}
    metrics_collector_config: MetricsCollectorConfig | None = None
    #: Plain values; `reading` decodes each by its opcode.
    workload_template: tuple[dict[str, Any], ...]
    workloads: tuple[Workload, ...]
    scheduler_config_path: str = ""
    default_pod_template_path: str | None = None
    labels: tuple[str, ...] = ()
    default_threshold_metric_selector: ThresholdMetricSelector | None = None


# ---- operations ----------------------------------------------------------------------------


class VolumeNodeResources(_FileStruct, kw_only=True):
    count: Count | None = None


class NodeAllocatableStrategy(_FileStruct, kw_only=True):
    node_allocatable: dict[str, str] = {}
    csi_node_allocatable: dict[str, VolumeNodeResources] = {}
    migrated_plugins: tuple[str, ...] = ()


class LabelNodePrepareStrategy(_FileStruct, kw_only=True):
    """Label each node with the next of the values; after the last value, the first follows."""

    label_key: Name
    label_values: Annotated[tuple[str, ...], Meta(min_length=1)]


class UniqueNodeLabelStrategy(_FileStruct, kw_only=True):
    label_key: Name


class CreateNodes(_FileStruct, kw_only=True):
    opcode: Literal["createNodes"]
    count: Count = 0
    count_param: Parameter | None = None
    node_template_path: str | None = None
    node_allocatable_strategy: NodeAllocatableStrategy | None = None
    label_node_prepare_strategy: LabelNodePrepareStrategy | None = None
    unique_node_label_strategy: UniqueNodeLabelStrategy | None = None
    template_params: dict[str, Any] = {}


class CreateNamespaces(_FileStruct, kw_only=True):
    opcode: Literal["createNamespaces"]
    prefix: Name
    count: Count = 0
    count_param: Parameter | None = None
    namespace_template_path: str | None = None


class CreatePods(_FileStruct, kw_only=True):
    opcode: Literal["createPods"]
    count: Count = 0
    count_param: Parameter | None = None
    count_multiplier_param: Parameter | None = None
    #: Keep ``count`` pods pending for ``duration``: a bound pod is replaced by a new one.
    steady_state: bool = False
    steady_state_param: Parameter | None = None
    duration: str = "0s"
    duration_param: Parameter | None = None
    collect_metrics: bool = False
    namespace: str | None = None
    pod_template_path: str | None = None
    skip_wait_to_completion: bool = False
    persistent_volume_template_path: str | None = None
    persistent_volume_claim_template_path: str | None = None
    template_params: dict[str, Any] = {}
    signature_batch_size: Count = 0
    signature_batch_size_param: Parameter | None = None


class _CreatePodsTemplate(CreatePods, kw_only=True):
    """The createPods operation inside of createPodSets, where the opcode may be left out."""

    opcode: Literal["createPods"] = "createPods"


class CreatePodSets(_FileStruct, kw_only=True):
    opcode: Literal["createPodSets"]
    count: Count = 0
    count_param: Parameter | None = None
    namespace_prefix: Name
    create_pods_op: _CreatePodsTemplate


class CreateAny(_FileStruct, kw_only=True):
    opcode: Literal["createAny"]
    namespace: str = ""
    template_path: Name
    count: Count | None = None
    count_param: Parameter | None = None
    template_params: dict[str, Any] = {}


class CreatePodGroups(_FileStruct, kw_only=True):
    opcode: Literal["createPodGroups"]
    namespace: Name
    template_path: Name
    count: Count = 0
    count_param: Parameter | None = None
    template_params: dict[str, Any] = {}


class CreateResourceClaims(_FileStruct, kw_only=True):
    """The file is a manifest, not a template."""

    opcode: Literal["createResourceClaims"]
    namespace: Name
    template_path: Name
    count: Count = 0
    count_param: Parameter | None = None


class AllocResourceClaims(_FileStruct, kw_only=True):
    """Allocate devices for all claims without devices, of one namespace or of all."""

    opcode: Literal["allocResourceClaims"]
    namespace: str = ""


class UpdateAny(_FileStruct, kw_only=True):
    opcode: Literal["updateAny"]
    namespace: str = ""
    template_path: Name
    count: Count | None = None
    count_param: Parameter | None = None
    update_per_second: Count = 0
    subresources: tuple[Literal["resize", "status"], ...] = ()


class DeletePods(_FileStruct, kw_only=True):
    opcode: Literal["deletePods"]
    namespace: Name
    label_selector: Labels = {}
    skip_wait_to_completion: bool = False
    delete_pods_per_second: Count = 0


class Churn(_FileStruct, kw_only=True):
    opcode: Literal["churn"]
    mode: Literal["create", "recreate"]
    number: Count = 0
    interval_milliseconds: Count = 500
    namespace: str | None = None
    template_paths: Annotated[tuple[str, ...], Meta(min_length=1)]


class Barrier(_FileStruct, kw_only=True):
    opcode: Literal["barrier"]
    namespaces: tuple[str, ...] = ()
    label_selector: Labels = {}
    stage_requirement: Literal["Scheduled", "Attempted"] = "Scheduled"


class Sleep(_FileStruct, kw_only=True):
    opcode: Literal["sleep"]
    duration: str = "0s"
    duration_param: Parameter | None = None


class StartCollectingMetrics(_FileStruct, kw_only=True):
    opcode: Literal["startCollectingMetrics"]
    name: str = ""
    namespaces: Annotated[tuple[str, ...], Meta(min_length=1)]
    label_selector: Labels = {}


class StopCollectingMetrics(_FileStruct, kw_only=True):
    opcode: Literal["stopCollectingMetrics"]


class NotSupported(_FileStruct, kw_only=True):
    """An operation of upstream that cannot be run here."""

    opcode: str


Operation = (
    AllocResourceClaims
    | CreateResourceClaims
    | CreateNodes
    | CreateNamespaces
    | CreatePods
    | CreatePodSets
    | CreateAny
    | CreatePodGroups
    | UpdateAny
    | DeletePods
    | Churn
    | Barrier
    | Sleep
    | StartCollectingMetrics
    | StopCollectingMetrics
    | NotSupported
)

OPERATIONS: Mapping[str, type[Struct]] = {
    "allocResourceClaims": AllocResourceClaims,
    "barrier": Barrier,
    "churn": Churn,
    "createAny": CreateAny,
    "createNamespaces": CreateNamespaces,
    "createNodes": CreateNodes,
    "createPodGroups": CreatePodGroups,
    "createPodSets": CreatePodSets,
    "createPods": CreatePods,
    "createResourceClaims": CreateResourceClaims,
    "deletePods": DeletePods,
    "sleep": Sleep,
    "startCollectingMetrics": StartCollectingMetrics,
    "stopCollectingMetrics": StopCollectingMetrics,
    "updateAny": UpdateAny,
}

#: Operations of upstream that control Go's profiler.
NOT_SUPPORTED = frozenset(
    (
        "startCollectingProfile",
        "stopCollectingProfile",
    )
)
