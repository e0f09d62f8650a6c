"""Pods that plugins want tried at a later time, however they wait then."""

from collections.abc import Iterable
from typing import final

from bayplan.clock import Clock
from bayplan.engine.deadlines import Deadlines
from bayplan.state.pods import PodInfo


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

    def any_asked_by(self, seconds: float) -> bool:
        """Whether one that is still to come was asked for at this time or before."""
        return any(asked <= seconds for asked in self._asked_seconds.values())
