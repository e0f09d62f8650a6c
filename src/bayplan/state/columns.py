"""Arrays that grow, their read-only twins, and interned vocabularies.

Axes are named in the aliases: [nodes] is one value per row of the table or per position of a
view. Readers get the read-only twin of a column; writing to the twin raises.
"""

from collections.abc import Hashable, Iterable, Sequence
from itertools import islice
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]  # [nodes]
Int32s = npt.NDArray[np.int32]  # [nodes]
Floats = npt.NDArray[np.float64]  # [nodes]
Mask = npt.NDArray[np.bool_]  # [nodes]
Rows = npt.NDArray[np.intp]  # [some rows]

NodeScores = Int64s
NodeMask = Mask

INITIAL_CAPACITY = 64
#: Allocating a shorter array is as fast as reusing one.
_SMALL = 64
#: Columns of a stack before it grows.
_FIRST_PLACES = 4

T = TypeVar("T", bound=Hashable)


def is_any(mask: Mask) -> bool:
    """Whether a mask is true anywhere; argmax is faster than any."""
    return mask.size > 0 and mask.item(mask.argmax())


def all_true(count: int) -> Mask:
    """A new bool[count] of True; np.ones takes twice as long to call."""
    mask = np.empty(count, np.bool_)
    mask.fill(True)
    return mask


def places_of(mask: npt.NDArray[Any]) -> Rows:
    """Where a mask is true, ascending; np.flatnonzero takes twice as long to call."""
    return mask.nonzero()[0]


def as_positions(chosen: Rows | Mask | Sequence[int]) -> Rows:
    """Positions as intp[chosen nodes]: as they are, or where a mask is true."""
    positions = np.asarray(chosen)
    if positions.dtype == np.bool_:
        positions = np.flatnonzero(positions)
    return positions.astype(np.intp, copy=False)  # an empty list arrives as floats


def starts_of_runs(ordered: npt.NDArray[Any]) -> Rows:
    """The first place of each distinct value of an ascending array."""
    return places_of(
        np.append(np.ones(min(ordered.size, 1), np.bool_), ordered[1:] != ordered[:-1])
    )


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The distinct values, ascending; the first call of np.unique loads 10 ms of code."""
    ordered = np.sort(values)
    return ordered[starts_of_runs(ordered)]


class Vocabulary(Generic[T]):
    """Distinct values numbered in order of first appearance. Ids are never reused."""

    __slots__ = ("_ids", "values")

    def __init__(self) -> None:
        self._ids: dict[T, int] = {}
        self.values: list[T] = []

    def intern(self, value: T) -> int:
        value_id = self._ids.get(value)
        if value_id is None:
            value_id = len(self.values)
            self._ids[value] = value_id
            self.values.append(value)
        return value_id

    def intern_all(self, values: Iterable[T]) -> list[int]:
        """The ids of many values."""
        ids, previous_count = self._ids, len(self._ids)
        value_ids = [ids.setdefault(value, len(ids)) for value in values]
        self.values += islice(ids, previous_count, None)
        return value_ids

    def find(self, value: T) -> int | None:
        return self._ids.get(value)

    def __len__(self) -> int:
        return len(self.values)


class Column:
    """One value per row: ``values`` to write, ``lent`` the read-only twin of the same memory."""

    __slots__ = ("empty", "lent", "values")

    def __init__(self, capacity: int, dtype: npt.DTypeLike, empty: Any = 0) -> None:
        self.empty = empty
        self.lie_in(np.full(capacity, empty, dtype))

    def lie_in(self, values: npt.NDArray[Any]) -> None:
        """Use this memory for the column, with the values it holds."""
        self.values: npt.NDArray[Any] = values
        self.lent = read_only(values)

    def grow(self, capacity: int) -> None:
        old = self.values
        grown = np.full(capacity, self.empty, old.dtype)
        grown[: len(old)] = old
        self.lie_in(grown)

    def clear(self, row: int) -> None:
        self.values[row] = self.empty


class Stack:
    """Columns in one matrix, so that several columns can be read as one array. Initially zeros."""

    __slots__ = ("_lent", "_matrix", "columns")

    def __init__(self, capacity: int, dtype: npt.DTypeLike) -> None:
        #: By place.
        self.columns: list[Column] = []
        self._lie_in(np.zeros((_FIRST_PLACES, capacity), dtype))

    def add(self) -> Column:
        """One more column, at the next place."""
        place = len(self.columns)
        if place == len(self._matrix):
            self._lie_in(np.concatenate((self._matrix, np.zeros_like(self._matrix))))
        column = Column(0, self._matrix.dtype)
        column.lie_in(self._matrix[place])
        self.columns.append(column)
        return column

    def grow(self, capacity: int) -> None:
        grown = np.zeros((len(self._matrix), capacity), self._matrix.dtype)
        grown[:, : self._matrix.shape[1]] = self._matrix
        self._lie_in(grown)

    def lend(self, places: slice | list[int], rows: Rows | slice) -> npt.NDArray[Any]:
        """[places, rows]: a copy, or a read-only view if both are slices."""
        if isinstance(rows, slice):
            return self._lent[places, rows]
        if isinstance(places, slice):
            return self._lent[places].take(rows, axis=1)
        return self._lent[np.array(places)[:, None], rows]

    def _lie_in(self, matrix: npt.NDArray[Any]) -> None:
        self._matrix = matrix
        self._lent = read_only(matrix)
        for place, column in enumerate(self.columns):
            column.lie_in(matrix[place])


class Scratch:
    """Memory for temporary results, valid until the next call of `matrix`.

    Allocating large arrays in every cycle costs page faults and displaces other data from the
    processor's caches. Small arrays are always allocated.
    """

    __slots__ = ("_matrix", "_memory")

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._memory: npt.NDArray[Any] = np.empty(0, dtype)
        self._matrix = self._memory.reshape(0, 0)

    def matrix(self, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """An array of this shape with undefined values."""
        if shape[-1] < _SMALL:
            return np.empty(shape, self._memory.dtype)
        if self._matrix.shape != shape:
            size = prod(shape)
            if size > len(self._memory):
                self._memory = np.empty(2 * size, self._memory.dtype)
            self._matrix = self._memory[:size].reshape(shape)
        return self._matrix


def read_only(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only view of the same values."""
    twin = values.view()
    twin.flags.writeable = False
    return twin
