"""How long an entry waits after a failed attempt, and when that is looked at.

The delay doubles with every failure in a row up to a maximum, which grows with the square root of
the entry's size. Ends of delays are acted upon at whole seconds. With SchedulerPopFromBackoffQ
they are also cut to whole seconds: entries of one second form a window, in which activeQ's order
holds, and one whose window is the present one still waits (KEP-5142).
Upstream: backend/queue/backoff_queue.go.
"""

import math
from collections.abc import Callable
from typing import Final, final

from bayplan.queue.entry import Entry
from bayplan.queue.settings import QueueSettings

#: An entry that never failed has no delay: it ended before everything.
NEVER: Final = -math.inf
#: Doublings after which any delay has met its maximum; beyond some 1000 a float overflows.
_DOUBLINGS_MAX: Final = 60


@final
class Backoff:
    """Delays of entries, by one configuration and clock."""

    def __init__(self, settings: QueueSettings, clock: Callable[[], float]) -> None:
        self._initial_seconds = settings.initial_backoff_seconds
        self._max_seconds = settings.max_backoff_seconds
        self._clock = clock
        self._align: Callable[[float], float] = (
            math.floor if settings.pop_from_backoff_q else _as_it_is
        )

    def expires_at_seconds(self, entry: Entry) -> float:
        """When the entry's delay ends, on the clock's scale."""
        queued = entry.queued
        # After an error only errors in a row count, else all rejections.
        failures = queued.consecutive_errors_count or queued.unschedulable_count
        if not failures or not self._max_seconds:
            return NEVER
        delay = self.delay_seconds(failures, len(entry.pods))
        return self._align(entry.since_seconds + delay)

    def delay_seconds(self, failures: int, size: int = 1) -> float:
        """The delay after so many failures of an entry of so many pods."""
        longest = self._max_seconds * math.sqrt(size)
        return min(math.ldexp(self._initial_seconds, min(failures - 1, _DOUBLINGS_MAX)), longest)

    def is_running(self, entry: Entry) -> bool:
        """Whether the entry still has to wait."""
        return self.expires_at_seconds(entry) >= self._align(self._clock())


def looked_at_seconds(expires_at_seconds: float) -> float:
    """The whole second at which a delay that ended is acted upon: the first one after its end."""
    return math.floor(expires_at_seconds) + 1.0


def _as_it_is(seconds: float) -> float:
    return seconds
