"""The objects of a run at one of its changes, and what a node rejected: both by a repetition.

The timeline has what the views show, without claims, budgets and controllers. So questions for the
engine repeat the run up to the change and take all objects from the API server in memory. The end
of a run is the commonest moment: its objects are taken when the timeline is made.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np

from bayplan.adapters.embedded.cluster import EVENT
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.pod_groups import PodGroupKinds
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.engine.cycle import Cycle
from bayplan.journal import Record
from bayplan.model.additions import AdditionsReader
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.model.run_moments import objects_of
from bayplan.plugins.registry import Registry
from bayplan.sim.output.run_folder import RunFolder
from bayplan.sim.replay import rejection_of, repetition, settings_of_run
from bayplan.state.pods import DEFAULT_SCHEDULER
from bayplan.ui.recording import Recorder, cause_of
from bayplan.ui.timeline import FITS, NEVER, Cause, CausePart, Timeline, VerdictColumn


@final
@dataclass(frozen=True, slots=True)
class Moment:
    """A cluster at one change, and with what it is scheduled."""

    objects: ClusterPicture
    config: SchedulerConfig
    registry: Registry
    seed: int = 0
    #: The scheduler that gets all pods; None: the scheduler that each pod names.
    scheduler_name: str | None = None


class OpenModel(NamedTuple):
    """The model of a moment, and what reads workloads for it."""

    model: ClusterModel
    read: AdditionsReader
    kinds: PodGroupKinds


@final
class ModelCache:
    """The last model: several questions are about one moment. Only one thread uses it."""

    def __init__(self) -> None:
        self._change = -1
        self._opened: OpenModel | None = None

    def open(self, change: int, moment: Callable[[], Moment]) -> OpenModel:
        """The model of a change. Raises what ``moment`` raises, and ConfigError."""
        if self._opened is None or self._change != change:
            if self._opened is not None:
                self._opened.model.close()
                self._opened = None
            self._opened = _opened(moment())
            self._change = change
        return self._opened


def _opened(moment: Moment) -> OpenModel:
    kinds = group_kinds(moment.config.spec.pod_groups.kinds)
    model = ClusterModel(moment.objects, moment.config, moment.registry, seed=moment.seed)
    read = AdditionsReader(model, {*moment.registry.kinds, *kinds}, moment.scheduler_name)
    return OpenModel(model, read, kinds)


@final
class Rejection(NamedTuple):
    """One node in one attempt, which rejected the node."""

    uid: str
    attempt: int
    plugin: str
    reason: str
    code: str


# ---- the objects at a change ----------------------------------------------------------------


def moment_of_run(folder: RunFolder, objects: ClusterPicture) -> Moment:
    """Raises RunFolderError, ConfigError."""
    inputs, config, registry = settings_of_run(folder)
    return Moment(
        objects,
        config,
        registry,
        seed=inputs.manifest.seed,
        scheduler_name=DEFAULT_SCHEDULER if inputs.manifest.config is None else None,
    )


class _ChangeReached(Exception):
    """The objects of the change were taken."""


def objects_at(folder: RunFolder, change: int, check: Callable[[], None]) -> ClusterPicture:
    """Repeat a run up to a change. ``check`` is called at each attempt and may raise.

    Raises RunFolderError, ConfigError.
    """
    taken: list[ClusterPicture] = []

    def look(cycle: Cycle) -> None:
        check()
        if taken:
            raise _ChangeReached

    simulation = repetition(folder, look)
    recorder = Recorder(simulation.scheduler)
    recorder.attach(simulation)

    def take() -> None:
        if not taken and recorder.change >= change:
            taken.append(objects_of(simulation, folder.path.name))

    watcher = _AfterChange(take)
    take()
    simulation.cluster.observe(watcher.observe, ignored_kinds=(EVENT,))
    simulation.keep_journal(watcher)
    with suppress(_ChangeReached):
        simulation.run()
    return taken[0] if taken else objects_of(simulation, folder.path.name)


@final
class _AfterChange:
    """Calls a function after each change of an object and each record."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        self._call()

    def write(self, record: Record) -> None:
        self._call()


# ---- why pods wait, without a run --------------------------------------------------------------


def causes_now(model: ClusterModel, pods_max: int) -> Mapping[str, Cause]:
    """Pod → why it waits now, by one attempt at each of the first pods; none stays."""
    causes: dict[str, Cause] = {}
    for info in model.pending()[:pods_max]:
        attempt = model.attempt(info.key)
        if attempt.fits:
            causes[info.key] = FITS
        elif attempt.result == "gated":
            part = CausePart(attempt.gating_plugin, attempt.gating_message)
            causes[info.key] = Cause("gated", (part,))
        elif attempt.record is not None and attempt.record.result != "scheduled":
            causes[info.key] = cause_of(attempt.record)
        else:
            causes[info.key] = Cause("group", (CausePart("", attempt.reason),))
    return causes


def with_causes(line: Timeline, causes: Mapping[str, Cause]) -> Timeline:
    """The timeline with a verdict about some pods at its last change."""
    numbers = {cause: number for number, cause in enumerate(line.causes)}
    rows = [
        (line.last_change, line.rows_by_name[pod], numbers.setdefault(cause, len(numbers)), NEVER)
        for pod, cause in causes.items()
        if pod in line.rows_by_name
    ]
    table = np.array(rows, line.verdicts.dtype).reshape(-1, len(VerdictColumn))
    return replace(line, verdicts=np.vstack((line.verdicts, table)), causes=list(numbers))


# ---- what a node rejected -------------------------------------------------------------------


def rejections_of(folder: RunFolder, node: str, check: Callable[[], None]) -> list[Rejection]:
    """All rejections of one node in a run, the oldest first: the run is repeated once.

    Of a group that is tried in several domains, each attempt at a member is one. ``check`` is
    called at each attempt and may raise. Raises RunFolderError, ConfigError.
    """
    rejections: list[Rejection] = []

    def look(cycle: Cycle) -> None:
        check()
        status = rejection_of(cycle, node)
        if status is not None:
            uid, attempt = cycle.pod.uid, cycle.queued.attempts
            code = str(status.code)
            rejections.append(Rejection(uid, attempt, status.plugin, status.message, code))

    repetition(folder, look).run()
    return rejections
