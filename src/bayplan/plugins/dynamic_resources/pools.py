"""Pools of devices that a node can use, assembled from slices.

A driver publishes a pool as several slices of one generation. While the driver replaces slices the
pool is incomplete, and no device of it is used. A pool that contradicts itself is invalid. Devices
are tried in the order of pools, then of slices, then of the list in a slice. So a driver orders its
devices by their names. Upstream: structured/internal/incubating/pools_incubating.go.

`AllocationError` ends an allocation for another reason than missing devices.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from bayplan.api.device_objects import CounterSet, Device, ResourceSlice
from bayplan.api.object_meta import NodeSelector
from bayplan.api.objects import Node
from bayplan.api.selectors import NodeTerm, node_term
from bayplan.plugins.dynamic_resources.features import (
    ALL_ON,
    DeviceFeatures,
    uses_compatibility_groups,
)
from bayplan.state.device_table import DeviceId

# ---- problems -------------------------------------------------------------------------------


class AllocationError(Exception):
    """A claim, a class or a slice is wrong, and the attempt ends with an Error."""


class NodeAllocationFailed(Exception):
    """This node cannot be used for any claim; other nodes are not affected."""


# ---- pools ----------------------------------------------------------------------------------


class PoolId(NamedTuple):
    driver: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


class Candidate(Struct, frozen=True, eq=False):
    """A device with its pool and slice."""

    id: DeviceId
    device: Device
    slice: ResourceSlice
    pool: "Pool"


class Pool(Struct, eq=False):
    """The devices of one pool that a node may use."""

    id: PoolId
    is_incomplete: bool = False
    is_invalid: bool = False
    #: Why the pool is invalid, if an attempt that reaches its devices ends with an error (1.34).
    fatal_reason: str = ""
    candidates: list[Candidate] = field(default_factory=list["Candidate"])
    #: The slices of the same pool for other nodes. Their devices use the same counters.
    other_slices: Sequence[ResourceSlice] = ()
    counter_sets: Mapping[str, CounterSet] = field(default_factory=dict[str, CounterSet])

    @property
    def is_usable(self) -> bool:
        return not self.is_incomplete and not self.is_invalid

    @property
    def has_binding_conditions(self) -> bool:
        return any(c.device.binding_conditions is not None for c in self.candidates)


def gather_pools(
    node: Node,
    slices: Iterable[ResourceSlice],
    all_slices: Sequence[ResourceSlice],
    features: DeviceFeatures = ALL_ON,
) -> list[Pool]:
    """The pools that a node can use; pools with devices that need preparation before binding come
    last.

    ``slices``: all slices that may concern the node. Raises AllocationError.
    """
    relevant = _newest_by_pool(
        each for each in slices if features.counts(each) and _is_relevant(node, each)
    )
    pools: list[Pool] = []
    for pool_id, of_pool in relevant.items():
        pool = _pool(pool_id, of_pool, all_slices, features)
        if pool is not None:
            pools.append(pool)
    if not features.behaviour.pools_are_sorted:
        return sorted(pools, key=lambda pool: pool.has_binding_conditions)
    return sorted(pools, key=lambda pool: (pool.has_binding_conditions, pool.id))


def matches_node(
    node: Node, name: str | None, all_nodes: bool | None, selector: NodeSelector | None
) -> bool:
    """Whether a node can use a slice or a device. Raises AllocationError."""
    if name:
        return name == node.metadata.name
    if all_nodes:
        return True
    return selector is not None and any_matches(compiled(selector), node)


def compiled(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """Raises AllocationError for a selector that does not parse."""
    terms = tuple(node_term(term) for term in selector.node_selector_terms or ())
    for term in terms:
        if term.error is not None:
            raise AllocationError(f"failed to parse node selector: {term.error}")
    return terms


def any_matches(terms: Iterable[NodeTerm], node: Node) -> bool:
    """Whether a node selector with these terms selects the node."""
    labels = node.metadata.labels or {}
    return any(term.matches(labels, node.metadata.name) for term in terms)


# ---- which slices --------------------------------------------------------------------------


def _is_relevant(node: Node, resource_slice: ResourceSlice) -> bool:
    spec = resource_slice.spec
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        return matches_node(node, spec.node_name, spec.all_nodes, spec.node_selector)
    return bool(spec.per_device_node_selection) and any(
        matches_node(node, each.node_name, each.all_nodes, each.node_selector)
        for each in spec.devices or ()
    )


def _newest_by_pool(slices: Iterable[ResourceSlice]) -> dict[PoolId, list[ResourceSlice]]:
    """The slices of the newest generation of each pool."""
    by_pool: dict[PoolId, list[ResourceSlice]] = {}
    for each in slices:
        newest = by_pool.setdefault(_pool_id(each), [])
        generation = each.spec.pool.generation
        if newest and generation > newest[0].spec.pool.generation:
            newest.clear()
        if not newest or generation == newest[0].spec.pool.generation:
            newest.append(each)
    return by_pool


def _pool_id(resource_slice: ResourceSlice) -> PoolId:
    return PoolId(resource_slice.spec.driver, resource_slice.spec.pool.name)


# ---- one pool ------------------------------------------------------------------------------


def _pool(
    pool_id: PoolId,
    slices: list[ResourceSlice],
    all_slices: Sequence[ResourceSlice],
    features: DeviceFeatures,
) -> Pool | None:
    """The pool of these slices. None: the driver is replacing the slices and has published none for
    this node yet."""
    slice_count = slices[0].spec.pool.resource_slice_count
    if len(slices) == slice_count:
        return _built(pool_id, slices, (), features)
    if not features.behaviour.incomplete_pools_are_skipped:
        # Before 1.35, slices for other nodes were not counted, and devices were used all the same.
        pool = _built(pool_id, slices, (), features)
        pool.is_incomplete = True
        return pool
    generation = slices[0].spec.pool.generation
    of_pool = [each for each in all_slices if _pool_id(each) == pool_id]
    if any(each.spec.pool.generation > generation for each in of_pool):
        return None
    complete = [
        each
        for each in of_pool
        if each.spec.pool.generation == generation
        and (features.compatibility_groups or not uses_compatibility_groups(each))
    ]
    if len(complete) != slice_count:
        return Pool(pool_id, is_incomplete=True)
    names = {each.metadata.name for each in slices}
    irrelevant = [each for each in complete if each.metadata.name not in names]
    return _built(pool_id, slices, irrelevant, features)


def _built(
    pool_id: PoolId,
    slices: list[ResourceSlice],
    irrelevant: Sequence[ResourceSlice],
    features: DeviceFeatures,
) -> Pool:
    ordered = sorted(slices, key=lambda each: each.metadata.name)
    counters = [each for each in (*ordered, *irrelevant) if each.spec.shared_counters]
    with_devices = [each for each in ordered if not each.spec.shared_counters]
    elsewhere = [each for each in irrelevant if not each.spec.shared_counters]
    counter_sets = [one for each in counters for one in each.spec.shared_counters or ()]
    by_name = {one.name: one for one in counter_sets}
    names = [device.name for each in with_devices for device in each.spec.devices or ()]
    has_counters = not features.partitionable_devices or (
        _are_distinct(one.name for one in counter_sets)
        and all(_counters_exist(each, by_name) for each in (*with_devices, *elsewhere))
    )
    twice = _first_twice(names)
    is_fatal = bool(twice) and not features.behaviour.invalid_pools_are_skipped
    if (twice or not has_counters) and not is_fatal:
        return Pool(pool_id, is_invalid=True)
    pool = Pool(pool_id, is_invalid=is_fatal, other_slices=elsewhere, counter_sets=by_name)
    pool.fatal_reason = f"duplicate device name {twice}" * is_fatal
    for each in with_devices:
        for device in each.spec.devices or ():
            device_id = DeviceId(pool_id.driver, pool_id.name, device.name)
            pool.candidates.append(Candidate(device_id, device, each, pool))
    return pool


def _first_twice(names: Sequence[str]) -> str:
    """The first name that occurs twice; "": each name occurs once."""
    if _are_distinct(names):
        return ""
    return next(name for place, name in enumerate(names) if name in names[:place])


def _are_distinct(names: Iterable[str]) -> bool:
    listed = list(names)
    return len(listed) == len(set(listed))


def _counters_exist(resource_slice: ResourceSlice, counter_sets: Mapping[str, CounterSet]) -> bool:
    """Whether devices consume only counters that the pool has."""
    for device in resource_slice.spec.devices or ():
        for consumption in device.consumes_counters or ():
            counter_set = counter_sets.get(consumption.counter_set)
            if (
                counter_set is None
                or not consumption.counters.keys() <= counter_set.counters.keys()
            ):
                return False
    return True
