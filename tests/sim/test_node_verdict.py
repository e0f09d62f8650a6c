"""One node in one attempt, as a value and as text."""

import pytest

from bayplan.framework.status import Code, Status
from bayplan.history.node_verdict import NodeVerdict, plugin_result, ruling
from bayplan.journal import AttemptRecord
from bayplan.sim.why import explain_node
from tests.sim.printing import printed
from tests.sim.records import attempt, line


def test_a_node_is_explained_with_the_result_of_each_filter_and_its_scores() -> None:
    record = attempt(result="scheduled", node="n2", feasible_count=2)
    full = Status(Code.UNSCHEDULABLE, ("Too many pods",), "NodeResourcesFit")
    verdict = NodeVerdict(
        node="n1",
        attempt=1,
        ruling=ruling(record, "n1", "", None),
        alone=(plugin_result("A", None), plugin_result("B", full)),
        scores=(line("n1", Fit=1), line("n2", Fit=3)),
        better=1,
    )
    assert printed(explain_node(verdict, record)) == (
        "0.000 s  attempt 1 at default/web: chose n2, 2 of 3 nodes feasible\n"
        "n1: feasible, not chosen\n"
        "\n"
        "Filter plugin   result for n1 alone\n"
        "─────────────────────────────────────────────\n"
        "A               no objection\n"
        "B               Too many pods (Unschedulable)\n"
        "\n"
        "score   raw   0-100   weighted, n1   weighted, n2\n"
        "─────────────────────────────────────────────────\n"
        "Fit       2       1              1              3\n"
        "total                            1              3\n"
        "\n"
        "of the others, 1 scored higher and none as high"
    )


NO_ROOM = plugin_result(
    "NodeResourcesFit", Status(Code.UNSCHEDULABLE, ("Insufficient cpu",), "NodeResourcesFit")
)
CHOSE_N1 = attempt(result="scheduled", node="n1")


@pytest.mark.parametrize(
    ("record", "node", "outcome"),
    [
        pytest.param(CHOSE_N1, "n1", "chosen", id="chosen"),
        pytest.param(CHOSE_N1, "n2", "feasible, not chosen", id="not chosen"),
        pytest.param(
            attempt(result="unschedulable", node="n1"),
            "n1",
            "chosen at first",
            id="chosen, and then rejected by Reserve or Permit",
        ),
        pytest.param(
            attempt(result="error"),
            "n1",
            "no plugin had rejected it when the attempt failed",
            id="the attempt failed",
        ),
    ],
)
def test_the_outcome_for_a_node_is_one_line(record: AttemptRecord, node: str, outcome: str) -> None:
    assert ruling(record, node, "", None) == outcome


def test_a_rejected_node_and_one_that_was_not_evaluated_have_their_reason() -> None:
    skipped = ruling(attempt(), "n1", "the node did not exist then", None)
    assert skipped == "not evaluated: the node did not exist then"
    rejected = ruling(attempt(), "n1", "", NO_ROOM)
    assert rejected == "rejected by NodeResourcesFit: Insufficient cpu (Unschedulable)"


def test_the_message_of_a_failed_attempt_comes_before_the_node() -> None:
    record = attempt(message="0/3 nodes.")
    verdict = NodeVerdict(node="n1", attempt=1, ruling=ruling(record, "n1", "", NO_ROOM))
    assert printed(explain_node(verdict, record)).splitlines()[1:] == [
        "0/3 nodes.",
        "n1: rejected by NodeResourcesFit: Insufficient cpu (Unschedulable)",
    ]
