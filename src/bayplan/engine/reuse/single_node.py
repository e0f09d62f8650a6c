"""Asking: plugins' one-row forms, in one attempt, with what one row's answers share."""

from collections.abc import Mapping
from typing import final

from bayplan.engine.reuse.row_cache import RowCounts
from bayplan.engine.reuse.weighted_score import PLUGIN_FAILED, RankingInvalid
from bayplan.framework.calls import Calls
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.score_table import PluginScores
from bayplan.framework.types import Verdict
from bayplan.ports import raise_interruption
from bayplan.state.columns import Rows, all_true
from bayplan.state.nodes import LateNodeView, NodeInfo, NodeView
from bayplan.state.pods import PodInfo


@final
class SingleNodeEvaluator:
    """Who is asked what about single rows, in one attempt."""

    __slots__ = ("_counts", "_node", "_nodes", "_row", "calls", "pod", "state")

    def __init__(
        self,
        calls: Calls,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeView,
        counts: Mapping[str, RowCounts],
    ) -> None:
        """``counts``: by instance."""
        self._counts = counts
        self.calls = calls
        self.state = state
        self.pod = pod
        self._nodes = nodes
        self._row = -1
        self._node: NodeInfo | None = None

    def node(self, row: int) -> NodeInfo:
        """The same for all that ask about one row."""
        if self._node is None or row != self._row:
            self._row, self._node = row, self._nodes.info_of_row(row)
        return self._node

    def verdict(self, name: str, row: int) -> Verdict:
        """An instance's Filter. Raises OutOfDate where it fails."""
        try:
            return self.calls.filter_row[name](self.state, self.pod, self.node(row))
        except BaseException as problem:
            raise_interruption(problem)
            raise RankingInvalid(PLUGIN_FAILED) from problem

    def score(self, name: str, row: int) -> int:
        """An instance's raw score. Raises OutOfDate where it fails."""
        try:
            score = self.calls.score_row[name](self.state, self.pod, self.node(row))
        except BaseException as problem:
            raise_interruption(problem)
            raise RankingInvalid(PLUGIN_FAILED) from problem
        if type(score) is not int:
            raise RankingInvalid(PLUGIN_FAILED)
        return score

    def count(self, name: str) -> None:
        """An instance's answer about one row is not kept: it is asked, or what it answered about
        a row that is alike is recalled."""
        counts = self._counts[name]
        counts.asked += 1
        counts.kept -= 1

    def judge(self, name: str, rows: Rows) -> None:
        """Have an instance's verdicts of many rows kept. Raises OutOfDate where it fails."""
        assert self.state.kept is not None, "verdicts are kept nowhere"
        if not len(rows):
            return
        some = LateNodeView(self._nodes, lambda: rows)
        outcome = FilterOutcome(some, all_true(len(some)))
        outcome.ask(name, self.calls.filter_of[name], self.state, self.pod)
        if outcome.error is not None:
            raise RankingInvalid(PLUGIN_FAILED)

    def column(self, name: str, rows: Rows) -> PluginScores:
        """An instance's scores of many rows, kept ones among them. Raises OutOfDate where it
        fails."""
        some = LateNodeView(self._nodes, lambda: rows)
        try:
            return self.calls.scoring[name].column(self.state, self.pod, some)
        except BaseException as problem:
            raise_interruption(problem)
            raise RankingInvalid(PLUGIN_FAILED) from problem
