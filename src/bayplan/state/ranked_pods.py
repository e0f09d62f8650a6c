"""The pods of every node, ordered by importance, as matrices.

A search for victims reads the end of each row: the pods below a priority are the last ones. Within
a row pods are ordered by priority, highest first, then by start time, earliest first, then by
arrival on the node. Where pods of groups outrank plain pods, those of equal priority come before
them. The columns behind the last pod hold NO_PRIORITY. A pod that has not started counts as started
last. Upstream: framework/preemption/util.go, MoreImportantVictim.

The matrices are made at their first use. From then on only changed rows are ranked again.
"""

from collections import deque
from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import inf
from operator import itemgetter
from typing import TypeVar, final

import numpy as np
import numpy.typing as npt

from bayplan.clock import epoch_of
from bayplan.state.change_log import ChangeLog, Facet
from bayplan.state.columns import Rows, places_of
from bayplan.state.pods import PodInfo

#: The value in the columns behind the last pod of a row; higher than every priority.
NO_PRIORITY = 2**62

_Scalar = TypeVar("_Scalar", bound=np.generic)

Ranked = npt.NDArray[np.int64]  # [rows, places]

_PLACES_FIRST = 8
#: For how many turns the ranked rows are listed. A turn is one ranking of one row.
_TURNS_REMEMBERED = 64
#: More rows than these are ranked together, as arrays.
_FEW_ROWS = 32
_FIRST = itemgetter(0)
_epoch_of = lru_cache(maxsize=4096)(epoch_of)


def started_seconds(pod: PodInfo) -> float:
    """The start time of a pod in seconds since 1970; infinity if it has not started."""
    stamp = pod.status.start_time
    seconds = _epoch_of(stamp) if stamp else None
    return inf if seconds is None else seconds


@final
class RankedPods:
    """Matrices [rows, places]. Readers call `catch_up` first."""

    def __init__(self, pods: Sequence[dict[str, PodInfo]]) -> None:
        """``pods``: for each row of the node table, uid → pod; read when a row is ranked."""
        self._pods = pods
        #: Whether pods of groups outrank plain pods of equal priority; set before any ranking.
        self.members_outrank = False
        self.generation = -1
        #: Rows on which a pod has started since the last `catch_up`. The table's log has the other
        #: changes.
        self._restarted: set[int] = set()
        self.priorities: Ranked = np.full((0, _PLACES_FIRST), NO_PRIORITY, np.int64)
        self.starts = np.full((0, _PLACES_FIRST), inf, np.float64)
        #: The number of rankings of a row so far.
        self.turn: int = 0
        #: The rows of the newest turns, oldest first.
        self._newest: deque[int] = deque(maxlen=_TURNS_REMEMBERED)
        #: int64[rows]: the turn in which each row was last ranked.
        self.turns: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        #: int64[rows]: the lowest priority of each row.
        self.lowest: npt.NDArray[np.int64] = np.full(0, NO_PRIORITY, np.int64)
        #: Resource → int64[rows, places], for each resource that was read.
        self._amounts: dict[str, Ranked] = {}
        self._ranked: list[tuple[PodInfo, ...]] = []

    def importance(self, pod: PodInfo) -> tuple[int, bool, float]:
        """Sorts pods, the most important first."""
        spec = pod.shape.spec
        is_outranked = self.members_outrank and spec.scheduling_group is None
        return -(spec.priority or 0), is_outranked, started_seconds(pod)

    def note_start(self, row: int) -> None:
        """Record that a pod of this row has started; not needed while `generation` is -1."""
        if self.generation >= 0:
            self._restarted.add(row)

    def catch_up(self, log: ChangeLog) -> None:
        """Rank the rows that changed since the last call."""
        if self.generation == log.generation and not self._restarted:
            return
        rows: list[int] = log.rows_since(self.generation, Facet.PODS).tolist()
        if self.generation < 0:
            rows = list(range(len(self._pods)))
        self._grow(len(self._pods), max((len(self._pods[row]) for row in rows), default=0))
        changed = list({*rows, *self._restarted})
        if len(changed) > _FEW_ROWS:
            self._rank_many(changed)
        else:
            for row in changed:
                self._rank(row)
        self._restarted.clear()
        self.generation = log.generation

    def rows_since(self, turn: int) -> Rows:
        """The rows that were ranked after ``turn``. A row may occur twice."""
        count = self.turn - turn
        if count > len(self._newest):
            return places_of(self.turns > turn)
        return np.array(list(self._newest)[len(self._newest) - count :], np.intp)

    def pods(self, row: int) -> tuple[PodInfo, ...]:
        """The pods of a row, the most important first. Some may be older versions."""
        return self._ranked[row]

    def amounts(self, resource: str) -> Ranked:
        """int64[rows, places]: the request of each pod; 0 behind the last pod."""
        array = self._amounts.get(resource)
        if array is None:
            array = self._amounts[resource] = np.zeros(self.priorities.shape, np.int64)
            rows, places = _cells([len(pods) for pods in self._ranked])
            array[rows, places] = _requested([p for pods in self._ranked for p in pods], resource)
        return array

    def _rank(self, row: int) -> None:
        ranks = [(self.importance(pod), pod) for pod in self._pods[row].values()]
        ranks.sort(key=_FIRST)
        pods, count = tuple([pod for _, pod in ranks]), len(ranks)
        self._ranked[row] = pods
        self.turn += 1
        self.turns[row] = self.turn
        self._newest.append(row)
        self.priorities[row, count:] = NO_PRIORITY
        self.priorities[row, :count] = [-rank[0] for rank, _ in ranks]
        self.starts[row, :count] = [rank[2] for rank, _ in ranks]
        self.lowest[row] = -ranks[-1][0][0] if ranks else NO_PRIORITY
        for resource, amounts in self._amounts.items():
            amounts[row, count:] = 0
            amounts[row, :count] = _requested(pods, resource)

    def _rank_many(self, rows: Sequence[int]) -> None:
        """The same as `_rank` for each of these rows."""
        pods_by_row = [self._pods[row].values() for row in rows]
        counts = [len(pods) for pods in pods_by_row]
        pods = [pod for each in pods_by_row for pod in each]
        ranks = [self.importance(pod) for pod in pods]
        priorities = np.array([-negative for negative, _, _ in ranks], np.int64)
        outranked = np.array([is_outranked for _, is_outranked, _ in ranks], np.bool_)
        starts = np.array([seconds for _, _, seconds in ranks], np.float64)
        owners, places = _cells(counts)
        order: Rows = np.lexsort((starts, outranked, -priorities, owners))
        indices: list[int] = order.tolist()
        pods, priorities = [pods[index] for index in indices], priorities[order]
        all_rows = np.array(rows, np.intp)
        at = all_rows[owners]
        self.turns[all_rows] = np.arange(self.turn + 1, self.turn + 1 + len(rows))
        self.turn += len(rows)
        self._newest.extend(rows)
        self.priorities[all_rows] = NO_PRIORITY
        self.priorities[at, places] = priorities
        self.starts[at, places] = starts[order]
        for resource, amounts in self._amounts.items():
            amounts[all_rows] = 0
            amounts[at, places] = _requested(pods, resource)
        end = 0
        for row, count in zip(rows, counts, strict=True):
            begin, end = end, end + count
            self._ranked[row] = tuple(pods[begin:end])
            self.lowest[row] = priorities[end - 1] if count else NO_PRIORITY

    def _grow(self, row_count: int, place_count: int) -> None:
        rows, places = self.priorities.shape
        self._ranked += [()] * (row_count - len(self._ranked))
        if row_count <= rows and place_count <= places:
            return
        rows = rows if row_count <= rows else max(2 * rows, row_count)
        places = places if place_count <= places else max(2 * places, place_count)
        self.priorities = _grown(self.priorities, rows, places, NO_PRIORITY)
        self.starts = _grown(self.starts, rows, places, inf)
        self._amounts = {n: _grown(a, rows, places, 0) for n, a in self._amounts.items()}
        lowest = np.full(rows, NO_PRIORITY, np.int64)
        lowest[: len(self.lowest)] = self.lowest
        self.lowest = lowest
        self.turns = np.pad(self.turns, (0, rows - len(self.turns)))


def _cells(counts: Sequence[int]) -> tuple[Rows, Rows]:
    """(the row, the place within the row) of each pod. ``counts``: pods by row."""
    by_row = np.array(counts, np.intp)
    rows = np.repeat(np.arange(len(by_row)), by_row)
    begins = np.cumsum(by_row) - by_row
    return rows, np.arange(len(rows)) - begins[rows]


def _requested(pods: Sequence[PodInfo], resource: str) -> list[int]:
    return [pod.shape.requests.get(resource, 0) for pod in pods]


def _grown(old: npt.NDArray[_Scalar], rows: int, places: int, empty: float) -> npt.NDArray[_Scalar]:
    grown = np.full((rows, places), empty, old.dtype)
    grown[: old.shape[0], : old.shape[1]] = old
    return grown


@final
class RankedView:
    """The ranked pods of some nodes, [nodes, places]; valid in one cycle."""

    def __init__(self, ranked: RankedPods, index: Rows | slice) -> None:
        """``index``: the rows of these nodes; a slice from 0: their positions are their rows."""
        self._ranked = ranked
        self._index = index

    @cached_property
    def _rows(self) -> Rows:
        index = self._index
        if not isinstance(index, slice):
            return index
        row_count: int = index.stop
        return np.arange(row_count)

    def take(self, positions: Rows) -> "RankedView":
        """The pods of the nodes at these positions."""
        return RankedView(self._ranked, self._rows[positions])

    @cached_property
    def priorities(self) -> Ranked:
        return self._ranked.priorities[self._rows]

    @cached_property
    def starts(self) -> npt.NDArray[np.float64]:
        """float64[nodes, places]: start times in seconds since 1970; infinity for a pod that has
        not started."""
        return self._ranked.starts[self._rows]

    @property
    def lowest(self) -> npt.NDArray[np.int64]:
        """int64[nodes]: the lowest priority of a node's pods; NO_PRIORITY without pods."""
        return self._ranked.lowest[self._rows]

    def lowest_at(self, positions: Rows) -> npt.NDArray[np.int64]:
        """The same of the nodes at these positions: int64[positions]."""
        index = self._index
        return self._ranked.lowest[positions if isinstance(index, slice) else index[positions]]

    @property
    def turn(self) -> int:
        """Increases whenever a pod of any node is added, removed or started."""
        return self._ranked.turn

    def rows_since(self, turn: int) -> Rows:
        """The rows of the table, of any node, whose pods changed after ``turn``. A row may occur
        twice."""
        return self._ranked.rows_since(turn)

    def importance(self, pod: PodInfo) -> tuple[int, bool, float]:
        """Sorts pods, the most important first."""
        return self._ranked.importance(pod)

    def amounts(self, resource: str) -> Ranked:
        """int64[nodes, places]: the request of each pod; 0 behind the last pod."""
        return self._ranked.amounts(resource)[self._rows]

    def pods(self, position: int) -> tuple[PodInfo, ...]:
        """The pods of one node; some may be older versions."""
        index = self._index
        return self._ranked.pods(position if isinstance(index, slice) else int(index[position]))
