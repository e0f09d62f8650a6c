"""Groups in the queue: members that wait together stand in one entry.

A pod joins the entry of its group as long as the group needs it to reach its minimum, and stands
alone otherwise; who is which is decided outside (`Gathering`) and told whenever it changes. A group
that lacks members is held back without being tried.
"""

from collections.abc import Callable, Container, Iterable
from itertools import count
from math import inf
from typing import final

from bayplan.api.pod_groups import GroupKey
from bayplan.framework.events import EVENT_UNSCHEDULED_POD_ADD
from bayplan.framework.queued_group import QueuedPodGroupInfo, QueueGroup
from bayplan.framework.types import QueuedPodInfo
from bayplan.queue.entry import Cause, Entry, State, is_waiting
from bayplan.queue.hints import Strategy
from bayplan.queue.sub_queues import SubQueues
from bayplan.state.pods import PodInfo

_POD_ADDED = EVENT_UNSCHEDULED_POD_ADD.label
GROUP_CHANGED = "PodGroupChanged"


@final
class GroupEntries:
    """The groups among the queue's entries."""

    def __init__(
        self,
        entries: dict[str, Entry],
        places: SubQueues,
        clock: Callable[[], float],
        sequence: "count[int]",
        *,
        requeue: Callable[[Entry, Strategy, str], None],
    ) -> None:
        """``entries``: the queue's, by the uid of each of their pods."""
        self._entries = entries
        self._sub_queues = places
        self._clock = clock
        self._sequence = sequence
        self._requeue = requeue
        self._open: dict[GroupKey, Entry] = {}

    def get(self, key: GroupKey) -> Entry | None:
        return self._open.get(key)

    def without_object(self) -> tuple[int, int]:
        """(groups, members) that wait for their group's object.

        Upstream: incompletePodGroupPods.
        """
        sizes = [
            len(entry.pods)
            for entry in self._open.values()
            if entry.state is State.GATED and entry.queued.timestamp_seconds == inf
        ]
        return len(sizes), sum(sizes)

    def came_in_flight(self) -> int:
        """Members that came while their group is being tried. Upstream: pendingPodGroupPods."""
        return sum(
            max(0, len(entry.pods) - entry.popped_count)
            for entry in self._open.values()
            if entry.state is State.IN_FLIGHT
        )

    # ---- members come and go --------------------------------------------------------------

    def join(self, queued: QueuedPodInfo, queue_group: QueueGroup) -> None:
        """A pod that stands nowhere becomes a member of its group's entry."""
        uid, entry = queued.pod.uid, self._open.get(queue_group.key)
        if entry is None:
            lead = QueuedPodGroupInfo(queued.pod, queue_group.created_seconds, key=queue_group.key)
            lead.members[uid] = queued
            lead.is_complete = queue_group.is_complete
            self.open(lead)
            self._sub_queues.move(self._entries[uid], Cause.ADDED, _POD_ADDED)
            return
        assert entry.group is not None
        entry.group.members[uid] = queued
        self._entries[uid] = entry
        self._sub_queues.resize(entry, 1)
        self.settle(entry, queue_group)
        if entry.state is State.UNSCHEDULABLE:
            self._requeue(entry, Strategy.AFTER_BACKOFF, _POD_ADDED)

    def rejoin(self, queued: QueuedPodInfo, queue_group: QueueGroup) -> Entry:
        """A member that was lost on its way to a node. Where no others wait, its entry stands
        nowhere yet: the delay that it has earned is the group's."""
        entry = self._open.get(queue_group.key)
        if entry is not None:
            self.join(queued, queue_group)
            queued.consecutive_errors_count += 1
            return entry
        lead = QueuedPodGroupInfo(queued.pod, queue_group.created_seconds, key=queue_group.key)
        lead.members[queued.pod.uid] = queued
        lead.is_complete = queue_group.is_complete
        lead.unschedulable_count = queued.unschedulable_count
        lead.consecutive_errors_count = queued.consecutive_errors_count
        return self.open(lead)

    def open(self, lead: QueuedPodGroupInfo) -> Entry:
        """An entry of its own for a group that has none."""
        assert lead.key not in self._open, f"group {lead.key} stands in the queue twice"
        entry = self._open[lead.key] = Entry(lead, self._clock())
        entry.sequence = next(self._sequence)
        for uid in lead.members:
            self._entries[uid] = entry
        return entry

    def returning(self, lead: QueuedPodGroupInfo) -> Entry:
        """The entry in which a group comes back; members that came meanwhile may have made one."""
        entry = self._open.get(lead.key)
        if entry is None:
            return self.open(lead)
        if entry.group is not lead:
            queue_group = QueueGroup(lead.key, lead.timestamp_seconds, is_complete=True)
            for queued in lead.members.values():
                self.join(queued, queue_group)
        return entry

    def leave(self, entry: Entry, uid: str) -> QueuedPodInfo:
        """A member stands nowhere any more. The entry ends with its last."""
        group = entry.group
        assert group is not None
        queued = group.members.pop(uid)
        del self._entries[uid]
        if group.members:
            group.pod = next(iter(group.members.values())).pod
            self._sub_queues.resize(entry, -1)
            return queued
        self._sub_queues.resize(entry, -1)
        del self._open[group.key]
        if entry.state is State.IN_FLIGHT:
            entry.state = State.ABSENT
        else:
            self._sub_queues.move(entry, Cause.DELETED, "")
        return queued

    # ---- the group changes ----------------------------------------------------------------

    def wake(self, key: GroupKey) -> None:
        """A group's object changed: that may help."""
        entry = self._open.get(key)
        if entry is not None and entry.state is State.UNSCHEDULABLE:
            self._requeue(entry, Strategy.AFTER_BACKOFF, GROUP_CHANGED)

    def is_in_step(self, key: GroupKey, queue_group: QueueGroup | None, count: int) -> bool:
        """Whether `regroup` would change nothing, when one member changed at a time. ``count``:
        how many wait for a node."""
        entry = self._open.get(key)
        if entry is None or entry.group is None or queue_group is None:
            return entry is None and queue_group is None
        current = (queue_group.created_seconds, queue_group.is_complete)
        stands = (entry.group.timestamp_seconds, entry.group.is_complete)
        return current == stands and len(entry.group.members) == count

    def regroup(
        self, key: GroupKey, queue_group: QueueGroup | None, pods: Iterable[PodInfo] = ()
    ) -> None:
        """What the group needs has changed. ``pods``: its members that wait for a node; None for
        ``gathering``: each of them alone."""
        entry = self._open.get(key)
        if entry is not None and entry.state is State.IN_FLIGHT:
            return
        # In order: as they join, so they are tried.
        together = dict.fromkeys(pod.uid for pod in pods) if queue_group is not None else {}
        if entry is not None:
            self._part(entry, together)
        if queue_group is not None:
            for uid in together:
                self._absorb(uid, queue_group)
            entry = self._open.get(key)
            if entry is not None:
                self.settle(entry, queue_group)

    def _part(self, entry: Entry, together: Container[str]) -> None:
        """Members that do not wait together any more stand alone."""
        assert entry.group is not None
        for uid in [uid for uid in entry.group.members if uid not in together]:
            queued = self.leave(entry, uid)
            self._entries[uid] = alone = Entry(queued, self._clock())
            self._sub_queues.move(alone, Cause.ADDED, GROUP_CHANGED)

    def _absorb(self, uid: str, queue_group: QueueGroup) -> None:
        """A pod that stood alone joins."""
        alone = self._entries.get(uid)
        if alone is None or alone.group is not None or not is_waiting(alone.state):
            return
        self._sub_queues.move(alone, Cause.DELETED, "")
        del self._entries[uid]
        self.join(alone.queued, queue_group)

    def settle(self, entry: Entry, queue_group: QueueGroup) -> None:
        """Hold the entry back, or let it go, by whether its members suffice."""
        group = entry.group
        assert group is not None
        was_complete, group.is_complete = group.is_complete, queue_group.is_complete
        if queue_group.created_seconds != group.timestamp_seconds:
            group.timestamp_seconds = queue_group.created_seconds
            self._sub_queues.resize(entry, 0)
        if not is_waiting(entry.state) or was_complete is group.is_complete:
            return
        if group.is_complete:
            self._requeue(entry, Strategy.AFTER_BACKOFF, GROUP_CHANGED)
        elif entry.state is not State.GATED:
            self._sub_queues.move(entry, Cause.REFUSED, GROUP_CHANGED)
