"""Metrics of the queue, the cache and reuse, and the queue's records in the journal."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import final

from bayplan.config.feature_gates import ALPHA, BETA, GA, FeatureGates, gates_of
from bayplan.engine.reuse.cache import ResultCache
from bayplan.engine.reuse.entry import ObjectGeneration
from bayplan.engine.telemetry import Telemetry
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Status, is_rejected
from bayplan.framework.types import QueuedPodInfo
from bayplan.framework.validation import failure_of
from bayplan.journal import GateRecord
from bayplan.metrics import Buckets, SchedulerMetrics
from bayplan.queue.entry import PENDING_QUEUES
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.queue.sub_queues import GROUP_ENTITY
from bayplan.state.cache import Cache, ClusterView
from bayplan.state.pods import PodInfo

#: Labels of scheduler_pending_pods for members of groups that are in no queue. `INCOMPLETE`: the
#: group has no object yet. `PENDING`: the member came during an attempt at its group.
INCOMPLETE, PENDING = "incomplete", "pending"

_PRE_ENQUEUE = "PreEnqueue"

#: The stage of a GA gate is empty, as upstream.
_STAGES = {ALPHA: "ALPHA", BETA: "BETA", GA: ""}


@final
class QueueJournal:
    """queue.settings.QueueRecorder, with metrics and the journal."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._metrics = telemetry.metrics

    def pre_enqueue_observer(self, profile: str) -> Buckets:
        # As upstream, the code is always Success.
        return self._metrics.extension_point_duration.of(_PRE_ENQUEUE, Code.SUCCESS, profile)

    def pre_enqueue_plugin_took(self, plugin: str, code: Code, seconds: float) -> None:
        self._metrics.plugin_execution_duration.observe(seconds, plugin, _PRE_ENQUEUE, code)

    def hint_took(self, plugin: str, event: str, answer: str, seconds: float) -> None:
        self._metrics.hint_duration.observe(seconds, plugin, event, answer)

    def hint_failed(self, plugin: str, event: str, error: BaseException) -> None:
        self._metrics.hint_failures.add(plugin)
        status = failure_of(plugin, f"QueueingHint of {event} of", error)
        self._telemetry.note(plugin, status.message, plugin)

    def key_failed(self, queued: QueuedPodInfo, plugin: str, error: BaseException) -> None:
        """Note that QueueSort gives no valid key for the pod."""
        status = failure_of(plugin, "QueueSort", error)
        self._telemetry.plugin_failed(queued.pod.key, plugin, status.message)

    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None:
        self._metrics.unschedulable_pods.add(plugin, profile, count=delta)

    def gated(self, pod: PodInfo, plugin: str, status: Status) -> None:
        telemetry = self._telemetry
        failed = not is_rejected(status)
        if failed:
            self._metrics.plugin_failures.add(plugin)
        if telemetry.journal.is_recording:
            record = GateRecord(
                at_seconds=telemetry.clock.now(),
                pod=pod.key,
                uid=pod.uid,
                plugin=plugin,
                message=status.message,
                code=str(status.code) if failed else "",
            )
            telemetry.journal.write(record)


def show_sizes(metrics: SchedulerMetrics, queue: SchedulingQueue, cache: Cache) -> None:
    """Gauges and counters whose values are read at each scrape."""
    sizes = queue.sizes
    metrics.show_counter(
        "scheduler_queue_incoming_pods",
        "Pods added to a queue, by event and queue.",
        ("queue", "event"),
        sizes.pods_entered.items,
    )
    metrics.show_counter(
        "scheduler_queue_incoming_entities",
        "Pods without a group and groups added to a queue, by event and queue.",
        ("queue", "event", "type"),
        sizes.entities_entered.items,
    )
    waits = "Pods without a group and groups that wait, by queue."
    entities = partial(_entities, queue)
    metrics.show_gauge("scheduler_queued_entities", waits, ("queue", "type"), entities)
    in_flight = "Pods in flight, and the events that are recorded for them."
    events = partial(_in_flight, queue)
    metrics.show_gauge("scheduler_inflight_events", in_flight, ("event",), events)
    for name in (*PENDING_QUEUES, INCOMPLETE, PENDING):
        metrics.pending_pods.show(name, partial(_pending, queue, name))
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
    """Counts of entities. A group without an object is no entity, as upstream."""
    incomplete = {("gated", GROUP_ENTITY): queue.groups.without_object()[0]}
    for labels, count in queue.sizes.entities().items():
        yield labels, count - incomplete.get(labels, 0)


def _in_flight(queue: SchedulingQueue) -> Iterator[tuple[tuple[str], float]]:
    yield from (((label,), count) for label, count in queue.in_flight.counts().items())


def _prevented(reuse: Mapping[str, ResultCache]) -> Iterator[tuple[tuple[str, ...], float]]:
    for profile, cache in reuse.items():
        for labels, count in sorted(cache.prevented_counts().items()):
            yield (profile, *labels), count


def show_evaluations(metrics: SchedulerMetrics, frameworks: Mapping[str, Framework]) -> None:
    """scheduler_plugin_evaluation_total, read from the profiles at each scrape."""
    metrics.show_counter(
        "scheduler_plugin_evaluation",
        "Evaluations of plugins: of pods at PreFilter and PreScore, of nodes at Filter and Score.",
        ("plugin", "extension_point", "profile"),
        partial(_evaluations, frameworks),
    )


def _evaluations(
    frameworks: Mapping[str, Framework],
) -> Iterator[tuple[tuple[str, ...], float]]:
    for profile, framework in frameworks.items():
        for labels, count in framework.evaluations.counts():
            yield (*labels, profile), count


def show_features(metrics: SchedulerMetrics, gates: FeatureGates) -> None:
    """kubernetes_feature_enabled: the gates of the scheduler. They never change."""
    values = {
        (name, _STAGES[gate.stage]): float(gates.enabled(name))
        for name, gate in gates_of(gates.version).items()
    }
    metrics.show_gauge(
        "kubernetes_feature_enabled",
        "Stage of each feature gate, and whether it is on (1).",
        ("name", "stage"),
        values.items,
    )


# ---- reuse ---------------------------------------------------------------------------------


def reuse_of(framework: Framework, cluster: ClusterView, telemetry: Telemetry) -> ResultCache:
    """Make the result cache of a profile. Its remarks go to the journal, and its look-ups are
    timed."""
    name = framework.profile_name
    duration = telemetry.metrics.node_hint_duration
    took = duration.of("no_hint", name), duration.of("hint", name)
    table = cluster.cache.table
    return ResultCache(
        framework,
        table,
        ObjectGeneration(table, cluster.objects),
        partial(telemetry.note, name),
        observe=took,
    )


def show_reuse(metrics: SchedulerMetrics, reuse: Mapping[str, ResultCache]) -> None:
    """Metrics of reuse, with upstream's names where they exist (KEP-5598)."""
    gauges: dict[str, tuple[str, Callable[[ResultCache], float]]] = {
        "bayplan_reuse_entries": ("Pod signatures with cached results.", len),
        "bayplan_reuse_bytes": ("Memory of the cached results, in bytes.", lambda r: r.bytes_used),
    }
    for name, (text, value) in gauges.items():
        metrics.show_gauge(name, text, ("profile",), partial(_by_profile, reuse, value))
    possible = "Attempts at pods whose signature had cached results, used or not."
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
            "Attempts by their use of cached results.",
            "result",
            lambda r: r.attempt_counts,
        ),
        "scheduler_batch_cache_flushed": (
            "Rankings that were dropped, by reason. The results of plugins stay.",
            "reason",
            lambda r: r.flushed_counts,
        ),
        "bayplan_reuse_dropped": (
            "Drops of cached results of plugins, by reason.",
            "reason",
            lambda r: r.dropped_counts,
        ),
        "bayplan_reuse_mismatch": (
            "Cached results that differ from a new evaluation of the plugin.",
            "plugin",
            lambda r: r.mismatch_counts,
        ),
        "bayplan_reuse_rows_evaluated": (
            "Nodes that a plugin evaluated.",
            "plugin",
            lambda r: {name: count.evaluated for name, count in r.row_counts().items()},
        ),
        "bayplan_reuse_rows_cached": (
            "Nodes for which a cached result of a plugin was used.",
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
