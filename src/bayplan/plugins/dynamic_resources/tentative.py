"""Tentative allocations of a search: one device at a time, undone in reverse order.

Partitions of one chip use counters that they share, such as its memory. A device consumes its
counters once, even if several claims share the device. Upstream: allocateDevice, rollbackDevice,
checkAvailableCounters.
"""

from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import final

from bayplan.api.device_objects import Device
from bayplan.api.objects import Node
from bayplan.plugins.dynamic_resources import capacity
from bayplan.plugins.dynamic_resources.features import ALL_ON, DeviceFeatures
from bayplan.plugins.dynamic_resources.pools import AllocationError, Candidate, Pool, PoolId
from bayplan.plugins.dynamic_resources.requests import AssignedDevice, ClaimSearch, Request
from bayplan.state.device_table import AllocatedDevices, Amounts, DeviceId

# ---- counters -------------------------------------------------------------------------------


#: The feature of nodes whose kubelet can skip a driver's node operations for a device.
OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"
#: (counter set, counter)
_Name = tuple[str, str]


@final
class Counters:
    """The amounts that are left of each pool's counters during one search."""

    def __init__(self, allocated: AllocatedDevices, features: DeviceFeatures) -> None:
        self._allocated = allocated
        self._has_drivers = features.behaviour.counters_are_of_drivers
        self._available: dict[PoolId, Counter[_Name]] = {}

    def take(self, candidate: Candidate) -> bool:
        """Consume the device's counters. Nothing is consumed if some counter does not suffice."""
        available = self._of(candidate.pool)
        needed = _consumed(candidate.device)
        for name, amount in needed.items():
            available[name] -= amount
        # A counter that is overdrawn already, by a mistake of a driver, refuses every consumer.
        if all(amount >= 0 for amount in available.values()):
            return True
        available.update(needed)
        return False

    def give_back(self, candidate: Candidate) -> None:
        """Give back the counters of a device that is not taken after all."""
        self._of(candidate.pool).update(_consumed(candidate.device))

    def _of(self, pool: Pool) -> Counter[_Name]:
        # Before 1.37, pools of the same name shared the counters of the first one, also if their
        # drivers differ.
        key = pool.id if self._has_drivers else PoolId("", pool.id.name)
        counters = self._available.get(key)
        if counters is None:
            counters = self._available[key] = self._left(pool)
        return counters

    def _left(self, pool: Pool) -> Counter[_Name]:
        left: Counter[_Name] = Counter()
        for counter_set in pool.counter_sets.values():
            for name, counter in counter_set.counters.items():
                left[(counter_set.name, name)] = capacity.nanos_of(counter.value)
        for device in _devices(pool):
            device_id = DeviceId(pool.id.driver, pool.id.name, device.name)
            if device.consumes_counters and self._allocated.is_taken(device_id):
                left.subtract(_consumed(device))
        return left


def _devices(pool: Pool) -> Iterator[Device]:
    """The devices of a pool, with those of other nodes."""
    for candidate in pool.candidates:
        yield candidate.device
    for each in pool.other_slices:
        yield from each.spec.devices or ()


def _consumed(device: Device) -> Counter[_Name]:
    consumed: Counter[_Name] = Counter()
    for consumption in device.consumes_counters or ():
        for name, counter in consumption.counters.items():
            consumed[(consumption.counter_set, name)] += capacity.nanos_of(counter.value)
    return consumed


# ---- compatibility groups -------------------------------------------------------------------


#: The groups that all devices of a counter set share. Empty: the devices have no groups; None: the
#: counter set has no devices.
_Groups = frozenset[str] | None


@final
class CompatibilityGroups:
    """The groups that the devices of each counter set have in common.

    Devices that consume one counter set must all share a group, or must all have no group.
    Upstream: structured/internal/experimental/compatibility_groups.go.
    """

    def __init__(self, allocated: AllocatedDevices) -> None:
        self._allocated = allocated
        #: The groups before and after each device that was taken, by pool and counter set.
        self._shared: dict[tuple[PoolId, str], list[_Groups]] = {}

    def take(self, candidate: Candidate) -> bool:
        """Count the device. Nothing is counted if some counter set does not admit it."""
        pool = candidate.pool
        admitted: list[list[_Groups]] = []
        for consumption in candidate.device.consumes_counters or ():
            shared = self._of(pool, consumption.counter_set)
            groups = frozenset(consumption.compatibility_groups or ())
            if not _admits(shared[-1], groups):
                for other in admitted:
                    other.pop()
                return False
            shared.append(_with(shared[-1], groups))
            admitted.append(shared)
        return True

    def give_back(self, candidate: Candidate) -> None:
        """Undo `take` for the device that was taken last."""
        for consumption in candidate.device.consumes_counters or ():
            self._of(candidate.pool, consumption.counter_set).pop()

    def _of(self, pool: Pool, counter_set: str) -> list[_Groups]:
        key = (pool.id, counter_set)
        if key not in self._shared:
            self._shared[key] = [self._allocated_groups(pool, counter_set)]
        return self._shared[key]

    def _allocated_groups(self, pool: Pool, counter_set: str) -> _Groups:
        shared: _Groups = None
        for device in _devices(pool):
            if not self._allocated.is_taken(DeviceId(pool.id.driver, pool.id.name, device.name)):
                continue
            for consumption in device.consumes_counters or ():
                if consumption.counter_set == counter_set:
                    shared = _with(shared, frozenset(consumption.compatibility_groups or ()))
        return shared


def _admits(shared: _Groups, groups: frozenset[str]) -> bool:
    if shared is None:
        return True
    return bool(shared & groups) if groups else not shared


def _with(shared: _Groups, groups: frozenset[str]) -> _Groups:
    if shared is None:
        return groups
    return shared & groups if shared and groups else shared


# ---- tentative allocations ------------------------------------------------------------------


class TakeResult(Enum):
    """How an attempt to take a device ended."""

    TAKEN = "taken"
    REFUSED = "refused"
    #: A constraint of the claim does not allow the device.
    CONSTRAINED = "constrained"


@final
class Takings:
    """The devices that a search has given to claims so far. A claim is named by its index."""

    def __init__(
        self,
        allocated: AllocatedDevices,
        features: DeviceFeatures = ALL_ON,
        node: Node | None = None,
    ) -> None:
        """``node``: the node that uses the devices; None: a node without features."""
        self._allocated = allocated
        self._features = features
        declared = None if node is None else node.status.declared_features
        self._node_may_skip = OPTIONAL_NODE_OPERATIONS in (declared or ())
        self._counters = Counters(allocated, features)
        self._groups = CompatibilityGroups(allocated)
        self._whole: dict[DeviceId, set[int]] = {}
        self._shares: dict[DeviceId, list[Amounts]] = {}

    def is_in_use(self, claim: int, request: Request, candidate: Candidate) -> bool:
        """Whether the device is in use. With admin access, only a device that the same claim
        already has is in use."""
        claims = self._whole.get(candidate.id)
        if request.admin_access:
            return bool(claims) and claim in (claims or ())
        return bool(claims) or self._allocated.is_whole_taken(candidate.id)

    def consumption(self, request: Request, candidate: Candidate) -> Amounts | None:
        """The capacity that the request would consume; None: too little is left, or the device
        lacks the capacity.

        Raises AllocationError.
        """
        has_none = not candidate.device.capacity and request.capacity is None
        if has_none or not self._features.consumable_capacity:
            return {}
        rules = capacity.rules_of(candidate.id.driver, self._features)
        try:
            consumed = capacity.consumed_by(request.capacity, candidate.device, rules)
        except AllocationError as problem:
            where = f"request {request.name}: checking capacity for device {candidate.id}"
            raise AllocationError(f"{where}: {problem}") from None
        if consumed is None:
            return None
        shares = (self._allocated.consumed(candidate.id), *self._shares.get(candidate.id, ()))
        fits = capacity.fits(consumed, candidate.device, shares, rules=rules)
        return consumed if fits else None

    def take(
        self, index: int, claim: ClaimSearch, request: Request, candidate: Candidate
    ) -> TakeResult:
        """Give the device to a request of the claim, or change nothing. Raises AllocationError."""
        is_shared = bool(candidate.device.allow_multiple_allocations)
        skips = candidate.slice.spec.skip_node_operations
        if skips and self._features.are_experimental and not self._may_skip():
            return TakeResult.REFUSED
        if self._is_whole_in_use(index, request, candidate, is_shared):
            return TakeResult.REFUSED
        all_have_effects = not self._features.behaviour.taints_without_effect_are_ignored
        taints = candidate.device.taints
        if not request.tolerates_all_of(taints, all_have_effects=all_have_effects):
            return TakeResult.REFUSED
        if candidate.device.consumes_counters and not self._features.partitionable_devices:
            return TakeResult.REFUSED
        draws = self._draws_counters(candidate, is_shared)
        if draws and not self._draw(candidate):
            return TakeResult.REFUSED
        consumed = self.consumption(request, candidate)
        satisfies = _satisfies(claim, request, candidate)
        if not satisfies or consumed is None:
            if satisfies:
                _leave(claim, request, len(claim.constraints))
            if draws:
                self._undraw(candidate)
            return TakeResult.REFUSED if satisfies else TakeResult.CONSTRAINED
        self._note(index, candidate, consumed if is_shared else None)
        share = consumed if is_shared else None
        written = skips if self._features.optional_node_operations else None
        claim.assigned.append(AssignedDevice(request, candidate, share, draws, written))
        return TakeResult.TAKEN

    def give_back(self, index: int, claim: ClaimSearch) -> None:
        """Undo the claim's last allocation."""
        assigned = claim.assigned.pop()
        candidate = assigned.candidate
        if assigned.share is None:
            self._whole[candidate.id].discard(index)
        else:
            self._shares[candidate.id].pop()
        _leave(claim, assigned.request, len(claim.constraints))
        if assigned.draws_counters:
            self._undraw(candidate)

    def _may_skip(self) -> bool:
        return self._features.optional_node_operations and self._node_may_skip

    def _draw(self, candidate: Candidate) -> bool:
        """Consume the counters of a device, if its groups and the counters allow it."""
        if self._features.compatibility_groups and not self._groups.take(candidate):
            return False
        if self._counters.take(candidate):
            return True
        if self._features.compatibility_groups:
            self._groups.give_back(candidate)
        return False

    def _undraw(self, candidate: Candidate) -> None:
        self._counters.give_back(candidate)
        if self._features.compatibility_groups:
            self._groups.give_back(candidate)

    def _is_whole_in_use(
        self, claim: int, request: Request, candidate: Candidate, is_shared: bool
    ) -> bool:
        if request.admin_access and is_shared:
            return False
        has_shares = (
            self._features.behaviour.shares_keep_device
            and self._features.consumable_capacity
            and not request.admin_access
            and not is_shared
            and self._has_shares(candidate.id)
        )
        return has_shares or self.is_in_use(claim, request, candidate)

    def _draws_counters(self, candidate: Candidate, is_shared: bool) -> bool:
        """Whether the device consumes counters. A further share of a device consumes none."""
        if not candidate.device.consumes_counters:
            return False
        has_shares = self._has_shares(candidate.id)
        if not self._features.behaviour.shares_without_amounts_count:
            has_amounts = bool(self._allocated.consumed(candidate.id))
            has_shares = has_amounts or bool(self._shares.get(candidate.id))
        return not (is_shared and has_shares)

    def _has_shares(self, device: DeviceId) -> bool:
        """Whether claims share the device, or the search has given away shares of it."""
        return self._allocated.is_shared(device) or bool(self._shares.get(device))

    def _note(self, claim: int, candidate: Candidate, share: Amounts | None) -> None:
        if share is None:
            self._whole.setdefault(candidate.id, set()).add(claim)
        else:
            self._shares.setdefault(candidate.id, []).append(share)


def _satisfies(claim: ClaimSearch, request: Request, candidate: Candidate) -> bool:
    """Add the device to all constraints of the claim, or to none of them if one does not allow the
    device."""
    for index, constraint in enumerate(claim.constraints):
        if not constraint.add(request, candidate):
            _leave(claim, request, index)
            return False
    return True


def _leave(claim: ClaimSearch, request: Request, count: int) -> None:
    for constraint in reversed(claim.constraints[:count]):
        constraint.remove(request)
