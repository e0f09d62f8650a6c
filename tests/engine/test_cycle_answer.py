"""Every form of a cycle's answer says the same as the arrays of an evaluation."""

from collections.abc import Callable

import pytest

from bayplan.engine.cycle import Cycle
from bayplan.engine.cycle_answer import CycleAnswer
from bayplan.engine.ranked_domain import DomainRows, RankedDomain
from tests.engine.cached_attempts import SEED, Attempts, Bad, Rank

LABELS: dict[str, dict[str, str]] = {
    "n1": {"rank": "3"},
    "n2": {"rank": "7"},
    "n3": {"rank": "7"},
    "n4": {"rank": "5"},
    "n5": {"bad": "yes", "rank": "9"},
}

Form = Callable[[Attempts], CycleAnswer]


def of_ranking(attempts: Attempts) -> CycleAnswer:
    return attempts.ranking()


def of_domain(attempts: Attempts) -> CycleAnswer:
    ranking = attempts.ranking()
    return RankedDomain(ranking, DomainRows().of(frozenset(LABELS), ranking.table))


def said(answer: CycleAnswer, cycle: Cycle) -> dict[str, object]:
    """What an answer says. ``cycle``: its snapshot is lent."""
    nodes = cycle.snapshot.nodes
    feasible = answer.feasible_nodes(nodes)
    table = answer.score_table(feasible)
    return {
        "feasible": (answer.feasible_count, sorted(feasible.names())),
        "evaluated": answer.evaluated_count,
        "choice": answer.choose(SEED, cycle.pod.uid, cycle.queued.attempts),
        "best": (answer.best_total(), answer.best_scores(3)),
        "table": {name: table.row(name) for name in feasible.names()},
        "reasons": answer.feasibility.reason_counts_by_plugin(),
        "statuses": answer.feasibility.outcome(nodes).statuses(),
    }


@pytest.mark.parametrize("form", [of_ranking, of_domain])
def test_each_form_says_what_the_arrays_say(form: Form) -> None:
    attempts = Attempts(Bad, Rank, nodes=LABELS)
    answer = form(attempts)
    cycle = attempts.fresh()
    expected = cycle.answer
    assert expected is not None
    result = said(answer, cycle)
    assert result == said(expected, cycle)
    assert result["reasons"] == {("Bad", "Unschedulable", "yes"): 1}


def test_a_cycle_that_evaluated_no_node_has_no_answer() -> None:
    attempts = Attempts(Bad, Rank, nodes={})
    cycle = attempts.attempt()
    assert (cycle.answer, cycle.feasible_count, cycle.score_table()) == (None, 0, None)
