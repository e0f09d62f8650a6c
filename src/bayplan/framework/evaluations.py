"""How often each plugin was evaluated, by extension point. Upstream: instrumented_plugins.go.

PreFilter and PreScore count once for each pod, Filter and Score once for each node that the plugin
is called for. A cached result is no evaluation.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, final

import numpy as np

from bayplan.framework.cycle_state import CallFilter, CallScore, CycleState
from bayplan.framework.status import Rejection
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo

R = TypeVar("R")


@final
class _Count:
    """One plugin's evaluations at one extension point."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


@final
class Evaluations:
    """Wraps calls of one profile's plugins so that they are counted."""

    def __init__(self) -> None:
        #: By instance and extension point.
        self._counts: dict[tuple[str, str], _Count] = {}

    def counts(self) -> Iterator[tuple[tuple[str, str], int]]:
        """((instance, extension point), evaluations)"""
        for labels, count in list(self._counts.items()):
            yield labels, count.count

    def of_pod(
        self, name: str, point: str, call: Callable[[CycleState, PodInfo, NodeView], R]
    ) -> Callable[[CycleState, PodInfo, NodeView], R]:
        """A call that is about the pod as a whole."""
        count = self._count(name, point)

        def counted(state: CycleState, pod: PodInfo, nodes: NodeView) -> R:
            count.count += 1
            return call(state, pod, nodes)

        return counted

    def of_node(
        self, name: str, point: str, call: Callable[[CycleState, PodInfo, NodeInfo], R]
    ) -> Callable[[CycleState, PodInfo, NodeInfo], R]:
        """A call that is about one node."""
        count = self._count(name, point)

        def counted(state: CycleState, pod: PodInfo, node: NodeInfo) -> R:
            count.count += 1
            return call(state, pod, node)

        return counted

    def of_filter(self, name: str, call: CallFilter) -> CallFilter:
        """A call that is about the feasible nodes of a view."""
        count = self._count(name, "Filter")

        def counted(
            state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
        ) -> Iterable[Rejection]:
            count.count += int(np.count_nonzero(feasible))
            return call(state, pod, nodes, feasible)

        return counted

    def of_score(self, name: str, call: CallScore) -> CallScore:
        """A call that is about all nodes of a view."""
        count = self._count(name, "Score")

        def counted(state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
            count.count += len(nodes)
            return call(state, pod, nodes)

        return counted

    def _count(self, name: str, point: str) -> _Count:
        """The same one for all calls of a plugin at a point."""
        return self._counts.setdefault((name, point), _Count())
