"""Which nodes to reserve for a group, and when the group is expected to start there.

A trial removes pods in the order of their expected ends until the group fits. Pods without a known
duration come last, the longest running first. The number of removed pods doubles until the group
fits; then a binary search finds the smallest number. Devices and volumes count as used until they
are free.
"""

from collections.abc import Callable, Set
from math import inf
from typing import final

from bayplan.api.pod_groups import GroupKey
from bayplan.clock import Clock
from bayplan.engine.exclusive_domains import is_daemon
from bayplan.engine.podgroups.trial import PodGroupTrial
from bayplan.engine.reservations import Reservation, end_seconds
from bayplan.state.cache import Trial
from bayplan.state.pods import PodInfo

#: A function that places the group in the trial. None: the group does not fit, and nothing is
#: placed.
Place = Callable[[], PodGroupTrial | None]
#: A function: the nodes of the domains that the group has alone if its members are on these nodes.
Widen = Callable[[Set[str]], Set[str]]


def find_reservation(
    key: GroupKey, priority: int, place: Place, departures: "DepartureOrder", *, widen: Widen
) -> Reservation | None:
    """The nodes to reserve. None: the group fits nowhere, even without all these pods.

    ``widen``: the nodes of the members → further nodes to reserve."""
    low, high = 0, min(1, len(departures.pods))
    while (node_names := _tried(place, departures, high)) is None:
        if high >= len(departures.pods):
            return None
        low, high = high, min(2 * high, len(departures.pods))
    while low + 1 < high:
        middle = (low + high) // 2
        better = _tried(place, departures, middle)
        if better is None:
            low = middle
        else:
            high, node_names = middle, better
    nodes = frozenset(node_names) | widen(node_names)
    return Reservation(key, priority, nodes, departures.empty_enough_seconds(high, nodes))


def _tried(place: Place, departures: "DepartureOrder", count: int) -> set[str] | None:
    """The nodes that the members would get without the first ``count`` pods. None: the group does
    not fit."""
    departures.depart(count)
    group_trial = place()
    if group_trial is None:
        return None
    names = {placed.pod.node_name for placed in group_trial.placed}
    group_trial.undo()
    return names


@final
class DepartureOrder:
    """Pods on nodes in the order of their expected ends. Some of them are removed in a trial."""

    def __init__(self, trial: Trial, pods: list[PodInfo], key: GroupKey, clock: Clock) -> None:
        self._trial = trial
        self._clock = clock
        leaving = [pod for pod in pods if pod.group_key != key and not is_daemon(pod)]
        self._ends = {pod.uid: _or_inf(end_seconds(pod, clock)) for pod in leaving}
        self.pods = sorted(leaving, key=self._order)
        self._gone_count = 0

    def _order(self, pod: PodInfo) -> tuple[float, str, str]:
        return self._ends[pod.uid], pod.status.start_time or "", pod.key

    def depart(self, count: int) -> None:
        """Remove the first ``count`` pods in the trial, and put the other pods back."""
        while self._gone_count < count:
            self._trial.remove(self.pods[self._gone_count])
            self._gone_count += 1
        while self._gone_count > count:
            self._gone_count -= 1
            self._trial.undo_last()

    def empty_enough_seconds(self, count: int, nodes: frozenset[str]) -> float:
        """The time at which the last of the first ``count`` pods leaves these nodes."""
        ends = (self._ends[pod.uid] for pod in self.pods[:count] if pod.node_name in nodes)
        return max(ends, default=self._clock.now())


def _or_inf(seconds: float | None) -> float:
    return inf if seconds is None else seconds
