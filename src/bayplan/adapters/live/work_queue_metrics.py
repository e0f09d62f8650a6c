"""Metrics of a queue of work, under client-go's names, labels and buckets.

kube-scheduler exposes its workqueues under these names. Bayplan's queues are different ones, so the
values of the label ``name`` differ. Upstream: component-base/metrics/prometheus/workqueue.
"""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import final

from prometheus_client import CollectorRegistry

from bayplan.metrics import COUNTER, GAUGE, Histogram, ScrapedFamily

_BOUNDS_SECONDS = [10.0**power for power in range(-8, 2)]
_LABELS = ("name",)

_Samples = Iterable[tuple[tuple[str, ...], float]]


@final
class WorkQueueMetrics:
    """Measures every item. Register the object to expose its metrics."""

    def __init__(self, name: str, now: Callable[[], float], depth: Callable[[], int]) -> None:
        """``now``: seconds on a monotonic scale; ``depth``: how many items wait."""
        self._name = name
        self._now = now
        self._depth = depth
        self._added_count = 0
        self._retried_count = 0
        #: The start of each item in progress.
        self._starts: dict[object, float] = {}
        self._waits = Histogram(
            "workqueue_queue_duration_seconds",
            "How long items wait in a queue of work.",
            _BOUNDS_SECONDS,
            _LABELS,
        )
        self._works = Histogram(
            "workqueue_work_duration_seconds",
            "How long the work on an item takes.",
            _BOUNDS_SECONDS,
            _LABELS,
        )

    def added(self) -> float:
        """Count a new item; returns the time."""
        self._added_count += 1
        return self._now()

    def retried(self) -> None:
        """Count a failed item that was added again."""
        self._retried_count += 1

    @contextmanager
    def working(self, added_seconds: float) -> Generator[None]:
        """Measure the work on an item that was added at ``added_seconds``."""
        start, token = self._now(), object()
        self._waits.observe(start - added_seconds, self._name)
        self._starts[token] = start
        try:
            yield
        finally:
            del self._starts[token]
            self._works.observe(self._now() - start, self._name)

    def register(self, registry: CollectorRegistry) -> None:
        registry.register(self._waits)
        registry.register(self._works)
        for family, name, text, read in (
            (GAUGE, "depth", "Items that wait in a queue of work.", self._depth),
            (COUNTER, "adds", "Items that came.", lambda: self._added_count),
            (COUNTER, "retries", "Items tried again.", lambda: self._retried_count),
            (
                GAUGE,
                "unfinished_work_seconds",
                "How long all items in work have been in work, together.",
                self._unfinished_seconds,
            ),
            (
                GAUGE,
                "longest_running_processor_seconds",
                "How long the oldest item in work has been in work.",
                self._longest_seconds,
            ),
        ):
            samples = _Sample(self._name, read)
            registry.register(
                ScrapedFamily(family, f"workqueue_{name}", text, _LABELS, read=samples)
            )

    def _unfinished_seconds(self) -> float:
        now = self._now()
        return sum(now - start for start in self._starts.values())

    def _longest_seconds(self) -> float:
        return self._now() - min(self._starts.values(), default=self._now())


@final
class _Sample:
    """One sample with the queue's name."""

    def __init__(self, name: str, read: Callable[[], float]) -> None:
        self._name = name
        self._read = read

    def __call__(self) -> _Samples:
        yield (self._name,), self._read()
