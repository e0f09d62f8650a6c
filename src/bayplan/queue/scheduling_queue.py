"""The scheduling queue: which pod is tried next, and when a failed pod is tried again.

    add → activeQ → pop → in flight → done
                      ↑        ↓ add_unschedulable
                   backoffQ  unschedulable until an event may help

An entry is in exactly one state, and `entry.TRANSITIONS` defines its moves. A failed pod waits for
the plugins that rejected it. An event wakes the pod if one of these plugins registered for the
event and its hint agrees; the backoff decides between activeQ and backoffQ. A pod that PreEnqueue
rejects is gated. Entries with equal sort keys are tried in the order of arrival.
Upstream: backend/queue/scheduling_queue.go (v1.37).

`InFlight` has one list of the events that arrive during attempts. The mark of a pod is the length
of the list at its pop, so the events after the mark concern the pod. Events before the first mark
are dropped. Upstream: inFlightPods and inFlightEvents of active_queue.go.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Final, final

from bayplan.framework.events import (
    BACKOFF_COMPLETE,
    EVENT_FORCE_ACTIVATE,
    EVENT_UNSCHEDULABLE_TIMEOUT,
    EVENT_UNSCHEDULED_POD_ADD,
    SCHEDULE_ATTEMPT_FAILURE,
    ClusterEvent,
)
from bayplan.framework.types import QueuedPodInfo
from bayplan.queue.entry import (
    FINISHED,
    PENDING_QUEUES,
    Entry,
    QueuedPodGroupInfo,
    State,
    Trigger,
    counted_as,
    is_possible,
    is_waiting,
    pod_entry,
    rejectors,
)
from bayplan.queue.groups import GroupEntries
from bayplan.queue.hints import Change, Hints, Strategy, strategy_of
from bayplan.queue.nominator import Nominator
from bayplan.queue.settings import QueueProfile, QueueRecorder, QueueSettings
from bayplan.queue.sub_queues import PreCheck, PreEnqueueCheck, SubQueues, UnschedulablePods
from bayplan.state.pods import PodInfo, PodShape

# ---- in flight ------------------------------------------------------------------------------


#: The label of a pod's mark in the list. Upstream: metrics.PodPoppedInFlightEvent.
POD_POPPED: Final = "PodPopped"

#: The number of changes that no pod needs above which the list is cut.
_DROPPABLE_ALLOWED = 64


@final
class InFlight:
    """The pods between pop and done, and the changes since their pops."""

    def __init__(self) -> None:
        #: uid → number of changes, since the start of the process, at the pod's pop. Pods are in
        #: the order of their pops, so the first mark is the lowest.
        self.marks: dict[str, int] = {}
        #: The number of changes since the start of the process, which is the mark of the next pod.
        self.recorded_count = 0
        #: (uid of the pod that the change concerns, "" for all pods; the change). Only this class
        #: writes.
        self.changes: list[tuple[str, Change]] = []

    def __len__(self) -> int:
        return len(self.marks)

    def __contains__(self, uid: str) -> bool:
        return uid in self.marks

    @property
    def change_count(self) -> int:
        """The length of the list. It has the changes since the oldest pop, and a few more."""
        return len(self.changes)

    def counts(self) -> dict[str, int]:
        """Changes in the list by event, and the pods in flight as `POD_POPPED`."""
        event_counts = Counter(change.event.label for _, change in self.changes)
        event_counts[POD_POPPED] = len(self.marks)
        return dict(event_counts)

    def start(self, uid: str) -> None:
        assert uid not in self.marks, f"two attempts at the pod with uid {uid} at the same time"
        self.marks[uid] = self.recorded_count

    def finish(self, uid: str) -> None:
        """End the attempt at a pod. Has no effect for a pod that is not in flight."""
        if self.marks.pop(uid, None) is not None and self.changes:
            self._drop()

    def finish_all(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self.finish(uid)

    def record(self, change: Change) -> None:
        """Add a change that may concern each pod in flight."""
        if self.marks:
            self.changes.append(("", change))
            self.recorded_count += 1

    def record_for(self, uid: str, change: Change) -> None:
        """Add a change that concerns one pod in flight."""
        assert uid in self.marks, f"the pod with uid {uid} is not in flight"
        self.changes.append((uid, change))
        self.recorded_count += 1

    def changes_since(self, uid: str) -> Sequence[Change]:
        """The changes since the pop of the pod, in order."""
        missed_count = self.recorded_count - self.marks[uid]
        if not missed_count:
            return ()
        return [change for only, change in self.changes[-missed_count:] if only in ("", uid)]

    def _drop(self) -> None:
        if not self.marks:
            self.changes.clear()
            return
        count = len(self.changes)
        if count <= _DROPPABLE_ALLOWED:
            return
        droppable = count - (self.recorded_count - next(iter(self.marks.values())))
        if droppable > _DROPPABLE_ALLOWED and 2 * droppable > count:
            del self.changes[:droppable]


# ---- scheduling queue -----------------------------------------------------------------------


_POD_ADDED = EVENT_UNSCHEDULED_POD_ADD.label
_FORCE_ACTIVATE = EVENT_FORCE_ACTIVATE.label
_TIMEOUT = Change(EVENT_UNSCHEDULABLE_TIMEOUT, None, None)


@final
class SchedulingQueue:
    """The pods of all profiles, in one queue."""

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        settings: QueueSettings,
        clock: Callable[[], float],
        recorder: QueueRecorder,
        *,
        nominator: Nominator | None = None,
    ) -> None:
        """``profiles``: by scheduler name. ``clock``: monotonic seconds."""
        self.nominator = nominator or Nominator()
        self._clock = clock
        self._recorder = recorder
        self._hints = {
            name: Hints(profile.events, recorder, clock) for name, profile in profiles.items()
        }
        self._unschedulable = UnschedulablePods(profiles, self._hints, settings, recorder)
        admission = PreEnqueueCheck(
            profiles, recorder, pop_from_backoff_q=settings.pop_from_backoff_q, clock=clock
        )
        self._sub_queues = SubQueues(settings, clock, admission, unschedulable=self._unschedulable)
        self.renew_concerns = admission.renew_concerns
        #: For metrics and debugging: the sizes of the sub-queues, and the pods in flight.
        self.sizes = self._sub_queues.sizes
        self.in_flight = InFlight()
        #: The entries that wait or are in flight, by the uids of their pods.
        self._entries: dict[str, Entry] = {}
        #: The time of the next work of `run_timers`, in seconds of the clock. None: never.
        self.next_deadline_seconds = self._sub_queues.next_deadline_seconds
        self.timed = self._sub_queues.timed
        self.ready = self._sub_queues.ready
        #: All that `move_all` reads. While all of it is empty, `move_all` does nothing.
        self.listening = (self._unschedulable.by_flush.items, self.in_flight.marks)
        #: Whether the pod with a uid waits or is in flight.
        self.holds = self._entries.__contains__
        self._sequence = count(1)
        #: The key of QueueSort. Pods with a smaller key are popped first.
        self.sort_key = settings.sort_key
        self._queue_group = settings.queue_group
        #: The groups of pods that wait together.
        self.groups = GroupEntries(
            self._entries, self._sub_queues, clock, self._sequence, requeue=self._requeue
        )

    # ---- added, changed and deleted pods ---------------------------------------------------------

    def add(self, pod: PodInfo) -> None:
        """Add a pod that waits for a node. A pod that is already in the queue is updated."""
        if pod.uid in self._entries:
            self.update(None, pod)
            return
        if pod.status.nominated_node_name or pod.uid in self.nominator.node_of:
            self.nominator.add_nominated_pod(pod)
        now, sequence = self._clock(), next(self._sequence)
        queued = QueuedPodInfo(pod, now, sequence)
        if pod.shape.group_key is not None:
            queue_group = self._queue_group(pod)
            if queue_group is not None:
                self.groups.join(queued, queue_group)
                return
        # This does what `pod_entry` does, without a call for each pod.
        entry = Entry(pod.uid, queued, (queued,), sequence, now, State.ABSENT)
        self._entries[pod.uid] = entry
        self._sub_queues.move(entry, Trigger.ADDED, _POD_ADDED)

    def update(
        self, old: PodInfo | None, new: PodInfo, events: Sequence[ClusterEvent] = ()
    ) -> None:
        """Replace a pod by its new version. ``events``: what changed in the pod.

        The first event that helps a waiting pod wakes it. The events of a pod in flight are
        recorded, and `add_unschedulable` brings its new version. A pod that is not in the queue is
        added.
        """
        entry = self._entries.get(new.uid)
        if entry is None:
            self.add(new)
            return
        queued = entry.of(new.uid)
        old = old or queued.pod
        changes = [Change(event, old, new) for event in events]
        if entry.state is State.IN_FLIGHT:
            for change in changes:
                self.in_flight.record_for(new.uid, change)
            return
        entry.take(new)
        self.nominator.update_nominated_pod(old, new)
        self._sub_queues.refresh(entry)
        for change in changes:
            if not is_possible(entry.state, Trigger.WOKEN):
                return
            strategy = strategy_of(self._hints, (queued,), [change])
            if strategy is not Strategy.SKIP:
                self._requeue(entry, strategy, change.event.label)

    def delete(self, pod: PodInfo) -> None:
        """Remove a pod that is deleted or bound. A pod in flight stays until `done`."""
        if pod.uid in self.nominator.node_of:
            self.nominator.delete_nominated_pod_if_exists(pod)
        entry = self._entries.get(pod.uid)
        if entry is None:
            return
        if entry.state is State.IN_FLIGHT:
            return
        self._count_rejectors((entry.of(pod.uid),), -1)
        if entry.group is not None:
            self.groups.leave(entry, pod.uid)
            return
        del self._entries[entry.key]
        self._sub_queues.move(entry, Trigger.DELETED, "")

    def activate(self, pods: Iterable[PodInfo]) -> None:
        """Move pods to activeQ without an event and without backoff. Gated pods stay gated.

        For a pod in flight the request is recorded. Pods that are not in the queue are ignored.
        """
        for pod in pods:
            entry = self._entries.get(pod.uid)
            if entry is None:
                continue
            if is_possible(entry.state, Trigger.ACTIVATED):
                self._sub_queues.move(entry, Trigger.ACTIVATED, _FORCE_ACTIVATE)
            elif entry.state is State.IN_FLIGHT:
                self.in_flight.record_for(pod.uid, Change(EVENT_FORCE_ACTIVATE, None, pod))

    # ---- attempts -------------------------------------------------------------------------

    def pop(self, uid: str | None = None) -> QueuedPodInfo | None:
        """Take the next pod. The pod is then in flight. None: no pod is ready.

        ``uid``: take this pod, or its group, out of order. None: the pod does not wait in the
        queue, or PreEnqueue rejects it.
        """
        entry = self._sub_queues.pop() if uid is None else self._taken_out(uid)
        if entry is None:
            return None
        marks, mark = self.in_flight.marks, self.in_flight.recorded_count
        for queued in entry.pods:
            if queued.unschedulable_plugins or queued.pending_plugins:
                self._count_rejectors((queued,), -1)
            queued.attempts += 1
            # As `InFlight.start`, without a call for each pod.
            uid = queued.pod.uid
            assert uid not in marks, f"two attempts at the pod with uid {uid} at the same time"
            marks[uid] = mark
        if entry.group is not None:
            entry.begin()
        return entry.queued

    def pop_run(self, pods_max: int, shapes: Container[PodShape]) -> list[QueuedPodInfo]:
        """Take the next pod as `pop` does, and the pods of its shape right behind it, at most
        ``pods_max`` together. Empty: no pod is ready.

        ``shapes``: the shapes whose pods are taken together. A pod of another shape, or a group, is
        taken alone.
        """
        first = self.pop()
        if first is None:
            return []
        run, shape, in_flight = [first], first.pod.shape, self.in_flight
        if shape not in shapes or pods_max == 1:
            return run
        for entry in self._sub_queues.pop_equal(shape, pods_max - 1):
            queued = entry.queued
            if queued.unschedulable_plugins or queued.pending_plugins:
                self._count_rejectors((queued,), -1)
            queued.attempts += 1
            # As `InFlight.start`, without a call for each pod.
            in_flight.marks[entry.key] = in_flight.recorded_count
            run.append(queued)
        return run

    def put_back(self, run: list[QueuedPodInfo], count: int) -> None:
        """Return all but the first pods of a run to their places, as if they had not been popped.
        The returned pods leave the list."""
        if count >= len(run):
            return
        for entry in self._sub_queues.put_back(len(run) - count):
            queued = entry.queued
            queued.attempts -= 1
            del self.in_flight.marks[entry.key]
            if queued.unschedulable_plugins or queued.pending_plugins:
                self._count_rejectors((queued,), 1)
        del run[count:]

    def run_mark(self) -> tuple[int, int]:
        """A mark that changes when an entry enters activeQ, or an event is recorded. After such a
        change, the pods of a run without an attempt return to their places."""
        return self._sub_queues.active_count, self.in_flight.recorded_count

    def _taken_out(self, uid: str) -> Entry | None:
        entry = self._entries.get(uid)
        if entry is None or not is_waiting(entry.state) or not self._sub_queues.take_out(entry):
            return None
        return entry

    def first_active(self) -> QueuedPodInfo | None:
        """The pod, or the group, that `pop` returns next, unless it is in backoffQ."""
        return self._sub_queues.first_active()

    def done_all(self, pods: Iterable[QueuedPodInfo]) -> None:
        """Do what `done` does for each of these pods, which must be in flight and not members of
        groups."""
        in_flight, entries = self.in_flight, self._entries
        for each in pods:
            uid = each.pod.uid
            if in_flight.changes:
                in_flight.finish(uid)
            else:
                del in_flight.marks[uid]
            entries.pop(uid).state = FINISHED

    def done(self, uid: str) -> None:
        """Remove the pod from the queue after its attempt. A second call has no effect."""
        in_flight = self.in_flight
        if in_flight.changes:
            in_flight.finish(uid)
        else:
            in_flight.marks.pop(uid, None)
        entry = self._entries.get(uid)
        if entry is None or entry.state is not State.IN_FLIGHT:
            return
        if entry.group is not None:
            self.groups.leave(entry, uid)
        else:
            entry.state = FINISHED
            del self._entries[uid]

    def add_unschedulable(self, queued: QueuedPodInfo, *, at_once: bool = False) -> None:
        """Return a pod, in its newest version, or a group after a failed attempt.

        Its unschedulable and pending plugins are those of this attempt. Without such plugins an
        error ended the attempt. A pod that already waits again (`done`, then `add`) stays as it is.
        ``at_once``: whether the retry has no delay.
        """
        entry, in_flight = self._returning(queued), self.in_flight
        if is_waiting(entry.state):
            in_flight.finish(queued.pod.uid)
            return
        uids = [each.pod.uid for each in entry.pods]
        returned = entry.group or queued
        entry.come_back(returned, self._clock(), next(self._sequence))
        # A member whose binding failed shares the counts of its group, so only its first retry
        # has no delay.
        queued.unschedulable_count = returned.unschedulable_count
        queued.consecutive_errors_count = returned.consecutive_errors_count
        self._count_rejectors(entry.pods, 1)
        if entry.has_rejectors and uids[0] in in_flight.marks:
            missed = in_flight.changes_since(uids[0])
            strategy = strategy_of(self._hints, entry.pods, missed) if missed else Strategy.SKIP
            in_flight.finish_all(uids)
            self._requeue(entry, strategy, SCHEDULE_ATTEMPT_FAILURE)
            return
        # The binding failed after `done`, so the changes since the pop are unknown, and the retry
        # waits for the end of its delay. Upstream pops the pod early. A PreBind plugin that rejects
        # it is then called again as fast as the API server answers (docs/decisions/0005).
        in_flight.finish_all(uids)
        is_due = at_once or not self._sub_queues.backoff.is_running(entry)
        trigger = Trigger.WOKEN if is_due else Trigger.ERRED
        self._sub_queues.move(entry, trigger, SCHEDULE_ATTEMPT_FAILURE)

    def add_equal_unschedulable(self, run: Sequence[QueuedPodInfo]) -> None:
        """As `add_unschedulable` for each pod of a run, which are in no group and were rejected by
        the same plugins."""
        in_flight, now = self.in_flight, self._clock()
        marks, mark = in_flight.marks, in_flight.recorded_count
        if any([marks[queued.pod.uid] != mark for queued in run]):  # noqa: C419 - one call
            for queued in run:
                self.add_unschedulable(queued)
            return
        entries = [self._entries[queued.pod.uid] for queued in run]
        for entry in entries:
            entry.come_back(entry.queued, now, next(self._sequence))
        in_flight.finish_all([entry.key for entry in entries])
        for plugin in rejectors(run[0]):
            profile = run[0].pod.shape.scheduler_name
            self._recorder.unschedulable_delta(plugin, profile, len(run))
        self._sub_queues.reject_equal(entries, SCHEDULE_ATTEMPT_FAILURE)

    def _returning(self, queued: QueuedPodInfo) -> Entry:
        """The entry to which a pod or a group returns after its attempt."""
        if isinstance(queued, QueuedPodGroupInfo):
            return self.groups.returning(queued)
        uid, queue_group = queued.pod.uid, self._queue_group(queued.pod)
        entry = self._entries.get(uid)
        if entry is not None and entry.group is not None and entry.state is State.IN_FLIGHT:
            # The other members were placed. This member now has an entry of its own.
            self.groups.leave(entry, uid)
            entry = self._entries[uid] = pod_entry(queued)
            entry.state = State.IN_FLIGHT
        if entry is None and queue_group is not None:
            return self.groups.rejoin(queued, queue_group)
        if entry is None:
            entry = self._entries[uid] = pod_entry(queued)
        return entry

    # ---- events ---------------------------------------------------------------------------

    def move_all(
        self, event: ClusterEvent, old: Any, new: Any, pre_check: PreCheck | None = None
    ) -> None:
        """Wake the unschedulable pods that an event in the cluster may help.

        ``pre_check`` selects the unschedulable pods that are considered. The event is always
        recorded for the pods in flight.
        """
        if not any(self.listening):
            return
        change = Change(event, old, new)
        if event.is_wildcard:
            woken = self._unschedulable.woken_by_wildcard(change, pre_check)
        elif any(hints.interested(event) for hints in self._hints.values()):
            woken = self._unschedulable.woken_by(change, pre_check)
        else:
            return
        for entry, strategy in woken:
            self._requeue(entry, strategy, event.label, anew=True)
        self.in_flight.record(change)

    def _requeue(self, entry: Entry, strategy: Strategy, event: str, *, anew: bool = False) -> None:
        if strategy is Strategy.SKIP:
            trigger = Trigger.REJECTED
        elif strategy is Strategy.IMMEDIATELY or not self._sub_queues.backoff.is_running(entry):
            trigger = Trigger.WOKEN
        else:
            # Upstream records no rejecting plugins for a group as a whole, and pops no entry
            # without them before its delay ends.
            pops_early = entry.group is None and entry.has_rejectors
            trigger = Trigger.WOKEN_EARLY if pops_early else Trigger.ERRED
        self._sub_queues.move(entry, trigger, event, anew=anew)

    # ---- time -----------------------------------------------------------------------------

    def run_timers(self) -> None:
        """Move entries whose delay, or whose stay among the unschedulable pods, has ended."""
        now, due = self._clock(), self.next_deadline_seconds()
        if due is None or due > now:
            return
        while (entry := self._sub_queues.first_backoff_over(now)) is not None:
            self._sub_queues.move(entry, Trigger.BACKOFF_OVER, BACKOFF_COMPLETE)
        if self._unschedulable.first_overdue(now) is None:
            return
        # A gated entry stays. The time to its next flush counts from this flush.
        while (entry := self._unschedulable.first_overdue(now)) is not None:
            entry.queued.was_flushed = True
            entry.queued.flushed_at_seconds = now
            self._requeue(entry, Strategy.AFTER_BACKOFF, _TIMEOUT.event.label, anew=True)
        self.in_flight.record(_TIMEOUT)

    # ---- queries --------------------------------------------------------------------------

    @property
    def has_ready(self) -> bool:
        """Whether `pop` would return a pod now."""
        return self._sub_queues.has_ready

    @property
    def waiting_for_retry_only(self) -> bool:
        """Whether the queue has only retries after errors and entries that wait for the flush.

        Pods in flight do not count.
        """
        return not (self._sub_queues.has_ready or self._sub_queues.has_rejected_backing_off)

    def counts(self) -> dict[str, int]:
        """The numbers of waiting pods, by the label ``queue`` of scheduler_pending_pods."""
        return dict(self._sub_queues.sizes.pod_counts)

    def find(self, uid: str) -> QueuedPodInfo | None:
        """The pod if it waits or is in flight; None: it does neither."""
        entry = self._entries.get(uid)
        return None if entry is None else entry.of(uid)

    def state_of(self, uid: str) -> State:
        entry = self._entries.get(uid)
        return State.ABSENT if entry is None else entry.state

    def pending_pods(self) -> dict[str, list[PodInfo]]:
        """The waiting pods, by the same label, in the order of their keys."""
        pods_by_queue: dict[str, list[PodInfo]] = {queue: [] for queue in PENDING_QUEUES}
        for entry in self._sub_queues:
            pods_by_queue[counted_as(entry.state)] += [queued.pod for queued in entry.pods]
        return {queue: sorted(pods, key=_key) for queue, pods in pods_by_queue.items()}

    def _count_rejectors(self, pods: Iterable[QueuedPodInfo], delta: int) -> None:
        for queued in pods:
            for plugin in rejectors(queued):
                profile = queued.pod.shape.scheduler_name
                self._recorder.unschedulable_delta(plugin, profile, delta)


def _key(pod: PodInfo) -> str:
    return pod.key
