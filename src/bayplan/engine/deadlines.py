"""Deadlines: when the time of which key comes.

Pods that plugins want tried at a later time, however they wait then.
"""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar, final

from bayplan.clock import Clock
from bayplan.state.pods import PodInfo

# ---- deadlines ------------------------------------------------------------------------------


K = TypeVar("K", bound=Hashable)


@final
class Deadlines(Generic[K]):
    """One time for each key, on the scheduler's clock; it is taken once it has come."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_seconds: dict[K, float] = {}

    def set(self, key: K, at_seconds: float) -> None:
        """In place of the one it had."""
        self._due_seconds[key] = at_seconds

    def forget(self, key: K) -> None:
        self._due_seconds.pop(key, None)

    def __contains__(self, key: K) -> bool:
        return key in self._due_seconds

    def take_due(self) -> list[K]:
        """Keys whose time has come, in the order in which they got one; each is forgotten."""
        now = self._clock.now()
        due = [key for key, seconds in self._due_seconds.items() if seconds <= now]
        for key in due:
            del self._due_seconds[key]
        return due

    def next_seconds(self) -> float | None:
        """The earliest time."""
        return min(self._due_seconds.values(), default=None)


# ---- activations ----------------------------------------------------------------------------


@final
class Activations:
    """Who is to be tried when, by uid; asked for anew, the new time counts."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.deadlines = Deadlines[str](clock)
        #: When each was asked for first.
        self._asked_seconds: dict[str, float] = {}

    def ask(self, pods: Iterable[PodInfo], at_seconds: float) -> None:
        for pod in pods:
            self.deadlines.set(pod.uid, at_seconds)
            self._asked_seconds.setdefault(pod.uid, self._clock.now())

    def take_due(self) -> list[str]:
        due = self.deadlines.take_due()
        for uid in due:
            del self._asked_seconds[uid]
        return due

    def any_requested_by(self, seconds: float) -> bool:
        """Whether one that is still to come was asked for at this time or before."""
        return any(asked <= seconds for asked in self._asked_seconds.values())
