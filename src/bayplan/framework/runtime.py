"""Framework: runs one profile's extension points and checks what comes back.

Each ``run_*`` method is one extension point with upstream's rules (runtime/framework.go, v1.37):
the order of the plugins, what Skip leaves out, which answer ends the run, and whose name a status
carries. A plugin that raises, or answers in a form it may not, becomes an Error that names it.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from bayplan.framework import scalar
from bayplan.framework.arithmetic import in_score_range, normalized
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.interface import (
    MAX_NODE_SCORE,
    MAX_PERMIT_TIMEOUT_SECONDS,
    MIN_NODE_SCORE,
    CycleState,
    FilterPlugin,
    NominatingMode,
    Nomination,
    NormalizeScorePlugin,
    Plugin,
    PodNominator,
    PreFilterResult,
    ScalarScorePlugin,
    ScorePlugin,
)
from bayplan.framework.profile import ProfilePlugins
from bayplan.framework.score_table import PluginScores, ScoreTable
from bayplan.framework.status import (
    Code,
    NodeToStatus,
    Status,
    is_rejected,
    is_success,
    unresolvable,
)
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo
from bayplan.state.snapshot import Snapshot

T = TypeVar("T")


class PluginFailure(Exception):
    """A plugin raised; carried to the step's edge, where it becomes an Error status."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def failure_of(plugin: Plugin, point: str, problem: BaseException) -> Status:
    """The Error status for a plugin that raised or answered wrongly."""
    text = f"{type(problem).__name__}: {problem}"
    reason = f'running {point} plugin "{plugin.instance_name}": {text}'
    return Status(Code.ERROR, (reason,), plugin.instance_name)


class Framework:
    """One profile, ready to run."""

    def __init__(self, plugins: ProfilePlugins, nominator: PodNominator) -> None:
        self.plugins = plugins
        self.profile_name = plugins.profile_name
        self._nominator = nominator

    # ---- PreFilter ------------------------------------------------------------------------

    def run_pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> tuple[PreFilterResult, Status | None, set[str]]:
        """(which nodes, rejection or error, instances that narrowed the nodes).

        Unresolvable returns at once; Unschedulable is remembered while the others still run.
        """
        result = PreFilterResult()
        narrowing: set[str] = set()
        remembered: Status | None = None
        for plugin in self.plugins.pre_filter:
            name = plugin.instance_name
            try:
                answer = plugin.pre_filter(state, pod, nodes)
            except Exception as problem:  # noqa: BLE001 - a plugin's failure is its pod's, not ours
                return result, failure_of(plugin, "PreFilter", problem), narrowing
            if answer is None:
                continue
            if isinstance(answer, PreFilterResult):
                if answer.node_names is not None:
                    narrowing.add(name)
                result = result.merge(answer)
                if result.node_names is not None and not result.node_names:
                    return result, _nothing_left(narrowing), narrowing
                continue
            if answer.code is Code.SKIP:
                state.skip_filter_plugins.add(name)
            elif answer.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return result, answer.with_plugin(name), narrowing
            elif is_rejected(answer):
                remembered = remembered or answer.with_plugin(name)
            elif not is_success(answer):
                return result, _as_error(answer, "PreFilter", name), narrowing
        return result, remembered, narrowing

    def run_add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Tell PreFilter notes that a pod is on a node in this what-if."""
        for plugin in self.plugins.pre_filter_extensions(state):
            status = plugin.add_pod(state, pod, added, node)
            if not is_success(status):
                return status
        return None

    def run_remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Tell PreFilter notes that a pod is off a node in this what-if."""
        for plugin in self.plugins.pre_filter_extensions(state):
            status = plugin.remove_pod(state, pod, removed, node)
            if not is_success(status):
                return status
        return None

    # ---- Filter ---------------------------------------------------------------------------

    @property
    def has_filter_plugins(self) -> bool:
        return bool(self.plugins.filter)

    def run_filter(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeView,
        feasible: NodeMask | None = None,
    ) -> FilterOutcome:
        """Ask each Filter plugin about the nodes that are still feasible when it is its turn."""
        if feasible is None:
            feasible = np.ones(len(nodes), np.bool_)
        outcome = FilterOutcome(nodes, feasible)
        skipped = state.skip_filter_plugins
        for plugin in self.plugins.filter:
            if plugin.instance_name in skipped:
                continue
            try:
                if isinstance(plugin, FilterPlugin):
                    rejections = plugin.filter(state, pod, nodes, outcome.feasible)
                else:
                    rejections = scalar.filter_nodes(plugin, state, pod, nodes, outcome.feasible)
                outcome.add(plugin.instance_name, rejections)
            except Exception as problem:  # noqa: BLE001
                outcome.error = failure_of(plugin, "Filter", problem)
            if outcome.error is not None:
                return outcome
        return outcome

    def filter_with_nominated(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, node_name: str
    ) -> Status | None:
        """The verdict on one node, with the pods nominated to it and without; both must pass.

        Nominated pods of equal or higher priority count, other than the pod itself. Upstream:
        RunFilterPluginsWithNominatedPods.
        """
        position = snapshot.nodes.position(node_name)
        assert position is not None, f"no node {node_name}"
        added = self.nominated_ahead(pod, node_name)
        if added:
            with snapshot.trial() as trial:
                what_if = state.clone()
                for other in added:
                    placed = trial.assume(other, node_name)
                    node = snapshot.node(node_name)
                    status = self.run_add_pod(what_if, pod, placed, node)
                    if not is_success(status):
                        return status
                status = self._verdict(what_if, pod, snapshot, position)
            if not is_success(status):
                return status
        return self._verdict(state, pod, snapshot, position)

    def nominated_ahead(self, pod: PodInfo, node_name: str) -> list[PodInfo]:
        """Pods nominated to a node that this pod must leave room for."""
        return [
            other
            for other in self._nominator.nominated_pods_for_node(node_name)
            if other.priority >= pod.priority and other.uid != pod.uid
        ]

    def _verdict(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, position: int
    ) -> Status | None:
        outcome = self.run_filter(state, pod, snapshot.nodes.take([position]))
        return outcome.error or outcome.status_of(0)

    # ---- PostFilter -----------------------------------------------------------------------

    def run_post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: NodeToStatus
    ) -> tuple[Nomination | None, Status | None]:
        """First Success wins; Unresolvable and Error end it; other messages are joined."""
        reasons: list[str] = []
        blamed = ""
        best: Nomination | None = None
        for plugin in self.plugins.post_filter:
            name = plugin.instance_name
            try:
                nomination, status = plugin.post_filter(state, pod, node_to_status)
            except Exception as problem:  # noqa: BLE001
                return None, failure_of(plugin, "PostFilter", problem)
            if is_success(status):
                return nomination, Status(Code.SUCCESS, status.reasons if status else (), name)
            assert status is not None
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return nomination, status.with_plugin(name)
            if not is_rejected(status):
                return None, Status(Code.ERROR, status.reasons, name)
            if nomination is not None and nomination.mode is not NominatingMode.NOOP:
                best = nomination
            reasons += status.reasons
            blamed = blamed or name
        if not self.plugins.post_filter:
            return None, None
        return best, Status(Code.UNSCHEDULABLE, tuple(reasons), blamed)

    # ---- Score ----------------------------------------------------------------------------

    @property
    def has_score_plugins(self) -> bool:
        return bool(self.plugins.score)

    def run_pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        """Anything but Success and Skip is an Error."""
        for plugin in self.plugins.pre_score:
            name = plugin.instance_name
            try:
                status = plugin.pre_score(state, pod, nodes)
            except Exception as problem:  # noqa: BLE001
                return failure_of(plugin, "PreScore", problem)
            if status is None or status.code is Code.SUCCESS:
                continue
            if status.code is not Code.SKIP:
                return _as_error(status, "PreScore", name)
            state.skip_score_plugins.add(name)
        return None

    def run_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> ScoreTable | Status:
        """Raw, normalised and weighted scores of every instance that was not skipped."""
        columns: list[PluginScores] = []
        totals = np.zeros(len(nodes), np.int64)
        skipped = state.skip_score_plugins
        for plugin, weight in self.plugins.score:
            if plugin.instance_name in skipped:
                continue
            try:
                column = self._column(plugin, weight, state, pod, nodes)
            except PluginFailure as failure:
                return failure.status
            except Exception as problem:  # noqa: BLE001
                return failure_of(plugin, "Score", problem)
            columns.append(column)
            totals += column.weighted
        if not self.plugins.score:
            totals += 1  # upstream: every node gets 1 where nothing scores
        return ScoreTable(nodes, columns, totals)

    def _column(
        self,
        plugin: ScorePlugin | ScalarScorePlugin,
        weight: int,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeView,
    ) -> PluginScores:
        if isinstance(plugin, ScorePlugin):
            raw = plugin.score(state, pod, nodes)
        else:
            raw = scalar.score_nodes(plugin, state, pod, nodes)
        name = plugin.instance_name
        _check_scores(name, raw, len(nodes))
        if isinstance(plugin, NormalizeScorePlugin):
            final = plugin.normalize(state, pod, raw)
            _check_scores(name, final, len(nodes))
        else:
            final = normalized(plugin.normalizer, raw)
        if not in_score_range(final):
            raise PluginFailure(_out_of_range(name, final))
        return PluginScores(name, weight, raw, final)

    # ---- Reserve, Permit ------------------------------------------------------------------

    def run_reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """The first failure stops; the caller then unreserves."""
        for plugin in self.plugins.reserve:
            try:
                status = plugin.reserve(state, pod, node_name)
            except Exception as problem:  # noqa: BLE001
                return failure_of(plugin, "Reserve", problem)
            if is_success(status):
                continue
            assert status is not None
            if is_rejected(status):
                return status.with_plugin(plugin.instance_name)
            return _as_error(status, "Reserve", plugin.instance_name)
        return None

    def run_unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> list[Status]:
        """All of them, in reverse order, whatever failed. Returns the failures."""
        failures: list[Status] = []
        for plugin in reversed(self.plugins.reserve):
            try:
                plugin.unreserve(state, pod, node_name)
            except Exception as problem:  # noqa: BLE001
                failures.append(failure_of(plugin, "Unreserve", problem))
        return failures

    def run_permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, dict[str, float]]:
        """(rejection, error or WAIT; instance → seconds to wait). All run before waiting starts."""
        waits: dict[str, float] = {}
        for plugin in self.plugins.permit:
            name = plugin.instance_name
            try:
                status, timeout_seconds = plugin.permit(state, pod, node_name)
            except Exception as problem:  # noqa: BLE001
                return failure_of(plugin, "Permit", problem), {}
            if is_success(status):
                continue
            assert status is not None
            if is_rejected(status):
                return status.with_plugin(name), {}
            if status.code is not Code.WAIT:
                return _as_error(status, "Permit", name), {}
            waits[name] = min(timeout_seconds, MAX_PERMIT_TIMEOUT_SECONDS)
        return (Status(Code.WAIT) if waits else None), waits


# ---- what comes back -----------------------------------------------------------------------


def _as_error(status: Status, point: str, name: str) -> Status:
    message = status.message or f"answered {status.code}, which it may not"
    return Status(Code.ERROR, (f'running {point} plugin "{name}": {message}',), name)


def _nothing_left(narrowing: Iterable[str]) -> Status:
    names = sorted(narrowing)
    if len(names) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {names[0]}")
    listed = " ".join(names)
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}] simultaneously")


def _check_scores(name: str, scores: Any, count: int) -> None:
    """O(1): shape and type of an answer."""
    dtype, shape = getattr(scores, "dtype", None), getattr(scores, "shape", None)
    if dtype != np.int64 or shape != (count,):
        found = f"{dtype}{shape}" if dtype is not None else type(scores).__name__
        reason = f"{name} returned {found}, expected int64({count},)"
        raise PluginFailure(Status(Code.ERROR, (reason,), name))


def _out_of_range(name: str, scores: NodeScores) -> Status:
    wrong = scores[(scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)][0]
    reason = (
        f'plugin "{name}" returns an invalid score {wrong}, it should in the '
        f"range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
    )
    return Status(Code.ERROR, (reason,), name)
