"""Clocks. Only this module imports ``time``.

The core reads time from the `Clock` that it is given. `RealClock` serves a live cluster.
`ManualClock` serves simulation and tests; it advances only when `advance_to` is called.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, Protocol, final


class Clock(Protocol):
    """The time as the scheduler sees it."""

    def now(self) -> float:
        """Monotonic seconds, for deadlines, backoff and durations."""
        ...

    def epoch_seconds(self) -> float:
        """Seconds since 1970 UTC, for time stamps in API objects."""
        ...


@final
class RealClock:
    """The machine's clock. Monotonic time counts from the whole second of its creation.

    Backoff ends at whole seconds of `now`. kube-scheduler ends it at whole seconds of the wall
    clock (backend/queue/backoff_queue.go, alignToWindow), so both have the same whole seconds.
    """

    def __init__(self) -> None:
        self._start_seconds = time.monotonic() - time.time() % 1.0

    def now(self) -> float:
        return time.monotonic() - self._start_seconds

    def epoch_seconds(self) -> float:
        return time.time()


@final
class ManualClock:
    """A clock that advances only by `advance_to`, and never backwards."""

    #: The calendar date of virtual time 0.
    EPOCH_SECONDS = 1_767_225_600.0  # 2026-01-01T00:00:00Z

    def __init__(self, start_seconds: float = 0.0) -> None:
        #: Only `advance_to` sets it.
        self.now_seconds = start_seconds
        #: See `Clock.now`. A simulation calls it dozens of times per pod, so it is no function of
        #: Python.
        self.now: Callable[[], float] = partial(getattr, self, "now_seconds")

    def epoch_seconds(self) -> float:
        return self.EPOCH_SECONDS + self.now_seconds

    def advance_to(self, now_seconds: float) -> None:
        assert now_seconds >= self.now_seconds, "a clock never goes back"
        self.now_seconds = now_seconds


# Under virtual time, thousands of objects have the same time stamp.
@lru_cache(maxsize=16)
def rfc3339(epoch_seconds: float) -> str:
    """A time stamp as the Kubernetes API writes it, to the second."""
    moment = datetime.fromtimestamp(epoch_seconds, tz=UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def epoch_of(stamp: Any) -> float | None:
    """Seconds since 1970 UTC of a time stamp of the API; None if the value is not a time stamp. A
    time without a zone is one of UTC, wherever the process runs."""
    try:
        moment = datetime.fromisoformat(stamp)
    except (TypeError, ValueError):
        return None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def rfc3339_micro(epoch_seconds: float) -> str:
    """A time stamp of the API type MicroTime, as leases and events use it."""
    moment = datetime.fromtimestamp(epoch_seconds, tz=UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


#: Real time for measurements such as decisions per second, never for decisions.
wall_seconds: Callable[[], float] = time.perf_counter


def cpu_seconds() -> float:
    """CPU time of this process for measurements, never for decisions."""
    return time.process_time()


def go_duration(seconds: float) -> str:
    """A duration as Go prints it: 8s, 1m30s, 15m0s, 250ms."""
    milliseconds = round(seconds * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms" if milliseconds else "0s"
    minutes, below_minute = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{below_minute / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
