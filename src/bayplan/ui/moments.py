"""Models of moments, which the questions of the page share, and why the pods of a cluster wait."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np

from bayplan.api.pod_groups import GroupKey, PodGroupKinds
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.history.columns import NEVER, Verdicts
from bayplan.history.timeline import FITS, Cause, CausePart, Timeline
from bayplan.history.timeline_fold import cause_of
from bayplan.model.additions import AdditionsReader
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.plugins.registry import Registry


@final
@dataclass(frozen=True, slots=True)
class Moment:
    """A cluster at one change, and the configuration, plugins and seed for it."""

    objects: ClusterPicture
    config: SchedulerConfig
    registry: Registry
    seed: int = 0
    #: The scheduler that gets all pods; None: each pod gets the scheduler that it names.
    scheduler_name: str | None = None


class OpenMoment(NamedTuple):
    """The model of a moment, and what reads workloads for it."""

    model: ClusterModel
    read: AdditionsReader
    kinds: PodGroupKinds
    moment: Moment

    def configured(self, config: SchedulerConfig) -> ClusterModel:
        """Another model of the moment, with another configuration. Raises ConfigError."""
        moment = self.moment
        return ClusterModel(moment.objects, config, moment.registry, seed=moment.seed)


@final
class ModelCache(threading.local):
    """The last model of each thread. It is stored because several questions are about one moment.
    Threads share no model, because a computation that gives way to another one may be in the middle
    of a trial."""

    def __init__(self) -> None:
        self._change = -1
        self._opened: OpenMoment | None = None

    def open(self, change: int, moment: Callable[[], Moment]) -> OpenMoment:
        """The model of a change. Raises what ``moment`` raises, and ConfigError."""
        if self._opened is None or self._change != change:
            if self._opened is not None:
                self._opened.model.close()
                self._opened = None
            self._opened = _opened(moment())
            self._change = change
        return self._opened


def _opened(moment: Moment) -> OpenMoment:
    kinds = group_kinds(moment.config.spec.pod_groups.kinds)
    model = ClusterModel(moment.objects, moment.config, moment.registry, seed=moment.seed)
    read = AdditionsReader(model, {*moment.registry.kinds, *kinds}, moment.scheduler_name)
    return OpenMoment(model, read, kinds, moment)


# ---- why pods wait, without a run --------------------------------------------------------------


def causes_now(model: ClusterModel, pods_max: int) -> Mapping[str, Cause]:
    """Pod → why it waits now. One attempt is made at each of the first pods, and no placement
    stays. If a group places no member, all members wait for the first member that no node admits,
    as in `all_pending`."""
    causes: dict[str, Cause] = {}
    by_group: dict[GroupKey, Cause] = {}
    for info in model.pending()[:pods_max]:
        cause = None if info.group_key is None else by_group.get(info.group_key)
        if cause is None:
            attempt = model.attempt(info.key)
            cause = _cause_now(attempt)
            is_of_all = attempt.rejected is not None and not attempt.placed_members
            if info.group_key is not None and is_of_all and not attempt.fits:
                by_group[info.group_key] = cause
        causes[info.key] = cause
    return causes


def _cause_now(attempt: Attempt) -> Cause:
    if attempt.fits:
        return FITS
    if attempt.result == "gated" and (attempt.gating_plugin or attempt.pod.group_key is None):
        return Cause("gated", (CausePart(attempt.gating_plugin, attempt.gating_message),))
    if attempt.record is not None and attempt.record.result not in ("scheduled", "unschedulable"):
        return cause_of(attempt.record)
    if attempt.rejected is not None:
        return cause_of(attempt.rejected)
    return Cause("group", (CausePart("", attempt.reason),))


def with_causes(line: Timeline, causes: Mapping[str, Cause]) -> Timeline:
    """The timeline with a verdict about some pods at its last change."""
    numbers = {cause: number for number, cause in enumerate(line.causes)}
    rows = [
        (line.last_change, line.rows_by_name[pod], numbers.setdefault(cause, len(numbers)), NEVER)
        for pod, cause in causes.items()
        if pod in line.rows_by_name
    ]
    added = np.array(rows, np.int64).reshape(-1, Verdicts.width())
    verdicts = Verdicts(np.vstack((line.verdicts.rows, added)))
    return replace(line, verdicts=verdicts, causes=list(numbers))
