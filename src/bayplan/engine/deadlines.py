"""Deadlines: when the time of which key comes."""

from collections.abc import Hashable
from typing import Generic, TypeVar, final

from bayplan.clock import Clock

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
