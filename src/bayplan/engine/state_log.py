"""The port of the log of states: what a scheduler reports so that its attempts can be repeated.

`bayplan.history.state_log` implements it.
"""

from collections.abc import Mapping
from typing import Protocol

from bayplan.framework.types import QueuedPodInfo
from bayplan.journal import Record
from bayplan.ports import WatchEvent


class StateLog(Protocol):
    """Gets what a scheduler learns, and when it begins an attempt."""

    def handled(self, event: WatchEvent) -> None:
        """The scheduler learns of a change."""
        ...

    def begins(
        self, queued: QueuedPodInfo, now_seconds: float, sampling_starts: Mapping[str, int]
    ) -> None:
        """An attempt at a pod, or at a group, begins."""
        ...

    def write(self, record: Record) -> None:
        """The journal has a further record."""
        ...
