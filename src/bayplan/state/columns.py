"""Arrays that grow, their read-only twins, and interned vocabularies.

Axes are named in the aliases: [nodes] is one value per row of the table or per position of a
view. Whoever is lent a column gets the read-only twin: writing to it raises.
"""

from collections.abc import Hashable
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

T = TypeVar("T", bound=Hashable)


class Vocabulary(Generic[T]):
    """Distinct values numbered in order of first appearance. Ids are never reused."""

    __slots__ = ("_ids", "values")

    def __init__(self) -> None:
        self._ids: dict[T, int] = {}
        self.values: list[T] = []

    def intern(self, value: T) -> int:
        found = self._ids.get(value)
        if found is None:
            found = len(self.values)
            self._ids[value] = found
            self.values.append(value)
        return found

    def find(self, value: T) -> int | None:
        return self._ids.get(value)

    def __len__(self) -> int:
        return len(self.values)


class Column:
    """One value per row: ``values`` to write, ``lent`` the read-only twin of the same memory."""

    __slots__ = ("empty", "lent", "values")

    def __init__(self, capacity: int, dtype: npt.DTypeLike, empty: Any = 0) -> None:
        self.empty = empty
        self.values: npt.NDArray[Any] = np.full(capacity, empty, dtype)
        self.lent = self._twin()

    def grow(self, capacity: int) -> None:
        old = self.values
        self.values = np.full(capacity, self.empty, old.dtype)
        self.values[: len(old)] = old
        self.lent = self._twin()

    def clear(self, row: int) -> None:
        self.values[row] = self.empty

    def _twin(self) -> npt.NDArray[Any]:
        twin = self.values.view()
        twin.flags.writeable = False
        return twin
