"""The entries of the queue, and the table of their transitions.

An entry is a pod or a pod group: the queue pops an entry and tries it as a whole. `TRANSITIONS`
maps an entry's state and an event to the next state. The table is the specification: every move of
an entry is looked up in it, and a pair that is missing from it is a bug. Upstream spreads the same
table over the methods of PriorityQueue (backend/queue/scheduling_queue.go, v1.37).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple, final

from msgspec import Struct

from bayplan.api.pod_groups import GroupKey
from bayplan.framework.types import QueuedPodInfo
from bayplan.state.pods import PodInfo

# ---- groups ---------------------------------------------------------------------------------


_NO_GROUP = GroupKey("", "", "")


class QueueGroup(NamedTuple):
    """A group whose members wait together, as the queue needs it."""

    key: GroupKey
    #: When the group's object was created. This time orders the group among entries of one
    #: priority.
    created_seconds: float
    #: Whether enough members exist for an attempt.
    is_complete: bool


@final
@dataclass(slots=True)
class QueuedPodGroupInfo(QueuedPodInfo):
    """Members of one group, tried in one pass. ``pod`` is the first of them.

    ``timestamp_seconds`` is the time at which the group was created, and never changes. The counts
    are of the attempts at the group. Upstream: QueuedPodGroupInfo.
    """

    key: GroupKey = _NO_GROUP
    #: The members by uid, in the order in which they came.
    members: dict[str, QueuedPodInfo] = field(default_factory=dict[str, QueuedPodInfo])
    #: Whether enough members exist for an attempt.
    is_complete: bool = False
    #: Whether the last attempt evicted pods. A further member does not help before these pods are
    #: gone. If the evictions run when the attempt ends, upstream gates the group until a pod is
    #: deleted.
    awaits_victims: bool = False


# ---- entry ----------------------------------------------------------------------------------


@final
class Entry(Struct, eq=False):
    """A pod, or pods that are tried together; see `pod_entry` and `group_entry`.

    ``queued`` has the counts and time stamps of the entry. ``pods`` has the pods of the entry. Each
    pod has its own rejecting plugins and its own gate.
    """

    #: The uid of the object, which identifies the entry. A new pod with an old name has another
    #: entry.
    key: str
    queued: QueuedPodInfo
    pods: Collection[QueuedPodInfo]
    #: The order of arrival, which orders entries with equal sort keys.
    sequence: int
    #: The start of the delay.
    since_seconds: float
    state: "State"
    group: QueuedPodGroupInfo | None = None
    #: The number of members at the last pop of the group.
    popped_count: int = 0

    def come_back(self, queued: QueuedPodInfo, now_seconds: float, sequence: int) -> None:
        """Count a failed attempt, and put the entry behind the entries that came meanwhile."""
        self.queued = queued
        if self.group is None:
            self.pods = (queued,)
            queued.timestamp_seconds = now_seconds
            queued.sequence = sequence
        self.since_seconds, self.sequence = now_seconds, sequence
        if self.has_rejectors:
            queued.unschedulable_count += 1
            queued.consecutive_errors_count = 0
        else:
            queued.consecutive_errors_count += 1
        queued.was_flushed = False
        queued.flushed_at_seconds = None

    def of(self, uid: str) -> QueuedPodInfo:
        """The pod of the entry with this uid."""
        return self.queued if self.group is None else self.group.members[uid]

    def take(self, pod: PodInfo) -> None:
        """Store a newer version of a pod of the entry."""
        self.of(pod.uid).pod = pod
        if self.group is not None and self.group.pod.uid == pod.uid:
            self.group.pod = pod

    def begin(self) -> None:
        """Note that an attempt at the group begins."""
        assert self.group is not None
        self.popped_count = len(self.pods)
        self.group.attempts += 1
        self.group.awaits_victims = False
        for queued in self.pods:
            if queued.initial_attempt_seconds is None:
                queued.initial_attempt_seconds = self.group.initial_attempt_seconds

    @property
    def has_rejectors(self) -> bool:
        """Whether a plugin rejected a pod of the entry at the last attempt, or gates the entry."""
        if self.group is None:
            return bool(self.queued.unschedulable_plugins or self.queued.pending_plugins)
        return any(queued.unschedulable_plugins or queued.pending_plugins for queued in self.pods)

    @property
    def gating_plugin(self) -> str:
        """The plugin that gates the entry; "" for no plugin. One gated pod gates its group."""
        if self.group is None:
            return self.queued.gating_plugin
        return next((queued.gating_plugin for queued in self.pods if queued.gated), "")

    @property
    def is_short(self) -> bool:
        """Whether the entry is a group that lacks members."""
        return self.group is not None and not self.group.is_complete

    @property
    def name(self) -> str:
        """The name of the group, which orders groups with equal time stamps."""
        return "" if self.group is None else str(self.group.key)

    @property
    def waiting_since_seconds(self) -> float:
        """The start of the entry's stay among the unschedulable pods."""
        flushed_at = self.queued.flushed_at_seconds
        since = self.since_seconds
        return since if flushed_at is None else max(since, flushed_at)

    def __repr__(self) -> str:
        return f"Entry({self.name or self.queued.pod.key} {self.state.name})"


def pod_entry(queued: QueuedPodInfo, since_seconds: float | None = None) -> Entry:
    """The entry of a pod. ``since_seconds``: the start of the delay; None: when the pod came."""
    since = queued.timestamp_seconds if since_seconds is None else since_seconds
    return Entry(queued.pod.uid, queued, (queued,), queued.sequence, since, State.ABSENT)


def group_entry(lead: QueuedPodGroupInfo, since_seconds: float, sequence: int) -> Entry:
    """The entry of a group. ``since_seconds``: the time of arrival, which is not the time that
    orders groups."""
    key, members = f"group {lead.key!r}", lead.members.values()
    return Entry(key, lead, members, sequence, since_seconds, State.ABSENT, lead)


def rejectors(queued: QueuedPodInfo) -> tuple[str, ...]:
    """The plugins that rejected the pod with the code Unschedulable or Pending, sorted."""
    return _sorted(queued.unschedulable_plugins, queued.pending_plugins)


@lru_cache(maxsize=1024)
def _sorted(unschedulable: frozenset[str], pending: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(unschedulable | pending))


# ---- transitions ----------------------------------------------------------------------------


class State(IntEnum):
    """The state of an entry. An entry has exactly one state."""

    #: Not in the queue: not yet added, deleted, or on its way to a node.
    ABSENT = 0
    #: Ready to be tried.
    ACTIVE = 1
    #: Rejected. The next attempt starts after the delay.
    BACKOFF = 2
    #: The attempt ended with an error. The next attempt starts after the delay.
    ERROR_BACKOFF = 3
    #: Rejected, waiting for an event that may help.
    UNSCHEDULABLE = 4
    #: Rejected by a PreEnqueue plugin, or a group that lacks members.
    GATED = 5
    #: Between pop and `done` or `add_unschedulable`.
    IN_FLIGHT = 6


class Trigger(IntEnum):
    """What moves an entry from one state to the next: an event in its life."""

    #: The entry is new.
    ADDED = 0
    #: The entry is popped for an attempt.
    POPPED = 1
    #: The attempt ended, and the entry leaves the queue.
    FINISHED = 2
    #: The attempt ended with a rejection, and no event since the pop helps.
    REJECTED = 3
    #: The attempt ended with an error, or an event may help a group, and the delay has not ended.
    ERRED = 4
    #: An event may help, and the entry has no delay or its delay has ended.
    WOKEN = 5
    #: An event may help a pod, and the delay has not ended.
    WOKEN_EARLY = 6
    #: The delay has ended.
    BACKOFF_OVER = 7
    #: A plugin called `activate`.
    ACTIVATED = 8
    #: PreEnqueue rejects the entry on its way to activeQ.
    REFUSED = 9
    #: The pod is deleted, or bound to a node.
    DELETED = 10


_WAITING: Final = {
    Trigger.WOKEN: State.ACTIVE,
    Trigger.WOKEN_EARLY: State.BACKOFF,
    Trigger.ERRED: State.ERROR_BACKOFF,
    Trigger.ACTIVATED: State.ACTIVE,
    Trigger.REFUSED: State.GATED,
    Trigger.DELETED: State.ABSENT,
}
_BACKING_OFF: Final = {
    Trigger.BACKOFF_OVER: State.ACTIVE,
    Trigger.ACTIVATED: State.ACTIVE,
    Trigger.REFUSED: State.GATED,
    Trigger.DELETED: State.ABSENT,
}
#: A pod can return after `FINISHED`, because its binding may fail.
_COMING_BACK: Final = {
    Trigger.WOKEN: State.ACTIVE,
    Trigger.WOKEN_EARLY: State.BACKOFF,
    Trigger.ERRED: State.ERROR_BACKOFF,
    Trigger.REFUSED: State.GATED,
}

TRANSITIONS: Final[Mapping[State, Mapping[Trigger, State]]] = {
    State.ABSENT: {**_COMING_BACK, Trigger.ADDED: State.ACTIVE},
    State.ACTIVE: {
        Trigger.POPPED: State.IN_FLIGHT,
        # The group lost a member.
        Trigger.REFUSED: State.GATED,
        Trigger.DELETED: State.ABSENT,
    },
    # While activeQ is empty, entries of backoffQ are popped (SchedulerPopFromBackoffQ).
    State.BACKOFF: {**_BACKING_OFF, Trigger.POPPED: State.IN_FLIGHT},
    State.ERROR_BACKOFF: _BACKING_OFF,
    State.UNSCHEDULABLE: _WAITING,
    State.GATED: _WAITING,
    State.IN_FLIGHT: {
        **_COMING_BACK,
        Trigger.REJECTED: State.UNSCHEDULABLE,
        Trigger.FINISHED: State.ABSENT,
        # The end of the attempt reports the entry as finished.
        Trigger.DELETED: State.IN_FLIGHT,
    },
}

_COUNTED_AS: Final = {
    State.ACTIVE: "active",
    State.BACKOFF: "backoff",
    State.ERROR_BACKOFF: "backoff",
    State.UNSCHEDULABLE: "unschedulable",
    State.GATED: "gated",
}
#: Values of the label ``queue`` of scheduler_pending_pods.
PENDING_QUEUES: Final = tuple(dict.fromkeys(_COUNTED_AS.values()))


#: The queue in which an entry is pending, by the number of its state; "" for no queue.
QUEUES: Final = [_COUNTED_AS.get(state, "") for state in State]

#: The queue that an entry enters, by the number of its state. Gated pods enter the unschedulable
#: pods.
ENTERED_QUEUES: Final = [
    "unschedulable" if state is State.GATED else queue
    for state, queue in zip(State, QUEUES, strict=True)
]


def counted_as(state: State) -> str:
    """The queue in which an entry is pending; "" for no queue."""
    return QUEUES[state]


def is_waiting(state: State) -> bool:
    """Whether an entry in this state is in a queue."""
    return QUEUES[state] != ""


#: `TRANSITIONS` by number, because the hash of an enumeration's member is slow.
NEXT_STATES: Final = [[TRANSITIONS[state].get(trigger) for trigger in Trigger] for state in State]


#: The states of an entry after its pop and after its attempt.
POPPED: Final = TRANSITIONS[State.ACTIVE][Trigger.POPPED]
FINISHED: Final = TRANSITIONS[POPPED][Trigger.FINISHED]


def is_possible(state: State, trigger: Trigger) -> bool:
    return NEXT_STATES[state][trigger] is not None


def next_state(state: State, trigger: Trigger) -> State:
    next_one = NEXT_STATES[state][trigger]
    assert next_one is not None, f"nothing in state {state.name} can be {trigger.name}"
    return next_one
