"""A part of a ranking has the same results as an evaluation of its nodes."""

import pytest

from bayplan.engine.cycle import Cycle
from bayplan.engine.ranked_domain import (
    CountedContent,
    DomainRows,
    RankedDomain,
    answers_for_domains,
)
from bayplan.engine.schedule_one import CycleRunner
from bayplan.framework.status import Code
from bayplan.framework.types import QueuedPodInfo
from bayplan.queue.nominator import Nominator
from tests.engine.cached_attempts import SEED, Attempts, Bad, MaxRank, Rank, chosen

LABELS: dict[str, dict[str, str]] = {
    "n1": {"rank": "3"},
    "n2": {"rank": "7"},
    "n3": {"rank": "5"},
    "n4": {"rank": "5"},
    "n5": {"bad": "yes", "rank": "9"},
}


def domain(attempts: Attempts, *names: str) -> RankedDomain:
    ranking = attempts.ranking()
    return RankedDomain(ranking, DomainRows().of(frozenset(names), ranking.table))


def evaluated(attempts: Attempts, *names: str) -> Cycle:
    """An attempt within these nodes, without the cache."""
    queued = QueuedPodInfo(attempts.pod, 0.0, attempts=1)
    cycle = Cycle(queued, attempts.framework, attempts.cluster.lend())
    cycle.within = frozenset(names)
    CycleRunner(Nominator(), SEED, ()).run(cycle)
    return cycle


@pytest.mark.parametrize("names", [("n1", "n2"), ("n3", "n4"), ("n1", "n3", "n4", "n5")])
def test_the_best_node_of_the_domain_is_chosen(names: tuple[str, ...]) -> None:
    attempts = Attempts(Bad, Rank, nodes=LABELS)
    part = domain(attempts, *names)
    cycle = evaluated(attempts, *names)
    assert part.choose(SEED, attempts.pod.uid, 1) == cycle.choice
    assert cycle.table is not None
    assert part.best_total() == cycle.table.totals.max()


def test_the_only_feasible_node_is_taken() -> None:
    attempts = Attempts(Bad, Rank, nodes=LABELS)
    part = domain(attempts, "n1", "n5")
    assert part.feasible_count == 1
    assert part.only().node_name == chosen(evaluated(attempts, "n1", "n5")) == "n1"


def test_the_rejections_are_those_of_the_domain() -> None:
    attempts = Attempts(Bad, Rank, nodes=LABELS)
    part, cycle = domain(attempts, "n4", "n5"), evaluated(attempts, "n4", "n5")
    nodes, expected = cycle.snapshot.nodes, cycle.feasibility
    assert expected is not None
    assert part.feasibility.reason_counts() == expected.reason_counts()
    assert part.feasibility.statuses_among(nodes) == expected.statuses_among(nodes)
    absent = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    codes, expected_codes = part.feasibility.codes(nodes, absent), expected.codes(nodes, absent)
    assert codes.tolist() == expected_codes.tolist()
    assert not domain(attempts, "n1", "n2").feasibility.reason_counts()


def test_the_best_scores_come_first_and_equal_nodes_in_draw_order() -> None:
    attempts = Attempts(Bad, Rank, nodes=LABELS)
    scores = domain(attempts, "n1", "n2", "n3", "n4", "n5").best_scores(3)
    assert [score.total for score in scores] == [7, 5, 5]
    assert scores[0].node == "n2"
    table = attempts.cluster.cache.table
    drawn = [table.names[row] for row in table.draw_order().tolist()]
    assert [score.node for score in scores[1:]] == sorted(("n3", "n4"), key=drawn.index)


def test_scores_that_depend_on_other_nodes_are_not_reused_for_a_domain() -> None:
    assert answers_for_domains(Attempts(Bad, Rank, nodes=LABELS).ranking())
    assert not answers_for_domains(Attempts(Bad, MaxRank, nodes=LABELS).ranking())


def test_rows_of_the_domain_are_updated_when_nodes_are_added() -> None:
    attempts, rows = Attempts(Bad, Rank, nodes=LABELS), DomainRows()
    table, names = attempts.cluster.cache.table, frozenset(("n1", "n9"))
    assert len(rows.of(names, table)) == 1
    assert rows.of(names, table) is rows.of(names, table)
    attempts.add("n9", rank="1")
    assert len(rows.of(names, table)) == 2


def test_a_changed_row_is_counted_again_without_the_others() -> None:
    attempts = Attempts(Bad, Rank, nodes=LABELS)
    ranking = attempts.ranking()
    rows = DomainRows().of(frozenset(LABELS), ranking.table)
    counted, before = CountedContent(ranking, rows), CountedContent(ranking, rows).content()
    for name, bad in (("n2", "yes"), ("n5", "no"), ("n3", "no")):
        attempts.label(name, bad=bad, rank="4")
        attempts.attempt()
        assert attempts.ranking() is ranking
        counted.renew(ranking, [ranking.table.row_of[name]])
        assert counted.content() == CountedContent(ranking, rows).content()
    assert counted.content() != before
