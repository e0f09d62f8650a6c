"""The pod group controller: changes of a group reach the queue, the members and the API.

Members wait together while the group needs them to reach its quorum, and alone from then on.
Members of scheduling.k8s.io groups always wait together, as upstream's do. Every change of a group
(a member, its object, a decision) ends in `changed`; `flush` writes the statuses once for all
changes of an instant.

minResources is a lower bound for the free amounts of all nodes together, plus what members hold. It
is checked after the members have found their nodes: amounts may be free in sum and fit no member.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from math import inf
from typing import final

from bayplan.api.objects import Pod
from bayplan.api.pod_groups import SCHEDULE_TIMED_OUT, GroupKey
from bayplan.api.pod_requests import CPU, amounts
from bayplan.api.quantity import QuantityError
from bayplan.clock import epoch_of
from bayplan.engine.core import EngineCore
from bayplan.engine.failures import unschedulable_condition
from bayplan.engine.podgroups.status import (
    GroupStatusWriter,
    GroupTimeouts,
    timed_out_message,
    waiting_for,
)
from bayplan.engine.podgroups.trial import PodGroupTrial
from bayplan.engine.reservations import RESERVATION_OVER
from bayplan.framework.plugin import GroupPlacement
from bayplan.framework.queued_group import QueueGroup
from bayplan.framework.runtime import Framework
from bayplan.framework.status import is_success
from bayplan.state.cache import Snapshot
from bayplan.state.pod_groups import GroupState, MemberStatus
from bayplan.state.pods import DEFAULT_SCHEDULER, PodInfo, pod_info

# ---- membership -----------------------------------------------------------------------------


#: Members of a group that grows are told how many they are; of a big one, at each doubling only.
_ALWAYS_REPORTED_COUNT = 32


@final
class PodGroupController:
    """Keeps queue and statuses in step with `PodGroups`."""

    def __init__(self, engine: EngineCore, *, reports_assembling: bool) -> None:
        """``reports_assembling``: members of a group that lacks members are written to."""
        self._engine = engine
        self._reports_assembling = reports_assembling
        self._writer = GroupStatusWriter(engine.outbox, engine.clock)
        self._timeouts = GroupTimeouts(engine.clock)
        # Read once: groups of one second are of one age, however often the clocks are read.
        self._epoch_at_zero = engine.clock.epoch_seconds() - engine.clock.now()
        #: By profile: whether its members are placed one by one.
        self._by_pod: dict[str, bool] = {}
        #: When `run_timers` has something to do.
        self.deadlines = (self._timeouts.deadlines, engine.reservations.deadlines)
        #: Groups that changed since the last `flush`.
        self.changes: dict[GroupKey, GroupState] = {}
        #: Pods by uid: what they were last told they wait for.
        self._told: dict[str, str] = {}

    # ---- who waits together ---------------------------------------------------------------

    def queue_group(self, pod: PodInfo) -> QueueGroup | None:
        """The group whose other members a pod waits for; None: it is tried alone."""
        if pod.shape.group_key is None:
            return None
        state = self._engine.cluster.pod_groups.of(pod)
        if state is None or pod.uid not in state.members[MemberStatus.PENDING]:
            return None
        return self._queue_group(state, pod)

    def _queue_group(self, state: GroupState, pod: PodInfo) -> QueueGroup | None:
        if state.is_met and not state.is_upstream:
            return None
        if not self._is_placed_as_one(pod.scheduler_name):
            return None
        return QueueGroup(state.key, self._created_seconds(state), state.is_complete)

    def _is_placed_as_one(self, profile_name: str) -> bool:
        framework = self._engine.frameworks.get(profile_name)
        if framework is None:
            return False
        if profile_name not in self._by_pod:
            self._by_pod[profile_name] = _places_pod_by_pod(framework)
        return not self._by_pod[profile_name]

    def _created_seconds(self, state: GroupState) -> float:
        """On the scheduler's clock. A group without an object comes after all others."""
        group = state.group
        if group is None:
            return inf
        created = epoch_of(group.metadata.creation_timestamp or "")
        return 0.0 if created is None else created - self._epoch_at_zero

    # ---- changes --------------------------------------------------------------------------

    def changed(self, states: Iterable[GroupState], *, wakes: bool = False) -> None:
        """Something in these groups changed. ``wakes``: it may help one that did not fit."""
        for state in states:
            self.changes[state.key] = state
            self._regroup(state)
            if self._engine.reservations.concerns(state.key):
                self._end_reservation(state)
            if wakes:
                self._engine.queue.groups.wake(state.key)

    def _queue_group_of(self, state: GroupState) -> QueueGroup | None:
        known = self._engine.cluster.pods
        first = next((pod for uid in self._waiting_uids(state) if (pod := known.get(uid))), None)
        return None if first is None else self._queue_group(state, first)

    def _regroup(self, state: GroupState) -> None:
        """A big group's members come one by one, so all are looked at only where that matters."""
        known, entries = self._engine.cluster.pods, self._engine.queue.groups
        queue_group = self._queue_group_of(state)
        if not entries.is_in_step(state.key, queue_group, state.waiting_count):
            waiting = [pod for uid in self._waiting_uids(state) if (pod := known.get(uid))]
            entries.regroup(state.key, queue_group, waiting)

    def _end_reservation(self, state: GroupState) -> None:
        """Unless its members wait for nodes still."""
        queue_group = self._queue_group_of(state)
        if queue_group is not None and queue_group.is_complete and not state.is_met:
            return
        if self._engine.reservations.end(state.key):
            self._engine.queue.move_all(RESERVATION_OVER, None, None)

    def changed_by(self, pods: Iterable[PodInfo]) -> None:
        """A decision of ours about these pods changed their groups."""
        states = (self._engine.cluster.pod_groups.of(pod) for pod in pods)
        self.changed({id(state): state for state in states if state is not None}.values())

    @staticmethod
    def _waiting_uids(state: GroupState) -> Iterator[str]:
        return (uid for uid in state.members[MemberStatus.PENDING] if uid not in state.assumed)

    def explain(
        self, key: GroupKey, message: str, condition_message: str = "", *, has_failed: bool = False
    ) -> None:
        """What an attempt at the group came to; ``condition_message``: as its condition says it,
        if that is something else; ``has_failed``: by an error."""
        state = self._engine.cluster.pod_groups.get(key)
        if state is not None:
            state.message, state.has_failed = message, has_failed
            state.condition_message = condition_message or message
            self.changes[key] = state

    # ---- waiting too long -----------------------------------------------------------------

    def run_timers(self) -> None:
        """Groups whose time is over are told so, once; they are tried on."""
        now = self._engine.clock.now()
        for key in self._timeouts.deadlines.take_due(now):
            state = self._engine.cluster.pod_groups.get(key)
            if state is not None:
                state.has_timed_out = True
                self.changes[key] = state
                self._tell_of_timeout(state)
        for key in self._engine.reservations.deadlines.take_due(now):
            self._engine.queue.groups.wake(key)

    def _tell_of_timeout(self, state: GroupState) -> None:
        engine, group, waiting = self._engine, state.group, state.pending()
        message = timed_out_message(state)
        engine.telemetry.record_group(state, "timed out", message=message)
        if group is not None and waiting:
            profile = waiting[0].spec.scheduler_name or DEFAULT_SCHEDULER
            engine.outbox.emit_about_group(
                profile, group, "Warning", SCHEDULE_TIMED_OUT, note=message
            )

    # ---- telling --------------------------------------------------------------------------

    def flush(self) -> None:
        """Tell what has changed: the API how the group stands, and members what they wait for,
        where that is wanted: an autoscaler would take their conditions for pods that lack nodes."""
        changed, self.changes = self.changes, {}
        for state in changed.values():
            waiting = list(self._waiting_uids(state))
            if waiting and not state.is_met and not state.is_complete:
                self._is_short(state, waiting)
            elif not waiting:
                state.message = ""
            self._timeouts.note(state, is_waiting=self._queue_group_of(state) is not None)
            self._writer.write(state)

    def _is_short(self, state: GroupState, waiting: list[str]) -> None:
        sentence = waiting_for(state)
        if sentence != state.message:
            state.message = sentence
            self._engine.telemetry.record_group(state, "short", message=sentence)
        if self._reports_assembling:
            self._tell(state, waiting)

    def _tell(self, state: GroupState, waiting: list[str]) -> None:
        """Each member whom nobody told yet; the others where their number is worth a word."""
        count = state.here_count
        tells_all = count <= _ALWAYS_REPORTED_COUNT or not count & (count - 1)
        for uid in waiting:
            pod = self._engine.cluster.pods.get(uid)
            if pod is None or not (tells_all or uid not in self._told):
                continue
            if self._is_placed_as_one(pod.scheduler_name):
                framework = self._engine.frameworks[pod.scheduler_name]
                self._tell_member(pod, framework, state.message)

    def _tell_member(self, pod: PodInfo, framework: Framework, sentence: str) -> None:
        engine, message = self._engine, _gate_message(framework, pod) or sentence
        if self._told.get(pod.uid) == message:
            return
        self._told[pod.uid] = message
        condition = unschedulable_condition(engine, pod, "Unschedulable", message)
        if condition is not None:
            engine.outbox.patch_status(pod, condition, None)
            name = pod.scheduler_name
            engine.outbox.emit(name, pod, "Warning", "FailedScheduling", "Scheduling", message)

    def forget(self, uid: str) -> None:
        """The pod is gone, or on a node."""
        self._told.pop(uid, None)


def _places_pod_by_pod(framework: Framework) -> bool:
    instances = framework.plugins.instances()
    return any(isinstance(p, GroupPlacement) and p.places_pod_by_pod for p in instances)


def _gate_message(framework: Framework, pod: PodInfo) -> str:
    """What a PreEnqueue plugin says of the pod, upstream's GangScheduling say."""
    for plugin in framework.plugins.pre_enqueue:
        status = plugin.pre_enqueue(pod)
        if not is_success(status) and status is not None:
            return status.message
    return ""


# ---- minResources ---------------------------------------------------------------------------


def missing_resources(
    state: GroupState, snapshot: Snapshot, group_trial: PodGroupTrial
) -> list[str]:
    """Resources of which there is too little, each with what is wanted and what there is."""
    wanted = state.group.min_resources if state.group is not None else None
    if not wanted:
        return []
    try:
        floor = amounts(wanted)
    except QuantityError as problem:
        return [f"spec.minResources: {problem}"]
    nodes = snapshot.nodes
    held = Counter[str]()
    for pod in (*state.assigned(), *(one.pod for one in group_trial.placed)):
        held.update(_requests(pod))
    problems: list[str] = []
    for name, amount in sorted(floor.items()):
        free = int((nodes.allocatable(name) - nodes.requested(name)).clip(0).sum())
        if free + held[name] < amount:
            told = f"wanted {_written(name, amount)}, found {_written(name, free + held[name])}"
            problems.append(f"{name} ({told})")
    return problems


def _written(resource: str, amount: int) -> str:
    """As in a manifest: cpu in cores, or thousandths of one."""
    if resource != CPU:
        return str(amount)
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"


def _requests(pod: Pod | PodInfo) -> "dict[str, int]":
    compiled = pod_info(pod) if isinstance(pod, Pod) else pod
    return dict(compiled.requests)
