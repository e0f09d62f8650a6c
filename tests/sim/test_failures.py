"""What counts as a failure: errors, not rejections."""

import pytest

from bayplan.journal import BUG_PREFIX, AttemptRecord, BindingRecord, GateRecord, NoteRecord, Record
from bayplan.sim.failures import Failures
from bayplan.sim.result import FailureResult


def attempt(pod: str, result: str, plugin: str = "Mine", message: str = "broken") -> Record:
    return AttemptRecord(
        at_seconds=0.0,
        pod=pod,
        uid=pod,
        profile="p",
        attempt=1,
        result=result,
        plugin=plugin,
        message=message,
    )


def results(*records: Record) -> tuple[FailureResult, ...]:
    failures = Failures()
    for record in records:
        failures.write(record)
    return failures.results()


def test_an_attempt_that_ended_in_a_rejection_is_no_failure() -> None:
    assert results(attempt("ns/a", "unschedulable"), attempt("ns/b", "scheduled")) == ()


def test_failures_of_one_kind_are_counted_and_the_first_pod_is_named() -> None:
    records = [attempt(f"ns/p{i}", "error", message=f"ns/p{i}: broken") for i in range(3)]
    assert results(*records) == (
        FailureResult(plugin="Mine", count=3, example="ns/p0", message="ns/p0: broken"),
    )


def test_each_plugin_and_each_message_is_a_kind() -> None:
    found = results(
        attempt("ns/a", "error", "One"),
        attempt("ns/b", "error", "Two"),
        attempt("ns/c", "error", "One", "also broken"),
    )
    assert [(one.plugin, one.message) for one in found] == [
        ("One", "broken"),
        ("Two", "broken"),
        ("One", "also broken"),
    ]


def test_messages_without_end_are_counted_with_an_earlier_one_of_the_plugin() -> None:
    found = results(*(attempt("ns/a", "error", message=f"broken {i}!") for i in range(100)))
    assert len(found) == 20
    assert sum(one.count for one in found) == 100


def test_a_binding_fails_by_an_error_or_by_a_rejection() -> None:
    bindings = [
        BindingRecord(
            at_seconds=0.0,
            pod=f"ns/{code}",
            uid=code,
            node="n",
            result="failed",
            message="no",
            plugin="Mine",
            code=code,
        )
        for code in ("Error", "Unschedulable")
    ]
    assert [one.example for one in results(*bindings)] == ["ns/Error"]


def test_a_note_that_names_a_plugin_is_a_failure_and_another_is_not() -> None:
    found = results(
        NoteRecord(at_seconds=0.0, subject="ns/a", text="went on without an extender"),
        NoteRecord(at_seconds=0.0, subject="ns/a", text="PostBind raised", plugin="Mine"),
    )
    assert [one.message for one in found] == ["PostBind raised"]


def test_a_gate_is_an_answer_unless_its_plugin_failed() -> None:
    def gate(code: str) -> Record:
        return GateRecord(at_seconds=0.0, pod="ns/a", uid="a", plugin="Mine", code=code)

    assert [one.plugin for one in results(gate(""), gate("Error"))] == ["Mine"]


@pytest.mark.parametrize(
    ("plugin", "message", "is_defect"),
    [
        pytest.param("Mine", "broken", True, id="a plugin"),
        pytest.param("", f"{BUG_PREFIX}: KeyError", True, id="Bayplan itself"),
        pytest.param("", 'Post "http://x/filter": connection refused', False, id="an extender"),
    ],
)
def test_what_lies_outside_is_a_failure_but_no_defect(
    plugin: str, message: str, is_defect: bool
) -> None:
    (failure,) = results(attempt("ns/a", "error", plugin, message))
    assert failure.is_defect == is_defect
