"""A state machine of Hypothesis around one engine, whose attempts follow drawn events."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

from hypothesis.stateful import RuleBasedStateMachine

from tests.engine.kit import Engine


class EngineMachine(RuleBasedStateMachine):
    """``tally`` is the run's: a subclass per run holds it."""

    tally: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.engine: Engine | None = None
        self._names = 0

    @abstractmethod
    def _try(self) -> bool:
        """One attempt. Returns whether there was one."""

    @property
    def _it(self) -> Engine:
        assert self.engine is not None
        return self.engine

    def _did(self, what: str, attempts: int = 0) -> None:
        """Run some attempts after an event."""
        self.tally[what] += 1
        for _ in range(attempts):
            if not self._try():
                break

    def _name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names:03d}"


def nth(names: Iterable[str], place: int) -> str:
    """The name at a drawn place in the order of the names."""
    ordered = sorted(names)
    return ordered[place % len(ordered)]
