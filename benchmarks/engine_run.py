"""One measured run of the engine: from the queue's pop to the bind effect.

The engine has what `bayplan run` has: metrics, and the sinks of the journal with log lines at the
default verbosity.

Where pods preempt, a pod's time includes its first attempt, the eviction of its victims and its
second attempt. If they arrive together, all first attempts come before the evictions.
"""

import gc
import logging
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import Any, cast

import msgspec
import numpy as np

from bayplan.api.objects import NAMESPACE, NODE, POD, REPLICA_SET, ApiObject, Pod, decode
from bayplan.clock import ManualClock
from bayplan.config import SchedulerConfig, config_from
from bayplan.config.schema import API_VERSION, KIND
from bayplan.engine.scheduler import Scheduler
from bayplan.journal import Journal, MemorySink
from bayplan.plugins.registry import default_registry
from bayplan.ports import BindPod, BindPort, EventType, PatchPodStatus, Perform, WatchEvent
from bayplan.runner import RUN_PODS_MAX, RUN_SECONDS_MAX
from bayplan.serving.decision_history import RECORDS_MAX
from bayplan.serving.log_lines import OUTCOME, TEXT, OutcomeLog, write_log
from bayplan.serving.process import settle_memory
from benchmarks import shapes
from benchmarks.shapes import Shape


@dataclass(frozen=True, slots=True)
class Run:
    """What was measured."""

    shape: Shape
    #: When each attempt ended, in seconds from the start.
    ends: Sequence[float]
    #: The nodes of the bound pods, in order.
    node_names: Sequence[str]
    #: The average time of one pod's event.
    event_seconds: float
    #: How many pods were evicted.
    victims: int = 0

    @property
    def attempts(self) -> int:
        return len(self.ends)

    @property
    def bound(self) -> int:
        return len(self.node_names)

    @property
    def rate(self) -> float:
        """Pods (attempts) per second."""
        return self.attempts / self.ends[-1]

    @property
    def rate_from_event(self) -> float:
        """The same rate, with the time of the pods' events."""
        return self.attempts / (self.ends[-1] + self.attempts * self.event_seconds)

    def micros(self, percentile: float) -> float:
        """The microseconds of an attempt, by percentile."""
        return float(np.percentile(np.diff(self.ends, prepend=0.0), percentile)) * 1e6

    def nodes_used(self, bound: int) -> int:
        """The number of nodes of the first pods: more speed must not mean fewer nodes."""
        return len(set(self.node_names[:bound]))

    @property
    def problem(self) -> str:
        """Empty if as many pods have a node as expected."""
        return problem_of(self.shape, self.attempts, self.bound, self.victims)


def problem_of(shape: Shape, attempts: int, bound: int, victims: int) -> str:
    """What is wrong with a measurement, which should consist of successful attempts."""
    expected = shape.expected_bound(attempts)
    if not attempts:
        return "nothing was scheduled"
    if bound != expected:
        return f"{bound:,} of {attempts:,} bound, expected {expected:,}"
    expected = shape.expected_victims(bound)
    return "" if victims == expected else f"{victims:,} pods evicted, expected {expected:,}"


def config_of(shape: Shape, *, reuse: bool = True) -> SchedulerConfig:
    """The default profile, without the plugins that the shape leaves out."""
    args = {"defaultingType": "List" if shape.no_spread else "System"}
    return config_from(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "featureGates": {"OpportunisticBatching": reuse},
            "profiles": [{"pluginConfig": [{"name": "PodTopologySpread", "args": args}]}],
        }
    )


def added(kind: str, content: dict[str, Any]) -> WatchEvent:
    return WatchEvent(EventType.ADDED, kind, decode(kind, content))


def production_journal() -> Journal:
    """A journal with the sinks of `bayplan run`."""
    return Journal([MemorySink(RECORDS_MAX), OutcomeLog()])


@contextmanager
def discarded_log() -> Generator[None]:
    """Log lines at the default verbosity of `bayplan run` are made and discarded."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    root.handlers.clear()
    try:
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            write_log(OUTCOME, TEXT, nowhere)
            yield
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        logging.getLogger("bayplan").setLevel(logging.NOTSET)
        logging.captureWarnings(False)


@contextmanager
def settled_memory() -> Generator[None]:
    """Settle the garbage collector as `bayplan run` does when its caches are full."""
    before = gc.get_threshold()
    settle_memory()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def with_cluster(shape: Shape, *, reuse: bool = True, journal: Journal | None = None) -> Scheduler:
    """A scheduler with the shape's cluster. ``journal``: None means `production_journal`."""
    scheduler = Scheduler(
        config_of(shape, reuse=reuse),
        default_registry(),
        ManualClock(),
        journal=production_journal() if journal is None else journal,
        raise_bugs=True,
    )
    for namespace in ("sched-0", "sched-1"):
        scheduler.handle(added(NAMESPACE, {"metadata": {"name": namespace}}))
    scheduler.handle(added(REPLICA_SET, shapes.replica_set()))
    for each in shapes.nodes(shape):
        scheduler.handle(added(NODE, each))
    for each in shapes.init_pods(shape):
        scheduler.handle(added(POD, each))
    return scheduler


def loaded(shape: Shape, *, reuse: bool = True, journal: Journal | None = None) -> Scheduler:
    """A scheduler with the shape's cluster and its pods in the queue."""
    scheduler = with_cluster(shape, reuse=reuse, journal=journal)
    for each in shapes.pods(shape):
        scheduler.handle(added(POD, each))
    return scheduler


def run(
    shape: Shape,
    limit_seconds: float,
    *,
    reuse: bool = True,
    around: AbstractContextManager[None] | None = None,
) -> Run:
    """Schedule until the pods or the time are used up. ``around`` is entered after the set-up."""
    scheduler = with_cluster(shape, reuse=reuse)
    events = [added(POD, each) for each in shapes.pods(shape)]
    with discarded_log(), settled_memory():
        if shape.preempts:
            with around or nullcontext():
                if shape.together:
                    return _preempting_together(shape, scheduler, events)
                return _preempting(shape, scheduler, events, limit_seconds)
        start = perf_counter()
        for event in events:
            scheduler.handle(event)
        event_seconds = (perf_counter() - start) / len(events)
        with around or nullcontext():
            return _measured(shape, scheduler, events, event_seconds, limit_seconds=limit_seconds)


def _measured(
    shape: Shape,
    scheduler: Scheduler,
    events: Sequence[WatchEvent],
    event_seconds: float,
    *,
    limit_seconds: float,
) -> Run:
    """Attempts in runs, as `bayplan run` makes them. Those of one run take equally long. The events
    of bindings, which only a workload has, do not count."""
    ends: list[float] = []
    node_names: list[str] = []
    pods = {event.object.metadata.uid: event.object for event in events}
    is_told = shape.template == shapes.WORKLOAD
    start, end = perf_counter(), 0.0
    while end < limit_seconds and (count := scheduler.schedule_run(RUN_PODS_MAX, RUN_SECONDS_MAX)):
        bound = [e for e in scheduler.take_effects() if isinstance(e, BindPod)]
        node_names += [effect.node_name for effect in bound]
        before, end = end, perf_counter() - start
        ends += np.linspace(before, end, count + 1)[1:].tolist()
        if is_told:
            begin = perf_counter()
            for effect in bound:
                table = scheduler.cache.table
                labels = table.labels[table.row_of[effect.node_name]] or {}
                scheduler.handle(_told(pods[effect.pod.uid], effect.node_name, labels))
            start += perf_counter() - begin
    return Run(shape, ends, node_names, event_seconds)


def _told(pod: ApiObject, node_name: str, labels: Mapping[str, str]) -> WatchEvent:
    """The event of a binding. ``labels``: of the node."""
    assert isinstance(pod, Pod)
    own = {**(pod.metadata.labels or {})}
    if shapes.ZONE in labels:
        own[shapes.ZONE] = labels[shapes.ZONE]
    metadata = msgspec.structs.replace(pod.metadata, labels=own)
    spec = msgspec.structs.replace(pod.spec, node_name=node_name)
    bound = msgspec.structs.replace(pod, metadata=metadata, spec=spec)
    return WatchEvent(EventType.MODIFIED, POD, bound)


class _Evicting:
    """An API server that deletes each pod at once and records its key."""

    def __init__(self) -> None:
        self.gone: list[str] = []

    async def patch_pod_status(self, patch: PatchPodStatus) -> None:
        """A pod's condition is part of the measured work. Its patch is ignored here."""

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        self.gone.append(f"{namespace}/{name}")


def _preempting(
    shape: Shape, scheduler: Scheduler, events: Sequence[WatchEvent], limit_seconds: float
) -> Run:
    """One pod after another, so that no pod waits behind another one's victims."""
    placed = {f"{pod.namespace}/{pod.name}": pod for pod in scheduler.cache.pods()}
    ends: list[float] = []
    node_names: list[str] = []
    event_seconds, end, victim_count = 0.0, 0.0, 0
    for event in events:
        start = perf_counter()
        scheduler.handle(event)
        begin = perf_counter()
        event_seconds += begin - start
        victims = _victims(scheduler, event)
        for key in victims:
            scheduler.handle(WatchEvent(EventType.DELETED, POD, placed[key].pod))
        scheduler.schedule_one()
        node_names += [e.node_name for e in scheduler.take_effects() if isinstance(e, BindPod)]
        victim_count += len(victims)
        end += perf_counter() - begin
        ends.append(end)
        if end > limit_seconds:
            break
    return Run(shape, ends, node_names, event_seconds / len(ends), victim_count)


def _preempting_together(shape: Shape, scheduler: Scheduler, events: Sequence[WatchEvent]) -> Run:
    """All pods are in the queue before the first attempt, and preempt before the first eviction."""
    placed = {f"{pod.namespace}/{pod.name}": pod for pod in scheduler.cache.pods()}
    start = perf_counter()
    for event in events:
        scheduler.handle(event)
    begin = perf_counter()
    pods = {event.object.metadata.name: event.object for event in events}
    while scheduler.schedule_run(RUN_PODS_MAX, RUN_SECONDS_MAX):
        pass
    victims = _evicted(scheduler, pods)
    for key in victims:
        scheduler.handle(WatchEvent(EventType.DELETED, POD, placed[key].pod))
    while scheduler.schedule_run(RUN_PODS_MAX, RUN_SECONDS_MAX):
        pass
    end = perf_counter() - begin
    node_names = [e.node_name for e in scheduler.take_effects() if isinstance(e, BindPod)]
    ends = np.linspace(0.0, end, len(events) + 1)[1:].tolist()
    return Run(shape, ends, node_names, (begin - start) / len(events), len(victims))


def _victims(scheduler: Scheduler, event: WatchEvent) -> list[str]:
    """The keys of the pods that a pod's first attempt evicts, after its effects were performed."""
    scheduler.schedule_one()
    return _evicted(scheduler, {event.object.metadata.name: event.object})


def _evicted(scheduler: Scheduler, pods: Mapping[str, ApiObject]) -> list[str]:
    """Perform all effects; returns the keys of the pods that were deleted. ``pods``: the preempting
    pods by name."""
    port = _Evicting()
    while effects := scheduler.take_effects():
        for effect in effects:
            if isinstance(effect, Perform):
                perform(effect, port)
            elif isinstance(effect, PatchPodStatus) and effect.nominated_node_name:
                scheduler.handle(nominated(pods[effect.name], effect.nominated_node_name))
    return port.gone


def perform(effect: Perform, port: object) -> None:
    """Perform a write; no step of it waits."""
    writing = effect.run(cast(BindPort, port))
    try:
        writing.send(None)
    except StopIteration:
        return
    raise AssertionError("a write waits")


def nominated(pod: ApiObject, node_name: str) -> WatchEvent:
    """The watch event that the API sends after the nomination is written."""
    assert isinstance(pod, Pod)
    status = msgspec.structs.replace(pod.status, nominated_node_name=node_name)
    return WatchEvent(EventType.MODIFIED, POD, msgspec.structs.replace(pod, status=status))
