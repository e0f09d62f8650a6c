"""The order in which ties between nodes are drawn: by (hash of name, name), kept sorted.

It must not follow from row numbers, so that live, embedded and fresh runs draw alike. Sorting
thousands of names whenever a node comes or goes would cost more than a scheduling cycle.
"""

from bisect import bisect_left

import numpy as np

from bayplan.rng import stable_hash
from bayplan.state.columns import Mask, Rows, places_of

#: Where fewer than one node in so many is marked, sorting their places is faster than looking
#: through the order: measured with 500 to 15,000 nodes.
_SPARSE = 16
#: So many nodes of the order are looked at together.
_BLOCK = 2048


class DrawOrder:
    """Rows of nodes, in the order of their names' hashes."""

    def __init__(self) -> None:
        self._keys: list[tuple[int, str]] = []
        self._rows: list[int] = []
        self._array: Rows | None = None
        #: By row: its place in the order; of other rows, anything.
        self._places: Rows | None = None

    def add(self, name: str, row: int) -> None:
        key = (stable_hash(name), name)
        place = bisect_left(self._keys, key)
        self._keys.insert(place, key)
        self._rows.insert(place, row)
        self._array = self._places = None

    def remove(self, name: str) -> None:
        key = (stable_hash(name), name)
        place = bisect_left(self._keys, key)
        assert self._keys[place : place + 1] == [key], f"node {name} is not in the draw"
        del self._keys[place], self._rows[place]
        self._array = self._places = None

    def rows(self) -> Rows:
        """intp[nodes], read-only."""
        if self._array is None:
            self._array = np.array(self._rows, np.intp)
            self._array.flags.writeable = False
        return self._array

    def places(self) -> Rows:
        """intp[rows]: where in the order a row stands; of rows without a node, anything."""
        if self._places is None:
            order = self.rows()
            self._places = np.zeros(int(order.max()) + 1 if len(order) else 0, np.intp)
            self._places[order] = np.arange(len(order))
        return self._places

    def nth(self, marked: Mask, count: int, index: int) -> int:
        """The row of the index-th of ``count`` marked ones; ``marked``: bool[all rows]."""
        order = self.rows()
        if count == len(order):
            return order.item(index)
        if count * _SPARSE >= len(order):
            return self._nth_of_many(order, marked, index)
        places = self.places().take(places_of(marked))
        places.sort()
        return order.item(places.item(index))

    @staticmethod
    def _nth_of_many(order: Rows, marked: Mask, index: int) -> int:
        """Looks no further than it must, which on average is half of the order."""
        for start in range(0, len(order), _BLOCK):
            block = order[start : start + _BLOCK]
            found = marked.take(block)
            count = int(np.count_nonzero(found))
            if index < count:
                return block.item(places_of(found).item(index))
            index -= count
        raise IndexError("fewer rows are marked than were counted")
