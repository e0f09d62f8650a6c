"""Devices that take a node's own resources: gate DRANodeAllocatableResources.

A device may stand for cpu, memory or huge pages of its node (a mapping), or cost some of them (an
overhead, per pod or per container). What the devices of a claim take is a status of the pod, one
entry for each claim. It counts on the node from the moment at which the pod is assumed there, and
PreBind writes it to the pod.

Filter compares what the pod requests, including these amounts, with what is left on the node. Only
one pod, or one group, may use a claim whose devices stand for resources of the node.

Upstream: nodeallocatabledynamicresources.go (v1.37).
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from fractions import Fraction
from typing import Final, final

from msgspec import Struct, field, structs

from bayplan.api.amounts import Amount, amount_of
from bayplan.api.device_objects import (
    AllocationResult,
    Device,
    DeviceRequestAllocationResult,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    ResourceClaim,
    ResourceSlice,
)
from bayplan.api.objects import (
    ContainerResourceClaim,
    Node,
    NodeAllocatableMappedResources,
    NodeAllocatableOverheadResources,
    NodeAllocatableResourceClaimStatus,
    Pod,
    PodStatus,
)
from bayplan.api.pod_requests import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGEPAGES_PREFIX,
    MEMORY,
    Amounts,
    PodRules,
    all_containers,
    exact_amounts,
    exact_limits,
    exact_requests,
    is_pod_level,
    requested,
)
from bayplan.api.quantity import Quantity, parse
from bayplan.framework.handle import ResourceSliceLister
from bayplan.framework.status import Code, Status, unresolvable
from bayplan.plugins.dynamic_resources.extended import IN_MEMORY_NAME
from bayplan.plugins.dynamic_resources.pools import AllocationError, matches_node
from bayplan.state.device_table import DeviceId
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo

NOT_SHARED: Final = (
    "node allocatable resource claim {} has a mapped device and cannot be shared across pods"
)
NOT_CONSUMED: Final = (
    "claim {}/{}, device {}: ConsumedCapacity is nil, but Capacity key '{}' is set in "
    "NodeAllocatableResources for resource {}"
)
REQUEST_TOO_SMALL: Final = (
    "pod level request for {} is insufficient to cover the aggregated container and "
    "node-allocatable DRA requests"
)
LIMIT_TOO_SMALL: Final = (
    "pod level limit for {} is insufficient to cover the aggregated container and "
    "node-allocatable DRA limits"
)
CONTAINER_LIMIT_TOO_SMALL: Final = (
    "pod level limit for {} is insufficient to cover the limit and DRA overhead for container {}"
)

Statuses = tuple[NodeAllocatableResourceClaimStatus, ...]


# ---- devices --------------------------------------------------------------------------------


@final
class DevicesWithAmounts:
    """The devices of all slices, found by their ids. A pool may have several slices with a device
    of one name. Of these, the first slice that the node can use counts."""

    def __init__(self, lister: ResourceSliceLister) -> None:
        self._lister = lister
        self._revision = -1
        self._by_id: dict[DeviceId, list[tuple[ResourceSlice, Device]]] = {}
        self._has_amounts = False

    @property
    def are_present(self) -> bool:
        """Whether any device takes resources of its node."""
        self._renew()
        return self._has_amounts

    def find(self, result: DeviceRequestAllocationResult, node: Node | None) -> Device:
        """An allocated device as a node sees it. Without a node, as the slice of any node has it.
        Raises AllocationError if there is none."""
        self._renew()
        device_id = DeviceId(result.driver, result.pool, result.device)
        for resource_slice, device in self._by_id.get(device_id, ()):
            if node is None:
                return device
            spec = resource_slice.spec
            where = (spec.node_name, spec.all_nodes, spec.node_selector)
            if not (spec.per_device_node_selection or _is_for(node, *where)):
                continue
            of_device = (device.node_name, device.all_nodes, device.node_selector)
            if spec.per_device_node_selection and not _is_for(node, *of_device):
                raise AllocationError(f"device {result.device} does not match node")
            return device
        where_not = f"pool {result.pool} for driver {result.driver}"
        raise AllocationError(f"device {result.device} not found in {where_not}")

    def existing(self, allocation: AllocationResult | None, node: Node | None) -> Iterator[Device]:
        """The devices of an allocation that the node has."""
        for result in () if allocation is None else allocation.results:
            try:
                yield self.find(result, node)
            except AllocationError:
                continue

    def _renew(self) -> None:
        if self._revision == self._lister.revision:
            return
        self._revision, self._by_id = self._lister.revision, {}
        for each in self._lister.list_with_device_taint_rules():
            for device in each.spec.devices or ():
                device_id = DeviceId(each.spec.driver, each.spec.pool.name, device.name)
                self._by_id.setdefault(device_id, []).append((each, device))
        of_all = (device for found in self._by_id.values() for _, device in found)
        self._has_amounts = any(device.node_allocatable_resources for device in of_all)


def _is_for(node: Node, *where: object) -> bool:
    """Whether a node can use a slice or a device. A selector that does not parse matches no
    node."""
    try:
        return matches_node(node, *where)  # type: ignore[arg-type]
    except AllocationError:
        return False


def stands_for_resources(devices: Iterator[Device]) -> bool:
    """Whether a device is a part of its node's resources, and not only a cost."""
    return any(
        each.mapping is not None
        for device in devices
        for each in (device.node_allocatable_resources or {}).values()
    )


# ---- what the devices of claims take --------------------------------------------------------


class ClaimUse(Struct):
    """A claim that a pod uses."""

    claim: ResourceClaim
    allocation: AllocationResult = AllocationResult()
    #: The names of the claim in the pod's spec. The name "" means a claim for extended resources.
    entries: set[str] = field(default_factory=set[str])


def takes(use: ClaimUse, devices: DevicesWithAmounts, node: Node) -> bool:
    """Whether a device of the claim takes resources of the node."""
    existing = devices.existing(use.allocation, node)
    return any(device.node_allocatable_resources for device in existing)


def statuses_of(
    pod: PodInfo, uses: Sequence[ClaimUse], devices: DevicesWithAmounts, node: Node
) -> Statuses:
    """What the devices take of the node, by claim; claims that take nothing are left out. Raises
    AllocationError, QuantityError."""
    statuses = [_status_of(pod, use, devices, node) for use in uses]
    named = (each for each in statuses if each.mapping or each.overhead)
    return tuple(sorted(named, key=lambda each: each.resource_claim_name))


def _status_of(
    pod: PodInfo, use: ClaimUse, devices: DevicesWithAmounts, node: Node
) -> NodeAllocatableResourceClaimStatus:
    claim = use.claim
    mapped: dict[str, Amount] = {}
    per_pod: dict[str, Amount] = {}
    per_container: dict[str, Amount] = {}
    for result in use.allocation.results:
        try:
            device = devices.find(result, node)
        except AllocationError as problem:
            what = f"claim {claim.key}, device {result.device}, driver {result.driver}"
            raise AllocationError(f"{what}: {problem}") from None
        for name, resource in sorted((device.node_allocatable_resources or {}).items()):
            if resource.mapping is not None:
                _add(mapped, name, _mapped(resource.mapping, result, claim, name))
            overhead = resource.overhead or NodeAllocatableOverhead()
            _add(per_pod, name, _amount(overhead.per_pod))
            _add(per_container, name, _amount(overhead.per_container))
    return NodeAllocatableResourceClaimStatus(
        resource_claim_name=claim.metadata.name,
        containers=tuple(_containers_with(pod, use.entries)) or None,
        mapping=tuple(
            NodeAllocatableMappedResources(name=name, quantity=str(amount))
            for name, amount in sorted(mapped.items())
        )
        or None,
        overhead=tuple(
            NodeAllocatableOverheadResources(
                name=name,
                per_pod=_text(per_pod.get(name)),
                per_container=_text(per_container.get(name)),
            )
            for name in sorted({*per_pod, *per_container})
        )
        or None,
    )


def _containers_with(pod: PodInfo, entries: Set[str]) -> Iterator[str]:
    """The containers that name entries of the pod's claims. A container comes once for each entry
    that it names."""
    for container in all_containers(pod.spec):
        claims: Sequence[ContainerResourceClaim] = ()
        if container.resources is not None:
            claims = container.resources.claims or ()
        yield from (container.name for each in claims if each.name in entries)


def _mapped(
    mapping: NodeAllocatableMapping,
    result: DeviceRequestAllocationResult,
    claim: ResourceClaim,
    resource: str,
) -> Amount | None:
    """The amount of a resource that a device stands for; None: the device does not stand for the
    resource. Raises AllocationError."""
    key = mapping.capacity_key
    if not key:
        return _amount(mapping.device_multiplier)
    if result.consumed_capacity is None:
        namespace, name = claim.metadata.namespace or "", claim.metadata.name
        text = NOT_CONSUMED.format(namespace, name, result.device, key, resource)
        raise AllocationError(text)
    if key not in result.consumed_capacity:
        return None
    consumed = amount_of(result.consumed_capacity[key])
    if mapping.capacity_multiplier is None:
        return consumed
    product = Fraction(consumed.nanos) * parse(mapping.capacity_multiplier)
    return consumed._replace(nanos=-(-product.numerator // product.denominator))


def _amount(quantity: Quantity | None) -> Amount | None:
    return None if quantity is None else amount_of(quantity)


def _text(amount: Amount | None) -> str | None:
    return None if amount is None else str(amount)


def _add(total: dict[str, Amount], name: str, amount: Amount | None) -> None:
    if amount is not None:
        total[name] = total[name].plus(amount) if name in total else amount


def named_as(statuses: Statuses, claim_name: str) -> Statuses:
    """The statuses with the name that the claim for extended resources got in the API."""
    return tuple(
        structs.replace(each, resource_claim_name=claim_name)
        if each.resource_claim_name == IN_MEMORY_NAME
        else each
        for each in statuses
    )


# ---- whether the node has as much -----------------------------------------------------------


def why_not(pod: PodInfo, statuses: Statuses, node: NodeInfo) -> Status | None:
    """Why the pod does not fit if its devices take these amounts of the node. Raises
    QuantityError."""
    rules = structs.replace(pod.shape.rules, reads_resizes=False, counts_claims=True)
    status = PodStatus(node_allocatable_resource_claim_statuses=statuses)
    whole = Pod(spec=pod.spec, status=status)
    return _not_covered(whole, rules) or _insufficient(requested(whole, rules=rules), node)


def _insufficient(amounts: Mapping[str, int], node: NodeInfo) -> Status | None:
    huge_pages = sorted(name for name in amounts if name.startswith(HUGEPAGES_PREFIX))
    reasons = list[str]()
    code = Code.UNSCHEDULABLE
    for name in (CPU, MEMORY, EPHEMERAL_STORAGE, *huge_pages):
        amount, has = amounts.get(name, 0), node.amounts(name)
        if amount <= has.allocatable - has.requested or (amount <= 0 and name not in huge_pages):
            continue
        reasons.append(f"Insufficient {name}")
        if amount > has.allocatable:
            code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    return Status(code, tuple(reasons)) if reasons else None


def _not_covered(pod: Pod, rules: PodRules) -> Status | None:
    """Whether the pod as a whole requests or allows less than its containers and devices need."""
    whole = pod.spec.resources
    if not rules.has_pod_level or whole is None:
        return None
    requests, limits = exact_amounts(whole.requests), exact_amounts(whole.limits)
    needed = exact_requests(pod, rules) if requests else {}
    for name in sorted(requests):
        if is_pod_level(name) and needed.get(name, 0) > requests[name]:
            return unresolvable(REQUEST_TOO_SMALL.format(name))
    allowed = exact_limits(pod, rules) if limits else {}
    for name in sorted(limits):
        if name.startswith(HUGEPAGES_PREFIX) and allowed.get(name, 0) > limits[name]:
            return unresolvable(LIMIT_TOO_SMALL.format(name))
    return _container_not_covered(pod, limits)


def _container_not_covered(pod: Pod, limits: Amounts) -> Status | None:
    for container in pod.spec.containers or ():
        own = exact_amounts(None if container.resources is None else container.resources.limits)
        of_devices = _amounts_of_container(pod.status, container.name)
        for name in sorted(own):
            if name.startswith(HUGEPAGES_PREFIX) or name not in limits:
                continue
            if own[name] + of_devices.get(name, 0) > limits[name]:
                return unresolvable(CONTAINER_LIMIT_TOO_SMALL.format(name, container.name))
    return None


def _amounts_of_container(status: PodStatus, container: str) -> Amounts:
    """What the claims of a container take, in billionths. Upstream: GetContainerDRAAllocations."""
    total: Amounts = {}
    for claim in status.node_allocatable_resource_claim_statuses or ():
        if container not in (claim.containers or ()):
            continue
        parts = [(each.name, each.quantity) for each in claim.mapping or ()]
        for each in claim.overhead or ():
            parts += [(each.name, each.per_pod), (each.name, each.per_container)]
        for name, quantity in parts:
            amount = 0 if quantity is None else amount_of(quantity).nanos
            total[name] = total.get(name, 0) + amount
    return total
