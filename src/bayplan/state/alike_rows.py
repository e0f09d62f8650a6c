"""AlikeRows: a number for every row, the same only where nodes offer the same amounts and hold pods
of the same shapes: so that the same amounts, and host ports, are taken of them.

A pod of one shape takes rows of one number to one other, and its leaving takes them back: so rows
that were filled alike are known to be alike without a look at them. Rows that came to the same by
other ways may have other numbers.
"""

from collections.abc import Hashable
from itertools import count
from typing import final

_NOTHING = 0

#: So many ways from one number to another are remembered.
_WAYS_MAX = 1 << 14


@final
class AlikeRows:
    """Numbers by row. One that was given up is never given again."""

    __slots__ = ("_empty", "_next", "_of_row", "_ways")

    def __init__(self, capacity: int) -> None:
        #: At first no row offers anything.
        self._of_row = [_NOTHING] * capacity
        self._next = count(1)
        #: By what the node offers, where nobody takes anything.
        self._empty: dict[Hashable, int] = {}
        #: (number, shape of a pod, whether it comes) → number.
        self._ways: dict[tuple[int, Hashable, bool], int] = {}

    def of_row(self, row: int) -> int:
        return self._of_row[row]

    def grow(self, capacity: int) -> None:
        self._of_row += [_NOTHING] * (capacity - len(self._of_row))

    def set_empty(self, row: int, offered: Hashable) -> None:
        """The row offers this, and nobody takes anything of it."""
        number = self._empty.get(offered)
        if number is None:
            self._forget_if_many()
            number = self._empty[offered] = next(self._next)
        self._of_row[row] = number

    def set_unlike(self, row: int) -> None:
        """The row is like no other."""
        self._of_row[row] = next(self._next)

    def change(self, row: int, shape: Hashable, *, comes: bool) -> None:
        """A pod of this shape comes to the row, or leaves it."""
        before = self._of_row[row]
        after = self._ways.get((before, shape, comes))
        if after is None:
            self._forget_if_many()
            after = self._ways[before, shape, comes] = next(self._next)
            self._ways[after, shape, not comes] = before
        self._of_row[row] = after

    def _forget_if_many(self) -> None:
        if len(self._ways) + len(self._empty) > _WAYS_MAX:
            self._ways.clear()
            self._empty.clear()
