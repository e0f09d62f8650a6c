"""The timeline of a run from its records alone, without a repetition.

A repetition executes the plugins of the run, which the user may not allow. The folder also has what
the scheduler learned and decided, in order (engine/state_log.py), and its journal: the recorder
gets both. The times of changes are those of the attempts and records around them, and the lengths
of the queues are unknown.
"""

from collections.abc import Callable, Iterator

from bayplan.clock import ManualClock
from bayplan.config import SchedulerConfig, config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.state_log import AttemptStart
from bayplan.journal import Record
from bayplan.plugins.registry import Registry
from bayplan.ports import WatchEvent
from bayplan.sim.output.run_folder import RunFolder
from bayplan.sim.replay import configuration_of_run
from bayplan.ui.recording import Recorder
from bayplan.ui.timeline import Timeline


def recorded_timeline(folder: RunFolder, check: Callable[[], None]) -> Timeline:
    """``check`` is called at each attempt and may raise. Raises RunFolderError, ConfigError."""
    seconds = 0.0
    scheduler = Scheduler(_configuration(folder), Registry(), ManualClock())
    recorder = Recorder(scheduler, lambda: seconds)
    records, record_count = folder.journal(), 0

    def write(record: Record) -> None:
        nonlocal seconds, record_count
        seconds = max(seconds, record.at_seconds)
        record_count += 1
        recorder.write(record)

    try:
        for entry in folder.entries():
            if isinstance(entry, WatchEvent):
                recorder.observe_event(entry)
            elif isinstance(entry, AttemptStart):
                check()
                for record in _next(records, entry.record_count - record_count):
                    write(record)
                seconds = max(seconds, entry.at_seconds)
        for record in records:
            write(record)
    finally:
        scheduler.close()
    return recorder.timeline()


def _next(records: Iterator[Record], count: int) -> Iterator[Record]:
    """The next ``count`` records, as far as there are so many."""
    while count > 0 and (record := next(records, None)) is not None:
        count -= 1
        yield record


def _configuration(folder: RunFolder) -> SchedulerConfig:
    """The profiles of the run without its plugins. Raises RunFolderError, ConfigError."""
    own = configuration_of_run(folder.inputs().manifest, f"{folder.path}/inputs")
    profiles = [{"schedulerName": each.scheduler_name} for each in own.spec.profiles]
    return config_from(DEFAULT_CONFIG, overrides={"profiles": profiles} if profiles else {})
