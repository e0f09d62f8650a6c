"""Durations as Go writes them, and bare seconds."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.clock import go_duration
from bayplan.sim.durations import DurationError, parse_duration


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0s", 0.0),
        ("30s", 30.0),
        ("1m30s", 90.0),
        ("1.5h", 5400.0),
        ("250ms", 0.25),
        ("10.9s", 10.9),
        (".5s", 0.5),
        ("1h0m0.5s", 3600.5),
        ("100us", 1e-4),
        ("3µs", 3e-6),
        ("7ns", 7e-9),
        ("12", 12.0),
        ("0.3", 0.3),
        (5, 5.0),
        (0.25, 0.25),
    ],
)
def test_a_duration_is_so_many_seconds(value: Any, seconds: float) -> None:
    assert parse_duration(value) == seconds


@pytest.mark.parametrize(
    "value",
    [
        *("soon", "", "s", "1x", "-5s", "1m 30s", "5S", "1e3s", "٣s", "9" * 30 + "h"),
        *(-1, True, None, [], float("inf"), float("nan"), "1" * 200 + "s"),
    ],
)
def test_anything_else_is_none(value: Any) -> None:
    with pytest.raises(DurationError):
        parse_duration(value)


@given(st.integers(0, 10**9))
def test_what_go_prints_is_read_back(milliseconds: int) -> None:
    assert parse_duration(go_duration(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


@given(st.text() | st.floats() | st.integers())
def test_no_nonsense_makes_it_fall_over(value: Any) -> None:
    with suppress(DurationError):
        assert parse_duration(value) >= 0
