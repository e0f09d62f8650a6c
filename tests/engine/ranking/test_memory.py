"""What the caches of a ranking remember is bounded, and takes the memory that it says.

test_reuse_machine.py compares what they answer with an evaluation of all nodes.
"""

from typing import Any

import numpy as np

from bayplan.engine.ranking.evaluation_plan import (
    OTHER_PLUGINS,
    EvaluationPlan,
    SkipSet,
    WeightedScore,
)
from bayplan.engine.ranking.node_equivalence import NodeEquivalence
from bayplan.engine.ranking.node_feasibility import FEASIBLE
from bayplan.engine.ranking.row_cache import EQUIVALENT_MAX, CachedFilterResults, CachedScores
from bayplan.framework.status import SKIP, Code
from bayplan.framework.types import Normalizer
from bayplan.state.change_log import Facet
from bayplan.testing import SampleCluster, node
from tests.engine.cached_attempts import Attempts, Bad, Rank, last_ranking
from tests.framework.answering import answering

NO = Code.UNSCHEDULABLE


def some(count: int = 3) -> SampleCluster:
    return SampleCluster().add(*(node(f"n{row}") for row in range(count)))


def test_more_filter_results_are_cached_than_a_byte_can_number() -> None:
    results = CachedFilterResults(some(300).cache.table, Facet.LABELS)
    for row in range(300):
        results.learn_one(row, ((NO, (f"reason {row}",)),))
    assert [results.verdicts[number][0][1] for number in results.marks[:300]] == [
        (f"reason {row}",) for row in range(300)
    ]


def test_a_score_shared_by_all_rows_takes_no_memory_until_scores_differ() -> None:
    cluster = some()
    scores = CachedScores(cluster.cache.table, Facet.LABELS)
    scores.learn(np.array([0, 1], np.intp), np.array([7, 7], np.int64))
    assert scores.scores is None
    scores.learn_one(2, 9)
    assert scores.of(cluster.lend().nodes.table.index, 3).tolist() == [7, 7, 9]
    assert scores.scores is not None
    assert scores.scores.dtype == np.uint8


def test_the_number_of_remembered_results_is_bounded() -> None:
    table = some(EQUIVALENT_MAX + 1).cache.table
    results = CachedScores(table, Facet.REQUESTED, follows_amounts=True)
    for row in range(EQUIVALENT_MAX + 1):
        table.resources.equivalence.set_unique(row)
        results.learn_one(row, 1)
    assert results.recall(EQUIVALENT_MAX) == 1 and results.recall(0) is None


def test_the_number_of_remembered_equivalent_nodes_is_bounded() -> None:
    table = some().cache.table
    results = CachedFilterResults(table, Facet.REQUESTED, True)
    plan = EvaluationPlan(SkipSet(frozenset(), None), filters=[("A", results)], scores=[])
    nodes = NodeEquivalence(table, plan)
    for _ in range(EQUIVALENT_MAX + 1):
        table.resources.equivalence.set_unique(0)
        nodes.learn(0, FEASIBLE, 1)
    assert nodes.find(0) is not None
    nodes.learn(1, FEASIBLE, 2)
    assert nodes.find(1) == (FEASIBLE, 2)


def test_extremes_take_eight_bytes_a_row() -> None:
    cluster = some(2)
    table, nodes = cluster.cache.table, cluster.lend().nodes
    scores = CachedScores(table, Facet.LABELS)
    scores.learn(nodes.table.rows, np.array([1, 2], np.int64))
    share = WeightedScore("Any", 3, Normalizer.MAX, scores)
    share.start(nodes)
    assert share.bytes_used == 8 * table.capacity


def test_a_ranking_of_more_nodes_takes_more_bytes() -> None:
    few, many = (
        Attempts(Bad, Rank, nodes={f"n{n}": {"rank": "1"} for n in range(count)}).ranking()
        for count in (3, 3000)
    )
    assert few.bytes_used < many.bytes_used < 3000 * 40


def test_the_number_of_rankings_is_bounded_and_the_oldest_is_dropped() -> None:
    statuses: list[Any] = [None]
    sometimes = answering("Sometimes", pre_filter=lambda *_: statuses[-1], filter_node=None)
    attempts = Attempts(sometimes, Bad, Rank, nodes={"n1": {}, "n2": {}})
    attempts.attempt()
    attempts.attempt()
    entry, first = attempts.entry, last_ranking(attempts.entry)
    assert first is not None
    for name in ("A", "B", "C"):
        entry.rankings[SkipSet(frozenset({name}), None)] = first
    statuses.append(SKIP)
    attempts.attempt()
    assert first.plan.skip_set not in entry.rankings
    assert len(entry.rankings) == 4
    assert attempts.reuse.flushed_counts[OTHER_PLUGINS] == 1
