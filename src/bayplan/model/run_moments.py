"""The objects of a cluster at a moment of a run: at its start, at its end, or at a time.

They are the sum of the entries of the run's log up to the moment: with claims, budgets, controllers
and all other kinds, as the API server in memory had them.
"""

from dataclasses import replace
from math import inf

from bayplan.clock import ManualClock
from bayplan.config.cluster_version import ReportedReleases
from bayplan.durations import DESCRIPTION, DurationError, parse_duration
from bayplan.history.past_state import PastState
from bayplan.model.picture import ClusterPicture, RunMoment
from bayplan.problems import BadInputError, wrong
from bayplan.sim.output.run_folder import RunFolder

START, END = "start", "end"


def run_moment(folder: RunFolder, at: str | float = END, option: str = "at") -> RunMoment:
    """A moment of a run. ``at``: "start", "end", a duration since the start, or seconds.

    ``option``: what names the moment, for messages. Raises BadInputError if the run does not have
    this moment, and RunFolderError.
    """
    run = str(folder.path)
    if at == START:
        return RunMoment(run=run, at="start", seconds=0.0)
    has_ended = folder.result() is not None
    kind = "end" if has_ended else "interruption"
    last = RunMoment(run=run, at=kind, seconds=folder.end_seconds())
    if at == END:
        return last
    try:
        seconds = parse_duration(at)
    except DurationError:
        raise BadInputError(str(wrong(option, at, f"start, end or {DESCRIPTION}"))) from None
    if seconds > last.seconds:
        what = "ends" if has_ended else "was interrupted"
        raise BadInputError(
            f"{option}: found {at}, but {run} {what} at {last.seconds:g} s; "
            f"wanted start, end or a time from 0 s to {last.seconds:g} s"
        )
    return RunMoment(run=run, at="time", seconds=seconds)


def objects_of_run(folder: RunFolder, moment: RunMoment) -> ClusterPicture:
    """The objects at a moment of a run. Raises RunFolderError."""
    with folder.reading_states() as log:
        if moment.at == "start":
            state = log.state_at_start()
        else:
            state = log.state_at(inf if moment.at == "end" else moment.seconds)
    picture = objects_of(folder, state, str(moment), moment.seconds)
    reported = ReportedReleases((folder.manifest().kubernetes,), "the run was made as")
    return replace(picture, moment=moment, reported=reported)


def objects_of(
    folder: RunFolder, state: PastState, source: str, at_seconds: float
) -> ClusterPicture:
    """The objects of a state of a run, events excepted. ``source``: a name of the state.

    Raises RunFolderError.
    """
    return ClusterPicture(
        state.visible_objects(),
        state.contents,
        source=source,
        epoch_seconds=ManualClock.EPOCH_SECONDS + at_seconds,
        admission=folder.manifest().admission,
    )
