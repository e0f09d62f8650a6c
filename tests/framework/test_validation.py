"""Results of plugins are checked where they enter the framework."""

import json
from json import JSONDecodeError
from typing import Any

import pytest

from bayplan.framework.status import Code, Status, unschedulable
from bayplan.framework.timing import code_in
from bayplan.framework.types import PreFilterResult
from bayplan.framework.validation import WrongAnswer, as_error, checked, failure_of
from bayplan.ports import ConflictError, OutcomeUnknownError
from tests.framework.answering import answering, made


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(True, "returned True; wanted a Status or None", id="a truth value"),
        pytest.param(Code.SKIP, "wanted a Status or None", id="a bare code"),
    ],
)
def test_any_other_result_is_refused(answer: Any, message: str) -> None:
    with pytest.raises(WrongAnswer) as caught:
        checked(answer)
    assert message in str(caught.value)


def test_a_failure_names_the_plugin_the_point_and_the_exception() -> None:
    plugin = made(answering("X", close=None), "X/one")
    step = 'running Score plugins: plugin "X/one" failed with'
    expected = Status(Code.ERROR, (f"{step}: KeyError: 'n1'",), "X/one")
    assert failure_of(plugin, "Score", KeyError("n1")) == expected
    assert failure_of("X/one", "Score", KeyError("n1")) == expected


def boom(problem: Exception) -> Exception:
    """An exception that was raised in this file."""
    try:
        raise problem
    except Exception as raised:  # noqa: BLE001 - whichever it is
        return raised


def test_a_failure_names_the_line_in_the_plugins_file() -> None:
    line = boom.__code__.co_firstlineno + 3
    message = failure_of("X", "Score", boom(ValueError("no"))).message
    step = 'running Score plugins: plugin "X" failed with'
    assert message == f"{step}: ValueError: no (test_validation.py:{line})"


def test_a_failure_in_a_library_names_the_line_in_the_plugins_file() -> None:
    with pytest.raises(JSONDecodeError) as caught:
        json.loads("{")
    line = caught.traceback[0].lineno + 1
    message = failure_of("X", "Score", caught.value).message
    assert message.endswith(f" (test_validation.py:{line})")


@pytest.mark.parametrize("problem", [ConflictError("taken"), OutcomeUnknownError("lost")])
def test_an_api_error_names_no_line(problem: Exception) -> None:
    name = type(problem).__name__
    message = failure_of("X", "Bind", boom(problem)).message
    assert message == f'running Bind plugin "X": {name}: {problem}'


def test_a_refused_result_is_reported_without_the_exceptions_name() -> None:
    status = failure_of("X", "Score", WrongAnswer("7", "a Status"))
    step = 'running Score plugins: plugin "X" failed with'
    assert status.message == f"{step}: returned 7; wanted a Status"


def test_a_result_that_is_not_a_rejection_becomes_an_error() -> None:
    result = as_error(Status(Code.ERROR, ("broken", "twice")), "Reserve", "X")
    assert result == Status(Code.ERROR, ('running Reserve plugin "X": broken, twice',), "X")
    reason = as_error(Status(Code.WAIT, ("later",)), "Reserve", "X", allowed=(Code.PENDING,))
    assert reason.message == 'running Reserve plugin "X": later'
    wrong = as_error(Status(Code.WAIT), "Reserve", "X", allowed=(Code.PENDING,))
    assert wrong.message == (
        'running Reserve plugin "X": returned Wait; wanted Success, Pending or Error'
    )


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(None, Code.SUCCESS, id="nothing"),
        pytest.param(unschedulable("no"), Code.UNSCHEDULABLE, id="a status"),
        pytest.param((None, unschedulable("no")), Code.UNSCHEDULABLE, id="PostFilter's"),
        pytest.param((Status(Code.WAIT), 5.0), Code.WAIT, id="Permit's"),
        pytest.param((PreFilterResult(), None, set()), Code.SUCCESS, id="PreFilter's"),
        pytest.param([], Code.SUCCESS, id="Unreserve's"),
        pytest.param(7, Code.SUCCESS, id="another extension point"),
    ],
)
def test_the_code_of_a_result_of_an_extension_point(answer: Any, code: Code) -> None:
    assert code_in(answer) is code
