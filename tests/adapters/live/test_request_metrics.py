"""Requests under client-go's names."""

from prometheus_client import CollectorRegistry

from bayplan.adapters.live.request_metrics import NO_ANSWER, RequestMetrics


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
