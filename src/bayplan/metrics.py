"""The scheduler's metrics, under upstream's names, labels and buckets.

One registry per scheduler, so that several may live in one process. Children are bound once: a
look-up by labels costs ten times an increment.
"""

from functools import lru_cache
from typing import final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


def _exponential(start: float, factor: float, count: int) -> list[float]:
    return [start * factor**power for power in range(count)]


@final
class SchedulerMetrics:
    """What kube-scheduler counts, as far as these parts exist here."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"scheduler_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"scheduler_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: list[float], *labels: str) -> Histogram:
            return Histogram(f"scheduler_{name}", text, labels, buckets=buckets, registry=registry)

        self.schedule_attempts = counter(
            "schedule_attempts", "Attempts to schedule pods, by result.", "result", "profile"
        )
        self.queue_incoming_pods = counter(
            "queue_incoming_pods", "Pods added to a queue, by event and queue.", "queue", "event"
        )
        self.pending_pods = gauge("pending_pods", "Pending pods, by queue.", "queue")
        self.unschedulable_pods = gauge(
            "unschedulable_pods", "Unschedulable pods, by plugin.", "plugin", "profile"
        )
        self.cache_size = gauge("cache_size", "Nodes, pods and assumed pods known.", "type")
        self.attempt_duration = histogram(
            "scheduling_attempt_duration_seconds",
            "Scheduling attempt latency: algorithm and binding.",
            _exponential(0.001, 2, 15),
            "result",
            "profile",
        )
        self.pod_scheduling_attempts = histogram(
            "pod_scheduling_attempts",
            "Attempts until a pod was scheduled.",
            _exponential(1, 2, 5),
        )
        self.pod_scheduling_sli_duration = histogram(
            "pod_scheduling_sli_duration_seconds",
            "From first entering the queue to being bound.",
            _exponential(0.01, 2, 20),
            "attempts",
        )
        self.permit_wait_duration = histogram(
            "permit_wait_duration_seconds",
            "How long pods waited at Permit.",
            _exponential(0.001, 2, 15),
            "result",
        )
        self.plugin_execution_duration = histogram(
            "plugin_execution_duration_seconds",
            "Duration of one plugin at one extension point, in a sample of cycles.",
            _exponential(0.00001, 1.5, 20),
            "plugin",
            "extension_point",
            "status",
        )
        self.hint_failures = Counter(
            "bayplan_queueing_hint_failures",
            "Queueing hints that raised and counted as Queue.",
            ("plugin",),
            registry=registry,
        )
        self.bugs = Counter(
            "bayplan_failed_attempts_by_bug",
            "Attempts that failed because of a bug in the scheduler itself.",
            registry=registry,
        )
        self._attempts_child = lru_cache(maxsize=None)(self.schedule_attempts.labels)
        self._incoming_child = lru_cache(maxsize=None)(self.queue_incoming_pods.labels)
        self._unschedulable_child = lru_cache(maxsize=None)(self.unschedulable_pods.labels)

    def attempt(self, result: str, profile: str) -> None:
        self._attempts_child(result, profile).inc()

    def incoming(self, queue: str, event: str) -> None:
        self._incoming_child(queue, event).inc()

    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None:
        self._unschedulable_child(plugin, profile).inc(delta)

    def scheduled(self, attempts: int, waited_seconds: float) -> None:
        """A pod was bound after so many attempts and so long."""
        self.pod_scheduling_attempts.observe(attempts)
        label = str(attempts) if attempts < 15 else "15+"
        self.pod_scheduling_sli_duration.labels(label).observe(waited_seconds)

    def value(self, name: str, **labels: str) -> float:
        """The current value of a sample, 0 where it does not exist; for reports and tests."""
        return self.registry.get_sample_value(name, labels) or 0.0
