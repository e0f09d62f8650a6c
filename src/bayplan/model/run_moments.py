"""The objects of a cluster at a moment of a run: at its start, at its end, or at a time.

A run is a function of its inputs. So its objects at a moment are those of a repetition up to that
moment, taken from the API server in memory: with claims, budgets, controllers and all other kinds,
which the records of the run do not have. The repetition compares each of its decisions with the
journal, so an answer never speaks of another run.
"""

from collections import deque
from dataclasses import replace

from bayplan.adapters.embedded.cluster import EVENT
from bayplan.api.objects import decoded_kinds
from bayplan.clock import ManualClock
from bayplan.durations import DESCRIPTION, DurationError, parse_duration
from bayplan.model.picture import ClusterPicture, RunMoment, picture_of
from bayplan.model.reading import objects_of_workload
from bayplan.problems import BadInputError, wrong
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.output.run_folder import RunFolder
from bayplan.sim.replay import repetition
from bayplan.sim.simulation import Simulation

START, END = "start", "end"


def run_moment(folder: RunFolder, at: str | float = END, option: str = "at") -> RunMoment:
    """A moment of a run. ``at``: "start", "end", a duration since the start, or seconds.

    ``option``: what names the moment, for messages. Raises BadInputError if the run does not have
    this moment, and RunFolderError.
    """
    run = str(folder.path)
    if at == START:
        return RunMoment(run=run, at="start", seconds=0.0)
    result = folder.result()
    if result is None:
        last = RunMoment(run=run, at="interruption", seconds=_last_decision_seconds(folder))
    else:
        last = RunMoment(run=run, at="end", seconds=result.simulated_seconds)
    if at == END:
        return last
    try:
        seconds = parse_duration(at)
    except DurationError:
        raise BadInputError(str(wrong(option, at, f"start, end or {DESCRIPTION}"))) from None
    if seconds > last.seconds:
        what = "was interrupted" if result is None else "ends"
        raise BadInputError(
            f"{option}: found {at}, but {run} {what} at {last.seconds:g} s; "
            f"wanted start, end or a time from 0 s to {last.seconds:g} s"
        )
    return RunMoment(run=run, at="time", seconds=seconds)


def objects_of_run(folder: RunFolder, moment: RunMoment) -> ClusterPicture:
    """The objects at a moment of a run. Raises RunFolderError, ConfigError."""
    if moment.at == "start":
        objects = objects_of_workload(folder.inputs().workload, str(moment))
    else:
        simulation = repetition_to(folder, moment)
        simulation.run()
        objects = objects_of(simulation, str(moment))
    return replace(objects, moment=moment)


def repetition_to(folder: RunFolder, moment: RunMoment) -> Simulation:
    """A simulation that repeats a run up to a moment; see `repetition`. Raises RunFolderError,
    ConfigError."""
    return repetition(folder, until_seconds=None if moment.at == "end" else moment.seconds)


def objects_of(simulation: Simulation, source: str) -> ClusterPicture:
    """All visible objects of a simulation as they are now, events excepted."""
    scheduler = simulation.scheduler
    kinds = {*decoded_kinds(), *CONTROLLERS, *scheduler.kinds, *scheduler.group_kinds}
    return replace(
        picture_of(simulation.cluster, kinds - {EVENT}, source),
        epoch_seconds=ManualClock.EPOCH_SECONDS + scheduler.now_seconds(),
        admission=simulation.workload.admission,
    )


def _last_decision_seconds(folder: RunFolder) -> float:
    last = deque(folder.journal(), maxlen=1)
    return last[0].at_seconds if last else 0.0
