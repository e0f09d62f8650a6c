"""NodeResourcesBalancedAllocation: prefer nodes whose resources are used up alike.

A node's balance is 100 x (1 - the standard deviation of its used fractions). The score says what
the pod does to it: 75 leaves it as it is, more improves it, less upsets it. The balance without
the pod follows from the row alone, so it is a column, and only that with the pod is computed per
pod. Upstream: plugins/noderesources, balanced_allocation.go (v1.37).
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from bayplan.framework.arithmetic import lowest
from bayplan.framework.interface import (
    MAX_NODE_SCORE,
    CycleState,
    PluginArgs,
    PreScorePlugin,
    ScorePlugin,
    SignPlugin,
)
from bayplan.framework.resource_scorers import DEFAULT_RESOURCES, ResourceSpec, demands
from bayplan.framework.status import SKIP, Status
from bayplan.state.change_log import Facet
from bayplan.state.columns import Floats, Int64s, NodeScores
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo, PodShape

#: Up to so many nodes the balance without the pod is computed faster than its column is kept.
FEW_NODES = 500

_FACETS = Facet.REQUESTED | Facet.ALLOCATABLE

# As arrays: numpy would make one of a plain number at every call.
_ONE, _TWO, _HALF = np.array(1.0), np.array(2.0), np.array(0.5)
_THREE_QUARTERS = np.array(MAX_NODE_SCORE * 0.75)
_HALF_SCORE, _HIGHEST_SCORE = np.array(MAX_NODE_SCORE / 2), np.array(float(MAX_NODE_SCORE))


class NodeResourcesBalancedAllocationArgs(PluginArgs, frozen=True):
    """Which resources are balanced; their weights are all 1. None means cpu and memory."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    def problems(self) -> Iterable[tuple[str, str]]:
        seen: set[str] = set()
        for index, spec in enumerate(self.resources):
            path = f"resources[{index}]"
            if spec.name in seen:
                yield f"{path}.name", f'"{spec.name}"; wanted each resource once'
            if spec.weight != 1:
                yield f"{path}.weight", f"{spec.weight}; wanted 1"
            seen.add(spec.name)


@final
class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin, SignPlugin):
    """Scores what a pod does to the balance of a node's resources."""

    name = "NodeResourcesBalancedAllocation"
    args_type = NodeResourcesBalancedAllocationArgs
    facets = _FACETS

    def setup(self) -> None:
        args = self.args or NodeResourcesBalancedAllocationArgs()
        self._resources = args.resources or DEFAULT_RESOURCES
        self._request_key = f"NodeResourcesBalancedAllocation.request {self._resources!r}"

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        """A pod that asks for none of the resources would be drawn to one node with its like."""
        return SKIP if self._request(pod).is_empty else None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: 50..100."""
        request = self._request(pod)
        if request.is_empty:
            return np.zeros(len(nodes), np.int64)
        columns = _Columns(nodes, request.resources)
        after = columns.balance(request.amounts)
        if len(nodes) <= FEW_NODES:
            before = columns.balance()
        else:
            before = _balance_without_pod(nodes, request.resources)
        # Upstream's 50 + (50 + after - before) / 2, of whole numbers none of which is negative.
        return ((after - before) * _HALF + _THREE_QUARTERS).astype(np.int64)

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        request = self._request(pod)
        return request.resources, request.amounts

    def _request(self, pod: PodInfo) -> "_Request":
        return pod.shape.once(self._request_key, self._compiled)

    def _compiled(self, shape: PodShape) -> "_Request":
        demanded = demands(self._resources, shape.requests)
        amounts = tuple(demand.amount for demand in demanded)
        return _Request(tuple(demand.resource for demand in demanded), amounts, not any(amounts))


@dataclass(frozen=True, slots=True)
class _Request:
    """What a pod asks of the balanced resources. Empty: of none of them anything."""

    resources: tuple[str, ...]
    amounts: tuple[int, ...]
    is_empty: bool


def _balance_without_pod(nodes: NodeView, resources: tuple[str, ...]) -> Floats:
    """float64[nodes], kept: the balance of the resources that are looked at for the pod."""
    key = ("NodeResourcesBalancedAllocation", resources)
    return nodes.derived(key, _FACETS, np.float64, lambda rows: _Columns(rows, resources).balance())


class _Columns:
    """Requested and allocatable of some resources, per node."""

    def __init__(self, nodes: NodeView, resources: Sequence[str]) -> None:
        self._requested = [nodes.requested(resource) for resource in resources]
        self._allocatable = [nodes.allocatable(resource) for resource in resources]
        self._even = not len(nodes) or min(map(lowest, self._allocatable)) > 0

    def balance(self, amounts: Sequence[int] = ()) -> Floats:
        """float64[nodes]: whole numbers in 50..100, with these amounts on top of the requested."""
        used = self._requested
        if amounts:
            used = [column + amount for column, amount in zip(used, amounts, strict=True)]
        if self._even:
            return _even_balance(used, self._allocatable)
        return _uneven_balance(used, self._allocatable)


def _uneven_balance(used: Sequence[Int64s], allocatable: Sequence[Int64s]) -> Floats:
    """Nodes that offer the same of the resources are computed together; the rest is left out."""
    offers = np.zeros(len(used[0]), np.int64)  # bit i: the node offers resource i
    for place, column in enumerate(allocatable):
        offers |= (column != 0).astype(np.int64) << place
    balances = np.full(len(offers), _HIGHEST_SCORE)
    for offer in np.unique(offers[offers != 0]).tolist():
        rows = np.flatnonzero(offers == offer)
        places = [place for place in range(len(used)) if offer >> place & 1]
        balances[rows] = _even_balance(
            [used[place][rows] for place in places], [allocatable[place][rows] for place in places]
        )
    return balances


def _even_balance(used: Sequence[Int64s], allocatable: Sequence[Int64s]) -> Floats:
    """The balance where every node offers every resource, at least one.

    By upstream's formulas in upstream's order, so that they round alike.
    """
    fractions = [np.minimum(u / a, _ONE) for u, a in zip(used, allocatable, strict=True)]
    if len(fractions) == 1:
        return np.full(len(used[0]), _HIGHEST_SCORE)
    if len(fractions) == 2:
        # 100 x (1 - difference / 2): halving is exact, so it may wait.
        return np.trunc((_TWO - np.abs(fractions[0] - fractions[1])) * _HALF_SCORE)
    mean = sum(fractions[1:], fractions[0]) / len(fractions)
    squares = [(fraction - mean) * (fraction - mean) for fraction in fractions]
    deviation = np.sqrt(sum(squares[1:], squares[0]) / len(fractions))
    return np.trunc((_ONE - deviation) * _HIGHEST_SCORE)
