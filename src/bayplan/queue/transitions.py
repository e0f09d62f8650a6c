"""A pod's life in the queue as one table: where it is × what happens → where it is next.

The table is the specification. Whatever moves an entry looks its way up here, and a way that is
not here is a bug. Upstream has the same life spread over the methods of PriorityQueue
(backend/queue/scheduling_queue.go, v1.37).
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class State(IntEnum):
    """Where an entry is; always in exactly one of these."""

    #: Not known to the queue: not yet added, deleted, or on its way to a node.
    ABSENT = 0
    #: Ready to be tried.
    ACTIVE = 1
    #: Rejected, worth another attempt, waiting out its delay.
    BACKOFF = 2
    #: Came back without a plugin to blame, waiting out its delay.
    ERROR_BACKOFF = 3
    #: Rejected, waiting for an event that may help.
    UNSCHEDULABLE = 4
    #: Held back by a PreEnqueue plugin, or a group that lacks members.
    GATED = 5
    #: Being tried; in the hands of whoever popped it.
    IN_FLIGHT = 6


class Cause(IntEnum):
    """What happens to an entry."""

    #: It is new.
    ADDED = 0
    #: It is taken to be tried.
    POPPED = 1
    #: Its attempt is over and it does not come back.
    FINISHED = 2
    #: It came back, and nothing that happened meanwhile helps it.
    REJECTED = 3
    #: It came back without a plugin to blame; its delay runs.
    ERRED = 4
    #: It is worth another attempt, and no delay runs or none applies.
    WOKEN = 5
    #: It is worth another attempt once its delay is over.
    WOKEN_EARLY = 6
    #: Its delay is over.
    BACKOFF_OVER = 7
    #: Somebody wants it tried now.
    ACTIVATED = 8
    #: PreEnqueue says no, in place of a move towards activeQ.
    REFUSED = 9
    #: The pod is gone, or on a node.
    DELETED = 10


_WAITING: Final = {
    Cause.WOKEN: State.ACTIVE,
    Cause.WOKEN_EARLY: State.BACKOFF,
    Cause.ACTIVATED: State.ACTIVE,
    Cause.REFUSED: State.GATED,
    Cause.DELETED: State.ABSENT,
}
_BACKING_OFF: Final = {
    Cause.BACKOFF_OVER: State.ACTIVE,
    Cause.ACTIVATED: State.ACTIVE,
    Cause.REFUSED: State.GATED,
    Cause.DELETED: State.ABSENT,
}
#: A pod may come back after it was reported as finished: its binding failed.
_COMING_BACK: Final = {
    Cause.WOKEN: State.ACTIVE,
    Cause.WOKEN_EARLY: State.BACKOFF,
    Cause.ERRED: State.ERROR_BACKOFF,
    Cause.REFUSED: State.GATED,
}

TRANSITIONS: Final[Mapping[State, Mapping[Cause, State]]] = {
    State.ABSENT: {**_COMING_BACK, Cause.ADDED: State.ACTIVE},
    State.ACTIVE: {
        Cause.POPPED: State.IN_FLIGHT,
        # A group that lost a member.
        Cause.REFUSED: State.GATED,
        Cause.DELETED: State.ABSENT,
    },
    # Only the plain backoffQ is popped from, when activeQ is empty (SchedulerPopFromBackoffQ).
    State.BACKOFF: {**_BACKING_OFF, Cause.POPPED: State.IN_FLIGHT},
    State.ERROR_BACKOFF: _BACKING_OFF,
    State.UNSCHEDULABLE: _WAITING,
    State.GATED: _WAITING,
    State.IN_FLIGHT: {
        **_COMING_BACK,
        Cause.REJECTED: State.UNSCHEDULABLE,
        Cause.FINISHED: State.ABSENT,
        # Whoever tries it finds out, and reports it as finished.
        Cause.DELETED: State.IN_FLIGHT,
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


_QUEUES: Final = [_COUNTED_AS.get(state, "") for state in State]


def counted_as(state: State) -> str:
    """The queue an entry is pending in; "" for one that is in none."""
    return _QUEUES[state]


def entered_as(state: State) -> str:
    """The queue an entry enters: gated pods are among the unschedulable ones."""
    return "unschedulable" if state is State.GATED else counted_as(state)


def is_waiting(state: State) -> bool:
    """Whether an entry in this state stands in some queue."""
    return _QUEUES[state] != ""


#: The same, by number: hashing a member of an enumeration costs more than all the rest.
_NEXT: Final = [[TRANSITIONS[state].get(cause) for cause in Cause] for state in State]


def is_possible(state: State, cause: Cause) -> bool:
    return _NEXT[state][cause] is not None


def next_state(state: State, cause: Cause) -> State:
    found = _NEXT[state][cause]
    assert found is not None, f"nothing in state {state.name} can be {cause.name}"
    return found
