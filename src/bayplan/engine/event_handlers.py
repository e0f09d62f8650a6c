"""Watch events become changes of cache and queue, and cluster events that wake unschedulable pods.

The cache changes before the queue, so a pod that an event wakes is tried with the new state.
Terminal pods count as deleted: upstream's informer leaves them out. Upstream: eventhandlers.go.
"""

from collections import deque
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, final

from bayplan.api.composite_pod_groups import COMPOSITE_POD_GROUP, CompositePodGroup
from bayplan.api.device_objects import DEVICE_TAINT_RULE
from bayplan.api.objects import (
    DEFAULT_SCHEDULER,
    NODE,
    POD,
    TERMINAL_PHASES,
    DecodeError,
    Node,
    Pod,
    Unstructured,
    decoded_as,
    is_terminal,
)
from bayplan.api.pod_groups import PodGroup, PodGroupKinds, key_of
from bayplan.api.quantity import QuantityError
from bayplan.config.feature_gates import FeatureGates
from bayplan.config.topology_levels import TopologyLevels
from bayplan.engine.core import GroupController
from bayplan.engine.exclusive_domains import EXCLUSIVE_OVER
from bayplan.engine.outbox import Outbox
from bayplan.engine.placements import Placements
from bayplan.engine.resizes import Resizes
from bayplan.engine.reuse.cache import ResultCache
from bayplan.engine.telemetry import Telemetry
from bayplan.framework.cluster_rules import pod_rules
from bayplan.framework.events import (
    EVENT_ASSIGNED_POD_ADD,
    EVENT_ASSIGNED_POD_DELETE,
    EVENT_ASSIGNED_POD_UPDATE,
    EVENT_UNSCHEDULED_POD_ADD,
    EVENT_UNSCHEDULED_POD_DELETE,
    EVENT_UNSCHEDULED_POD_UPDATE,
    OWN_UPDATES,
    UPDATE,
    ActionType,
    ClusterEvent,
    EventResource,
    resource_of_kind,
)
from bayplan.framework.object_changes import event_vocabulary, node_events, pod_events
from bayplan.framework.runtime import Framework
from bayplan.metrics import Buckets
from bayplan.objects.object_store import ObjectStore
from bayplan.ports import EventType, WatchEvent
from bayplan.queue.nominator import Nominator
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.state.cache import ClusterView
from bayplan.state.pod_groups import GroupState, PodGroups
from bayplan.state.pods import PodInfo, PodShape, pod_info

#: The reasons of a kubelet that rejects a pod. Upstream: pkg/kubelet/lifecycle/predicate.go,
#: cm/topologymanager.
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

_DELETED = EventType.DELETED

#: The number of the newest pods whose shapes stay.
NEWEST_SHAPES_MAX = 512

#: The labels of an event in scheduler_event_handling_duration_seconds.
Labels = Iterable[str]
_NODE_ADDED, _NODE_DELETED = (_NODE_ADD.label,), (_NODE_DELETE.label,)
_POD_ADDED = (EVENT_UNSCHEDULED_POD_ADD.label,)
_POD_UPDATED = (EVENT_UNSCHEDULED_POD_UPDATE.label,)
_POD_DELETED = (EVENT_UNSCHEDULED_POD_DELETE.label,)
_POD_ASSIGNED = (EVENT_ASSIGNED_POD_ADD.label,)
_ASSIGNED_UPDATED = (EVENT_ASSIGNED_POD_UPDATE.label,)
_ASSIGNED_DELETED = (EVENT_ASSIGNED_POD_DELETE.label,)
_SLICE_UPDATED = (_SLICE_UPDATE.label,)


@final
class PluginObjects:
    """Writes what plugins look up: a change drops what was computed from objects of its kind.

    Pods (as PodInfo) and nodes are written only if a plugin lists their kind. All other kinds are
    always written.
    """

    def __init__(
        self,
        objects: ObjectStore[Any],
        frameworks: Mapping[str, Framework],
        reuse: Mapping[str, ResultCache],
        queue: SchedulingQueue,
        *,
        listed_kinds: frozenset[str],
    ) -> None:
        """``frameworks``, ``reuse``: by profile."""
        self._objects = objects
        self._frameworks = frameworks
        self._reuse = reuse
        self._queue = queue
        #: The kinds that plugins look up.
        self.listed_kinds = listed_kinds

    def put(self, kind: str, content: Any) -> Any | None:
        """Store an object. Returns the previous version."""
        previous = self._objects.of(kind).put(content)
        self._forget(kind)
        return previous

    def put_all(self, kind: str, contents: Iterable[Any]) -> None:
        """Store several objects of a kind."""
        store = self._objects.of(kind)
        for content in contents:
            store.put(content)
        self._forget(kind)

    def remove(self, kind: str, content: Any) -> Any | None:
        """Remove an object. Returns the last version; None: there was none."""
        last = self._objects.of(kind).remove(content)
        if last is not None:
            self._forget(kind)
        return last

    def _forget(self, kind: str) -> None:
        for framework in self._frameworks.values():
            if kind in framework.concern_kinds:
                framework.renew_concerns()
                self._queue.renew_concerns()
        for cache in self._reuse.values():
            cache.forget_kind(kind)


@final
class EventHandlers:
    """Applies watch events to the engine."""

    def __init__(
        self,
        cluster: ClusterView,
        queue: SchedulingQueue,
        nominator: Nominator,
        outbox: Outbox,
        *,
        telemetry: Telemetry,
        gates: FeatureGates,
        frameworks: Container[str],
        plugin_objects: PluginObjects,
        group_kinds: PodGroupKinds,
        topology_levels: TopologyLevels,
        group_controller: GroupController,
        placements: Placements,
        resizes: Resizes,
    ) -> None:
        """``frameworks``: by profile."""
        self._clock = telemetry.clock
        self._cluster = cluster
        self._frameworks = frameworks
        self._group_controller = group_controller
        self._group_kinds = group_kinds
        self._topology_levels = topology_levels
        self._metrics = telemetry.metrics
        self._nominator = nominator
        self._outbox = outbox
        self._patches = outbox.pending_patches.by_uid
        self._plugin_objects = plugin_objects
        self._queue = queue
        self._pod_rules = pod_rules(gates)
        self._telemetry = telemetry
        self._placements = placements
        self._resizes = resizes
        #: As upstream, a new pending pod is an event only if groups can wait for the pod.
        self._reports_pending_pods = gates.schedules_gangs
        #: The events of the Kubernetes version that the scheduler answers as.
        has_declared_features = gates.enabled("NodeDeclaredFeatures")
        self._vocabulary = event_vocabulary(gates.behaviour, has_declared_features)
        self._bound_pods_end_nominations = gates.behaviour.bound_pods_end_nominations
        #: By label: the observer of the duration of an event.
        self._took: dict[str, Buckets] = {}
        #: The shapes of the newest pods. They stay when their last pod is gone: the next pods of a
        #: Job that runs again and again, or of a trace, share what follows from their spec.
        self._newest_shapes: deque[PodShape] = deque(maxlen=NEWEST_SHAPES_MAX)

    def apply(self, event: WatchEvent) -> None:
        now = self._clock.now
        start = now()
        if event.kind == POD:
            handled = self._pod(event.type, event.object)
        elif event.kind == NODE:
            handled = self._node(event.type, event.object)
        elif event.kind in self._group_kinds:
            handled = self._group(event)
        elif event.kind == COMPOSITE_POD_GROUP and self._cluster.group_trees.is_on:
            handled = self._composite_group(event)
        else:
            handled = self._other(event)
        seconds, took = now() - start, self._took
        for label in handled:
            observe = took.get(label)
            if observe is None:
                observe = took[label] = self._metrics.event_handling_duration.of(label)
            if seconds:
                observe(seconds)
            else:
                # Under virtual time, without a call for each event.
                observe.counts[0] += 1

    # ---- nodes ----------------------------------------------------------------------------

    def _node(self, kind: EventType, node: Node) -> Labels:
        cache, queue = self._cluster.cache, self._queue
        old = cache.node(node.metadata.name)
        if kind is EventType.DELETED:
            if old is None:
                return ()
            cache.remove_node(node.metadata.name)
            if NODE in self._plugin_objects.listed_kinds:
                self._plugin_objects.remove(NODE, old)
            queue.move_all(_NODE_DELETE, old, None)
            return _NODE_DELETED
        try:
            if old is None:
                cache.add_node(node)
            else:
                cache.update_node(node)
        except QuantityError as problem:
            self._telemetry.note(f"node {node.metadata.name}", f"ignored: {problem}")
            return ()
        if NODE in self._plugin_objects.listed_kinds:
            self._plugin_objects.put(NODE, node)
        if old is None:
            queue.move_all(_NODE_ADD, None, node)
            return _NODE_ADDED
        events = node_events(old, node, self._vocabulary)
        for event in events:
            queue.move_all(event, old, node)
        return [event.label for event in events]

    # ---- pods -----------------------------------------------------------------------------

    def _pod(self, kind: EventType, pod: Pod) -> Labels:
        uid = pod.metadata.uid or ""
        old = self._cluster.pods.get(uid)
        if kind is _DELETED or pod.status.phase in TERMINAL_PHASES:
            groups = _groups_of(self._cluster.pod_groups, kind, pod)
            handled = self._ended(kind, pod, old)
            # The members that are left may fit without a member that waited.
            wakes = old is not None and not old.node_name
            self._group_controller.changed(groups, wakes=wakes)
            return handled
        problem: object = "it has no uid"
        new = None
        try:
            if uid:
                new = pod_info(pod, self._group_kinds, self._pod_rules)
                self._newest_shapes.append(new.shape)
        except QuantityError as error:
            problem = error
        pod_groups, groups, state = self._cluster.pod_groups, None, None
        assigned_count, handled = 0, tuple[str, ...]()
        if new is None or new.shape.group_key is not None or pod_groups.by_key:
            state = None if new is None else pod_groups.of(new)
            assigned_count = 0 if state is None else state.assigned_count
            groups = pod_groups.put_pod(pod)
        if new is None:
            name = f"{pod.metadata.namespace}/{pod.metadata.name}"
            self._telemetry.note(name, f"ignored: {problem}")
        else:
            self._cluster.pods[uid] = new
            if POD in self._plugin_objects.listed_kinds:
                self._plugin_objects.put(POD, new)
            # The same version is delivered again after a reconnect. An object without a version is
            # always new.
            version = new.metadata.resource_version
            if old is None:
                if new.node_name:
                    handled = self._assigned(new)
                    self._resizes.follow(None, new)
                elif new.shape.scheduler_name in self._frameworks:
                    self._queue.add(new)
                    if self._reports_pending_pods:
                        self._queue.move_all(EVENT_UNSCHEDULED_POD_ADD, None, new)
                    handled = _POD_ADDED
            elif version is None or version != old.metadata.resource_version:
                handled = self._updated(old, new)
        if groups is not None:
            # Another program bound a member, so fewer members have to fit. Upstream:
            # gangscheduling.go, isSchedulableAfterPodAdded.
            wakes = state is not None and state.assigned_count > assigned_count
            self._group_controller.changed(groups, wakes=wakes)
        return handled

    def _ended(self, kind: EventType, pod: Pod, old: PodInfo | None) -> Labels:
        """A pod is deleted or terminal."""
        uid = pod.metadata.uid or ""
        if old is None:
            return ()
        if kind is not _DELETED:
            self._count_rejection(pod)
        del self._cluster.pods[uid]
        if POD in self._plugin_objects.listed_kinds:
            self._plugin_objects.remove(POD, old)
        handled = self._removed(old)
        self._outbox.pending_patches.forget(uid)
        return handled

    def _count_rejection(self, pod: Pod) -> None:
        """Count a pod of this scheduler that its kubelet rejected."""
        reason = pod.status.reason or ""
        name = pod.spec.scheduler_name or DEFAULT_SCHEDULER
        refused = reason in _KUBELET_REASONS or reason.startswith(_KUBELET_SHORTAGE)
        if refused and name in self._frameworks:
            self._metrics.pods_rejected_by_kubelet.add(reason)
            text = f"{pod.spec.node_name} did not admit it: {reason}"
            self._telemetry.note(f"{pod.metadata.namespace}/{pod.metadata.name}", text)

    def _compiled_group(self, event: WatchEvent) -> PodGroup | None:
        """The group of an object. None: the object of a configured kind is invalid; a note in the
        journal has the reason."""
        row = self._group_kinds.by_kind[event.kind]
        try:
            decoded = decoded_as(event.kind, row.decoded_as, event.object)
        except DecodeError as problem:
            self._telemetry.note(f"group {key_of(event.kind, event.object.metadata)}", str(problem))
            return None
        return self._topology_levels.resolved(row.compile(event.kind, decoded))

    def _is_ours(self, pod: PodInfo) -> bool:
        return pod.scheduler_name in self._frameworks

    def _assigned(self, pod: PodInfo) -> Labels:
        """A pod is now on a node, whichever scheduler bound it."""
        uid = pod.uid
        self._cluster.cache.add_pod(pod)
        self._patches.pop(uid, None)
        if uid in self._group_controller.messages:
            self._group_controller.forget(uid)
        if uid in self._nominator.node_of:
            self._nominator.delete_nominated_pod_if_exists(pod)
        if any(self._queue.listening):
            self._queue.move_all(EVENT_ASSIGNED_POD_ADD, None, pod)
        return _POD_ASSIGNED

    def _updated(self, old: PodInfo, new: PodInfo) -> Labels:
        is_echo = new.uid in self._patches and self._outbox.pending_patches.is_echo(old, new)
        if old.node_name:
            self._cluster.cache.update_pod(new)
            events = pod_events(old, new, self._vocabulary)
            self._resizes.follow(old, new, events)
            for event in events:
                self._queue.move_all(event, old, new)
            return dict.fromkeys((*_ASSIGNED_UPDATED, *(event.label for event in events)))
        if new.node_name:
            is_waiting = self._queue.holds(old.uid) or old.uid in self._nominator.node_of
            if is_waiting and old.shape.scheduler_name in self._frameworks:
                self._queue.delete(old)
            # Another program may bind the pod elsewhere. kube-scheduler wakes nobody then.
            nominated = old.status.nominated_node_name
            is_over = nominated and (
                self._bound_pods_end_nominations
                or (nominated != new.node_name and not self._cluster.cache.is_assumed(new.uid))
            )
            handled = self._assigned(new)
            if is_over and self._is_ours(old):
                self._room_freed_by(old)
            if new.uid in self._placements.by_uid:
                self._placements.give_up(new, "the pod was bound by another")
            # A listing may show a binding and a deferred resize as one change. Upstream adds the
            # pod at its next update only (eventhandlers.go, updatePod).
            if new.shape.has_deferred_resize:
                self._resizes.follow(None, new)
            return handled
        return self._updated_pending(old, new, is_echo) if self._is_ours(new) else ()

    def _updated_pending(self, old: PodInfo, new: PodInfo, is_echo: bool) -> Labels:
        """``is_echo``: the update is a patch of this scheduler, which is no event for the pod."""
        if self._cluster.cache.is_assumed(new.uid):
            # The binding of the pod is in progress, so only a deletion matters.
            if new.is_terminating and not old.is_terminating:
                self._assumed_deleted(new)
            return _POD_UPDATED
        events = pod_events(old, new, self._vocabulary)
        own = [e for e in events if e.resource in OWN_UPDATES and not is_echo]
        self._queue.update(old, new, own)
        if EVENT_ASSIGNED_POD_DELETE in events:
            self._room_freed_by(old, also_itself=not is_echo)
        return _POD_UPDATED

    def _removed(self, pod: PodInfo) -> Labels:
        if pod.node_name:
            self._cluster.cache.remove_pod(pod.uid)
            self._resizes.follow(pod, None)
            self._queue.move_all(EVENT_ASSIGNED_POD_DELETE, pod, None)
        elif self._is_ours(pod):
            self._queue.delete(pod)
            if self._cluster.cache.is_assumed(pod.uid):
                self._assumed_deleted(pod)
            elif pod.nominated_node_name:
                self._room_freed_by(pod)
        self._nominator.delete_nominated_pod_if_exists(pod)
        self._group_controller.forget(pod.uid)
        if pod.node_name:
            return _ASSIGNED_DELETED
        return _POD_DELETED if self._is_ours(pod) else ()

    def _assumed_deleted(self, pod: PodInfo) -> None:
        """A pod is deleted between its cycle and the end of its binding: its room is free at once.

        At Permit, the wait ends, and the queue gets its event there. After Permit, the binding
        continues and fails.
        """
        if self._placements.give_up(pod, "the pod is being deleted"):
            return
        assumed = self._cluster.cache.pod(pod.uid)
        if assumed is not None:
            self._cluster.forget(assumed)
            self._queue.move_all(EVENT_ASSIGNED_POD_DELETE, assumed, None)

    def _room_freed_by(self, pod: PodInfo, *, also_itself: bool = True) -> None:
        """A nomination ended: pods of the same or a lower priority may use the room."""

        def may_use(other: PodInfo) -> bool:
            return other.priority <= pod.priority and (also_itself or other.uid != pod.uid)

        self._queue.move_all(EVENT_ASSIGNED_POD_DELETE, pod, None, may_use)

    # ---- many new pods --------------------------------------------------------------------

    # Most pods of a list run on a node and concern nothing but the cache. These are counted
    # together, which takes a third of the time of an event for each.

    def add_pods(self, pods: Iterable[Pod]) -> None:
        """Do what `apply` does for an event ADDED of each pod, in this order."""
        now = self._clock.now
        start, placed = now(), list[PodInfo]()
        for pod in pods:
            new = self._placed_without_group(pod)
            if new is not None:
                self._cluster.pods[new.uid] = new
                placed.append(new)
                continue
            self._place(placed, start)
            self.apply(added(pod))
            start, placed = now(), []
        self._place(placed, start)

    def _placed_without_group(self, pod: Pod) -> PodInfo | None:
        """A pod that is new, runs on a node, and concerns nothing but the cache; otherwise None."""
        uid, cluster = pod.metadata.uid, self._cluster
        is_placed = pod.spec.node_name and pod.status.phase not in TERMINAL_PHASES
        if not is_placed or not uid or uid in cluster.pods or cluster.pod_groups.by_key:
            return None
        try:
            new = pod_info(pod, self._group_kinds, self._pod_rules)
        except QuantityError:
            return None
        is_tried = self._resizes.is_on and new.shape.has_deferred_resize
        return None if new.shape.group_key is not None or is_tried else new

    def _place(self, placed: Sequence[PodInfo], start: float) -> None:
        """Count new pods on their nodes. ``start``: when the work for them began."""
        if not placed:
            return
        if POD in self._plugin_objects.listed_kinds:
            self._plugin_objects.put_all(POD, placed)
        self._cluster.cache.add_pods(placed)
        for pod in placed:
            self._queue.move_all(EVENT_ASSIGNED_POD_ADD, None, pod)
        seconds = (self._clock.now() - start) / len(placed)
        duration = self._metrics.event_handling_duration
        duration.observe(seconds, EVENT_ASSIGNED_POD_ADD.label, count=len(placed))

    # ---- everything else ------------------------------------------------------------------

    def _group(self, event: WatchEvent) -> Labels:
        """Apply the object of a group, which is also stored like other objects."""
        groups = self._cluster.pod_groups
        key = key_of(event.kind, event.object.metadata)
        group_state = groups.get(key)
        old = None if group_state is None else group_state.group
        was_exclusive = key in groups.exclusive
        if event.type is EventType.DELETED:
            state = groups.remove(key)
        else:
            group = self._compiled_group(event)
            if group is None:
                return ()
            state = groups.put(group)
        self._cluster.group_trees.follow(key)
        handled = self._other(event)
        if state is not None:
            # A change of the status, such as an own patch, helps no pod.
            wakes = old is None or state.group is None or not old.asks_the_same(state.group)
            self._group_controller.changed([state], wakes=wakes)
        if was_exclusive and key not in groups.exclusive:
            self._queue.move_all(EXCLUSIVE_OVER, None, None)
        return handled

    def _composite_group(self, event: WatchEvent) -> Labels:
        """Apply a CompositePodGroup, which is also stored like other objects."""
        group, trees = event.object, self._cluster.group_trees
        assert isinstance(group, CompositePodGroup), "the kind is decoded as this type"
        if event.type is EventType.DELETED:
            old, new = trees.remove(group.key), None
        else:
            old, new = trees.put(group), group
        handled = self._other(event)
        wakes = old is None or new is None or old.spec != new.spec
        self._group_controller.changed(trees.leaves(group.key), wakes=wakes)
        return handled

    def _other(self, event: WatchEvent) -> Labels:
        if event.kind == DEVICE_TAINT_RULE:
            return self._taint_rule(event)
        resource = resource_of_kind(event.kind)
        new: Any = event.object
        if event.type is EventType.DELETED:
            old = self._plugin_objects.remove(event.kind, new)
            if old is None:
                return ()
            deleted = ClusterEvent(resource, ActionType.DELETE)
            self._queue.move_all(deleted, old, None)
            return (deleted.label,)
        old = self._plugin_objects.put(event.kind, new)
        action = ActionType.ADD if old is None else UPDATE
        changed = ClusterEvent(resource, action)
        self._queue.move_all(changed, old, new)
        return (changed.label,)

    def _taint_rule(self, event: WatchEvent) -> Labels:
        """Report the rule as an update of the slices whose devices it taints, as upstream."""
        slices = self._cluster.devices.resource_slices
        before = slices.list_with_device_taint_rules()
        store = self._cluster.objects.of(event.kind)
        if event.type is EventType.DELETED:
            store.remove(event.object)
        else:
            store.put(event.object)
        for old, new in zip(before, slices.list_with_device_taint_rules(), strict=True):
            if old is not new and old.spec.devices != new.spec.devices:
                self._queue.move_all(_SLICE_UPDATE, old, new)
        return _SLICE_UPDATED


def _groups_of(
    groups: PodGroups, kind: EventType, pod: Pod | Unstructured
) -> tuple[GroupState, ...]:
    """The groups that a pod's change concerns.

    A pod that ended stays a member of its group in its last phase, even after its deletion.
    """
    # A deletion that a listing showed has only the metadata of the pod.
    if isinstance(pod, Unstructured) or (kind is EventType.DELETED and not is_terminal(pod)):
        return groups.remove_pod(pod.metadata.uid or "")
    return groups.put_pod(pod)


def added(pod: Pod) -> WatchEvent:
    """Make the event of a new pod."""
    return WatchEvent(EventType.ADDED, POD, pod, pod.metadata.resource_version or "")
