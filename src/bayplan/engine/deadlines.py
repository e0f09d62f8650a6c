"""Deadlines, and pods that plugins want tried at a later time."""

from collections.abc import Hashable, Iterable
from typing import TypeVar, final

from bayplan.clock import Clock
from bayplan.state.pods import PodInfo

K = TypeVar("K", bound=Hashable)


@final
class Deadlines(dict[K, float]):
    """One time for each key, in seconds on the scheduler's clock."""

    def take_due(self, now_seconds: float) -> list[K]:
        """Remove and return the keys whose time has come, in the order of their insertion."""
        due = [key for key, seconds in self.items() if seconds <= now_seconds]
        for key in due:
            del self[key]
        return due

    def next_seconds(self) -> float | None:
        """The earliest time; None: there is no deadline."""
        return min(self.values(), default=None)


@final
class Activations:
    """When plugins want which pods tried. A later request for a pod replaces the earlier time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: By uid.
        self.deadlines = Deadlines[str]()
        #: When each pod was first requested, by uid.
        self._requested_seconds: dict[str, float] = {}

    def add(self, pods: Iterable[PodInfo], at_seconds: float) -> None:
        for pod in pods:
            self.deadlines[pod.uid] = at_seconds
            self._requested_seconds.setdefault(pod.uid, self._clock.now())

    def take_due(self) -> list[str]:
        """Uids of the pods whose time has come; each is removed."""
        due = self.deadlines.take_due(self._clock.now())
        for uid in due:
            del self._requested_seconds[uid]
        return due

    def any_requested_by(self, seconds: float) -> bool:
        """Whether an activation still to come was requested at this time or before."""
        return any(requested <= seconds for requested in self._requested_seconds.values())
