"""PreFilter and Filter: the claims of a pod, and whether a node can serve them.

A pod names a claim, or a template from which a controller creates one. The controller writes the
name of the created claim into the pod's status. A claim made from a template must belong to the
pod. Messages are upstream's: dynamic-resource-allocation/resourceclaim.

PreFilter finds out whether the claims exist, and which of them need an allocation. Filter checks
whether allocated claims can be used on a node, and whether the other claims can get devices there.
An allocated device may name conditions that must be true before the pod is bound, and conditions
that mean a failure. Upstream: isClaimReadyForBinding, isClaimTimeout.

`ClaimsAttempt` is the state of one attempt about the claims, from PreFilter to the end of binding.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Protocol, final

from msgspec import Struct, field

from bayplan.api.device_objects import (
    FIRST_AVAILABLE_MAX,
    AllocatedDeviceStatus,
    AllocationResult,
    ConsumerReference,
    DeviceCondition,
    DeviceRequest,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from bayplan.api.object_meta import is_controlled_by
from bayplan.api.objects import Node, PodResourceClaim
from bayplan.api.quantity import QuantityError
from bayplan.api.selectors import NodeTerm
from bayplan.clock import epoch_of
from bayplan.framework.handle import DeviceClassLister, Handle, SharedDRAManager
from bayplan.framework.status import Code, Status, unresolvable
from bayplan.plugins.dynamic_resources.allocator import Allocator, PoolsByNode
from bayplan.plugins.dynamic_resources.extended import (
    IN_MEMORY_NAME,
    NodeClaim,
    claim_for_node,
    requested_devices,
    special_claim,
)
from bayplan.plugins.dynamic_resources.group_claims import (
    group_name_of,
    is_owned_by_group,
    is_reserved,
    pod_as_user,
    users_of_claims,
)
from bayplan.plugins.dynamic_resources.node_allocatable import (
    NOT_SHARED,
    ClaimUse,
    DevicesWithAmounts,
    Statuses,
    stands_for_resources,
    statuses_of,
    takes,
    why_not,
)
from bayplan.plugins.dynamic_resources.pools import (
    AllocationError,
    NodeAllocationFailed,
    any_matches,
    compiled,
)
from bayplan.plugins.dynamic_resources.tentative import OPTIONAL_NODE_OPERATIONS
from bayplan.state.nodes import NodeInfo
from bayplan.state.pod_groups import PodGroups
from bayplan.state.pods import PodInfo

# ---- the claims that a pod names ------------------------------------------------------------


class ClaimLookup(Protocol):
    def get(self, namespace: str, name: str) -> ResourceClaim | None: ...


def claims_of(
    pod: PodInfo, claims: ClaimLookup, pod_word: str = "Pod", *, has_group_claims: bool = False
) -> list[ResourceClaim] | Status:
    """The claims that a pod names, in its order; or a text that says why the pod cannot be placed
    yet.

    ``pod_word``: see `Behaviour.claim_owner_word`. ``has_group_claims``: whether a claim may have
    been made for the pod's group.
    """
    existing: list[ResourceClaim] = []
    for named in pod.spec.resource_claims or ():
        claim = _claim(pod, named, claims, pod_word, has_group_claims=has_group_claims)
        if isinstance(claim, Status):
            return claim
        if claim is not None:
            existing.append(claim)
    return existing


def _claim(
    pod: PodInfo,
    named: PodResourceClaim,
    claims: ClaimLookup,
    pod_word: str,
    *,
    has_group_claims: bool,
) -> ResourceClaim | Status | None:
    """The claim of an entry of the pod. None: the status of the pod says that the entry needs no
    claim."""
    name = _name(pod, named)
    if name is None or isinstance(name, Status):
        return name
    claim = claims.get(pod.namespace, name)
    if claim is None:
        return unresolvable(f'could not find ResourceClaim "{pod.namespace}/{name}"')
    if claim.metadata.deletion_timestamp is not None:
        return unresolvable(f'resourceclaim "{name}" is being deleted')
    # A claim of this name may have been made for an earlier pod of the same name.
    if named.resource_claim_name is None and not is_controlled_by(claim.metadata, pod.uid):
        group = group_name_of(pod) if has_group_claims else ""
        if group and is_owned_by_group(claim, group):
            return claim
        why = f"neither {pod_word} nor PodGroup {group} is the owner"
        whose = f"{pod_word} {pod.key} ({why if group else f'{pod_word} is not owner'})"
        return unresolvable(f"ResourceClaim {claim.key} was not created for {whose}")
    return claim


def _name(pod: PodInfo, named: PodResourceClaim) -> str | Status | None:
    if named.resource_claim_name is not None:
        return named.resource_claim_name
    if named.resource_claim_template_name is None:
        where = f'pod "{pod.key}", spec.resourceClaim "{named.name}"'
        return unresolvable(f"{where}: none of the supported fields are set")
    for status in pod.status.resource_claim_statuses or ():
        if status.name == named.name:
            return status.resource_claim_name
    return unresolvable(f'pod "{pod.key}": ResourceClaim not created yet')


# ---- one attempt ----------------------------------------------------------------------------


class NodeAllocation(Struct, eq=False):
    """The result of Filter for one node."""

    #: The allocations of the claims that had none, by the index of the claim.
    results: Mapping[int, AllocationResult]
    special: NodeClaim | None


class ClaimsAttempt(Struct, eq=False):
    """The pod's claims with their allocations."""

    #: The claims that the pod names, and after them the special claim for extended resources if the
    #: pod needs one.
    claims: list[ResourceClaim]
    has_special: bool
    #: The object that each entry of the pod's resourceClaims is reserved for; empty: the pod
    #: itself.
    users: Sequence[ConsumerReference] = ()
    #: The allocations that another member of the pass has made, by the index of the claim.
    shared: Mapping[int, AllocationResult] = field(default_factory=dict[int, AllocationResult])
    #: The nodes that can use an allocated claim, by its index; None: all nodes.
    selectors: Sequence[Sequence[NodeTerm] | None] = ()
    #: Indices of claims with devices that stand for resources of their nodes.
    mapped: Set[int] = frozenset()
    #: The allocator; None: no claim needs an allocation.
    allocator: Allocator | None = None
    #: Indices of allocated claims that some node cannot use.
    unavailable: set[int] = field(default_factory=set[int])
    by_node: dict[str, NodeAllocation] = field(default_factory=dict[str, NodeAllocation])
    #: What the devices take of each node.
    claim_amounts: dict[str, Statuses] = field(default_factory=dict[str, Statuses])
    #: The allocation that Reserve chose, by the index of the claim, until the API has it.
    reserved: dict[int, AllocationResult] = field(default_factory=dict[int, AllocationResult])
    #: The allocations in flight, by uid of the claim.
    in_flight: dict[str, AllocationResult] = field(default_factory=dict[str, AllocationResult])

    #: Indices of claims that PreBind has begun to write.
    written: set[int] = field(default_factory=set[int])
    #: Whether PreBind has begun to write what the devices take of the node.
    has_written_amounts: bool = False

    @property
    def special(self) -> ResourceClaim | None:
        return self.claims[-1] if self.has_special else None

    @property
    def has_user_claims(self) -> bool:
        return len(self.claims) > self.has_special

    def user_claims(self) -> Sequence[ResourceClaim]:
        """The claims that the pod names, without the special claim."""
        return self.claims[:-1] if self.has_special else self.claims

    def user_of(self, index: int, pod: PodInfo) -> ConsumerReference:
        """The object that the claim is reserved for: the pod, or its group."""
        return self.users[index] if index < len(self.users) else pod_as_user(pod)

    def entries(self, pod: PodInfo) -> Iterator[str]:
        """The name of the pod's entry for each claim; "": the special claim."""
        made = {each.name: each for each in pod.status.resource_claim_statuses or ()}
        for named in pod.spec.resource_claims or ():
            status = made.get(named.name)
            is_none = status is not None and status.resource_claim_name is None
            if named.resource_claim_name is not None or not is_none:
                yield named.name
        if self.has_special:
            yield ""

    def is_special(self, index: int) -> bool:
        return self.has_special and index == len(self.claims) - 1

    def unallocated(self) -> Iterator[tuple[int, ResourceClaim]]:
        """The claims without an allocation, with their indices."""
        for index, claim in enumerate(self.claims):
            if claim.allocation is None:
                yield index, claim

    @property
    def special_is_in_api(self) -> bool:
        """Whether an earlier attempt, or this one, has created the special claim."""
        special = self.special
        return special is not None and special.metadata.name != IN_MEMORY_NAME


def preference(attempt: ClaimsAttempt, node_allocation: NodeAllocation) -> int:
    """How high the alternatives rank that the pod would get on a node. The first alternative of a
    request is the best one."""
    score = 0
    for number, claim in enumerate(attempt.claims):
        allocation = claim.allocation or node_allocation.results.get(number)
        if allocation is None:
            continue
        chosen = {result.request for result in allocation.results}
        for request in claim.spec.devices.requests or ():
            for index, each in enumerate(request.first_available or ()):
                if f"{request.name}/{each.name}" in chosen:
                    score += FIRST_AVAILABLE_MAX - index
    return score


# ---- readiness ------------------------------------------------------------------------------


BINDING_FAILED = "device binding failed"
BINDING_TIMEOUT = "device binding timeout"


def is_ready(claim: ResourceClaim) -> bool | str:
    """Whether all devices are ready; or a text that names the device that failed."""
    if claim.allocation is None:
        return False
    for result in claim.allocation.results:
        if not result.binding_conditions:
            continue
        reported = _reported(claim, result)
        if reported is None:
            return False
        for name in result.binding_failure_conditions or ():
            failed = _condition(reported, name)
            if failed is not None and failed.status == "True":
                what = f'reason={failed.reason}, message="{failed.message}"'
                return f"{BINDING_FAILED}: claim={claim.metadata.name}, {what}"
        if not all(_is_true(reported, name) for name in result.binding_conditions):
            return False
    return True


def waits_for_conditions(claim: ResourceClaim) -> bool:
    """Whether some device of the claim names conditions that must hold before the pod is bound."""
    return claim.allocation is not None and any(
        result.binding_conditions for result in claim.allocation.results
    )


def is_timed_out(claim: ResourceClaim, epoch_seconds: float, timeout_seconds: float) -> bool:
    """Whether the claim was allocated so long ago that the scheduler no longer waits for its
    devices."""
    allocation = claim.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    allocated = epoch_of(allocation.allocation_timestamp)
    has_conditions = any(r.binding_conditions is not None for r in allocation.results)
    return has_conditions and allocated is not None and allocated + timeout_seconds < epoch_seconds


def _reported(
    claim: ResourceClaim, result: DeviceRequestAllocationResult
) -> AllocatedDeviceStatus | None:
    for status in claim.status.devices or ():
        if (status.driver, status.pool, status.device) == (
            result.driver,
            result.pool,
            result.device,
        ):
            return status
    return None


def _condition(status: AllocatedDeviceStatus, name: str) -> DeviceCondition | None:
    return next((each for each in status.conditions or () if each.type == name), None)


def _is_true(status: AllocatedDeviceStatus, name: str) -> bool:
    condition = _condition(status, name)
    return condition is not None and condition.status == "True"


# ---- PreFilter ------------------------------------------------------------------------------


def prepare(
    pod: PodInfo,
    devices: SharedDRAManager,
    pools: PoolsByNode,
    groups: PodGroups,
    *,
    in_pass: Set[str] = frozenset(),
    amounts: DevicesWithAmounts | None = None,
) -> ClaimsAttempt | Status:
    """The pod's claims, ready for Filter; or why the pod cannot be placed now. ``in_pass``: the
    uids of claims that other members of its group have allocated in the present pass. ``amounts``:
    what finds the amounts of devices; None: devices take nothing of their nodes."""
    features = pools.features
    claims = claims_of(
        pod,
        devices.resource_claims,
        features.behaviour.claim_owner_word,
        has_group_claims=features.group_claims,
    )
    if isinstance(claims, Status):
        return claims
    has_special = requested_devices(pod, devices.device_classes)
    if has_special:
        claims.append(special_claim(pod, devices.resource_claims.list(pod.namespace)))
    users = users_of_claims(pod, groups) if features.group_claims else ()
    if isinstance(users, Status):
        return users
    shared = _shared(claims, devices, in_pass)
    attempt = ClaimsAttempt(claims, has_special, users, shared)
    why_not = _why_not(attempt, devices, has_alternatives=features.alternatives)
    if why_not is not None:
        return why_not
    try:
        attempt.selectors = [
            _terms(claim.allocation or shared.get(index)) for index, claim in enumerate(claims)
        ]
    except AllocationError as problem:
        return Status(Code.ERROR, (str(problem),))
    if amounts is not None and amounts.are_present:
        attempt.mapped = {
            index
            for index, claim in enumerate(claims)
            if stands_for_resources(amounts.existing(claim.allocation or shared.get(index), None))
        }
    if any(claim.allocation is None for claim in claims):
        allocated = devices.resource_claims.allocated
        attempt.allocator = Allocator(pools, devices.device_classes, allocated)
    return attempt


def _shared(
    claims: Sequence[ResourceClaim], devices: SharedDRAManager, in_pass: Set[str]
) -> dict[int, AllocationResult]:
    """The allocations in flight that other members of the pass have made, by index."""
    pending = {
        index: devices.resource_claims.pending_allocation(claim.uid)
        for index, claim in enumerate(claims)
        if claim.allocation is None and claim.uid in in_pass
    }
    return {index: allocation for index, allocation in pending.items() if allocation is not None}


def _terms(allocation: AllocationResult | None) -> Sequence[NodeTerm] | None:
    if allocation is None or allocation.node_selector is None:
        return None
    return compiled(allocation.node_selector)


#: The placeholders are the claim and the request.
NO_ALTERNATIVES = (
    "resource claim {}, request {}: has subrequests, but the DRAPrioritizedList feature is disabled"
)


def _why_not(
    attempt: ClaimsAttempt, devices: SharedDRAManager, *, has_alternatives: bool
) -> Status | None:
    for index, claim in attempt.unallocated():
        if index in attempt.shared:
            continue
        if devices.resource_claims.pending_allocation(claim.uid) is not None:
            return unresolvable(f"resource claim {claim.key} is in the process of being allocated")
        if attempt.is_special(index):
            continue
        for request in claim.spec.devices.requests or ():
            if request.first_available and not request.exactly and not has_alternatives:
                text = NO_ALTERNATIVES.format(claim.key, request.name)
                return unresolvable(text)
            why_not = _class_missing(claim, request, devices.device_classes)
            if why_not is not None:
                return why_not
    return None


def _class_missing(
    claim: ResourceClaim, request: DeviceRequest, classes: DeviceClassLister
) -> Status | None:
    if request.exactly is not None:
        named = [(request.name, request.exactly.device_class_name)]
    elif request.first_available:
        named = [(f"{request.name}/{a.name}", a.device_class_name) for a in request.first_available]
    else:
        text = f"resource claim {claim.key}, request {request.name}: unknown request type"
        return unresolvable(text)
    for name, device_class in named:
        if not device_class:
            return Status(Code.ERROR, (f"request {name}: unsupported request type",))
        if classes.get(device_class) is None:
            return unresolvable(f"request {name}: device class {device_class} does not exist")
    return None


# ---- Filter ---------------------------------------------------------------------------------


NOT_AVAILABLE = "resourceclaim not available on the node"
TIMED_OUT = "timed out trying to allocate devices"
CANNOT_ALLOCATE = "cannot allocate all claims"
NEEDS_OPERATIONS = (
    "resource claim {} allocation requires DRAOptionalNodeOperations feature on the node"
)
#: Steps of a search between two readings of the clock.
_STEPS_PER_LOOK = 64


class _OutOfTime(Exception):
    """The search took too long."""


@final
class NodeFilter(Struct, frozen=True):
    """Evaluates nodes one by one, and stores each result in the attempt."""

    handle: Handle
    #: How long a search on one node may take; 0: there is no limit.
    filter_timeout_seconds: float
    binding_timeout_seconds: float
    #: Whether devices may have to be made ready before their pods are bound.
    has_binding_conditions: bool = True
    #: None: devices take nothing of their nodes.
    amounts: DevicesWithAmounts | None = None
    has_group_claims: bool = False

    def verdict(self, attempt: ClaimsAttempt, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Why the node cannot be used; None: it can, and its allocation is stored."""
        special: NodeClaim | None = None
        if attempt.special is not None:
            classes = self.handle.devices.device_classes
            node_claim = claim_for_node(pod, attempt.special, node, classes)
            if isinstance(node_claim, Status):
                return node_claim
            special = node_claim
            if special is None and not attempt.has_user_claims:
                return None  # The node offers the resource itself.
        unavailable = self._unavailable(attempt, node.node)
        why_not_shared = self._why_not_shared(attempt, pod, node.node)
        if why_not_shared is not None:
            return why_not_shared
        results = self._results(attempt, special, node.node)
        if isinstance(results, Status):
            return results
        taken = self._taken(attempt, pod, node, results)
        if isinstance(taken, Status):
            return taken
        if unavailable:
            attempt.unavailable |= unavailable
            return unresolvable(NOT_AVAILABLE)
        if attempt.allocator is not None or taken:
            attempt.by_node[node.name] = NodeAllocation(results, special)
        attempt.claim_amounts[node.name] = taken
        return None

    def _why_not_shared(self, attempt: ClaimsAttempt, pod: PodInfo, node: Node) -> Status | None:
        """Why a claim that only one pod, or its group, may use is not usable, because another pod
        uses it; None: no such claim."""
        for index in sorted(attempt.mapped):
            claim = attempt.claims[index]
            if self._is_elsewhere(attempt, index, node):
                continue
            is_own = is_reserved(claim, pod, has_group_claims=self.has_group_claims)
            has_users = bool(claim.status.reserved_for) and not is_own
            if has_users or index in attempt.shared:
                return unresolvable(NOT_SHARED.format(claim.metadata.name))
        return None

    def _taken(
        self,
        attempt: ClaimsAttempt,
        pod: PodInfo,
        node: NodeInfo,
        results: Mapping[int, AllocationResult],
    ) -> Statuses | Status:
        """What the devices take of the node; or a text that says why the node has too little."""
        devices = self.amounts
        if devices is None or not devices.are_present:
            return ()
        uses: dict[str, ClaimUse] = {}
        for index, (claim, entry) in enumerate(
            zip(attempt.claims, attempt.entries(pod), strict=True)
        ):
            allocation = results.get(index, claim.allocation)
            if allocation is not None:
                # A pod may name a claim twice. Then the last allocation counts.
                use = uses.setdefault(claim.uid, ClaimUse(claim))
                use.allocation = allocation
                use.entries.add(entry)
        taking = [use for use in uses.values() if takes(use, devices, node.node)]
        if not taking:
            return ()
        try:
            statuses = statuses_of(pod, taking, devices, node.node)
            return why_not(pod, statuses, node) or statuses
        except (AllocationError, QuantityError) as problem:
            return Status(Code.ERROR, (str(problem),))

    def _unavailable(self, attempt: ClaimsAttempt, node: Node) -> set[int]:
        """Allocated claims that the node cannot use, or whose devices have failed."""
        return {
            index
            for index, claim in enumerate(attempt.claims)
            if self._is_elsewhere(attempt, index, node)
            or (claim.allocation is not None and self._has_failed(claim))
        }

    @staticmethod
    def _is_elsewhere(attempt: ClaimsAttempt, index: int, node: Node) -> bool:
        """Whether a claim has devices that the node cannot use."""
        terms, allocation = attempt.selectors[index], attempt.claims[index].allocation
        if terms is not None and not any_matches(terms, node):
            return True
        needs_more = allocation is not None and _needs_optional_operations(allocation)
        return needs_more and not _may_skip(node)

    def _has_failed(self, claim: ResourceClaim) -> bool:
        if not self.has_binding_conditions:
            return False
        ready = is_ready(claim)
        if isinstance(ready, str):
            return True
        now, timeout = self.handle.epoch_seconds, self.binding_timeout_seconds
        return not ready and is_timed_out(claim, now, timeout)

    def _results(
        self, attempt: ClaimsAttempt, special: NodeClaim | None, node: Node
    ) -> dict[int, AllocationResult] | Status:
        if attempt.allocator is None:
            return {}
        if attempt.shared and not _may_skip(node):
            for index, allocation in attempt.shared.items():
                if _needs_optional_operations(allocation):
                    return unresolvable(NEEDS_OPERATIONS.format(attempt.claims[index].key))
        unallocated = {
            index: special.claim if attempt.is_special(index) and special is not None else claim
            for index, claim in attempt.unallocated()
            if index not in attempt.shared
            and (special is not None or not attempt.is_special(index))
        }
        name = node.metadata.name
        try:
            results = attempt.allocator.allocate(node, list(unallocated.values()), self._ticks())
        except _OutOfTime:
            if not self.handle.behaviour.filter_timeout_is_error:
                return unresolvable(TIMED_OUT)
            return Status(Code.ERROR, (f"node {name}: {TIMED_OUT}",))
        except NodeAllocationFailed as problem:
            return unresolvable(str(problem))
        except AllocationError as problem:
            return Status(Code.ERROR, (str(problem),))
        if results is None:
            return unresolvable(CANNOT_ALLOCATE)
        return {**attempt.shared, **dict(zip(unallocated, results, strict=True))}

    def _ticks(self) -> Callable[[], None]:
        """A function that raises _OutOfTime when it is called after the end of the time."""
        deadline = self.handle.now_seconds + self.filter_timeout_seconds
        steps = 0

        def tick() -> None:
            nonlocal steps
            steps += 1
            is_due = steps % _STEPS_PER_LOOK == 0 and self.filter_timeout_seconds > 0
            if is_due and self.handle.now_seconds > deadline:
                raise _OutOfTime

        return tick


def _needs_optional_operations(allocation: AllocationResult) -> bool:
    return any(result.skip_node_operations for result in allocation.results)


def _may_skip(node: Node) -> bool:
    return OPTIONAL_NODE_OPERATIONS in (node.status.declared_features or ())
