"""The allocator: devices for a pod's claims on one node.

What does not depend on the node is prepared once per attempt. What does not depend on the attempt
(pools of a node, results of selectors) is cached until slices change. Upstream:
structured.Allocator, in the variant for the features that are on in v1.37. The limit of devices per
claim is that of v1.37.2.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import final

from bayplan.api.device_objects import (
    ALL_DEVICES,
    ALLOCATION_RESULTS_MAX,
    EXACT_COUNT,
    AllocationResult,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from bayplan.api.objects import Node
from bayplan.framework.handle import DeviceClassLister, ResourceSliceLister
from bayplan.plugins.dynamic_resources.allocation import allocation
from bayplan.plugins.dynamic_resources.attributes import DeviceAttributes
from bayplan.plugins.dynamic_resources.capacity import consumed_by, fits, rules_of
from bayplan.plugins.dynamic_resources.features import ALL_ON, DeviceFeatures
from bayplan.plugins.dynamic_resources.pools import (
    AllocationError,
    Candidate,
    NodeAllocationFailed,
    Pool,
    gather_pools,
)
from bayplan.plugins.dynamic_resources.requests import (
    Alternative,
    ClaimSearch,
    Request,
    alternatives_of,
    constraint,
    unknown_constraint,
)
from bayplan.plugins.dynamic_resources.search import Search
from bayplan.plugins.dynamic_resources.selection import Selection, SelectorResults
from bayplan.plugins.dynamic_resources.tentative import Takings
from bayplan.printable import quoted
from bayplan.state.device_table import AllocatedDevices, Amounts

NO_CAPACITY = (
    "claim {}, {} {}: has capacity requests, but the DRAConsumableCapacity feature is disabled"
)
#: The placeholders are the claim, the request, its devices, the limit, and the devices of the
#: requests before it.
TOO_MANY_DEVICES = (
    "claim {}, request {}: adding {} devices exceeds the claim limit of {}, with {} already "
    "accounted for"
)
#: The message before 1.37.1. The placeholders are the claim, its devices, and the limit.
TOO_MANY_IN_SUM = "claim {}: number of requested devices {} exceeds the claim limit of {}"
NO_ADMIN_ACCESS = "admin access is requested, but the feature is disabled"
_INVALID_POOLS = "invalid resource pools were encountered"


@final
class PoolsByNode:
    """The pools of each node, as they were gathered last. They are forgotten when a slice or the
    node itself changes."""

    def __init__(self, lister: ResourceSliceLister, features: DeviceFeatures = ALL_ON) -> None:
        self._lister = lister
        self.features = features
        self._revision = -1
        self._slices: Sequence[ResourceSlice] = ()
        self._local: dict[str, list[ResourceSlice]] = {}
        self._shared: list[ResourceSlice] = []
        self._pools: dict[str, tuple[Node, list[Pool]]] = {}
        self.results = SelectorResults()

    def pools(self, node: Node) -> list[Pool]:
        """Raises AllocationError."""
        if self._revision != self._lister.revision:
            self._renew()
        name = node.metadata.name
        entry = self._pools.get(name)
        if entry is None or entry[0] is not node:
            slices = [*self._local.get(name, ()), *self._shared]
            entry = self._pools[name] = (node, self._gathered(node, slices))
        return entry[1]

    def _gathered(self, node: Node, slices: Iterable[ResourceSlice]) -> list[Pool]:
        return gather_pools(node, slices, self._slices, self.features)

    def _renew(self) -> None:
        self._revision = self._lister.revision
        self._slices = [
            self.features.seen(each) for each in self._lister.list_with_device_taint_rules()
        ]
        self._local, self._shared, self._pools = {}, [], {}
        for each in self._slices:
            if each.spec.node_name:
                self._local.setdefault(each.spec.node_name, []).append(each)
            else:
                self._shared.append(each)
        self.results.keep_only(self._slices)


@final
class Allocator:
    """Finds devices, node by node, for one attempt."""

    def __init__(
        self,
        pools: PoolsByNode,
        classes: DeviceClassLister,
        allocated: AllocatedDevices,
    ) -> None:
        self._pools = pools
        self._classes = classes
        self._allocated = allocated

    def allocate(
        self, node: Node, claims: Sequence[ResourceClaim], tick: Callable[[], None]
    ) -> list[AllocationResult] | None:
        """One allocation per claim; None: the node lacks devices for them.

        Raises AllocationError for an invalid claim, class or slice, and NodeAllocationFailed for
        invalid pools of the node.
        """
        pools = self._pools.pools(node)
        features = self._pools.features
        selection = Selection(self._pools.results, node, features)
        searches = [self._claim_search(claim, pools, selection) for claim in claims]
        skips_incomplete = features.behaviour.incomplete_pools_are_skipped
        candidates = [
            each
            for pool in pools
            if pool.is_usable or not skips_incomplete
            for each in pool.candidates
        ]
        takings = Takings(self._allocated, features, node)
        assigned = Search(searches, candidates, takings, selection).run(tick)
        if assigned is None:
            if any(pool.is_invalid for pool in pools):
                raise NodeAllocationFailed(_INVALID_POOLS)
            return None
        results = zip(claims, searches, assigned, strict=True)
        name = node.metadata.name
        return [allocation(c, w, g, name, behaviour=features.behaviour) for c, w, g in results]

    # ---- before the search ----------------------------------------------------------------

    def _claim_search(
        self, claim: ResourceClaim, pools: Sequence[Pool], selection: Selection
    ) -> ClaimSearch:
        claim_requests = claim.spec.devices.requests or ()
        requests: list[list[Alternative]] = []
        fewest_in_claim, exceeds_limit = 0, False
        for request in claim_requests:
            alternatives = [
                self._alternative(claim, each, pools, selection)
                for each in self._alternatives(claim, request)
            ]
            requests.append(alternatives)
            fewest = min(each.device_count for each in alternatives)
            if fewest > ALLOCATION_RESULTS_MAX - fewest_in_claim:
                if self._pools.features.behaviour.device_limit_names_request:
                    text = TOO_MANY_DEVICES.format(
                        claim.key, request.name, fewest, ALLOCATION_RESULTS_MAX, fewest_in_claim
                    )
                    raise AllocationError(text)
                exceeds_limit = True
            fewest_in_claim += fewest
        if exceeds_limit:
            raise AllocationError(
                TOO_MANY_IN_SUM.format(claim.key, fewest_in_claim, ALLOCATION_RESULTS_MAX)
            )
        attributes = DeviceAttributes(
            self._pools.results, with_lists=self._pools.features.list_attributes
        )
        constraints = [
            constraint(each, claim.key, index, attributes)
            for index, each in enumerate(claim.spec.devices.constraints or ())
            if not self._is_ignored(each, claim.key, index)
        ]
        has_alternatives = [bool(request.first_available) for request in claim_requests]
        return ClaimSearch(
            claim.key, requests, has_alternatives, constraints, chosen=[0] * len(requests)
        )

    def _is_ignored(self, declared: DeviceConstraint, claim: str, index: int) -> bool:
        """Whether a constraint has no effect. Raises AllocationError for a constraint that needs a
        disabled feature."""
        features = self._pools.features
        if declared.distinct_attribute is None or declared.match_attribute is not None:
            return False
        if features.are_basic:
            raise unknown_constraint(claim, index)
        return not features.consumable_capacity and not features.behaviour.has_basic_allocator

    def _alternatives(self, claim: ResourceClaim, request: DeviceRequest) -> Sequence[Request]:
        """Raises AllocationError for a request that needs a disabled feature."""
        alternatives = alternatives_of(request)
        features = self._pools.features
        if not features.consumable_capacity and not features.are_basic:
            for each in alternatives:
                if each.capacity is not None:
                    word = "subrequest" if each.parent else "request"
                    raise AllocationError(NO_CAPACITY.format(claim.key, word, each.name))
        return alternatives

    def _alternative(
        self, claim: ResourceClaim, request: Request, pools: Sequence[Pool], selection: Selection
    ) -> Alternative:
        subject = f"claim {claim.key}, request {request.name}"
        if request.names_admin_access and not self._pools.features.admin_access:
            raise AllocationError(f"{subject}: {NO_ADMIN_ACCESS}")
        device_class = self._class_of(request, subject)
        if request.mode == EXACT_COUNT:
            return Alternative(request, device_class, request.count)
        if request.mode != ALL_DEVICES:
            raise AllocationError(f"{subject}: unsupported count mode {request.mode}")
        for pool in pools:
            self._check_usable(pool, subject)
        is_any_capacity = not self._pools.features.consumable_capacity
        devices = [
            each
            for pool in pools
            for each in pool.candidates
            if selection.means(each, request, device_class, claim.key)
            and (is_any_capacity or self._has_capacity_at_all(each, request, subject))
        ]
        return Alternative(request, device_class, len(devices), devices)

    def _check_usable(self, pool: Pool, subject: str) -> None:
        """Raises NodeAllocationFailed, or AllocationError before 1.38, if a request for all devices
        concerns an invalid or incomplete pool."""
        if pool.is_usable:
            return
        state = "being updated" if pool.is_incomplete else "invalid"
        text = f"{subject}: asks for all devices, but resource pool {pool.id} is currently {state}"
        if self._pools.features.behaviour.all_mode_fails_for_node:
            raise NodeAllocationFailed(text)
        raise AllocationError(text)

    def _has_capacity_at_all(self, candidate: Candidate, request: Request, subject: str) -> bool:
        """Whether the device has the capacity when it is free. A request for all devices does not
        include a device that is always too small."""
        rules = rules_of(candidate.id.driver, self._pools.features)
        try:
            consumed = consumed_by(request.capacity, candidate.device, rules)
        except AllocationError as problem:
            name = candidate.device.name
            raise AllocationError(
                f"{subject}: checking capacity for device {name}: {problem}"
            ) from None
        shares: tuple[Amounts, ...] = ()
        if not self._pools.features.behaviour.all_mode_ignores_shares:
            shares = (self._allocated.consumed(candidate.id),)
        return consumed is not None and fits(consumed, candidate.device, shares, rules=rules)

    def _class_of(self, request: Request, subject: str) -> DeviceClass:
        if request.derived_attributes and not self._pools.features.derived_attributes:
            text = "cannot handle request with derived attributes, the feature is disabled"
            raise AllocationError(f"{subject}: {text}")
        for index, selector in enumerate(request.selectors):
            if selector.cel is None:
                text = f"selector #{index}: CEL expression empty (unsupported selector type?)"
                raise AllocationError(f"{subject}, {text}")
        if not request.class_name:
            text = "missing device class name (unsupported request type?)"
            raise AllocationError(f"{subject}: {text}")
        device_class = self._classes.get(request.class_name)
        if device_class is None:
            name = request.class_name
            missing = f"deviceclass.resource.k8s.io {quoted(name)} not found"
            raise AllocationError(f"{subject}: could not retrieve device class {name}: {missing}")
        return device_class
