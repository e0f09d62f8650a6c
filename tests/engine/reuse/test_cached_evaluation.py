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
from tests.engine.cached_attempts import Attempts, Bad, Rank, Worse, chosen, last_ranking

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


def turned_down(outcome: FilterOutcome) -> dict[str, tuple[str, ...]]:
    return {name: status.reasons for name, status in outcome.statuses().items()}


# ---- Filter ---------------------------------------------------------------------------------


def test_a_filter_evaluates_each_node_once() -> None:
    question, plugin = CachedEvaluation(), RecordedPlugin("n2", "n3")
    first = question.filtered(plugin)
    again = question.filtered(plugin)
    assert plugin.names == [["n1", "n2", "n3", "n4"]]
    assert turned_down(first) == turned_down(again) == {"n2": ("no",), "n3": ("no",)}
    assert question.counts("Bad") == (4, 4)


def test_nodes_without_cached_results_are_evaluated_when_they_are_needed() -> None:
    question, plugin = CachedEvaluation(), RecordedPlugin("n2")
    question.filtered(plugin, "n1", "n3")
    question.filtered(plugin, out=("n4",))
    assert turned_down(question.filtered(plugin)) == {"n2": ("no",)}
    assert plugin.names == [["n1", "n3"], ["n2"], ["n4"]]
    assert question.counts("Bad") == (2 + 1 + 1, 3 + 3)


def test_a_node_rejected_by_an_earlier_plugin_is_not_rejected_again() -> None:
    question, plugin = CachedEvaluation(), RecordedPlugin("n2")
    question.filtered(plugin)
    assert turned_down(question.filtered(plugin, out=("n2",))) == {}


def test_only_a_changed_node_is_evaluated_again() -> None:
    question, plugin = CachedEvaluation(), RecordedPlugin("n2")
    question.filtered(plugin)
    question.attempts.label("n3", any="thing")
    question.nodes = question.attempts.cluster.lend().nodes
    question.filtered(plugin)
    assert plugin.names[1:] == [["n3"]]


def test_an_invalid_filter_result_is_not_cached_and_is_returned_unchanged() -> None:
    question = CachedEvaluation()
    wrong = RecordedPlugin("n2", code=Code.SUCCESS)
    for _ in range(2):
        assert question.filtered(wrong).code is Code.ERROR
    right = RecordedPlugin("n2")
    assert turned_down(question.filtered(right)) == {"n2": ("no",)}
    assert right.names == [["n1", "n2", "n3", "n4"]]


class Unsigned(Bad):
    """Does not sign, so it is evaluated in full."""

    def sign_pod(self, pod: Any) -> None:
        return None


class Across(Bad):
    """Reads other nodes than the evaluated one."""

    scope = "cluster"


@pytest.mark.parametrize("plugin", [Unsigned, Across])
def test_an_uncacheable_plugin_is_evaluated_in_full_each_time(plugin: type[Bad]) -> None:
    question, recorded = CachedEvaluation(plugin, Rank), RecordedPlugin("n2")
    for _ in range(3):
        assert turned_down(question.filtered(recorded)) == {"n2": ("no",)}
    assert recorded.names == [["n1", "n2", "n3", "n4"]] * 3
    assert question.counts("Bad") == (12, 0)


@pytest.mark.parametrize("plugin", [Unsigned, Across])
def test_cacheable_plugins_are_reused_beside_an_uncacheable_one(plugin: type[Bad]) -> None:
    attempts = Attempts(plugin, Rank, nodes=FOUR)
    for _ in range(3):
        attempts.attempt()
    assert attempts.evaluated_nodes("Rank") == ["n1", "n2", "n3", "n4"]
    assert attempts.evaluated_nodes("Bad") == sorted(["n1", "n2", "n3", "n4"] * 3)
    assert not all(each.plan.is_complete for each in attempts.entry.rankings.values())


# ---- Score ----------------------------------------------------------------------------------


def test_a_score_is_computed_once() -> None:
    question, plugin = CachedEvaluation(), RecordedPlugin()
    assert question.scored(plugin, "n2", "n4").tolist() == [2, 4]
    assert question.scored(plugin).tolist() == [1, 2, 3, 4]
    assert question.scored(plugin).tolist() == [1, 2, 3, 4]
    assert plugin.names == [["n2", "n4"], ["n1", "n3"]]
    assert question.counts("Rank") == (4, 6)


@pytest.mark.parametrize("wrong", [np.ones(4), np.ones(3, np.int64), [1, 2, 3, 4], None], ids=repr)
def test_an_invalid_score_result_is_not_cached_and_is_returned_unchanged(wrong: Any) -> None:
    question, plugin = CachedEvaluation(), RecordedPlugin()
    plugin.scores = "nothing" if wrong is None else wrong
    assert question.scored(plugin) is plugin.scores
    plugin.scores = None
    assert question.scored(plugin).tolist() == [1, 2, 3, 4]


# ---- catching up ----------------------------------------------------------------------------


def cached_rows(attempts: Attempts) -> dict[str, list[bool]]:
    """Plugin → which of the four nodes have cached results."""
    entry = attempts.entry
    return {
        "Bad": (entry.caches.filters["Bad"].marks[:4] != 0).tolist(),
        "Rank": entry.caches.scores["Rank"].marks[:4].astype(bool).tolist(),
    }


def test_a_change_drops_the_results_of_the_plugins_that_read_the_changed_facet() -> None:
    attempts = Attempts(Bad, Rank, nodes=FOUR)
    attempts.attempt()
    assert cached_rows(attempts) == {"Bad": [True] * 4, "Rank": [True] * 4}
    attempts.taint("n1")
    attempts.label("n3", rank="9")
    for cache in attempts.entry.caches.all:
        cache.catch_up()
    left = [True, True, False, True]
    assert cached_rows(attempts) == {"Bad": left, "Rank": left}
    assert chosen(attempts.attempt()) == "n3"
    assert attempts.evaluated_nodes("Bad") == ["n1", "n2", "n3", "n3", "n4"]


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
