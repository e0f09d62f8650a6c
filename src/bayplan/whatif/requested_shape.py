"""A workload that only its requests describe: `bayplan fit --cpu 4 --memory 16Gi --gpu 1`.

It becomes a Deployment, so that admission, limit ranges and quotas treat it as they would treat the
real one. A GPU is the resource for GPUs that the nodes offer. Its name has the vendor, which a user
who counts GPUs need not know. The pods tolerate a taint with the name of a resource that they
request, because nodes have such a taint to keep other pods away.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast, final

from bayplan.answers.amounts import counted
from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_SLICE
from bayplan.api.objects import NODE, Node
from bayplan.api.pod_requests import CPU, EPHEMERAL_STORAGE, MEMORY, Amounts, is_extended
from bayplan.api.quantity import QuantityError, parse
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.unknown_names import no_namespace
from bayplan.objects.keys import DEFAULT_NAMESPACE
from bayplan.problems import BadInputError, listed, suggestion, wrong
from bayplan.sim.input.sources import InputSource, Part
from bayplan.state.device_supply import DeviceSupply

#: The name of the workload, and of its container.
SHAPE_NAME = "shape"
_NATIVE = (CPU, MEMORY, EPHEMERAL_STORAGE)
_QUANTITY = "a quantity such as 500m, 2 or 16Gi"


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class RequestedShape:
    """What each pod requests, and how many pods there are. Amounts are written as in a manifest."""

    cpu: str | int | float | None = None
    memory: str | int | None = None
    gpu: int | None = None
    #: Resource → amount.
    resources: Mapping[str, str | int] = field(default_factory=dict[str, str | int])
    replicas: int | None = None
    namespace: str = DEFAULT_NAMESPACE

    @property
    def is_empty(self) -> bool:
        """Whether the shape requests nothing, so that it describes no pod."""
        return self.cpu is self.memory is self.gpu is None and not self.resources


def resource_of_text(text: str) -> tuple[str, str]:
    """ "nvidia.com/gpu=1" → ("nvidia.com/gpu", "1"). Raises BadInputError."""
    name, equals, amount = text.partition("=")
    if not name or not equals or not amount:
        raise BadInputError(str(wrong("--resource", text, "NAME=AMOUNT, as nvidia.com/gpu=1")))
    return name, amount


def requested_or_files(
    model: ClusterModel, files: Sequence[InputSource], shape: RequestedShape
) -> tuple[Sequence[InputSource], Sequence[str]]:
    """The files of a workload, or the one that a shape describes; and notes about it. Raises
    BadInputError."""
    if files and (shape.replicas is not None or not shape.is_empty):
        raise BadInputError("found files and requests such as cpu, wanted one of them")
    if files:
        return files, ()
    if shape.is_empty:
        raise BadInputError("found no workload, wanted files (-f), or requests such as --cpu 4")
    part, notes = _workload_of(model, shape)
    return [part], notes


def _workload_of(model: ClusterModel, shape: RequestedShape) -> tuple[Part, list[str]]:
    """A Deployment of these pods, and what the reader should know about it. Raises BadInputError
    for a wrong amount, and if no node offers a GPU or nodes offer several kinds of them."""
    requests, notes = dict[str, str](), list[str]()
    named = [(CPU, "--cpu", shape.cpu), (MEMORY, "--memory", shape.memory)]
    named += [(name, f"--resource {name}", amount) for name, amount in shape.resources.items()]
    for name, option, amount in named:
        if amount is not None:
            requests[name] = _checked(option, amount)
    offered = _offered(model)
    if shape.gpu is not None:
        gpu = _gpu_resource(offered)
        if gpu in requests:
            raise BadInputError(f"found --gpu and --resource {gpu}, wanted one of them")
        requests[gpu] = _checked("--gpu", shape.gpu)
        notes.append(f"a GPU is {gpu} here, which {_node_count(model, gpu)}")
    _check_names(shape.resources, offered)
    notes += _notes_on_unknown(requests, offered)
    if unknown := no_namespace(model, shape.namespace):
        notes.append(unknown)
    tolerated = _own_taints(model, requests)
    notes += [
        f"each pod tolerates the taint {key}, as the admission plugin ExtendedResourceToleration "
        "has it"
        for key in tolerated
    ]
    amounts = ", ".join(f"{name} {amount}" for name, amount in requests.items())
    each = f"each pod requests {amounts}"
    content = _deployment(shape, requests, tolerated)
    return Part(content, "the requested shape"), [each, *notes]


def _checked(option: str, amount: object) -> str:
    """``option``: as it is typed. Raises BadInputError."""
    try:
        is_right = parse(str(amount)) >= 0
    except QuantityError:
        is_right = False
    if not is_right:
        raise BadInputError(str(wrong(option, amount, _QUANTITY)))
    return str(amount)


def _check_names(names: Iterable[str], offered: Amounts) -> None:
    """Raises BadInputError for a name that no resource has."""
    for name in names:
        if "/" not in name and name not in _NATIVE and not name.startswith("hugepages-"):
            expected = "a resource such as nvidia.com/gpu"
            extended = [*filter(is_extended, offered)]
            raise BadInputError(str(wrong("--resource", name, expected, extended)))


def _own_taints(model: ClusterModel, requests: Iterable[str]) -> list[str]:
    """The resources whose nodes have a taint of the same name, which keeps other pods away."""
    nodes = (cast(Node, each) for each in model.objects(NODE))
    keys = {taint.key for node in nodes for taint in node.spec.taints or ()}
    return [name for name in requests if name in keys and is_extended(name)]


def _deployment(
    shape: RequestedShape, requests: Mapping[str, str], tolerated: Iterable[str]
) -> dict[str, Any]:
    extended = {name: amount for name, amount in requests.items() if is_extended(name)}
    resources = {"requests": dict(requests), **({"limits": extended} if extended else {})}
    container = {"name": SHAPE_NAME, "image": SHAPE_NAME, "resources": resources}
    labels = {"app": SHAPE_NAME}
    tolerations = [{"key": key, "operator": "Exists"} for key in tolerated]
    spec = {"containers": [container], "tolerations": tolerations}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": SHAPE_NAME, "namespace": shape.namespace},
        "spec": {
            "replicas": 1 if shape.replicas is None else shape.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


# ---- what nodes offer ----------------------------------------------------------------------


def _offered(model: ClusterModel) -> Amounts:
    """Resource → the amount of all nodes, with the devices behind a resource."""
    supply = DeviceSupply()
    for kind in (DEVICE_CLASS, RESOURCE_SLICE):
        for each in model.objects(kind):
            supply.change(each, is_there=True)
    offered = supply.total(cast(Node, each) for each in model.objects(NODE))
    return {name: amount for name, amount in offered.items() if amount > 0}


def _gpu_resource(offered: Amounts) -> str:
    """The resource of GPUs that nodes offer. Raises BadInputError."""
    gpus = sorted(filter(_is_gpu, offered))
    if len(gpus) == 1:
        return gpus[0]
    if gpus:
        some = listed(gpus)
        raise BadInputError(
            f"--gpu: nodes offer {counted(len(gpus), 'kind')} of GPUs, wanted one of them, as "
            f"--resource {gpus[0]}=1: {some}"
        )
    extended = sorted(filter(is_extended, offered))
    hint = f"; nodes offer {listed(extended)}: name one with --resource" if extended else ""
    raise BadInputError(f"--gpu: no node offers a GPU{hint}")


def _is_gpu(resource: str) -> bool:
    """Whether a resource is of GPUs, such as nvidia.com/gpu, amd.com/gpu, nvidia.com/gpu.shared and
    gpu.intel.com/i915. A part of a GPU, such as nvidia.com/mig-1g.5gb, does not count."""
    domain, slash, name = resource.partition("/")
    is_named = name == "gpu" or name.startswith("gpu.")
    return bool(slash) and (is_named or domain.startswith("gpu."))


def _node_count(model: ClusterModel, resource: str) -> str:
    """Words such as "3 nodes offer". Devices of a class are not counted by node."""
    nodes = (cast(Node, each) for each in model.objects(NODE))
    count = sum(resource in (node.status.allocatable or {}) for node in nodes)
    return f"{counted(count, 'node')} offer{'s' * (count == 1)}" if count else "devices stand for"


def _notes_on_unknown(requests: Mapping[str, str], offered: Amounts) -> Iterator[str]:
    for name in requests:
        if name not in offered and name not in _NATIVE:
            extended = [*filter(is_extended, offered)]
            hint = suggestion(name, extended)
            yield f"no node offers {name}" + (f"; {hint}" if hint else "")
