"""Means, deviations, paired differences with intervals, and summaries of durations."""

import pytest

from bayplan.comparison import statistics
from bayplan.comparison.statistics import paired, span_metrics, summary

# ---- statistics -----------------------------------------------------------------------------


def test_the_deviation_is_that_of_a_sample() -> None:
    result = summary([2.0, 4.0, 6.0])
    assert (result.mean, result.sd, result.values) == (4.0, 2.0, (2.0, 4.0, 6.0))


def test_one_value_has_no_deviation() -> None:
    assert summary([3.0]).sd is None


def test_runs_are_paired_by_seed() -> None:
    # Differences 1, 2, 3: mean 2, deviation 1; Student's t for 2 degrees of freedom is 4.3027.
    result = paired({1: 11.0, 2: 22.0, 3: 33.0, 9: 0.0}, {1: 10.0, 2: 20.0, 3: 30.0, 8: 5.0})
    assert result is not None
    assert (result.mean, result.pairs) == (2.0, 3)
    assert result.low == pytest.approx(2 - 4.302653 / 3**0.5, abs=1e-5)
    assert result.high == pytest.approx(2 + 4.302653 / 3**0.5, abs=1e-5)


def test_a_constant_difference_has_an_interval_of_zero_width() -> None:
    result = paired({1: 3.0, 2: 4.0}, {1: 1.0, 2: 2.0})
    assert result is not None
    assert (result.mean, result.low, result.high, result.is_nothing) == (2.0, 2.0, 2.0, False)


def test_equal_runs_have_a_difference_of_zero() -> None:
    result = paired({1: 3.0, 2: 4.0}, {1: 3.0, 2: 4.0})
    assert result is not None
    assert result.is_nothing


def test_one_pair_has_no_interval_and_no_pairs_have_no_difference() -> None:
    result = paired({1: 3.0}, {1: 1.0})
    assert result is not None
    assert (result.mean, result.low, result.high) == (2.0, None, None)
    assert paired({1: 3.0}, {2: 3.0}) is None


def test_without_scipy_there_are_means_and_no_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "_scipy_stats", lambda: None)
    result = paired({1: 3.0, 2: 9.0}, {1: 1.0, 2: 2.0})
    assert result is not None
    assert (result.mean, result.low, result.high) == (4.5, None, None)
    assert not statistics.has_intervals()


# ---- durations ------------------------------------------------------------------------------


def test_durations_are_summarized_by_mean_median_p95_and_maximum() -> None:
    assert span_metrics("s", [0, 10, 20]) == pytest.approx(
        {"s_mean": 10, "s_p50": 10, "s_p95": 19, "s_max": 20}
    )


def test_without_durations_nothing_is_reported() -> None:
    assert span_metrics("s", []) == {}
