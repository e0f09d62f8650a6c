"""What is kept is what was learnt, until its row changes in what the plugin reads."""

import numpy as np
import pytest

from bayplan.engine.kept_answers import PASSES, UNKNOWN, KeptScores, KeptVerdicts
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.status import Code, Rejection
from bayplan.state.change_log import Facet
from bayplan.state.columns import Rows
from bayplan.testing import SampleCluster, node, pod

NO = Code.UNSCHEDULABLE


def some(count: int = 3) -> SampleCluster:
    return SampleCluster().add(*(node(f"n{row}") for row in range(count)))


def rows(*numbers: int) -> Rows:
    return np.array(numbers, np.intp)


def outcome(cluster: SampleCluster, *rejections: Rejection) -> FilterOutcome:
    nodes = cluster.lend().nodes
    found = FilterOutcome(nodes, np.ones(len(nodes), np.bool_))
    found.add("Any", rejections)
    cluster.take_back()
    return found


def test_verdicts_are_told_as_they_were_learnt() -> None:
    cluster = some()
    kept = KeptVerdicts(cluster.cache.table, Facet.LABELS)
    assert kept.ids[:3].tolist() == [UNKNOWN] * 3
    kept.learn(
        rows(0, 1), outcome(cluster, Rejection(rows(1), NO, ("a",)), Rejection(rows(1), NO, ("b",)))
    )
    assert kept.learn_one(2, ((NO, ("a",)),)) == kept.ids[2]
    nodes = cluster.lend().nodes
    told = kept.rejections(nodes, np.array([True, True, False]))
    assert kept.ids[0] == PASSES
    assert [(r.code, r.reasons, np.flatnonzero(r.rows).tolist()) for r in told] == [
        (NO, ("a",), [1]),
        (NO, ("b",), [1]),
    ]


def test_more_verdicts_than_a_byte_counts_are_kept_all_the_same() -> None:
    cluster = some(300)
    kept = KeptVerdicts(cluster.cache.table, Facet.LABELS)
    for row in range(300):
        kept.learn_one(row, ((NO, (f"reason {row}",)),))
    assert [kept.verdicts[number][0][1] for number in kept.ids[:300]] == [
        (f"reason {row}",) for row in range(300)
    ]


@pytest.mark.parametrize("by", ["catch_up", "keep_up"])
@pytest.mark.parametrize(("facets", "is_known"), [(Facet.REQUESTED, False), (Facet.TAINTS, True)])
def test_a_row_is_forgotten_where_it_changed_in_what_is_read(
    by: str, facets: Facet, is_known: bool
) -> None:
    cluster = some()
    table = cluster.cache.table
    verdicts, scores = KeptVerdicts(table, facets), KeptScores(table, facets)
    for row in range(3):
        verdicts.learn_one(row, ())
        scores.learn_one(row, row)
    before = table.log.generation
    cluster.add(pod("p", node="n1"))
    for kept in (verdicts, scores):
        if by == "catch_up":
            kept.catch_up()
        else:
            kept.keep_up(before, [(1, int(Facet.REQUESTED | Facet.PODS))])
    assert (verdicts.ids[:3] != UNKNOWN).tolist() == [True, is_known, True]
    assert scores.known[:3].tolist() == [True, is_known, True]
    assert verdicts.generation == scores.generation == table.log.generation


def test_one_score_of_all_takes_no_room_until_another_comes() -> None:
    cluster = some()
    kept = KeptScores(cluster.cache.table, Facet.LABELS)
    kept.learn(rows(0, 1), np.array([7, 7], np.int64))
    assert kept.same == 7
    assert kept.scores is None
    nodes = cluster.lend().nodes
    assert kept.of(nodes.take([0, 1])).tolist() == [7, 7]
    kept.learn_one(2, 9)
    assert kept.same is None
    assert kept.of(nodes).tolist() == [7, 7, 9]
    assert kept.scores is not None
    assert kept.scores.dtype == np.uint8


@pytest.mark.parametrize("score", [-1, 256, 2**40])
def test_a_score_that_no_byte_holds_widens_them_all(score: int) -> None:
    cluster = some()
    kept = KeptScores(cluster.cache.table, Facet.LABELS)
    kept.learn(rows(0, 1), np.array([1, 2], np.int64))
    kept.learn_one(2, score)
    assert kept.of(cluster.lend().nodes).tolist() == [1, 2, score]


def test_what_is_kept_grows_with_the_table() -> None:
    cluster = some()
    table = cluster.cache.table
    verdicts, scores = KeptVerdicts(table, Facet.LABELS), KeptScores(table, Facet.LABELS)
    verdicts.learn_one(2, ())
    scores.learn(rows(1, 2), np.array([5, 6], np.int64))
    cluster.add(*(node(f"more{row}") for row in range(table.capacity)))
    verdicts.catch_up()
    scores.catch_up()
    assert len(verdicts.ids) == len(scores.known) == table.capacity
    assert verdicts.ids[2] == PASSES
    assert scores.of_row(2) == 6
    assert not scores.known[3:].any()


def test_everything_can_be_forgotten() -> None:
    cluster = some()
    kept = KeptScores(cluster.cache.table, Facet.LABELS)
    kept.learn(rows(0, 1), np.array([5, 6], np.int64))
    kept.forget_all()
    assert not kept.known.any()
