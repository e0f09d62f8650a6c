"""The scheduler's metrics, under upstream's names, labels and buckets.

One registry per scheduler, so that several may live in one process. What is counted at every
attempt is bound once: looking a child up by its labels costs more than the rest.
"""

from bisect import bisect_left
from collections.abc import Callable, Generator, Hashable, Iterable
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate
from typing import final

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

#: From here on the number of attempts is one label.
_ATTEMPTS_TOLD_MAX = 15


def _exponential(start: float, factor: float, count: int) -> list[float]:
    return [start * factor**power for power in range(count)]


@final
class Buckets:
    """What one set of labels observed."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: list[float]) -> None:
        self.bounds = bounds
        #: The last one is for what is above all bounds.
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, amount: float) -> None:
        self.counts[bisect_left(self.bounds, amount)] += 1
        self.total += amount


@final
class Histogram(Collector):
    """A histogram that is cheap to observe: many are, at every attempt.

    Labels are any values; their text is what is exposed.
    """

    def __init__(self, name: str, text: str, bounds: list[float], labels: tuple[str, ...]) -> None:
        self._name = name
        self._text = text
        self._bounds = bounds
        self._labels = labels
        self._children: dict[tuple[Hashable, ...], Buckets] = {}

    def of(self, *labels: Hashable) -> Callable[[float], None]:
        """Observes for these labels; to be kept by whoever observes often."""
        found = self._children.get(labels)
        if found is None:
            assert len(labels) == len(self._labels), f"{self._name} has labels {self._labels}"
            found = self._children[labels] = Buckets(self._bounds)
        return found.observe

    def observe(self, amount: float, *labels: Hashable) -> None:
        self.of(*labels)(amount)

    def collect(self) -> Iterable[HistogramMetricFamily]:
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        bounds = [*map(floatToGoString, self._bounds), "+Inf"]
        for labels, found in list(self._children.items()):
            buckets = list(zip(bounds, accumulate(found.counts), strict=True))
            family.add_metric([*map(str, labels)], buckets, found.total)
        yield family


#: (labels, value) of each sample.
Read = Callable[[], Iterable[tuple[tuple[str, ...], float]]]


@final
class Reading(Collector):
    """A family whose samples are counted elsewhere, and read when somebody looks."""

    def __init__(self, name: str, text: str, labels: tuple[str, ...], read: Read) -> None:
        """A counter; one whose name ends in _entries or _bytes is a gauge."""
        is_gauge = name.endswith(("_entries", "_bytes"))
        self._family = GaugeMetricFamily if is_gauge else CounterMetricFamily
        self._name = name
        self._text = text
        self._labels = labels
        self._read = read

    def collect(self) -> Iterable[Metric]:
        family = self._family(self._name, self._text, labels=self._labels)
        for labels, value in self._read():
            family.add_metric(labels, value)
        yield family


@final
class SchedulerMetrics:
    """What kube-scheduler counts, as far as these parts exist here."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._make_counters()
        self._make_gauges()
        self._make_histograms()
        self._make_plugin_histograms()
        self._make_preemption()
        self._attempts_child = lru_cache(maxsize=None)(self.schedule_attempts.labels)
        self._incoming_child = lru_cache(maxsize=None)(self.queue_incoming_pods.labels)
        self._unschedulable_child = lru_cache(maxsize=None)(self.unschedulable_pods.labels)

    # ---- what there is --------------------------------------------------------------------

    def _make_counters(self) -> None:
        self.schedule_attempts = self._counter(
            "scheduler_schedule_attempts",
            "Attempts to schedule pods, by result.",
            "result",
            "profile",
        )
        self.pod_scheduled_after_flush = self._counter(
            "scheduler_pod_scheduled_after_flush",
            "Pods bound after they had waited in vain for an event and were tried again anyway.",
        )
        self.queue_incoming_pods = self._counter(
            "scheduler_queue_incoming_pods",
            "Pods added to a queue, by event and queue.",
            "queue",
            "event",
        )
        self.group_members_retried = self._counter(
            "bayplan_group_members_retried",
            "Members of groups whose binding failed while their group runs, tried again at once.",
        )
        self.pods_rejected_by_kubelet = self._counter(
            "bayplan_pods_rejected_by_kubelet",
            "Pods that failed on their node because the kubelet did not admit them, by its reason.",
            "reason",
        )
        self.plugin_failures = self._counter(
            "bayplan_plugin_failures",
            "Times a plugin raised, or answered what it may not.",
            "plugin",
        )
        self.hint_failures = self._counter(
            "bayplan_queueing_hint_failures",
            "Queueing hints that raised and counted as Queue.",
            "plugin",
        )
        self.bugs = self._counter(
            "bayplan_bugs",
            "Failures of the scheduler itself: what failed was given up, or tried again.",
        )

    def _make_gauges(self) -> None:
        self.pending_pods = self._gauge("pending_pods", "Pending pods, by queue.", "queue")
        self.unschedulable_pods = self._gauge(
            "unschedulable_pods", "Unschedulable pods, by plugin.", "plugin", "profile"
        )
        self.cache_size = self._gauge("cache_size", "Nodes, pods and assumed pods known.", "type")
        self.goroutines = self._gauge(
            "goroutines", "Work under way besides the main loop, by operation.", "operation"
        )

    def _make_histograms(self) -> None:
        self.attempt_duration = self._histogram(
            "scheduling_attempt_duration_seconds",
            "Scheduling attempt latency: algorithm and binding.",
            _exponential(0.001, 2, 15),
            "result",
            "profile",
        )
        self.algorithm_duration = self._histogram(
            "scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency: from the pop to a node, or to none.",
            _exponential(0.001, 2, 15),
        )
        self.pod_scheduling_attempts = self._histogram(
            "pod_scheduling_attempts",
            "Attempts until a pod was scheduled.",
            _exponential(1, 2, 5),
        )
        self.pod_scheduling_sli_duration = self._histogram(
            "pod_scheduling_sli_duration_seconds",
            "From first entering the queue to being bound.",
            _exponential(0.01, 2, 20),
            "attempts",
        )
        self.node_hint_duration = self._histogram(
            "get_node_hint_duration_seconds",
            "How long it took to find a pod's node from what is known of its like.",
            _exponential(0.00001, 2, 12),
            "hinted",
            "profile",
        )
        self.permit_wait_duration = self._histogram(
            "permit_wait_duration_seconds",
            "How long pods waited at Permit.",
            _exponential(0.001, 2, 15),
            "result",
        )

    def _make_plugin_histograms(self) -> None:
        self.extender_duration = Histogram(
            "bayplan_extender_duration_seconds",
            "How long extenders took to answer, or not to.",
            _exponential(0.001, 2, 15),
            ("extender", "verb", "result"),
        )
        self.registry.register(self.extender_duration)
        self.extension_point_duration = self._histogram(
            "framework_extension_point_duration_seconds",
            "Duration of all plugins of one extension point.",
            _exponential(0.0001, 2, 12),
            "extension_point",
            "status",
            "profile",
        )
        self.plugin_execution_duration = self._histogram(
            "plugin_execution_duration_seconds",
            "Duration of one plugin at one extension point, in a sample of attempts.",
            _exponential(0.00001, 1.5, 20),
            "plugin",
            "extension_point",
            "status",
        )

    def _make_preemption(self) -> None:
        self.preemption_attempts = self._counter(
            "scheduler_preemption_attempts", "Attempts to make room for a pod by evicting others."
        )
        self.preemption_victims = self._histogram(
            "preemption_victims",
            "Pods chosen to be evicted for one pod.",
            _exponential(1, 2, 7),
        )
        self.workload_preemption_attempts = self._counter(
            "scheduler_workload_preemption_attempts",
            "Times that room was made for a group of pods.",
            "result",
        )
        self.workload_preemption_victims = self._histogram(
            "workload_preemption_victims",
            "Pods chosen to be evicted for one group.",
            _exponential(1, 2, 11),
        )
        self.preemption_pdb_violations = self._counter(
            "scheduler_preemption_pdb_violations",
            "Victims that a disruption budget would have kept.",
            "preemptor",
        )
        self.preemption_evaluation_duration = self._histogram(
            "preemption_evaluation_duration_seconds",
            "How long it took to find victims.",
            _exponential(0.001, 2, 16),
            "preemptor",
            "result",
        )
        self.preemption_execution_duration = self._histogram(
            "preemption_execution_duration_seconds",
            "How long it took to tell victims to go.",
            _exponential(0.001, 2, 16),
            "preemptor",
            "result",
        )
        self.preemption_goroutines_duration = self._histogram(
            "preemption_goroutines_duration_seconds",
            "The same, under its older name.",
            _exponential(0.01, 2, 20),
            "result",
        )
        self.preemption_goroutines_execution = self._counter(
            "scheduler_preemption_goroutines_execution",
            "Evictions for one pod that have ended, by result.",
            "result",
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"scheduler_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, bounds: list[float], *labels: str) -> Histogram:
        found = Histogram(f"scheduler_{name}", text, bounds, labels)
        self.registry.register(found)
        return found

    def show(self, name: str, text: str, labels: tuple[str, ...], read: Read) -> None:
        """Expose what is counted elsewhere."""
        self.registry.register(Reading(name, text, labels, read))

    # ---- what happens ---------------------------------------------------------------------

    def attempt(self, result: str, profile: str, seconds: float) -> None:
        """An attempt ended: scheduled, unschedulable, error."""
        self._attempts_child(result, profile).inc()
        self.attempt_duration.observe(seconds, result, profile)

    def incoming(self, queue: str, event: str) -> None:
        self._incoming_child(queue, event).inc()

    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None:
        self._unschedulable_child(plugin, profile).inc(delta)

    def scheduled(self, attempts: int, waited_seconds: float) -> None:
        """A pod was bound after so many attempts and so long."""
        self.pod_scheduling_attempts.observe(attempts)
        label = str(attempts) if attempts < _ATTEMPTS_TOLD_MAX else f"{_ATTEMPTS_TOLD_MAX}+"
        self.pod_scheduling_sli_duration.observe(waited_seconds, label)

    @contextmanager
    def working_on(self, operation: str | None) -> Generator[None]:
        """Count work of this kind while it lasts; None: work that nobody counts."""
        if operation is None:
            yield
            return
        with self.goroutines.labels(operation).track_inprogress():
            yield

    def value(self, name: str, **labels: str) -> float:
        """The current value of a sample, 0 where it does not exist; for reports and tests."""
        return self.registry.get_sample_value(name, labels) or 0.0
