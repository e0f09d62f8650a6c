"""Pods counted by topology domain: for some label keys, an amount for each value of the key.

A domain is a label's value: pods by domain are a table by label id, which the cluster keeps
current, and the answer for each node is one look-up by its id. The last place of a table is for
nodes without the label, whose id is -1: it stays 0.
"""

import numpy as np

from bayplan.state.columns import Floats, Mask
from bayplan.state.nodes import NodeView
from bayplan.state.placed_terms import PlacedTerm
from bayplan.state.selector_counts import PodSet


class DomainCounts:
    """Topology key → table of amounts: float64[values + 1], whole numbers, by label id.

    A key whose domains all count nothing may be missing. Tables are shared by clones until one
    of them changes.
    """

    __slots__ = ("_owned", "_tables")

    def __init__(self, tables: dict[str, Floats] | None = None) -> None:
        self._tables: dict[str, Floats] = tables if tables is not None else {}
        #: Keys whose table nobody else holds.
        self._owned: set[str] = set()

    @property
    def keys(self) -> list[str]:
        return list(self._tables)

    @property
    def is_empty(self) -> bool:
        """Whether no domain counts anything."""
        return not any(table.any() for table in self._tables.values())

    def count(self, nodes: NodeView, key: str, pods: PodSet | PlacedTerm, weight: int = 1) -> None:
        """Add ``weight`` for each of these pods in the domains of all nodes."""
        table = nodes.pods_by_domain(pods, key)
        if table is None:
            return
        if weight != 1:
            table *= weight
        known = self._tables.get(key)
        self._tables[key] = table if known is None else known + table
        self._owned.add(key)

    def add(self, key: str, label_id: int, amount: int) -> None:
        """Add to one domain; to none where the label is absent."""
        if label_id < 0:
            return
        table = self._tables.get(key)
        if table is None or label_id + 1 >= len(table):
            table = _resized(table if table is not None else _NOTHING, label_id + 2)
        elif key not in self._owned:
            table = table.copy()
        self._tables[key] = table
        self._owned.add(key)
        table[label_id] += amount

    def clone(self) -> "DomainCounts":
        self._owned.clear()
        return DomainCounts(dict(self._tables))

    def of(self, nodes: NodeView, key: str) -> Floats:
        """float64[nodes]: what each node's domain counts, 0 where it is in none."""
        return self._table(nodes, key).take(nodes.label_ids(key))

    def present(self, nodes: NodeView, key: str) -> Mask:
        """bool[nodes]: whose domain counts more than nothing."""
        return (self._table(nodes, key) > 0).take(nodes.label_ids(key))

    def _table(self, nodes: NodeView, key: str) -> Floats:
        """A table with a place for every value the label has by now."""
        length = len(nodes.label_values(key)) + 1
        table = self._tables.get(key, _NOTHING)
        return table if len(table) == length else _resized(table, length)


def _resized(table: Floats, length: int) -> Floats:
    resized = np.zeros(length)
    resized[: len(table) - 1] = table[:-1]
    return resized


_NOTHING: Floats = np.zeros(1)
