"""Codes, statuses and the message of a failed attempt."""

import dataclasses
from collections import Counter

import pytest

from bayplan.framework.status import (
    NO_NODES_AVAILABLE,
    SKIP,
    Code,
    Diagnosis,
    FitError,
    NodeToStatus,
    Status,
    as_error,
    code_of,
    is_rejected,
    is_skip,
    is_success,
    is_wait,
    listed_reasons,
    same,
    unresolvable,
    unschedulable,
)
from bayplan.framework.types import PreFilterResult

# ---- codes and statuses --------------------------------------------------------------------


def test_codes_have_upstreams_numbers_and_spellings() -> None:
    assert [(int(code), str(code)) for code in Code] == [
        (0, "Success"),
        (1, "Error"),
        (2, "Unschedulable"),
        (3, "UnschedulableAndUnresolvable"),
        (4, "Wait"),
        (5, "Skip"),
        (6, "Pending"),
    ]


def test_no_status_is_success() -> None:
    assert code_of(None) is Code.SUCCESS
    assert is_success(None)
    assert Status.from_error(None) is None


def test_an_exception_becomes_a_status_with_the_exception() -> None:
    problem = OSError("x")
    status = Status.from_error(problem)
    assert status is not None
    assert (status.code, status.reasons, status.error) == (Code.ERROR, ("x",), problem)


def test_a_message_joins_the_reasons_and_an_errors_text_comes_first() -> None:
    status = Status(Code.UNSCHEDULABLE, ("a", "b"))
    assert status.message == str(status) == "a, b"
    assert status.with_error(ValueError("x")).reasons == ("x", "a", "b")


ANSWERS = [None, *(Status(code, ("why",)) for code in Code)]


@pytest.mark.parametrize(
    ("predicate", "true_for"),
    [
        (is_success, {None, Code.SUCCESS}),
        (is_wait, {Code.WAIT}),
        (is_skip, {Code.SKIP}),
        (
            is_rejected,
            {Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING},
        ),
        (lambda answer: as_error(answer) is None, {None, Code.SUCCESS, Code.WAIT, Code.SKIP}),
    ],
)
def test_predicates_over_all_codes_and_none(predicate, true_for) -> None:
    results = {None if answer is None else answer.code for answer in ANSWERS if predicate(answer)}
    assert results == true_for


def test_an_error_is_the_wrapped_one_or_is_made_of_the_message() -> None:
    problem = OSError("x")
    assert as_error(Status.from_error(problem)) is problem
    assert str(as_error(unschedulable("a", "b"))) == "a, b"


def test_a_change_of_a_status_makes_a_new_one() -> None:
    status = unschedulable("a")
    assert status.with_reason("b").reasons == ("a", "b")
    assert status.with_plugin("X/one").plugin == "X/one"
    assert status == unschedulable("a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        status.plugin = "X"  # type: ignore[misc]


def test_an_error_is_replaced_in_place_when_reasons_or_another_error_are_set() -> None:
    status = unschedulable("a").with_error(ValueError("x"))
    assert status.with_reason("b").reasons == ("x", "a", "b")
    other = ValueError("y")
    replaced = status.with_error(other)
    assert (replaced.reasons, replaced.error) == (("y", "a"), other)


def test_none_and_a_success_without_reasons_are_equal() -> None:
    assert same(None, None)
    assert same(None, Status(Code.SUCCESS))
    assert not same(None, SKIP)
    assert not same(unschedulable("a"), unschedulable("b"))


# ---- statuses of nodes ---------------------------------------------------------------------


def test_absent_nodes_are_unresolvable_by_default() -> None:
    statuses = NodeToStatus({"n1": unschedulable("a")})
    assert statuses.get("n1").code is Code.UNSCHEDULABLE
    assert statuses.get("ghost").code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert len(statuses) == 1
    statuses.set_absent_nodes_status(unschedulable("r"))
    assert statuses.get("ghost") == statuses.absent_nodes_status == unschedulable("r")
    statuses.set("ghost", unresolvable("gone"))
    assert dict(statuses.for_each_explicit_node())["ghost"] == unresolvable("gone")


def test_nodes_of_a_code_include_absent_nodes_with_that_code() -> None:
    statuses = NodeToStatus({"n1": unresolvable("x")}, absent=unschedulable("r"))
    nodes = ["n3", "n2", "n1"]
    assert statuses.nodes_for_status_code(nodes, Code.UNSCHEDULABLE) == ["n2", "n3"]
    assert statuses.nodes_for_status_code(nodes, Code.UNSCHEDULABLE_AND_UNRESOLVABLE) == ["n1"]


# ---- diagnosis -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "unschedulable_plugins", "pending_plugins"),
    [
        (Status(Code.PENDING, plugin="P"), {"P"}, {"P"}),
        (Status(Code.UNSCHEDULABLE, plugin="P"), {"P"}, set()),
        (Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, plugin="P"), {"P"}, set()),
        (Status(Code.UNSCHEDULABLE), set(), set()),
        (Status(Code.ERROR, plugin="P"), set(), set()),
    ],
)
def test_the_plugin_that_a_status_names(status, unschedulable_plugins, pending_plugins) -> None:
    diagnosis = Diagnosis()
    diagnosis.add_plugin_status(status)
    assert diagnosis.unschedulable_plugins == unschedulable_plugins
    assert diagnosis.pending_plugins == pending_plugins


# ---- the sentence --------------------------------------------------------------------------


def message(node_count: int, diagnosis: Diagnosis) -> str:
    return FitError("default/p", node_count, diagnosis).message


def test_reasons_are_counted_and_sorted_as_plain_strings() -> None:
    taints = unresolvable("node(s) had untolerated taint(s)")
    statuses = {f"t{i}": taints for i in range(10)}
    statuses |= {"w1": unschedulable("Insufficient cpu"), "w2": unschedulable("Insufficient cpu")}
    statuses["w3"] = unschedulable("Insufficient cpu", "Insufficient memory")
    preemption_message = (
        "preemption: 0/13 nodes are available: 10 Preemption is not helpful for scheduling, "
        "3 No preemption victims found for incoming pod."
    )
    diagnosis = Diagnosis(NodeToStatus(statuses), post_filter_msg=preemption_message)
    assert message(13, diagnosis) == (
        "0/13 nodes are available: 1 Insufficient memory, 10 node(s) had untolerated taint(s), "
        "3 Insufficient cpu. " + preemption_message
    )


def test_absent_nodes_count_with_their_reason() -> None:
    absent = unresolvable("node(s) didn't satisfy plugin(s) [NodeAffinity]")
    statuses = NodeToStatus({"w1": unschedulable("Insufficient cpu")}, absent)
    assert message(13, Diagnosis(statuses)) == (
        "0/13 nodes are available: 1 Insufficient cpu, "
        "12 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
    twelve = NodeToStatus(absent=unschedulable("r"))
    assert twelve.reason_counts(12) == Counter({"r": 12})


def test_the_message_of_pre_filter_replaces_the_reasons() -> None:
    statuses = NodeToStatus(absent=unresolvable("not reported"))
    diagnosis = Diagnosis(statuses, pre_filter_msg="pod affinity terms conflict")
    assert message(3, diagnosis) == "0/3 nodes are available: pod affinity terms conflict."
    diagnosis.post_filter_msg = "no victims"
    assert message(3, diagnosis).endswith("conflict. no victims")


def test_counted_reasons_of_extenders_are_used_unchanged() -> None:
    diagnosis = Diagnosis(listed_reasons=listed_reasons({"b": 2, "a": 10}))
    assert message(12, diagnosis) == "0/12 nodes are available: 10 a, 2 b."


def test_a_message_without_reasons_has_only_its_first_part() -> None:
    assert message(2, Diagnosis()) == "0/2 nodes are available:"
    assert str(FitError("default/p", 2, Diagnosis())) == "0/2 nodes are available:"
    assert NO_NODES_AVAILABLE == "no nodes available to schedule pods"


# ---- PreFilter's result --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        (None, {"a", "b"}, {"a", "b"}),
        ({"a", "b"}, None, {"a", "b"}),
        ({"a", "b"}, {"b", "c"}, {"b"}),
        ({"a"}, {"b"}, set()),
        (None, None, None),
    ],
)
def test_merging_pre_filter_results_intersects(one, other, merged) -> None:
    def result(names: set[str] | None) -> PreFilterResult:
        return PreFilterResult(None if names is None else frozenset(names))

    assert result(one).merge(result(other)) == result(merged)
