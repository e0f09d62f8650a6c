"""Scores from the utilization of a node: three functions of used and allocatable amounts.

Each scorer adds the pod's requests of the configured resources to what is used, compares the sum
with the node's allocatable amounts, and takes the weighted mean over the resources that the node
has. The third function is a broken line through configured points of (utilization, score).

If a node does not offer a resource itself and a DeviceClass stands for the resource, the node's
allocatable amount is the number of devices of the class, and the used amount is the number of
allocated ones (KEP-5004).

Upstream: plugins/noderesources, resource_allocation.go and its three strategies.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Annotated, NamedTuple, Protocol, final

import msgspec
import numpy as np
from msgspec import Struct

from bayplan.api.pod_requests import CPU, MEMORY, is_counted, is_scalar, may_be_devices
from bayplan.framework.arithmetic import divide, mean, percent
from bayplan.framework.handle import SharedDRAManager
from bayplan.framework.types import MAX_NODE_SCORE
from bayplan.state.columns import Int64s, NodeScores, Rows
from bayplan.state.device_table import CountsByRow
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.resources import EXACT_BELOW, AmountArray, Bundle, RowAmounts, Usage

# ---- a score as a function of utilization ---------------------------------------------------


#: A shape's scores are 0..10, a node's 0..100.
MAX_SHAPE_SCORE = 10
MAX_UTILIZATION = 100


class UtilizationShapePoint(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """One point of the line."""

    utilization: Annotated[int, msgspec.Meta(ge=0, le=MAX_UTILIZATION)] = 0
    score: Annotated[int, msgspec.Meta(ge=0, le=MAX_SHAPE_SCORE)] = 0


def shape_problems(path: str, shape: Sequence[UtilizationShapePoint]) -> Iterable[tuple[str, str]]:
    """(path, the value and what to write instead) of each fault of a shape."""
    if not shape:
        yield path, "missing; wanted at least one point"
    for index, (before, point) in enumerate(pairwise(shape), start=1):
        if point.utilization <= before.utilization:
            expected = f"wanted more than {before.utilization}"
            yield f"{path}[{index}].utilization", f"{point.utilization}; {expected}"


def broken_line(points: Sequence[tuple[int, int]]) -> list[int]:
    """The score 0..100 at each utilization 0..100, of (utilization, score 0..10) points."""
    return [_on_line(points, at) for at in range(MAX_UTILIZATION + 1)]


def _on_line(points: Sequence[tuple[int, int]], utilization: int) -> int:
    """Upstream: helper.BuildBrokenLinearFunction. Go's division cuts towards zero."""
    scale = MAX_NODE_SCORE // MAX_SHAPE_SCORE
    before, before_score = points[0]
    for at, score in points:
        if utilization <= at:
            rise = (score - before_score) * scale * (utilization - before)
            run = max(at - before, 1)
            return before_score * scale + (rise // run if rise >= 0 else -(-rise // run))
        before, before_score = at, score
    return before_score * scale


# ---- amounts of resources that devices stand for --------------------------------------------


#: Resource → its COUNTS [rows].
Counts = Mapping[str, CountsByRow]


class UsageOfNodes(Protocol):
    """The part of `NodeResources` that a scoring strategy reads."""

    def usage(self, bundle: Bundle, *, scored: bool) -> Usage: ...


class AmountsOfNodes(Protocol):
    """The amounts of many nodes, as a scoring strategy reads them: a NodeView, for example."""

    def __len__(self) -> int: ...
    @property
    def resources(self) -> UsageOfNodes: ...


class AmountsOfNode(Protocol):
    """The amounts of one node, as a scoring strategy reads them."""

    @property
    def view(self) -> AmountsOfNodes: ...
    def amounts(self, resource: str) -> RowAmounts:
        """See NodeInfo."""
        ...


def counted(devices: SharedDRAManager, resources: Iterable[str]) -> Counts:
    """Device counts of those resources that a DeviceClass stands for."""
    by_resource = ((resource, devices.counts(resource)) for resource in resources)
    return {resource: counts for resource, counts in by_resource if counts is not None}


@final
class NodesWithDevices:
    """Nodes whose devices count as resources."""

    def __init__(self, nodes: NodeView, counts: Counts) -> None:
        self._nodes = nodes
        self._counts = counts

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def resources(self) -> "NodesWithDevices":
        return self

    def usage(self, bundle: Bundle, *, scored: bool) -> Usage:
        own = self._nodes.resources.usage(bundle, scored=scored)
        if own.offered is None:
            return own  # every node offers all the resources itself
        used, allocatable, offered = own.used, own.allocatable.copy(), own.offered.copy()
        for place, resource in enumerate(bundle.resources):
            if resource not in self._counts:
                continue
            counts = self._counts[resource][self._nodes.table.index]
            backed = np.flatnonzero(~offered[place] & (counts["devices"] > 0))
            taken = counts["taken"][backed]
            used[..., place, backed] = taken + bundle.as_ints[..., place, :]
            allocatable[place, backed] = counts["devices"][backed]
            offered[place, backed] = True
        return Usage(used, allocatable, None if offered.all() else offered, is_within=False)


@final
class NodeWithDevices:
    """One node whose devices count as resources."""

    def __init__(self, node: NodeInfo, counts: Counts) -> None:
        self._node = node
        self._counts = counts

    @property
    def view(self) -> NodesWithDevices:
        return NodesWithDevices(self._node.view, self._counts)

    def amounts(self, resource: str) -> RowAmounts:
        has = self._node.amounts(resource)
        if has.allocatable or resource not in self._counts:
            return has
        devices, taken = self._counts[resource][self._node.view.table.index].item()
        if not devices:
            return has
        return RowAmounts(allocatable=devices, requested=taken, scored=taken, free=devices - taken)


# ---- scorers --------------------------------------------------------------------------------


class ResourceSpec(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """A resource that is scored, as configured. A weight of 0 means 1."""

    name: str
    weight: Annotated[int, msgspec.Meta(ge=0, le=100)] = 1

    def __post_init__(self) -> None:
        if self.weight == 0:
            msgspec.structs.force_setattr(self, "weight", 1)


DEFAULT_RESOURCES = (ResourceSpec(name=CPU), ResourceSpec(name=MEMORY))


class Demand(NamedTuple):
    """What one pod demands of one scored resource: millicores of cpu, units of all else."""

    resource: str
    weight: int
    amount: int


@final
class Demands:
    """The demands of one pod for all scored resources, converted once for many nodes."""

    __slots__ = ("bundle", "devices", "each", "weight_sum", "weights")

    def __init__(self, each: Iterable[Demand]) -> None:
        self.each = tuple(each)
        self.bundle = Bundle([d.resource for d in self.each], [d.amount for d in self.each])
        #: The demanded resources that a DeviceClass may stand for.
        self.devices = tuple(d.resource for d in self.each if may_be_devices(d.resource))
        #: int64 [resources, 1]; None: all weights are 1.
        self.weights: Int64s | None = None
        if any(demand.weight != 1 for demand in self.each):
            self.weights = np.array([d.weight for d in self.each], np.int64).reshape(-1, 1)
        self.weight_sum = sum(demand.weight for demand in self.each)


class Scorer(Struct, frozen=True):
    """A scoring strategy. The form for many nodes uses arrays, and the form for one node uses plain
    numbers. Both give the same scores."""

    of_nodes: Callable[[Demands, AmountsOfNodes], NodeScores]
    #: Returns None if the amounts are so large that the arithmetic of int64 may wrap.
    of_one: Callable[[Demands, AmountsOfNode], int | None]

    def of_node(self, demanded: Demands, node: AmountsOfNode) -> int:
        score = self.of_one(demanded, node)
        return self.of_nodes(demanded, node.view).item(0) if score is None else score


def demands(resources: Sequence[ResourceSpec], requests: Mapping[str, int]) -> Demands:
    """The requests of a pod that are scored.

    A scalar resource counts only if the pod requests it; cpu, memory and ephemeral-storage always
    count. Resources that are no requests of pods, such as "pods", never count.
    """
    return Demands(
        Demand(spec.name, spec.weight, requests.get(spec.name, 0))
        for spec in resources
        if is_counted(spec.name) and (requests.get(spec.name) or not is_scalar(spec.name))
    )


def least_allocated() -> Scorer:
    """100 x free / allocatable: the emptier the better."""
    return Scorer(
        of_nodes=lambda demanded, nodes: _mean(demanded, nodes, _free_percent),
        of_one=partial(_mean_of_one, _free_percent_of_one),
    )


def most_allocated() -> Scorer:
    """100 x used / allocatable: the fuller the better."""
    return Scorer(
        of_nodes=lambda demanded, nodes: _mean(demanded, nodes, _used_percent),
        of_one=partial(_mean_of_one, _used_percent_of_one),
    )


def percents_used_together(
    demanded: Sequence[Demands], nodes: AmountsOfNodes, parts: Sequence[Rows | None]
) -> list[int]:
    """For each part of the nodes, 100 x used / allocatable of its nodes together, with its demands
    added once: the weighted mean over the resources that some node of it offers; 0 if none does.

    ``parts``: positions in the view; None: all nodes. Upstream: scorePlacement of
    resource_allocation.go.
    """
    sums: dict[tuple[str, ...], tuple[list[list[int]], list[list[int]]]] = {}
    percents: list[int] = []
    for place, own in enumerate(demanded):
        if not own.each:
            percents.append(0)
            continue
        names = own.bundle.resources
        if names not in sums:
            sums[names] = _sums_of_parts(names, nodes, parts)
        used, allocatable = sums[names]
        total = weight_sum = 0
        for (_, weight, amount), taken, offer in zip(
            own.each, used[place], allocatable[place], strict=True
        ):
            if offer:
                total += weight * (min(taken + amount, offer) * MAX_NODE_SCORE // offer)
                weight_sum += weight
        percents.append(total // max(weight_sum, 1))
    return percents


def _sums_of_parts(
    names: Sequence[str], nodes: AmountsOfNodes, parts: Sequence[Rows | None]
) -> tuple[list[list[int]], list[list[int]]]:
    """The used and the allocatable amounts of each part, by resource. A node counts for the
    resources that it offers."""
    usage = nodes.resources.usage(Bundle(names, [0] * len(names)), scored=True)
    node_count: int = usage.used.shape[-1]
    everything = np.arange(node_count)
    rows = [everything if part is None else part for part in parts]
    bounds = np.concatenate(([0], np.cumsum([len(part) for part in rows])))
    order = np.concatenate(rows)

    def summed(amounts: AmountArray) -> list[list[int]]:
        values = amounts.astype(np.int64)
        if usage.offered is not None:
            values *= usage.offered
        until = np.zeros((len(names), len(order) + 1), np.int64)
        np.cumsum(values[:, order], axis=-1, out=until[:, 1:])
        ends = until[:, bounds]
        return (ends[:, 1:] - ends[:, :-1]).T.tolist()

    return summed(usage.used), summed(usage.allocatable)


def requested_to_capacity_ratio(points: Sequence[tuple[int, int]]) -> Scorer:
    """A scorer with a broken line through (utilization 0..100, score 0..10) points.

    A resource that scores 0 has no weight, and the mean is rounded, half away from zero.
    """
    on_line = broken_line(points)
    by_utilization = np.array(on_line, np.int64)

    def score(demanded: Demands, nodes: AmountsOfNodes) -> NodeScores:
        if not demanded.each:
            return np.zeros(len(nodes), np.int64)
        usage = nodes.resources.usage(demanded.bundle, scored=True)
        percents = _used_percent(usage.used, usage.allocatable)
        scores = by_utilization.take(percents.astype(np.int64), mode="clip")
        if usage.offered is not None:
            scores *= usage.offered
        weights = 1 if demanded.weights is None else demanded.weights
        sums = _total(scores * weights)
        weight_sums = _total((scores > _NOTHING) * weights)
        # The numbers are small, so no quotient is just below one half: adding one half is exact.
        return (sums / np.maximum(weight_sums, _ONE) + _ONE_HALF).astype(np.int64)

    def score_one(demanded: Demands, node: AmountsOfNode) -> int | None:
        total = weight_sum = 0
        for resource, weight, amount in demanded.each:
            has = node.amounts(resource)
            used, offered = has.scored + amount, has.allocatable
            if used >= EXACT_BELOW or offered >= EXACT_BELOW:
                return None  # in int64 some of what follows may wrap
            if offered and (value := on_line[_used_percent_of_one(used, offered)]) > 0:
                total += weight * value
                weight_sum += weight
        return int(total / max(weight_sum, 1) + 0.5)

    return Scorer(score, score_one)


# Arrays, because numpy converts a plain number to an array at every call.
_NOTHING, _ONE, _ONE_HALF = np.array(0), np.array(1), np.array(0.5)


def _free_percent(used: AmountArray, allocatable: AmountArray) -> AmountArray:
    """Overwrites ``used``."""
    free = np.subtract(allocatable, used, out=used)
    return percent(np.maximum(free, _NOTHING, out=free), allocatable)


def _used_percent(used: AmountArray, allocatable: AmountArray) -> AmountArray:
    """Overwrites ``used``."""
    return percent(np.minimum(used, allocatable, out=used), allocatable)


def _mean(
    demanded: Demands,
    nodes: AmountsOfNodes,
    score: Callable[[AmountArray, AmountArray], AmountArray],
) -> NodeScores:
    """int64[nodes]: the weighted mean over the resources that a node offers; 0 for a node that
    offers none."""
    if not demanded.each:
        return np.zeros(len(nodes), np.int64)
    usage = nodes.resources.usage(demanded.bundle, scored=True)
    scores = score(usage.used, usage.allocatable)
    if usage.offered is not None:
        weights = usage.offered * (1 if demanded.weights is None else demanded.weights)
        return divide(_total((scores * weights).astype(np.int64)), _total(weights))
    if demanded.weights is not None:
        scores *= demanded.weights
    return mean(_total(scores), demanded.weight_sum)


def _mean_of_one(
    percent_of: Callable[[int, int], int], demanded: Demands, node: AmountsOfNode
) -> int | None:
    """The weighted mean for one node; None if int64 may wrap."""
    total = weight_sum = 0
    for resource, weight, amount in demanded.each:
        has = node.amounts(resource)
        used, offered = has.scored + amount, has.allocatable
        if used >= EXACT_BELOW or offered >= EXACT_BELOW:
            return None  # in int64 some of what follows may wrap
        if offered:
            total += weight * percent_of(used, offered)
            weight_sum += weight
    return total // weight_sum if weight_sum else 0


def _free_percent_of_one(used: int, offered: int) -> int:
    return 100 * (offered - used) // offered if used < offered else 0


def _used_percent_of_one(used: int, offered: int) -> int:
    return 100 * used // offered if used < offered else 100


def _total(scores: AmountArray) -> AmountArray:
    """[resources, nodes] → [nodes]: the sum, which overwrites the first row. A loop over a few long
    rows is faster than a sum over the axis."""
    total = scores[0]
    for row in scores[1:]:
        total += row
    return total
