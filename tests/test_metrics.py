"""Metrics under upstream's names."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client import Histogram as Reference

from bayplan.framework.status import Code
from bayplan.metrics import Histogram, SchedulerMetrics, described

BOUNDS = [0.1, 0.2, 0.4]


def test_counts_are_exposed_under_upstreams_names() -> None:
    metrics = SchedulerMetrics()
    metrics.queue_incoming_pods.add("active", "BackoffComplete")
    metrics.queue_incoming_pods.add("active", "BackoffComplete")
    name = "scheduler_queue_incoming_pods_total"
    assert metrics.value(name, queue="active", event="BackoffComplete") == 2
    assert metrics.value(name, queue="backoff", event="BackoffComplete") == 0


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


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("scheduler_schedule_attempts", "[STABLE] "),
        ("scheduler_pending_pods", "[STABLE] "),
        ("scheduler_plugin_execution_duration_seconds", "[BETA] "),
        ("scheduler_cache_size", "[ALPHA] "),
        (
            "scheduler_preemption_goroutines_duration_seconds",
            "[ALPHA] (Deprecated since 1.37.0) ",
        ),
        ("workqueue_depth", "[BETA] "),
        ("rest_client_requests", "[ALPHA] "),
    ],
)
def test_a_help_text_begins_with_upstreams_stability_level(name: str, start: str) -> None:
    assert described(name, "What it counts.") == f"{start}What it counts."


def test_every_upstream_metric_has_its_level_and_ours_have_none() -> None:
    metrics = SchedulerMetrics()
    metrics.show_gauge("scheduler_shown", "Shown.", (), list)
    metrics.show_counter("bayplan_shown", "Shown.", (), list)
    texts = {family.name: family.documentation for family in metrics.registry.collect()}
    leveled = {name for name, text in texts.items() if text.startswith("[")}
    assert leveled == {name for name in texts if name.startswith("scheduler_")}
    assert len(leveled) > 30


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


# ---- upstream's table -----------------------------------------------------------------------

#: name → (labels, buckets as Prometheus' ExponentialBuckets), from upstream's
#: pkg/scheduler/metrics/metrics.go, v1.37: the names that dashboards and alerts query.
UPSTREAM: dict[str, tuple[str, tuple[float, float, int] | None]] = {
    "scheduler_schedule_attempts_total": ("result profile", None),
    "scheduler_scheduling_attempt_duration_seconds": ("result profile", (0.001, 2, 15)),
    "scheduler_scheduling_algorithm_duration_seconds": ("", (0.001, 2, 15)),
    "scheduler_pending_pods": ("queue", None),
    "scheduler_pod_scheduling_sli_duration_seconds": ("attempts", (0.01, 2, 20)),
    "scheduler_pod_scheduling_attempts": ("", (1, 2, 5)),
    "scheduler_pod_scheduled_after_flush_total": ("", None),
    "scheduler_framework_extension_point_duration_seconds": (
        "extension_point status profile",
        (0.0001, 2, 12),
    ),
    "scheduler_plugin_execution_duration_seconds": (
        "plugin extension_point status",
        (0.00001, 1.5, 20),
    ),
    "scheduler_queue_incoming_pods_total": ("queue event", None),
    "scheduler_queue_incoming_entities_total": ("queue event type", None),
    "scheduler_event_handling_duration_seconds": ("event", (0.0001, 2, 12)),
    "scheduler_queueing_hint_execution_duration_seconds": (
        "plugin event hint",
        (0.00001, 1.5, 20),
    ),
    "scheduler_permit_wait_duration_seconds": ("result", (0.001, 2, 15)),
    "scheduler_cache_size": ("type", None),
    "scheduler_unschedulable_pods": ("plugin profile", None),
    "scheduler_goroutines": ("operation", None),
    "scheduler_get_node_hint_duration_seconds": ("hinted profile", (0.00001, 2, 12)),
    "scheduler_podgroup_schedule_attempts_total": ("result profile", None),
    "scheduler_podgroup_scheduling_attempt_duration_seconds": ("result profile", (0.001, 2, 15)),
    "scheduler_podgroup_scheduling_algorithm_duration_seconds": ("", (0.001, 2, 15)),
    "scheduler_generated_placements_total": ("profile", None),
    "scheduler_placement_evaluations_total": ("result profile", None),
    "scheduler_placement_evaluation_duration_seconds": ("result profile", (0.001, 2, 15)),
    "scheduler_preemption_attempts_total": ("", None),
    "scheduler_preemption_victims": ("", (1, 2, 7)),
    "scheduler_preemption_goroutines_duration_seconds": ("result", (0.01, 2, 20)),
    "scheduler_preemption_goroutines_execution_total": ("result", None),
    "scheduler_preemption_evaluation_duration_seconds": ("preemptor result", (0.001, 2, 16)),
    "scheduler_preemption_execution_duration_seconds": ("preemptor result", (0.001, 2, 16)),
    "scheduler_preemption_pdb_violations_total": ("preemptor", None),
    "scheduler_workload_preemption_attempts_total": ("result", None),
    "scheduler_preemption_workload_disruptions": ("preemptor", (1, 2, 11)),
    "scheduler_workload_preemption_victims": ("", (1, 2, 11)),
}


def parts_of(metrics: SchedulerMetrics, name: str) -> tuple[Any, list[str], list[float]]:
    """One metric with its label names and its buckets."""
    assert metrics.registry  # makes every metric
    [metric] = [m for m in vars(metrics).values() if getattr(m, "_name", "") == name]
    return metric, list(metric._labels), getattr(metric, "_bounds", [])


@pytest.mark.parametrize("name", UPSTREAM)
def test_upstreams_metrics_have_its_labels_and_buckets(name: str) -> None:
    labels, buckets = UPSTREAM[name]
    metrics = SchedulerMetrics()
    _, label_names, bounds = parts_of(metrics, name.removesuffix("_total"))
    assert label_names == labels.split()
    if buckets is not None:
        start, factor, count = buckets
        assert bounds == pytest.approx([start * factor**n for n in range(count)])
    else:
        assert bounds == []
