"""What follows from the counts of pods in a node's domains, and the terms about a pod as
`DomainRules`.

The rules apply where each node has the labels of all topology keys. The terms of placed pods that
select the pod are a fixed list until a distinct term comes or goes.
"""

from collections.abc import Iterable, Sequence
from typing import final

import numpy as np
from msgspec import Struct

from bayplan.framework.arithmetic import normalized
from bayplan.framework.domain_rules import CellCounts, DomainCount, DomainRules
from bayplan.framework.status import Code, Rejection
from bayplan.framework.types import Normalizer
from bayplan.state.columns import Mask, NodeScores, is_any

NO_AFFINITY = "node(s) didn't match pod affinity rules"
NO_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REFUSED_BY_PLACED = "node(s) didn't satisfy existing pods anti-affinity rules"


def rejections_of(
    lacking: Mask | None, occupied: Iterable[tuple[Mask, str]]
) -> Iterable[Rejection]:
    """A node's first reason is its only one, in this order. ``lacking``: where required affinity is
    not satisfied; None: nowhere. ``occupied``: (where a pod is to be kept away from, reason)."""
    if lacking is not None and is_any(lacking):
        yield Rejection(lacking, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (NO_AFFINITY,))
    rejected = lacking
    for mask, reason in occupied:
        if rejected is None:
            new = rejected = mask
        else:
            new = mask & ~rejected
            rejected = rejected | new
        if is_any(new):
            yield Rejection(new, Code.UNSCHEDULABLE, (reason,))


class TermCounts(Struct, frozen=True):
    """What is counted for pods of one template."""

    #: Per topology key of the required affinity terms: the pods that match all of these terms.
    near: Sequence[DomainCount]
    #: Whether the pod is one of those pods: then it may be the first of them.
    wants_itself: bool
    #: The pods that the required anti-affinity terms keep away from.
    away: Sequence[DomainCount]
    #: The placed terms that keep the pod away.
    refusing: Sequence[DomainCount]
    #: What scores, with the weight of each pod.
    worth: Sequence[tuple[DomainCount, int]]
    #: Whether PreScore skips whatever is counted.
    never_scores: bool


@final
class AffinityDomainRules(DomainRules):
    """The rules that follow from `TermCounts`."""

    __slots__ = ("_away", "_near", "_never_scores", "_refusing", "_wants_itself", "_worth")

    def __init__(self, terms: TermCounts) -> None:
        counts: list[DomainCount] = []
        self._near = _added(counts, terms.near)
        self._away = _added(counts, terms.away)
        self._refusing = _added(counts, terms.refusing)
        places = _added(counts, [count for count, _ in terms.worth])
        weights = [weight for _, weight in terms.worth]
        self._worth = list(zip(places, weights, strict=True))
        self._wants_itself = terms.wants_itself
        self._never_scores = terms.never_scores
        super().__init__(counts, ())

    def filters(self, totals: Sequence[float]) -> bool:
        return bool(self._near or self._away or any(totals[at] for at in self._refusing))

    def scores(self, totals: Sequence[float]) -> bool:
        return not self._never_scores and any(totals[at] for at, _ in self._worth)

    def rejections(self, cells: CellCounts) -> Sequence[Rejection]:
        return list(
            rejections_of(
                self._lacking(cells),
                [
                    *((cells.of_cells(at) > 0, NO_ANTI_AFFINITY) for at in self._away),
                    *((cells.of_cells(at) > 0, REFUSED_BY_PLACED) for at in self._refusing),
                ],
            )
        )

    def _lacking(self, cells: CellCounts) -> Mask | None:
        """bool[cells]: where required affinity is not satisfied; None: nowhere."""
        if self._wants_itself and not any(is_any(cells.of_domains(at) > 0) for at in self._near):
            return None
        lacking: Mask | None = None
        for at in self._near:
            without = cells.of_cells(at) <= 0
            lacking = without if lacking is None else lacking | without
        return lacking

    def raw_scores(self, cells: CellCounts) -> NodeScores:
        total = sum(cells.of_cells(at) * weight for at, weight in self._worth)
        return np.asarray(total).astype(np.int64)

    def normalized(self, raw: NodeScores) -> NodeScores:
        return normalized(Normalizer.MIN_MAX, raw)


def _added(counts: list[DomainCount], more: Sequence[DomainCount]) -> Sequence[int]:
    """Extends ``counts``; the places of ``more`` in it."""
    start = len(counts)
    counts += more
    return range(start, len(counts))
