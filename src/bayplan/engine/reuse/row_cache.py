"""Answers of one row-wise plugin about all pods that it cannot tell apart, row by row.

A kept answer is true for its row until the row changes in a facet that the plugin reads: then it
is forgotten, and asked again when somebody needs it. Answers are kept in the narrowest form that
holds them, for there may be thousands of pods' likes.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from bayplan.framework.arithmetic import uniform, uniform_score
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.single_node import verdicts_of
from bayplan.framework.status import Rejection
from bayplan.framework.types import Verdict
from bayplan.state.columns import Mask, NodeMask, NodeScores, Rows
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import NodeView

UNKNOWN = 0
PASSES = 1

#: What a byte holds.
_NARROW_MAX = 255

#: Answers about rows that are alike are remembered by so many of their numbers.
ALIKE_MAX = 1024


@dataclass(slots=True)
class RowCounts:
    """How many rows an instance was asked about, and how many it was not."""

    asked: int = 0
    kept: int = 0


class _Kept(ABC):
    """What is known of which rows, and up to which change."""

    __slots__ = ("_of_alike", "_table", "bytes_counted", "facets", "generation", "like_count")

    def __init__(self, table: NodeTable, facets: int, by_amounts: bool = False) -> None:
        """``by_amounts``: rows of the same amounts have the same answer."""
        self._table = table
        #: By the number of rows that are alike, what one of them was answered.
        self._of_alike: dict[int, int] | None = {} if by_amounts else None
        # A plain integer: arithmetic with flags is slow.
        self.facets = int(facets)
        self.generation = table.log.generation
        #: How many likes of pods these answers serve.
        self.like_count = 0
        self.bytes_counted = 0

    @property
    def by_amounts(self) -> bool:
        return self._of_alike is not None

    def recall(self, row: int) -> int | None:
        """Learn what was answered about a row that is alike. None: nothing was."""
        if self._of_alike is None:
            return None
        found = self._of_alike.get(self._table.resources.alike.of_row(row))
        if found is not None:
            self._put(row, found)
        return found

    def renew(self, since: int, row: int, number: int, *, is_wanted: bool = True) -> bool:
        """The amounts of one row, and nothing else, changed after ``since``: learn what was
        answered about one that is alike, by their ``number``. Where nothing was, False, or, if it
        is not wanted, forget the row."""
        if self.generation != since or self._of_alike is None:
            return False
        found = self._of_alike.get(number)
        if found is not None:
            self._put(row, found)
        elif is_wanted:
            return False
        else:
            self._forget_one(row)
        self.generation = self._table.log.generation
        return True

    def _learn_alike(self, row: int, answer: int) -> None:
        of_alike = self._of_alike
        if of_alike is not None:
            if len(of_alike) >= ALIKE_MAX:
                of_alike.clear()
            of_alike[self._table.resources.alike.of_row(row)] = answer

    def _forget_alike(self) -> None:
        if self._of_alike:
            self._of_alike.clear()

    def keep_up(self, since: int, changes: Iterable[tuple[int, int]]) -> None:
        """Forget rows that changed. ``changes``: (row, facets) of all after ``since``."""
        if self.generation != since:
            self.catch_up()
            return
        for row, facets in changes:
            if facets & self.facets:
                self._forget_one(row)
        self.generation = self._table.log.generation

    def skip_to_now(self, since: int, facets: int) -> None:
        """The same, where all changes after ``since`` were in these facets."""
        if self.generation >= since and not facets & self.facets:
            self._grow(self._table.capacity)
            self.generation = self._table.log.generation
        else:
            self.catch_up()

    def catch_up(self) -> None:
        """Forget rows that changed since the last time."""
        log = self._table.log
        self._grow(self._table.capacity)
        if self.generation < log.generation:
            if log.all_rows_generation > self.generation:
                self._forget_alike()
            self._forget(log.rows_since(self.generation, self.facets))
            self.generation = log.generation

    def forget_all(self) -> None:
        """Something changed that no row tells of."""
        self._forget_alike()
        self._forget(slice(None))

    @abstractmethod
    def _put(self, row: int, answer: int) -> None: ...

    @abstractmethod
    def _grow(self, capacity: int) -> None: ...

    @abstractmethod
    def _forget(self, rows: Rows | slice) -> None: ...

    @abstractmethod
    def _forget_one(self, row: int) -> None: ...


@final
class CachedFilterResults(_Kept):
    """Of a Filter: by row, the number of its verdict."""

    __slots__ = ("_ids", "ids", "verdicts")

    def __init__(self, table: NodeTable, facets: int, by_amounts: bool = False) -> None:
        super().__init__(table, facets, by_amounts)
        #: uint8 or wider [rows]: UNKNOWN, PASSES, or a rejection's place in `verdicts`.
        self.ids: npt.NDArray[Any] = np.zeros(table.capacity, np.uint8)
        self.verdicts: list[Verdict] = [(), ()]
        self._ids: dict[Verdict, int] = {(): PASSES}

    @property
    def bytes_used(self) -> int:
        return self.ids.nbytes

    @property
    def may_reject(self) -> bool:
        """Whether any row was rejected so far."""
        return len(self.verdicts) > PASSES + 1

    def learn(self, rows: Rows, outcome: FilterOutcome) -> None:
        """What the plugin answered about these rows."""
        self.ids[rows] = PASSES
        if len(outcome.entries) == 1 and outcome.entries[0].codes is None:
            entry = outcome.entries[0]
            number = self._number(((entry.code, entry.reasons),))
            self.ids[rows[entry.positions]] = number
            return
        for position, verdict in verdicts_of(outcome).items():
            self.learn_one(int(rows[position]), verdict)

    def find(self, verdict: Verdict) -> int:
        """The verdict's number; -1: no row was given it."""
        return self._ids.get(verdict, -1)

    def learn_one(self, row: int, verdict: Verdict) -> int:
        """Returns the verdict's number."""
        number = self._number(verdict)
        self.ids[row] = number
        self._learn_alike(row, number)
        return number

    def rejections(self, nodes: NodeView, feasible: NodeMask) -> Sequence[Rejection]:
        """What the plugin would answer about nodes whose rows are known."""
        if not self.may_reject:
            return ()
        ids = self.ids[nodes.selection]
        counts = np.bincount(ids[feasible], minlength=len(self.verdicts))
        return [
            Rejection(ids == number, code, reasons)
            for number in np.flatnonzero(counts).tolist()
            for code, reasons in self.verdicts[number]
        ]

    def _number(self, verdict: Verdict) -> int:
        found = self._ids.get(verdict)
        if found is None:
            found = self._ids[verdict] = len(self.verdicts)
            self.verdicts.append(verdict)
            if found > np.iinfo(self.ids.dtype).max:
                self.ids = self.ids.astype(np.uint32)
        return found

    def _put(self, row: int, answer: int) -> None:
        self.ids[row] = answer

    def _grow(self, capacity: int) -> None:
        self.ids = _grown(self.ids, capacity)

    def _forget(self, rows: Rows | slice) -> None:
        self.ids[rows] = UNKNOWN

    def _forget_one(self, row: int) -> None:
        self.ids[row] = UNKNOWN


@final
class CachedScores(_Kept):
    """Of a Score: by row, the raw score. One that all rows have is kept once."""

    __slots__ = ("_same", "known", "scores")

    def __init__(self, table: NodeTable, facets: int, by_amounts: bool = False) -> None:
        super().__init__(table, facets, by_amounts)
        self.known: Mask = np.zeros(table.capacity, np.bool_)
        #: uint8 or int64 [rows]; None: every known row has the same.
        self.scores: npt.NDArray[Any] | None = None
        self._same = 0

    @property
    def bytes_used(self) -> int:
        return self.known.nbytes + (0 if self.scores is None else self.scores.nbytes)

    def learn(self, rows: Rows, raw: NodeScores) -> None:
        """What the plugin answered about these rows."""
        same = uniform_score(raw)
        if same is None:
            low, high = int(raw.min()), int(raw.max())
            same = low if low == high else None
        else:
            low = high = same
        if not self._is_all(same):
            self._room_for(low, high)[rows] = raw
        self.known[rows] = True

    def learn_one(self, row: int, score: int) -> None:
        self._put(row, score)
        self._learn_alike(row, score)

    def _put(self, row: int, answer: int) -> None:
        if self.scores is not None and 0 <= answer <= _NARROW_MAX:
            self.scores[row] = answer
        elif not self._is_all(answer):
            self._room_for(answer, answer)[row] = answer
        self.known[row] = True

    def of_row(self, row: int) -> int:
        return self._same if self.scores is None else self.scores.item(row)

    @property
    def same(self) -> int | None:
        """The score that every known row has."""
        return self._same if self.scores is None else None

    def of(self, nodes: NodeView) -> NodeScores:
        """int64[nodes]: the raw scores of nodes whose rows are known."""
        if self.scores is None:
            return uniform(self._same, len(nodes))
        return self.scores[nodes.selection].astype(np.int64)

    def _is_all(self, score: int | None) -> bool:
        """Whether this is the one score of all known rows, or can be."""
        if self.scores is not None or score is None:
            return False
        if score != self._same and not self.known.any():
            self._same = score
        return score == self._same

    def _room_for(self, low: int, high: int) -> npt.NDArray[Any]:
        is_narrow = low >= 0 and high <= _NARROW_MAX
        if self.scores is None:
            is_narrow = is_narrow and 0 <= self._same <= _NARROW_MAX
            dtype = np.uint8 if is_narrow else np.int64
            self.scores = np.full(len(self.known), self._same, dtype)
        elif not is_narrow and self.scores.dtype == np.uint8:
            self.scores = self.scores.astype(np.int64)
        return self.scores

    def _grow(self, capacity: int) -> None:
        self.known = _grown(self.known, capacity)
        if self.scores is not None:
            self.scores = _grown(self.scores, capacity)

    def _forget(self, rows: Rows | slice) -> None:
        self.known[rows] = False

    def _forget_one(self, row: int) -> None:
        self.known[row] = False


def _grown(values: npt.NDArray[Any], capacity: int) -> npt.NDArray[Any]:
    if len(values) == capacity:
        return values
    grown = np.zeros(capacity, values.dtype)
    grown[: len(values)] = values
    return grown
