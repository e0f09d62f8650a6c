"""The timeline of a run: its changes as columns, and the state of the cluster at any change.

Each lifetime is a row with the number of the change that began it and of the change that ended it:
of a pod, of its waiting, of a placement, of a version of a node, of a verdict about a pod. What is
there at change c is `start <= c < end`, one comparison of columns. So the state at any change takes
milliseconds and needs no replay and no checkpoints. It equals the state in which a simulation ends
that stops at the time of this change (`simulate --until`); tests compare both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import Any, cast, final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bayplan.api.objects import Node
from bayplan.api.pod_requests import CPU, MEMORY, PODS
from bayplan.journal import GroupRecord

#: The end of what lasts to the end of the run.
NEVER = np.iinfo(np.int32).max
_FIRST = (CPU, MEMORY)
_STATES_MAX = 8

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


def numbers(column: NDArray[Any]) -> list[int]:
    """The elements of a column of integers."""
    return cast("list[int]", column.tolist())


# ---- what happens ---------------------------------------------------------------------------


class ChangeKind(IntEnum):
    """What a change is. The page has a word for each."""

    POD_CREATED = 0
    POD_BOUND = 1
    POD_ENDED = 2
    POD_DELETED = 3
    POD_PREEMPTED = 4
    POD_RESIZED = 5
    NODE_ADDED = 6
    NODE_CHANGED = 7
    NODE_REMOVED = 8
    SCHEDULED = 9
    UNSCHEDULABLE = 10
    WAITING_AT_PERMIT = 11
    ERROR = 12
    GATED = 13
    GROUP = 14


class CausePart(Struct, frozen=True):
    """One reason of a plugin. Equal reasons of one plugin are one part, whatever the nodes."""

    #: "": the group of the pod.
    plugin: str
    reason: str


class Cause(Struct, frozen=True):
    """Why pods wait. Pods with equal causes are one group of the page."""

    #: unschedulable, gated, error, permit, group, new, fits
    kind: str
    parts: tuple[CausePart, ...] = ()


#: The cause of a pod that no attempt and no gate has spoken about.
NEW = Cause("new")
#: The cause of a pod that an attempt would place: in a cluster without a run, nothing tries it.
FITS = Cause("fits")


# ---- the columns ----------------------------------------------------------------------------


@final
@dataclass(slots=True, kw_only=True)
class PodRow:
    """What stays as it is about one pod; `Life` has the rest."""

    #: "namespace/name"; a pod that is created again under its name is another row.
    name: str
    uid: str
    priority: int
    #: spec.schedulerName
    profile: str
    #: The row of its requests in `amounts`.
    amounts: int


class ChangeColumn(IntEnum):
    WHAT = 0
    #: -1: none.
    POD = 1
    NODE = 2


class Life(IntEnum):
    """Columns of pods. Changes that did not happen are `NEVER`."""

    CREATED = 0
    GONE = 1
    #: From when, and until when the pod has no node.
    WAITS_FROM = 2
    WAITS_TO = 3
    #: Its row in `group_names`; -1: no group.
    GROUP = 4
    #: 0: a pod of another scheduler, which never waits here.
    IS_OURS = 5
    #: How many attempts at the pod are forgotten.
    FORGOTTEN_ATTEMPTS = 6


class PlacementColumn(IntEnum):
    POD = 0
    NODE = 1
    AMOUNTS = 2
    START = 3
    END = 4


class VersionColumn(IntEnum):
    NODE = 0
    AMOUNTS = 1
    START = 2
    END = 3


class AttemptColumn(IntEnum):
    CHANGE = 0
    POD = 1
    NUMBER = 2
    WHAT = 3
    #: The line of the journal.
    LINE = 4


class VerdictColumn(IntEnum):
    CHANGE = 0
    POD = 1
    #: -1: none.
    CAUSE = 2
    #: The next verdict about the pod, or when the pod waits no more.
    END = 3


@final
@dataclass(kw_only=True)
class Timeline:
    """All changes of a run. Change 0 is the empty cluster, and changes are numbered from 1."""

    # By change.
    seconds: NDArray[np.float64]
    what: NDArray[np.uint8]
    of_pod: NDArray[np.int32]
    of_node: NDArray[np.int32]

    resources: tuple[str, ...]
    #: [row of amounts, resource]: cpu in millicores, others in whole units.
    amounts: Rows
    pods: Sequence[PodRow]
    #: By pod; columns: Life.
    lives: Rows
    #: Columns: PlacementColumn.
    placements: Rows
    node_names: Sequence[str]
    #: Columns: VersionColumn.
    versions: Rows
    #: By version.
    nodes: Sequence[Node]
    #: Columns: AttemptColumn.
    attempts: Rows
    #: Columns: VerdictColumn.
    verdicts: Rows
    causes: Sequence[Cause]
    group_names: Sequence[str]
    group_minimums: Sequence[int]
    group_records: Sequence[tuple[int, GroupRecord]]
    queue_changes: Rows
    #: [sample, queue]: pods.
    queue_lengths: Rows
    queue_names: tuple[str, ...]
    #: Plugin instance → labels of events that wake its rejected pods.
    wake_events: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    #: Attempts before the first one of `attempts`.
    forgotten_attempts: int = 0
    #: The first change at which the state is complete; earlier ones are forgotten.
    first_change: int = 0
    #: The end of a run that has not ended; None: the time of the last change.
    now_seconds: float | None = None

    @property
    def last_change(self) -> int:
        return len(self.seconds) - 1

    @property
    def start_seconds(self) -> float:
        return float(self.seconds[self.first_change])

    @property
    def end_seconds(self) -> float:
        return float(self.seconds[-1]) if self.now_seconds is None else self.now_seconds

    def change_at(self, seconds: float) -> int:
        """The last change up to a moment, its own changes included."""
        return max(0, int(np.searchsorted(self.seconds, seconds, side="right")) - 1)

    # ---- columns of pods --------------------------------------------------------------------

    @property
    def pod_created(self) -> Rows:
        return self.lives[:, Life.CREATED]

    @property
    def pod_gone(self) -> Rows:
        return self.lives[:, Life.GONE]

    @cached_property
    def waits_from(self) -> Rows:
        """Pods of other schedulers never wait here."""
        is_ours = self.lives[:, Life.IS_OURS] > 0
        return np.where(is_ours, self.lives[:, Life.WAITS_FROM], NEVER)

    @property
    def waits_to(self) -> Rows:
        return self.lives[:, Life.WAITS_TO]

    @property
    def pod_groups(self) -> Rows:
        return self.lives[:, Life.GROUP]

    @cached_property
    def rows_by_name(self) -> Mapping[str, int]:
        """The newest pod of each name."""
        return {pod.name: row for row, pod in enumerate(self.pods)}

    @cached_property
    def node_rows(self) -> Mapping[str, int]:
        return {name: row for row, name in enumerate(self.node_names)}

    @cached_property
    def resource_order(self) -> tuple[int, ...]:
        """cpu and memory first, then the others by name; `pods` last. Without unused resources."""
        has = (self.amounts[self.versions[:, 1]] > 0).sum(axis=0)
        named = sorted((name, index) for index, name in enumerate(self.resources) if has[index])
        return tuple(
            index
            for _, _, index in sorted(
                (_FIRST.index(name) if name in _FIRST else len(_FIRST) + (name == PODS), name, i)
                for name, i in named
            )
        )

    @property
    def verdict_ends(self) -> Rows:
        return self.verdicts[:, VerdictColumn.END]

    # ---- the state at a change --------------------------------------------------------------

    def state(self, change: int) -> "State":
        """The state after a change; states of the last questions are cached."""
        return _state(_ByIdentity(self), min(max(change, 0), self.last_change))


@final
class _ByIdentity:
    """A timeline as a key of a cache."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline

    def __hash__(self) -> int:
        return id(self.timeline)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and other.timeline is self.timeline


@lru_cache(maxsize=_STATES_MAX)
def _state(key: _ByIdentity, change: int) -> "State":
    return State(key.timeline, change)


@final
class State:
    """The cluster after one change."""

    def __init__(self, timeline: Timeline, change: int) -> None:
        self.timeline = timeline
        self.change = change
        is_now = change == timeline.last_change and timeline.now_seconds is not None
        self.seconds = timeline.end_seconds if is_now else float(timeline.seconds[change])

    def _lasts(self, start: Rows, end: Rows) -> Mask:
        return (start <= self.change) & (self.change < end)

    # ---- nodes ------------------------------------------------------------------------------

    @cached_property
    def node_version(self) -> Rows:
        """By node: the row of its version; -1: the node is not there."""
        versions = self.timeline.versions
        lasting = np.flatnonzero(self._lasts(versions[:, 2], versions[:, 3]))
        of_node = np.full(len(self.timeline.node_names), -1, np.int64)
        of_node[versions[lasting, 0]] = lasting
        return of_node

    @cached_property
    def there(self) -> Rows:
        """The rows of the nodes that are there."""
        return np.flatnonzero(self.node_version >= 0)

    @cached_property
    def allocatable(self) -> Rows:
        """[node, resource]; 0 for nodes that are not there."""
        line = self.timeline
        table = np.zeros((len(line.node_names), len(line.resources)), np.int64)
        there = self.there
        table[there] = line.amounts[line.versions[self.node_version[there], 1]]
        return table

    @cached_property
    def placement_rows(self) -> Rows:
        """Of the pods that are there, on nodes that are there."""
        placements = self.timeline.placements
        is_there = self.node_version[placements[:, PlacementColumn.NODE]] >= 0
        return np.flatnonzero(self._lasts(placements[:, 3], placements[:, 4]) & is_there)

    @cached_property
    def used(self) -> Rows:
        """[node, resource]: the requests of the pods on it that have not ended."""
        line = self.timeline
        rows = line.placements[self.placement_rows]
        table = np.zeros((len(line.node_names), len(line.resources)), np.int64)
        np.add.at(table, rows[:, 1], line.amounts[rows[:, 2]])
        return table

    def pods_on(self, node: int) -> Rows:
        """The rows of the pods on a node, in the order in which they came."""
        rows = self.timeline.placements[self.placement_rows]
        return rows[rows[:, 1] == node, 0]

    # ---- pods -------------------------------------------------------------------------------

    @cached_property
    def pods_there(self) -> Mask:
        """By pod: whether its object exists."""
        return self._lasts(self.timeline.pod_created, self.timeline.pod_gone)

    @cached_property
    def waiting(self) -> Rows:
        """The rows of the pods that wait for a node, in the order of their creation."""
        line = self.timeline
        return np.flatnonzero(self._lasts(line.waits_from, line.waits_to))

    @cached_property
    def node_of_pod(self) -> Rows:
        """By pod: its node; -1: it has none, or it has ended, or its node is not there."""
        rows = self.timeline.placements[self.placement_rows]
        nodes = np.full(len(self.timeline.pods), -1, np.int64)
        nodes[rows[:, 0]] = rows[:, 1]
        return nodes

    @cached_property
    def ended(self) -> Mask:
        """By pod: whether it is there and has ended."""
        line = self.timeline
        placements = line.placements
        lasting = self._lasts(placements[:, 3], placements[:, 4])
        is_on_node = np.zeros(len(line.pods), np.bool_)
        is_on_node[placements[lasting, PlacementColumn.POD]] = True
        waits = self._lasts(line.lives[:, Life.WAITS_FROM], line.waits_to)
        return self.pods_there & ~is_on_node & ~waits

    @cached_property
    def cause_of_pod(self) -> Rows:
        """By pod: the number of the cause for which it waits; 0: nothing was said about it yet."""
        line = self.timeline
        lasting = self._lasts(line.verdicts[:, 0], line.verdict_ends)
        rows = line.verdicts[lasting]
        causes = np.zeros(len(line.pods), np.int64)
        causes[rows[:, 1]] = np.maximum(rows[:, 2], 0)
        return causes

    @cached_property
    def attempt_counts(self) -> Rows:
        """By pod: attempts so far."""
        line = self.timeline
        so_far = np.searchsorted(line.attempts[:, 0], self.change, side="right")
        of_pods = line.attempts[:so_far, AttemptColumn.POD]
        forgotten = line.lives[:, Life.FORGOTTEN_ATTEMPTS]
        return forgotten + np.bincount(of_pods, minlength=len(line.pods))

    @cached_property
    def queue_lengths(self) -> Mapping[str, int]:
        line = self.timeline
        sample = int(np.searchsorted(line.queue_changes, self.change, side="right")) - 1
        if sample < 0:
            return dict.fromkeys(line.queue_names, 0)
        lengths: list[Any] = line.queue_lengths[sample].tolist()
        return dict(zip(line.queue_names, lengths, strict=True))


# ---- series ---------------------------------------------------------------------------------


@final
class Series:
    """Totals after each change, for charts."""

    def __init__(self, timeline: Timeline) -> None:
        self._line = timeline
        self._length = timeline.last_change + 1

    def _count(
        self, starts: Rows, ends: Rows, weights: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """By change: the sum of the weights of what lasts."""
        lasting = starts < self._length
        starts, ends = starts[lasting], ends[lasting]
        weights = np.ones(len(starts)) if weights is None else weights[lasting]
        over = ends < self._length
        delta = np.zeros(self._length)
        np.add.at(delta, starts, weights)
        np.subtract.at(delta, ends[over], weights[over])
        return np.cumsum(delta)

    @cached_property
    def _placements(self) -> Rows:
        """The placements as `Timeline` has them, while their nodes are there: a pod whose node is
        deleted may last longer."""
        line = self._line
        placements, versions = line.placements, line.versions
        # The versions of a node that is changed follow one another without a gap.
        first = np.full(len(line.node_names), NEVER, np.int64)
        last = np.zeros(len(line.node_names), np.int64)
        np.minimum.at(first, versions[:, VersionColumn.NODE], versions[:, VersionColumn.START])
        np.maximum.at(last, versions[:, VersionColumn.NODE], versions[:, VersionColumn.END])
        lengths = np.zeros(len(line.node_names), np.int64)
        spans = versions[:, VersionColumn.END] - versions[:, VersionColumn.START]
        np.add.at(lengths, versions[:, VersionColumn.NODE], spans)
        has_gap = lengths != last - first
        nodes = placements[:, PlacementColumn.NODE]
        clipped = placements.copy()
        clipped[:, 3] = np.maximum(placements[:, 3], first[nodes])
        clipped[:, 4] = np.maximum(np.minimum(placements[:, 4], last[nodes]), clipped[:, 3])
        return np.vstack([clipped[~has_gap[nodes]], *self._parts(placements[has_gap[nodes]])])

    def _parts(self, placements: Rows) -> Iterator[Rows]:
        """Placements on nodes that were deleted and added again: a part for each version."""
        versions = self._line.versions
        for placement in placements:
            own = versions[versions[:, VersionColumn.NODE] == placement[PlacementColumn.NODE]]
            starts = np.maximum(own[:, VersionColumn.START], placement[PlacementColumn.START])
            ends = np.minimum(own[:, VersionColumn.END], placement[PlacementColumn.END])
            parts = np.tile(placement, (len(own), 1))
            parts[:, PlacementColumn.START], parts[:, PlacementColumn.END] = starts, ends
            yield parts[starts < ends]

    @cached_property
    def placed(self) -> NDArray[np.float64]:
        placements = self._placements
        return self._count(placements[:, 3], placements[:, 4])

    @cached_property
    def waiting(self) -> NDArray[np.float64]:
        return self._count(self._line.waits_from, self._line.waits_to)

    @cached_property
    def unschedulable(self) -> NDArray[np.float64]:
        """Waiting pods that the last attempt rejected."""
        kinds = np.array([cause.kind == "unschedulable" for cause in self._line.causes])
        of = self._line.verdicts[:, 2]
        rejected = (of >= 0) & kinds[np.maximum(of, 0)]
        ends = self._line.verdict_ends
        starts = np.where(ends > self._line.verdicts[:, 0], self._line.verdicts[:, 0], NEVER)
        return self._count(starts[rejected], ends[rejected])

    @cached_property
    def attempts(self) -> NDArray[np.float64]:
        """Attempts so far."""
        starts = self._line.attempts[:, 0]
        so_far = self._count(starts, np.full(len(starts), NEVER))
        return so_far + self._line.forgotten_attempts

    def queue(self, index: int) -> NDArray[np.float64]:
        samples = np.searchsorted(self._line.queue_changes, np.arange(self._length), "right") - 1
        lengths = self._line.queue_lengths[:, index].astype(np.float64)
        if not len(lengths):
            return np.zeros(self._length)
        return np.where(samples >= 0, lengths[samples], 0.0)

    def used(self, resource: int) -> NDArray[np.float64]:
        placements = self._placements
        weights = self._line.amounts[placements[:, 2], resource].astype(np.float64)
        return self._count(placements[:, 3], placements[:, 4], weights)

    def allocatable(self, resource: int) -> NDArray[np.float64]:
        versions = self._line.versions
        weights = self._line.amounts[versions[:, 1], resource].astype(np.float64)
        return self._count(versions[:, 2], versions[:, 3], weights)
