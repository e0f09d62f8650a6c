"""ScoreIndex: rows by total score, and the rows of one score in draw order.

A `CellIndex` has one such index for each cell of `NodeCells`.

It takes microseconds at any number of nodes to remove a row, to add a row, to count the best rows,
or to read the k-th of them: the rows of one score are a sorted array of places in the draw order,
in blocks if there are many. A change moves one block of memory.
"""

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from itertools import chain, islice, repeat
from typing import Protocol, final

import numpy as np

from bayplan.state.columns import Int64s, Rows, starts_of_runs

#: Places in the draw order; four bytes each.
_PLACE = "i"
#: A change moves all later places of an array. A longer array is stored in blocks.
_ARRAY_MAX = 2**15
_BLOCK = 2**13


@final
class PlaceBlocks:
    """Many places, ascending, in blocks: a change moves the places of one block."""

    __slots__ = ("_count", "_lasts", "blocks")

    def __init__(self, places: "array[int]") -> None:
        #: Ascending; only this class writes.
        self.blocks = [places[at : at + _BLOCK] for at in range(0, len(places), _BLOCK)]
        #: The last place of each block.
        self._lasts = [block[-1] for block in self.blocks]
        self._count = len(places)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self.blocks)

    def __getitem__(self, index: int) -> int:
        for block in self.blocks:
            if index < len(block):
                return block[index]
            index -= len(block)
        raise IndexError("fewer places than the index")

    def first(self, count_max: int) -> "array[int]":
        """The first places, at most ``count_max`` of them."""
        return array(_PLACE, islice(self, count_max))

    def add(self, place: int) -> None:
        at = min(bisect_left(self._lasts, place), len(self._lasts) - 1)
        block = self.blocks[at]
        block.insert(bisect_left(block, place), place)
        self._lasts[at] = block[-1]
        self._count += 1
        if len(block) > 2 * _BLOCK:
            self.blocks[at : at + 1] = block[:_BLOCK], block[_BLOCK:]
            self._lasts.insert(at, block[_BLOCK - 1])

    def remove(self, place: int) -> None:
        at = bisect_left(self._lasts, place)
        block = self.blocks[at]
        _remove(block, place)
        self._count -= 1
        if len(block):
            self._lasts[at] = block[-1]
        else:
            del self.blocks[at], self._lasts[at]


def _remove(places: "array[int]", place: int) -> None:
    at = bisect_left(places, place)
    assert places[at] == place, f"place {place} is not there"
    del places[at]


class TotalIndex(Protocol):
    """An index that follows the totals of rows. A row is named by its place in the draw order."""

    def add(self, place: int, total: int) -> None: ...
    def remove(self, place: int, total: int) -> None: ...
    def move(self, place: int, before: int, now: int) -> None:
        """Move a row of this index to its new total."""
        ...


@final
class ScoreIndex:
    """The rows of a ranking by total score. A row is named by its place in the draw order."""

    __slots__ = ("of_score", "scores")

    def __init__(self, totals: Int64s, places: Rows) -> None:
        """``places``: of some rows, ascending; ``totals``: of the same rows."""
        order = np.argsort(totals, kind="stable")
        ordered, sorted_totals = places[order].astype(np.int32), totals[order]
        starts = starts_of_runs(sorted_totals)
        #: The scores that some row has, ascending. Only this class writes.
        self.scores: list[int] = sorted_totals[starts].tolist()
        #: By score, the places of its rows; only this class writes.
        self.of_score: dict[int, array[int] | PlaceBlocks] = {}
        parts = np.split(ordered, starts[1:]) if len(ordered) else []
        for score, part in zip(self.scores, parts, strict=True):
            self.of_score[score] = _stored(array(_PLACE, part.tobytes()))

    def add(self, place: int, total: int) -> None:
        places = self.of_score.get(total)
        if places is None:
            insort(self.scores, total)
            self.of_score[total] = array(_PLACE, (place,))
        elif isinstance(places, array):
            places.insert(bisect_left(places, place), place)
            if len(places) > _ARRAY_MAX:
                self.of_score[total] = PlaceBlocks(places)
        else:
            places.add(place)

    def remove(self, place: int, total: int) -> None:
        places = self.of_score[total]
        if isinstance(places, array):
            # This does what `_remove` does, without a call for each node that becomes full.
            at = bisect_left(places, place)
            assert places[at] == place, f"place {place} is not there"
            del places[at]
        else:
            places.remove(place)
        if not len(places):
            del self.of_score[total]
            del self.scores[bisect_left(self.scores, total)]

    def move(self, place: int, before: int, now: int) -> None:
        """Move a row of this index to its new total."""
        if before == now:
            return
        places, equal = self.of_score[before], self.of_score.get(now)
        is_small = equal is None or (isinstance(equal, array) and len(equal) < _ARRAY_MAX)
        if not (is_small and isinstance(places, array)):
            self.remove(place, before)
            self.add(place, now)
            return
        # The usual case, without further calls.
        at = bisect_left(places, place)
        assert places[at] == place, f"place {place} is not there"
        del places[at]
        if not places:
            del self.of_score[before]
            del self.scores[bisect_left(self.scores, before)]
        if isinstance(equal, array):
            equal.insert(bisect_left(equal, place), place)
        else:
            insort(self.scores, now)
            self.of_score[now] = array(_PLACE, (place,))

    @property
    def best_score(self) -> int:
        """The highest total; there is at least one row."""
        return self.scores[-1]

    def best(self) -> "array[int] | PlaceBlocks":
        """Places of the rows with the highest total, ascending; there is at least one row."""
        return self.of_score[self.scores[-1]]

    def first(self, count_max: int) -> "array[int]":
        """Places of the best rows, best first, at most so many."""
        first = array(_PLACE)
        at = len(self.scores)
        while len(first) < count_max and at:
            at -= 1
            places = self.of_score[self.scores[at]]
            count = count_max - len(first)
            first += places[:count] if isinstance(places, array) else places.first(count)
        return first

    def first_with_totals(self, count_max: int) -> list[tuple[int, int]]:
        """(score, place) of the best rows, best first, at most so many."""
        first: list[tuple[int, int]] = []
        for score in reversed(self.scores):
            places = islice(self.of_score[score], count_max - len(first))
            first += zip(repeat(score), places, strict=False)
            if len(first) == count_max:
                break
        return first

    def validate(self, totals: Mapping[int, int]) -> None:
        """``totals``: by place. Raises AssertionError where the index holds anything else."""
        assert self.scores == sorted(self.of_score), "the scores are not those of the rows"
        indexed: dict[int, int] = {}
        for score, places in self.of_score.items():
            assert len(places) > 0 and list(places) == sorted(places), f"places of {score}"
            indexed |= dict.fromkeys(places, score)
        assert indexed == totals, f"the index has {indexed}, the rows have {dict(totals)}"

    @property
    def bytes_used(self) -> int:
        return array(_PLACE).itemsize * sum(map(len, self.of_score.values()))


def _stored(places: "array[int]") -> "array[int] | PlaceBlocks":
    return PlaceBlocks(places) if len(places) > _ARRAY_MAX else places


@final
class CellIndex:
    """A `ScoreIndex` per cell, for nodes by their places in the draw order."""

    __slots__ = ("bests", "cell_of_place", "is_reshaped", "of_cell", "sizes")

    def __init__(self, cell_of_place: "array[int]") -> None:
        self.cell_of_place = cell_of_place
        #: Read by others, written by this class alone.
        self.of_cell: list[ScoreIndex] = []
        #: The number of nodes of each cell, and the highest total of one of them; 0 for an empty
        #: cell.
        self.sizes = array("q")
        self.bests = array("q")
        #: Whether a cell became empty, or stopped being empty, since a reader set this to false.
        self.is_reshaped = True

    def open(self, totals: Int64s, places: Rows) -> None:
        """Open one more cell. ``places``: of its nodes, ascending."""
        index = ScoreIndex(totals, places)
        self.of_cell.append(index)
        self.sizes.append(len(places))
        self.bests.append(index.best_score if len(places) else 0)

    def add(self, place: int, total: int) -> None:
        cell = self.cell_of_place[place]
        index = self.of_cell[cell]
        index.add(place, total)
        self.sizes[cell] += 1
        self.is_reshaped |= self.sizes[cell] == 1
        self.bests[cell] = index.best_score

    def remove(self, place: int, total: int) -> None:
        cell = self.cell_of_place[place]
        index = self.of_cell[cell]
        index.remove(place, total)
        self.sizes[cell] -= 1
        if self.sizes[cell]:
            self.bests[cell] = index.best_score
        else:
            self.bests[cell] = 0
            self.is_reshaped = True

    def move(self, place: int, before: int, now: int) -> None:
        """Move a node to its new total."""
        cell = self.cell_of_place[place]
        index = self.of_cell[cell]
        index.move(place, before, now)
        self.bests[cell] = index.best_score

    def validate(self, totals: Mapping[int, int]) -> None:
        """``totals``: by place. Raises AssertionError where the indexes hold anything else."""
        by_cell: list[dict[int, int]] = [{} for _ in self.of_cell]
        for place, total in totals.items():
            by_cell[self.cell_of_place[place]][place] = total
        for cell, (index, expected) in enumerate(zip(self.of_cell, by_cell, strict=True)):
            index.validate(expected)
            assert self.sizes[cell] == len(expected), f"size of cell {cell}"
            assert self.bests[cell] == max(expected.values(), default=0), f"best of cell {cell}"

    @property
    def bytes_used(self) -> int:
        return 4 * len(self.cell_of_place) + sum(index.bytes_used for index in self.of_cell)


def as_array(totals: "array[int]") -> Int64s:
    """The same memory."""
    return np.frombuffer(totals, np.int64)
