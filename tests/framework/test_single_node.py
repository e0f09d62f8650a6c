"""A plugin written node by node, asked as if it were vectorised.

A plugin asked about one node says what it says of that node among all.
"""

import re
from typing import Any

import numpy as np
import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.single_node import (
    filter_nodes,
    row_filter_of,
    row_score_of,
    score_nodes,
    verdicts_of,
)
from bayplan.framework.status import Code, Rejection, Status, unresolvable, unschedulable
from bayplan.framework.validation import WrongAnswer, WrongNodeAnswer
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.state.columns import Rows
from bayplan.testing import SampleCluster, handle, node, pod
from tests.framework.answering import answering, cluster_of, made

# ---- scalar ---------------------------------------------------------------------------------


NAMES = ("a", "b", "c", "d")


def rejected(answers: dict[str, Any], feasible: str = "abcd") -> list[Rejection]:
    plugin = made(answering("A", filter_node=lambda state, asked, info: answers.get(info.name)))
    nodes = cluster_of(*map(node, NAMES)).lend().nodes
    mask = np.array([name in feasible for name in nodes.names()])
    return list(filter_nodes(plugin, CycleState(), pod(), nodes, feasible=mask))


def test_none_leaves_every_node_feasible() -> None:
    assert rejected({}) == []
    assert rejected({"a": Status(Code.SUCCESS)}) == []


def test_equal_answers_make_one_rejection() -> None:
    one, other = rejected(
        {"a": unschedulable("x"), "b": unschedulable("x", "y"), "c": unschedulable("x")}
    )
    assert (one.positions.tolist(), one.code, one.reasons) == ([0, 2], Code.UNSCHEDULABLE, ("x",))
    assert (other.positions.tolist(), other.reasons) == ([1], ("x", "y"))


def test_codes_are_distinguished() -> None:
    codes = {r.code for r in rejected({"a": unschedulable("x"), "b": unresolvable("x")})}
    assert codes == {Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE}


def test_filter_is_not_called_for_nodes_that_are_already_rejected() -> None:
    (rejection,) = rejected({name: unschedulable("x") for name in NAMES}, feasible="bd")
    assert rejection.positions.tolist() == [1, 3]


def test_an_error_ends_the_asking() -> None:
    found = rejected(
        {"a": unschedulable("x"), "b": Status(Code.ERROR, ("broken",)), "c": unschedulable("y")}
    )
    assert [(r.code, r.reasons) for r in found] == [
        (Code.UNSCHEDULABLE, ("x",)),
        (Code.ERROR, ("broken",)),
    ]


def test_scores_are_whole_numbers() -> None:
    plugin: Any = answering("A", score_node=lambda state, asked, info: "abcd".index(info.name))
    nodes = cluster_of(*map(node, NAMES)).lend().nodes
    found = score_nodes(made(plugin), CycleState(), pod(), nodes)
    assert (found.dtype, found.tolist()) == (np.int64, [0, 1, 2, 3])


@pytest.mark.parametrize("answer", [np.int32(7), np.uint8(7), np.int64(7)])
def test_numpys_own_whole_numbers_do(answer: Any) -> None:
    nodes = cluster_of(*map(node, NAMES)).lend().nodes
    plugin = made(answering("A", score_node=answer))
    found = score_nodes(plugin, CycleState(), pod(), nodes)
    assert (found.dtype, found.tolist()) == (np.int64, [7] * 4)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (50.5, "returned 50.5; wanted an int from 0 to 100"),
        (None, "returned nothing (is a return missing?); wanted an int from 0 to 100"),
        ("7", "returned '7'; wanted an int from 0 to 100"),
        (True, "returned True; wanted an int from 0 to 100"),
    ],
)
def test_what_is_no_whole_number_is_refused_in_the_authors_words(answer: Any, said: str) -> None:
    nodes = cluster_of(*map(node, NAMES)).lend().nodes
    plugin = made(answering("A", score_node=lambda _state, _pod, _info: answer))
    with pytest.raises(WrongNodeAnswer, match=re.escape(said)):
        score_nodes(plugin, CycleState(), pod(), nodes)


# ---- rows -----------------------------------------------------------------------------------


NO, NEVER = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def rows(*numbers: int) -> Rows:
    return np.array(numbers, np.intp)


def two() -> SampleCluster:
    return SampleCluster().add(node("n1", cpu=1), node("n2", cpu=4))


def test_the_plugins_own_form_comes_first() -> None:
    plugin = NodeResourcesFit(None, handle())
    assert row_filter_of(plugin) == plugin.filter_row
    assert row_score_of(plugin) == plugin.score_row


def test_a_part_written_node_by_node_is_called_directly() -> None:
    nodes = two().lend().nodes
    refuses = answering("No", filter_node=unschedulable("no"))(None, handle())
    takes = answering("Yes", filter_node=None)(None, handle())
    assert row_filter_of(refuses)(CycleState(), pod(), nodes.info(0)) == ((NO, ("no",)),)
    assert row_filter_of(takes)(CycleState(), pod(), nodes.info(0)) == ()
    scores = answering("Seven", score_node=7)(None, handle())
    assert row_score_of(scores)(CycleState(), pod(), nodes.info(0)) == 7


def test_a_part_written_for_arrays_is_called_with_an_array_of_one() -> None:
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
def test_an_invalid_filter_result_is_refused(how: str) -> None:
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
