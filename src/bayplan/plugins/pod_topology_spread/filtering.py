"""Hard constraints: how full each domain is, and which nodes are in one that is too full.

A domain is too full if its matching pods, with this one, would exceed the emptiest eligible
domain's by more than maxSkew. Upstream: podtopologyspread/filtering.go, which stores the two
emptiest domains; here the emptiest domain is computed when it is read after a change.
"""

from collections.abc import Iterable, Sequence
from typing import Final, final

import numpy as np

from bayplan.framework.cycle_state import Cloneable
from bayplan.framework.status import Code, Rejection
from bayplan.plugins.pod_topology_spread.constraints import Constraint
from bayplan.plugins.pod_topology_spread.eligibility import (
    ABSENT_SLOT,
    Topology,
    both,
    counts_node,
    summed,
)
from bayplan.state.columns import Floats, Mask
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo

TOO_SKEWED = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{TOO_SKEWED} (missing required label)"

#: The count of upstream's emptiest domain if there is no domain.
NO_DOMAIN_COUNT = 2**31 - 1


class _Domains:
    """Matching pods per domain of one constraint; only the owner changes it."""

    __slots__ = ("counts", "lowest_count", "owner", "present")

    def __init__(self, owner: object, counts: Floats, present: Mask) -> None:
        self.owner = owner
        #: float64[slots]: exact whole numbers; 0 without an eligible node. The absent slot is
        #: undefined.
        self.counts = counts
        #: bool[slots]: which domains have an eligible node.
        self.present = present
        #: The count of the emptiest domain; None: not computed since the last change.
        self.lowest_count: float | None = None

    def owned_by(self, owner: object) -> "_Domains":
        """Itself, or a copy that ``owner`` may change."""
        if self.owner is owner:
            return self
        return _Domains(owner, self.counts.copy(), self.present.copy())

    def lowest(self, min_domains: int) -> float:
        if self.lowest_count is None:
            present_counts = self.counts[self.present]
            if len(present_counts) < min_domains:
                self.lowest_count = 0.0
            else:
                self.lowest_count = float(present_counts.min(initial=NO_DOMAIN_COUNT))
        return self.lowest_count

    def change(self, slot: int, step: int) -> None:
        missing_count = slot + 1 - len(self.counts)
        if missing_count > 0:
            self.counts = np.append(self.counts, np.zeros(missing_count))
            self.present = np.append(self.present, np.zeros(missing_count, np.bool_))
        self.counts[slot] += step
        self.present[slot] = True
        self.lowest_count = None


@final
class HardSpread(Cloneable):
    """The result of PreFilter for Filter; add_pod and remove_pod update it in a what-if.

    Clones share their counts until one of them changes.
    """

    def __init__(
        self, constraints: Sequence[Constraint], domains: list[_Domains], topology: Topology
    ) -> None:
        """``topology``: of the counted nodes; mostly Filter evaluates the same nodes."""
        self._constraints: Final = constraints
        self._domains = domains
        self._topology = topology

    def clone(self) -> "HardSpread":
        # From here on the counts are shared: the original does not own them either.
        for domains in self._domains:
            domains.owner = None
        return HardSpread(self._constraints, list(self._domains), self._topology)

    def change(self, pod: PodInfo, other: PodInfo, node: NodeInfo, step: int) -> None:
        """Another pod comes to a node (step 1) or leaves it (-1).

        As upstream, a pod that is being deleted counts here although it was not counted before,
        and an empty selector matches it.
        """
        if other.namespace != pod.namespace:
            return
        labels = node.labels
        if not all(constraint.topology_key in labels for constraint in self._constraints):
            return
        for index, constraint in enumerate(self._constraints):
            if not constraint.selector.matches(other.labels):
                continue
            if counts_node(pod.shape, constraint, node):
                domains = self._domains[index] = self._domains[index].owned_by(self)
                domains.change(node.label_id(constraint.topology_key) + 1, step)

    def rejections(self, pod: PodInfo, nodes: NodeView) -> Iterable[Rejection]:
        """A node's first violated constraint is its reason."""
        topology = self._topology if self._topology.nodes is nodes else Topology(pod, nodes)
        unlabelled: Mask | None = None
        skewed: Mask | None = None
        for constraint, domains in zip(self._constraints, self._domains, strict=True):
            missing = _missing(topology, constraint)
            crowded = _crowded(topology, constraint, domains)
            if missing is not None:
                missing = missing if skewed is None else missing & ~skewed
                unlabelled = missing if unlabelled is None else unlabelled | missing
            if crowded is not None:
                crowded = crowded if unlabelled is None else crowded & ~unlabelled
                skewed = crowded if skewed is None else skewed | crowded
        if unlabelled is not None:
            yield Rejection(unlabelled, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (NO_LABEL,))
        if skewed is not None:
            yield Rejection(skewed, Code.UNSCHEDULABLE, (TOO_SKEWED,))


def hard_spread(constraints: Sequence[Constraint], pod: PodInfo, nodes: NodeView) -> HardSpread:
    """Count the matching pods of every domain of all ``nodes``."""
    topology = Topology(pod, nodes)
    complete = topology.complete(constraints)
    domains = [_counted(topology, c, complete) for c in constraints]
    return HardSpread(constraints, domains, topology)


def _counted(topology: Topology, constraint: Constraint, complete: Mask | None) -> _Domains:
    """Nodes that do not count go into the slot that is never read."""
    key, eligible = constraint.topology_key, both(complete, topology.included(constraint))
    if eligible is None and topology.are_all:
        return _recount(topology, constraint)
    slots, slot_count = topology.slots(key), topology.slot_count(key)
    if eligible is not None:
        slots = slots * eligible
    present = np.bincount(slots, minlength=slot_count).astype(np.bool_)
    present[ABSENT_SLOT] = False
    if constraint.pods is None:
        return _Domains(None, np.zeros(slot_count), present)
    counts = summed(slots, topology.nodes.pods.matching(constraint.pods), slot_count)
    return _Domains(None, counts, present)


def _recount(topology: Topology, constraint: Constraint) -> _Domains:
    """The same where every node counts: no pass over the nodes."""
    key = constraint.topology_key
    present = topology.node_counts(key) > 0
    present[ABSENT_SLOT] = False
    if constraint.pods is None:
        return _Domains(None, np.zeros(len(present)), present)
    return _Domains(None, topology.pod_counts(key, constraint.pods), present)


def _missing(topology: Topology, constraint: Constraint) -> Mask | None:
    """bool[nodes]: nodes without the label; None: no node."""
    key = constraint.topology_key
    return topology.slots(key) == ABSENT_SLOT if topology.has_absent(key) else None


def _crowded(topology: Topology, constraint: Constraint, domains: _Domains) -> Mask | None:
    """bool[nodes]: nodes in a domain that is too full; None: no node. Undefined for nodes without
    the label."""
    limit = constraint.max_skew - constraint.self_match_count
    limit += domains.lowest(constraint.min_domains)
    too_full = domains.counts > limit
    # Domains that PreFilter did not see hold no pod that counts.
    missing_count = topology.slot_count(constraint.topology_key) - len(too_full)
    if missing_count > 0:
        too_full = np.append(too_full, np.full(missing_count, limit < 0))
    return too_full.take(topology.slots(constraint.topology_key)) if too_full.any() else None
