"""Groups in the queue: the members that wait together share one entry.

A pod joins the entry of its group while the group needs the pod to reach its minimum. Otherwise the
pod has an entry of its own. The pod group controller decides this, and calls `regroup` at each
change. A group that lacks members is gated.
"""

from collections.abc import Callable, Container, Iterable
from itertools import count
from math import inf
from typing import final

from bayplan.api.pod_groups import GroupKey
from bayplan.framework.events import EVENT_UNSCHEDULED_POD_ADD
from bayplan.framework.types import QueuedPodInfo
from bayplan.queue.entry import (
    Entry,
    QueuedPodGroupInfo,
    QueueGroup,
    State,
    Trigger,
    group_entry,
    is_waiting,
    pod_entry,
)
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
        sub_queues: SubQueues,
        clock: Callable[[], float],
        sequence: "count[int]",
        *,
        requeue: Callable[[Entry, Strategy, str], None],
    ) -> None:
        """``entries``: the entries of the queue, by the uids of their pods."""
        self._entries = entries
        self._sub_queues = sub_queues
        self._clock = clock
        self._sequence = sequence
        self._requeue = requeue
        self._open: dict[GroupKey, Entry] = {}

    def get(self, key: GroupKey) -> Entry | None:
        return self._open.get(key)

    def without_object(self) -> tuple[int, int]:
        """The number of groups, and of their members, that wait for the PodGroup object.

        Upstream: incompletePodGroupPods.
        """
        sizes = [
            len(entry.pods)
            for entry in self._open.values()
            if entry.state is State.GATED and entry.queued.timestamp_seconds == inf
        ]
        return len(sizes), sum(sizes)

    def came_in_flight(self) -> int:
        """Members that came during an attempt at their group. Upstream: pendingPodGroupPods."""
        return sum(
            max(0, len(entry.pods) - entry.popped_count)
            for entry in self._open.values()
            if entry.state is State.IN_FLIGHT
        )

    # ---- members come and go --------------------------------------------------------------

    def join(self, queued: QueuedPodInfo, queue_group: QueueGroup) -> None:
        """Add a pod that has no entry to the entry of its group."""
        uid, entry = queued.pod.uid, self._open.get(queue_group.key)
        if entry is None:
            lead = QueuedPodGroupInfo(queued.pod, queue_group.created_seconds, key=queue_group.key)
            lead.members[uid] = queued
            lead.is_complete = queue_group.is_complete
            self.open(lead)
            self._sub_queues.move(self._entries[uid], Trigger.ADDED, _POD_ADDED)
            return
        assert entry.group is not None
        entry.group.members[uid] = queued
        self._entries[uid] = entry
        self._sub_queues.resize(entry, 1)
        self.settle(entry, queue_group)
        if entry.state is State.UNSCHEDULABLE and not entry.group.awaits_victims:
            self._requeue(entry, Strategy.AFTER_BACKOFF, _POD_ADDED)

    def rejoin(self, queued: QueuedPodInfo, queue_group: QueueGroup) -> Entry:
        """Add a member whose binding failed.

        If no other member waits, the new entry of the group has the delay of this member.
        """
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
        """Make the entry of a group that has none."""
        assert lead.key not in self._open, f"group {lead.key} has two entries in the queue"
        entry = group_entry(lead, self._clock(), next(self._sequence))
        self._open[lead.key] = entry
        for uid in lead.members:
            self._entries[uid] = entry
        return entry

    def returning(self, lead: QueuedPodGroupInfo) -> Entry:
        """The entry of a group after its attempt. Members that came meanwhile may have made it."""
        entry = self._open.get(lead.key)
        if entry is None:
            return self.open(lead)
        if entry.group is not lead:
            queue_group = QueueGroup(lead.key, lead.timestamp_seconds, is_complete=True)
            for queued in lead.members.values():
                self.join(queued, queue_group)
        return entry

    def leave(self, entry: Entry, uid: str) -> QueuedPodInfo:
        """Remove a member. The entry ends with its last member."""
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
            self._sub_queues.move(entry, Trigger.DELETED, "")
        return queued

    # ---- the group changes ----------------------------------------------------------------

    def wake(self, key: GroupKey) -> None:
        """Wake a group whose object changed, because the change may help it."""
        entry = self._open.get(key)
        if entry is not None and entry.state is State.UNSCHEDULABLE:
            self._requeue(entry, Strategy.AFTER_BACKOFF, GROUP_CHANGED)

    def is_in_step(self, key: GroupKey, queue_group: QueueGroup | None, count: int) -> bool:
        """Whether `regroup` would change nothing after the change of one member.

        ``count``: the number of members that wait for a node.
        """
        entry = self._open.get(key)
        if entry is None or entry.group is None or queue_group is None:
            return entry is None and queue_group is None
        current = (queue_group.created_seconds, queue_group.is_complete)
        previous = (entry.group.timestamp_seconds, entry.group.is_complete)
        return current == previous and len(entry.group.members) == count

    def regroup(
        self, key: GroupKey, queue_group: QueueGroup | None, pods: Iterable[PodInfo] = ()
    ) -> None:
        """Change the members of the group's entry, because the group needs other members than
        before.

        ``pods``: its members that wait for a node. ``queue_group``: None: each member waits alone.
        """
        entry = self._open.get(key)
        if entry is not None and entry.state is State.IN_FLIGHT:
            return
        # Members are tried in the order in which they join.
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
        """Give each member that no longer waits with the group an entry of its own."""
        assert entry.group is not None
        for uid in [uid for uid in entry.group.members if uid not in together]:
            queued = self.leave(entry, uid)
            self._entries[uid] = alone = pod_entry(queued, self._clock())
            self._sub_queues.move(alone, Trigger.ADDED, GROUP_CHANGED)

    def _absorb(self, uid: str, queue_group: QueueGroup) -> None:
        """Move a pod from its own entry to the entry of its group."""
        alone = self._entries.get(uid)
        if alone is None or alone.group is not None or not is_waiting(alone.state):
            return
        self._sub_queues.move(alone, Trigger.DELETED, "")
        del self._entries[uid]
        self.join(alone.queued, queue_group)

    def settle(self, entry: Entry, queue_group: QueueGroup) -> None:
        """Gate the entry of a group that lacks members; wake the entry of a complete group."""
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
            self._sub_queues.move(entry, Trigger.REFUSED, GROUP_CHANGED)
