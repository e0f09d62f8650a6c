"""The scheduling queue: which pod is tried next, and when a failed pod is tried again.

    add → activeQ → pop → in flight → done
                      ↑        ↓ add_unschedulable
                   backoffQ  unschedulable until an event may help

An entry is in exactly one state and moves as the table in `transitions` says. A failed pod waits
under the plugins that rejected it. An event wakes the pod if one of these plugins registered for
the event and its hint agrees; the backoff decides between activeQ and backoffQ. A pod that
PreEnqueue rejects is gated. Among equals the first that came is tried first. The clock is the one
that the queue was given. Upstream: backend/queue/scheduling_queue.go (v1.37).

`InFlight` keeps the events that arrive while pods are tried, in one list. A pod remembers the
length of the list at its pop, so later events concern it. Events before the earliest such mark are
dropped. Upstream: inFlightPods and inFlightEvents of active_queue.go.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from bayplan.framework.queued_group import QueuedPodGroupInfo
from bayplan.framework.types import QueuedPodInfo
from bayplan.queue.entry import (
    PENDING_QUEUES,
    Cause,
    Entry,
    State,
    counted_as,
    is_possible,
    is_waiting,
    next_state,
    rejectors,
)
from bayplan.queue.groups import GroupEntries
from bayplan.queue.hints import Change, Hints, Strategy, strategy_of
from bayplan.queue.nominator import Nominator
from bayplan.queue.settings import QueueProfile, QueueRecorder, QueueSettings
from bayplan.queue.sub_queues import PreCheck, PreEnqueueCheck, SubQueues, UnschedulablePods
from bayplan.state.pods import PodInfo

# ---- in flight ------------------------------------------------------------------------------


#: Upstream: metrics.PodPoppedInFlightEvent, the mark that a pod leaves in the list.
POD_POPPED: Final = "PodPopped"

#: So many changes nobody needs are kept before the list is cut.
_DROPPABLE_ALLOWED = 64


@final
class InFlight:
    """Pods between pop and done, and the changes since."""

    def __init__(self) -> None:
        #: uid → number of changes, counted from the beginning, when it was popped. Pods are in the
        #: order they were popped, so the first mark is the lowest.
        self.marks: dict[str, int] = {}
        #: (uid of the only pod concerned, "" for all; change)
        self._changes: list[tuple[str, Change]] = []
        self._dropped_count = 0

    def __len__(self) -> int:
        return len(self.marks)

    def __contains__(self, uid: str) -> bool:
        return uid in self.marks

    @property
    def change_count(self) -> int:
        """Changes that are kept; bounded by what came since the longest attempt began."""
        return len(self._changes)

    def counts(self) -> dict[str, int]:
        """How many pods are in flight, and how many changes of which event are kept."""
        event_counts = Counter(change.event.label for _, change in self._changes)
        event_counts[POD_POPPED] = len(self.marks)
        return dict(event_counts)

    def start(self, uid: str) -> None:
        assert uid not in self.marks, f"the pod with uid {uid} is being tried twice at once"
        self.marks[uid] = self._dropped_count + len(self._changes)

    def finish(self, uid: str) -> None:
        """The attempt is over; a pod that is not in flight is ignored."""
        if self.marks.pop(uid, None) is not None:
            self._drop()

    def finish_all(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self.finish(uid)

    def record(self, change: Change) -> None:
        """Something happened that may concern whoever is in flight."""
        if self.marks:
            self._changes.append(("", change))

    def record_for(self, uid: str, change: Change) -> None:
        """Something happened to, or for, one pod in flight."""
        assert uid in self.marks, f"no pod with uid {uid} is being tried"
        self._changes.append((uid, change))

    def changes_since(self, uid: str) -> Sequence[Change]:
        """What came since the pod was popped, in order."""
        start = self.marks[uid] - self._dropped_count
        if start == len(self._changes):
            return ()
        return [change for only, change in self._changes[start:] if only in ("", uid)]

    def _drop(self) -> None:
        if not self.marks:
            self._changes.clear()
            return
        if len(self._changes) <= _DROPPABLE_ALLOWED:
            return
        droppable = next(iter(self.marks.values())) - self._dropped_count
        if droppable > _DROPPABLE_ALLOWED and 2 * droppable > len(self._changes):
            del self._changes[:droppable]
            self._dropped_count += droppable


# ---- scheduling queue -----------------------------------------------------------------------


_POD_ADDED = EVENT_UNSCHEDULED_POD_ADD.label
_FORCE_ACTIVATE = EVENT_FORCE_ACTIVATE.label
_TIMEOUT = Change(EVENT_UNSCHEDULABLE_TIMEOUT, None, None)


@final
class SchedulingQueue:
    """Pods of all profiles, in one queue."""

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        settings: QueueSettings,
        clock: Callable[[], float],
        recorder: QueueRecorder,
        *,
        nominator: Nominator | None = None,
    ) -> None:
        """``profiles``: by scheduler name. ``clock``: seconds, never going back."""
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
        self._sub_queues = SubQueues(
            settings, clock, recorder, admission, unschedulable=self._unschedulable
        )
        #: To be looked at: what waits where, and what is kept for pods in flight.
        self.sizes = self._sub_queues.sizes
        self.in_flight = InFlight()
        #: All that wait or are in flight, by uid.
        self._entries: dict[str, Entry] = {}
        #: When `run_timers` has something to do next, on the clock's scale; None: never.
        self.next_deadline_seconds = self._sub_queues.next_deadline_seconds
        self.timed = self._sub_queues.timed
        self.ready = self._sub_queues.ready
        self._sequence = count(1)
        self._queue_group = settings.queue_group
        #: Pods that wait together.
        self.groups = GroupEntries(
            self._entries, self._sub_queues, clock, self._sequence, requeue=self._requeue
        )

    # ---- pods come, change and go ---------------------------------------------------------

    def add(self, pod: PodInfo) -> None:
        """A pod that waits for a node. One that is known already counts as changed."""
        if pod.uid in self._entries:
            self.update(None, pod)
            return
        self.nominator.add_nominated_pod(pod)
        queued = QueuedPodInfo(pod, self._clock(), next(self._sequence))
        queue_group = self._queue_group(pod)
        if queue_group is not None:
            self.groups.join(queued, queue_group)
            return
        entry = Entry(queued)
        self._entries[entry.key] = entry
        self._sub_queues.move(entry, Cause.ADDED, _POD_ADDED)

    def update(
        self, old: PodInfo | None, new: PodInfo, events: Sequence[ClusterEvent] = ()
    ) -> None:
        """The pod changed; ``events`` say how, as events about itself.

        The first event that helps a parked pod wakes it. For a pod in flight they are kept, and
        whoever brings it back brings its newest version. A pod that is not known is added.
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
            if not is_possible(entry.state, Cause.WOKEN):
                return
            strategy = strategy_of(self._hints, (queued,), [change])
            if strategy is not Strategy.SKIP:
                self._requeue(entry, strategy, change.event.label)

    def delete(self, pod: PodInfo) -> None:
        """The pod is gone, or on a node. One in flight stays so until `done`."""
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
        self._sub_queues.move(entry, Cause.DELETED, "")

    def activate(self, pods: Iterable[PodInfo]) -> None:
        """Try these now, whatever they wait for but a gate.

        For one in flight this is kept for when it comes back; one that is not known is ignored.
        """
        for pod in pods:
            entry = self._entries.get(pod.uid)
            if entry is None:
                continue
            if is_possible(entry.state, Cause.ACTIVATED):
                self._sub_queues.move(entry, Cause.ACTIVATED, _FORCE_ACTIVATE)
            elif entry.state is State.IN_FLIGHT:
                self.in_flight.record_for(pod.uid, Change(EVENT_FORCE_ACTIVATE, None, pod))

    # ---- attempts -------------------------------------------------------------------------

    def pop(self) -> QueuedPodInfo | None:
        """The pod to be tried next, now in flight; None if nothing is ready."""
        entry = self._sub_queues.pop()
        return None if entry is None else self._in_flight(entry)

    def pop_pod(self, uid: str) -> QueuedPodInfo | None:
        """This pod, or its group, now in flight, whatever its place in the order.

        None: the pod does not wait here, or PreEnqueue rejects it.
        """
        entry = self._entries.get(uid)
        if entry is None or not is_waiting(entry.state) or not self._sub_queues.take_out(entry):
            return None
        return self._in_flight(entry)

    def _in_flight(self, entry: Entry) -> QueuedPodInfo:
        if entry.has_rejectors:
            self._count_rejectors(entry.pods, -1)
        for queued in entry.pods:
            queued.attempts += 1
            self.in_flight.start(queued.pod.uid)
        if entry.group is not None:
            entry.begin()
        return entry.queued

    def done(self, uid: str) -> None:
        """The pod is no longer being tried and does not come back. Harmless if repeated."""
        self.in_flight.finish(uid)
        entry = self._entries.get(uid)
        if entry is None or entry.state is not State.IN_FLIGHT:
            return
        if entry.group is not None:
            self.groups.leave(entry, uid)
        else:
            entry.state = next_state(entry.state, Cause.FINISHED)
            del self._entries[uid]

    def add_unschedulable(self, queued: QueuedPodInfo, *, at_once: bool = False) -> None:
        """An attempt failed: the pod, in its newest version, or the group comes back.

        Its unschedulable and pending plugins are those of this attempt; none at all means that an
        error ended it. A pod that waits here already (it was done, and added again) stays as it is.
        ``at_once``: without a delay.
        """
        entry = self._returning(queued)
        uids = [each.pod.uid for each in entry.pods]
        if is_waiting(entry.state):
            self.in_flight.finish(queued.pod.uid)
            return
        came_back = entry.group or queued
        entry.come_back(came_back, self._clock(), next(self._sequence))
        # Of a member that was lost, too: it is tried again at once but once.
        queued.unschedulable_count = came_back.unschedulable_count
        queued.consecutive_errors_count = came_back.consecutive_errors_count
        self._count_rejectors(entry.pods, 1)
        if entry.has_rejectors and uids[0] in self.in_flight:
            missed = self.in_flight.changes_since(uids[0])
            strategy = strategy_of(self._hints, entry.pods, missed) if missed else Strategy.SKIP
            self.in_flight.finish_all(uids)
            self._requeue(entry, strategy, SCHEDULE_ATTEMPT_FAILURE)
            return
        # What came after an attempt was reported as done (a binding failed) is not known, and
        # nothing may have come: it is a retry, which waits for its end. Upstream pops it early, and
        # a PreBind plugin that refuses is asked again as fast as the API answers.
        self.in_flight.finish_all(uids)
        is_due = at_once or not self._sub_queues.backoff.is_running(entry)
        cause = Cause.WOKEN if is_due else Cause.ERRED
        self._sub_queues.move(entry, cause, SCHEDULE_ATTEMPT_FAILURE)

    def _returning(self, queued: QueuedPodInfo) -> Entry:
        """The entry that what was tried comes back in."""
        if isinstance(queued, QueuedPodGroupInfo):
            return self.groups.returning(queued)
        uid, queue_group = queued.pod.uid, self._queue_group(queued.pod)
        entry = self._entries.get(uid)
        if entry is not None and entry.group is not None and entry.state is State.IN_FLIGHT:
            # The others were placed without it: from now on it stands alone.
            self.groups.leave(entry, uid)
            entry = self._entries[uid] = Entry(queued)
            entry.state = State.IN_FLIGHT
        if entry is None and queue_group is not None:
            return self.groups.rejoin(queued, queue_group)
        if entry is None:
            entry = self._entries[uid] = Entry(queued)
        return entry

    # ---- events ---------------------------------------------------------------------------

    def move_all(
        self, event: ClusterEvent, old: Any, new: Any, pre_check: PreCheck | None = None
    ) -> None:
        """Something happened in the cluster: wake whom it may help.

        ``pre_check`` says which parked pods are looked at; pods in flight are told all the same.
        """
        if not (self._unschedulable.by_flush.items or self.in_flight.marks):
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
            cause = Cause.REJECTED
        elif strategy is Strategy.IMMEDIATELY or not self._sub_queues.backoff.is_running(entry):
            cause = Cause.WOKEN
        else:
            # Of a group that waits, the members that somebody turned away may have gone.
            is_rejected = entry.has_rejectors or is_waiting(entry.state)
            cause = Cause.WOKEN_EARLY if is_rejected else Cause.ERRED
        self._sub_queues.move(entry, cause, event, anew=anew)

    # ---- time -----------------------------------------------------------------------------

    def run_timers(self) -> None:
        """Do what is due by the clock: delays that ended, stays among the parked that do."""
        now, due = self._clock(), self.next_deadline_seconds()
        if due is None or due > now:
            return
        while (entry := self._sub_queues.first_backoff_over(now)) is not None:
            self._sub_queues.move(entry, Cause.BACKOFF_OVER, BACKOFF_COMPLETE)
        if self._unschedulable.first_overdue(now) is None:
            return
        # One that a gate holds stays among the parked: its next flush counts from this one.
        while (entry := self._unschedulable.first_overdue(now)) is not None:
            entry.queued.was_flushed = True
            entry.queued.flushed_at_seconds = now
            self._requeue(entry, Strategy.AFTER_BACKOFF, _TIMEOUT.event.label, anew=True)
        self.in_flight.record(_TIMEOUT)

    # ---- looking in -----------------------------------------------------------------------

    @property
    def has_ready(self) -> bool:
        """Whether `pop` would give a pod now."""
        return self._sub_queues.has_ready

    @property
    def waiting_for_retry_only(self) -> bool:
        """Whether nothing is left to happen here but retries of errors and the flush.

        Pods in flight are their holder's to count.
        """
        return not (self._sub_queues.has_ready or self._sub_queues.has_rejected_backing_off)

    def counts(self) -> dict[str, int]:
        """Pods waiting, by the labels of scheduler_pending_pods."""
        return self._sub_queues.sizes.pods()

    def find(self, uid: str) -> QueuedPodInfo | None:
        """A pod that waits or is in flight."""
        entry = self._entries.get(uid)
        return None if entry is None else entry.of(uid)

    def state_of(self, uid: str) -> State:
        entry = self._entries.get(uid)
        return State.ABSENT if entry is None else entry.state

    def pending_pods(self) -> dict[str, list[PodInfo]]:
        """Pods waiting, by the same labels, in order of their keys."""
        pods_by_queue: dict[str, list[PodInfo]] = {queue: [] for queue in PENDING_QUEUES}
        for entry in self._sub_queues:
            pods_by_queue[counted_as(entry.state)] += [queued.pod for queued in entry.pods]
        return {queue: sorted(pods, key=_key) for queue, pods in pods_by_queue.items()}

    def _count_rejectors(self, pods: Iterable[QueuedPodInfo], delta: int) -> None:
        for queued in pods:
            for plugin in rejectors(queued):
                self._recorder.unschedulable_delta(plugin, queued.pod.scheduler_name, delta)


def _key(pod: PodInfo) -> str:
    return pod.key
