"""NewPods: many new pods at once, as a list of pods has them.

Most pods of a list run on a node and concern nothing but the cache. These are counted together,
which takes a third of the time of an event for each. All other pods are handled as events.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import final

from bayplan.api.objects import POD, TERMINAL_PHASES, Pod
from bayplan.api.quantity import QuantityError
from bayplan.engine.core import EngineCore
from bayplan.engine.event_handlers import EventHandlers
from bayplan.engine.state_log import StateLog
from bayplan.framework.events import EVENT_ASSIGNED_POD_ADD
from bayplan.ports import EventType, WatchEvent
from bayplan.state.pods import PodInfo, pod_info


@final
class NewPods:
    """Adds pods to the engine."""

    def __init__(
        self, engine: EngineCore, events: EventHandlers, state_log: Callable[[], StateLog | None]
    ) -> None:
        """``state_log``: returns the log that events are written to, if there is one."""
        self._engine = engine
        self._events = events
        self._state_log = state_log

    def add(self, pods: Sequence[Pod]) -> None:
        """As an event ADDED of each pod, in this order."""
        log = self._state_log()
        if log is not None:
            for pod in pods:
                log.handled(_added(pod))
        self._engine.executor.run(POD, partial(self._add, pods))

    def _add(self, pods: Iterable[Pod]) -> None:
        now = self._engine.clock.now
        start, placed = now(), list[PodInfo]()
        for pod in pods:
            new = self._placed_without_group(pod)
            if new is not None:
                self._engine.cluster.pods[new.uid] = new
                placed.append(new)
                continue
            self._place(placed, start)
            self._events.apply(_added(pod))
            start, placed = now(), []
        self._place(placed, start)

    def _placed_without_group(self, pod: Pod) -> PodInfo | None:
        """A pod that is new, runs on a node, and concerns nothing but the cache; otherwise None."""
        engine, uid = self._engine, pod.metadata.uid
        cluster = engine.cluster
        is_placed = pod.spec.node_name and pod.status.phase not in TERMINAL_PHASES
        is_new = uid and uid not in cluster.pods and cluster.cache.pod(uid) is None
        if not is_placed or not is_new or cluster.pod_groups.by_key:
            return None
        try:
            new = pod_info(pod, engine.group_kinds)
        except QuantityError:
            return None
        is_tried = engine.tries_resizes and new.shape.has_deferred_resize
        return None if new.shape.group_key is not None or is_tried else new

    def _place(self, placed: Sequence[PodInfo], start: float) -> None:
        """Count new pods on their nodes. ``start``: when the work for them began."""
        if not placed:
            return
        engine, cluster = self._engine, self._engine.cluster
        if POD in engine.listed_kinds:
            engine.forget_kind(POD)
            store = cluster.objects.of(POD)
            for pod in placed:
                store.put(pod)
        cluster.cache.add_pods(placed)
        for pod in placed:
            engine.queue.move_all(EVENT_ASSIGNED_POD_ADD, None, pod)
        seconds = (engine.clock.now() - start) / len(placed)
        duration = engine.metrics.event_handling_duration
        duration.observe(seconds, EVENT_ASSIGNED_POD_ADD.label, count=len(placed))


def _added(pod: Pod) -> WatchEvent:
    return WatchEvent(EventType.ADDED, POD, pod, pod.metadata.resource_version or "")
