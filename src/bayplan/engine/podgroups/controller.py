"""The pod group controller: changes of a group reach the queue, the members and the API.

Members wait together while the group needs them to reach its quorum, and alone from then on.
Members of scheduling.k8s.io groups always wait together, as upstream's do. Every change of a group
(a member, its object, a decision) ends in `changed`; `flush` writes the statuses once for all
changes of an instant.

minResources is a lower bound for the free amounts of all nodes together, plus what members hold. It
is checked after the members have found their nodes: amounts may be free in sum and fit no member.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import final

from bayplan.api.object_meta import ObjectMeta
from bayplan.api.objects import DEFAULT_SCHEDULER, Pod
from bayplan.api.pod_groups import SCHEDULE_TIMED_OUT, GroupKey
from bayplan.api.pod_requests import CPU, amounts
from bayplan.api.quantity import QuantityError
from bayplan.clock import Clock, epoch_of
from bayplan.engine.failures import unschedulable_condition
from bayplan.engine.outbox import Outbox
from bayplan.engine.podgroups.status import (
    GroupStatusWriter,
    GroupTimeouts,
    timed_out_message,
    waiting_for,
)
from bayplan.engine.podgroups.trial import PodGroupTrial
from bayplan.engine.reservations import RESERVATION_OVER, Reservations
from bayplan.engine.telemetry import Telemetry
from bayplan.framework.plugin import GroupPlacement
from bayplan.framework.runtime import Framework
from bayplan.framework.status import is_success
from bayplan.queue.entry import QueueGroup
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.state.cache import ClusterView, Snapshot
from bayplan.state.pod_group_trees import PodGroupTrees
from bayplan.state.pod_groups import GroupState, MemberStatus
from bayplan.state.pods import PodInfo, pod_info

# ---- membership -----------------------------------------------------------------------------


#: Up to this size of a group, each new member changes the condition of all members. Above it, only
#: each doubling of the size does.
_ALWAYS_REPORTED_COUNT = 32


@final
class QueueGroups:
    """Says which pods wait together in one entry of the queue."""

    def __init__(
        self, trees: PodGroupTrees, frameworks: Mapping[str, Framework], clock: Clock
    ) -> None:
        """``frameworks``: by profile; filled when the plugins have started."""
        self._pod_groups = trees.pod_groups
        self._trees = trees
        self._frameworks = frameworks
        # The clock is read once, so that groups that were created in the same second have the same
        # age.
        self._epoch_at_zero = clock.epoch_seconds() - clock.now()
        #: The last (time stamp of an object, its time on the scheduler's clock). Members of a group
        #: come in a row.
        self._last_created: tuple[str, float] = ("", 0.0)
        #: By profile: whether the members of a group are placed one by one.
        self._by_pod: dict[str, bool] = {}

    def of(self, pod: PodInfo) -> QueueGroup | None:
        """The group that a pod waits in; None: the pod is scheduled alone."""
        if pod.shape.group_key is None:
            return None
        state = self._pod_groups.of(pod)
        if state is None or pod.uid not in state.members[MemberStatus.PENDING]:
            return None
        return self.of_member(state, pod)

    def of_member(self, state: GroupState, pod: PodInfo) -> QueueGroup | None:
        """The group that a pending member of this group waits in; None: the member is scheduled
        alone."""
        if self._trees.has_parent(state.key):
            return self._of_tree(state)
        is_divided = state.group is not None and bool(state.group.slices)
        if state.is_met and not state.is_upstream and not is_divided:
            return None
        if not self.is_placed_as_one(pod.scheduler_name):
            return None
        metadata = None if state.group is None else state.group.metadata
        is_held = state.is_upstream and self._trees.rules.gated_pods_hold and state.has_gated
        is_complete = state.is_complete and not is_held
        return QueueGroup(state.key, self._created_seconds(metadata), is_complete)

    def _of_tree(self, state: GroupState) -> QueueGroup:
        """The group of the root of the tree. None: a group above is missing."""
        root = self._trees.root_of(state.key)
        if root is None:
            return QueueGroup(state.key, inf, is_complete=False)
        tree = self._trees.tree(root)
        is_held = self._trees.rules.gated_pods_hold and tree.has_gated
        is_complete = tree.is_complete and not is_held
        return QueueGroup(root.key, self._created_seconds(root.metadata), is_complete)

    def is_placed_as_one(self, profile_name: str) -> bool:
        by_pod = self._by_pod.get(profile_name)
        if by_pod is None:
            framework = self._frameworks.get(profile_name)
            if framework is None:
                return False
            by_pod = self._by_pod[profile_name] = _places_pod_by_pod(framework)
        return not by_pod

    def _created_seconds(self, metadata: ObjectMeta | None) -> float:
        """When a group was created, on the scheduler's clock. A group without an object sorts after
        all other groups."""
        if metadata is None:
            return inf
        stamp = metadata.creation_timestamp or ""
        last_stamp, seconds = self._last_created
        if stamp != last_stamp:
            created = epoch_of(stamp)
            seconds = 0.0 if created is None else created - self._epoch_at_zero
            self._last_created = stamp, seconds
        return seconds


@final
class PodGroupController:
    """Keeps queue and statuses in step with `PodGroups`."""

    def __init__(
        self,
        cluster: ClusterView,
        queue: SchedulingQueue,
        outbox: Outbox,
        telemetry: Telemetry,
        *,
        frameworks: Mapping[str, Framework],
        queue_groups: QueueGroups,
        reservations: Reservations,
        reports_assembling: bool,
    ) -> None:
        """``reports_assembling``: whether members of an incomplete group get a condition."""
        self._cluster = cluster
        self._trees = cluster.group_trees
        #: The root of the tree that the pods of a group waited with last.
        self._roots: dict[GroupKey, GroupKey] = {}
        self._frameworks = frameworks
        self._queue = queue
        self._queue_groups = queue_groups
        self._reservations = reservations
        self._outbox = outbox
        self._telemetry = telemetry
        self._clock = telemetry.clock
        self._reports_assembling = reports_assembling
        self._writer = GroupStatusWriter(outbox, self._clock)
        self._timeouts = GroupTimeouts(self._clock)
        #: The times at which `run_timers` has something to do.
        self.deadlines = (self._timeouts.deadlines, reservations.deadlines)
        #: Groups that changed since the last `flush`.
        self.changes: dict[GroupKey, GroupState] = {}
        #: By uid of a pod: the message of its last condition.
        self.messages: dict[str, str] = {}

    # ---- changes --------------------------------------------------------------------------

    def changed(self, states: Iterable[GroupState], *, wakes: bool = False) -> None:
        """Follow a change of groups. ``wakes``: the change may help a group that did not fit."""
        for state in states:
            self.changes[state.key] = state
            key = self._root_key(state)
            self._regroup(key)
            if self._reservations.concerns(state.key):
                self._end_reservation(state)
            if wakes:
                self._queue.groups.wake(key)

    def _root_key(self, state: GroupState) -> GroupKey:
        """The key of the root above a group, or its own key. If the group waited with other groups
        before and no longer does, these are regrouped without it."""
        root = self._trees.root_of(state.key) if self._trees.is_on else None
        key = state.key if root is None else root.key
        before = self._roots.pop(state.key, state.key)
        if key != state.key:
            self._roots[state.key] = key
        if before != key:
            self._regroup(before)
        return key

    def _queue_group_of(self, state: GroupState) -> QueueGroup | None:
        pods, assumed = self._cluster.pods, state.assumed
        for uid in state.members[MemberStatus.PENDING]:
            pod = None if uid in assumed else pods.get(uid)
            if pod is not None:
                return self._queue_groups.of_member(state, pod)
        return None

    def _regroup(self, key: GroupKey) -> None:
        """Update the queue's entry of a group, or of the root of a tree. Members of a large group
        come one by one, so all members are read only if the entry has to change."""
        pods, entries = self._cluster.pods, self._queue.groups
        states = self._waiting_with(key)
        queue_groups = (self._queue_group_of(state) for state in states)
        queue_group = next((each for each in queue_groups if each is not None), None)
        if not entries.is_in_step(key, queue_group, sum(state.waiting_count for state in states)):
            uids = (uid for state in states for uid in self._waiting_uids(state))
            entries.regroup(key, queue_group, [pod for uid in uids if (pod := pods.get(uid))])

    def _waiting_with(self, key: GroupKey) -> list[GroupState]:
        """The groups whose pods wait in the entry of this key."""
        if key.is_composite:
            root = self._trees.get(key)
            is_root = root is not None and not self._trees.has_parent(key)
            return list(self._trees.tree(root).leaves()) if root is not None and is_root else []
        state = self._cluster.pod_groups.get(key)
        waits_alone = state is not None and self._trees.root_of(key) is None
        return [state] if state is not None and waits_alone else []

    def _end_reservation(self, state: GroupState) -> None:
        """End the reservation, unless the members still wait for nodes."""
        queue_group = self._queue_group_of(state)
        if queue_group is not None and queue_group.is_complete and not state.is_met:
            return
        if self._reservations.end(state.key):
            self._queue.move_all(RESERVATION_OVER, None, None)

    def changed_by(self, pods: Iterable[PodInfo]) -> None:
        """Follow a decision of this scheduler about these pods, which changes their groups."""
        states = (self._cluster.pod_groups.of(pod) for pod in pods)
        self.changed({id(state): state for state in states if state is not None}.values())

    @staticmethod
    def _waiting_uids(state: GroupState) -> Iterator[str]:
        return (uid for uid in state.members[MemberStatus.PENDING] if uid not in state.assumed)

    def explain(
        self, key: GroupKey, message: str, condition_message: str = "", *, failure_reason: str = ""
    ) -> None:
        """Note the result of an attempt at the group. ``condition_message``: the message of the
        condition, if it differs; ``failure_reason``: that of the condition, if the attempt
        ended with an error."""
        state = self._cluster.pod_groups.get(key)
        if state is not None:
            state.message, state.failure_reason = message, failure_reason
            state.condition_message = condition_message or message
            self.changes[key] = state

    # ---- timeouts -------------------------------------------------------------------------

    def run_timers(self) -> None:
        """Report each group whose timeout has passed, once; the group stays in the queue."""
        now = self._clock.now()
        for key in self._timeouts.deadlines.take_due(now):
            state = self._cluster.pod_groups.get(key)
            if state is not None:
                state.has_timed_out = True
                self.changes[key] = state
                self._report_timeout(state)
        for key in self._reservations.deadlines.take_due(now):
            self._queue.groups.wake(key)

    def _report_timeout(self, state: GroupState) -> None:
        group, waiting = state.group, state.pending()
        message = timed_out_message(state)
        self._telemetry.record_group(state, "timed out", message=message)
        if group is not None and waiting:
            profile = waiting[0].spec.scheduler_name or DEFAULT_SCHEDULER
            self._outbox.emit_about_group(
                profile, group, "Warning", SCHEDULE_TIMED_OUT, note=message
            )

    # ---- reporting ------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the statuses of the groups that changed. Members of an incomplete group get a
        condition only if that is configured, because an autoscaler would add nodes for them."""
        changed, self.changes = self.changes, {}
        for state in changed.values():
            if state.waiting_count <= 0:
                state.message = ""
            elif not state.is_met and not state.is_complete:
                self._is_short(state, list(self._waiting_uids(state)))
            has_timeout = state.group is not None and state.group.schedule_timeout_seconds
            is_waiting = bool(has_timeout) and self._queue_group_of(state) is not None
            self._timeouts.note(state, is_waiting=is_waiting)
            self._writer.write(state)

    def _is_short(self, state: GroupState, waiting: list[str]) -> None:
        sentence = waiting_for(state)
        if sentence != state.message:
            state.message = sentence
            self._telemetry.record_group(state, "short", message=sentence)
        if self._reports_assembling:
            self._report(state, waiting)

    def _report(self, state: GroupState, waiting: list[str]) -> None:
        """Write the conditions of the members that have none. At a reported size, write those of
        all members."""
        count = state.here_count
        is_reported = count <= _ALWAYS_REPORTED_COUNT or not count & (count - 1)
        for uid in waiting:
            pod = self._cluster.pods.get(uid)
            if pod is None or not (is_reported or uid not in self.messages):
                continue
            if self._queue_groups.is_placed_as_one(pod.scheduler_name):
                framework = self._frameworks[pod.scheduler_name]
                self._report_to_member(pod, framework, state.message)

    def _report_to_member(self, pod: PodInfo, framework: Framework, sentence: str) -> None:
        message = _gate_message(framework, pod) or sentence
        if self.messages.get(pod.uid) == message:
            return
        self.messages[pod.uid] = message
        condition = unschedulable_condition(pod, "Unschedulable", message, self._clock)
        if condition is not None:
            self._outbox.patch_status(pod, condition, None)
            name = pod.scheduler_name
            self._outbox.emit(name, pod, "Warning", "FailedScheduling", "Scheduling", message)

    def forget(self, uid: str) -> None:
        """Forget the message of a pod that was deleted, or that has a node."""
        self.messages.pop(uid, None)


def _places_pod_by_pod(framework: Framework) -> bool:
    instances = framework.plugins.instances()
    return any(isinstance(p, GroupPlacement) and p.places_pod_by_pod for p in instances)


def _gate_message(framework: Framework, pod: PodInfo) -> str:
    """The message of the PreEnqueue plugin that rejects the pod, such as upstream's
    GangScheduling; "" if none does."""
    for plugin in framework.plugins.pre_enqueue:
        status = plugin.pre_enqueue(pod)
        if not is_success(status) and status is not None:
            return status.message
    return ""


# ---- minResources ---------------------------------------------------------------------------


def missing_resources(
    state: GroupState, snapshot: Snapshot, group_trial: PodGroupTrial
) -> list[str]:
    """The resources of which too little is free, each with the wanted and the free amount."""
    min_resources = state.group.min_resources if state.group is not None else None
    if not min_resources:
        return []
    try:
        floor = amounts(min_resources)
    except QuantityError as problem:
        return [f"spec.minResources: {problem}"]
    nodes = snapshot.nodes
    held_amounts = Counter[str]()
    placed = () if group_trial.is_undone else group_trial.placed
    for pod in (*state.assigned(), *(one.pod for one in placed)):
        held_amounts.update(_requests(pod))
    problems: list[str] = []
    for name, amount in sorted(floor.items()):
        free = int((nodes.allocatable(name) - nodes.requested(name)).clip(0).sum())
        if free + held_amounts[name] < amount:
            usable = _written(name, free + held_amounts[name])
            problems.append(f"{name} (wanted {_written(name, amount)}, found {usable})")
    return problems


def _written(resource: str, amount: int) -> str:
    """An amount as a manifest has it: cpu in cores or milli-cores."""
    if resource != CPU:
        return str(amount)
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"


def _requests(pod: Pod | PodInfo) -> "dict[str, int]":
    compiled = pod_info(pod) if isinstance(pod, Pod) else pod
    return dict(compiled.requests)
