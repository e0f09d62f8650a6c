"""Durations for a reader."""

import pytest

from bayplan.answers.times import span


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.0 s"),
        (119.94, "119.9 s"),
        (120.0, "2 min 0 s"),
        (250.0, "4 min 10 s"),
        (7500.0, "2 h 5 min"),
        (3 * 86400.0 + 4 * 3600.0, "3 d 4 h"),
        (12_902_960.0, "149 d 8 h"),
    ],
)
def test_durations_have_a_readable_precision(seconds: float, text: str) -> None:
    assert span(seconds) == text
