"""Clocks are passed in."""

import time  # noqa: TID251 - only to set the zone of the process

import pytest

from bayplan.clock import (
    ManualClock,
    RealClock,
    cpu_seconds,
    epoch_of,
    go_duration,
    rfc3339,
    rfc3339_micro,
)


def test_a_manual_clock_stands_still_until_it_is_advanced():
    clock = ManualClock()
    assert (clock.now(), clock.now()) == (0.0, 0.0)
    clock.advance_to(2.5)
    assert clock.now() == 2.5
    assert clock.epoch_seconds() - ManualClock.EPOCH_SECONDS == 2.5


def test_a_manual_clock_never_goes_back():
    clock = ManualClock(5.0)
    with pytest.raises(AssertionError, match="never goes back"):
        clock.advance_to(4.9)


def test_the_real_clock_does_not_go_back():
    clock = RealClock()
    assert clock.now() <= clock.now()
    assert clock.epoch_seconds() > ManualClock.EPOCH_SECONDS - 10 * 365 * 86400


def test_whole_seconds_of_the_real_clock_are_whole_seconds_of_the_wall_clock(
    monkeypatch: pytest.MonkeyPatch,
):
    """kube-scheduler's backoff ends at whole seconds of the wall clock."""
    monkeypatch.setattr("bayplan.clock.time.time", lambda: 1_767_225_600.75)
    monkeypatch.setattr("bayplan.clock.time.monotonic", lambda: 500.5)
    clock = RealClock()
    assert clock.now() == 0.75
    monkeypatch.setattr("bayplan.clock.time.monotonic", lambda: 500.75)
    assert clock.now() == 1.0


def test_time_stamps_have_the_format_of_the_api():
    assert rfc3339(ManualClock.EPOCH_SECONDS + 61.9) == "2026-01-01T00:01:01Z"


def test_a_time_stamp_without_a_zone_is_of_utc_wherever_the_process_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        seconds = [epoch_of(f"1970-01-02T00:00:00{zone}") for zone in ("", "Z", "+09:00")]
    time.tzset()
    assert seconds == [86400, 86400, 54000]
    assert epoch_of("soon") is epoch_of(None) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.25, "250ms"),
        (1, "1s"),
        (1.5, "1.5s"),
        (8, "8s"),
        (10, "10s"),
        (60, "1m0s"),
        (90, "1m30s"),
        (900, "15m0s"),
        (3600, "1h0m0s"),
        (3725.5, "1h2m5.5s"),
    ],
)
def test_durations_are_printed_as_by_go(seconds: float, text: str):
    assert go_duration(seconds) == text


def test_cpu_time_counts_work_and_not_waiting() -> None:
    began = cpu_seconds()
    sum(range(200_000))
    assert cpu_seconds() > began


def test_a_micro_time_has_microseconds_and_a_time_zone():
    assert rfc3339_micro(1.5) == "1970-01-01T00:00:01.500000Z"
