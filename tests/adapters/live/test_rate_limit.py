"""Token buckets, and request metrics under client-go's names."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from bayplan.adapters.live.rate_limit import NO_ANSWER, LateTurnError, RequestMetrics, TokenBucket
from bayplan.clock import ManualClock
from tests.kit.api_server import Naps

# ---- rate limit -----------------------------------------------------------------------------


def naps_of(bucket: TokenBucket, naps: Naps, count: int) -> list[float]:
    async def take() -> None:
        for _ in range(count):
            await bucket.take()

    asyncio.run(take())
    return naps.durations


def test_a_burst_runs_at_once_and_later_requests_at_the_rate() -> None:
    naps = Naps()
    bucket = TokenBucket(10, 3, ManualClock(), naps)
    assert naps_of(bucket, naps, 5) == [0.1, 0.2]


def test_a_bucket_refills_up_to_its_burst() -> None:
    clock, naps = ManualClock(), Naps()
    bucket = TokenBucket(10, 2, clock, naps)
    naps_of(bucket, naps, 2)
    clock.advance_to(3600)
    assert naps_of(bucket, naps, 3) == [0.1]


def test_a_negative_rate_means_no_limit() -> None:
    naps = Naps()
    bucket = TokenBucket(-1, 1, ManualClock(), naps)
    assert naps_of(bucket, naps, 50) == []
    assert bucket.try_take()


def test_try_take_does_not_wait() -> None:
    clock = ManualClock()
    bucket = TokenBucket(2, 1, clock, Naps())
    assert [bucket.try_take(), bucket.try_take()] == [True, False]
    clock.advance_to(0.5)
    assert bucket.try_take()


def test_a_cancelled_turn_is_available_to_another_request() -> None:
    naps: list[float] = []

    async def main() -> None:
        async def first_for_ever(seconds: float) -> None:
            naps.append(seconds)
            if len(naps) == 1:
                await asyncio.Event().wait()

        bucket = TokenBucket(10, 1, ManualClock(), first_for_ever)
        await bucket.take()
        waiting = asyncio.create_task(bucket.take())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await bucket.take()

    asyncio.run(main())
    assert naps == [0.1, 0.1]


def test_a_turn_beyond_the_deadline_is_refused_at_once_and_takes_nothing() -> None:
    clock, naps = ManualClock(), Naps()
    bucket = TokenBucket(10, 1, clock, naps)

    async def main() -> None:
        await bucket.take()
        for _ in range(1000):
            with pytest.raises(LateTurnError):
                await bucket.take(0.05)
        await bucket.take(0.1)

    asyncio.run(main())
    assert naps.durations == [0.1]


# ---- request metrics ------------------------------------------------------------------------


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, {"host": "x:6443", **labels})


def test_attempts_are_counted_by_code_and_timed_by_verb() -> None:
    registry, metrics = CollectorRegistry(), RequestMetrics("https://x:6443/prefix")
    metrics.register(registry)
    metrics.waited("POST", 3.0)
    metrics.unanswered("POST", 0.5)
    metrics.retried("POST", None)
    metrics.answered("POST", 429, 0.1)
    metrics.retried("POST", 429)
    metrics.answered("POST", 201, 0.25)
    metrics.began(200)
    requests = "rest_client_requests_total"
    assert value(registry, requests, code="201", method="POST") == 1
    assert value(registry, requests, code="429", method="POST") == 1
    assert value(registry, requests, code=NO_ANSWER, method="POST") == 1
    assert value(registry, requests, code="200", method="GET") == 1
    retries = "rest_client_request_retries_total"
    assert value(registry, retries, code=NO_ANSWER, verb="POST") == 1
    assert value(registry, retries, code="201", verb="POST") is None
    duration = "rest_client_request_duration_seconds"
    assert value(registry, f"{duration}_count", verb="POST") == 3
    assert value(registry, f"{duration}_bucket", verb="POST", le="0.25") == 2
    limited = "rest_client_rate_limiter_duration_seconds_sum"
    assert value(registry, limited, verb="POST") == 3.0
