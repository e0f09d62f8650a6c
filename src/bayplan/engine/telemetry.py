"""What the engine reports: to the journal and the metrics, and to the log of states."""

from collections.abc import Mapping
from traceback import format_exception
from typing import Any, Protocol, final

from bayplan.clock import Clock
from bayplan.framework.types import QueuedPodInfo
from bayplan.journal import BUG_NOTE, BUG_PREFIX, GroupRecord, Journal, NoteRecord, Record
from bayplan.metrics import SchedulerMetrics
from bayplan.ports import WatchEvent
from bayplan.state.pod_groups import GroupState


@final
class Telemetry:
    """The journal and the metrics, with the clock that times their records."""

    def __init__(self, clock: Clock, journal: Journal, *, raise_bugs: bool = False) -> None:
        """``raise_bugs``: a bug of Bayplan ends the run (simulation) instead of one attempt."""
        self.clock = clock
        self.journal = journal
        self.metrics = SchedulerMetrics()
        self.raise_bugs = raise_bugs

    def note(self, subject: str, text: str, plugin: str = "", kind: str = "") -> None:
        """Write a note to the journal. ``plugin``: the plugin that failed, if one did."""
        if self.journal.is_recording:
            self.journal.write(
                NoteRecord(
                    at_seconds=self.clock.now(),
                    subject=subject,
                    text=text,
                    plugin=plugin,
                    kind=kind,
                )
            )

    def plugin_failed(self, subject: str, plugin: str, text: str) -> None:
        """Count and note a failure of a plugin that has no other consequence."""
        self.metrics.plugin_failures.add(plugin)
        self.note(subject, text, plugin)

    def bug(self, subject: str, problem: Exception) -> None:
        """Count and note a bug of Bayplan. Raises it again if bugs end the run."""
        if self.raise_bugs:
            raise problem
        self.metrics.bugs.add()
        text = f"{BUG_PREFIX}: " + "".join(format_exception(problem))
        self.note(subject, text, kind=BUG_NOTE)

    def record_group(self, state: GroupState, result: str, **fields: Any) -> None:
        """Write a `GroupRecord` to the journal; ``fields``: its further fields."""
        if self.journal.is_recording:
            record = GroupRecord(
                at_seconds=self.clock.now(),
                group=str(state.key),
                api_group=state.key.api_group,
                result=result,
                min_member=state.min_member,
                **fields,
            )
            self.journal.write(record)


class StateLog(Protocol):
    """Gets what a scheduler learns, and when it begins an attempt, so that its attempts can be
    repeated. `bayplan.history.state_log` implements it."""

    def handled(self, event: WatchEvent) -> None:
        """Log a change that the scheduler learns of."""
        ...

    def begins(
        self, queued: QueuedPodInfo, now_seconds: float, sampling_starts: Mapping[str, int]
    ) -> None:
        """Log that an attempt at a pod, or at a group, begins."""
        ...

    def write(self, record: Record) -> None:
        """Log that the journal has a further record."""
        ...
