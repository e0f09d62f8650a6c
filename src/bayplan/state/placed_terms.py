"""Affinity terms of placed pods: for each distinct term, how many pods of each row have it.

InterPodAffinity needs the terms of placed pods that match an incoming pod. Pods of one workload
share their terms, so each distinct term is matched once, not once per pod. An index by namespace
and one key=value finds the terms that may match the pod's labels. The matching terms of a label set
are cached until a new term of that kind appears or the last pod with a term leaves.

The pods of a term are counted by row. The column over all rows is made when a cycle first needs it.
From then on it follows every placement, until it is the least recently used and is dropped.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from weakref import WeakValueDictionary

import numpy as np

from bayplan.api.affinity import AffinityTerm
from bayplan.state.columns import Column
from bayplan.state.pods import PodInfo, PodShape

#: Maximum number of columns; a column has an int32 per row.
COLUMNS_MAX = 512

#: Maximum number of label sets with cached terms, for each kind of terms.
_REMEMBERED_MAX = 4096


class TermKind(IntEnum):
    """The kind of an affinity term. Numbers hash fast; every attempt looks kinds up."""

    REQUIRED_AFFINITY = 0
    REQUIRED_ANTI_AFFINITY = 1
    PREFERRED_AFFINITY = 2
    PREFERRED_ANTI_AFFINITY = 3


@dataclass(slots=True, weakref_slot=True, eq=False)
class TermKey:
    """One distinct (kind, term, weight). Equal values share one object, hashed by identity."""

    kind: TermKind
    term: AffinityTerm
    weight: int


@dataclass(slots=True, eq=False)
class PlacedTerm:
    """One distinct term and the placed pods that have it. A required term has weight 1."""

    kind: TermKind
    term: AffinityTerm
    weight: int
    pod_count: int = 0
    #: Row → number of pods; a pod that has a term twice counts twice.
    rows: dict[int, int] = field(default_factory=dict[int, int])
    #: The same as int32[all rows]; None until the first read.
    column: Column | None = None


@dataclass(frozen=True, slots=True)
class TermsAbout:
    """The placed terms of one kind that select pods of one namespace and label set."""

    certain: tuple[PlacedTerm, ...] = ()
    #: Terms that select the pod only if their namespace selector matches the pod's namespace.
    conditional: tuple[PlacedTerm, ...] = ()


_NO_TERMS = TermsAbout()

#: The key of the index: (namespace, or None for any; a label of the pod, or None for any).
_Place = tuple[str | None, tuple[str, str] | None]
#: The parts of a pod that a term selects by: namespace and labels.
_Looks = tuple[str, frozenset[tuple[str, str]]]


class PlacedTerms:
    """The distinct terms of all placed pods, by kind."""

    def __init__(self, capacity: int, columns_max: int = COLUMNS_MAX) -> None:
        self._capacity = capacity
        self._columns_max = columns_max
        self._indexes = {kind: _TermIndex() for kind in TermKind}
        self._with_column: OrderedDict[PlacedTerm, None] = OrderedDict()
        #: The number of times that a pod with terms was added or removed; and that the first pod
        #: with a distinct term was added, or the last one removed.
        self.change_count = self.distinct_change_count = 0
        #: int32 per row: pods with any (anti-)affinity term; with a required anti-affinity term.
        self.with_affinity = Column(capacity, np.int32)
        self.with_required_anti_affinity = Column(capacity, np.int32)

    # ---- reading --------------------------------------------------------------------------

    def of(self, kind: TermKind) -> list[PlacedTerm]:
        return list(self._indexes[kind].terms.values())

    def holds(self, kinds: Iterable[TermKind]) -> bool:
        indexes = self._indexes
        for kind in kinds:  # noqa: SIM110 - called for every pod, and a generator takes twice as long
            if indexes[kind].terms:
                return True
        return False

    def about(self, kind: TermKind, shape: PodShape) -> TermsAbout:
        index = self._indexes[kind]
        return index.about(shape) if index.terms else _NO_TERMS

    def pods(self, placed: PlacedTerm) -> Column:
        """int32[all rows]: the number of pods with the term."""
        column = placed.column
        if column is None:
            column = placed.column = Column(self._capacity, np.int32)
            for row, count in placed.rows.items():
                column.values[row] = count
            self._with_column[placed] = None
            if len(self._with_column) > self._columns_max:
                self._with_column.popitem(last=False)[0].column = None
        else:
            self._with_column.move_to_end(placed)
        return column

    def count_step(self, placed: PlacedTerm, shape: PodShape) -> int:
        """How often a pod of the shape has the term."""
        terms = self._indexes[placed.kind].terms
        keys = shape.once("placed_terms.keys", _keys_of)
        return sum(terms.get(key) is placed for key in keys if key.kind is placed.kind)

    # ---- following placements -------------------------------------------------------------

    def add(self, row: int, pod: PodInfo) -> None:
        """Count a placed pod that has terms."""
        self._change(row, pod.shape, 1)

    def remove(self, row: int, pod: PodInfo) -> None:
        self._change(row, pod.shape, -1)

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        self.with_affinity.grow(capacity)
        self.with_required_anti_affinity.grow(capacity)
        for placed in self._with_column:
            assert placed.column is not None
            placed.column.grow(capacity)

    def _change(self, row: int, shape: PodShape, step: int) -> None:
        self.change_count += 1
        self.with_affinity.values[row] += step
        if shape.anti_affinity.required:
            self.with_required_anti_affinity.values[row] += step
        for key in shape.once("placed_terms.keys", _keys_of):
            index = self._indexes[key.kind]
            placed = index.terms.get(key)
            if placed is None:
                placed = index.enter(key)
                self.distinct_change_count += 1
            count = placed.rows.get(row, 0) + step
            if count:
                placed.rows[row] = count
            else:
                del placed.rows[row]
            placed.pod_count += step
            if placed.column is not None:
                placed.column.values[row] = count
            if not placed.pod_count:
                index.leave(key)
                self.distinct_change_count += 1
                self._with_column.pop(placed, None)


class _TermIndex:
    """The terms of one kind, indexed by the namespace and the label that a selected pod has."""

    def __init__(self) -> None:
        self.terms: dict[TermKey, PlacedTerm] = {}
        self._places: dict[_Place, dict[PlacedTerm, None]] = {}
        # Cleared whenever a term is added or removed.
        self._about: dict[_Looks, TermsAbout] = {}

    def enter(self, key: TermKey) -> PlacedTerm:
        placed = self.terms[key] = PlacedTerm(key.kind, key.term, key.weight)
        for place in _places_of(key.term):
            self._places.setdefault(place, {})[placed] = None
        self._about.clear()
        return placed

    def leave(self, key: TermKey) -> None:
        placed = self.terms.pop(key)
        for place in _places_of(key.term):
            del self._places[place][placed]
            if not self._places[place]:
                del self._places[place]
        self._about.clear()

    def about(self, shape: PodShape) -> TermsAbout:
        looks = shape.once("placed_terms.looks", _looks_of)
        terms = self._about.get(looks)
        if terms is None:
            if len(self._about) >= _REMEMBERED_MAX:
                self._about.clear()
            terms = self._about[looks] = self._matching(shape.namespace, shape.labels)
        return terms

    def _matching(self, namespace: str, labels: Mapping[str, str]) -> TermsAbout:
        certain: list[PlacedTerm] = []
        conditional: list[PlacedTerm] = []
        for placed in self._candidates(namespace, labels):
            term = placed.term
            if not term.selector.matches(labels):
                continue
            if namespace in term.namespaces or term.namespace_selector.is_everything:
                certain.append(placed)
            elif not term.namespace_selector.nothing:
                conditional.append(placed)
        return TermsAbout(tuple(certain), tuple(conditional))

    def _candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[PlacedTerm]:
        for pair in (None, *labels.items()):
            yield from self._places.get((namespace, pair), ())
            yield from self._places.get((None, pair), ())


def _looks_of(shape: PodShape) -> _Looks:
    return shape.namespace, frozenset(shape.labels.items())


def _places_of(term: AffinityTerm) -> Iterator[_Place]:
    """The keys of a term in the index. The namespace is None if the term has a namespace
    selector."""
    pair = term.selector.equality()
    if term.namespace_selector.nothing:
        for namespace in term.namespaces:
            yield namespace, pair
    else:
        yield None, pair


_keys: WeakValueDictionary[tuple[TermKind, AffinityTerm, int], TermKey] = WeakValueDictionary()


def _keys_of(shape: PodShape) -> tuple[TermKey, ...]:
    return tuple(_interned(*stated) for stated in _stated(shape))


def _interned(kind: TermKind, term: AffinityTerm, weight: int) -> TermKey:
    key = _keys.get((kind, term, weight))
    if key is None:
        key = _keys[(kind, term, weight)] = TermKey(kind, term, weight)
    return key


def _stated(shape: PodShape) -> Iterator[tuple[TermKind, AffinityTerm, int]]:
    for term in shape.affinity.required:
        yield TermKind.REQUIRED_AFFINITY, term, 1
    for term in shape.anti_affinity.required:
        yield TermKind.REQUIRED_ANTI_AFFINITY, term, 1
    for weighted in shape.affinity.preferred:
        yield TermKind.PREFERRED_AFFINITY, weighted.term, weighted.weight
    for weighted in shape.anti_affinity.preferred:
        yield TermKind.PREFERRED_ANTI_AFFINITY, weighted.term, weighted.weight
