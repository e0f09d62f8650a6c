"""Client-side rate limits, and metrics of requests to the API server.

kube-scheduler has one client for events and one for all other requests, each with the qps and burst
of its clientConnection. Here bindings, status patches, leases and access reviews have token buckets
of their own as well, so that many requests of one class do not delay another class. Upstream:
client-go/util/flowcontrol.

`RequestMetrics` has client-go's names, labels and buckets. A watch counts as one request, by the
code of its response; its duration is not recorded. Upstream:
component-base/metrics/prometheus/restclient/metrics.go.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, final
from urllib.parse import urlsplit

from bayplan.clock import Clock
from bayplan.metrics import COUNTER, Histogram, ScrapedFamily

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

# ---- rate limit -----------------------------------------------------------------------------


Sleep = Callable[[float], Awaitable[None]]


class Lane(StrEnum):
    """Classes of requests that do not wait for one another."""

    BINDINGS = "bindings"
    STATUS = "status"
    EVENTS = "events"
    LEASES = "leases"
    #: Requests that a peer causes by a connection to the endpoints.
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
        #: Below zero: the number of waiting requests.
        self._tokens = self._burst
        self._filled_at = clock.now()

    async def take(self, seconds_max: float | None = None) -> None:
        """Wait for a token.

        Raises LateTurnError at once if the wait would be longer than ``seconds_max``, as Go's
        limiter does with a deadline.
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
        """Take a token if there is one now."""
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


# ---- request metrics ------------------------------------------------------------------------


_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0]
#: The label `code` of an attempt without an answer.
NO_ANSWER = "<error>"


@final
class RequestMetrics:
    """Counts every attempt. Register the object to expose its metrics."""

    def __init__(self, server: str) -> None:
        self._host = urlsplit(server).netloc
        #: (method, code) → the number of attempts, and of those that were retries.
        self._counts: Counter[tuple[str, str]] = Counter()
        self._retries: Counter[tuple[str, str]] = Counter()
        labels = ("host", "verb")
        self._duration = Histogram(
            "rest_client_request_duration_seconds",
            "Request latency in seconds, by verb and host.",
            _SECONDS,
            labels,
        )
        self._limited = Histogram(
            "rest_client_rate_limiter_duration_seconds",
            "How long the client's own rate limits held requests back, by verb and host.",
            _SECONDS,
            labels,
        )

    def register(self, registry: "CollectorRegistry") -> None:
        registry.register(self._duration)
        registry.register(self._limited)
        for name, text, labels, counts in (
            (
                "rest_client_requests",
                "HTTP requests, by status code, method and host.",
                ("code", "host", "method"),
                self._counts,
            ),
            (
                "rest_client_request_retries",
                "Attempts that were tried again, by status code, verb and host.",
                ("code", "host", "verb"),
                self._retries,
            ),
        ):
            read = partial(_sorted, counts, self._host)
            registry.register(ScrapedFamily(COUNTER, name, text, labels, read=read))

    def waited(self, method: str, seconds: float) -> None:
        """Observe how long a request waited in its lane."""
        self._limited.observe(seconds, self._host, method)

    def answered(self, method: str, status: int, seconds: float) -> None:
        self._counts[method, str(status)] += 1
        self._duration.observe(seconds, self._host, method)

    def unanswered(self, method: str, seconds: float) -> None:
        self._counts[method, NO_ANSWER] += 1
        self._duration.observe(seconds, self._host, method)

    def began(self, status: int) -> None:
        """Count the start of a watch."""
        self._counts["GET", str(status)] += 1

    def retried(self, method: str, status: int | None) -> None:
        """Count a retry. ``status`` None: no answer came."""
        self._retries[method, NO_ANSWER if status is None else str(status)] += 1


def _sorted(counts: Counter[tuple[str, str]], host: str) -> Iterator[tuple[tuple[str, ...], float]]:
    for (method, code), count in sorted(counts.items()):
        yield (code, host, method), count
