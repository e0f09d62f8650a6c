"""A ranking that is updated row by row equals a full evaluation of all plugins.

test_reuse_machine.py compares them for drawn events. This module has what those seldom show.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.engine.cycle import Cycle
from bayplan.engine.ranking.evaluation_plan import (
    EXTREME_MOVED,
    PLUGIN_FAILED,
    EvaluationPlan,
    RankingInvalid,
    SkipSet,
    WeightedScore,
)
from bayplan.engine.ranking.node_equivalence import NodeEquivalence
from bayplan.engine.ranking.node_feasibility import FEASIBLE, NO_NODE, NodeFeasibility
from bayplan.engine.ranking.row_cache import CachedFilterResults, CachedScores
from bayplan.framework.arithmetic import normalized
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import SKIP, Code, Rejection, unschedulable
from bayplan.framework.types import Normalizer
from bayplan.state.change_log import Facet
from bayplan.testing import SampleCluster, node, pod
from tests.engine.cached_attempts import Attempts, Bad, Rank
from tests.framework.answering import answering

FOUR: dict[str, dict[str, str]] = {"n1": {}, "n2": {}, "n3": {}, "n4": {}}


def some(count: int) -> SampleCluster:
    return SampleCluster().add(*(node(f"n{row}") for row in range(count)))


# ---- failing plugins ------------------------------------------------------------------------


def changed() -> Attempts:
    """Attempts with a ranking of three nodes, one of which changed since."""
    ranks = {"n1": {"rank": "3"}, "n2": {"rank": "7"}, "n3": {"rank": "5"}}
    attempts = Attempts(Bad, Rank, nodes=ranks)
    attempts.ranking()
    attempts.label("n1", rank="4")
    return attempts


@pytest.mark.parametrize(
    ("plugin", "failure"),
    [
        ("Bad", RuntimeError("boom")),
        ("Bad", "no status"),
        ("Rank", RuntimeError("boom")),
        ("Rank", "no number"),
        ("Rank", 101),
        ("Rank", -1),
    ],
)
def test_a_failing_plugin_is_evaluated_in_a_full_cycle(plugin: str, failure: Any) -> None:
    attempts = changed()
    attempts.plugin(plugin).failure = failure
    cycle = attempts.attempt()
    assert cycle.status is not None
    assert (cycle.status.code, cycle.status.plugin) == (Code.ERROR, plugin)
    assert cycle.status == attempts.fresh().status
    assert attempts.reuse.flushed_counts == {PLUGIN_FAILED: 1}


def test_a_plugin_that_fails_for_one_row_or_for_many_makes_the_ranking_invalid() -> None:
    attempts, rows = changed(), np.array([0, 1], np.intp)
    attempts.plugin("Bad").failure = attempts.plugin("Rank").failure = OSError("disk")
    now = attempts.evaluator()
    for ask in (
        lambda: now.filter_row("Bad", 0),
        lambda: now.score_row("Rank", 0),
        lambda: now.filter_rows("Bad", rows),
        lambda: now.score_rows("Rank", rows),
    ):
        with pytest.raises(RankingInvalid) as problem:
            ask()
        assert problem.value.reason == PLUGIN_FAILED


@pytest.mark.parametrize("wrong", [np.ones(4), np.ones(3, np.int64), [1, 2], "nothing"], ids=repr)
def test_an_invalid_score_result_is_not_cached_and_is_returned_unchanged(wrong: Any) -> None:
    attempts = Attempts(Bad, Rank, nodes=FOUR)
    nodes, state = attempts.cluster.lend().nodes, CycleState()

    def scored(result: Any) -> Any:
        score = attempts.entry.caches.score
        return score("Rank", lambda *_: result, state, attempts.pod, nodes=nodes)

    assert scored(wrong) is wrong
    assert scored(np.arange(4)).tolist() == [0, 1, 2, 3]


# ---- plugins that skip, and plugins that are not cached -------------------------------------


def decision(cycle: Cycle) -> tuple[object, ...]:
    table, outcome = cycle.score_table(), cycle.filter_outcome()
    assert table is not None
    assert outcome is not None
    reasons = outcome.reason_counts_by_plugin()
    return cycle.choice, outcome.feasible.tolist(), reasons, table.totals.tolist()


def test_pods_that_different_plugins_skip_have_separate_rankings() -> None:
    skips = {"filter": False, "score": False}
    sometimes = answering(
        "Sometimes",
        pre_filter=lambda *_: SKIP if skips["filter"] else None,
        pre_score=lambda *_: SKIP if skips["score"] else None,
        filter_node=lambda state, pod, node: unschedulable("no") if node.name == "n2" else None,
        score_node=lambda state, pod, node: 100 * (node.name == "n3"),
        scope="cluster",
    )
    attempts = Attempts(sometimes, Bad, Rank, nodes=FOUR)
    for number in range(24):
        skips["filter"], skips["score"] = number % 4 > 1, number % 2 == 1
        assert decision(attempts.attempt()) == decision(attempts.fresh())
    assert len(attempts.entry.rankings) == 4
    assert not attempts.reuse.flushed_counts
    assert attempts.reuse.row_counts()["Bad"].evaluated == 4


class MaxRank(Rank):
    """Is normalised."""

    name = "MaxRank"
    normalizer = Normalizer.MAX


def not_the_first(state: Any, pod: Any, nodes: Any, feasible: Any) -> list[Rejection]:
    """Read all nodes."""
    first = np.array([name == min(nodes.names()) for name in nodes.names()])
    return [Rejection(first, Code.UNSCHEDULABLE, ("comes first",))]


def test_a_score_shared_by_all_nodes_is_cached_until_scores_differ() -> None:
    first = answering("NotTheFirst", filter=not_the_first, scope="cluster")
    attempts = Attempts(Bad, first, MaxRank, nodes={f"n{n}": {"rank": "2"} for n in range(5)})
    for _ in range(3):
        attempts.attempt()
    cycle = attempts.attempt()
    assert cycle.ranking is not None
    assert cycle.ranking.plan.called_scores == []
    assert decision(cycle) == decision(attempts.fresh())
    attempts.label("n4", rank="1")
    cycle = attempts.attempt()
    assert cycle.ranking is None
    assert attempts.reuse.flushed_counts[EXTREME_MOVED] == 1
    assert decision(cycle) == decision(attempts.fresh())


# ---- rows -----------------------------------------------------------------------------------


def test_a_row_without_a_node_is_neither_feasible_nor_rejected() -> None:
    cluster = some(5)
    nothing_is_missing: Any = None
    table, nodes = cluster.cache.table, cluster.lend().nodes
    results = CachedFilterResults(table, Facet.LABELS)
    for row in range(5):
        results.learn_one(row, ())
    feasibility = NodeFeasibility([("A", results)], table.capacity)
    feasibility.read(nodes.table.rows, nothing_is_missing)
    assert len(feasibility) > 5
    assert feasibility.numbers[5] == NO_NODE
    feasibility.set(2, NO_NODE)
    assert feasibility.feasible_rows().tolist() == [0, 1, 3, 4]
    assert feasibility.outcome(nodes).statuses() == {}


@pytest.mark.parametrize("is_needed", [True, False])
def test_a_missing_result_of_an_equivalent_node_is_computed_if_it_is_needed(
    is_needed: bool,
) -> None:
    cluster = some(3)
    table = cluster.cache.table
    results, row = CachedFilterResults(table, Facet.REQUESTED, True), table.row_of["n1"]
    plan = EvaluationPlan(SkipSet(frozenset(), None), filters=[("A", results)], scores=[])
    nodes = NodeEquivalence(table, plan)
    results.learn_one(row, ((Code.UNSCHEDULABLE, ("full",)),))
    cluster.add(pod("p", node="n1"))
    nodes.learn(row, FEASIBLE if is_needed else FEASIBLE + 1, 0)
    number = table.resources.equivalence.numbers[row]
    assert (nodes.renew(row, number, table.log.generation) is None) is is_needed
    assert is_needed or not results.marks[row], "the results were dropped"


SCORES = st.integers(0, 6)


@given(
    st.sampled_from(list(Normalizer)),
    st.lists(SCORES, min_size=2, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), SCORES), max_size=8),
)
def test_normalizing_row_by_row_equals_normalizing_all_rows(
    normalizer: Normalizer, raw: list[int], moves: list[tuple[int, int]]
) -> None:
    cluster = some(len(raw))
    nodes, cache = cluster.lend().nodes, CachedScores(cluster.cache.table, Facet.LABELS)
    cache.learn(nodes.table.rows, np.array(raw, np.int64))
    share = WeightedScore("Any", 3, normalizer, cache)
    share.start(nodes)
    for row, score in moves:
        place, before = row % len(raw), (min(raw), max(raw))
        raw[place] = score
        try:
            share.remove_row(place)
            cache.learn_one(place, score)
            added = share.add_row(place)
            share.check()
        except RankingInvalid:
            # Allowed only if an extreme moved, or if all scores were equal.
            assert normalizer is not Normalizer.NONE
            assert (min(raw), max(raw)) != before
            return
        expected = normalized(normalizer, np.array(raw, np.int64)) * 3
        assert added == expected[place]
        for each in range(len(raw)):
            share.remove_row(each)
            assert share.add_row(each) == expected[each]
