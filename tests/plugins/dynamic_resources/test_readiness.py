"""Devices that must be made ready before a pod is bound."""

from typing import Any

import pytest

from bayplan.api.device_objects import ResourceClaim
from bayplan.clock import ManualClock
from bayplan.plugins.dynamic_resources.readiness import (
    is_ready,
    is_timed_out,
    waits_for_conditions,
)
from tests.plugins.devices_kit import DRIVER, allocated, as_claim, claim, exactly

START = ManualClock.EPOCH_SECONDS


def waiting(*conditions: tuple[str, str], stamp: str = "2026-01-01T00:00:00Z") -> ResourceClaim:
    """A claim whose device must be ready and not bad; what its driver reports."""
    status: Any = allocated(("n1", "x"))
    result = status["allocation"]["devices"]["results"][0]
    result |= {"bindingConditions": ["ready"], "bindingFailureConditions": ["bad"]}
    status["allocation"]["allocationTimestamp"] = stamp
    if conditions:
        reported = [{"type": t, "status": s, "reason": "R", "message": "m"} for t, s in conditions]
        device = {"driver": DRIVER, "pool": "n1", "device": "x", "conditions": reported}
        status["devices"] = [device]
    return as_claim(claim("c", exactly(), status=status))


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        ((), False),
        ((("ready", "False"),), False),
        ((("ready", "True"),), True),
        ((("ready", "True"), ("bad", "False")), True),
        (
            (("ready", "True"), ("bad", "True")),
            'device binding failed: claim=c, reason=R, message="m"',
        ),
    ],
)
def test_a_claim_is_ready_when_its_drivers_say_so(
    conditions: tuple[tuple[str, str], ...], said: bool | str
) -> None:
    assert is_ready(waiting(*conditions)) == said


def test_a_claim_without_conditions_is_ready_once_it_is_allocated() -> None:
    plain = as_claim(claim("c", exactly(), status=allocated(("n1", "x"))))
    assert is_ready(plain) is True
    assert is_ready(as_claim(claim("c", exactly()))) is False
    assert not waits_for_conditions(plain)
    assert waits_for_conditions(waiting())


@pytest.mark.parametrize(("after", "timed_out"), [(600.0, False), (601.0, True)])
def test_it_is_not_waited_for_longer_than_that(after: float, timed_out: bool) -> None:
    assert is_timed_out(waiting(), START + after, 600.0) is timed_out


def test_what_has_no_conditions_or_no_time_stamp_is_never_late() -> None:
    plain = as_claim(claim("c", exactly(), status=allocated(("n1", "x"))))
    assert not is_timed_out(plain, START + 1e9, 600.0)
    assert not is_timed_out(waiting(stamp="no time"), START + 1e9, 600.0)
