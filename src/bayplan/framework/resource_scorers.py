"""Scores that follow from how full a node would be: three ways to read used against allocatable.

Every scorer takes what a pod demands of the configured resources, compares the sum with what each
node offers, and takes the weighted mean of the resources the node has at all. Upstream:
plugins/noderesources, resource_allocation.go and the three strategies beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from bayplan.api.pod_requests import CPU, MEMORY, is_counted, is_scalar
from bayplan.framework.arithmetic import divide, lowest, percent
from bayplan.framework.interface import MAX_NODE_SCORE
from bayplan.state.columns import Int64s, NodeScores
from bayplan.state.nodes import NodeView

#: A shape's scores are 0..10, a node's 0..100.
MAX_SHAPE_SCORE = 10


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


Scorer = Callable[[Sequence[Demand], NodeView], NodeScores]


def demands(resources: Sequence[ResourceSpec], requests: Mapping[str, int]) -> tuple[Demand, ...]:
    """What of a pod's requests is scored.

    A scalar resource counts only where the pod asks for it; cpu, memory and ephemeral-storage
    always do. Names that nodes do not count, such as pods, never do.
    """
    return tuple(
        Demand(spec.name, spec.weight, requests.get(spec.name, 0))
        for spec in resources
        if is_counted(spec.name) and (requests.get(spec.name) or not is_scalar(spec.name))
    )


def least_allocated(demanded: Sequence[Demand], nodes: NodeView) -> NodeScores:
    """100 x free / allocatable: the emptier the better."""
    return _mean(demanded, nodes, _free_percent)


def most_allocated(demanded: Sequence[Demand], nodes: NodeView) -> NodeScores:
    """100 x used / allocatable: the fuller the better."""
    return _mean(demanded, nodes, _used_percent)


def requested_to_capacity_ratio(points: Sequence[tuple[int, int]]) -> Scorer:
    """A scorer by a broken line through (utilization 0..100, score 0..10) points.

    A resource that scores 0 has no weight, and the mean is rounded, half away from zero.
    """
    by_utilization = np.array([_on_line(points, at) for at in range(101)], np.int64)

    def score(demanded: Sequence[Demand], nodes: NodeView) -> NodeScores:
        sums, weights = np.zeros((2, len(nodes)), np.int64)
        for demand in demanded:
            used, allocatable, offered = _columns(demand, nodes)
            scores = by_utilization.take(_used_percent(used, allocatable), mode="clip")
            if offered is not None:
                scores *= offered
            sums += scores * demand.weight
            weights += (scores > _NOTHING) * np.int64(demand.weight)
        # Of such small numbers no quotient lies just below a half: adding one half rounds right.
        return (sums / np.maximum(weights, _ONE) + _ONE_HALF).astype(np.int64)

    return score


_NOTHING, _ONE, _ONE_HALF = np.array(0), np.array(1), np.array(0.5)


def _free_percent(used: Int64s, allocatable: Int64s) -> Int64s:
    return percent(np.maximum(allocatable - used, _NOTHING), allocatable)


def _used_percent(used: Int64s, allocatable: Int64s) -> Int64s:
    return percent(np.minimum(used, allocatable), allocatable)


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


def _mean(
    demanded: Sequence[Demand], nodes: NodeView, score: Callable[[Int64s, Int64s], Int64s]
) -> NodeScores:
    """int64[nodes]: the weighted mean over the resources that a node offers; 0 without any."""
    sums = np.zeros(len(nodes), np.int64)
    weights: Int64s | int = 0
    for demand in demanded:
        used, allocatable, offered = _columns(demand, nodes)
        scores = score(used, allocatable)
        weight: Int64s | int = demand.weight
        if offered is not None:
            scores *= offered
            weight = offered * demand.weight
        sums += scores if demand.weight == 1 else scores * demand.weight
        weights = weights + weight
    return divide(sums, weights)


def _columns(demand: Demand, nodes: NodeView) -> tuple[Int64s, Int64s, Int64s | None]:
    """(used with the pod, allocatable, which nodes offer any; None: all do), int64[nodes] each.

    Where a node offers nothing, allocatable is 1, so that it can be divided by.
    """
    used = _used(nodes, demand.resource) + demand.amount
    allocatable = nodes.allocatable(demand.resource)
    if not len(nodes) or lowest(allocatable) > 0:
        return used, allocatable, None
    return used, np.maximum(allocatable, _ONE), (allocatable != _NOTHING).astype(np.int64)


def _used(nodes: NodeView, resource: str) -> Int64s:
    """Placed pods that ask for no cpu or memory count as if they did, or they would crowd."""
    if resource == CPU:
        return nodes.non_zero_milli_cpu()
    if resource == MEMORY:
        return nodes.non_zero_memory_bytes()
    return nodes.requested(resource)
