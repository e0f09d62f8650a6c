"""What is seen of the queue and the cache from outside: metrics, and the journal's records."""

from functools import partial
from typing import final

from bayplan.engine.engine_state import EngineState
from bayplan.framework.answers import failure_of
from bayplan.framework.interface import QueuedPodInfo
from bayplan.journal import GateRecord
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.queue.transitions import PENDING_QUEUES
from bayplan.state.pods import PodInfo


@final
class QueueJournal:
    """queue.settings.QueueRecorder: what happens in the queue goes to metrics and journal."""

    def __init__(self, engine: EngineState) -> None:
        self._engine = engine

    def incoming(self, queue: str, event: str) -> None:
        self._engine.metrics.incoming(queue, event)

    def hint_failed(self, plugin: str, event: str, error: BaseException) -> None:
        self._engine.metrics.hint_failures.labels(plugin).inc()
        status = failure_of(plugin, f"QueueingHint of {event} of", error)
        self._engine.note(plugin, status.message)

    def key_failed(self, queued: QueuedPodInfo, plugin: str, error: Exception) -> None:
        """The pod's place in the queue cannot be told."""
        status = failure_of(plugin, "QueueSort", error)
        self._engine.plugin_failed(queued.pod.key, plugin, status.message)

    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None:
        self._engine.metrics.unschedulable_delta(plugin, profile, delta)

    def gated(self, pod: PodInfo, plugin: str, message: str) -> None:
        engine = self._engine
        if engine.journal.is_kept:
            record = GateRecord(
                at_seconds=engine.clock.now(),
                pod=pod.key,
                uid=pod.uid,
                plugin=plugin,
                message=message,
            )
            engine.journal.write(record)


def show_sizes(engine: EngineState) -> None:
    """Gauges that ask when they are looked at."""
    metrics, cache = engine.metrics, engine.cache
    for queue in PENDING_QUEUES:
        metrics.pending_pods.labels(queue).set_function(partial(_pending, engine.queue, queue))
    metrics.cache_size.labels("nodes").set_function(lambda: cache.table.node_count)
    metrics.cache_size.labels("pods").set_function(lambda: len(cache.pods()))
    metrics.cache_size.labels("assumed_pods").set_function(lambda: cache.assumed_count)


def _pending(queue: SchedulingQueue, name: str) -> int:
    return queue.counts()[name]
