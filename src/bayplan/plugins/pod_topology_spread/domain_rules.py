"""The constraints of a pod as `DomainRules`: verdict and score by the counts of a node's domains.

They apply where every node counts: each node has the labels of all constraints, and no inclusion
policy leaves a node out. The formulas are those of `filtering.py` and `scoring.py`.
"""

from collections.abc import Iterable, Sequence
from typing import final

import numpy as np

from bayplan.api.objects import HOSTNAME_LABEL
from bayplan.framework.arithmetic import round_half_away
from bayplan.framework.domain_rules import CellCounts, DomainCount, DomainRules
from bayplan.framework.status import Code, Rejection
from bayplan.plugins.pod_topology_spread.constraints import Constraint
from bayplan.plugins.pod_topology_spread.eligibility import Topology
from bayplan.plugins.pod_topology_spread.filtering import NO_DOMAIN_COUNT, TOO_SKEWED
from bayplan.plugins.pod_topology_spread.scoring import domain_weight, normalized, scored
from bayplan.state.columns import Floats, Mask, NodeScores, is_any
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo


@final
class SpreadDomainRules(DomainRules):
    """``hard`` filter, ``soft`` score."""

    __slots__ = ("_hard", "_soft")

    def __init__(self, hard: Sequence[Constraint], soft: Sequence[Constraint]) -> None:
        counts: list[DomainCount] = []
        self._hard = _with_index(hard, counts)
        self._soft = _with_index(soft, counts)
        super().__init__(counts, [constraint.topology_key for constraint in soft])

    def filters(self, totals: Sequence[float]) -> bool:
        return bool(self._hard)

    def scores(self, totals: Sequence[float]) -> bool:
        return bool(self._soft)

    def rejections(self, cells: CellCounts) -> Iterable[Rejection]:
        skewed: Mask | None = None
        for constraint, index in self._hard:
            limit = constraint.max_skew - constraint.self_match_count
            # An empty selector counts no pod: each domain has 0.
            counts: Floats | float = 0.0
            lowest = 0.0
            if index >= 0:
                counts = cells.of_cells(index)
                of_domains = cells.of_domains(index)
                if len(of_domains) >= constraint.min_domains:
                    lowest = float(np.minimum.reduce(of_domains, initial=NO_DOMAIN_COUNT))
            too_full = np.asarray(counts > limit + lowest)
            skewed = too_full if skewed is None else skewed | too_full
        if skewed is not None and is_any(skewed):
            yield Rejection(skewed, Code.UNSCHEDULABLE, (TOO_SKEWED,))

    def raw_scores(self, cells: CellCounts) -> NodeScores:
        total: Floats | float = 0.0
        for constraint, index in self._soft:
            key = constraint.topology_key
            is_host = key == HOSTNAME_LABEL
            weight = domain_weight(cells.node_count if is_host else cells.domain_count(key))
            total = total + scored(cells.of_cells(index), constraint, weight)
        return round_half_away(np.asarray(total))

    def normalized(self, raw: NodeScores) -> NodeScores:
        return normalized(raw)


def _with_index(
    constraints: Sequence[Constraint], counts: list[DomainCount]
) -> Sequence[tuple[Constraint, int]]:
    """(constraint, its place in ``counts``, or -1: it counts no pod); extends ``counts``."""
    indexed: list[tuple[Constraint, int]] = []
    for constraint in constraints:
        if constraint.pods is None:
            indexed.append((constraint, -1))
        else:
            indexed.append((constraint, len(counts)))
            counts.append(DomainCount(constraint.topology_key, constraint.pods))
    return indexed


def spread_domain_rules(
    hard: Sequence[Constraint], soft: Sequence[Constraint], pod: PodInfo, nodes: NodeView
) -> SpreadDomainRules | None:
    """None: some node does not count, or soft constraints cannot be scored by domain."""
    topology = Topology(pod, nodes)
    constraints = (*hard, *soft)
    if topology.complete(constraints) is not None:
        return None
    for constraint in constraints:
        # Whether taints leave out a node changes with the taints, and cells follow counts alone.
        if constraint.honors_taints or topology.included(constraint) is not None:
            return None
    for constraint in soft:
        if constraint.pods is None:
            return None
        # Scores count the pods of a host on its node alone, whatever other node has its label.
        is_host = constraint.topology_key == HOSTNAME_LABEL
        if is_host and len(np.unique(nodes.labels.ids(HOSTNAME_LABEL))) < len(nodes):
            return None
    return SpreadDomainRules(hard, soft)
