"""What plugins say about the node that was chosen."""

from typing import Any

import pytest

from bayplan.framework.interface import (
    MAX_PERMIT_TIMEOUT_SECONDS,
    CycleState,
)
from bayplan.framework.status import (
    SKIP,
    Code,
    Status,
    code_of,
    unschedulable,
)
from bayplan.testing import pod
from tests.framework.answering import Calls, answering, framework_of

ERROR = Status(Code.ERROR, ("broken",))
P = pod("p")


# ---- Reserve, Permit ------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["UNSCHEDULABLE", "UNSCHEDULABLE_AND_UNRESOLVABLE", "PENDING"])
def test_a_rejecting_reserve_stops_the_others(code: str) -> None:
    late: Calls = []
    rejects = answering("A", reserve=Status(Code[code], ("no",)))
    framework = framework_of(rejects, answering("B", late, reserve=None))
    status = framework.run_reserve(CycleState(), P, "n1")
    assert status == Status(Code[code], ("no",), "A")
    assert late == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(ERROR, "broken", id="an Error"),
        pytest.param(SKIP, "answered Skip, which it may not", id="Skip"),
        pytest.param(ValueError("boom"), "ValueError: boom", id="raised"),
        pytest.param("no", "expected a Status", id="no status"),
    ],
)
def test_anything_else_in_reserve_is_an_error(answer: Any, said: str) -> None:
    status = framework_of(answering("A", reserve=answer)).run_reserve(CycleState(), P, "n1")
    assert status is not None
    assert (status.code, status.plugin) == (Code.ERROR, "A")
    assert status.message.startswith('running Reserve plugin "A": ')
    assert said in status.message


def test_unreserve_runs_for_all_in_reverse_whatever_fails() -> None:
    calls: Calls = []
    plugins = [
        answering(name, calls, reserve=None, unreserve=answer)
        for name, answer in (("A", None), ("B", ValueError("boom")), ("C", None))
    ]
    (failure,) = framework_of(*plugins).run_unreserve(CycleState(), P, "n1")
    assert calls == [(name, "unreserve") for name in "CBA"]
    assert failure.message.startswith('running Unreserve plugin "B": ValueError: boom (')


def permitted(*answers: Any) -> tuple[Status | None, dict[str, float]]:
    plugins = [answering(name, permit=a) for name, a in zip("ABC", answers, strict=False)]
    return framework_of(*plugins).run_permit(CycleState(), P, "n1")


WAIT = Status(Code.WAIT)


def test_all_permits_are_asked_before_waiting_starts() -> None:
    status, waits = permitted((WAIT, 5.0), (None, 0.0), (WAIT, 8.0))
    assert code_of(status) is Code.WAIT
    assert waits == {"A": 5.0, "C": 8.0}


def test_nobody_waits_longer_than_a_quarter_of_an_hour() -> None:
    _, waits = permitted((WAIT, 10_000.0))
    assert waits == {"A": MAX_PERMIT_TIMEOUT_SECONDS}


def test_a_rejecting_permit_wins_over_those_that_wait() -> None:
    status, waits = permitted((WAIT, 5.0), (unschedulable("no"), 0.0), (WAIT, 1.0))
    assert (status, waits) == (unschedulable("no").with_plugin("B"), {})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param((ERROR, 0.0), "broken", id="an Error"),
        pytest.param((SKIP, 0.0), "answered Skip, which it may not", id="Skip"),
        pytest.param(ValueError("boom"), "ValueError: boom", id="raised"),
        pytest.param(None, "TypeError", id="no pair"),
        pytest.param((WAIT, -1.0), "a time-out of -1.0", id="a time that has passed"),
        pytest.param((WAIT, float("nan")), "a time-out of nan", id="no time at all"),
        pytest.param((WAIT, "5s"), "TypeError", id="no number"),
    ],
)
def test_anything_else_in_permit_is_an_error(answer: Any, said: str) -> None:
    status, waits = permitted((WAIT, 5.0), answer)
    assert status is not None
    assert (status.code, status.plugin, waits) == (Code.ERROR, "B", {})
    assert said in status.message


# ---- the preflight of PreBind ---------------------------------------------------------------


def test_a_preflight_tells_who_has_something_to_prepare() -> None:
    idle = answering("A", pre_bind_preflight=SKIP, pre_bind=None)
    busy = answering("B", pre_bind_preflight=None, pre_bind=None)
    state = CycleState()
    assert framework_of(idle, busy).run_pre_bind_pre_flights(state, P, "n1") is None
    assert state.skip_pre_bind_plugins == {"A"}
    assert framework_of(idle).run_pre_bind_pre_flights(CycleState(), P, "n1") is SKIP
    assert framework_of().run_pre_bind_pre_flights(CycleState(), P, "n1") is SKIP


@pytest.mark.parametrize(
    "answer", [ERROR, unschedulable("broken"), RuntimeError("broken"), "broken"]
)
def test_a_preflight_that_rejects_is_an_error(answer: Any) -> None:
    plugin = answering("A", pre_bind_preflight=answer, pre_bind=None)
    status = framework_of(plugin).run_pre_bind_pre_flights(CycleState(), P, "n1")
    assert status is not None
    assert (status.code, status.plugin) == (Code.ERROR, "A")
    assert "broken" in status.message
