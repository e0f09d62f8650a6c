"""One thing at a time: what is asked for in the middle of something comes after it.

A plugin may do anything at any moment: activate pods from a hint, reject a waiting pod while a
cycle reads the cluster, hand in an event from Reserve. Nothing of that may change what is being
looked at, so it waits for the end of the present turn; outside of one it happens at once. Before
`begin` everything waits.
"""

from collections import deque
from collections.abc import Callable
from typing import final

Work = Callable[[], None]


@final
class Turns:
    """Runs work in the order it was asked for, never one inside another."""

    def __init__(self, failed: Callable[[str, Exception], None]) -> None:
        """``failed``: told what was being done, and how it failed; the rest goes on unless it
        raises."""
        self._failed = failed
        self._is_taken = True
        self._later: deque[tuple[str, Work]] = deque()
        self._observers: list[Work] = []

    def observe(self, look: Work) -> None:
        """Have ``look`` called after each turn, when nothing is half done."""
        self._observers.append(look)

    def begin(self) -> None:
        """From now on work is done; first what was asked for until now."""
        self._is_taken = False
        self._run()

    def take(self, subject: str, work: Work) -> None:
        """Do it now, or after what is being done."""
        self._later.append((subject, work))
        if not self._is_taken:
            self._run()

    def _run(self) -> None:
        self._is_taken = True
        try:
            while self._later:
                subject, work = self._later.popleft()
                try:
                    work()
                except Exception as problem:  # noqa: BLE001 - who was told decides what it ends
                    self._failed(subject, problem)
                for look in self._observers:
                    look()
        finally:
            self._is_taken = False
