"""NodeResourcesBalancedAllocation: prefer nodes whose resources are used evenly.

A node's balance is 100 x (1 - the standard deviation of its used fractions). The score shows how
the pod changes the balance: 75 is no change, more is an improvement. Before Kubernetes 1.36 the
score is the balance with the pod. The balance without the pod
depends on the row alone, so it is a column; only the balance with the pod is computed per pod. If
devices are counted, both are computed per pod. Upstream: plugins/noderesources,
balanced_allocation.go (v1.37), which fails if the selectors of a device class must be evaluated.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import sqrt
from operator import add
from typing import Final, final

import numpy as np
import numpy.typing as npt

from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from bayplan.api.pod_requests import may_be_devices
from bayplan.framework import resource_scorers
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    Caching,
    PluginArgs,
    PreScorePlugin,
    RowScore,
    ScorePlugin,
    SignPlugin,
)
from bayplan.framework.status import SKIP, Status
from bayplan.framework.types import MAX_NODE_SCORE
from bayplan.state.change_log import Facet
from bayplan.state.columns import Mask, NodeScores, places_of
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo, PodShape
from bayplan.state.resources import Bundle

#: Up to this many nodes, computing the balance without the pod is faster than updating a column.
FEW_NODES = 500

_FACETS = Facet.REQUESTED | Facet.ALLOCATABLE

#: float64 [nodes], [resources, nodes]; optionally with a first axis [alternatives].
Matrix = npt.NDArray[np.float64]

# Arrays, because numpy converts a plain number at every call.
_ONE, _TWO, _HALF = np.array(1.0), np.array(2.0), np.array(0.5)
_THREE_QUARTERS = np.array(MAX_NODE_SCORE * 0.75)
_HALF_SCORE, _HIGHEST_SCORE = np.array(MAX_NODE_SCORE / 2), np.array(float(MAX_NODE_SCORE))


class NodeResourcesBalancedAllocationArgs(PluginArgs, frozen=True):
    """Which resources are balanced; their weights are all 1. None means cpu and memory."""

    resources: tuple[resource_scorers.ResourceSpec, ...] = resource_scorers.DEFAULT_RESOURCES

    def problems(self) -> Iterable[tuple[str, str]]:
        seen: set[str] = set()
        for index, spec in enumerate(self.resources):
            path = f"resources[{index}]"
            if spec.name in seen:
                yield f"{path}.name", f'"{spec.name}"; wanted each resource once'
            if spec.weight != 1:
                yield f"{path}.weight", f"{spec.weight}; wanted 1"
            seen.add(spec.name)


_CACHING: Final = Caching(
    facets=_FACETS | Facet.LABELS,
    signs_template=True,
    pre_state_per_template=True,
    kinds_in_facets=(RESOURCE_SLICE, RESOURCE_CLAIM),
)


@final
class NodeResourcesBalancedAllocation(
    PreScorePlugin[NodeResourcesBalancedAllocationArgs], ScorePlugin, RowScore, SignPlugin
):
    """Scores how a pod changes the balance of a node's resources."""

    name = "NodeResourcesBalancedAllocation"
    #: Labels may decide which nodes devices are for.
    caching = _CACHING
    #: Devices may stand for a resource.
    kinds = (DEVICE_CLASS, RESOURCE_SLICE, RESOURCE_CLAIM)
    optional_kinds = kinds

    def setup(self) -> None:
        args = self.args or NodeResourcesBalancedAllocationArgs()
        self._resources = args.resources or resource_scorers.DEFAULT_RESOURCES
        # Devices that stand for a resource are not among the node's amounts.
        amounts_only = not any(may_be_devices(spec.name) for spec in self._resources)
        self.caching = replace(_CACHING, amounts_only=amounts_only)
        self._request_key = f"NodeResourcesBalancedAllocation.request {self._resources!r}"
        #: Before 1.36 the balance with the pod is the score.
        self._scores_change = self.handle.behaviour.scores_change_of_balance

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        """Without Skip, all pods that request none of the resources would prefer the same node."""
        return SKIP if self._request(pod).is_empty else None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: 50..100."""
        request = self._request(pod)
        if request.is_empty:
            return np.zeros(len(nodes), np.int64)
        seen: resource_scorers.AmountsOfNodes = nodes
        if request.devices and (
            counts := resource_scorers.counted(self.handle.devices, request.devices)
        ):
            seen = resource_scorers.NodesWithDevices(nodes, counts)
        if not self._scores_change:
            return _balance(seen, request.bundle).astype(np.int64)
        if seen is not nodes:
            before, change = _balance(seen, request.both)
        elif len(nodes) <= FEW_NODES:
            before, change = _balance(nodes, request.both)
        else:
            before = _balance_without_pod(nodes, request.nothing)
            change = _balance(nodes, request.bundle)
        # Upstream's 50 + (50 + after - before) / 2, of whole numbers none of which is negative.
        change -= before
        change *= _HALF
        change += _THREE_QUARTERS
        return change.astype(np.int64)

    def score_row(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        request = self._request(pod)
        if request.is_empty:
            return 0
        seen: resource_scorers.AmountsOfNode = node
        if request.devices and (
            counts := resource_scorers.counted(self.handle.devices, request.devices)
        ):
            seen = resource_scorers.NodeWithDevices(node, counts)
        before: list[float] = []
        after: list[float] = []
        for resource, amount in request.demanded:
            has = seen.amounts(resource)
            offered = float(has.allocatable)
            if offered:
                used, then = has.requested / offered, (has.requested + amount) / offered
                before.append(used if used < 1.0 else 1.0)
                after.append(then if then < 1.0 else 1.0)
        balance = _balance_of_one(after)
        if not self._scores_change:
            return int(balance)
        return int((balance - _balance_of_one(before)) * 0.5 + 75.0)

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        request = self._request(pod)
        return request.bundle.resources, request.bundle.amounts

    def _request(self, pod: PodInfo) -> "_Request":
        return pod.shape.once_per_spec(self._request_key, self._compiled)

    def _compiled(self, shape: PodShape) -> "_Request":
        demanded_of = resource_scorers.demands(self._resources, shape.requests)
        bundle = demanded_of.bundle
        nothing = Bundle(bundle.resources, [0] * len(bundle.resources))
        both = Bundle(bundle.resources, nothing.amounts, bundle.amounts)
        demanded = tuple(zip(bundle.resources, bundle.amounts, strict=True))
        is_empty = not any(bundle.amounts)
        return _Request(bundle, nothing, both, demanded, demanded_of.devices, is_empty)


@dataclass(frozen=True, slots=True)
class _Request:
    """The pod's requests for the balanced resources. Empty: it requests none of them."""

    bundle: Bundle
    #: Zero of the same resources.
    nothing: Bundle
    #: Nothing and the bundle as alternatives.
    both: Bundle
    #: (resource, amount)
    demanded: tuple[tuple[str, int], ...]
    #: Resources among them that a DeviceClass may stand for.
    devices: tuple[str, ...]
    is_empty: bool


def _balance_without_pod(nodes: NodeView, nothing: Bundle) -> Matrix:
    """float64[nodes], a cached column: the balance of the resources that count for the pod."""
    key = ("NodeResourcesBalancedAllocation", nothing.resources)
    return nodes.derived(key, _FACETS, np.float64, lambda rows: _balance(rows, nothing))


def _balance(nodes: resource_scorers.AmountsOfNodes, bundle: Bundle) -> Matrix:
    """float64[nodes], or [alternatives, nodes]: whole numbers in 50..100, with the bundle on top of
    what is requested. Valid until the next call."""
    used, allocatable, offered, is_within = nodes.resources.usage(bundle, scored=False)
    # Upstream's formulas in upstream's order, so that rounding is equal.
    fractions = np.divide(used, allocatable, out=used if used.dtype == np.float64 else None)
    if not is_within:
        np.minimum(fractions, _ONE, out=fractions)
    if offered is None:
        return _even_balance(fractions)
    return _uneven_balance(fractions, offered)


def _balance_of_one(fractions: Sequence[float]) -> float:
    """The balance of one node, over the resources that the node offers."""
    count = len(fractions)
    if count < 2:
        return 100.0
    if count == 2:
        return float(int((2.0 - abs(fractions[0] - fractions[1])) * 50.0))
    # In order, as with arrays: Python's sum may round differently.
    mean = reduce(add, fractions) / count
    squares = [(fraction - mean) * (fraction - mean) for fraction in fractions]
    return float(int((1.0 - sqrt(reduce(add, squares) / count)) * 100.0))


def _uneven_balance(fractions: Matrix, offered: Mask) -> Matrix:
    """Nodes that offer the same resources are computed together; resources that they lack are left
    out."""
    bits = np.left_shift(1, np.arange(len(offered)))
    offers = bits @ offered  # bit i: the node offers resource i
    balances = np.full_like(fractions[..., 0, :], _HIGHEST_SCORE)
    for offer in np.unique(offers[offers != 0]).tolist():
        columns = places_of(offers == offer)
        some = fractions[..., bits & offer != 0, :][..., columns]
        balances[..., columns] = _even_balance(some)
    return balances


def _even_balance(fractions: Matrix) -> Matrix:
    """The balance if every node offers every resource. Writes to ``fractions``."""
    count = fractions.shape[-2]
    first: Matrix = fractions[..., 0, :]
    if count == 1:
        return np.full_like(first, _HIGHEST_SCORE)
    if count == 2:
        # 100 x (1 - difference / 2): halving is exact, so the order does not matter.
        first -= fractions[..., 1, :]
        np.subtract(_TWO, np.abs(first, out=first), out=first)
        first *= _HALF_SCORE
        return np.trunc(first, out=first)
    mean = _added_up(fractions) / count
    deviation = np.sqrt(_added_up((fractions - mean[..., np.newaxis, :]) ** 2) / count)
    return np.trunc((_ONE - deviation) * _HIGHEST_SCORE)


def _added_up(fractions: Matrix) -> Matrix:
    """In order: numpy's sum may use another order and round differently."""
    total: Matrix = fractions[..., 0, :].copy()
    for place in range(1, fractions.shape[-2]):
        total += fractions[..., place, :]
    return total
