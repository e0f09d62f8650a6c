"""Evaluates some nodes for a pod that another scheduler places.

PreFilter and Filter, or PreFilter, PreScore and Score, run once over the named nodes, in the
cluster as it is now or as it would be without some victims. Nothing is decided, counted or cached.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, final

from msgspec import Struct, field

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.runtime import Framework
from bayplan.framework.scoring import ScoreTable
from bayplan.framework.status import (
    Code,
    Status,
    is_rejected,
    is_success,
    unresolvable,
    unschedulable,
)
from bayplan.framework.types import MAX_NODE_SCORE, PreFilterResult
from bayplan.state.cache import ClusterView, Snapshot
from bayplan.state.columns import is_any
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

#: The caller names a node that has not reached this scheduler yet; the caller tries again.
UNKNOWN_NODE = "node(s) not known to bayplan yet"


class EvaluationError(Exception):
    """A plugin failed; the message names it."""


class FilterResult(Struct):
    """Which of the nodes can take the pod, in the order in which they were named."""

    fitting: list[str] = field(default_factory=list[str])
    rejected: dict[str, Status] = field(default_factory=dict[str, Status])


class NodeRejection(NamedTuple):
    """Nodes that one plugin rejected for the same reasons."""

    plugin: str
    code: Code
    reasons: tuple[str, ...]
    names: list[str]


@final
class OneShotEvaluator:
    """Runs the plugins of a profile without an attempt."""

    def __init__(self, cluster: ClusterView, frameworks: Mapping[str, Framework]) -> None:
        """``frameworks``: by profile."""
        self._cluster = cluster
        self._frameworks = frameworks

    def filter(self, profile: str, pod: PodInfo, names: Sequence[str]) -> FilterResult:
        """Raises EvaluationError."""
        try:
            return self._filter(self._frameworks[profile], pod, names)
        finally:
            self._cluster.take_back()

    def rejections(self, profile: str, pod: PodInfo) -> tuple[int, list[NodeRejection]]:
        """The number of nodes that can take the pod, and the others by reason. Nodes that PreFilter
        leaves out are in neither.

        Raises EvaluationError.
        """
        try:
            return self._rejections(self._frameworks[profile], pod)
        finally:
            self._cluster.take_back()

    def prioritize(
        self, profile: str, pod: PodInfo, names: Sequence[str], score_max: int
    ) -> dict[str, int]:
        """How good each node is, 0..score_max, without the nodes that do not exist. Raises
        EvaluationError."""
        try:
            return self._prioritize(self._frameworks[profile], pod, names, score_max)
        finally:
            self._cluster.take_back()

    def preempt(self, profile: str, pod: PodInfo, victims: Mapping[str, Sequence[str]]) -> set[str]:
        """The nodes that can take the pod when their victims (uids, by node) have left. Raises
        EvaluationError."""
        try:
            return self._preempt(self._frameworks[profile], pod, victims)
        finally:
            self._cluster.take_back()

    def _filter(self, framework: Framework, pod: PodInfo, names: Sequence[str]) -> FilterResult:
        all_nodes, state = self._cluster.lend().nodes, CycleState()
        nodes = all_nodes.take(all_nodes.positions(names))
        if not len(nodes):
            return FilterResult(rejected=dict.fromkeys(names, unschedulable(UNKNOWN_NODE)))
        result, status, narrowing = framework.run_pre_filter(state, pod, all_nodes)
        if is_rejected(status) and status is not None:
            return FilterResult(rejected=dict.fromkeys(names, status))
        _raise(status)
        outcome = framework.run_filter(state, pod, nodes)
        _raise(outcome.error)
        elsewhere = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowing))}]"
        return _advice(names, result, outcome, unresolvable(elsewhere))

    def _rejections(self, framework: Framework, pod: PodInfo) -> tuple[int, list[NodeRejection]]:
        nodes, state = self._cluster.lend().nodes, CycleState()
        result, status, _ = framework.run_pre_filter(state, pod, nodes)
        if is_rejected(status) and status is not None:
            whole = NodeRejection(status.plugin, status.code, status.reasons, nodes.names())
            return 0, [whole]
        _raise(status)
        if result.node_names is not None:
            nodes = nodes.take(
                nodes.positions([n for n in nodes.names() if n in result.node_names])
            )
        outcome = framework.run_filter(state, pod, nodes)
        _raise(outcome.error)
        return outcome.feasible_count, [
            NodeRejection(
                entry.plugin,
                entry.code_at(0),
                entry.reasons,
                [outcome.nodes.name(position) for position in entry.positions.tolist()],
            )
            for entry in outcome.entries
        ]

    def _preempt(
        self, framework: Framework, pod: PodInfo, victims: Mapping[str, Sequence[str]]
    ) -> set[str]:
        snapshot, state = self._cluster.lend(), CycleState()
        names = [name for name in victims if snapshot.nodes.position(name) is not None]
        if not names:
            return set()
        result, status, _ = framework.run_pre_filter(state, pod, snapshot.nodes)
        if is_rejected(status):
            return set()
        _raise(status)
        if result.node_names is not None:
            names = [name for name in names if name in result.node_names]

        def fits(name: str) -> bool:
            return _fits_without(framework, state, pod, snapshot, name=name, uids=victims[name])

        return set(filter(fits, names))

    def _prioritize(
        self, framework: Framework, pod: PodInfo, names: Sequence[str], score_max: int
    ) -> dict[str, int]:
        all_nodes, state = self._cluster.lend().nodes, CycleState()
        nodes = all_nodes.take(all_nodes.positions(names))
        if not len(nodes):
            return {}
        _, status, _ = framework.run_pre_filter(state, pod, all_nodes)
        if is_rejected(status):
            return {}
        _raise(status)
        _raise(framework.run_pre_score(state, pod, nodes))
        table = framework.run_score(state, pod, nodes)
        if isinstance(table, Status):
            raise EvaluationError(table.message)
        return _scaled(table, nodes, score_max)


def _raise(status: Status | None) -> None:
    if status is not None and not is_success(status):
        raise EvaluationError(status.message)


def _fits_without(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    *,
    name: str,
    uids: Sequence[str],
) -> bool:
    """Whether a node can take a pod without those of the pods ``uids`` that it still has."""
    what_if, node = state.clone(), snapshot.node(name)
    with snapshot.trial() as trial:
        for victim in [placed for placed in node.pods if placed.uid in uids]:
            trial.remove(victim)
            _raise(framework.run_remove_pod(what_if, pod, victim, node))
        nodes = snapshot.nodes
        outcome = framework.run_filter(what_if, pod, nodes.take(nodes.positions([name])))
        _raise(outcome.error)
        return is_any(outcome.feasible)


def _advice(
    names: Sequence[str], result: PreFilterResult, outcome: FilterOutcome, elsewhere: Status
) -> FilterResult:
    result_of_names = FilterResult()
    for name in names:
        position = outcome.nodes.position(name)
        if position is None:
            status: Status | None = unschedulable(UNKNOWN_NODE)
        elif result.node_names is not None and name not in result.node_names:
            status = elsewhere
        else:
            status = outcome.status_of(position)
        if status is None or is_success(status):
            result_of_names.fitting.append(name)
        else:
            result_of_names.rejected[name] = status
    return result_of_names


def _scaled(table: ScoreTable, nodes: NodeView, score_max: int) -> dict[str, int]:
    """Totals as shares of the best total there could be, rounded."""
    best = MAX_NODE_SCORE * sum(column.weight for column in table.columns)
    if not best:
        return dict.fromkeys(nodes.names(), 0)
    scores = (2 * table.totals * score_max + best) // (2 * best)
    return dict(zip(nodes.names(), scores.tolist(), strict=True))
