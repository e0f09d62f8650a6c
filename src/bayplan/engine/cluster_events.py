"""Watch events become changes of cache and queue, and cluster events that wake parked pods.

Upstream: eventhandlers.go. The cache is changed before the queue is told, so that whoever is woken
sees what woke it. Terminal pods count as gone, as upstream's informer leaves them out.
"""

from typing import Any, final

from bayplan.api.device_objects import DEVICE_TAINT_RULE
from bayplan.api.objects import NODE, POD, Node, Pod, Unstructured, is_terminal
from bayplan.api.pod_groups import KINDS, compiled, key_of
from bayplan.api.pod_requests import amounts
from bayplan.api.quantity import QuantityError
from bayplan.engine.engine_state import EngineState
from bayplan.engine.placements import Placements
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
from bayplan.state.pod_groups import GroupState, PodGroups
from bayplan.state.pods import DEFAULT_SCHEDULER, PodInfo, pod_info

#: A kubelet's reasons for not admitting a pod that it was told to run. Upstream:
#: pkg/kubelet/lifecycle/predicate.go, cm/topologymanager.
_KUBELET_REASONS = frozenset(
    (
        "InitContainerRestartPolicyForbidden",
        "InvalidNodeInfo",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "SupplementalGroupsPolicyNotSupported",
        "TaintToleration",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
        "UnexpectedPredicateFailureType",
    )
)
_KUBELET_SHORTAGE = "OutOf"

_NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
_SLICE_UPDATE = ClusterEvent(EventResource.RESOURCE_SLICE, UPDATE)
_NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)


@final
class ClusterEvents:
    """Applies what the API tells."""

    def __init__(self, engine: EngineState, placements: Placements) -> None:
        self._engine = engine
        self._placements = placements

    def apply(self, event: WatchEvent) -> None:
        if event.kind == POD:
            self._pod(event.type, event.object)
        elif event.kind == NODE:
            self._node(event.type, event.object)
        elif event.kind in KINDS:
            self._group(event)
        else:
            self._other(event)

    # ---- nodes ----------------------------------------------------------------------------

    def _node(self, kind: EventType, node: Node) -> None:
        cache, queue = self._engine.cache, self._engine.queue
        old = cache.node(node.metadata.name)
        if kind is EventType.DELETED:
            if old is not None:
                cache.remove_node(node.metadata.name)
                self._list(NODE, old, None)
                queue.move_all(_NODE_DELETE, old, None)
            return
        if not self._makes_sense(old, node):
            return
        self._list(NODE, old, node)
        if old is None:
            cache.add_node(node)
            queue.move_all(_NODE_ADD, None, node)
            return
        cache.update_node(node)
        for event in node_events(old, node):
            queue.move_all(event, old, node)

    def _makes_sense(self, old: Node | None, node: Node) -> bool:
        """Found out before the cache is touched: half a node would be worse than none."""
        allocatable = node.status.allocatable
        if old is None or old.status.allocatable != allocatable:
            try:
                amounts(allocatable)
            except QuantityError as problem:
                self._engine.note(f"node {node.metadata.name}", f"ignored: {problem}")
                return False
        return True

    # ---- pods -----------------------------------------------------------------------------

    def _pod(self, kind: EventType, pod: Pod) -> None:
        engine, uid = self._engine, pod.metadata.uid or ""
        old = engine.known.get(uid)
        groups = _groups_of(engine.pod_groups, kind, pod)
        self._pod_itself(kind, pod, old)
        engine.gangs.changed(groups)

    def _pod_itself(self, kind: EventType, pod: Pod, old: PodInfo | None) -> None:
        engine, uid = self._engine, pod.metadata.uid or ""
        if kind is EventType.DELETED or is_terminal(pod):
            if old is not None:
                if kind is not EventType.DELETED:
                    self._count_rejection(pod)
                del engine.known[uid]
                self._list(POD, old, None)
                self._removed(old)
                engine.own_writes.forget(uid)
            return
        new = self._compiled(pod)
        if new is None:
            return
        engine.known[uid] = new
        self._list(POD, old, new)
        if old is None:
            self._added(new)
        elif _is_newer(old, new):
            self._updated(old, new)

    def _count_rejection(self, pod: Pod) -> None:
        """A pod of ours failed on its node: whether we sent it where it could not stay."""
        reason = pod.status.reason or ""
        name = pod.spec.scheduler_name or DEFAULT_SCHEDULER
        refused = reason in _KUBELET_REASONS or reason.startswith(_KUBELET_SHORTAGE)
        if refused and name in self._engine.frameworks:
            self._engine.metrics.pods_rejected_by_kubelet.labels(reason).inc()
            text = f"{pod.spec.node_name} did not admit it: {reason}"
            self._engine.note(f"{pod.metadata.namespace}/{pod.metadata.name}", text)

    def _compiled(self, pod: Pod) -> PodInfo | None:
        """None for a pod that makes no sense; why is noted."""
        problem: object = "it has no uid"
        if pod.metadata.uid:
            try:
                return pod_info(pod)
            except QuantityError as error:
                problem = error
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        self._engine.note(name, f"ignored: {problem}")
        return None

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
        engine.own_writes.forget(pod.uid)
        engine.gangs.forget(pod.uid)
        engine.nominator.delete_nominated_pod_if_exists(pod)
        engine.queue.move_all(EVENT_ASSIGNED_POD_ADD, None, pod)

    def _updated(self, old: PodInfo, new: PodInfo) -> None:
        engine = self._engine
        is_echo = engine.own_writes.is_echo(old, new)
        if old.node_name:
            engine.cache.update_pod(new)
            for event in pod_events(old, new):
                engine.queue.move_all(event, old, new)
        elif new.node_name:
            if self._is_ours(old):
                engine.queue.delete(old)
            self._assigned(new)
            self._placements.give_up(new, "the pod was bound by another")
        elif self._is_ours(new):
            self._updated_pending(old, new, is_echo)

    def _updated_pending(self, old: PodInfo, new: PodInfo, is_echo: bool) -> None:
        """``is_echo``: it is what we wrote ourselves, which is no news to the pod."""
        engine = self._engine
        if engine.cache.is_assumed(new.uid):
            # Its cycle is over and its binding under way; only its end still matters.
            if new.is_terminating and not old.is_terminating:
                self._assumed_goes(new)
            return
        events = pod_events(old, new)
        own = [e for e in events if e.resource == EventResource.TARGET_POD and not is_echo]
        engine.queue.update(old, new, own)
        if EVENT_ASSIGNED_POD_DELETE in events:
            self._room_freed_by(old, also_itself=not is_echo)

    def _removed(self, pod: PodInfo) -> None:
        engine = self._engine
        if pod.node_name:
            engine.cache.remove_pod(pod.uid)
            engine.queue.move_all(EVENT_ASSIGNED_POD_DELETE, pod, None)
        elif self._is_ours(pod):
            engine.queue.delete(pod)
            if engine.cache.is_assumed(pod.uid):
                self._assumed_goes(pod)
            elif pod.nominated_node_name:
                self._room_freed_by(pod)
        engine.nominator.delete_nominated_pod_if_exists(pod)
        engine.gangs.forget(pod.uid)

    def _assumed_goes(self, pod: PodInfo) -> None:
        """A pod leaves between its cycle and the end of its binding: its room is free at once.

        At Permit the wait ends, which tells the queue. Later its binding goes on and will fail.
        """
        engine = self._engine
        if self._placements.give_up(pod, "the pod is being deleted"):
            return
        assumed = engine.cache.pod(pod.uid)
        if assumed is not None:
            engine.forget(assumed)
            engine.queue.move_all(EVENT_ASSIGNED_POD_DELETE, assumed, None)

    def _room_freed_by(self, pod: PodInfo, *, also_itself: bool = True) -> None:
        """A nomination is given up: pods of no higher priority may use the room."""

        def may_use(other: PodInfo) -> bool:
            return other.priority <= pod.priority and (also_itself or other.uid != pod.uid)

        self._engine.queue.move_all(EVENT_ASSIGNED_POD_DELETE, pod, None, may_use)

    # ---- everything else ------------------------------------------------------------------

    def _list(self, kind: str, old: object, new: object) -> None:
        """Pods (as PodInfo) and nodes for plugins that look them up."""
        if kind in self._engine.listed:
            self._engine.forget_kind(kind)
            store = self._engine.objects.of(kind)
            if new is not None:
                store.put(new)
            elif old is not None:
                store.remove(old)

    def _group(self, event: WatchEvent) -> None:
        """A group's object, which is kept like any other besides."""
        groups = self._engine.pod_groups
        if event.type is EventType.DELETED:
            state = groups.remove(key_of(event.kind, event.object.metadata))
        else:
            state = groups.put(compiled(event.kind, event.object))
        self._other(event)
        if state is not None:
            self._engine.gangs.changed([state], wakes=True)

    def _other(self, event: WatchEvent) -> None:
        if event.kind == DEVICE_TAINT_RULE:
            self._taint_rule(event)
            return
        store = self._engine.objects.of(event.kind)
        resource = resource_of_kind(event.kind)
        found: Any = event.object
        if event.type is EventType.DELETED:
            old = store.remove(found)
            if old is not None:
                self._engine.forget_kind(event.kind)
                delete = ClusterEvent(resource, ActionType.DELETE)
                self._engine.queue.move_all(delete, old, None)
            return
        old = store.put(found)
        self._engine.forget_kind(event.kind)
        action = ActionType.ADD if old is None else UPDATE
        self._engine.queue.move_all(ClusterEvent(resource, action), old, found)

    def _taint_rule(self, event: WatchEvent) -> None:
        """It is told as a change of the slices whose devices it taints, as upstream tells it."""
        slices = self._engine.devices.resource_slices
        before = slices.list_with_device_taint_rules()
        store = self._engine.objects.of(event.kind)
        if event.type is EventType.DELETED:
            store.remove(event.object)
        else:
            store.put(event.object)
        for old, new in zip(before, slices.list_with_device_taint_rules(), strict=True):
            if old is not new and old.spec.devices != new.spec.devices:
                self._engine.queue.move_all(_SLICE_UPDATE, old, new)


def _is_newer(old: PodInfo, new: PodInfo) -> bool:
    """Not the same version once more. Objects without a version are always news."""
    version = new.metadata.resource_version
    return version is None or version != old.metadata.resource_version


def _groups_of(
    groups: PodGroups, kind: EventType, pod: Pod | Unstructured
) -> tuple[GroupState, ...]:
    """The groups that a pod's change concerns. One that ended is told of as deleted, too: it stays
    known as what it ended as."""
    # Of a deletion that a listing showed only the metadata is known.
    if isinstance(pod, Unstructured) or (kind is EventType.DELETED and not is_terminal(pod)):
        return groups.remove_pod(pod.metadata.uid or "")
    return groups.put_pod(pod)
