"""Rows by total score, each score's rows in the order in which ties are drawn.

Taking a row out, putting one in, counting the best and finding the k-th of them cost microseconds
at any number of nodes: a score's rows are a sorted array of their places in the draw, searched by
halves; what moves in it is a block of memory.
"""

from array import array
from bisect import bisect_left, insort
from typing import final

import numpy as np

from bayplan.state.columns import Int64s, Rows, starts_of_runs

#: Places in the draw; four bytes each.
_PLACE = "i"


@final
class ScoreIndex:
    """Who is best. Rows are told by their places in the draw."""

    __slots__ = ("_levels", "_of_score")

    def __init__(self, totals: Int64s, places: Rows) -> None:
        """``places``: of some rows, ascending; ``totals``: of the same rows."""
        order = np.argsort(totals, kind="stable")
        ordered, sorted_totals = places[order].astype(np.int32), totals[order]
        starts = starts_of_runs(sorted_totals)
        #: Scores that some row has, ascending.
        self._levels: list[int] = sorted_totals[starts].tolist()
        self._of_score: dict[int, array[int]] = {}
        parts = np.split(ordered, starts[1:]) if len(ordered) else []
        for score, part in zip(self._levels, parts, strict=True):
            self._of_score[score] = array(_PLACE, part.tobytes())

    def add(self, place: int, total: int) -> None:
        level = self._of_score.get(total)
        if level is None:
            insort(self._levels, total)
            self._of_score[total] = array(_PLACE, (place,))
        else:
            level.insert(bisect_left(level, place), place)

    def remove(self, place: int, total: int) -> None:
        level = self._of_score[total]
        at = bisect_left(level, place)
        assert level[at] == place, f"place {place} is not at {total}"
        if len(level) > 1:
            del level[at]
        else:
            del self._of_score[total]
            del self._levels[bisect_left(self._levels, total)]

    def move(self, place: int, before: int, now: int) -> None:
        """A row that is here has another total."""
        self.remove(place, before)
        self.add(place, now)

    def best(self) -> "array[int]":
        """Places of the rows with the highest total, ascending; there is at least one row."""
        return self._of_score[self._levels[-1]]

    @property
    def bytes_used(self) -> int:
        return sum(level.itemsize * len(level) for level in self._of_score.values())
