"""Arrays that grow, their read-only twins, and interned vocabularies.

Axes are named in the aliases: [nodes] is one value per row of the table or per position of a
view. Whoever is lent a column gets the read-only twin: writing to it raises.
"""

from collections.abc import Hashable
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
#: Arrays shorter than this are as fast made as found.
_SMALL = 64
#: Columns of a stack before it grows.
_FIRST_PLACES = 4

T = TypeVar("T", bound=Hashable)


def is_any(mask: Mask) -> bool:
    """Whether a mask is true anywhere; numpy finds where faster than whether."""
    return mask.size > 0 and mask.item(mask.argmax())


def all_true(count: int) -> Mask:
    """bool[count], to be written; numpy's own `ones` takes twice as long to call."""
    mask = np.empty(count, np.bool_)
    mask.fill(True)
    return mask


def places_of(mask: npt.NDArray[Any]) -> Rows:
    """Where a mask is true, ascending; numpy's own `flatnonzero` takes as long again to call."""
    return mask.nonzero()[0]


def starts_of_runs(ordered: npt.NDArray[Any]) -> Rows:
    """Where each distinct value of an ascending array begins."""
    return places_of(
        np.append(np.ones(min(ordered.size, 1), np.bool_), ordered[1:] != ordered[:-1])
    )


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same values, each once, ascending; numpy's own `unique` loads ten milliseconds of code at
    its first call."""
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
        """Take this memory, as it is, for one's own."""
        self.values: npt.NDArray[Any] = values
        self.lent = _read_only(values)

    def grow(self, capacity: int) -> None:
        old = self.values
        grown = np.full(capacity, self.empty, old.dtype)
        grown[: len(old)] = old
        self.lie_in(grown)

    def clear(self, row: int) -> None:
        self.values[row] = self.empty


class Stack:
    """Columns of zeros that lie side by side in one matrix: several are read as one array."""

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
        """[places, rows]: read-only where it is not copied, which slices of slices never are."""
        if isinstance(rows, slice):
            return self._lent[places, rows]
        if isinstance(places, slice):
            return self._lent[places].take(rows, axis=1)
        return self._lent[np.array(places)[:, None], rows]

    def _lie_in(self, matrix: npt.NDArray[Any]) -> None:
        self._matrix = matrix
        self._lent = _read_only(matrix)
        for place, column in enumerate(self.columns):
            column.lie_in(matrix[place])


class Scratch:
    """Memory for results of a moment: what is put there is good until it is asked for again.

    Large arrays that are made anew in every cycle cost page faults, and push everything else out
    of the processor's caches. Small ones are made anew all the same.
    """

    __slots__ = ("_matrix", "_memory")

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._memory: npt.NDArray[Any] = np.empty(0, dtype)
        self._matrix = self._memory.reshape(0, 0)

    def matrix(self, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """An array of this shape, holding anything."""
        if shape[-1] < _SMALL:
            return np.empty(shape, self._memory.dtype)
        if self._matrix.shape != shape:
            size = prod(shape)
            if size > len(self._memory):
                self._memory = np.empty(2 * size, self._memory.dtype)
            self._matrix = self._memory[:size].reshape(shape)
        return self._matrix


def _read_only(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    twin = values.view()
    twin.flags.writeable = False
    return twin
