"""Samples are taken as in upstream: every second, without the first one, with spread gaps."""

import pytest

from bayplan.perf.data_items import rate, samples, summarised


def bound(*per_second: int) -> list[float]:
    """The times of ``counts`` pods per second from 0 on, in the middle of each second."""
    return [second + 0.5 for second, count in enumerate(per_second) for _ in range(count)]


@pytest.mark.parametrize(
    ("times", "stop_seconds", "expected"),
    [
        pytest.param(bound(5, 3, 4), 3.0, [3.0, 4.0], id="the first second has no sample"),
        pytest.param(bound(0, 5, 3), 3.0, [3.0], id="seconds before the first pod do not count"),
        pytest.param(bound(5, 0, 0, 6), 4.0, [2.0, 2.0, 2.0], id="a gap lengthens the next"),
        pytest.param(bound(5, 3, 4), 2.9, [3.0], id="a second that is not over has no sample"),
        pytest.param(bound(5, 3, 0), 3.0, [3.0], id="a gap at the end has no sample"),
        pytest.param([], 9.0, [], id="no pods"),
    ],
)
def test_samples_are_taken_every_second(
    times: list[float], stop_seconds: float, expected: list[float]
) -> None:
    assert samples(times, 0.0, stop_seconds) == expected


def test_seconds_count_from_the_start() -> None:
    assert samples([10.9, 11.3, 11.4], 10.25, 12.25) == [2.0]


def test_percentiles_use_the_nearest_rank() -> None:
    result = summarised([float(n) for n in range(10, 0, -1)])
    assert result == {"Average": 5.5, "Perc50": 5.0, "Perc90": 9.0, "Perc95": 10.0, "Perc99": 10.0}


@pytest.mark.parametrize(
    ("times", "expected"),
    [([1.0, 1.5, 3.0], 1.5), ([2.0], None), ([2.0, 2.0], None), ([], None)],
)
def test_the_rate_is_computed_between_first_and_last_binding(
    times: list[float], expected: float | None
) -> None:
    assert rate(times) == expected
