"""Columns of whole numbers by name, while they grow, and how they forget their beginning.

A scheduler that runs for months changes without end, so its columns have only a window: everything
that lasted at its first change, and everything since. What ended before is forgotten, and the rows
that stay are numbered anew. Their changes stay, too, so that a pod that has waited for a week keeps
the moment from which it waits.
"""

from collections.abc import Mapping
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar, final, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bayplan.api.objects import Node

#: The end of what lasts to the end of the run.
NEVER: Final = int(np.iinfo(np.int32).max)
_FIRST_CAPACITY: Final = 256

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


# ---- columns by name ------------------------------------------------------------------------


@final
class Column:
    """One column of `Columns`: their order is that of their definitions."""

    index: int

    def __set_name__(self, owner: type["Columns"], name: str) -> None:
        names = [each for each, value in vars(owner).items() if isinstance(value, Column)]
        self.index = names.index(name)

    @overload
    def __get__(self, columns: None, owner: type["Columns"]) -> "Column": ...
    @overload
    def __get__(self, columns: "Columns", owner: type["Columns"]) -> Rows: ...
    def __get__(self, columns: "Columns | None", owner: type["Columns"]) -> "Column | Rows":
        return self if columns is None else columns.rows[:, self.index]


class Columns:
    """Rows of numbers, whose columns have names. A column is a view."""

    def __init__(self, rows: NDArray[Any]) -> None:
        """``rows``: [row, column]"""
        self.rows = rows

    @classmethod
    def width(cls) -> int:
        """The number of the columns."""
        return sum(isinstance(value, Column) for value in vars(cls).values())

    @classmethod
    def of(cls, *columns: Any) -> Self:
        """Make the rows from the columns, in the order of their definitions. A column is an array,
        or one number for all rows."""
        return cls(np.stack(np.broadcast_arrays(*columns), axis=1).astype(np.int64))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Mask | Rows | slice) -> Self:
        return type(self)(self.rows[rows])


class Times(Columns):
    """By change."""

    @property
    def seconds(self) -> NDArray[np.float64]:
        """The time of the change, which is no whole number."""
        return self.rows[:, 0]


class Changes(Columns):
    """By change."""

    #: A `timeline.ChangeKind`.
    what = Column()
    #: -1: none.
    pod = Column()
    node = Column()
    #: How many entries the log has up to the change.
    entries = Column()


class Lives(Columns):
    """The life of each pod. A change that did not happen is `NEVER`."""

    created = Column()
    gone = Column()
    #: The change from which the pod has no node, and the change at which that ends.
    waits_from = Column()
    waits_to = Column()
    #: Its row in `Timeline.group_names`; -1: no group.
    group = Column()
    #: Whether the pod is of this scheduler; 0: it is of another one, and never waits here.
    is_ours = Column()
    #: The number of attempts at the pod that are forgotten.
    forgotten_attempts = Column()


class Placements(Columns):
    pod = Column()
    node = Column()
    #: The row of the requests in `Timeline.amounts`.
    amounts = Column()
    start = Column()
    end = Column()


class Versions(Columns):
    """Versions of nodes that differ in what the page shows."""

    node = Column()
    #: The row of what the node offers in `Timeline.amounts`.
    amounts = Column()
    start = Column()
    end = Column()


class Attempts(Columns):
    change = Column()
    pod = Column()
    number = Column()
    #: A `timeline.ChangeKind`.
    what = Column()
    #: The line of the journal.
    line = Column()


class Verdicts(Columns):
    change = Column()
    pod = Column()
    #: -1: none.
    cause = Column()
    #: The change of the next verdict about the pod, or the change at which it no longer waits.
    end = Column()


class QueueSamples(Columns):
    """A change, and the lengths of the queues after that change."""

    change = Column()

    @property
    def lengths(self) -> Rows:
        """[sample, queue]: pods."""
        return self.rows[:, 1:]


# ---- columns that grow ----------------------------------------------------------------------


C = TypeVar("C", bound=Columns)


@final
class Table(Generic[C]):
    """Rows of numbers. New rows come at the end; a view of the rows stays valid meanwhile."""

    def __init__(self, columns: type[C], *, further: int = 0, dtype: DTypeLike = np.int64) -> None:
        """``further``: columns without a name, after the others."""
        self._columns = columns
        self._width = columns.width() + further
        self._array = np.empty((_FIRST_CAPACITY, self._width), dtype)
        self._count = 0
        #: The numbers of the rows that are not in the array yet.
        self._tail: list[Any] = []

    def __len__(self) -> int:
        return self._count + len(self._tail) // self._width

    def append(self, row: list[Any]) -> int:
        """Returns the number of the row."""
        number = self._count + len(self._tail) // self._width
        self._tail += row
        return number

    def get(self, row: int, column: Column) -> int:
        late = row - self._count
        if late >= 0:
            return self._tail[late * self._width + column.index]
        return int(self._array[row, column.index])

    def set(self, row: int, column: Column, value: int) -> None:
        late = row - self._count
        if late >= 0:
            self._tail[late * self._width + column.index] = value
        else:
            self._array[row, column.index] = value

    def put(self, row: int, values: list[Any]) -> None:
        late = (row - self._count) * self._width
        if late >= 0:
            self._tail[late : late + self._width] = values
        else:
            self._array[row] = values

    @property
    def columns(self) -> C:
        """All rows, as a view that shows later calls of `set`."""
        if self._tail:
            count = len(self)
            if count > len(self._array):
                capacity = max(count, 2 * len(self._array))
                larger = np.empty((capacity, self._width), self._array.dtype)
                larger[: self._count] = self._array[: self._count]
                self._array = larger
            late = np.array(self._tail, self._array.dtype)
            self._array[self._count : count] = late.reshape(-1, self._width)
            self._count = count
            self._tail = []
        return self._columns(self._array[: self._count])

    def replace(self, columns: C) -> None:
        """Put other rows in place of these. Views of the former rows stay as they are."""
        self._array = np.array(columns.rows, self._array.dtype)
        self._count = len(columns)
        self._tail = []


@final
class PodRow(NamedTuple):
    """The values of a pod that never change. `Lives` has the others."""

    #: "namespace/name"; a pod that is created again under its name is another row.
    name: str
    uid: str
    priority: int
    #: spec.schedulerName
    profile: str
    #: As in "Deployment default/web"; see `workload_of`.
    workload: str
    #: The row of its requests in `Timeline.amounts`.
    amounts: int
    #: The labels of the pod at its creation.
    labels: Mapping[str, str]


@final
class Tables:
    """All columns of one timeline; `timeline.Timeline` describes them."""

    def __init__(self) -> None:
        self.times = Table(Times, further=1, dtype=np.float64)
        self.changes = Table(Changes)
        self.lives = Table(Lives)
        self.placements = Table(Placements)
        self.versions = Table(Versions)
        self.attempts = Table(Attempts)
        self.verdicts = Table(Verdicts)
        self.pods: list[PodRow] = []
        #: By version.
        self.nodes: list[Node] = []
        self.node_names: list[str] = []
        self.amounts: list[dict[str, int]] = []
        #: Attempts that are forgotten.
        self.forgotten_attempts = 0


# ---- forgetting -----------------------------------------------------------------------------


class Renumbering(NamedTuple):
    """The new number for each old number; -1: the row is forgotten."""

    changes: Rows
    pods: Rows
    nodes: Rows
    amounts: Rows
    placements: Rows
    versions: Rows
    verdicts: Rows


def forget_before(tables: Tables, first: int) -> Renumbering:
    """Forget what ended before a change, and number all other rows anew."""
    lives = tables.lives.columns
    pods = lives.gone >= first
    placements = tables.placements.columns
    # A pod that has ended was on the node of its last placement.
    stays = (placements.end >= first) | _is_last_of(placements.pod, len(pods))
    stays &= pods[placements.pod]
    versions = tables.versions.columns
    lasts = versions.end >= first
    verdicts = tables.verdicts.columns
    speaks = (verdicts.end >= first) & pods[verdicts.pod]
    attempts = tables.attempts.columns
    tried = _attempts_that_stay(attempts, pods, first)

    changes = np.zeros(len(tables.times), np.bool_)
    changes[0] = True
    changes[first:] = True
    staying_lives, staying_placements = lives[pods], placements[stays]
    for starts in (
        staying_lives.created,
        staying_lives.waits_from,
        staying_lives.waits_to,
        staying_placements.start,
        staying_placements.end,
        versions.start[lasts],
        verdicts.change[speaks],
        attempts.change[tried],
    ):
        changes[starts[starts < len(changes)]] = True
    # A change that stays speaks only of pods that stay.
    of_pods = tables.changes.columns.pod[first:]
    pods[of_pods[of_pods >= 0]] = True
    nodes = np.zeros(len(tables.node_names), np.bool_)
    of_nodes = tables.changes.columns.node[changes]
    nodes[of_nodes[of_nodes >= 0]] = True
    nodes[placements.node[stays]] = True
    nodes[versions.node[lasts]] = True
    amounts = np.zeros(len(tables.amounts), np.bool_)
    amounts[[pod.amounts for pod, is_here in zip(tables.pods, pods, strict=True) if is_here]] = True
    amounts[placements.amounts[stays]] = True
    amounts[versions.amounts[lasts]] = True

    renumbering = Renumbering(
        changes=_new_numbers(changes),
        pods=_new_numbers(pods),
        nodes=_new_numbers(nodes),
        amounts=_new_numbers(amounts),
        placements=_new_numbers(stays),
        versions=_new_numbers(lasts),
        verdicts=_new_numbers(speaks),
    )
    tables.forgotten_attempts += int((~tried).sum())
    forgotten = np.bincount(attempts.pod[~tried], minlength=len(lives))
    lives.forgotten_attempts[:] += forgotten
    _keep(tables, renumbering, _Stays(changes, pods, nodes, amounts, stays, lasts, speaks, tried))
    return renumbering


class _Stays(NamedTuple):
    """Whether a row stays, by its old number."""

    changes: Mask
    pods: Mask
    nodes: Mask
    amounts: Mask
    placements: Mask
    versions: Mask
    verdicts: Mask
    attempts: Mask


def _attempts_that_stay(attempts: Attempts, pods: Mask, first: int) -> Mask:
    """The attempts since the first change, and the last attempt at each pod."""
    is_last = _is_last_of(attempts.pod, len(pods))
    return pods[attempts.pod] & (is_last | (attempts.change >= first))


def _is_last_of(of_pods: Rows, pod_count: int) -> Mask:
    """For each row, whether no later row is about the same pod."""
    numbers = np.arange(len(of_pods))
    last = np.zeros(pod_count, np.int64)
    last[of_pods] = numbers
    return last[of_pods] == numbers


def _new_numbers(stays: Mask) -> Rows:
    return np.where(stays, np.cumsum(stays) - 1, -1)


def _keep(tables: Tables, to: Renumbering, stays: _Stays) -> None:
    """Drop the rows that are forgotten, and put the new numbers into the others."""
    tables.times.replace(tables.times.columns[stays.changes])
    changes = tables.changes.columns[stays.changes]
    for column, numbers in ((changes.pod, to.pods), (changes.node, to.nodes)):
        column[:] = np.where(column >= 0, numbers[column], -1)
    tables.changes.replace(changes)

    moments = _Moments(stays.changes)
    lives = tables.lives.columns[stays.pods]
    moments.renumber(lives.created, lives.gone, lives.waits_from, lives.waits_to)
    tables.lives.replace(lives)

    placements = tables.placements.columns[stays.placements]
    placements.pod[:] = to.pods[placements.pod]
    placements.node[:] = to.nodes[placements.node]
    placements.amounts[:] = to.amounts[placements.amounts]
    moments.renumber(placements.start, placements.end)
    tables.placements.replace(placements)

    versions = tables.versions.columns[stays.versions]
    versions.node[:] = to.nodes[versions.node]
    versions.amounts[:] = to.amounts[versions.amounts]
    moments.renumber(versions.start, versions.end)
    tables.versions.replace(versions)

    attempts = tables.attempts.columns[stays.attempts]
    attempts.pod[:] = to.pods[attempts.pod]
    moments.renumber(attempts.change)
    tables.attempts.replace(attempts)

    verdicts = tables.verdicts.columns[stays.verdicts]
    verdicts.pod[:] = to.pods[verdicts.pod]
    moments.renumber(verdicts.change, verdicts.end)
    tables.verdicts.replace(verdicts)

    tables.pods = [pod for pod, is_here in zip(tables.pods, stays.pods, strict=True) if is_here]
    if not stays.amounts.all():
        tables.pods = [pod._replace(amounts=int(to.amounts[pod.amounts])) for pod in tables.pods]
    tables.nodes = [
        one for one, is_here in zip(tables.nodes, stays.versions, strict=True) if is_here
    ]
    tables.node_names = [
        name for name, is_here in zip(tables.node_names, stays.nodes, strict=True) if is_here
    ]
    tables.amounts = [
        one for one, is_here in zip(tables.amounts, stays.amounts, strict=True) if is_here
    ]


@final
class _Moments:
    """Maps old changes to new ones. A forgotten change becomes the next change that stays."""

    def __init__(self, stays: Mask) -> None:
        self._old = np.flatnonzero(stays)

    def renumber(self, *columns: Rows) -> None:
        """Put the new changes into these columns."""
        for column in columns:
            column[:] = np.where(column == NEVER, NEVER, np.searchsorted(self._old, column))
