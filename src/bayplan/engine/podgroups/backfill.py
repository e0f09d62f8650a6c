"""Which nodes are kept for a group, and when it is expected to start there.

Pods are taken out of a trial in the order in which they are known to end, those of which nothing is
known last (the longest running first), until the group fits: first twice as many each time, then
by halves. Room that is not the node table's (devices, volumes) counts as taken until it is free.
"""

from collections.abc import Callable
from math import inf
from typing import final

from bayplan.api.pod_groups import GroupKey
from bayplan.clock import Clock
from bayplan.engine.podgroups.trial import PodGroupTrial
from bayplan.engine.reservations import Reservation, end_seconds, is_daemon
from bayplan.state.cache import Trial
from bayplan.state.pods import PodInfo

#: Tries the group as things stand; None: it does not fit, and nothing is left of the try.
Place = Callable[[], PodGroupTrial | None]


def find_reservation(
    key: GroupKey, priority: int, place: Place, departures: "DepartureOrder"
) -> Reservation | None:
    """None: it would fit nowhere, whoever left."""
    low, high = 0, 1
    while (found := _tried(place, departures, high)) is None:
        if high >= len(departures.pods):
            return None
        low, high = high, min(2 * high, len(departures.pods))
    while low + 1 < high:
        middle = (low + high) // 2
        better = _tried(place, departures, middle)
        if better is None:
            low = middle
        else:
            high, found = middle, better
    nodes = frozenset(found)
    return Reservation(key, priority, nodes, departures.empty_enough_seconds(high, nodes))


def _tried(place: Place, departures: "DepartureOrder", count: int) -> set[str] | None:
    """The nodes that the members would take if so many pods had left."""
    departures.depart(count)
    found = place()
    if found is None:
        return None
    names = {placed.pod.node_name for placed in found.placed}
    found.undo()
    return names


@final
class DepartureOrder:
    """Pods on nodes, in the order in which they are expected to leave; some have, in a trial."""

    def __init__(self, trial: Trial, pods: list[PodInfo], key: GroupKey, clock: Clock) -> None:
        self._trial = trial
        self._clock = clock
        others = [pod for pod in pods if pod.group_key != key and not is_daemon(pod)]
        self._ends = {pod.uid: _or_inf(end_seconds(pod, clock)) for pod in others}
        self.pods = sorted(others, key=self._order)
        self._gone_count = 0

    def _order(self, pod: PodInfo) -> tuple[float, str, str]:
        return self._ends[pod.uid], pod.status.start_time or "", pod.key

    def depart(self, count: int) -> None:
        """The first so many are gone, the others are there."""
        while self._gone_count < count:
            self._trial.remove(self.pods[self._gone_count])
            self._gone_count += 1
        while self._gone_count > count:
            self._gone_count -= 1
            self._trial.undo_last()

    def empty_enough_seconds(self, count: int, nodes: frozenset[str]) -> float:
        """When the last of the first so many will have left these nodes."""
        ends = (self._ends[pod.uid] for pod in self.pods[:count] if pod.node_name in nodes)
        return max(ends, default=self._clock.now())


def _or_inf(seconds: float | None) -> float:
    return inf if seconds is None else seconds
