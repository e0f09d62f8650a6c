"""Entries in order: a binary heap whose removals are lazy.

An entry that leaves stays in the heap as a dead item until it comes to the top, or until dead items
are the majority and the heap is built anew: O(log n) for everything, amortised.
"""

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
        heappush(self._heap, item)
        if is_here:
            self._bury()

    def leave(self, entry: Entry) -> None:
        del self._items[entry.key]
        self._bury()

    def first(self) -> tuple[Any, Entry] | None:
        """(key, entry) of the first, which stays."""
        heap, items = self._heap, self._items
        while heap:
            item = heap[0]
            if items.get(item[2].key) is item:
                return item[0], item[2]
            heappop(heap)
        return None

    def pop(self) -> Entry | None:
        """The first entry, taken out."""
        heap, items = self._heap, self._items
        while heap:
            item = heappop(heap)
            if items.get(item[2].key) is item:
                del items[item[2].key]
                return item[2]
        return None

    def _bury(self) -> None:
        if len(self._heap) > 2 * len(self._items) + _DEAD_ALLOWED:
            self._heap = list(self._items.values())
            heapify(self._heap)
