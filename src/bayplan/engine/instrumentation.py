"""What is seen of the queue and the cache from outside: metrics, and the journal's records."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import final

from bayplan.config.feature_gates import ALPHA, BETA, GA, GATES
from bayplan.engine.core import EngineCore
from bayplan.engine.reuse.cache import ResultCache
from bayplan.engine.reuse.entry import ObjectGeneration
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Status, is_rejected
from bayplan.framework.types import QueuedPodInfo
from bayplan.framework.validation import failure_of
from bayplan.journal import GateRecord
from bayplan.queue.entry import PENDING_QUEUES
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.queue.sub_queues import GROUP_ENTITY
from bayplan.state.pods import PodInfo

#: Labels of scheduler_pending_pods for members of groups that are in none of the queues: their
#: group has no object yet; they came while it is being tried.
INCOMPLETE, PENDING = "incomplete", "pending"

_PRE_ENQUEUE = "PreEnqueue"

#: Upstream leaves the stage of what is generally available empty.
_STAGES = {ALPHA: "ALPHA", BETA: "BETA", GA: ""}


@final
class QueueJournal:
    """queue.settings.QueueRecorder: what happens in the queue goes to metrics and journal."""

    def __init__(self, engine: EngineCore) -> None:
        self._engine = engine
        #: By profile: observes how long PreEnqueue took.
        self._pre_enqueue_seconds: dict[str, Callable[[float], None]] = {}

    def incoming(self, queue: str, event: str, pod_count: int, kind: str) -> None:
        metrics = self._engine.metrics
        metrics.queue_incoming_pods.add(queue, event, count=pod_count)
        metrics.queue_incoming_entities.add(queue, event, kind)

    def pre_enqueue_took(self, profile: str, seconds: float) -> None:
        observe = self._pre_enqueue_seconds.get(profile)
        if observe is None:
            # As upstream, whose code is Success whatever the plugins say.
            durations = self._engine.metrics.extension_point_duration
            observe = durations.of(_PRE_ENQUEUE, Code.SUCCESS, profile)
            self._pre_enqueue_seconds[profile] = observe
        observe(seconds)

    def pre_enqueue_plugin_took(self, plugin: str, code: Code, seconds: float) -> None:
        self._engine.metrics.plugin_execution_duration.observe(seconds, plugin, _PRE_ENQUEUE, code)

    def hint_took(self, plugin: str, event: str, answer: str, seconds: float) -> None:
        self._engine.metrics.hint_duration.observe(seconds, plugin, event, answer)

    def hint_failed(self, plugin: str, event: str, error: BaseException) -> None:
        self._engine.metrics.hint_failures.add(plugin)
        status = failure_of(plugin, f"QueueingHint of {event} of", error)
        self._engine.telemetry.note(plugin, status.message, plugin)

    def key_failed(self, queued: QueuedPodInfo, plugin: str, error: BaseException) -> None:
        """The pod's place in the queue cannot be told."""
        status = failure_of(plugin, "QueueSort", error)
        self._engine.telemetry.plugin_failed(queued.pod.key, plugin, status.message)

    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None:
        self._engine.metrics.unschedulable_pods.add(plugin, profile, count=delta)

    def gated(self, pod: PodInfo, plugin: str, status: Status) -> None:
        engine = self._engine
        failed = not is_rejected(status)
        if failed:
            engine.metrics.plugin_failures.add(plugin)
        if engine.telemetry.journal.is_recording:
            record = GateRecord(
                at_seconds=engine.clock.now(),
                pod=pod.key,
                uid=pod.uid,
                plugin=plugin,
                message=status.message,
                code=str(status.code) if failed else "",
            )
            engine.telemetry.journal.write(record)


def show_sizes(engine: EngineCore) -> None:
    """Gauges that ask when they are looked at."""
    metrics, cache = engine.metrics, engine.cluster.cache
    waits = "Pods without a group and groups that wait, by queue."
    entities = partial(_entities, engine.queue)
    metrics.show_gauge("scheduler_queued_entities", waits, ("queue", "type"), entities)
    in_flight = "Pods being tried, and events kept for when they come back."
    events = partial(_in_flight, engine.queue)
    metrics.show_gauge("scheduler_inflight_events", in_flight, ("event",), events)
    for queue in (*PENDING_QUEUES, INCOMPLETE, PENDING):
        metrics.pending_pods.show(queue, partial(_pending, engine.queue, queue))
    metrics.cache_size.show("nodes", lambda: cache.table.node_count)
    metrics.cache_size.show("pods", lambda: len(cache.pods()))
    metrics.cache_size.show("assumed_pods", lambda: cache.assumed_count)


def _pending(queue: SchedulingQueue, name: str) -> int:
    if name == PENDING:
        return queue.groups.came_in_flight()
    _, incomplete_count = queue.groups.without_object()
    if name == INCOMPLETE:
        return incomplete_count
    return queue.counts()[name] - (incomplete_count if name == "gated" else 0)


def _entities(queue: SchedulingQueue) -> Iterator[tuple[tuple[str, str], float]]:
    """A group without an object is no entity: upstream keeps its pods apart."""
    incomplete = {("gated", GROUP_ENTITY): queue.groups.without_object()[0]}
    for labels, count in queue.sizes.entities().items():
        yield labels, count - incomplete.get(labels, 0)


def _in_flight(queue: SchedulingQueue) -> Iterator[tuple[tuple[str], float]]:
    yield from (((label,), count) for label, count in queue.in_flight.counts().items())


def _prevented(reuse: Mapping[str, ResultCache]) -> Iterator[tuple[tuple[str, ...], float]]:
    for profile, cache in reuse.items():
        for labels, count in sorted(cache.prevented_counts().items()):
            yield (profile, *labels), count


def show_evaluations(engine: EngineCore) -> None:
    """scheduler_plugin_evaluation_total: read from the profiles when somebody looks."""
    engine.metrics.show_counter(
        "scheduler_plugin_evaluation",
        "Evaluations of plugins: of pods at PreFilter and PreScore, of nodes at Filter and Score.",
        ("plugin", "extension_point", "profile"),
        partial(_evaluations, engine.frameworks),
    )


def _evaluations(
    frameworks: Mapping[str, Framework],
) -> Iterator[tuple[tuple[str, ...], float]]:
    for profile, framework in frameworks.items():
        for labels, count in framework.evaluations.counts():
            yield (*labels, profile), count


def show_features(engine: EngineCore) -> None:
    """kubernetes_feature_enabled: the gates of the scheduler, which do not change."""
    values = {
        (name, _STAGES[gate.stage]): float(engine.gates.enabled(name))
        for name, gate in GATES.items()
    }
    engine.metrics.show_gauge(
        "kubernetes_feature_enabled",
        "Stage of each feature gate, and whether it is on (1).",
        ("name", "stage"),
        values.items,
    )


# ---- reuse ---------------------------------------------------------------------------------


def reuse_of(engine: EngineCore, framework: Framework) -> ResultCache:
    """A profile's table, whose remarks go to the journal and whose look-ups are timed."""
    name = framework.profile_name
    duration = engine.metrics.node_hint_duration
    took = duration.of("no_hint", name), duration.of("hint", name)
    epoch = ObjectGeneration(engine.cluster.cache.table, engine.cluster.objects)
    return ResultCache(
        framework,
        engine.cluster.cache.table,
        epoch,
        partial(engine.telemetry.note, name),
        observe=took,
    )


def show_reuse(engine: EngineCore) -> None:
    """What reuse is worth, and what ended it; upstream's names where it has them (KEP-5598)."""
    metrics, reuse = engine.metrics, engine.reuse
    gauges: dict[str, tuple[str, Callable[[ResultCache], float]]] = {
        "bayplan_reuse_entries": ("Kinds of pods that something is known about.", len),
        "bayplan_reuse_bytes": ("What that takes.", lambda r: r.bytes_used),
    }
    for name, (text, value) in gauges.items():
        metrics.show_gauge(name, text, ("profile",), partial(_by_profile, reuse, value))
    possible = "Attempts at pods whose like was tried before, whether or not that was of use."
    count = partial(_by_profile, reuse, lambda r: r.possible_count)
    metrics.show_counter("bayplan_reuse_possible", possible, ("profile",), count)
    metrics.show_counter(
        "bayplan_reuse_prevented",
        "Attempts in which a plugin's results could not be reused, by reason.",
        ("profile", "plugin", "reason"),
        partial(_prevented, reuse),
    )
    by_label: dict[str, tuple[str, str, Callable[[ResultCache], Mapping[str, float]]]] = {
        "scheduler_batch_attempts": (
            "Attempts by how they profited from what was known.",
            "result",
            lambda r: r.attempt_counts,
        ),
        "scheduler_batch_cache_flushed": (
            "Rankings that were thrown away, by reason; the answers behind them stayed.",
            "reason",
            lambda r: r.flushed_counts,
        ),
        "bayplan_reuse_dropped": (
            "Times that answers were dropped, by reason.",
            "reason",
            lambda r: r.dropped_counts,
        ),
        "bayplan_reuse_mismatch": (
            "Kept answers that a look at the plugin proved wrong.",
            "plugin",
            lambda r: r.mismatch_counts,
        ),
        "bayplan_reuse_rows_asked": (
            "Nodes that a plugin was asked about.",
            "plugin",
            lambda r: {name: count.evaluated for name, count in r.row_counts().items()},
        ),
        "bayplan_reuse_rows_kept": (
            "Nodes that a plugin was not asked about, for its answer was known.",
            "plugin",
            lambda r: {name: count.cached for name, count in r.row_counts().items()},
        ),
    }
    for name, (text, label, values) in by_label.items():
        read = partial(_by_label, reuse, values)
        metrics.show_counter(name, text, ("profile", label), read)


def _by_profile(
    reuse: Mapping[str, ResultCache], value: Callable[[ResultCache], float]
) -> Iterator[tuple[tuple[str, ...], float]]:
    for profile, cache in reuse.items():
        yield (profile,), value(cache)


def _by_label(
    reuse: Mapping[str, ResultCache], values: Callable[[ResultCache], Mapping[str, float]]
) -> Iterator[tuple[tuple[str, ...], float]]:
    for profile, cache in reuse.items():
        for label, value in sorted(values(cache).items()):
            yield (profile, label), value
