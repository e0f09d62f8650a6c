"""Durations: Go's syntax everywhere, and bare seconds where people write them."""

import re
from contextlib import suppress
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.clock import go_duration
from bayplan.durations import (
    Duration,
    DurationError,
    duration_seconds,
    is_duration,
    parse_duration,
)

PATTERN = get_args(Duration)[1].pattern


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15s", 15),
        ("1m30s", 90),
        ("1.5h", 5400),
        (".5h", 1800),
        ("1.s", 1),
        ("100ms", 0.1),
        ("20us", 20e-6),
        ("20µs", 20e-6),
        ("3ns", 3e-9),
        ("-5s", -5),
        ("+5s", 5),
        ("0", 0),
        ("0s", 0),
        ("1h2m3.5s", 3723.5),
    ],
)
def test_a_duration_has_units(text: str, seconds: float) -> None:
    assert re.search(PATTERN, text)
    assert duration_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "5 s", "1d", "s", ".s", "1m-1s", "--1s", "1e3s", "soon"])
def test_text_that_go_rejects_is_rejected(text: str) -> None:
    assert not re.search(PATTERN, text)
    assert not is_duration(text)


# ---- with bare seconds ----------------------------------------------------------------------


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
def test_a_duration_is_a_number_of_seconds(value: Any, seconds: float) -> None:
    assert parse_duration(value) == seconds


@pytest.mark.parametrize(
    "value",
    [
        *("soon", "", "s", "1x", "-5s", "1m 30s", "5S", "1e3s", "٣s", "9" * 30 + "h"),
        *(-1, True, None, [], float("inf"), float("nan"), "1" * 200 + "s"),
    ],
)
def test_other_values_are_rejected(value: Any) -> None:
    with pytest.raises(DurationError):
        parse_duration(value)


@given(st.integers(0, 10**9))
def test_durations_printed_by_go_are_read_back(milliseconds: int) -> None:
    assert parse_duration(go_duration(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


@given(st.text() | st.floats() | st.integers())
def test_no_value_raises_another_exception(value: Any) -> None:
    with suppress(DurationError):
        assert parse_duration(value) >= 0


# ---- all readers ----------------------------------------------------------------------------


@given(
    st.from_regex(
        r"(?:(?:[0-9]{1,4}(?:\.[0-9]{0,3})?|\.[0-9]{1,3})(?:h|m|s|ms|us|ns)){1,3}", fullmatch=True
    )
)
def test_all_readers_give_the_same_number(text: str) -> None:
    assert re.search(PATTERN, text)
    assert parse_duration(text) == duration_seconds(text)
