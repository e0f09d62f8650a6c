"""The timeline of a run: its changes as columns, and the state of the cluster at any change.

Each lifetime is a row with the number of the change that began it and of the change that ended it.
There are lifetimes of pods, of waits, of placements, of versions of nodes, and of verdicts about
pods. Whatever exists at change c has `start <= c < end`, which is one comparison of columns. So the
state at any change takes milliseconds. It equals the state in which a simulation ends that stops at
the time of this change (`simulate --until`); tests compare both.
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
from bayplan.history import columns
from bayplan.journal import GroupRecord

_FIRST = (CPU, MEMORY)
_STATES_MAX = 8


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


class PodState(IntEnum):
    """The state of a pod at a change."""

    WAITING = 0
    PLACED = 1
    #: It has a node that does not exist.
    MISSING_NODE = 2
    ENDED = 3
    GONE = 4
    #: It is created later.
    ABSENT = 5


class CausePart(Struct, frozen=True):
    """One reason of a plugin. Equal reasons of one plugin are one part, whatever the nodes."""

    #: "": the group of the pod.
    plugin: str
    reason: str


class Cause(Struct, frozen=True):
    """Why pods wait. Pods with equal causes are one group on the page."""

    #: unschedulable, gated, error, permit, group, new, fits
    kind: str
    parts: tuple[CausePart, ...] = ()


#: The cause of a pod about which no attempt and no gate has said anything.
NEW = Cause("new")
#: The cause of a pod that an attempt would place: in a cluster without a run, nothing tries it.
FITS = Cause("fits")


_READY = "Ready"
_TRUE = "True"


def is_ready(node: Node) -> bool:
    """Whether the kubelet of a node reports that it is ready. A node without a condition of this
    type, as in most scenarios, counts as ready."""
    conditions = node.status.conditions or ()
    return all(one.status == _TRUE for one in conditions if one.type == _READY)


# ---- the timeline -------------------------------------------------------------------------


@final
@dataclass(kw_only=True)
class Timeline:
    """All changes of a run. Change 0 is the empty cluster, and changes are numbered from 1."""

    #: By change.
    seconds: NDArray[np.float64]
    changes: columns.Changes

    resources: tuple[str, ...]
    #: [row of amounts, resource]: cpu in millicores, others in whole units.
    amounts: columns.Rows
    pods: Sequence[columns.PodRow]
    #: By pod.
    lives: columns.Lives
    placements: columns.Placements
    node_names: Sequence[str]
    versions: columns.Versions
    #: By version.
    nodes: Sequence[Node]
    attempts: columns.Attempts
    verdicts: columns.Verdicts
    causes: Sequence[Cause]
    group_names: Sequence[str]
    #: 0: the group has no object that says how many members it needs.
    group_minimums: Sequence[int]
    group_records: Sequence[tuple[int, GroupRecord]]
    queues: columns.QueueSamples
    queue_names: tuple[str, ...]
    #: Plugin instance → labels of events that wake its rejected pods.
    wake_events: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    #: Attempts before the first one of `attempts`.
    forgotten_attempts: int = 0
    #: The first change at which the state is complete; earlier ones are forgotten.
    first_change: int = 0
    #: The end of the timeline while the run goes on; None: the time of the last change.
    now_seconds: float | None = None
    #: Of a cluster without a run: pod without a node → its creation, as a time stamp.
    created: Mapping[str, str] = field(default_factory=dict[str, str])

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

    @cached_property
    def waits_from(self) -> columns.Rows:
        """Pods of other schedulers never wait here."""
        return np.where(self.lives.is_ours > 0, self.lives.waits_from, columns.NEVER)

    @cached_property
    def rows_by_name(self) -> Mapping[str, int]:
        """The newest pod of each name."""
        return {pod.name: row for row, pod in enumerate(self.pods)}

    @cached_property
    def node_rows(self) -> Mapping[str, int]:
        return {name: row for row, name in enumerate(self.node_names)}

    @cached_property
    def resource_order(self) -> tuple[int, ...]:
        """The order of resources: cpu and memory first, then the others by name, and `pods` last.
        Unused resources are left out."""
        has = (self.amounts[self.versions.amounts] > 0).sum(axis=0)
        named = sorted((name, index) for index, name in enumerate(self.resources) if has[index])
        return tuple(
            index
            for _, _, index in sorted(
                (_FIRST.index(name) if name in _FIRST else len(_FIRST) + (name == PODS), name, i)
                for name, i in named
            )
        )

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

    def _lasts(self, start: columns.Rows, end: columns.Rows) -> columns.Mask:
        return (start <= self.change) & (self.change < end)

    # ---- nodes ------------------------------------------------------------------------------

    @cached_property
    def node_version(self) -> columns.Rows:
        """By node: the row of its version; -1: the node is not there."""
        versions = self.timeline.versions
        lasting = np.flatnonzero(self._lasts(versions.start, versions.end))
        of_node = np.full(len(self.timeline.node_names), -1, np.int64)
        of_node[versions.node[lasting]] = lasting
        return of_node

    @cached_property
    def there(self) -> columns.Rows:
        """The rows of the nodes that are there."""
        return np.flatnonzero(self.node_version >= 0)

    @cached_property
    def allocatable(self) -> columns.Rows:
        """[node, resource]; 0 for nodes that are not there."""
        line = self.timeline
        table = np.zeros((len(line.node_names), len(line.resources)), np.int64)
        there = self.there
        table[there] = line.amounts[line.versions.amounts[self.node_version[there]]]
        return table

    @cached_property
    def placement_rows(self) -> columns.Rows:
        """The rows of the placements of existing pods on existing nodes."""
        placements = self.timeline.placements
        is_there = self.node_version[placements.node] >= 0
        return np.flatnonzero(self._lasts(placements.start, placements.end) & is_there)

    @cached_property
    def used(self) -> columns.Rows:
        """[node, resource]: the requests of the pods on it that have not ended."""
        line = self.timeline
        placements = line.placements[self.placement_rows]
        table = np.zeros((len(line.node_names), len(line.resources)), np.int64)
        np.add.at(table, placements.node, line.amounts[placements.amounts])
        return table

    def pods_on(self, node: int) -> columns.Rows:
        """The rows of the pods on a node, in the order in which they came."""
        placements = self.timeline.placements[self.placement_rows]
        return placements.pod[placements.node == node]

    # ---- pods -------------------------------------------------------------------------------

    @cached_property
    def pods_there(self) -> columns.Mask:
        """By pod: whether its object exists."""
        return self._lasts(self.timeline.lives.created, self.timeline.lives.gone)

    @cached_property
    def waiting(self) -> columns.Rows:
        """The rows of the pods that wait for a node, in the order of their creation."""
        line = self.timeline
        return np.flatnonzero(self._lasts(line.waits_from, line.lives.waits_to))

    @cached_property
    def node_of_pod(self) -> columns.Rows:
        """By pod: its node; -1: it has none, or it has ended, or its node is not there."""
        placements = self.timeline.placements[self.placement_rows]
        nodes = np.full(len(self.timeline.pods), -1, np.int64)
        nodes[placements.pod] = placements.node
        return nodes

    @cached_property
    def ended(self) -> columns.Mask:
        """By pod: whether it is there and has ended."""
        line = self.timeline
        placements = line.placements
        lasting = self._lasts(placements.start, placements.end)
        is_on_node = np.zeros(len(line.pods), np.bool_)
        is_on_node[placements.pod[lasting]] = True
        waits = self._lasts(line.lives.waits_from, line.lives.waits_to)
        return self.pods_there & ~is_on_node & ~waits

    @cached_property
    def pod_states(self) -> columns.Rows:
        """By pod: its `PodState`."""
        lives, placements = self.timeline.lives, self.timeline.placements
        states = np.where(self.change < lives.waits_to, PodState.WAITING, PodState.ENDED)
        begun = placements[placements.start <= self.change]
        lasting = self.change < begun.end
        # If a pod has several placements, the last one decides.
        states[begun.pod] = np.where(lasting, PodState.MISSING_NODE, PodState.ENDED)
        states[self.node_of_pod >= 0] = PodState.PLACED
        states[lives.gone <= self.change] = PodState.GONE
        states[self.change < lives.created] = PodState.ABSENT
        return states

    @cached_property
    def state_changes(self) -> columns.Rows:
        """By pod: the change that began its state; of a pod that is created later: the change that
        creates it."""
        lives, placements = self.timeline.lives, self.timeline.placements
        states = self.pod_states
        changes = np.where(states == PodState.WAITING, lives.waits_from, lives.waits_to)
        begun = placements[placements.start <= self.change]
        changes[begun.pod] = np.where(self.change < begun.end, begun.start, begun.end)
        for state, column in ((PodState.GONE, lives.gone), (PodState.ABSENT, lives.created)):
            changes[states == state] = column[states == state]
        return changes

    @cached_property
    def cause_of_pod(self) -> columns.Rows:
        """By pod: the number of the cause for which it waits; 0: nothing was said about it yet."""
        line = self.timeline
        verdicts = line.verdicts[self._lasts(line.verdicts.change, line.verdicts.end)]
        causes = np.zeros(len(line.pods), np.int64)
        causes[verdicts.pod] = np.maximum(verdicts.cause, 0)
        return causes

    @cached_property
    def cause_starts(self) -> Mapping[int, int]:
        """Number of a cause → the change since which pods wait for it, one or another at each
        moment. Causes for which no pod waits are left out, and so is 0."""
        verdicts = self.timeline.verdicts
        so_far = verdicts[(verdicts.change <= self.change) & (verdicts.cause > 0)]
        by_cause = so_far[np.argsort(so_far.cause, kind="stable")]
        starts: dict[int, int] = {}
        for cause in numbers(np.unique(self.cause_of_pod[self.waiting])):
            first, last = np.searchsorted(by_cause.cause, (cause, cause + 1))
            own = by_cause[slice(int(first), int(last))]
            if len(own):
                # A gap comes before each verdict that begins after the end of all earlier verdicts.
                ends = np.maximum.accumulate(own.end)
                breaks = np.flatnonzero(own.change[1:] > ends[:-1])
                starts[cause] = int(own.change[breaks[-1] + 1 if len(breaks) else 0])
        return starts

    @cached_property
    def attempt_counts(self) -> columns.Rows:
        """By pod: attempts so far."""
        line = self.timeline
        so_far = np.searchsorted(line.attempts.change, self.change, side="right")
        of_pods = line.attempts.pod[:so_far]
        return line.lives.forgotten_attempts + np.bincount(of_pods, minlength=len(line.pods))

    @cached_property
    def queue_lengths(self) -> Mapping[str, int]:
        line = self.timeline
        sample = int(np.searchsorted(line.queues.change, self.change, side="right")) - 1
        if sample < 0:
            return dict.fromkeys(line.queue_names, 0)
        lengths: list[Any] = line.queues.lengths[sample].tolist()
        return dict(zip(line.queue_names, lengths, strict=True))


# ---- series ---------------------------------------------------------------------------------


@final
class Series:
    """Totals after each change, for charts."""

    def __init__(self, timeline: Timeline) -> None:
        self._line = timeline
        self._length = timeline.last_change + 1

    def _count(
        self, starts: columns.Rows, ends: columns.Rows, weights: NDArray[np.float64] | None = None
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
    def _placements(self) -> columns.Placements:
        """The placements as `Timeline` has them, while their nodes are there: a pod whose node is
        deleted may last longer."""
        line = self._line
        placements, versions = line.placements, line.versions
        # The versions of a node that is changed follow one another without a gap.
        first = np.full(len(line.node_names), columns.NEVER, np.int64)
        last = np.zeros(len(line.node_names), np.int64)
        np.minimum.at(first, versions.node, versions.start)
        np.maximum.at(last, versions.node, versions.end)
        lengths = np.zeros(len(line.node_names), np.int64)
        np.add.at(lengths, versions.node, versions.end - versions.start)
        has_gap = (lengths != last - first)[placements.node]
        clipped = columns.Placements(placements.rows[~has_gap])
        clipped.start[:] = np.maximum(clipped.start, first[clipped.node])
        ends = np.minimum(clipped.end, last[clipped.node])
        clipped.end[:] = np.maximum(ends, clipped.start)
        return columns.Placements(np.vstack([clipped.rows, *self._parts(placements[has_gap])]))

    def _parts(self, placements: columns.Placements) -> Iterator[columns.Rows]:
        """Placements on nodes that were deleted and added again: a part for each version."""
        versions = self._line.versions
        for row in range(len(placements)):
            placement = placements[slice(row, row + 1)]
            own = versions[versions.node == placement.node]
            parts = columns.Placements(np.repeat(placement.rows, len(own), axis=0))
            parts.start[:] = np.maximum(own.start, placement.start)
            parts.end[:] = np.minimum(own.end, placement.end)
            yield parts.rows[parts.start < parts.end]

    @cached_property
    def placed(self) -> NDArray[np.float64]:
        return self._count(self._placements.start, self._placements.end)

    @cached_property
    def waiting(self) -> NDArray[np.float64]:
        return self._count(self._line.waits_from, self._line.lives.waits_to)

    @cached_property
    def unschedulable(self) -> NDArray[np.float64]:
        """Waiting pods that the last attempt rejected."""
        kinds = np.array([cause.kind == "unschedulable" for cause in self._line.causes])
        verdicts = self._line.verdicts
        rejected = (verdicts.cause >= 0) & kinds[np.maximum(verdicts.cause, 0)]
        starts = np.where(verdicts.end > verdicts.change, verdicts.change, columns.NEVER)
        return self._count(starts[rejected], verdicts.end[rejected])

    @cached_property
    def attempts(self) -> NDArray[np.float64]:
        """Attempts so far."""
        starts = self._line.attempts.change
        so_far = self._count(starts, np.full(len(starts), columns.NEVER))
        return so_far + self._line.forgotten_attempts

    def queue(self, index: int) -> NDArray[np.float64]:
        samples = np.searchsorted(self._line.queues.change, np.arange(self._length), "right") - 1
        lengths = self._line.queues.lengths[:, index].astype(np.float64)
        if not len(lengths):
            return np.zeros(self._length)
        return np.where(samples >= 0, lengths[samples], 0.0)

    def used(self, resource: int) -> NDArray[np.float64]:
        placements = self._placements
        weights = self._line.amounts[placements.amounts, resource].astype(np.float64)
        return self._count(placements.start, placements.end, weights)

    def allocatable(self, resource: int) -> NDArray[np.float64]:
        versions = self._line.versions
        weights = self._line.amounts[versions.amounts, resource].astype(np.float64)
        return self._count(versions.start, versions.end, weights)
