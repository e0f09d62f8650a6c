"""Client-side rate limits: a token bucket for each class of request.

kube-scheduler has one client for events and one for all the rest, each with the qps and burst of
its clientConnection. Here bindings, status patches, leases and reviews of who reads the endpoints
have buckets of their own, too: a flood of one delays no other.

Upstream: client-go/util/flowcontrol.
"""

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import final

from bayplan.clock import Clock

Sleep = Callable[[float], Awaitable[None]]


class Lane(StrEnum):
    """Classes of requests that do not wait for one another."""

    BINDINGS = "bindings"
    STATUS = "status"
    EVENTS = "events"
    LEASES = "leases"
    #: Sent on behalf of whoever opens a connection to our endpoints.
    REVIEWS = "reviews"
    OTHER = "other"


class LateTurnError(Exception):
    """The turn would come after the request's time limit; nothing was taken."""


@final
class TokenBucket:
    """``burst`` requests at once, then ``qps`` a second, first come, first served."""

    def __init__(self, qps: float, burst: int, clock: Clock, sleep: Sleep) -> None:
        """A negative ``qps``: no limit."""
        self._qps = qps
        self._burst = float(max(burst, 1))
        self._clock = clock
        self._sleep = sleep
        #: Below zero: so many requests wait already.
        self._tokens = self._burst
        self._filled_at = clock.now()

    async def take(self, seconds_max: float | None = None) -> None:
        """Wait for one's turn.

        Raises LateTurnError at once where that would take longer than ``seconds_max``, as Go's
        limiter does with a deadline: requests with a time limit owe the bucket at most that much.
        """
        if self._qps < 0:
            return
        self._fill()
        wait_seconds = (1 - self._tokens) / self._qps if self._tokens < 1 else 0.0
        if seconds_max is not None and wait_seconds > seconds_max:
            raise LateTurnError
        self._tokens -= 1
        if not wait_seconds:
            return
        try:
            await self._sleep(wait_seconds)
        except asyncio.CancelledError:
            self._tokens += 1
            raise

    def try_take(self) -> bool:
        """Take a turn if it is there at once."""
        if self._qps < 0:
            return True
        self._fill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _fill(self) -> None:
        now = self._clock.now()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
        self._filled_at = now
