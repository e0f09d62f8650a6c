"""Cached results stay until their row changes in a facet that the plugin reads."""

import numpy as np
import pytest

from bayplan.engine.ranking.row_cache import (
    CACHED,
    EQUIVALENT_MAX,
    PASSES,
    UNKNOWN,
    CachedFilterResults,
    CachedScores,
)
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.status import Code, Rejection
from bayplan.state.change_log import ALL_ROWS, Facet
from bayplan.state.columns import Rows
from bayplan.testing import SampleCluster, node, pod

NO = Code.UNSCHEDULABLE


def some(count: int = 3) -> SampleCluster:
    return SampleCluster().add(*(node(f"n{row}") for row in range(count)))


def rows(*numbers: int) -> Rows:
    return np.array(numbers, np.intp)


def outcome(cluster: SampleCluster, *rejections: Rejection) -> FilterOutcome:
    nodes = cluster.lend().nodes
    filter_outcome = FilterOutcome(nodes, np.ones(len(nodes), np.bool_))
    filter_outcome.add("Any", rejections)
    cluster.take_back()
    return filter_outcome


def test_cached_filter_results_are_returned_unchanged() -> None:
    cluster = some()
    results = CachedFilterResults(cluster.cache.table, Facet.LABELS)
    assert results.marks[:3].tolist() == [UNKNOWN] * 3
    results.learn(
        rows(0, 1), outcome(cluster, Rejection(rows(1), NO, ("a",)), Rejection(rows(1), NO, ("b",)))
    )
    assert results.learn_one(2, ((NO, ("a",)),)) == results.marks[2]
    nodes = cluster.lend().nodes
    rejections = results.rejections(nodes.table.index, np.array([True, True, False]))
    assert results.marks[0] == PASSES
    assert [(r.code, r.reasons, np.flatnonzero(r.positions).tolist()) for r in rejections] == [
        (NO, ("a",), [1]),
        (NO, ("b",), [1]),
    ]


def test_more_filter_results_are_cached_than_a_byte_can_number() -> None:
    cluster = some(300)
    results = CachedFilterResults(cluster.cache.table, Facet.LABELS)
    for row in range(300):
        results.learn_one(row, ((NO, (f"reason {row}",)),))
    assert [results.verdicts[number][0][1] for number in results.marks[:300]] == [
        (f"reason {row}",) for row in range(300)
    ]


@pytest.mark.parametrize("by", ["catch_up", "keep_up"])
@pytest.mark.parametrize(("facets", "is_cached"), [(Facet.REQUESTED, False), (Facet.TAINTS, True)])
def test_a_row_is_dropped_when_a_facet_that_the_plugin_reads_changes(
    by: str, facets: Facet, is_cached: bool
) -> None:
    cluster = some()
    table = cluster.cache.table
    verdicts, scores = CachedFilterResults(table, facets), CachedScores(table, facets)
    for row in range(3):
        verdicts.learn_one(row, ())
        scores.learn_one(row, row)
    before = table.log.generation
    cluster.add(pod("p", node="n1"))
    for cache in (verdicts, scores):
        if by == "catch_up":
            cache.catch_up()
        else:
            cache.forget_changed(before, [(1, int(Facet.REQUESTED | Facet.PODS))])
    assert (verdicts.marks[:3] != UNKNOWN).tolist() == [True, is_cached, True]
    assert (scores.marks[:3] != UNKNOWN).tolist() == [True, is_cached, True]
    assert verdicts.generation == scores.generation == table.log.generation


def test_a_score_shared_by_all_rows_takes_no_memory_until_scores_differ() -> None:
    cluster = some()
    scores = CachedScores(cluster.cache.table, Facet.LABELS)
    scores.learn(rows(0, 1), np.array([7, 7], np.int64))
    assert scores.same == 7
    assert scores.scores is None
    nodes = cluster.lend().nodes
    assert scores.of(nodes.take([0, 1]).table.index, 2).tolist() == [7, 7]
    scores.learn_one(2, 9)
    assert scores.same is None
    assert scores.of(nodes.table.index, 3).tolist() == [7, 7, 9]
    assert scores.scores is not None
    assert scores.scores.dtype == np.uint8


@pytest.mark.parametrize("score", [-1, 256, 2**40])
def test_a_score_beyond_one_byte_widens_the_column(score: int) -> None:
    cluster = some()
    scores = CachedScores(cluster.cache.table, Facet.LABELS)
    scores.learn(rows(0, 1), np.array([1, 2], np.int64))
    scores.learn_one(2, score)
    assert scores.of(cluster.lend().nodes.table.index, 3).tolist() == [1, 2, score]


def test_the_row_cache_grows_with_the_table() -> None:
    cluster = some()
    table = cluster.cache.table
    verdicts, scores = CachedFilterResults(table, Facet.LABELS), CachedScores(table, Facet.LABELS)
    verdicts.learn_one(2, ())
    scores.learn(rows(1, 2), np.array([5, 6], np.int64))
    cluster.add(*(node(f"more{row}") for row in range(table.capacity)))
    verdicts.catch_up()
    scores.catch_up()
    assert len(verdicts.marks) == len(scores.marks) == table.capacity
    assert verdicts.marks[2] == PASSES
    assert scores.of_row(2) == 6
    assert not scores.marks[3:].any()


def test_all_rows_can_be_dropped() -> None:
    cluster = some()
    scores = CachedScores(cluster.cache.table, Facet.LABELS)
    scores.learn(rows(0, 1), np.array([5, 6], np.int64))
    scores.forget_all()
    assert not scores.marks.any()


# ---- equivalent rows ------------------------------------------------------------------------


def of_amounts(cluster: SampleCluster) -> CachedScores:
    return CachedScores(cluster.cache.table, Facet.REQUESTED, follows_amounts=True)


def number_of(cluster: SampleCluster, row: int) -> int:
    return cluster.cache.table.resources.equivalence.numbers[row]


def test_the_result_of_a_row_is_recalled_for_an_equivalent_row() -> None:
    cluster = some(2)
    results, scores = of_amounts(cluster), CachedScores(cluster.cache.table, Facet.REQUESTED)
    results.learn_one(0, 70)
    scores.learn_one(0, 70)
    assert (results.recall(1), results.of_row(1), results.marks[1]) == (70, 70, CACHED)
    assert scores.recall(1) is None and not scores.marks[1]


def test_a_row_that_becomes_equivalent_is_renewed() -> None:
    cluster = some(2)
    for name in ("n0", "n1"):
        cluster.add(pod(f"on-{name}", node=name))
    results = of_amounts(cluster)
    results.learn_one(0, 70)
    since = results.generation
    cluster.add(pod("more", node="n1"))
    assert not results.renew(since, 1, number_of(cluster, 1)), "no equivalent row was evaluated"
    cluster.cache.remove_pod("uid-default/more")
    assert results.renew(since, 1, number_of(cluster, 1))
    assert (results.of_row(1), results.generation) == (70, cluster.cache.table.log.generation)
    assert not results.renew(since, 1, number_of(cluster, 1)), "the row is current already"


def test_a_change_of_all_rows_makes_no_rows_equivalent() -> None:
    cluster = some(2)
    results = of_amounts(cluster)
    results.learn_one(0, 70)
    cluster.cache.table.log.note(ALL_ROWS, Facet.REQUESTED)
    results.catch_up()
    assert results.recall(1) is None
    results.learn_one(0, 70)
    results.forget_all()
    assert results.recall(1) is None


def test_the_number_of_remembered_results_is_bounded() -> None:
    cluster = some(EQUIVALENT_MAX + 1)
    results = of_amounts(cluster)
    for row in range(EQUIVALENT_MAX + 1):
        cluster.cache.table.resources.equivalence.set_unique(row)
        results.learn_one(row, 1)
    assert results.recall(EQUIVALENT_MAX) == 1 and results.recall(0) is None
