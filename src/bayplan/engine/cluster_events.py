"""Watch events become changes of cache and queue, and cluster events that wake parked pods.

Upstream: eventhandlers.go. The cache is changed before the queue is told, so that whoever is woken
sees what woke it. Terminal pods count as gone, as upstream's informer leaves them out.
"""

from collections.abc import Callable
from typing import Any, final

from bayplan.api.objects import NODE, POD, Node, Pod, is_terminal
from bayplan.api.quantity import QuantityError
from bayplan.engine.engine_state import EngineState
from bayplan.framework.events import (
    EVENT_ASSIGNED_POD_ADD,
    EVENT_ASSIGNED_POD_DELETE,
    UPDATE,
    ActionType,
    ClusterEvent,
    EventResource,
    resource_of_kind,
)
from bayplan.framework.object_changes import node_events, pod_events
from bayplan.ports import EventType, WatchEvent
from bayplan.state.pods import PodInfo, pod_info

_NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
_NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)


@final
class ClusterEvents:
    """Applies what the API tells. ``pod_gone``: called for a pod that leaves while at Permit."""

    def __init__(self, engine: EngineState, pod_gone: Callable[[PodInfo], None]) -> None:
        self._engine = engine
        self._pod_gone = pod_gone

    def apply(self, event: WatchEvent) -> None:
        if event.kind == POD:
            self._pod(event.type, event.object)
        elif event.kind == NODE:
            self._node(event.type, event.object)
        else:
            self._other(event)

    # ---- nodes ----------------------------------------------------------------------------

    def _node(self, kind: EventType, node: Node) -> None:
        cache, queue = self._engine.cache, self._engine.queue
        old = cache.node(node.metadata.name)
        if kind is EventType.DELETED:
            if old is not None:
                cache.remove_node(node.metadata.name)
                queue.move_all(_NODE_DELETE, old, None)
            return
        try:
            if old is None:
                cache.add_node(node)
                queue.move_all(_NODE_ADD, None, node)
                return
            cache.update_node(node)
        except QuantityError as problem:
            self._engine.note(f"node {node.metadata.name}", f"ignored: {problem}")
            return
        for event in node_events(old, node):
            queue.move_all(event, old, node)

    # ---- pods -----------------------------------------------------------------------------

    def _pod(self, kind: EventType, pod: Pod) -> None:
        uid = pod.metadata.uid or ""
        old = self._engine.known.get(uid)
        if kind is EventType.DELETED or is_terminal(pod):
            if old is not None:
                del self._engine.known[uid]
                self._removed(old)
            return
        try:
            assert uid, "it has no uid"
            new = pod_info(pod)
        except (QuantityError, AssertionError) as problem:
            name = f"pod {pod.metadata.namespace}/{pod.metadata.name}"
            self._engine.note(name, f"ignored: {problem}")
            return
        self._engine.known[uid] = new
        if old is None:
            self._added(new)
        elif old.metadata.resource_version != new.metadata.resource_version or old is new:
            self._updated(old, new)

    def _is_ours(self, pod: PodInfo) -> bool:
        return pod.scheduler_name in self._engine.frameworks

    def _added(self, pod: PodInfo) -> None:
        if pod.node_name:
            self._assigned(pod)
        elif self._is_ours(pod):
            self._engine.queue.add(pod)

    def _assigned(self, pod: PodInfo) -> None:
        """A pod is on a node now, by whomever."""
        engine = self._engine
        engine.cache.add_pod(pod)
        engine.nominator.delete_nominated_pod_if_exists(pod)
        engine.queue.move_all(EVENT_ASSIGNED_POD_ADD, None, pod)

    def _updated(self, old: PodInfo, new: PodInfo) -> None:
        if new.node_name and not old.node_name:
            if self._is_ours(old):
                self._engine.queue.delete(old)
            self._assigned(new)
        elif new.node_name:
            self._engine.cache.update_pod(new)
            for event in pod_events(old, new):
                self._engine.queue.move_all(event, old, new)
        elif self._is_ours(new):
            self._updated_pending(old, new)

    def _updated_pending(self, old: PodInfo, new: PodInfo) -> None:
        engine = self._engine
        if engine.cache.is_assumed(new.uid):
            # Its cycle is over and its binding under way; only its end still matters.
            if new.is_terminating and not old.is_terminating:
                engine.queue.move_all(EVENT_ASSIGNED_POD_DELETE, old, None)
            return
        own = [e for e in pod_events(old, new) if e.resource == EventResource.TARGET_POD]
        engine.queue.update(old, new, own)
        if old.nominated_node_name and old.nominated_node_name != new.nominated_node_name:
            self._room_freed_by(old)

    def _removed(self, pod: PodInfo) -> None:
        engine = self._engine
        if pod.node_name:
            engine.cache.remove_pod(pod.uid)
            engine.queue.move_all(EVENT_ASSIGNED_POD_DELETE, pod, None)
        elif self._is_ours(pod):
            engine.queue.delete(pod)
            self._pod_gone(pod)
            if engine.cache.is_assumed(pod.uid):
                engine.queue.move_all(EVENT_ASSIGNED_POD_DELETE, pod, None)
            elif pod.nominated_node_name:
                self._room_freed_by(pod)
        engine.nominator.delete_nominated_pod_if_exists(pod)

    def _room_freed_by(self, pod: PodInfo) -> None:
        """A nomination is given up: pods of no higher priority may use the room."""
        self._engine.queue.move_all(
            EVENT_ASSIGNED_POD_DELETE, pod, None, lambda other: other.priority <= pod.priority
        )

    # ---- everything else ------------------------------------------------------------------

    def _other(self, event: WatchEvent) -> None:
        store = self._engine.objects.of(event.kind)
        resource = resource_of_kind(event.kind)
        found: Any = event.object
        if event.type is EventType.DELETED:
            old = store.remove(found)
            if old is not None:
                delete = ClusterEvent(resource, ActionType.DELETE)
                self._engine.queue.move_all(delete, old, None)
            return
        old = store.put(found)
        action = ActionType.ADD if old is None else UPDATE
        self._engine.queue.move_all(ClusterEvent(resource, action), old, found)
