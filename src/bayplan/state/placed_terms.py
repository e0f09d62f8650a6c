"""Affinity terms of placed pods, interned: for each distinct term, how many pods per row hold it.

InterPodAffinity asks what the pods already there want of the pod that comes. Pods of one workload
share their terms, so the question is put once per distinct term, not once per pod.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from bayplan.api.affinity import AffinityTerm
from bayplan.state.columns import Column
from bayplan.state.pods import PodInfo


class TermKind(Enum):
    REQUIRED_AFFINITY = "requiredAffinity"
    REQUIRED_ANTI_AFFINITY = "requiredAntiAffinity"
    PREFERRED_AFFINITY = "preferredAffinity"
    PREFERRED_ANTI_AFFINITY = "preferredAntiAffinity"


@dataclass(slots=True, eq=False)
class PlacedTerm:
    """One distinct term: on how many placed pods of each row it is, weights added up.

    A required term weighs 1; ``column`` is int64[all rows] of weight x pods.
    """

    term: AffinityTerm
    weight: int
    column: Column
    pod_count: int = 0


_Key = tuple[AffinityTerm, int]


class PlacedTerms:
    """The distinct terms of all placed pods, by kind."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._terms: dict[TermKind, dict[_Key, PlacedTerm]] = {kind: {} for kind in TermKind}
        #: int32 per row: pods with any (anti-)affinity term; with a required anti-affinity term.
        self.with_affinity = Column(capacity, np.int32)
        self.with_required_anti_affinity = Column(capacity, np.int32)

    def of(self, kind: TermKind) -> list[PlacedTerm]:
        return list(self._terms[kind].values())

    def add(self, row: int, pod: PodInfo) -> None:
        self._change(row, pod, 1)

    def remove(self, row: int, pod: PodInfo) -> None:
        self._change(row, pod, -1)

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        self.with_affinity.grow(capacity)
        self.with_required_anti_affinity.grow(capacity)
        for terms in self._terms.values():
            for placed in terms.values():
                placed.column.grow(capacity)

    def _change(self, row: int, pod: PodInfo, step: int) -> None:
        self.with_affinity.values[row] += step
        if pod.shape.anti_affinity.required:
            self.with_required_anti_affinity.values[row] += step
        for kind, term, weight in _terms_of(pod):
            terms = self._terms[kind]
            placed = terms.get((term, weight))
            if placed is None:
                placed = PlacedTerm(term, weight, Column(self._capacity, np.int64))
                terms[(term, weight)] = placed
            placed.column.values[row] += step * weight
            placed.pod_count += step
            if placed.pod_count == 0:
                del terms[(term, weight)]


def _terms_of(pod: PodInfo) -> Iterator[tuple[TermKind, AffinityTerm, int]]:
    affinity, anti_affinity = pod.shape.affinity, pod.shape.anti_affinity
    for term in affinity.required:
        yield TermKind.REQUIRED_AFFINITY, term, 1
    for term in anti_affinity.required:
        yield TermKind.REQUIRED_ANTI_AFFINITY, term, 1
    for weighted in affinity.preferred:
        yield TermKind.PREFERRED_AFFINITY, weighted.term, weighted.weight
    for weighted in anti_affinity.preferred:
        yield TermKind.PREFERRED_ANTI_AFFINITY, weighted.term, weighted.weight
