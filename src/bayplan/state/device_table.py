"""Devices as the scheduler sees them: the API's slices, classes and claims, and claims in flight.

From Reserve until its allocation is written, a claim is *in flight*: its devices are taken, and no
other pod may use them or allocate the claim. After the write, until the watch delivers it, the
written version is *assumed*. Upstream: dynamicresources/dra_manager.go, resourceslice/tracker,
deviceclass/extendedresourcecache.

`AllocatedDevices` counts taken devices as claims change, so that a cycle finds the counts ready. A
device is taken as a whole or, if it allows several allocations, by shares that consume some of its
capacity. Devices with admin access are not taken. Amounts are in billionths. Upstream:
dynamicresources/allocateddevices.go.

`DeviceCounts` has columns for resources that a DeviceClass stands for: how many devices of the
class each node has, and how many are taken. As upstream in calculateDRAResourceTotals
(noderesources/resource_allocation.go), every slice counts, of any generation and pool, and taints
are ignored; the allocator is stricter. Upstream caches the results of selectors by name for the
life of the process; here they are current. A column is made when a resource is first read. From
then on every change of a node's counts is logged as a change of what the node offers.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct, structs

from bayplan.api.device_objects import (
    DEVICE_CLASS,
    DEVICE_CLASS_RESOURCE_PREFIX,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    AllocationResult,
    Device,
    DeviceClass,
    DeviceRequestAllocationResult,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from bayplan.api.device_selectors import CelError, compile_selector
from bayplan.api.object_meta import NodeSelector
from bayplan.api.objects import Node
from bayplan.api.quantity import nanos
from bayplan.api.selectors import NodeTerm, node_term
from bayplan.objects.object_store import KindObjects, ObjectStore
from bayplan.state.change_log import ALL_ROWS, Facet
from bayplan.state.columns import Rows
from bayplan.state.node_table import NodeTable

# ---- allocated devices ----------------------------------------------------------------------


#: Capacity name → billionths.
Amounts = Mapping[str, int]
_NOTHING: Amounts = {}


class DeviceId(NamedTuple):
    """The identity of a device, written as "driver/pool/device"."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


@final
class AllocatedDevices:
    """Taken devices, and how much is consumed of those that are shared."""

    def __init__(self) -> None:
        #: Device → the number of claims that have the whole device. More than one is a mistake of
        #: another component.
        self._whole: Counter[DeviceId] = Counter()
        self._shares: Counter[DeviceId] = Counter()
        self._consumed: dict[DeviceId, Counter[str]] = {}

    def is_whole_taken(self, device: DeviceId) -> bool:
        return device in self._whole

    def is_shared(self, device: DeviceId) -> bool:
        return device in self._shares

    def is_taken(self, device: DeviceId) -> bool:
        """Whether the device is taken, as a whole or in part."""
        return device in self._whole or device in self._shares

    def consumed(self, device: DeviceId) -> Amounts:
        """The amounts that shares of the device consume, by capacity."""
        return self._consumed.get(device, _NOTHING)

    def devices(self) -> Iterator[DeviceId]:
        """All taken devices, in no particular order."""
        yield from self._whole
        yield from self._shares

    def add(self, allocation: AllocationResult) -> None:
        """Count the devices of a claim as taken. Raises QuantityError."""
        for result in allocation.results:
            if not result.admin_access:
                self._count(result, 1)

    def remove(self, allocation: AllocationResult) -> None:
        """Undo `add`."""
        for result in allocation.results:
            if not result.admin_access:
                self._count(result, -1)

    def _count(self, result: DeviceRequestAllocationResult, by: int) -> None:
        device = DeviceId(result.driver, result.pool, result.device)
        if result.share_id is None:
            _change(self._whole, device, by)
            return
        _change(self._shares, device, by)
        if result.consumed_capacity:
            consumed = self._consumed.setdefault(device, Counter())
            for name, amount in result.consumed_capacity.items():
                consumed[name] += by * nanos(amount)
            if not any(consumed.values()):
                del self._consumed[device]


def _change(counts: Counter[DeviceId], device: DeviceId, by: int) -> None:
    counts[device] += by
    if not counts[device]:
        del counts[device]


# ---- class devices --------------------------------------------------------------------------


#: In place of a node's name: the devices may be for any node.
ANY_NODE = ""


class _Reach(Struct, frozen=True):
    """The nodes that can use devices: one node, the nodes that one of the terms selects, or all."""

    node_name: str = ANY_NODE
    terms: tuple[NodeTerm, ...] | None = None

    @property
    def is_broken(self) -> bool:
        return any(term.error is not None for term in self.terms or ())

    def includes(self, node: Node) -> bool:
        """Whether the node can use the devices. The caller has checked ``node_name``. Broken terms
        include every node, because they make the counts of every node fail."""
        if self.terms is None or self.is_broken:
            return True
        labels, name = node.metadata.labels or {}, node.metadata.name
        return any(term.matches(labels, name) for term in self.terms)


class _Offer(Struct, frozen=True):
    """Devices of the class that one slice lists for the same nodes."""

    reach: _Reach
    ids: tuple[DeviceId, ...]
    #: Whether a selector fails for one of the devices. Then, as upstream, all counts of the nodes
    #: that the offer includes are 0.
    is_broken: bool

    def taken_count(self, allocated: AllocatedDevices) -> int:
        return sum(map(allocated.is_taken, self.ids))


@final
class ClassDevices:
    """The devices of one class: which devices a node can use, and which nodes can use a device."""

    def __init__(self, device_class: DeviceClass, slices: Iterable[ResourceSlice]) -> None:
        self.device_class = device_class
        self._expressions = tuple(
            each.cel.expression for each in device_class.spec.selectors or () if each.cel
        )
        #: Name of a node, or ANY_NODE → name of a slice → the devices that the slice offers there.
        self._offers: dict[str, dict[str, list[_Offer]]] = defaultdict(dict)
        #: Name of a slice → its offers.
        self._of_slice: dict[str, list[_Offer]] = {}
        #: Device → names of nodes, or ANY_NODE, one for each slice that lists the device.
        self._places: dict[DeviceId, list[str]] = {}
        for each in slices:
            self.put(each)

    def put(self, resource_slice: ResourceSlice) -> Collection[str]:
        """Add or replace a slice. Returns the names of the nodes concerned (or ANY_NODE)."""
        gone = self.remove(resource_slice)
        name = resource_slice.metadata.name
        offers = self._of_slice[name] = list(self._offers_of(resource_slice))
        for offer in offers:
            place = offer.reach.node_name
            self._offers[place].setdefault(name, []).append(offer)
            for device in offer.ids:
                self._places.setdefault(device, []).append(place)
        return {*gone, *(offer.reach.node_name for offer in offers)}

    def remove(self, resource_slice: ResourceSlice) -> Collection[str]:
        """Remove a slice. Returns the names of the nodes concerned."""
        name = resource_slice.metadata.name
        offers = self._of_slice.pop(name, ())
        for offer in offers:
            place = offer.reach.node_name
            self._offers[place].pop(name, None)
            if not self._offers[place]:
                del self._offers[place]
            for device in offer.ids:
                self._places[device].remove(place)
                if not self._places[device]:
                    del self._places[device]
        return {offer.reach.node_name for offer in offers}

    def places_of(self, device: DeviceId) -> Sequence[str]:
        """Names of nodes, or ANY_NODE; empty if the device is not of the class or in no slice."""
        return self._places.get(device, ())

    def counts(
        self, nodes: Iterable[Node], allocated: AllocatedDevices
    ) -> Iterator[tuple[int, int]]:
        """The number of devices for each of these nodes, and the number of those that are taken."""
        anywhere = [
            (offer, offer.taken_count(allocated))
            for offers in self._offers.get(ANY_NODE, {}).values()
            for offer in offers
        ]
        for node in nodes:
            here = [
                (offer, offer.taken_count(allocated))
                for offers in self._offers.get(node.metadata.name, {}).values()
                for offer in offers
            ]
            for_node = [
                *here,
                *((offer, taken) for offer, taken in anywhere if offer.reach.includes(node)),
            ]
            if any(offer.is_broken for offer, _ in for_node):
                yield 0, 0
            else:
                yield (
                    sum(len(offer.ids) for offer, _ in for_node),
                    sum(taken for _, taken in for_node),
                )

    def count_of(self, nodes: Iterable[Node]) -> int:
        """The number of devices that at least one of these nodes can use."""
        usable: set[DeviceId] = set()
        anywhere = [offer for offers in self._offers.get(ANY_NODE, {}).values() for offer in offers]
        for node in nodes:
            here = (
                offer
                for offers in self._offers.get(node.metadata.name, {}).values()
                for offer in offers
            )
            usable.update(*(offer.ids for offer in here))
            reaching = (offer for offer in anywhere if offer.reach.includes(node))
            usable.update(*(offer.ids for offer in reaching))
        return len(usable)

    # ---- one slice ------------------------------------------------------------------------

    def _offers_of(self, resource_slice: ResourceSlice) -> Iterator[_Offer]:
        """The offers of a slice that have devices of the class."""
        spec, by_reach = resource_slice.spec, dict[_Reach, list[Device]]()
        if spec.per_device_node_selection:
            for device in spec.devices or ():
                reach = _reach(device.all_nodes, device.node_name, device.node_selector)
                if reach is not None:
                    by_reach.setdefault(reach, []).append(device)
        else:
            # As upstream, a slice that names no nodes is for all nodes.
            reach = _reach(spec.all_nodes, spec.node_name, spec.node_selector) or _Reach()
            by_reach[reach] = list(spec.devices or ())
        for reach, devices in by_reach.items():
            offer = self._offer(resource_slice, reach, devices)
            if offer.ids or offer.is_broken:
                yield offer

    def _offer(
        self, resource_slice: ResourceSlice, reach: _Reach, devices: Iterable[Device]
    ) -> _Offer:
        driver, pool = resource_slice.spec.driver, resource_slice.spec.pool.name
        if reach.is_broken:
            return _Offer(reach, (), is_broken=True)
        try:
            meant = [each for each in devices if self._means(driver, each)]
        except CelError:
            return _Offer(reach, (), is_broken=True)
        ids = tuple(DeviceId(driver, pool, each.name) for each in meant)
        return _Offer(reach, ids, is_broken=False)

    def _means(self, driver: str, device: Device) -> bool:
        """Whether all selectors of the class match, evaluated in order. Raises CelError."""
        # As upstream, selectors cannot read here whether a device may be shared.
        shown = structs.replace(device, allow_multiple_allocations=None)
        return all(_holds(expression, driver, shown) for expression in self._expressions)


def _holds(expression: str, driver: str, device: Device) -> bool:
    program = compile_selector(expression)
    if isinstance(program, CelError):
        raise program
    return program.matches(driver, device)


def _reach(
    all_nodes: bool | None, node_name: str | None, selector: NodeSelector | None
) -> _Reach | None:
    """The nodes that these fields name; None: no node."""
    if all_nodes:
        return _Reach()
    if node_name:
        return _Reach(node_name=node_name)
    if selector is None:
        return None
    return _Reach(terms=tuple(map(node_term, selector.node_selector_terms or ())))


# ---- device counts --------------------------------------------------------------------------


#: The counts of one node; arrays are [rows].
COUNTS = np.dtype([("devices", np.int64), ("taken", np.int64)])
CountsByRow = npt.NDArray[np.void]

#: The counts depend on labels, because a slice may select its nodes by label.
_FACETS = Facet.ALLOCATABLE | Facet.LABELS


@final
class DeviceCounts:
    """Columns of counts, one for each resource that was read."""

    def __init__(
        self, table: NodeTable, objects: ObjectStore[Any], allocated: AllocatedDevices
    ) -> None:
        self._table = table
        self._slices: KindObjects[Any] = objects.of(RESOURCE_SLICE)
        self._allocated = allocated
        #: Resource → the devices of the class that stands for it.
        self._of_resource: dict[str, ClassDevices] = {}
        objects.of(DEVICE_CLASS).observe(self._class_changed)
        self._slices.observe(self._slice_changed)

    def by_row(self, resource: str, device_class: DeviceClass) -> CountsByRow:
        """COUNTS [rows] of the devices of the class, which stand for the resource."""
        devices = self._of_resource.get(resource)
        if devices is None or devices.device_class is not device_class:
            devices = ClassDevices(device_class, self._slices.list())
            self._of_resource[resource] = devices
        key, compute = ("devices", resource), partial(self._counted, devices)
        return self._table.derived(key, _FACETS, COUNTS, compute).lent

    def taken_changed(self, allocation: AllocationResult) -> None:
        """Log the nodes whose counts change because an allocation was added or removed."""
        if not self._of_resource:
            return
        devices = {DeviceId(each.driver, each.pool, each.device) for each in allocation.results}
        self._note(
            place
            for class_devices in self._of_resource.values()
            for device in devices
            for place in class_devices.places_of(device)
        )

    def _counted(self, counting: ClassDevices, rows: Rows) -> CountsByRow:
        numbers: list[int] = rows.tolist()
        nodes = (self._table.nodes[row] for row in numbers)
        counts = counting.counts((node for node in nodes if node is not None), self._allocated)
        return np.array(list(counts), COUNTS)

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        about = old if new is None else new
        assert about is not None
        concerned: set[str] = set()
        for devices in self._of_resource.values():
            concerned.update(devices.remove(about) if new is None else devices.put(new))
        self._note(concerned)

    def _class_changed(self, old: Any, new: Any) -> None:
        """Log a change of every node: the resources that devices stand for may have changed."""
        self._table.log.note(ALL_ROWS, Facet.ALLOCATABLE)

    def _note(self, places: Iterable[str]) -> None:
        names, table = set(places), self._table
        if ANY_NODE in names:
            table.log.note(ALL_ROWS, Facet.ALLOCATABLE)
            return
        for row in sorted(table.row_of[name] for name in names if name in table.row_of):
            table.log.note(row, Facet.ALLOCATABLE)


# ---- devices --------------------------------------------------------------------------------


#: The kinds that a plugin must declare to read devices.
DEVICE_KINDS = (RESOURCE_CLAIM, RESOURCE_SLICE, DEVICE_CLASS, DEVICE_TAINT_RULE)


@final
class Claims:
    """ResourceClaims, with those in flight. Upstream: fwk.ResourceClaimTracker."""

    def __init__(self, store: KindObjects[Any]) -> None:
        self._store = store
        #: By uid: claims with an allocation that is not written yet.
        self._in_flight: dict[str, ResourceClaim] = {}
        #: By uid of a claim in flight: the number of pods that use its allocation.
        self._sharer_counts: dict[str, int] = {}
        #: By key: written versions that the watch has not delivered yet.
        self._assumed: dict[str, ResourceClaim] = {}
        #: By uid: allocations that are counted as taken, including claims in flight.
        self._counted: dict[str, AllocationResult] = {}
        self.allocated = AllocatedDevices()
        self._subscribers: list[Callable[[AllocationResult], None]] = []
        for claim in store.list():
            self._changed(None, claim)
        store.observe(self._claim_changed)

    def subscribe(self, subscriber: Callable[[AllocationResult], None]) -> None:
        """Call ``subscriber`` with each allocation, right after it was counted or uncounted."""
        self._subscribers.append(subscriber)

    def get(self, namespace: str, name: str) -> ResourceClaim | None:
        reported: ResourceClaim | None = self._store.get(name, namespace)
        return self._assumed.get(reported.key, reported) if reported is not None else None

    def list(self, namespace: str | None = None) -> Sequence[ResourceClaim]:
        """All, or those of one namespace, in order of their keys."""
        reported: Sequence[ResourceClaim] = self._store.list(namespace)
        return (
            [self._assumed.get(each.key, each) for each in reported] if self._assumed else reported
        )

    # ---- in flight ------------------------------------------------------------------------

    def pending_allocation(self, uid: str) -> AllocationResult | None:
        """The allocation of a claim in flight; None if the claim is not in flight."""
        claim = self._in_flight.get(uid)
        return None if claim is None else claim.allocation

    def put_in_flight(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        """Mark a claim as in flight: its devices are taken from now on. Pods of a group may share
        the allocation: each of them marks the claim."""
        uid = claim.uid
        if uid in self._in_flight:
            assert self.pending_allocation(uid) is allocation, f"claim {uid} is in flight already"
            self._sharer_counts[uid] += 1
            return
        self._sharer_counts[uid] = 1
        self._in_flight[uid] = _with_allocation(claim, allocation)
        if uid not in self._counted:
            self._count(uid, allocation)

    def remove_in_flight(self, uid: str, allocation: AllocationResult) -> bool:
        """Undo one `put_in_flight`. False if this allocation is not in flight, or stays so because
        other pods share it."""
        if self.pending_allocation(uid) is not allocation:
            return False
        self._sharer_counts[uid] -= 1
        if self._sharer_counts[uid]:
            return False
        del self._in_flight[uid], self._sharer_counts[uid]
        if self._counted.get(uid) is allocation:
            self._count(uid, None)
        return True

    @property
    def in_flight(self) -> Mapping[str, ResourceClaim]:
        """Claims in flight by uid, with their allocations."""
        return dict(self._in_flight)

    # ---- assumed --------------------------------------------------------------------------

    def assume(self, claim: ResourceClaim) -> bool:
        """Assume a written version until the watch delivers it. False if the watch has delivered
        another claim or a newer version."""
        current = self.get(claim.metadata.namespace or "", claim.metadata.name)
        if current is None or current.uid != claim.uid or is_older(claim, current):
            return False
        self._assumed[claim.key] = claim
        self._changed(current, claim)
        return True

    def restore(self, namespace: str, name: str) -> None:
        """Drop an assumed version: return to the version of the watch."""
        reported = self._store.get(name, namespace)
        assumed = None if reported is None else self._assumed.pop(reported.key, None)
        if assumed is not None:
            self._changed(assumed, reported)

    # ---- inside ---------------------------------------------------------------------------

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """Ignores versions that are older than the assumed one."""
        about = old if new is None else new
        assert about is not None
        assumed = self._assumed.get(about.key)
        if assumed is not None:
            if new is not None and new.uid == assumed.uid and is_older(new, assumed):
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
            # The allocation is written, by this scheduler or by another client.
            self._in_flight.pop(new.uid, None)
            self._sharer_counts.pop(new.uid, None)
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


def is_older(one: ResourceClaim, other: ResourceClaim) -> bool:
    """Whether a version is older than another. Versions are numbers (KEP-5504); other versions are
    never older."""
    versions = [each.metadata.resource_version or "" for each in (one, other)]
    if not all(version.isdecimal() for version in versions):
        return False
    return int(versions[0]) < int(versions[1])


class DeviceRules(Struct, frozen=True):
    """What counts as a device, and as a taint of one; see framework/cluster_rules.py."""

    #: Whether DeviceTaintRules count.
    has_taint_rules: bool = True
    #: Whether a DeviceTaintRule without a selector matches all devices, or none.
    rule_without_selector_matches: bool = False
    #: Whether devices may stand for extended resources.
    has_extended_resources: bool = True
    #: Whether each class stands for the resource that is named after it; see `class_by_resource`.
    every_class_has_own_resource: bool = False


NEWEST_DEVICE_RULES = DeviceRules()


@final
class Slices:
    """ResourceSlices with the taints that rules add. Upstream: fwk.ResourceSliceLister."""

    def __init__(
        self, slices: KindObjects[Any], taint_rules: KindObjects[Any], rules: DeviceRules
    ) -> None:
        self._slices = slices
        self._taint_rules = taint_rules
        self._rules = rules
        self._tainted: Sequence[ResourceSlice] | None = None
        #: One more whenever a slice or a rule changed.
        self.revision = 0
        slices.observe(self._changed)
        taint_rules.observe(self._changed)

    def list_with_device_taint_rules(self) -> Sequence[ResourceSlice]:
        """All, in order of their names."""
        if self._tainted is None:
            has_rules, without_selector = (
                self._rules.has_taint_rules,
                self._rules.rule_without_selector_matches,
            )
            rules: Sequence[DeviceTaintRule] = self._taint_rules.list() if has_rules else ()
            self._tainted = tuple(
                with_taints(each, rules, without_selector=without_selector)
                for each in self._slices.list()
            )
        return self._tainted

    def _changed(self, old: Any, new: Any) -> None:
        self._tainted = None
        self.revision += 1


@final
class Classes:
    """DeviceClasses, also by the resource they stand for. Upstream: fwk.DeviceClassLister."""

    def __init__(self, store: KindObjects[Any], rules: "DeviceRules") -> None:
        self._store = store
        self._rules = rules
        self._by_resource: Mapping[str, DeviceClass] | None = None
        store.observe(self._changed)

    def get(self, name: str) -> DeviceClass | None:
        return self._store.get(name)

    def list(self) -> Sequence[DeviceClass]:
        return self._store.list()

    def behind(self, resource: str) -> DeviceClass | None:
        """The class whose devices stand for an extended resource; upstream: DeviceClassResolver."""
        if self._by_resource is None:
            classes = self._store.list() if self._rules.has_extended_resources else ()
            each_has_own = self._rules.every_class_has_own_resource
            self._by_resource = class_by_resource(classes, each_has_own=each_has_own)
        return self._by_resource.get(resource)

    def _changed(self, old: Any, new: Any) -> None:
        self._by_resource = None


@final
class Devices:
    """Everything about devices. Upstream: fwk.SharedDRAManager."""

    def __init__(
        self, table: NodeTable, objects: ObjectStore[Any], rules: DeviceRules = NEWEST_DEVICE_RULES
    ) -> None:
        slices, taint_rules = objects.of(RESOURCE_SLICE), objects.of(DEVICE_TAINT_RULE)
        self.resource_claims = Claims(objects.of(RESOURCE_CLAIM))
        self.resource_slices = Slices(slices, taint_rules, rules)
        self.device_classes = Classes(objects.of(DEVICE_CLASS), rules)
        self._counts = DeviceCounts(table, objects, self.resource_claims.allocated)
        self.resource_claims.subscribe(self._counts.taken_changed)

    def counts(self, resource: str) -> CountsByRow | None:
        """COUNTS [rows]: the number of devices that stand for a resource, and of those taken.

        None if no class stands for the resource.
        """
        device_class = self.device_classes.behind(resource)
        return None if device_class is None else self._counts.by_row(resource, device_class)


# ---- taint rules ---------------------------------------------------------------------------


def with_taints(
    resource_slice: ResourceSlice,
    rules: Sequence[DeviceTaintRule],
    *,
    without_selector: bool = False,
) -> ResourceSlice:
    """The slice with the taints of all matching rules; the same object if none matches.

    ``without_selector``: whether a rule without a selector matches all devices, as in 1.37.0.
    """
    about = [rule for rule in rules if _is_about(rule, resource_slice, without_selector)]
    if not about:
        return resource_slice
    devices = tuple(_tainted(device, about) for device in resource_slice.spec.devices or ())
    spec = msgspec.structs.replace(resource_slice.spec, devices=devices)
    return msgspec.structs.replace(resource_slice, spec=spec)


def _is_about(rule: DeviceTaintRule, resource_slice: ResourceSlice, without_selector: bool) -> bool:
    """Whether a rule may match devices of the slice; one with an empty selector matches all."""
    selector = rule.spec.device_selector
    if selector is None:
        return without_selector
    return selector.driver in (None, resource_slice.spec.driver) and selector.pool in (
        None,
        resource_slice.spec.pool.name,
    )


def _tainted(device: Device, rules: Sequence[DeviceTaintRule]) -> Device:
    """``rules``: those that may match devices of the slice."""
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


def class_by_resource(
    classes: Sequence[DeviceClass], *, each_has_own: bool = False
) -> Mapping[str, DeviceClass]:
    """If several classes name one resource, the newest wins, then the first by name.

    ``each_has_own``: whether the other classes stand for their own resources, which are named after
    them. Before 1.38, a class did not that came to a resource with a better class; ``classes``, by
    name, come as to a scheduler that starts.
    """
    classes_by_resource: dict[str, DeviceClass] = {}
    for each in classes:
        resource = each.spec.extended_resource_name
        best = classes_by_resource.get(resource or "")
        wins = best is None or _created(best) < _created(each)
        if wins or each_has_own:
            classes_by_resource[DEVICE_CLASS_RESOURCE_PREFIX + each.metadata.name] = each
        if resource and wins:
            classes_by_resource[resource] = each
    return classes_by_resource


def _created(device_class: DeviceClass) -> str:
    """The creation time; times of the API sort as text."""
    return device_class.metadata.creation_timestamp or ""
