"""Durations as Go's time.ParseDuration reads them."""

import re
from typing import get_args

import pytest

from bayplan.config.durations import Duration, duration_seconds

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
def test_what_go_does_not_read_is_none(text: str) -> None:
    assert not re.search(PATTERN, text)
