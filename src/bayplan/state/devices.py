"""Devices as the scheduler sees them: what the API tells, and claims in flight.

Between Reserve and the moment the allocation is written a claim is *in flight*: its devices are
taken, and nobody else may use or allocate it. From then on, until the watch tells of it, what was
written is *assumed*. Taken devices are counted as claims come, change
and go, so that a cycle finds them ready. Upstream: dynamicresources/dra_manager.go,
resourceslice/tracker, deviceclass/extendedresourcecache.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import msgspec

from bayplan.api.device_objects import (
    DEVICE_CLASS,
    DEVICE_CLASS_RESOURCE_PREFIX,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    AllocationResult,
    Device,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from bayplan.state.allocated_devices import AllocatedDevices
from bayplan.state.device_counts import CountsByRow, DeviceCounts
from bayplan.state.node_table import NodeTable
from bayplan.state.object_store import KindStore, ObjectStore

#: Kinds that whoever looks at devices declares.
DEVICE_KINDS = (RESOURCE_CLAIM, RESOURCE_SLICE, DEVICE_CLASS, DEVICE_TAINT_RULE)


@final
class Claims:
    """ResourceClaims with those in flight. Upstream: fwk.ResourceClaimTracker."""

    def __init__(self, store: KindStore) -> None:
        self._store = store
        #: By uid: claims with the allocation that the API does not tell of yet.
        self._in_flight: dict[str, ResourceClaim] = {}
        #: By key: versions that the API has, and has not told of yet.
        self._assumed: dict[str, ResourceClaim] = {}
        #: By uid: what is counted as taken, of claims in flight, too.
        self._counted: dict[str, AllocationResult] = {}
        self.allocated = AllocatedDevices()
        self._subscribers: list[Callable[[AllocationResult], None]] = []
        for claim in store.list():
            self._changed(None, claim)
        store.subscribe(self._told)

    def subscribe(self, subscriber: Callable[[AllocationResult], None]) -> None:
        """Have somebody called with what is taken or given back, right after it was counted."""
        self._subscribers.append(subscriber)

    def get(self, namespace: str, name: str) -> ResourceClaim | None:
        told: ResourceClaim | None = self._store.get(name, namespace)
        return self._assumed.get(told.key, told) if told is not None else None

    def list(self, namespace: str | None = None) -> Sequence[ResourceClaim]:
        """All, or those of one namespace, in order of their keys."""
        found: Sequence[ResourceClaim] = self._store.list(namespace)
        return [self._assumed.get(each.key, each) for each in found] if self._assumed else found

    # ---- in flight ------------------------------------------------------------------------

    def pending_allocation(self, uid: str) -> AllocationResult | None:
        """What a claim in flight is about to be given."""
        claim = self._in_flight.get(uid)
        return None if claim is None else claim.allocation

    def put_in_flight(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        """A claim is being allocated: its devices are taken from now on."""
        uid = claim.uid
        assert uid not in self._in_flight, f"claim {uid} is in flight already"
        self._in_flight[uid] = _with_allocation(claim, allocation)
        if uid not in self._counted:
            self._count(uid, allocation)

    def remove_in_flight(self, uid: str, allocation: AllocationResult) -> bool:
        """It is not being given this any longer. False: it was not."""
        if self.pending_allocation(uid) is not allocation:
            return False
        del self._in_flight[uid]
        if self._counted.get(uid) is allocation:
            self._count(uid, None)
        return True

    @property
    def in_flight(self) -> Mapping[str, ResourceClaim]:
        """Those in flight by uid, with what they are about to be given."""
        return dict(self._in_flight)

    # ---- assumed --------------------------------------------------------------------------

    def assume(self, claim: ResourceClaim) -> bool:
        """The API took this version in, and will tell of it. False: it tells of another claim, or
        of a newer version."""
        known = self.get(claim.metadata.namespace or "", claim.metadata.name)
        if known is None or known.uid != claim.uid or _is_behind(claim, known):
            return False
        self._assumed[claim.key] = claim
        self._changed(known, claim)
        return True

    def restore(self, namespace: str, name: str) -> None:
        """What was assumed of a claim does not hold: back to what the API tells."""
        told = self._store.get(name, namespace)
        assumed = None if told is None else self._assumed.pop(told.key, None)
        if assumed is not None:
            self._changed(assumed, told)

    # ---- inside ---------------------------------------------------------------------------

    def _told(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """A watch that is behind what was assumed tells nothing new."""
        about = old if new is None else new
        assert about is not None
        assumed = self._assumed.get(about.key)
        if assumed is not None:
            if new is not None and new.uid == assumed.uid and _is_behind(new, assumed):
                return
            del self._assumed[about.key]
            old = assumed
        self._changed(old, new)

    def _changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            self._count(old.uid, self.pending_allocation(old.uid))
        if new is None:
            return
        if new.allocation is not None:
            # The API tells of what we allocated, or of what somebody else did.
            self._in_flight.pop(new.uid, None)
        self._count(new.uid, new.allocation or self.pending_allocation(new.uid))

    def _count(self, uid: str, allocation: AllocationResult | None) -> None:
        counted = self._counted.pop(uid, None)
        if counted is not None:
            self.allocated.remove(counted)
        if allocation is not None:
            self._counted[uid] = allocation
            self.allocated.add(allocation)
        if counted is None or allocation is None or counted.results != allocation.results:
            for changed in filter(None, (counted, allocation)):
                for tell in self._subscribers:
                    tell(changed)


def _with_allocation(claim: ResourceClaim, allocation: AllocationResult) -> ResourceClaim:
    status = msgspec.structs.replace(claim.status, allocation=allocation)
    return msgspec.structs.replace(claim, status=status)


def _is_behind(one: ResourceClaim, other: ResourceClaim) -> bool:
    """Whether a version is older than another. Versions are numbers (KEP-5504); of others nothing
    is known."""
    versions = [each.metadata.resource_version or "" for each in (one, other)]
    if not all(version.isdecimal() for version in versions):
        return False
    return int(versions[0]) < int(versions[1])


@final
class Slices:
    """ResourceSlices with the taints that rules add. Upstream: fwk.ResourceSliceLister."""

    def __init__(self, slices: KindStore, rules: KindStore, *, has_rules: bool) -> None:
        """``has_rules``: whether rules count. Gate DRADeviceTaintRules."""
        self._has_rules = has_rules
        self._slices = slices
        self._rules = rules
        self._tainted: Sequence[ResourceSlice] | None = None
        #: One more whenever a slice or a rule changed.
        self.revision = 0
        slices.subscribe(self._changed)
        rules.subscribe(self._changed)

    def list_with_device_taint_rules(self) -> Sequence[ResourceSlice]:
        """All, in order of their names."""
        if self._tainted is None:
            rules: Sequence[DeviceTaintRule] = self._rules.list() if self._has_rules else ()
            self._tainted = tuple(with_taints(each, rules) for each in self._slices.list())
        return self._tainted

    def _changed(self, old: Any, new: Any) -> None:
        self._tainted = None
        self.revision += 1


@final
class Classes:
    """DeviceClasses, also by the resource they stand for. Upstream: fwk.DeviceClassLister."""

    def __init__(self, store: KindStore) -> None:
        self._store = store
        self._by_resource: Mapping[str, DeviceClass] | None = None
        store.subscribe(self._changed)

    def get(self, name: str) -> DeviceClass | None:
        return self._store.get(name)

    def list(self) -> Sequence[DeviceClass]:
        return self._store.list()

    def behind(self, resource: str) -> DeviceClass | None:
        """The class whose devices stand for an extended resource; upstream: DeviceClassResolver."""
        if self._by_resource is None:
            self._by_resource = _by_resource(self._store.list())
        return self._by_resource.get(resource)

    def _changed(self, old: Any, new: Any) -> None:
        self._by_resource = None


@final
class Devices:
    """Everything about devices. Upstream: fwk.SharedDRAManager."""

    def __init__(
        self, table: NodeTable, objects: ObjectStore, *, has_taint_rules: bool = True
    ) -> None:
        slices, rules = objects.of(RESOURCE_SLICE), objects.of(DEVICE_TAINT_RULE)
        self.resource_claims = Claims(objects.of(RESOURCE_CLAIM))
        self.resource_slices = Slices(slices, rules, has_rules=has_taint_rules)
        self.device_classes = Classes(objects.of(DEVICE_CLASS))
        self._counts = DeviceCounts(table, objects, self.resource_claims.allocated)
        self.resource_claims.subscribe(self._counts.taken_changed)

    def counts(self, resource: str) -> CountsByRow | None:
        """COUNTS [rows]: how many devices stand for a resource, and how many of them are taken.

        None: no class does.
        """
        found = self.device_classes.behind(resource)
        return None if found is None else self._counts.by_row(resource, found)


# ---- taint rules ---------------------------------------------------------------------------


def with_taints(found: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    """The slice with the taints of all rules that mean it; itself where none does."""
    about = [rule for rule in rules if _is_about(rule, found)]
    if not about:
        return found
    devices = tuple(_tainted(device, about) for device in found.spec.devices or ())
    spec = msgspec.structs.replace(found.spec, devices=devices)
    return msgspec.structs.replace(found, spec=spec)


def _is_about(rule: DeviceTaintRule, found: ResourceSlice) -> bool:
    """A rule without a selector means every device."""
    selector = rule.spec.device_selector
    return selector is None or (
        selector.driver in (None, found.spec.driver)
        and selector.pool in (None, found.spec.pool.name)
    )


def _tainted(device: Device, rules: Sequence[DeviceTaintRule]) -> Device:
    added = tuple(
        rule.spec.taint
        for rule in rules
        if rule.spec.device_selector is None
        or rule.spec.device_selector.device in (None, device.name)
    )
    if not added:
        return device
    return msgspec.structs.replace(device, taints=(*(device.taints or ()), *added))


# ---- extended resources --------------------------------------------------------------------


def _by_resource(classes: Sequence[DeviceClass]) -> Mapping[str, DeviceClass]:
    """Of several classes for one resource the newest counts, then the first by name."""
    found: dict[str, DeviceClass] = {}
    for each in classes:
        found[DEVICE_CLASS_RESOURCE_PREFIX + each.metadata.name] = each
        resource = each.spec.extended_resource_name
        if resource and (resource not in found or _created(found[resource]) < _created(each)):
            found[resource] = each
    return found


def _created(found: DeviceClass) -> str:
    """As the API writes times, they sort as text."""
    return found.metadata.creation_timestamp or ""
