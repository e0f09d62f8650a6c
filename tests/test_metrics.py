"""Metrics under upstream's names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client import Histogram as Reference

from bayplan.framework.status import Code
from bayplan.metrics import Histogram, SchedulerMetrics

BOUNDS = [0.1, 0.2, 0.4]


def test_counts_are_exposed_under_upstreams_names() -> None:
    metrics = SchedulerMetrics()
    metrics.schedule_attempts.add("scheduled", "default-scheduler")
    metrics.schedule_attempts.add("scheduled", "default-scheduler")
    name = "scheduler_schedule_attempts_total"
    assert metrics.value(name, result="scheduled", profile="default-scheduler") == 2
    assert metrics.value(name, result="error", profile="default-scheduler") == 0


def test_the_gauge_of_unschedulable_pods_goes_up_and_down() -> None:
    metrics = SchedulerMetrics()
    for delta in (1, 1, -1):
        metrics.unschedulable_pods.add("NodePorts", "default-scheduler", count=delta)
    name = "scheduler_unschedulable_pods"
    assert metrics.value(name, plugin="NodePorts", profile="default-scheduler") == 1


def test_high_attempt_counts_share_one_label() -> None:
    metrics = SchedulerMetrics()
    for attempts in (14, 15, 40):
        metrics.scheduled(attempts, waited_seconds=3.0)
    name = "scheduler_pod_scheduling_sli_duration_seconds_count"
    assert metrics.value(name, attempts="14") == 1
    assert metrics.value(name, attempts="15+") == 2


def test_an_attempt_is_counted_and_timed() -> None:
    metrics = SchedulerMetrics()
    labels = {"result": "scheduled", "profile": "a"}
    metrics.attempt("scheduled", "a", 0.25)
    assert metrics.value("scheduler_schedule_attempts_total", **labels) == 1
    duration = "scheduler_scheduling_attempt_duration_seconds"
    assert metrics.value(f"{duration}_sum", **labels) == 0.25
    assert metrics.value(f"{duration}_count", **labels) == 1


def test_two_schedulers_count_separately() -> None:
    one, other = SchedulerMetrics(), SchedulerMetrics()
    one.attempt("scheduled", "a", 0.0)
    labels = {"result": "scheduled", "profile": "a"}
    assert one.value("scheduler_schedule_attempts_total", **labels) == 1
    assert other.value("scheduler_schedule_attempts_total", **labels) == 0


# ---- counts ---------------------------------------------------------------------------------


def test_a_counter_without_labels_is_exposed_from_the_start() -> None:
    metrics = SchedulerMetrics()
    text = generate_latest(metrics.registry).decode()
    assert "\nbayplan_bugs_total 0.0\n" in text
    assert "\n# TYPE scheduler_unschedulable_pods gauge\n" in text


def test_a_counter_has_the_declared_number_of_labels() -> None:
    with pytest.raises(AssertionError, match="bayplan_bugs has labels"):
        SchedulerMetrics().bugs.add("one too many")


# ---- histograms -----------------------------------------------------------------------------


def samples(text: bytes) -> list[str]:
    """Without the samples that only the reference has: the times of creation."""
    lines = text.decode().splitlines()
    return [line for line in lines if not line.startswith("#") and "_created" not in line]


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from("ab"))))
def test_a_histogram_has_the_output_of_prometheus_client(observed: list[tuple[float, str]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    histogram = Histogram("seconds", "A time.", BOUNDS, ("who",))
    ours.register(histogram)
    reference = Reference("seconds", "A time.", ["who"], registry=theirs, buckets=BOUNDS)
    for amount, who in observed:
        histogram.observe(amount, who)
        reference.labels(who).observe(amount)
    assert samples(generate_latest(ours)) == samples(generate_latest(theirs))


def test_labels_are_exposed_by_their_text() -> None:
    registry = CollectorRegistry()
    histogram = Histogram("seconds", "A time.", BOUNDS, ("status",))
    registry.register(histogram)
    histogram.of(Code.UNSCHEDULABLE)(0.1)
    assert registry.get_sample_value("seconds_count", {"status": "Unschedulable"}) == 1


def test_an_observer_may_be_stored() -> None:
    registry = CollectorRegistry()
    histogram = Histogram("seconds", "A time.", BOUNDS, ("who",))
    registry.register(histogram)
    observe = histogram.of("a")
    observe(0.1)
    histogram.observe(0.3, "a")
    assert registry.get_sample_value("seconds_sum", {"who": "a"}) == pytest.approx(0.4)


def test_a_histogram_has_the_declared_number_of_labels() -> None:
    with pytest.raises(AssertionError, match="seconds has labels"):
        Histogram("seconds", "A time.", BOUNDS, ("who",)).observe(0.1)
