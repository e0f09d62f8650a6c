"""Metrics of a work queue under client-go's names."""

from prometheus_client import CollectorRegistry

from bayplan.adapters.live.work_queue_metrics import WorkQueueMetrics


def test_items_are_counted_and_timed_from_arrival_to_completion() -> None:
    now_seconds, waiting = [0.0], [3]
    queue = WorkQueueMetrics("events", lambda: now_seconds[0], lambda: waiting[0])
    registry = CollectorRegistry()
    queue.register(registry)

    def value(name: str) -> float | None:
        return registry.get_sample_value(f"workqueue_{name}", {"name": "events"})

    assert (value("depth"), value("adds_total"), value("retries_total")) == (3, 0, 0)
    first_seconds = queue.added()
    now_seconds[0] = 5.0
    with queue.working(first_seconds):
        now_seconds[0] = 6.0
        with queue.working(queue.added()):
            now_seconds[0] = 8.0
            assert value("unfinished_work_seconds") == 3 + 2
            assert value("longest_running_processor_seconds") == 3
    queue.retried()
    assert (value("adds_total"), value("retries_total")) == (2, 1)
    assert (value("queue_duration_seconds_sum"), value("queue_duration_seconds_count")) == (5, 2)
    assert (value("work_duration_seconds_sum"), value("work_duration_seconds_count")) == (5, 2)
    assert (value("unfinished_work_seconds"), value("longest_running_processor_seconds")) == (0, 0)
