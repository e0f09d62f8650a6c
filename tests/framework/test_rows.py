"""A plugin asked about one node says what it says of that node among all."""

from typing import Any

import numpy as np
import pytest

from bayplan.framework.answers import WrongAnswer
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.interface import CycleState
from bayplan.framework.rows import row_filter_of, row_score_of, verdicts_of
from bayplan.framework.status import Code, Rejection, Status, unschedulable
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.state.columns import Rows
from bayplan.testing import SampleCluster, handle, node, pod
from tests.framework.answering import answering

NO, NEVER = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def rows(*numbers: int) -> Rows:
    return np.array(numbers, np.intp)


def two() -> SampleCluster:
    return SampleCluster().add(node("n1", cpu=1), node("n2", cpu=4))


def test_the_plugins_own_form_comes_first() -> None:
    plugin = NodeResourcesFit(None, handle())
    assert row_filter_of(plugin) == plugin.filter_row
    assert row_score_of(plugin) == plugin.score_row


def test_one_written_node_by_node_is_asked_as_it_is() -> None:
    nodes = two().lend().nodes
    refuses = answering("No", filter_node=unschedulable("no"))(None, handle())
    takes = answering("Yes", filter_node=None)(None, handle())
    assert row_filter_of(refuses)(CycleState(), pod(), nodes.info(0)) == ((NO, ("no",)),)
    assert row_filter_of(takes)(CycleState(), pod(), nodes.info(0)) == ()
    scores = answering("Seven", score_node=7)(None, handle())
    assert row_score_of(scores)(CycleState(), pod(), nodes.info(0)) == 7


def test_one_written_for_arrays_is_asked_about_an_array_of_one() -> None:
    nodes = two().lend().nodes
    codes = np.array([NEVER], np.uint8)

    def refuse(state: object, asked: object, some: object, feasible: object) -> list[Rejection]:
        return [Rejection(rows(0), NO, ("cpu",)), Rejection(rows(0), NO, ("memory",), codes)]

    plugin = answering("Wide", filter=refuse, score=lambda *_: np.array([9], np.int64))
    instance = plugin(None, handle())
    answer = row_filter_of(instance)(CycleState(), pod(), nodes.info(1))
    assert answer == ((NO, ("cpu",)), (NEVER, ("memory",)))
    assert row_score_of(instance)(CycleState(), pod(), nodes.info(1)) == 9


@pytest.mark.parametrize("how", ["filter", "filter_node"])
def test_what_a_filter_may_not_answer_is_refused(how: str) -> None:
    is_by_node = how == "filter_node"
    answer: Any = Status(Code.WAIT) if is_by_node else [Rejection(rows(0), Code.WAIT, ("no",))]
    answers: dict[str, Any] = {how: answer}
    plugin = answering("Waits", **answers)(None, handle())
    with pytest.raises(WrongAnswer, match="rejection"):
        row_filter_of(plugin)(CycleState(), pod(), two().lend().nodes.info(0))


def test_all_that_was_said_of_a_node_is_its_verdict() -> None:
    nodes = two().lend().nodes
    outcome = FilterOutcome(nodes, np.ones(2, np.bool_))
    outcome.add("Any", [Rejection(rows(0, 1), NO, ("a",)), Rejection(rows(1), NEVER, ("b", "c"))])
    assert verdicts_of(outcome) == {
        0: ((NO, ("a",)),),
        1: ((NO, ("a",)), (NEVER, ("b", "c"))),
    }
