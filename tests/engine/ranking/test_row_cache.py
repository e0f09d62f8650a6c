"""Cached results stay until their row changes in a facet that the plugin reads."""

import numpy as np

from bayplan.engine.ranking.row_cache import (
    EQUIVALENT_MAX,
    CachedFilterResults,
    CachedScores,
)
from bayplan.framework.status import Code
from bayplan.state.change_log import Facet
from bayplan.state.columns import Rows
from bayplan.testing import SampleCluster, node

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


def test_the_number_of_remembered_results_is_bounded() -> None:
    cluster = some(EQUIVALENT_MAX + 1)
    results = of_amounts(cluster)
    for row in range(EQUIVALENT_MAX + 1):
        cluster.cache.table.resources.equivalence.set_unique(row)
        results.learn_one(row, 1)
    assert results.recall(EQUIVALENT_MAX) == 1 and results.recall(0) is None
