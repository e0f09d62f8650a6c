"""The columns of a timeline while they grow, and how they forget their beginning.

A scheduler that runs for months changes without end, so its columns have only a window: everything
that lasted at its first change, and everything since. What ended before is forgotten, and the rows
that stay are numbered anew. Their changes stay, too, so that a pod that has waited for a week keeps
the moment from which it waits.
"""

from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bayplan.api.objects import Node
from bayplan.ui.timeline import (
    NEVER,
    AttemptColumn,
    ChangeColumn,
    Life,
    Mask,
    PlacementColumn,
    PodRow,
    Rows,
    VerdictColumn,
    VersionColumn,
)

_FIRST_CAPACITY: Final = 256


@final
class Table:
    """Rows of numbers. New rows come at the end; a view of the rows stays valid meanwhile."""

    def __init__(self, width: int, dtype: DTypeLike = np.int64) -> None:
        self._array = np.empty((_FIRST_CAPACITY, width), dtype)
        self._width = width
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

    def get(self, row: int, column: int) -> int:
        late = row - self._count
        if late >= 0:
            return self._tail[late * self._width + column]
        return int(self._array[row, column])

    def set(self, row: int, column: int, value: int) -> None:
        late = row - self._count
        if late >= 0:
            self._tail[late * self._width + column] = value
        else:
            self._array[row, column] = value

    def put(self, row: int, values: list[Any]) -> None:
        late = (row - self._count) * self._width
        if late >= 0:
            self._tail[late : late + self._width] = values
        else:
            self._array[row] = values

    @property
    def rows(self) -> NDArray[Any]:
        """[row, column]: a view, in which later calls of `set` show."""
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
        return self._array[: self._count]

    def replace(self, rows: NDArray[Any]) -> None:
        """Views of the former rows keep the former rows."""
        self._array = np.array(rows, self._array.dtype)
        self._count = len(rows)
        self._tail = []


@final
class Tables:
    """All columns of one timeline; `timeline.Timeline` describes them."""

    def __init__(self) -> None:
        self.seconds = Table(1, np.float64)
        self.changes = Table(len(ChangeColumn))
        self.lives = Table(len(Life))
        self.placements = Table(len(PlacementColumn))
        self.versions = Table(len(VersionColumn))
        self.attempts = Table(len(AttemptColumn))
        self.verdicts = Table(len(VerdictColumn))
        self.pods: list[PodRow] = []
        #: By version.
        self.nodes: list[Node] = []
        self.node_names: list[str] = []
        self.amounts: list[dict[str, int]] = []
        #: Attempts that are forgotten.
        self.forgotten_attempts = 0


# ---- forgetting -----------------------------------------------------------------------------


class Renumbering(NamedTuple):
    """By old number: the new number; -1: forgotten."""

    changes: Rows
    pods: Rows
    nodes: Rows
    amounts: Rows
    placements: Rows
    versions: Rows
    verdicts: Rows


def forget_before(tables: Tables, first: int) -> Renumbering:
    """Forget what ended before a change, and number the rest anew."""
    lives = tables.lives.rows
    pods = lives[:, Life.GONE] >= first
    placements = tables.placements.rows
    # A pod that has ended was on the node of its last placement.
    stays = (placements[:, PlacementColumn.END] >= first) | _is_last_of(
        placements[:, PlacementColumn.POD], len(pods)
    )
    stays &= pods[placements[:, PlacementColumn.POD]]
    versions = tables.versions.rows
    lasts = versions[:, VersionColumn.END] >= first
    verdicts = tables.verdicts.rows
    speaks = (verdicts[:, VerdictColumn.END] >= first) & pods[verdicts[:, VerdictColumn.POD]]
    attempts = tables.attempts.rows
    tried = _attempts_that_stay(attempts, pods, first)

    changes = np.zeros(len(tables.seconds), np.bool_)
    changes[0] = True
    changes[first:] = True
    for starts in (
        lives[pods][:, [Life.CREATED, Life.WAITS_FROM, Life.WAITS_TO]].ravel(),
        placements[stays][:, [PlacementColumn.START, PlacementColumn.END]].ravel(),
        versions[lasts, VersionColumn.START],
        verdicts[speaks, VerdictColumn.CHANGE],
        attempts[tried, AttemptColumn.CHANGE],
    ):
        changes[starts[starts < len(changes)]] = True
    # A change that stays speaks only of pods that stay.
    of_pods = tables.changes.rows[:, ChangeColumn.POD]
    pods[of_pods[first:][of_pods[first:] >= 0]] = True
    nodes = np.zeros(len(tables.node_names), np.bool_)
    of_nodes = tables.changes.rows[changes, ChangeColumn.NODE]
    nodes[of_nodes[of_nodes >= 0]] = True
    nodes[placements[stays, PlacementColumn.NODE]] = True
    nodes[versions[lasts, VersionColumn.NODE]] = True
    amounts = np.zeros(len(tables.amounts), np.bool_)
    amounts[[pod.amounts for pod, is_here in zip(tables.pods, pods, strict=True) if is_here]] = True
    amounts[placements[stays, PlacementColumn.AMOUNTS]] = True
    amounts[versions[lasts, VersionColumn.AMOUNTS]] = True

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
    of_pods = attempts[~tried, AttemptColumn.POD]
    lives[:, Life.FORGOTTEN_ATTEMPTS] += np.bincount(of_pods, minlength=len(lives))
    _keep(tables, renumbering, _Stays(changes, pods, nodes, amounts, stays, lasts, speaks, tried))
    return renumbering


class _Stays(NamedTuple):
    """By old number: whether the row stays."""

    changes: Mask
    pods: Mask
    nodes: Mask
    amounts: Mask
    placements: Mask
    versions: Mask
    verdicts: Mask
    attempts: Mask


def _attempts_that_stay(attempts: Rows, pods: Mask, first: int) -> Mask:
    """Those since the first change, and the last one of each pod."""
    of_pods = attempts[:, AttemptColumn.POD]
    is_last = _is_last_of(of_pods, len(pods))
    return pods[of_pods] & (is_last | (attempts[:, AttemptColumn.CHANGE] >= first))


def _is_last_of(of_pods: Rows, pod_count: int) -> Mask:
    """By row: whether no later row is about the same pod."""
    numbers = np.arange(len(of_pods))
    last = np.zeros(pod_count, np.int64)
    last[of_pods] = numbers
    return last[of_pods] == numbers


def _new_numbers(stays: Mask) -> Rows:
    return np.where(stays, np.cumsum(stays) - 1, -1)


def _keep(tables: Tables, to: Renumbering, stays: _Stays) -> None:
    """Drop the rows that are forgotten, and put the new numbers into the others."""
    tables.seconds.replace(tables.seconds.rows[stays.changes])
    changes = tables.changes.rows[stays.changes]
    for column, numbers in ((ChangeColumn.POD, to.pods), (ChangeColumn.NODE, to.nodes)):
        old = changes[:, column]
        changes[:, column] = np.where(old >= 0, numbers[old], -1)
    tables.changes.replace(changes)

    moments = _Moments(stays.changes)
    lives = tables.lives.rows[stays.pods]
    for column in (Life.CREATED, Life.GONE, Life.WAITS_FROM, Life.WAITS_TO):
        lives[:, column] = moments.new(lives[:, column])
    tables.lives.replace(lives)

    placements = tables.placements.rows[stays.placements]
    placements[:, PlacementColumn.POD] = to.pods[placements[:, PlacementColumn.POD]]
    placements[:, PlacementColumn.NODE] = to.nodes[placements[:, PlacementColumn.NODE]]
    placements[:, PlacementColumn.AMOUNTS] = to.amounts[placements[:, PlacementColumn.AMOUNTS]]
    for column in (PlacementColumn.START, PlacementColumn.END):
        placements[:, column] = moments.new(placements[:, column])
    tables.placements.replace(placements)

    versions = tables.versions.rows[stays.versions]
    versions[:, VersionColumn.NODE] = to.nodes[versions[:, VersionColumn.NODE]]
    versions[:, VersionColumn.AMOUNTS] = to.amounts[versions[:, VersionColumn.AMOUNTS]]
    for column in (VersionColumn.START, VersionColumn.END):
        versions[:, column] = moments.new(versions[:, column])
    tables.versions.replace(versions)

    attempts = tables.attempts.rows[stays.attempts]
    attempts[:, AttemptColumn.CHANGE] = moments.new(attempts[:, AttemptColumn.CHANGE])
    attempts[:, AttemptColumn.POD] = to.pods[attempts[:, AttemptColumn.POD]]
    tables.attempts.replace(attempts)

    verdicts = tables.verdicts.rows[stays.verdicts]
    verdicts[:, VerdictColumn.POD] = to.pods[verdicts[:, VerdictColumn.POD]]
    for column in (VerdictColumn.CHANGE, VerdictColumn.END):
        verdicts[:, column] = moments.new(verdicts[:, column])
    tables.verdicts.replace(verdicts)

    tables.pods = [pod for pod, is_here in zip(tables.pods, stays.pods, strict=True) if is_here]
    if not stays.amounts.all():
        tables.pods = [_renumbered(pod, to) for pod in tables.pods]
    tables.nodes = [
        one for one, is_here in zip(tables.nodes, stays.versions, strict=True) if is_here
    ]
    tables.node_names = [
        name for name, is_here in zip(tables.node_names, stays.nodes, strict=True) if is_here
    ]
    tables.amounts = [
        one for one, is_here in zip(tables.amounts, stays.amounts, strict=True) if is_here
    ]


def _renumbered(pod: PodRow, to: Renumbering) -> PodRow:
    """A new row, because a timeline that was made before has the old one."""
    return PodRow(
        name=pod.name,
        uid=pod.uid,
        priority=pod.priority,
        profile=pod.profile,
        amounts=int(to.amounts[pod.amounts]),
    )


@final
class _Moments:
    """Old changes as new ones. A change that is forgotten becomes the next one that stays."""

    def __init__(self, stays: Mask) -> None:
        self._old = np.flatnonzero(stays)

    def new(self, changes: Rows) -> Rows:
        return np.where(changes == NEVER, NEVER, np.searchsorted(self._old, changes))
