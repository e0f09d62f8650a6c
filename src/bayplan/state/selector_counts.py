"""How many pods per node match a selector, kept current as pods come and go.

Pods fall into classes of equal (namespace, labels, terminating); each class knows on which rows
its pods are. A counter for a (namespaces, selector) pair is made when first asked for, by matching
classes, not pods, and then follows every placement. Counters are found for a new class through an
index by namespace and one key=value; those not asked for in a long while leave.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from bayplan.api.selectors import Selector
from bayplan.state.columns import Column, Int32s
from bayplan.state.pods import PodInfo

COUNTERS_MAX = 512

_ClassKey = tuple[str, frozenset[tuple[str, str]], bool]


@dataclass(frozen=True, slots=True)
class PodSet:
    """Which pods are meant. ``namespaces`` None = all namespaces."""

    namespaces: frozenset[str] | None
    selector: Selector
    #: Whether pods that are being deleted count, too.
    with_terminating: bool = True

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
    counters: list["Counter"] = field(default_factory=list["Counter"])


@dataclass(slots=True, eq=False)
class Counter:
    """int32 matching pods per row, for one `PodSet`."""

    pods: PodSet
    column: Column
    total: int = 0


class SelectorCounts:
    """All counters in use, and the classes of placed pods they are made from."""

    def __init__(self, capacity: int, counters_max: int = COUNTERS_MAX) -> None:
        self._capacity = capacity
        self._counters_max = counters_max
        self._classes: dict[_ClassKey, PodClass] = {}
        self._counters: OrderedDict[PodSet, Counter] = OrderedDict()
        #: (namespace or None, (key, value) or None) → counters whose matches must carry it.
        self._index: dict[tuple[str | None, tuple[str, str] | None], list[Counter]] = {}

    # ---- asking ---------------------------------------------------------------------------

    def counter(self, pods: PodSet) -> Counter:
        """The counter of a pod set; made on first demand."""
        counter = self._counters.get(pods)
        if counter is not None:
            self._counters.move_to_end(pods)
            return counter
        counter = Counter(pods, Column(self._capacity, np.int32))
        for pod_class in self._classes.values():
            if pods.matches(pod_class.namespace, pod_class.labels, pod_class.terminating):
                self._attach(counter, pod_class)
        self._enter(counter)
        return counter

    def counts(self, pods: PodSet) -> Int32s:
        """int32[all rows], read-only."""
        return self.counter(pods).column.lent

    # ---- following placements -------------------------------------------------------------

    def add(self, row: int, pod: PodInfo) -> None:
        pod_class = self._class_of(pod)
        pod_class.rows[row] = pod_class.rows.get(row, 0) + 1
        for counter in pod_class.counters:
            counter.column.values[row] += 1
            counter.total += 1

    def remove(self, row: int, pod: PodInfo) -> None:
        key = _class_key(pod)
        pod_class = self._classes[key]
        left = pod_class.rows[row] - 1
        if left:
            pod_class.rows[row] = left
        else:
            del pod_class.rows[row]
        for counter in pod_class.counters:
            counter.column.values[row] -= 1
            counter.total -= 1
        if not pod_class.rows:
            del self._classes[key]

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for counter in self._counters.values():
            counter.column.grow(capacity)

    # ---- inside ---------------------------------------------------------------------------

    def _class_of(self, pod: PodInfo) -> PodClass:
        key = _class_key(pod)
        found = self._classes.get(key)
        if found is None:
            found = PodClass(pod.namespace, pod.labels, pod.is_terminating)
            self._classes[key] = found
            found.counters = [
                counter
                for counter in self._candidates(found)
                if counter.pods.matches(found.namespace, found.labels, found.terminating)
            ]
        return found

    def _candidates(self, pod_class: PodClass) -> Iterator[Counter]:
        pairs = (None, *pod_class.labels.items())
        for namespace in (pod_class.namespace, None):
            for pair in pairs:
                yield from self._index.get((namespace, pair), ())

    def _attach(self, counter: Counter, pod_class: PodClass) -> None:
        pod_class.counters.append(counter)
        for row, count in pod_class.rows.items():
            counter.column.values[row] += count
            counter.total += count

    def _enter(self, counter: Counter) -> None:
        self._counters[counter.pods] = counter
        for place in _index_keys(counter.pods):
            self._index.setdefault(place, []).append(counter)
        while len(self._counters) > self._counters_max:
            self._leave(self._counters.popitem(last=False)[1])

    def _leave(self, counter: Counter) -> None:
        for place in _index_keys(counter.pods):
            self._index[place].remove(counter)
            if not self._index[place]:
                del self._index[place]
        for pod_class in self._classes.values():
            if counter in pod_class.counters:
                pod_class.counters.remove(counter)


def _class_key(pod: PodInfo) -> _ClassKey:
    labels = pod.shape.once("selector_counts.labels", lambda s: frozenset(s.labels.items()))
    return (pod.namespace, labels, pod.is_terminating)


def _index_keys(pods: PodSet) -> Iterator[tuple[str | None, tuple[str, str] | None]]:
    pair = pods.selector.equality()
    for namespace in pods.namespaces if pods.namespaces is not None else (None,):
        yield namespace, pair
