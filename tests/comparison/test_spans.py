"""Spans of time in four numbers."""

import pytest

from bayplan.comparison.spans import told_spans


def test_spans_are_told_by_mean_median_tail_and_maximum() -> None:
    assert told_spans("s", [0, 10, 20]) == pytest.approx(
        {"s_mean": 10, "s_p50": 10, "s_p95": 19, "s_max": 20}
    )


def test_nothing_is_said_of_no_spans() -> None:
    assert told_spans("s", []) == {}
