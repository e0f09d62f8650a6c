"""Delays: the formula, and windows of whole seconds."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.queue.backoff import NEVER, Backoff, looked_at_seconds
from bayplan.queue.entry import Entry
from bayplan.queue.settings import QueueSettings
from tests.queue.factories import by_priority, queued


def backoff(now: float = 0.0, *, windows: bool = True, longest: float = 10.0) -> Backoff:
    settings = QueueSettings(by_priority, max_backoff_seconds=longest, pop_from_backoff_q=windows)
    return Backoff(settings, lambda: now)


def failed(*, rejections: int = 0, errors: int = 0, at: float = 0.0) -> Entry:
    one = queued(at=at)
    one.unschedulable_count, one.consecutive_errors_count = rejections, errors
    return Entry(one)


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (5000, 10)]
)
def test_the_delay_doubles_up_to_the_maximum(failures: int, seconds: float) -> None:
    assert backoff().delay_seconds(failures) == seconds


def test_the_maximum_grows_with_the_square_root_of_the_size() -> None:
    assert backoff().delay_seconds(4, size=4) == 8
    assert backoff().delay_seconds(5, size=4) == 16
    assert backoff().delay_seconds(9, size=4) == 20
    assert backoff().delay_seconds(9, size=2) == 10 * math.sqrt(2)


@pytest.mark.parametrize(
    ("entry", "expires_at"),
    [
        pytest.param(failed(at=5), NEVER, id="never failed"),
        pytest.param(failed(rejections=3, at=5), 9, id="rejections count"),
        pytest.param(failed(rejections=3, errors=1, at=5), 6, id="after an error, errors count"),
    ],
)
def test_what_counts_is_the_last_kind_of_failure(entry: Entry, expires_at: float) -> None:
    assert backoff().expires_at_seconds(entry) == expires_at


def test_a_maximum_of_zero_means_no_delay() -> None:
    without = backoff(longest=0)
    assert without.expires_at_seconds(failed(rejections=7)) == NEVER
    assert not without.is_running(failed(rejections=7))


@pytest.mark.parametrize(
    ("windows", "now", "running"),
    [
        pytest.param(True, 1.2, True, id="windows: before its end"),
        pytest.param(True, 1.9, True, id="windows: in the window of its end"),
        pytest.param(True, 2.0, False, id="windows: in the next window"),
        pytest.param(False, 1.3, True, id="exact: before its end"),
        pytest.param(False, 1.5, True, id="exact: at its end"),
        pytest.param(False, 1.6, False, id="exact: after its end"),
    ],
)
def test_a_delay_runs_to_the_end_of_its_window_or_its_instant(
    windows: bool, now: float, running: bool
) -> None:
    assert backoff(now, windows=windows).is_running(failed(rejections=1, at=0.5)) is running


def test_expiries_are_cut_to_whole_seconds_only_with_windows() -> None:
    entry = failed(rejections=2, at=0.75)
    assert backoff(windows=True).expires_at_seconds(entry) == 2
    assert backoff(windows=False).expires_at_seconds(entry) == 2.75


@pytest.mark.parametrize(("expires_at", "looked_at"), [(1.0, 2.0), (1.25, 2.0), (1.99, 2.0)])
def test_an_ended_delay_is_acted_upon_at_the_next_whole_second(
    expires_at: float, looked_at: float
) -> None:
    assert looked_at_seconds(expires_at) == looked_at


@given(
    windows=st.booleans(),
    rejections=st.integers(1, 9),
    at=st.integers(0, 4000).map(lambda n: n / 64),
)
def test_the_look_comes_at_the_first_whole_second_at_which_the_delay_no_longer_runs(
    windows: bool, rejections: int, at: float
) -> None:
    entry = failed(rejections=rejections, at=at)
    first = next(
        second
        for second in range(math.ceil(at), math.ceil(at) + 20)
        if not backoff(second, windows=windows).is_running(entry)
    )
    assert looked_at_seconds(backoff(windows=windows).expires_at_seconds(entry)) == first
