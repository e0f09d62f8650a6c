"""Entries in order: those that came in it stand in a row, the others in a heap; removals are lazy.

Pods mostly become ready in the order in which they are tried, so that the first is at hand. An
entry that leaves stays where it is as a dead item until it comes to the front, or until dead items
are the majority and are cleared away: O(log n) for everything, amortised.
"""

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, final

from bayplan.queue.entry import Entry

#: (key, number of the push, entry): the number keeps entries from being compared.
_Item = tuple[Any, int, Entry]
_DEAD_ALLOWED = 16


@final
class OrderedEntries:
    """A queue in ascending order of ``by(entry)``, taken when the entry enters.

    Keys of different entries differ: they end in the entry's sequence.
    """

    def __init__(self, by: Callable[[Entry], Any]) -> None:
        self._by = by
        #: Ascending.
        self._row: deque[_Item] = deque()
        self._heap: list[_Item] = []
        self._items: dict[str, _Item] = {}
        self._pushes = count()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Entry]:
        """In the order they entered."""
        return (item[2] for item in self._items.values())

    def enter(self, entry: Entry) -> None:
        """Add the entry, or put one that is here where its key now belongs."""
        item = (self._by(entry), next(self._pushes), entry)
        is_here = entry.key in self._items
        self._items[entry.key] = item
        if not self._row or self._row[-1] < item:
            self._row.append(item)
        else:
            heappush(self._heap, item)
        if is_here:
            self._bury()

    def leave(self, entry: Entry) -> None:
        del self._items[entry.key]
        self._bury()

    def first(self) -> tuple[Any, Entry] | None:
        """(key, entry) of the first, which stays."""
        item = self._first()
        return None if item is None else (item[0], item[2])

    def pop(self) -> Entry | None:
        """The first entry, taken out."""
        item = self._first()
        if item is None:
            return None
        if self._row and item is self._row[0]:
            self._row.popleft()
        else:
            heappop(self._heap)
        del self._items[item[2].key]
        return item[2]

    def _first(self) -> _Item | None:
        row, heap = self._row, self._heap
        while row and not self._is_alive(row[0]):
            row.popleft()
        while heap and not self._is_alive(heap[0]):
            heappop(heap)
        if row and not (heap and heap[0] < row[0]):
            return row[0]
        return heap[0] if heap else None

    def _is_alive(self, item: _Item) -> bool:
        return self._items.get(item[2].key) is item

    def _bury(self) -> None:
        if len(self._row) + len(self._heap) > 2 * len(self._items) + _DEAD_ALLOWED:
            self._row = deque(filter(self._is_alive, self._row))
            self._heap = list(filter(self._is_alive, self._heap))
            heapify(self._heap)
