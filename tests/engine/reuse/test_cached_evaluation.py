"""Cached results of Filter and Score are reused; missing and uncacheable ones are computed."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from bayplan.engine.ranking.evaluation_plan import OTHER_PLUGINS, SkipSet
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.plugin import (
    PreFilterPlugin,
    PreScorePlugin,
    ScalarFilterPlugin,
    ScalarScorePlugin,
)
from bayplan.framework.status import SKIP, Code, Rejection, Status, unschedulable
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from tests.engine.cached_attempts import Attempts, Bad, Rank, Worse, last_ranking

FOUR: dict[str, dict[str, str]] = {"n1": {}, "n2": {}, "n3": {}, "n4": {}}


class RecordedPlugin:
    """A plugin's Filter and Score as the framework passes them, with answers by node name, and the
    nodes of their calls."""

    def __init__(self, *bad: str, reason: str = "no", code: Code = Code.UNSCHEDULABLE) -> None:
        self.bad, self.reason, self.code = bad, reason, code
        self.scores: Any = None
        self.names: list[list[str]] = []

    def filter(
        self, state: Any, pod: Any, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        self.names.append(nodes.names())
        rows = [place for place, name in enumerate(nodes.names()) if name in self.bad]
        return [Rejection(np.array(rows, np.intp), self.code, (self.reason,))] if rows else []

    def score(self, state: Any, pod: Any, nodes: NodeView) -> NodeScores:
        self.names.append(nodes.names())
        if self.scores is not None:
            return self.scores
        return np.array([int(name[1:]) for name in nodes.names()], np.int64)


class CachedEvaluation:
    """The cache entry of one signature, read directly."""

    def __init__(self, *plugins: Any) -> None:
        self.attempts = Attempts(*(plugins or (Bad, Rank)), nodes=FOUR)
        self.entry = self.attempts.entry
        self.nodes = self.attempts.cluster.lend().nodes

    def filtered(
        self, plugin: RecordedPlugin, *names: str, out: tuple[str, ...] = ()
    ) -> FilterOutcome:
        """Results of these nodes (default: all); ``out``: nodes that are rejected already."""
        nodes = self.nodes.take(self.nodes.positions(names)) if names else self.nodes
        feasible = np.array([name not in out for name in nodes.names()])
        outcome = FilterOutcome(nodes, feasible)
        rejections = self.entry.caches.filter(
            "Bad", plugin.filter, CycleState(), self.attempts.pod, nodes=nodes, feasible=feasible
        )
        outcome.add("Bad", rejections)
        return outcome

    def scored(self, plugin: RecordedPlugin, *names: str) -> NodeScores:
        nodes = self.nodes.take(self.nodes.positions(names)) if names else self.nodes
        return self.entry.caches.score(
            "Rank", plugin.score, CycleState(), self.attempts.pod, nodes=nodes
        )

    def counts(self, name: str) -> tuple[int, int]:
        row_counts = self.attempts.reuse.row_counts()[name]
        return row_counts.evaluated, row_counts.cached


# ---- Score ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [np.ones(4), np.ones(3, np.int64), [1, 2, 3, 4], None], ids=repr)
def test_an_invalid_score_result_is_not_cached_and_is_returned_unchanged(wrong: Any) -> None:
    question, plugin = CachedEvaluation(), RecordedPlugin()
    plugin.scores = "nothing" if wrong is None else wrong
    assert question.scored(plugin) is plugin.scores
    plugin.scores = None
    assert question.scored(plugin).tolist() == [1, 2, 3, 4]


# ---- rankings for several sets of skipped plugins -------------------------------------------


class Sometimes(PreFilterPlugin, PreScorePlugin, ScalarFilterPlugin, ScalarScorePlugin):
    """Reads other nodes, and skips unless the test enables it."""

    name = "Sometimes"
    scope = "cluster"

    def setup(self) -> None:
        self.filters = self.scores = True

    def pre_filter(self, state: Any, pod: Any, nodes: NodeView) -> Status | None:
        return None if self.filters else SKIP

    def pre_score(self, state: Any, pod: Any, nodes: NodeView) -> Status | None:
        return None if self.scores else SKIP

    def filter_node(self, state: Any, pod: Any, node: NodeInfo) -> Status | None:
        return unschedulable("number two") if node.name == "n2" else None

    def score_node(self, state: Any, pod: Any, node: NodeInfo) -> int:
        return 100 if node.name == "n3" else 0


def test_pods_that_different_plugins_skip_have_separate_rankings() -> None:
    attempts = Attempts(Sometimes, Bad, Rank, nodes=FOUR)
    sometimes = attempts.plugin("Sometimes")
    ways = [(filters, scores) for filters in (True, False) for scores in (True, False)]
    for number in range(24):
        sometimes.filters, sometimes.scores = ways[number % 4]
        cycle = attempts.attempt()
        fresh = attempts.fresh()
        assert cycle.choice == fresh.choice
        assert cycle.feasible_count == fresh.feasible_count
    assert len(attempts.entry.rankings) == 4
    assert not attempts.reuse.flushed_counts
    assert attempts.reuse.row_counts()["Bad"].evaluated == 4


def test_the_number_of_rankings_is_bounded_and_the_oldest_is_dropped() -> None:
    attempts = Attempts(Sometimes, Worse, Bad, Rank, nodes=FOUR)
    attempts.attempt()
    attempts.attempt()
    entry = attempts.entry
    first = last_ranking(entry)
    assert first is not None
    for name in ("A", "B", "C"):
        entry.rankings[SkipSet(frozenset({name}), None)] = first
    attempts.plugin("Sometimes").filters = False
    attempts.attempt()
    assert first.plan.skip_set not in entry.rankings
    assert len(entry.rankings) == 4
    assert attempts.reuse.flushed_counts[OTHER_PLUGINS] == 1
