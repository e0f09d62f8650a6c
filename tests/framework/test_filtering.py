"""Which plugin rejected which nodes, and why.

Counts of rejected nodes.

A plugin written node by node, called like a vectorised one.

A plugin gives a node evaluated alone the same result as among all nodes.
"""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import (
    FILTER_CODES,
    Feasibility,
    FilterOutcome,
    RejectedNodes,
    RejectionEntry,
    checked_verdict,
    filter_nodes,
    row_filter_of,
    row_score_of,
    score_nodes,
)
from bayplan.framework.plugin import FilterPlugin
from bayplan.framework.status import Code, Codes, Rejection, Status, unresolvable, unschedulable
from bayplan.framework.validation import WrongAnswer
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.state.nodes import NodeView
from bayplan.testing import SampleCluster, handle, node, pod
from tests.framework.answering import answering, cluster_of, framework_of, made

# ---- filtering ------------------------------------------------------------------------------


U, UUU, PENDING = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING
NAMES = ("a", "b", "c", "d")
NODES = cluster_of(*map(node, NAMES)).lend().nodes


def outcome(*plugins: tuple[str, list[Rejection]]) -> FilterOutcome:
    filter_outcome = FilterOutcome(NODES, np.ones(4, np.bool_))
    for name, rejections in plugins:
        filter_outcome.add(name, rejections)
    return filter_outcome


def positions(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.intp)


def test_rows_are_named_by_a_mask_or_by_their_positions() -> None:
    mask = np.array([True, False, True, False])
    for rows in (mask, positions(0, 2), positions(2, 0, 2)):
        result = outcome(("A", [Rejection(rows, U, ("no",))]))
        assert result.feasible.tolist() == [False, True, False, True]
        assert result.reason_counts() == {"no": 2}


def test_all_reasons_of_the_first_plugin_count_and_none_of_later_ones() -> None:
    result = outcome(
        ("A", [Rejection(positions(0, 1), U, ("cpu",)), Rejection(positions(1), U, ("memory",))]),
        ("B", [Rejection(positions(1, 2), U, ("port",))]),
    )
    assert result.reason_counts() == {"cpu": 2, "memory": 1, "port": 1}
    assert result.status_of(1) == Status(U, ("cpu", "memory"), "A")
    assert result.status_of(2) == Status(U, ("port",), "B")
    assert result.status_of(3) is None


def test_the_strongest_code_of_a_row_wins() -> None:
    filter_outcome = outcome(
        ("A", [Rejection(positions(0, 1), U, ("x",)), Rejection(positions(1), UUU, ("y",))])
    )
    codes = [filter_outcome.status_of(position) for position in (0, 1)]
    assert [status.code for status in codes if status is not None] == [U, UUU]
    statuses = filter_outcome.node_to_status(filter_outcome.nodes)
    assert (statuses.get("a").code, statuses.get("b").code) == (U, UUU)


def test_codes_may_differ_row_by_row() -> None:
    codes = np.array([U, UUU, PENDING, U], np.uint8)
    result = outcome(("A", [Rejection(positions(0, 1, 2), U, ("x",), codes)]))
    statuses = result.node_to_status(result.nodes)
    assert [statuses.get(name).code for name in "abc"] == [U, UUU, PENDING]
    assert result.pending_plugins() == {"A"}
    assert result.reason_counts_by_plugin() == {
        ("A", "Pending", "x"): 1,
        ("A", "Unschedulable", "x"): 1,
        ("A", "UnschedulableAndUnresolvable", "x"): 1,
    }


def test_a_pending_plugin_is_distinguished() -> None:
    filter_outcome = outcome(
        ("A", [Rejection(positions(0), PENDING, ())]), ("B", [Rejection(positions(1), U, ())])
    )
    assert (filter_outcome.plugins(), filter_outcome.pending_plugins()) == ({"A", "B"}, {"A"})


def test_absent_nodes_have_the_default_status() -> None:
    filter_outcome = outcome(("A", [Rejection(positions(0), U, ("no",))]))
    statuses = filter_outcome.node_to_status(filter_outcome.nodes, unresolvable("left out"))
    assert statuses.get("a") == unschedulable("no").with_plugin("A")
    assert statuses.get("elsewhere") == unresolvable("left out")
    assert len(statuses) == 1


# ---- a node evaluated alone ----------------------------------------------------------------


def test_the_result_of_one_node_can_be_added_to_those_of_all_nodes() -> None:
    result = FilterOutcome(NODES, np.array([True, False, False, False]))
    result.settle(1, None)
    result.settle(2, unschedulable("no").with_plugin("A"))
    assert result.feasible.tolist() == [True, True, False, False]
    assert result.status_of(2) == Status(U, ("no",), "A")
    result.settle(3, Status(Code.ERROR, ("broken",)))
    assert result.error == Status(Code.ERROR, ("broken",))


# ---- what a Filter may not answer -----------------------------------------------------------


def test_an_error_of_a_filter_ends_the_attempt_with_its_reason() -> None:
    result = outcome(("A", [Rejection(positions(0), Code.ERROR, ("why",))]))
    assert result.error == Status(Code.ERROR, ('running "A" filter plugin: why',), "A")


@pytest.mark.parametrize("code", sorted(set(Code) - FILTER_CODES - {Code.ERROR}))
def test_other_codes_than_rejections_are_refused(code: Code) -> None:
    message = f"returned a rejection with {code} (why); wanted Unschedulable, "
    with pytest.raises(WrongAnswer, match=re.escape(message)):
        outcome(("A", [Rejection(positions(0), code, ("why",))]))


def test_a_wrong_code_of_some_row_is_refused() -> None:
    codes = np.array([U, Code.WAIT, U, U], np.uint8)
    with pytest.raises(WrongAnswer, match="a rejection with Wait"):
        outcome(("A", [Rejection(positions(0, 1), U, (), codes)]))


@pytest.mark.parametrize(
    ("rejection", "message"),
    [
        pytest.param(
            Rejection(np.array([True, False]), U, ("no",)),
            "returned a rejection of bool[2]; wanted bool[4], one truth value per node of the view",
            id="a mask of a wrong length",
        ),
        pytest.param(
            Rejection(positions(-1), U, ("no",)),
            "returned a rejection of position -1; wanted 0..3: positions in the view",
            id="a negative position",
        ),
        pytest.param(
            Rejection(positions(0, 4), U, ("no",)),
            "returned a rejection of position 4; wanted 0..3",
            id="a position beyond the last node",
        ),
    ],
)
def test_a_rejection_of_the_wrong_form_is_refused(rejection: Rejection, message: str) -> None:
    with pytest.raises(WrongAnswer) as caught:
        outcome(("A", [rejection]))
    assert message in str(caught.value)


# ---- against one node after another ---------------------------------------------------------

REASONS = st.lists(st.sampled_from("xyz"), max_size=2).map(tuple)
REJECTION = st.builds(
    lambda rows, code, reasons: Rejection(np.array(sorted(rows), np.intp), code, reasons),
    st.sets(st.integers(0, 3)),
    st.sampled_from((U, UUU, PENDING)),
    REASONS,
)


@given(st.lists(st.tuples(st.sampled_from("AB"), st.lists(REJECTION, max_size=3)), max_size=4))
def test_the_arrays_equal_the_results_node_by_node(
    answers: list[tuple[str, list[Rejection]]],
) -> None:
    plugins = [(f"{name}{number}", rejections) for number, (name, rejections) in enumerate(answers)]
    rejections = outcome(*plugins)
    for position in range(4):
        assert rejections.status_of(position) == node_by_node(plugins, position)
        assert bool(rejections.feasible[position]) is (node_by_node(plugins, position) is None)
    statuses = dict(rejections.node_to_status(rejections.nodes).for_each_explicit_node())
    assert statuses == {
        name: status
        for position, name in enumerate(NAMES)
        if (status := node_by_node(plugins, position)) is not None
    }
    result = sum(len(status.reasons) for status in statuses.values())
    assert rejections.reason_counts().total() == result
    assert sum(rejections.reason_counts_by_plugin().values()) == result


def node_by_node(plugins: list[tuple[str, list[Rejection]]], position: int) -> Status | None:
    """The first plugin that rejects the node."""
    for name, rejections in plugins:
        mine: list[Any] = [r for r in rejections if position in r.positions.tolist()]
        if mine:
            reasons = tuple(reason for r in mine for reason in r.reasons)
            return Status(max(r.code for r in mine), reasons, name)
    return None


# ---- rejected -------------------------------------------------------------------------------


class Rejections(Feasibility):
    """Rejections of nodes that do not exist."""

    def __init__(self, *rejections: RejectedNodes) -> None:
        self._rejections = rejections
        #: How often the statuses of the nodes were read.
        self.read_count = 0

    @property
    def feasible_count(self) -> int:
        return 0

    def rejected(self) -> Iterable[RejectedNodes]:
        return self._rejections

    def codes(self, nodes: NodeView, absent: Code) -> Codes:
        return np.full(len(nodes), absent, np.uint8)

    def outcome(self, nodes: NodeView) -> FilterOutcome:
        self.read_count += 1
        outcome = FilterOutcome(nodes, np.zeros(len(nodes), np.bool_))
        outcome.entries.append(RejectionEntry("A", Code.UNSCHEDULABLE, ("no",), np.array([0])))
        return outcome


REJECTIONS = Rejections(
    RejectedNodes("A", Code.UNSCHEDULABLE, ("cpu", "memory"), 2),
    RejectedNodes("A", Code.PENDING, ("cpu",), 3),
    RejectedNodes("B", Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("port",), 1),
)


def test_the_journal_counts_by_instance_code_and_reason() -> None:
    assert REJECTIONS.reason_counts_by_plugin() == {
        ("A", "Pending", "cpu"): 3,
        ("A", "Unschedulable", "cpu"): 2,
        ("A", "Unschedulable", "memory"): 2,
        ("B", "UnschedulableAndUnresolvable", "port"): 1,
    }


def test_the_status_of_each_node_is_computed_when_read() -> None:
    nodes, rejections = SampleCluster().add(node("n1"), node("n2")).lend().nodes, Rejections()
    statuses = rejections.node_to_status(nodes, unresolvable("left out"))
    assert statuses.codes(nodes).tolist() == [Code.UNSCHEDULABLE_AND_UNRESOLVABLE] * 2
    assert rejections.read_count == 0
    assert (statuses.get("n1"), statuses.get("n2")) == (
        Status(Code.UNSCHEDULABLE, ("no",), "A"),
        unresolvable("left out"),
    )
    assert rejections.read_count == 1
    assert rejections.node_to_status(nodes).get("n2") == unresolvable()


# ---- scalar ---------------------------------------------------------------------------------


def rejected(answers: dict[str, Any], feasible: str = "abcd") -> list[Rejection]:
    plugin = made(answering("A", filter_node=lambda state, pod, info: answers.get(info.name)))
    nodes = cluster_of(*map(node, NAMES)).lend().nodes
    mask = np.array([name in feasible for name in nodes.names()])
    return list(filter_nodes(plugin, CycleState(), pod(), nodes, feasible=mask))


def test_an_error_ends_the_evaluation() -> None:
    rejections = rejected(
        {"a": unschedulable("x"), "b": Status(Code.ERROR, ("broken",)), "c": unschedulable("y")}
    )
    assert [(r.code, r.reasons) for r in rejections] == [
        (Code.UNSCHEDULABLE, ("x",)),
        (Code.ERROR, ("broken",)),
    ]


@pytest.mark.parametrize("answer", [np.int32(7), np.uint8(7), np.int64(7)])
def test_integers_of_numpy_are_accepted_as_scores(answer: Any) -> None:
    nodes = cluster_of(*map(node, NAMES)).lend().nodes
    plugin = made(answering("A", score_node=answer))
    result = score_nodes(plugin, CycleState(), pod(), nodes)
    assert (result.dtype, result.tolist()) == (np.int64, [7] * 4)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (50.5, "returned 50.5; wanted an int from 0 to 100"),
        (None, "returned nothing (is a return missing?); wanted an int from 0 to 100"),
        ("7", "returned '7'; wanted an int from 0 to 100"),
        (True, "returned True; wanted an int from 0 to 100"),
    ],
)
def test_a_score_that_is_not_an_integer_is_refused_with_its_value(
    answer: Any, message: str
) -> None:
    nodes = cluster_of(*map(node, NAMES)).lend().nodes
    plugin = made(answering("A", score_node=lambda _state, _pod, _info: answer))
    with pytest.raises(WrongAnswer, match=re.escape(message)):
        score_nodes(plugin, CycleState(), pod(), nodes)


def test_a_wrong_result_names_the_method_and_its_line() -> None:
    class Masked(FilterPlugin):
        name = "Masked"

        def filter(self, state: Any, pod: Any, nodes: NodeView, feasible: Any) -> list[Rejection]:
            return [nodes.reject(np.zeros(2, np.bool_), "no")]

    nodes = cluster_of(*map(node, NAMES)).lend().nodes
    framework = framework_of(Masked)
    outcome = framework.run_filter(CycleState(), pod(), nodes)
    assert outcome.error is not None
    place = f"test_filtering.py:{Masked.filter.__code__.co_firstlineno}"
    assert outcome.error.message == (
        'running Filter plugin "Masked": filter returned a rejection of bool[2]; wanted bool[4], '
        f"one truth value per node of the view, or positions, at {place}"
    )


@pytest.mark.parametrize("positions", [np.array([0.0, 1.5]), np.array(["n1"])])
def test_positions_that_are_not_integers_are_refused(positions: Any) -> None:
    nodes = cluster_of(*map(node, NAMES)).lend().nodes
    outcome = FilterOutcome(nodes, np.ones(4, np.bool_))
    with pytest.raises(WrongAnswer, match="positions as whole numbers"):
        outcome.add("A", [Rejection(positions)])


# ---- rows -----------------------------------------------------------------------------------


NO, NEVER = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def two() -> SampleCluster:
    return SampleCluster().add(node("n1", cpu=1), node("n2", cpu=4))


def test_a_plugins_form_for_one_row_is_preferred() -> None:
    plugin = NodeResourcesFit(None, handle())
    assert row_filter_of(plugin) == plugin.filter_row
    assert row_score_of(plugin) == plugin.score_row


@pytest.mark.parametrize("how", ["filter", "filter_node"])
def test_an_invalid_filter_result_is_refused(how: str) -> None:
    is_by_node = how == "filter_node"
    answer: Any = Status(Code.WAIT) if is_by_node else [Rejection(positions(0), Code.WAIT, ("no",))]
    answers: dict[str, Any] = {how: answer}
    plugin = answering("Waits", **answers)(None, handle())
    with pytest.raises(WrongAnswer, match=r"returned .*Wait.*wanted"):
        row_filter_of(plugin)(CycleState(), pod(), two().lend().nodes.info(0))


@pytest.mark.parametrize(
    "verdict",
    [None, True, unschedulable("no"), (NO, ("no",)), ((Code.WAIT, ("no",)),), ((NO, "no"),)],
)
def test_a_result_for_one_node_is_pairs_of_a_code_and_reasons(verdict: Any) -> None:
    assert checked_verdict(((NO, ("no",)),)) == ((NO, ("no",)),)
    with pytest.raises(WrongAnswer, match=r"wanted a tuple of \(Code, reasons\) pairs"):
        checked_verdict(verdict)


def test_a_part_written_for_arrays_is_called_with_an_array_of_one() -> None:
    nodes = two().lend().nodes
    codes = np.array([NEVER], np.uint8)

    def refuse(state: object, answers: object, some: object, feasible: object) -> list[Rejection]:
        return [
            Rejection(positions(0), NO, ("cpu",)),
            Rejection(positions(0), NO, ("memory",), codes),
        ]

    plugin = answering("Wide", filter=refuse, score=lambda *_: np.array([9], np.int64))
    instance = plugin(None, handle())
    answer = row_filter_of(instance)(CycleState(), pod(), nodes.info(1))
    assert answer == ((NO, ("cpu",)), (NEVER, ("memory",)))
    assert row_score_of(instance)(CycleState(), pod(), nodes.info(1)) == 9


def test_a_part_written_node_by_node_is_called_directly() -> None:
    nodes = two().lend().nodes
    refuses = answering("No", filter_node=unschedulable("no"))(None, handle())
    takes = answering("Yes", filter_node=None)(None, handle())
    assert row_filter_of(refuses)(CycleState(), pod(), nodes.info(0)) == ((NO, ("no",)),)
    assert row_filter_of(takes)(CycleState(), pod(), nodes.info(0)) == ()
    scores = answering("Seven", score_node=7)(None, handle())
    assert row_score_of(scores)(CycleState(), pod(), nodes.info(0)) == 7
