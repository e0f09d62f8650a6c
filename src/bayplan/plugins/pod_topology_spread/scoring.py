"""Soft constraints: the fewer matching pods a node's domains hold, the better the node.

A node's raw score adds up, over the constraints, its domain's count x a weight that grows with the
number of domains, plus maxSkew - 1: where more skew is allowed, differences matter less. Upstream:
podtopologyspread/scoring.go, in the same order of float64 operations.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct

from bayplan.api.objects import HOSTNAME_LABEL
from bayplan.framework.arithmetic import divide, highest, lowest, round_half_away
from bayplan.framework.types import MAX_NODE_SCORE
from bayplan.plugins.pod_topology_spread.constraints import Constraint
from bayplan.plugins.pod_topology_spread.eligibility import (
    ABSENT_SLOT,
    Topology,
    both,
    summed,
)
from bayplan.state.columns import Floats, Mask, NodeScores
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

_SIZES_REMEMBERED = 4096

#: So many scores are computed each once, and looked up by node.
_FEW_SCORES = 1024


class _Part(Struct, frozen=True):
    """The part of a node's score for one constraint."""

    constraint: Constraint
    weight: float
    #: float64[slots], 0 for nodes without the label; None: counted on the node itself.
    by_slot: Floats | None


class SoftSpread(Struct, frozen=True):
    """The result of PreScore for Score and NormalizeScore."""

    parts: Sequence[_Part]
    #: Whether nodes without all the labels are left out.
    require_all: bool
    #: bool[feasible nodes]: ignored nodes; None: no node.
    ignored: Mask | None
    #: Of the feasible nodes.
    topology: Topology

    def scores(self, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: the lower the better."""
        topology = self.topology if self.topology.nodes is nodes else Topology(pod, nodes)
        if len(self.parts) == 1 and (by_slot := self.parts[0].by_slot) is not None:
            # Rounded once per domain; nodes without the label have 0 as it is.
            key = self.parts[0].constraint.topology_key
            return round_half_away(by_slot).take(topology.slots(key))
        total: Floats = np.zeros(len(nodes))
        for part in self.parts:
            total += _added(part, topology)
        if self.require_all:
            complete = topology.complete([part.constraint for part in self.parts])
            if complete is not None:
                total *= complete
        return round_half_away(total)

    def normalized(self, scores: NodeScores) -> NodeScores:
        """int64[feasible nodes] in 0..100, reversed: the node with the most pods gets about 0."""
        return normalized(scores, self.ignored)


def normalized(scores: NodeScores, ignored: Mask | None = None) -> NodeScores:
    """int64[nodes] in 0..100; ``ignored``: bool[nodes], nodes that get 0; None: no node."""
    counted = scores if ignored is None else scores[~ignored]
    if not len(counted):
        return np.zeros(len(scores), np.int64)
    least, most = lowest(counted), max(highest(counted), 0)
    if not most:
        final = np.full(len(scores), MAX_NODE_SCORE, np.int64)
    elif ignored is None and least >= 0 and most - least < _FEW_SCORES < len(scores):
        every = np.arange(least, most + 1)
        final = divide(MAX_NODE_SCORE * (most + least - every), most).take(scores - least)
    else:
        final = divide(MAX_NODE_SCORE * (most + least - scores), most)
    return final if ignored is None else final * ~ignored


def soft_spread(
    constraints: Sequence[Constraint], require_all: bool, pod: PodInfo, feasible: NodeView
) -> SoftSpread:
    """Count the matching pods, on all nodes, of the domains that ``feasible`` nodes are in."""
    near = everywhere = Topology(pod, feasible)
    if len(feasible) < feasible.table.node_count:
        everywhere = Topology(pod, feasible.all())
    complete = near.complete(constraints) if require_all else None
    counted = complete
    if require_all and everywhere is not near:
        counted = everywhere.complete(constraints)
    parts: list[_Part] = []
    for constraint in constraints:
        if constraint.topology_key == HOSTNAME_LABEL:
            node_count = len(feasible) if complete is None else int(np.count_nonzero(complete))
            parts.append(_Part(constraint, domain_weight(node_count), None))
            continue
        tracked = _tracked(near, constraint, complete)
        counts = _counts(everywhere, constraint, counted)
        if not require_all:
            _merge_empty(tracked, counts, feasible.labels.values(constraint.topology_key))
        weight = domain_weight(int(np.count_nonzero(tracked)))
        by_slot = scored(counts, constraint, weight)
        by_slot[ABSENT_SLOT] = 0
        parts.append(_Part(constraint, weight, by_slot))
    return SoftSpread(parts, require_all, None if complete is None else ~complete, near)


def _added(part: _Part, topology: Topology) -> Floats:
    """float64[nodes]"""
    constraint = part.constraint
    slots = topology.slots(constraint.topology_key)
    if part.by_slot is not None:
        return part.by_slot.take(slots)
    if constraint.pods is None:
        counts: Floats = np.zeros(len(slots))
    else:
        counts = topology.nodes.pods.matching(constraint.pods).astype(np.float64)
    added = scored(counts, constraint, part.weight)
    return added if slots.all() else added * (slots != ABSENT_SLOT)


def scored(counts: Floats, constraint: Constraint, weight: float) -> Floats:
    """float64[like ``counts``]: what domains with so many matching pods add to a raw score."""
    return counts * weight + float(constraint.max_skew - 1)


def _tracked(topology: Topology, constraint: Constraint, complete: Mask | None) -> Mask:
    """bool[slots]: the domains of feasible nodes that are not left out."""
    if complete is None and topology.are_all:
        return topology.node_counts(constraint.topology_key) > 0
    slots = topology.slots(constraint.topology_key)
    if complete is not None:
        slots = slots[complete]
    slot_count = topology.slot_count(constraint.topology_key)
    return np.bincount(slots, minlength=slot_count).astype(np.bool_)


def _counts(topology: Topology, constraint: Constraint, complete: Mask | None) -> Floats:
    """float64[slots]: matching pods on nodes that count."""
    slot_count = topology.slot_count(constraint.topology_key)
    if constraint.pods is None:
        return np.zeros(slot_count)
    eligible = both(complete, topology.included(constraint))
    if eligible is None and not topology.has_absent(constraint.topology_key):
        return topology.pod_counts(constraint.topology_key, constraint.pods)
    pods = topology.nodes.pods.matching(constraint.pods)
    if eligible is not None:
        pods = pods * eligible
    return summed(topology.slots(constraint.topology_key), pods, slot_count)


def _merge_empty(tracked: Mask, counts: Floats, values: Sequence[str]) -> None:
    """Nodes without the label are one domain with those whose label is empty (fact of v1.37.0)."""
    if "" in values:
        empty_slot = values.index("") + 1
        counts[empty_slot] += counts[ABSENT_SLOT]
        tracked[empty_slot] |= tracked[ABSENT_SLOT]
        tracked[ABSENT_SLOT] = False


@lru_cache(_SIZES_REMEMBERED)
def domain_weight(domain_count: int) -> float:
    """The weight of a count. Smaller topologies are not watered down by larger ones.

    Upstream: math.Log(size + 2).
    """
    return go_log(domain_count + 2)


def go_log(number: int) -> float:
    """The natural logarithm of a positive number, to the last bit as Go computes it.

    Python's is the C library's, which in one case of a hundred differs in that bit. The algorithm
    is FreeBSD's e_log.c: number = 2^k (1 + f), and log(1 + f) by a polynomial in f / (2 + f).
    """
    fraction, k = math.frexp(number)
    if fraction < math.sqrt(2) / 2:
        fraction, k = fraction * 2, k - 1
    f = fraction - 1
    s = f / (2 + f)
    s2 = s * s
    s4 = s2 * s2
    odd = s2 * (_L1 + s4 * (_L3 + s4 * (_L5 + s4 * _L7)))
    even = s4 * (_L2 + s4 * (_L4 + s4 * _L6))
    half_square = 0.5 * f * f
    return k * _LN2_HIGH - ((half_square - (s * (half_square + (odd + even)) + k * _LN2_LOW)) - f)


_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_L1 = 6.666666666666735130e-01
_L2 = 3.999999999940941908e-01
_L3 = 2.857142874366239149e-01
_L4 = 2.222219843214978396e-01
_L5 = 1.818357216161805012e-01
_L6 = 1.531383769920937332e-01
_L7 = 1.479819860511658591e-01
