"""A part of a ranking has the same results as an evaluation of its nodes."""

from bayplan.engine.cycle import Cycle
from bayplan.engine.ranked_domain import (
    CountedContent,
    DomainRows,
    RankedDomain,
)
from bayplan.engine.schedule_one import CycleRunner
from bayplan.framework.status import Code
from bayplan.framework.types import QueuedPodInfo
from bayplan.queue.nominator import Nominator
from tests.engine.cached_attempts import SEED, Attempts, Bad, Rank

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


def test_the_rejections_are_those_of_the_domain() -> None:
    attempts = Attempts(Bad, Rank, nodes=LABELS)
    part, cycle = domain(attempts, "n4", "n5"), evaluated(attempts, "n4", "n5")
    nodes, expected = cycle.snapshot.nodes, cycle.feasibility
    assert expected is not None
    assert part.feasibility.reason_counts() == expected.reason_counts()
    assert part.feasibility.outcome(nodes).statuses() == expected.outcome(nodes).statuses()
    absent = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    codes, expected_codes = part.feasibility.codes(nodes, absent), expected.codes(nodes, absent)
    assert codes.tolist() == expected_codes.tolist()
    assert not domain(attempts, "n1", "n2").feasibility.reason_counts()


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
