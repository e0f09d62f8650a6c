"""A plugin written node by node, asked as if it were vectorised."""

import re
from typing import Any

import numpy as np
import pytest

from bayplan.framework.answers import WrongNodeAnswer
from bayplan.framework.interface import CycleState
from bayplan.framework.scalar import filter_nodes, score_nodes
from bayplan.framework.status import Code, Rejection, Status, unresolvable, unschedulable
from bayplan.testing import node, pod
from tests.framework.answering import answering, cluster_of, made

NAMES = ("a", "b", "c", "d")


def rejected(answers: dict[str, Any], feasible: str = "abcd") -> list[Rejection]:
    plugin = made(answering("A", filter_node=lambda state, asked, info: answers.get(info.name)))
    nodes = cluster_of(*map(node, NAMES)).lend().nodes
    mask = np.array([name in feasible for name in nodes.names()])
    return list(filter_nodes(plugin, CycleState(), pod(), nodes, mask))


def test_none_leaves_every_node_feasible() -> None:
    assert rejected({}) == []
    assert rejected({"a": Status(Code.SUCCESS)}) == []


def test_equal_answers_make_one_rejection() -> None:
    one, other = rejected(
        {"a": unschedulable("x"), "b": unschedulable("x", "y"), "c": unschedulable("x")}
    )
    assert (one.rows.tolist(), one.code, one.reasons) == ([0, 2], Code.UNSCHEDULABLE, ("x",))
    assert (other.rows.tolist(), other.reasons) == ([1], ("x", "y"))


def test_codes_are_told_apart() -> None:
    codes = {r.code for r in rejected({"a": unschedulable("x"), "b": unresolvable("x")})}
    assert codes == {Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE}


def test_nodes_that_are_out_already_are_not_asked() -> None:
    (rejection,) = rejected({name: unschedulable("x") for name in NAMES}, feasible="bd")
    assert rejection.rows.tolist() == [1, 3]


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
