"""Reservations: nodes are reserved for a group that has waited long, so that it does not starve.

One group at a time has a reservation: the first that failed after its wait. It gets the nodes on
which it would fit if pods left in the order of their expected ends (`podgroups/backfill.py`). From
then on these nodes take only pods that end before the group is expected to start, pods of a higher
priority, and pods of DaemonSets. This is EASY backfilling (Lifka, The ANL/IBM SP scheduling system,
1995) with nodes in place of processors.

The duration of a pod comes from an annotation. The annotation is a promise of the pod's author;
nothing enforces it. A simulation ends the pod accordingly.
"""

from typing import Final, final

from msgspec import Struct

from bayplan.api.pod_groups import GroupKey
from bayplan.clock import Clock, epoch_of
from bayplan.durations import DURATION_ANNOTATION, DurationError, parse_duration
from bayplan.engine.cycle import Cycle, Restriction
from bayplan.engine.exclusive_domains import EXCLUSIVE_NAME, ExclusiveDomains, is_daemon
from bayplan.engine.waiting import Deadlines
from bayplan.framework.events import ActionType, ClusterEvent, ClusterEventWithHint
from bayplan.state.cache import Snapshot
from bayplan.state.pods import PodInfo

# ---- durations of pods ----------------------------------------------------------------------


def run_seconds(pod: PodInfo) -> float | None:
    """The duration of the pod on its node, in seconds. None: no annotation, or an invalid one."""
    try:
        return parse_duration(pod.annotations.get(DURATION_ANNOTATION, ""))
    except DurationError:
        return None


def end_seconds(pod: PodInfo, clock: Clock) -> float | None:
    """The expected end of a pod on a node, in seconds of the scheduler's clock. None: unknown."""
    seconds = run_seconds(pod)
    if seconds is None:
        return None
    now = clock.now()
    started = epoch_of(pod.status.start_time or "")
    since = now if started is None else started - (clock.epoch_seconds() - now)
    # A pod that runs longer than its annotation may end at any moment.
    return max(now, since + seconds)


# ---- reservations ---------------------------------------------------------------------------


#: The rejecting plugin of pods that fit on no unreserved node.
RESERVATION_NAME: Final = "PodGroupReservation"
RESERVED: Final = "node(s) kept for a group of pods that has waited long"
RESERVATION_OVER: Final = ClusterEvent(RESERVATION_NAME, ActionType.DELETE)
RESERVATION_EVENTS: Final = (ClusterEventWithHint(RESERVATION_OVER),)


@final
class Reservation(Struct, frozen=True):
    """Nodes that are reserved for a group."""

    key: GroupKey
    priority: int
    nodes: frozenset[str]
    #: The expected start of the group, in seconds of the scheduler's clock. inf: unknown.
    start_seconds: float

    def bars(self, pod: PodInfo, now_seconds: float) -> bool:
        """Whether the pod must not use the reserved nodes."""
        if pod.group_key == self.key or pod.priority > self.priority or is_daemon(pod):
            return False
        seconds = run_seconds(pod)
        return seconds is None or now_seconds + seconds > self.start_seconds


@final
class Reservations:
    """The present reservation, and the groups that wait for one."""

    def __init__(self, clock: Clock, after_seconds: float, exclusive: ExclusiveDomains) -> None:
        """``after_seconds``: the wait since a group's first attempt. 0: no reservations."""
        self.exclusive = exclusive
        self._clock = clock
        self._after_seconds = after_seconds
        self.current: Reservation | None = None
        #: Groups that failed before the end of their wait → the end, when they are tried again.
        self.deadlines = Deadlines[GroupKey]()

    @property
    def is_active(self) -> bool:
        """Whether some pods must not use some nodes."""
        return self.current is not None or bool(self.exclusive.groups)

    def reserved_nodes(self, pod: PodInfo) -> frozenset[str]:
        """The names of the nodes that the pod must not use."""
        current = self.current
        if current is None or not current.bars(pod, self._clock.now()):
            return frozenset()
        return current.nodes

    def may_reserve(
        self, key: GroupKey, first_attempt_seconds: float | None, snapshot: Snapshot
    ) -> bool:
        """Whether a group whose attempt failed gets a reservation now.

        Before the end of the group's wait, its end becomes a deadline. A group that has a
        reservation gets a new one at its expected start, or when a reserved node is deleted.
        """
        if not self._after_seconds or first_attempt_seconds is None:
            return False
        now, due = self._clock.now(), first_attempt_seconds + self._after_seconds
        if now < due:
            self.deadlines[key] = due
            return False
        self.deadlines.pop(key, None)
        current = self.current
        if current is None or current.key != key:
            return current is None
        return now >= current.start_seconds or not current.nodes <= frozenset(
            snapshot.nodes.names()
        )

    def concerns(self, key: GroupKey) -> bool:
        """Whether a group has a reservation, or waits for one."""
        return key in self.deadlines or (self.current is not None and self.current.key == key)

    def end(self, key: GroupKey) -> bool:
        """End the reservation of a group that is placed or deleted. Returns whether the group had
        one."""
        self.deadlines.pop(key, None)
        if self.current is None or self.current.key != key:
            return False
        self.current = None
        return True


def allowed_nodes(
    snapshot: Snapshot, within: frozenset[str] | None, barred: frozenset[str]
) -> frozenset[str] | None:
    """The nodes of ``within`` that are not in ``barred``. None: all nodes."""
    if not barred:
        return within
    return (frozenset(snapshot.nodes.names()) if within is None else within) - barred


# ---- restriction of a cycle -----------------------------------------------------------------


def restrict_to_unreserved(cycle: Cycle, reservations: Reservations) -> None:
    """Restrict a cycle to the nodes that its pod may use."""
    barred = reservations.reserved_nodes(cycle.pod)
    if barred:
        cycle.within = allowed_nodes(cycle.snapshot, cycle.within, barred)
        cycle.restriction = Restriction(RESERVATION_NAME, RESERVED)
    if reservations.exclusive.groups:
        barred, why = reservations.exclusive.barred_nodes(cycle.snapshot, cycle.pod)
        if barred:
            cycle.within = allowed_nodes(cycle.snapshot, cycle.within, barred)
            cycle.restriction = Restriction(EXCLUSIVE_NAME, why)
