"""Metrics under upstream's names."""

from bayplan.metrics import SchedulerMetrics


def test_counts_are_read_back_under_upstreams_names():
    metrics = SchedulerMetrics()
    metrics.incoming("active", "BackoffComplete")
    metrics.incoming("active", "BackoffComplete")
    name = "scheduler_queue_incoming_pods_total"
    assert metrics.value(name, queue="active", event="BackoffComplete") == 2
    assert metrics.value(name, queue="backoff", event="BackoffComplete") == 0


def test_the_gauge_of_unschedulable_pods_goes_up_and_down():
    metrics = SchedulerMetrics()
    for delta in (1, 1, -1):
        metrics.unschedulable_delta("NodePorts", "default-scheduler", delta)
    name = "scheduler_unschedulable_pods"
    assert metrics.value(name, plugin="NodePorts", profile="default-scheduler") == 1


def test_many_attempts_share_one_label():
    metrics = SchedulerMetrics()
    metrics.scheduled(attempts=40, waited_seconds=3.0)
    name = "scheduler_pod_scheduling_sli_duration_seconds_count"
    assert metrics.value(name, attempts="15+") == 1


def test_two_schedulers_count_apart():
    one, other = SchedulerMetrics(), SchedulerMetrics()
    one.attempt("scheduled", "a")
    labels = {"result": "scheduled", "profile": "a"}
    assert one.value("scheduler_schedule_attempts_total", **labels) == 1
    assert other.value("scheduler_schedule_attempts_total", **labels) == 0
