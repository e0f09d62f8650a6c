"""The Kubernetes objects a scheduler reads, as frozen structs.

Metadata is whole but for managedFields; of everything else only the fields that some plugin of ours
reads are decoded, straight from bytes. Decoding accepts values that the API server would refuse (a
bad selector, an unknown operator): the code that uses them decides what they mean. A field that is
null is a field that is absent, as the API machinery reads it.
"""

from typing import Any, cast

import msgspec
from msgspec import field

from bayplan.api.admission_objects import (
    LIMIT_RANGE,
    RESOURCE_QUOTA,
    RUNTIME_CLASS,
    LimitRange,
    ResourceQuota,
    RuntimeClass,
)
from bayplan.api.composite_pod_groups import COMPOSITE_POD_GROUP, CompositePodGroup
from bayplan.api.device_objects import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET, PodDisruptionBudget
from bayplan.api.object_meta import (
    Api,
    Condition,
    Int64,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorTerm,
    ObjectMeta,
    OwnerReference,
    Quantities,
    Strings,
    Toleration,
)
from bayplan.api.pod_groups import KINDS, CoschedulingPodGroup, UpstreamPodGroup
from bayplan.api.storage_objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    Volume,
    VolumeAttachment,
)
from bayplan.lazy_loader import built

__all__ = [
    "Api",
    "Condition",
    "Int64",
    "LabelSelector",
    "LabelSelectorRequirement",
    "NodeSelector",
    "NodeSelectorTerm",
    "ObjectMeta",
    "OwnerReference",
    "Quantities",
    "Strings",
    "Toleration",
]

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

HOSTNAME_LABEL = "kubernetes.io/hostname"
ZONE_LABEL = "topology.kubernetes.io/zone"
UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"
#: The parts of an affinity that must hold, and those that should.
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
#: Conditions of pods, and a reason of the latter.
POD_SCHEDULED = "PodScheduled"
DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"
PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
PREEMPTION_POLICIES = (PREEMPT_LOWER_PRIORITY, "Never")
DEFAULT_SCHEDULER = "default-scheduler"
#: The manifest that `kubectl apply` has stored in an object.
LAST_APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


# ---- affinity, spreading ---------------------------------------------------------------------


class PreferredSchedulingTerm(Api):
    weight: Int64 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Api):
    required: NodeSelector | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[PreferredSchedulingTerm, ...] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Api):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodAffinityTerm(Api):
    weight: Int64 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Api):
    """podAffinity and podAntiAffinity have the same shape."""

    required: tuple[PodAffinityTerm, ...] | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Api):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Api):
    max_skew: Int64 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int64 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


# ---- pods ----------------------------------------------------------------------------------


class ContainerResourceClaim(Api):
    name: str = ""
    request: str | None = None


class ResourceRequirements(Api):
    requests: Quantities | None = None
    limits: Quantities | None = None
    claims: tuple[ContainerResourceClaim, ...] | None = None


class ContainerPort(Api):
    container_port: Int64 | None = None
    host_port: Int64 | None = None
    host_ip: str | None = field(default=None, name="hostIP")
    protocol: str | None = None
    name: str | None = None


class ContainerRestartRule(Api):
    action: str = ""


class VolumeMount(Api):
    name: str = ""
    mount_path: str | None = None
    bind_mount_options: tuple[str, ...] | None = None


class VolumeDevice(Api):
    name: str = ""
    device_path: str | None = None


class Container(Api):
    name: str = ""
    image: str | None = None
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] | None = None
    volume_mounts: tuple[VolumeMount, ...] | None = None
    volume_devices: tuple[VolumeDevice, ...] | None = None


class PodSchedulingGate(Api):
    name: str = ""


class PodResourceClaim(Api):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Api):
    pod_group_name: str | None = None


class PodSpec(Api):
    node_name: str | None = None
    scheduler_name: str | None = None
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None
    node_selector: Strings | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] | None = None
    priority: Int64 | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    runtime_class_name: str | None = None
    active_deadline_seconds: Int64 | None = None
    termination_grace_period_seconds: Int64 | None = None
    host_network: bool | None = None
    host_users: bool | None = None
    restart_policy: str | None = None
    volumes: tuple[Volume, ...] | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    scheduling_group: PodSchedulingGroup | None = None


class ContainerStatus(Api):
    name: str = ""
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(Api):
    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Api):
    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Api):
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] | None = None
    resource_claim_name: str = ""


class NodeAllocatableMappedResources(Api):
    name: str = ""
    quantity: str | Int64 | float | None = None


class NodeAllocatableOverheadResources(Api):
    name: str = ""
    per_pod: str | Int64 | float | None = None
    per_container: str | Int64 | float | None = None


class NodeAllocatableResourceClaimStatus(Api):
    """What the devices of a claim take of the node: gate DRANodeAllocatableResources."""

    resource_claim_name: str = ""
    containers: tuple[str, ...] | None = None
    mapping: tuple[NodeAllocatableMappedResources, ...] | None = None
    overhead: tuple[NodeAllocatableOverheadResources, ...] | None = None


class PodStatus(Api):
    phase: str | None = None
    #: The reason of the pod's phase: the kubelet writes here why it did not admit the pod.
    reason: str | None = None
    conditions: tuple[Condition, ...] | None = None
    nominated_node_name: str | None = None
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    resize: str | None = None
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    node_allocatable_resource_claim_statuses: (
        tuple[NodeAllocatableResourceClaimStatus, ...] | None
    ) = None


class Pod(Api):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
    declared: dict[str, Any] = {}  # further field paths that plugins declare


# ---- nodes ---------------------------------------------------------------------------------


class Taint(Api):
    key: str = ""
    value: str | None = None
    effect: str = ""


class NodePodPreemptionPolicy(Api):
    disable_resize_preemption: tuple[str, ...] | None = None


class NodeSpec(Api):
    unschedulable: bool | None = None
    taints: tuple[Taint, ...] | None = None
    pod_preemption_policy: NodePodPreemptionPolicy | None = None


class NodeCondition(Api):
    type: str = ""
    status: str = ""


class ContainerImage(Api):
    names: tuple[str, ...] | None = None
    size_bytes: Int64 | None = None


class NodeStatus(Api):
    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    conditions: tuple[NodeCondition, ...] | None = None
    images: tuple[ContainerImage, ...] | None = None
    declared_features: tuple[str, ...] | None = None


class Node(Api):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
    declared: dict[str, Any] = {}


# ---- what PodTopologySpread and InterPodAffinity look up ------------------------------------


class NamespaceSpec(Api):
    finalizers: tuple[str, ...] | None = None


class Namespace(Api):
    metadata: ObjectMeta = ObjectMeta()
    spec: NamespaceSpec = NamespaceSpec()


class ServiceSpec(Api):
    selector: Strings | None = None


class Service(Api):
    """A Service or a ReplicationController: both select by a plain map."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class WorkloadSpec(Api):
    selector: LabelSelector | None = None
    replicas: Int64 | None = None


class Workload(Api):
    """A ReplicaSet or a StatefulSet, as far as default spreading needs it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()


class PriorityClass(Api):
    metadata: ObjectMeta = ObjectMeta()
    value: Int64 = 0
    global_default: bool | None = None
    preemption_policy: str | None = None


class Unstructured(Api):
    """An object of a kind without a type here: typed metadata, and the whole object as plain
    values."""

    metadata: ObjectMeta = ObjectMeta()
    content: dict[str, Any] = {}


class _MetadataOnly(Api):
    metadata: ObjectMeta = ObjectMeta()


# ---- kinds ---------------------------------------------------------------------------------

#: A kind is named as in a manifest's first two lines: "<apiVersion> <kind>".
POD = "v1 Pod"
NODE = "v1 Node"
NAMESPACE = "v1 Namespace"
SERVICE = "v1 Service"
REPLICATION_CONTROLLER = "v1 ReplicationController"
REPLICA_SET = "apps/v1 ReplicaSet"
STATEFUL_SET = "apps/v1 StatefulSet"
DEPLOYMENT = "apps/v1 Deployment"
DAEMON_SET = "apps/v1 DaemonSet"
JOB = "batch/v1 Job"
PRIORITY_CLASS = "scheduling.k8s.io/v1 PriorityClass"
PERSISTENT_VOLUME = "v1 PersistentVolume"
PERSISTENT_VOLUME_CLAIM = "v1 PersistentVolumeClaim"
STORAGE_CLASS = "storage.k8s.io/v1 StorageClass"
CSI_NODE = "storage.k8s.io/v1 CSINode"
CSI_DRIVER = "storage.k8s.io/v1 CSIDriver"
CSI_STORAGE_CAPACITY = "storage.k8s.io/v1 CSIStorageCapacity"
VOLUME_ATTACHMENT = "storage.k8s.io/v1 VolumeAttachment"

ApiObject = (
    Pod
    | Node
    | Namespace
    | Service
    | Workload
    | PriorityClass
    | PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
    | CoschedulingPodGroup
    | UpstreamPodGroup
    | CompositePodGroup
    | ResourceClaim
    | ResourceSlice
    | DeviceClass
    | DeviceTaintRule
    | PodDisruptionBudget
    | RuntimeClass
    | LimitRange
    | ResourceQuota
    | Unstructured
)

_TYPES: dict[str, type[Any]] = {
    POD: Pod,
    NODE: Node,
    NAMESPACE: Namespace,
    SERVICE: Service,
    REPLICATION_CONTROLLER: Service,
    REPLICA_SET: Workload,
    STATEFUL_SET: Workload,
    PRIORITY_CLASS: PriorityClass,
    PERSISTENT_VOLUME: PersistentVolume,
    PERSISTENT_VOLUME_CLAIM: PersistentVolumeClaim,
    STORAGE_CLASS: StorageClass,
    CSI_NODE: CSINode,
    CSI_DRIVER: CSIDriver,
    CSI_STORAGE_CAPACITY: CSIStorageCapacity,
    VOLUME_ATTACHMENT: VolumeAttachment,
    **{kind: row.decoded_as for kind, row in KINDS.items()},
    COMPOSITE_POD_GROUP: CompositePodGroup,
    RESOURCE_CLAIM: ResourceClaim,
    RESOURCE_SLICE: ResourceSlice,
    DEVICE_CLASS: DeviceClass,
    DEVICE_TAINT_RULE: DeviceTaintRule,
    POD_DISRUPTION_BUDGET: PodDisruptionBudget,
    RUNTIME_CLASS: RuntimeClass,
    LIMIT_RANGE: LimitRange,
    RESOURCE_QUOTA: ResourceQuota,
}


def decoded_kinds() -> frozenset[str]:
    """The kinds that have a type here."""
    return frozenset(_TYPES)


def struct_of(kind: str) -> type[Any] | None:
    """The type of the objects of a kind; None: they are Unstructured."""
    return _TYPES.get(kind)


class DecodeError(ValueError):
    """The bytes or values are not an object of the kind; the message names the path."""


def decode(kind: str, content: bytes | dict[str, Any], declared: tuple[str, ...] = ()) -> ApiObject:
    """An object of ``kind`` from JSON bytes or plain values; of unknown kinds an Unstructured.

    ``declared``: further field paths ("status.nodeInfo.kubeletVersion") to keep, for pods and
    nodes. Raises DecodeError and nothing else, whatever the bytes.
    """
    try:
        struct_type = _TYPES.get(kind)
        if struct_type is not None and not declared:
            return _decoded(struct_type, content)
        plain: Any = msgspec.json.decode(content) if isinstance(content, bytes) else content
        if struct_type is None:
            return _unstructured(plain)
        values = {path: at_path(plain, path) for path in declared}
        return msgspec.structs.replace(_decoded(struct_type, plain), declared=values)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError) as problem:
        raise DecodeError(f"{kind}: {problem}") from None


def restored(kind: str, content: bytes) -> ApiObject:
    """A decoded object again, from its own JSON. Raises DecodeError."""
    try:
        return msgspec.json.decode(content, type=built(_TYPES.get(kind, Unstructured)))
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise DecodeError(f"{kind}: {problem}") from None


def decoded_as(kind: str, struct_type: type[Any], content: ApiObject) -> Any:
    """An object as a type that `decode` does not know for its kind. Raises DecodeError."""
    if not isinstance(content, Unstructured):
        return content
    try:
        return _decoded(struct_type, content.content)
    except (msgspec.MsgspecError, RecursionError, TypeError) as problem:
        raise DecodeError(f"{kind}: {problem}") from None


def _decoded(struct_type: type[Any], content: Any) -> Any:
    """Raises msgspec's errors, which name the path."""
    try:
        if isinstance(content, bytes):
            return msgspec.json.decode(content, type=built(struct_type))
        return msgspec.convert(content, built(struct_type))
    except msgspec.ValidationError:
        # The types accept null only for fields without a zero value; objects with other nulls are
        # decoded twice.
        if isinstance(content, bytes):
            if b"null" not in content:
                raise
            content = msgspec.json.decode(content)
        return msgspec.convert(_without_nulls(content), built(struct_type))


def _unstructured(content: Any) -> Unstructured:
    values: dict[str, Any] = msgspec.convert(content, dict[str, Any])
    return Unstructured(metadata=_decoded(_MetadataOnly, values).metadata, content=values)


def _without_nulls(content: Any) -> Any:
    """Plain values without the members that are null."""
    if isinstance(content, dict):
        members = cast(dict[Any, Any], content)
        return {key: _without_nulls(value) for key, value in members.items() if value is not None}
    if isinstance(content, list):
        return [_without_nulls(item) for item in cast(list[Any], content)]
    return content


def at_path(content: Any, path: str) -> Any:
    """The value at a dotted path, or None where it ends early."""
    for part in path.split("."):
        if not isinstance(content, dict):
            return None
        content = content.get(part)  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
    return content  # pyright: ignore[reportUnknownVariableType]


def namespaced_name(namespace: str | None, name: str) -> str:
    """``namespace/name``, or just the name of what has no namespace."""
    return f"{namespace}/{name}" if namespace else name


#: Phases of pods that have ended. Such a pod takes no room.
TERMINAL_PHASES = ("Succeeded", "Failed")


def is_terminal(pod: Pod) -> bool:
    """Whether the pod has ended."""
    return pod.status.phase in TERMINAL_PHASES
