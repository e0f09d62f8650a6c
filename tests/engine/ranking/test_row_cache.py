"""Cached results stay until their row changes in a facet that the plugin reads."""

import numpy as np
import pytest

from bayplan.engine.ranking.row_cache import (
    EQUIVALENT_MAX,
    UNKNOWN,
    CachedFilterResults,
    CachedScores,
)
from bayplan.framework.status import Code
from bayplan.state.change_log import Facet
from bayplan.state.columns import Rows
from bayplan.testing import SampleCluster, node, pod

NO = Code.UNSCHEDULABLE


def some(count: int = 3) -> SampleCluster:
    return SampleCluster().add(*(node(f"n{row}") for row in range(count)))


def rows(*numbers: int) -> Rows:
    return np.array(numbers, np.intp)


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


# ---- equivalent rows ------------------------------------------------------------------------


def of_amounts(cluster: SampleCluster) -> CachedScores:
    return CachedScores(cluster.cache.table, Facet.REQUESTED, follows_amounts=True)


def test_a_row_that_becomes_equivalent_is_renewed() -> None:
    cluster = some(2)
    for name in ("n0", "n1"):
        cluster.add(pod(f"on-{name}", node=name))
    results = of_amounts(cluster)
    results.learn_one(0, 70)
    cluster.add(pod("more", node="n1"))
    results.catch_up()
    assert results.recall(1) is None, "no equivalent row was evaluated"
    cluster.cache.remove_pod("uid-default/more")
    results.catch_up()
    assert (results.recall(1), results.of_row(1)) == (70, 70)


def test_the_number_of_remembered_results_is_bounded() -> None:
    cluster = some(EQUIVALENT_MAX + 1)
    results = of_amounts(cluster)
    for row in range(EQUIVALENT_MAX + 1):
        cluster.cache.table.resources.equivalence.set_unique(row)
        results.learn_one(row, 1)
    assert results.recall(EQUIVALENT_MAX) == 1 and results.recall(0) is None
