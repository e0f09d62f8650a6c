"""ScoreIndex: rows by total score, each score's rows in draw order.

Removing a row, adding a row, counting the best rows and reading the k-th of them take microseconds
at any number of nodes: the rows of one score are a sorted array of places in the draw order, which
is searched by bisection. A change moves one block of memory.
"""

from array import array
from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import final

import numpy as np

from bayplan.state.columns import Int64s, Rows, starts_of_runs

#: Places in the draw order; four bytes each.
_PLACE = "i"


@final
class ScoreIndex:
    """Rows are identified by their places in the draw order."""

    __slots__ = ("_of_score", "_scores")

    def __init__(self, totals: Int64s, places: Rows) -> None:
        """``places``: of some rows, ascending; ``totals``: of the same rows."""
        order = np.argsort(totals, kind="stable")
        ordered, sorted_totals = places[order].astype(np.int32), totals[order]
        starts = starts_of_runs(sorted_totals)
        #: Scores that some row has, ascending.
        self._scores: list[int] = sorted_totals[starts].tolist()
        self._of_score: dict[int, array[int]] = {}
        parts = np.split(ordered, starts[1:]) if len(ordered) else []
        for score, part in zip(self._scores, parts, strict=True):
            self._of_score[score] = array(_PLACE, part.tobytes())

    def add(self, place: int, total: int) -> None:
        places = self._of_score.get(total)
        if places is None:
            insort(self._scores, total)
            self._of_score[total] = array(_PLACE, (place,))
        else:
            places.insert(bisect_left(places, place), place)

    def remove(self, place: int, total: int) -> None:
        places = self._of_score[total]
        at = bisect_left(places, place)
        assert places[at] == place, f"place {place} is not at {total}"
        if len(places) > 1:
            del places[at]
        else:
            del self._of_score[total]
            del self._scores[bisect_left(self._scores, total)]

    def move(self, place: int, before: int, now: int) -> None:
        """The total of a row of this index changed."""
        self.remove(place, before)
        self.add(place, now)

    def best(self) -> "array[int]":
        """Places of the rows with the highest total, ascending; there is at least one row."""
        return self._of_score[self._scores[-1]]

    def validate(self, totals: Mapping[int, int]) -> None:
        """``totals``: by place. Raises AssertionError where the index holds anything else."""
        assert self._scores == sorted(self._of_score), "the scores are not those of the rows"
        indexed: dict[int, int] = {}
        for score, places in self._of_score.items():
            assert len(places) > 0 and list(places) == sorted(places), f"places of {score}"
            indexed |= dict.fromkeys(places, score)
        assert indexed == totals, f"the index has {indexed}, the rows have {dict(totals)}"

    @property
    def bytes_used(self) -> int:
        return sum(places.itemsize * len(places) for places in self._of_score.values())
