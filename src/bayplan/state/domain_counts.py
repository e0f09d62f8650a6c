"""Counts of pods per node and per topology domain, updated as pods and nodes change.

`SelectorCounts`: how many pods of each node match a (namespaces, selector) pair. Pods fall into
classes of equal (namespace, labels, terminating), and each class knows the rows of its pods. A
counter is made at its first use, by matching classes instead of pods, and then follows every
placement. The least recently used counters are dropped. An index by namespace and one key=value
finds the candidates in both directions, counters for a new class and classes for a new counter, so
the cost does not grow with the number of selectors times the number of label sets.

Invariant: a counter's column equals a count over all placed pods.

`DomainTables`: how many of these pods each topology domain has. A domain is a value of a node
label, represented by its id. A full count is a pass over all nodes; usually one pod was placed
since the last count, so only the changed rows are counted again.
"""

from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np

from bayplan.api.selectors import Selector
from bayplan.state.change_log import ChangeLog, Facet
from bayplan.state.columns import Column, Floats, Int32s
from bayplan.state.labels import LabelColumn
from bayplan.state.pods import PodInfo, PodShape

# ---- selector counts ------------------------------------------------------------------------


#: Counters kept; each is an int32 per row.
COUNTERS_MAX = 512
#: Label keys by which the classes of a namespace are found; selectors use few.
INDEXED_KEYS_MAX = 32

_Labels = frozenset[tuple[str, str]]
_Pair = tuple[str, str]
_ClassKey = tuple[_Labels, bool]


@final
@dataclass(frozen=True, slots=True)
class PodSet:
    """Which pods are meant. ``namespaces`` None = all namespaces."""

    namespaces: frozenset[str] | None
    selector: Selector
    #: Whether pods that are being deleted count, too.
    with_terminating: bool = True
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        # Looked up several times per cycle: hashing a selector each time would cost more than that.
        parts = (self.namespaces, self.selector, self.with_terminating)
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash

    def matches(self, namespace: str, labels: Mapping[str, str], terminating: bool) -> bool:
        if terminating and not self.with_terminating:
            return False
        if self.namespaces is not None and namespace not in self.namespaces:
            return False
        return self.selector.matches(labels)


@dataclass(slots=True, eq=False)
class PodClass:
    """Pods that no selector can tell apart, and how many of them are on which row."""

    namespace: str
    labels: Mapping[str, str]
    terminating: bool
    rows: dict[int, int] = field(default_factory=dict[int, int])
    counters: list["PodCounter"] = field(default_factory=list["PodCounter"])


@dataclass(slots=True, eq=False)
class PodCounter:
    """int32 matching pods per row, for one `PodSet`.

    Good until the next counter is asked for: it may be the one that leaves.
    """

    pods: PodSet
    column: Column
    total: int = 0

    def include(self, pod_class: PodClass) -> None:
        """Count a class from now on, with the pods it has."""
        pod_class.counters.append(self)
        for row, count in pod_class.rows.items():
            self.column.values[row] += count
            self.total += count


@final
class SelectorCounts:
    """All counters in use, and the classes of placed pods they are made from."""

    def __init__(self, capacity: int, counters_max: int = COUNTERS_MAX) -> None:
        self._capacity = capacity
        self._counters_max = counters_max
        self._namespaces: dict[str, _Classes] = {}
        self._counters: OrderedDict[PodSet, PodCounter] = OrderedDict()
        #: The class of the last pod that came or went: mostly the next is of the same template.
        self._last: tuple[PodShape | None, PodClass | None] = None, None
        #: (namespace or None, (key, value) or None) → counters whose matches must carry it.
        self._index: dict[tuple[str | None, _Pair | None], list[PodCounter]] = {}

    # ---- asking ---------------------------------------------------------------------------

    def counter(self, pods: PodSet) -> PodCounter:
        """The counter of a pod set; made on first demand."""
        counter = self._counters.get(pods)
        if counter is not None:
            self._counters.move_to_end(pods)
            return counter
        counter = PodCounter(pods, Column(self._capacity, np.int32))
        for pod_class in self._classes_for(pods):
            if pods.matches(pod_class.namespace, pod_class.labels, pod_class.terminating):
                counter.include(pod_class)
        self._enter(counter)
        return counter

    def counts(self, pods: PodSet) -> Int32s:
        """int32[all rows], read-only."""
        return self.counter(pods).column.lent

    # ---- following placements -------------------------------------------------------------

    def add(self, row: int, pod: PodInfo) -> None:
        last, pod_class = self._last
        shape = pod.shape if pod.shape.pin is None else pod.shape.pin.unpinned
        # As `is_terminating`, without a call for each placement.
        if shape is not last or pod.metadata.deletion_timestamp is not None:
            pod_class = self._interned(pod)
            if not pod.is_terminating:
                self._last = shape, pod_class
        assert pod_class is not None
        pod_class.rows[row] = pod_class.rows.get(row, 0) + 1
        for counter in pod_class.counters:
            counter.column.values[row] += 1
            counter.total += 1

    def remove(self, row: int, pod: PodInfo) -> None:
        last, pod_class = self._last
        shape = pod.shape if pod.shape.pin is None else pod.shape.pin.unpinned
        if shape is not last or pod.metadata.deletion_timestamp is not None:
            pod_class = self._namespaces[pod.namespace].by_key[_class_key(pod)]
            if not pod.is_terminating:
                self._last = shape, pod_class
        assert pod_class is not None
        left_count = pod_class.rows[row] - 1
        if left_count:
            pod_class.rows[row] = left_count
        else:
            del pod_class.rows[row]
        for counter in pod_class.counters:
            counter.column.values[row] -= 1
            counter.total -= 1
        if not pod_class.rows:
            self._last, classes = (None, None), self._namespaces[pod.namespace]
            classes.leave(_class_key(pod))
            if not classes.by_key:
                del self._namespaces[pod.namespace]

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for counter in self._counters.values():
            counter.column.grow(capacity)

    # ---- inside ---------------------------------------------------------------------------

    def _interned(self, pod: PodInfo) -> PodClass:
        classes = self._namespaces.get(pod.namespace)
        if classes is None:
            classes = self._namespaces[pod.namespace] = _Classes()
        key = _class_key(pod)
        pod_class = classes.by_key.get(key)
        if pod_class is None:
            pod_class = PodClass(pod.namespace, pod.labels, pod.is_terminating)
            classes.enter(key, pod_class)
            pod_class.counters += [
                counter
                for counter in self._counters_for(pod_class)
                if counter.pods.matches(
                    pod_class.namespace, pod_class.labels, pod_class.terminating
                )
            ]
        return pod_class

    def _counters_for(self, pod_class: PodClass) -> Iterator[PodCounter]:
        """Counters that may match a class."""
        pairs = (None, *pod_class.labels.items())
        for namespace in (pod_class.namespace, None):
            for pair in pairs:
                yield from self._index.get((namespace, pair), ())

    def _classes_for(self, pods: PodSet) -> Iterator[PodClass]:
        """Classes that may match a pod set."""
        pair = pods.selector.equality()
        namespaces = self._namespaces if pods.namespaces is None else pods.namespaces
        for namespace in namespaces:
            classes = self._namespaces.get(namespace)
            if classes is not None:
                yield from classes.carrying(pair)

    def _enter(self, counter: PodCounter) -> None:
        self._counters[counter.pods] = counter
        for place in _places_of(counter.pods):
            self._index.setdefault(place, []).append(counter)
        if len(self._counters) > self._counters_max:
            self._leave(self._counters.popitem(last=False)[1])

    def _leave(self, counter: PodCounter) -> None:
        for place in _places_of(counter.pods):
            self._index[place].remove(counter)
            if not self._index[place]:
                del self._index[place]
        for pod_class in self._classes_for(counter.pods):
            if counter in pod_class.counters:
                pod_class.counters.remove(counter)


class _Classes:
    """The classes of one namespace, indexed by the label keys that selectors use."""

    __slots__ = ("_by_label", "by_key")

    def __init__(self) -> None:
        self.by_key: dict[_ClassKey, PodClass] = {}
        #: Label key → value → classes (an ordered set).
        self._by_label: dict[str, dict[str, dict[PodClass, None]]] = {}

    def carrying(self, pair: _Pair | None) -> Collection[PodClass]:
        """Classes with this label; None: all."""
        if pair is None:
            return self.by_key.values()
        key, value = pair
        by_value = self._by_label.get(key)
        if by_value is None:
            by_value = self._indexed(key)
        return by_value.get(value, ())

    def enter(self, key: _ClassKey, pod_class: PodClass) -> None:
        self.by_key[key] = pod_class
        for label, by_value in self._by_label.items():
            _note(by_value, pod_class, label)

    def leave(self, key: _ClassKey) -> None:
        pod_class = self.by_key.pop(key)
        for label, by_value in self._by_label.items():
            value = pod_class.labels.get(label)
            if value is not None:
                del by_value[value][pod_class]
                if not by_value[value]:
                    del by_value[value]

    def _indexed(self, label: str) -> dict[str, dict[PodClass, None]]:
        if len(self._by_label) >= INDEXED_KEYS_MAX:
            self._by_label.clear()
        by_value = self._by_label[label] = {}
        for pod_class in self.by_key.values():
            _note(by_value, pod_class, label)
        return by_value


def _note(by_value: dict[str, dict[PodClass, None]], pod_class: PodClass, label: str) -> None:
    value = pod_class.labels.get(label)
    if value is not None:
        by_value.setdefault(value, {})[pod_class] = None


def _class_key(pod: PodInfo) -> _ClassKey:
    return pod.shape.once("selector_counts.labels", _label_set), pod.is_terminating


def _label_set(shape: PodShape) -> _Labels:
    return frozenset(shape.labels.items())


def _places_of(pods: PodSet) -> Iterator[tuple[str | None, _Pair | None]]:
    """The places of a counter in the index."""
    pair = pods.selector.equality()
    namespaces: Iterable[str | None] = (None,) if pods.namespaces is None else pods.namespaces
    for namespace in namespaces:
        yield namespace, pair


# ---- domain counts --------------------------------------------------------------------------


#: Maximum number of tables; the least recently used table is dropped.
TABLES_MAX = 128

#: For more changes than this, a full count is faster.
_FEW_ROWS = 64

#: The facets that counts of pods by domain, and of nodes by domain, depend on.
PODS_BY_DOMAIN = int(Facet.PODS | Facet.LABELS | Facet.NODE)
NODES_BY_DOMAIN = int(Facet.LABELS | Facet.NODE)


@final
class _DomainTable:
    """The number of pods of each domain of one label."""

    __slots__ = ("_generation", "_row_counts", "_row_ids", "by_id", "total")

    def __init__(self) -> None:
        #: float64 [values + 1], by label id; the last value, for rows without the label, is 0.
        self.by_id: Floats = np.zeros(1)
        #: The count and the label id of each row, as counted last.
        self._row_counts = np.zeros(0, np.int32)
        self._row_ids = np.zeros(0, np.int32)
        self._generation = -1
        #: The number of pods in all domains.
        self.total = 0

    def refresh(self, log: ChangeLog, facets: int, pods: Column, labels: LabelColumn) -> None:
        """Count the rows that changed since the last call."""
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
        *,
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
