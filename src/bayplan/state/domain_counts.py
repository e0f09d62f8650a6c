"""Pods counted by topology domain: kept current row by row, as pods and nodes come and go.

A domain is a value of a label, told by its id. To count pods by domain anew is a pass over all
nodes; mostly one pod was placed since the last time, on one node, in one domain.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import final

import numpy as np

from bayplan.state.change_log import ChangeLog, Facet
from bayplan.state.columns import Column, Floats
from bayplan.state.labels import LabelColumn

#: Tables in use; the one that was not asked for longest leaves.
TABLES_MAX = 128

#: More changes than this are counted faster all together.
_FEW_ROWS = 64

#: What pods by domain follow from, and what nodes by domain do.
PODS_BY_DOMAIN = int(Facet.PODS | Facet.LABELS | Facet.NODE)
NODES_BY_DOMAIN = int(Facet.LABELS | Facet.NODE)


@final
class _DomainTable:
    """How many pods each domain of one label has."""

    __slots__ = ("_generation", "_row_counts", "_row_ids", "by_id", "total")

    def __init__(self) -> None:
        #: float64 [values + 1], by label id; the last place is for rows without the label, and 0.
        self.by_id: Floats = np.zeros(1)
        #: What was counted of each row, and where.
        self._row_counts = np.zeros(0, np.int32)
        self._row_ids = np.zeros(0, np.int32)
        self._generation = -1
        #: Pods that are in any domain.
        self.total = 0

    def refresh(self, log: ChangeLog, facets: int, pods: Column, labels: LabelColumn) -> None:
        """Follow what changed since the last time."""
        if self.by_id.size != len(labels.values) + 1 or self._row_ids.size != pods.values.size:
            self._count_all(pods, labels)
        elif log.is_changed_since(self._generation, facets):
            changes = log.few_since(self._generation, _FEW_ROWS, facets)
            if changes is None:
                self._count_all(pods, labels)
            else:
                for row, _ in changes:
                    self._count_again(row, pods.values.item(row), labels.ids.values.item(row))
        self._generation = log.generation

    def _count_all(self, pods: Column, labels: LabelColumn) -> None:
        self._row_counts, self._row_ids = pods.values.copy(), labels.ids.values.copy()
        counted = np.bincount(self._row_ids + 1, self._row_counts, len(labels.values) + 1)
        self.by_id = np.append(counted[1:], 0.0)
        self.total = int(self.by_id.sum())

    def _count_again(self, row: int, count: int, label_id: int) -> None:
        self._add(self._row_ids.item(row), -self._row_counts.item(row))
        self._add(label_id, count)
        self._row_counts[row], self._row_ids[row] = count, label_id

    def _add(self, label_id: int, count: int) -> None:
        if label_id >= 0:
            self.by_id[label_id] += count
            self.total += count


@final
class DomainTables:
    """All tables in use."""

    def __init__(self, tables_max: int = TABLES_MAX) -> None:
        self._tables_max = tables_max
        self._tables: OrderedDict[Hashable, _DomainTable] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tables)

    def of(
        self,
        what: Hashable,
        log: ChangeLog,
        pods: Column,
        labels: LabelColumn,
        facets: int = PODS_BY_DOMAIN,
    ) -> Floats | None:
        """float64[values + 1], the caller's: pods by label id; None: no domain has any.

        ``what`` tells the pods and the label from all others, ``facets`` what they follow from.
        The last place is for nodes without the label, and 0.
        """
        table = self._tables.get(what)
        if table is None:
            table = self._tables[what] = _DomainTable()
            if len(self._tables) > self._tables_max:
                self._tables.popitem(last=False)
        else:
            self._tables.move_to_end(what)
        table.refresh(log, facets, pods, labels)
        return table.by_id.copy() if table.total else None
