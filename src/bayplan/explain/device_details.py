"""The details of a rejection for devices: requests, devices by class and driver, and why the
rejected nodes do not have enough of them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import final

from msgspec import Struct

from bayplan.answers.amounts import counted
from bayplan.answers.names import in_natural_order, listed_names
from bayplan.api.device_objects import (
    ALL_DEVICES,
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    EXACT_COUNT,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
    DeviceClass,
    DeviceRequest,
    DeviceTaintRule,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from bayplan.api.objects import Node
from bayplan.explain.diagnosis import class_behind_each
from bayplan.explain.fixes.rule_edits import nodes_of
from bayplan.model.cluster_model import ClusterModel
from bayplan.plugins.dynamic_resources.allocator import PoolsByNode
from bayplan.plugins.dynamic_resources.features import features_of
from bayplan.plugins.dynamic_resources.pools import AllocationError, Candidate
from bayplan.plugins.dynamic_resources.requests import Request, alternatives_of
from bayplan.plugins.dynamic_resources.selection import Selection
from bayplan.state.device_table import AllocatedDevices, with_taints
from bayplan.state.pods import PodInfo

#: The most rejected nodes whose devices are counted.
_NODES_MAX = 200


@final
class _Slices:
    """The ResourceSliceLister of a moment."""

    revision = 0

    def __init__(self, model: ClusterModel) -> None:
        rules = [
            one for one in model.objects(DEVICE_TAINT_RULE) if isinstance(one, DeviceTaintRule)
        ]
        slices = [one for one in model.objects(RESOURCE_SLICE) if isinstance(one, ResourceSlice)]
        slices.sort(key=lambda one: one.metadata.name)
        self._slices = [with_taints(each, rules) for each in slices]

    def list_with_device_taint_rules(self) -> Sequence[ResourceSlice]:
        return self._slices


class _Wish(Struct, frozen=True):
    """One request, or one alternative of it, for devices."""

    #: The beginning of its line.
    subject: str
    #: "namespace/name" of the claim; "": the scheduler makes the claim.
    claim: str
    request: Request


def device_details(model: ClusterModel, pod: PodInfo, nodes: Sequence[str] = ()) -> Iterator[str]:
    """A line for each request of the pod's claims, and lines about the devices of the nodes.

    ``nodes``: the rejected nodes.
    """
    wishes: list[_Wish] = []
    constraints: list[str] = []
    for each in _claims(model, pod):
        if isinstance(each, str):
            yield each
        elif each.status.allocation is not None:
            yield f"ResourceClaim {each.key} has its devices already{_place(each)}"
        else:
            wishes += _wishes(each)
            constraints += _constraints(each)
    wishes += _extended(model, pod)
    devices = _Devices(model, nodes)
    for wish in wishes:
        yield f"{wish.subject} requests {_amount(model, wish.request)}"
        yield from devices.lines_about(wish)
    if wishes:
        yield from devices.lines_about_all(constraints)
        yield from devices.totals()


def _claims(model: ClusterModel, pod: PodInfo) -> Iterator[ResourceClaim | str]:
    """The pod's claims, or a text that says why one of them is missing."""
    statuses = {each.name: each for each in pod.status.resource_claim_statuses or ()}
    for each in pod.spec.resource_claims or ():
        name = each.resource_claim_name
        if name is None and each.name in statuses:
            name = statuses[each.name].resource_claim_name
        if name is None:
            template = each.resource_claim_template_name
            if template and _lacks_template(model, pod.namespace, template):
                yield f"ResourceClaimTemplate {pod.namespace}/{template} does not exist"
            yield f"the ResourceClaim for {each.name} was not created yet"
            continue
        claim = model.get(RESOURCE_CLAIM, pod.namespace, name)
        is_there = isinstance(claim, ResourceClaim)
        yield claim if is_there else f"ResourceClaim {pod.namespace}/{name} does not exist"


def _lacks_template(model: ClusterModel, namespace: str, name: str) -> bool:
    """Whether a template is missing. False: it exists, or templates were not read."""
    source = model.source
    if source.moment is not None or RESOURCE_CLAIM_TEMPLATE in (*source.unreadable, *source.absent):
        return False
    return model.get(RESOURCE_CLAIM_TEMPLATE, namespace, name) is None


def _place(claim: ResourceClaim) -> str:
    """A line about the devices of a claim, which bind the pod to their nodes."""
    allocation = claim.status.allocation
    names = [f"{r.driver}/{r.pool}/{r.device}" for r in allocation.results] if allocation else []
    return f": {listed_names(names)}" if names else ""


def _wishes(claim: ResourceClaim) -> Iterator[_Wish]:
    for request in claim.spec.devices.requests or ():
        for alternative in alternatives_of(request):
            subject = f"ResourceClaim {claim.key}, request {alternative.full_name},"
            yield _Wish(subject, claim.key, alternative)


def _constraints(claim: ResourceClaim) -> Iterator[str]:
    for each in claim.spec.devices.constraints or ():
        if each.match_attribute is not None:
            yield f"matchAttribute {each.match_attribute}"
        elif each.distinct_attribute is not None:
            yield f"distinctAttribute {each.distinct_attribute}"


def _extended(model: ClusterModel, pod: PodInfo) -> Iterator[_Wish]:
    """Requests for extended resources that devices stand for."""
    by_resource = class_behind_each(model)
    for resource, amount in sorted(pod.requests.items()):
        device_class = by_resource.get(resource)
        if amount and device_class is not None:
            exactly = ExactDeviceRequest(
                device_class_name=device_class.metadata.name,
                allocation_mode=EXACT_COUNT,
                count=amount,
            )
            [request] = alternatives_of(DeviceRequest(name=resource, exactly=exactly))
            yield _Wish(f"the pod's {resource}", "", request)


def _amount(model: ClusterModel, request: Request) -> str:
    is_missing = model.get(DEVICE_CLASS, "", request.class_name) is None
    note = ", which does not exist" if request.class_name and is_missing else ""
    count = "all devices" if request.mode == ALL_DEVICES else str(request.count)
    return f"{count} of DeviceClass {request.class_name}{note}"


# ---- the devices of nodes -------------------------------------------------------------------


@final
class _Devices:
    """The devices of the rejected nodes, and which of them are taken."""

    def __init__(self, model: ClusterModel, nodes: Sequence[str]) -> None:
        self._model = model
        self._nodes = nodes_of(model, in_natural_order(nodes)[:_NODES_MAX])
        self._lister = _Slices(model)
        self._pools = PoolsByNode(self._lister, features_of(model.config.gates))
        self._allocated = AllocatedDevices()
        #: Nodes that have too few devices for some request.
        self._poor: set[str] = set()
        for claim in model.objects(RESOURCE_CLAIM):
            if isinstance(claim, ResourceClaim) and claim.status.allocation is not None:
                self._allocated.add(claim.status.allocation)

    def lines_about(self, wish: _Wish) -> Iterator[str]:
        """Lines about what the nodes have for a request, with the nodes that have too little."""
        device_class = self._model.get(DEVICE_CLASS, "", wish.request.class_name)
        if not isinstance(device_class, DeviceClass):
            return
        places: dict[str, list[str]] = {}
        for node in self._nodes:
            if self._offers_itself(node, wish):
                continue
            try:
                text = self._on_node(node, wish, device_class)
            except AllocationError as problem:
                text = str(problem)
            if text:
                places.setdefault(text, []).append(node.metadata.name)
                self._poor.add(node.metadata.name)
        for text, names in sorted(places.items(), key=lambda place: -len(place[1])):
            yield f"  too few on {listed_names(names)}: {text}"

    def lines_about_all(self, constraints: Sequence[str]) -> Iterator[str]:
        """Lines about the nodes that have enough devices for each request alone. Call this after
        `lines_about`."""
        names = [n.metadata.name for n in self._nodes if n.metadata.name not in self._poor]
        if names:
            reasons = ", ".join(constraints) or "they share devices, counters or capacity"
            text = "enough devices for each request alone, not for all together"
            yield f"{text}, on {listed_names(names)}: {reasons}"

    def _offers_itself(self, node: Node, wish: _Wish) -> bool:
        """Whether no device is needed, because the node offers the extended resource itself."""
        offered = (node.status.allocatable or {}).get(wish.request.name, 0)
        return not wish.claim and str(offered) not in ("0", "")

    def _on_node(self, node: Node, wish: _Wish, device_class: DeviceClass) -> str:
        """Words about the devices of a node that the request selects; "": they are enough."""
        selection = Selection(self._pools.results, node, self._pools.features)
        pools = self._pools.pools(node)
        selected = [
            candidate
            for pool in pools
            for candidate in pool.candidates
            if selection.means(candidate, wish.request, device_class, wish.claim)
        ]
        unusable = {str(pool.id) for pool in pools if not pool.is_usable}
        free = [each for each in selected if self._is_free(each, wish.request)]
        needed = len(selected) if wish.request.mode == ALL_DEVICES else wish.request.count
        if selected and len(free) >= needed:
            return ""
        return ", ".join(self._counts(selected, wish.request, unusable))

    def _is_free(self, candidate: Candidate, request: Request) -> bool:
        return (
            candidate.pool.is_usable
            and (request.admin_access or not self._allocated.is_whole_taken(candidate.id))
            and request.tolerates_all_of(candidate.device.taints)
        )

    def _counts(
        self, selected: Sequence[Candidate], request: Request, unusable: Iterable[str]
    ) -> Iterator[str]:
        by_driver = Counter(candidate.id.driver for candidate in selected)
        matching = (f"{count} of {driver}" for driver, count in sorted(by_driver.items()))
        yield f"{counted(len(selected), 'device')} match{'es' * (len(selected) == 1)}" + (
            f" ({', '.join(matching)})" if selected else ""
        )
        taken = sum(self._allocated.is_taken(candidate.id) for candidate in selected)
        if taken:
            yield f"{taken} allocated"
        taints: Counter[str] = Counter()
        for candidate in selected:
            for taint in candidate.device.taints or ():
                if not request.tolerates_all_of((taint,)):
                    value = f"={taint.value}" if taint.value else ""
                    taints[f"{taint.key}{value}:{taint.effect}"] += 1
        for taint, count in sorted(taints.items()):
            yield f"{count} with the taint {taint}"
        for pool in sorted(unusable):
            yield f"the pool {pool} is incomplete or invalid"

    def totals(self) -> Iterator[str]:
        """The devices of the cluster by driver."""
        slices = self._lister.list_with_device_taint_rules()
        names: dict[str, set[tuple[str, str]]] = {}
        for each in slices:
            devices = ((each.spec.pool.name, device.name) for device in each.spec.devices or ())
            names.setdefault(each.spec.driver, set()).update(devices)
        taken = Counter(device.driver for device in set(self._allocated.devices()))
        if not names:
            yield "the cluster offers no devices: it has no ResourceSlice"
        for driver, devices in sorted(names.items()):
            yield (
                f"driver {driver} has {counted(len(devices), 'device')} in the cluster, "
                f"{taken[driver]} allocated"
            )
