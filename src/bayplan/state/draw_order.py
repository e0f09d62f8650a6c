"""The order in which ties between nodes are drawn: by (hash of name, name), kept sorted.

It must not follow from row numbers, so that live, embedded and fresh runs draw alike. Sorting
thousands of names whenever a node comes or goes would cost more than a scheduling cycle.
"""

from bisect import bisect_left

import numpy as np

from bayplan.rng import stable_hash
from bayplan.state.columns import Rows


class DrawOrder:
    """Rows of nodes, in the order of their names' hashes."""

    def __init__(self) -> None:
        self._keys: list[tuple[int, str]] = []
        self._rows: list[int] = []
        self._array: Rows | None = None

    def add(self, name: str, row: int) -> None:
        key = (stable_hash(name), name)
        place = bisect_left(self._keys, key)
        self._keys.insert(place, key)
        self._rows.insert(place, row)
        self._array = None

    def remove(self, name: str) -> None:
        key = (stable_hash(name), name)
        place = bisect_left(self._keys, key)
        assert self._keys[place : place + 1] == [key], f"node {name} is not in the draw"
        del self._keys[place], self._rows[place]
        self._array = None

    def rows(self) -> Rows:
        """intp[nodes], read-only."""
        if self._array is None:
            self._array = np.array(self._rows, np.intp)
            self._array.flags.writeable = False
        return self._array
