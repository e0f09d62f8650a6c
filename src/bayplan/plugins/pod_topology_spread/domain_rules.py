"""The constraints of a pod as `DomainRules`: verdict and score by the counts of a node's domains.

They apply where each node has the labels of all constraints. A default constraint whose label no
node has adds nothing. The formulas are those of `filtering.py` and `scoring.py`.
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
from bayplan.state.columns import Floats, Mask, NodeScores, Rows, is_any
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo


@final
class SpreadDomainRules(DomainRules):
    """``hard`` filter, ``soft`` score."""

    __slots__ = ("_hard", "_soft")

    def __init__(
        self, hard: Sequence[Constraint], soft: Sequence[Constraint], included: Rows | None
    ) -> None:
        """``included``: the rows of the nodes that count for constraints that honor the pod's node
        affinity; None: all nodes."""
        counts: list[DomainCount] = []
        self._hard = _with_index(hard, counts, included, included)
        # Scores count the pods of a host on its node, whichever nodes are included.
        self._soft = _with_index(soft, counts, included, None)
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
    constraints: Sequence[Constraint],
    counts: list[DomainCount],
    included: Rows | None,
    included_hosts: Rows | None,
) -> Sequence[tuple[Constraint, int]]:
    """(constraint, its place in ``counts``, or -1: it counts no pod); extends ``counts``."""
    indexed: list[tuple[Constraint, int]] = []
    for constraint in constraints:
        if constraint.pods is None:
            indexed.append((constraint, -1))
            continue
        indexed.append((constraint, len(counts)))
        rows = included_hosts if constraint.topology_key == HOSTNAME_LABEL else included
        rows = rows if constraint.honors_affinity else None
        counts.append(DomainCount(constraint.topology_key, constraint.pods, rows))
    return indexed


def spread_domain_rules(
    hard: Sequence[Constraint],
    soft: Sequence[Constraint],
    pod: PodInfo,
    nodes: NodeView,
    *,
    require_all: bool,
) -> SpreadDomainRules | None:
    """``require_all``: whether scores leave out nodes without all the labels. None: some node lacks
    a label, or the constraints cannot be evaluated by domain."""
    topology = Topology(pod, nodes)
    if soft and not require_all:
        soft = [each for each in soft if topology.node_counts(each.topology_key)[1:].any()]
        if not soft:  # Every node gets the same score, and no cell says so.
            return None
    constraints = (*hard, *soft)
    if topology.complete(constraints) is not None:
        return None
    # Whether taints leave out a node changes with the taints, and cells follow counts alone.
    if any(constraint.honors_taints for constraint in constraints):
        return None
    for constraint in soft:
        if constraint.pods is None:
            return None
        # Scores count the pods of a host on its node alone, whatever other node has its label.
        is_host = constraint.topology_key == HOSTNAME_LABEL
        if is_host and len(np.unique(nodes.labels.ids(HOSTNAME_LABEL))) < len(nodes):
            return None
    included = topology.by_affinity()
    rows = None if included is None else nodes.table.rows[included]
    return SpreadDomainRules(hard, soft, rows)
