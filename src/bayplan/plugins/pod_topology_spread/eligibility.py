"""Which nodes count: nodes with the labels that the inclusion policies include.

nodeAffinityPolicy Honor leaves out nodes that the pod's node selector and required node affinity
exclude, nodeTaintsPolicy Honor those with a taint that the pod does not tolerate. The policies are
compiled once per shape, and evaluated once per view for all constraints; if all nodes are included,
there is no mask.
"""

from collections.abc import Iterable, Sequence
from typing import Final, cast, final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from bayplan.api.objects import Taint
from bayplan.api.selectors import NodeTerm, first_untolerated, keeps_away, map_selector, node_term
from bayplan.plugins.pod_topology_spread.constraints import Constraint
from bayplan.state.columns import Floats, Int32s, Mask
from bayplan.state.domain_counts import PodSet
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo, PodShape

#: intp[nodes]: 0 where the label is absent, else 1 + the id of its value.
Slots = npt.NDArray[np.intp]

#: The slot of nodes without the label.
ABSENT_SLOT = 0


@final
class Topology:
    """The nodes of one view as the constraints of one pod see them."""

    def __init__(self, pod: PodInfo, nodes: NodeView) -> None:
        self.nodes: Final = nodes
        self._shape = pod.shape
        self._slots: dict[str, Slots] = {}
        self._node_counts: dict[str, Floats] = {}
        self._masks: dict[bool, Mask | None] = {}

    def slots(self, key: str) -> Slots:
        slots = self._slots.get(key)
        if slots is None:
            # Widened once here, because bincount and take would each widen it again.
            slots = np.add(self.nodes.labels.ids(key), 1, dtype=np.intp)
            self._slots[key] = slots
        return slots

    def slot_count(self, key: str) -> int:
        return len(self.nodes.labels.values(key)) + 1

    @property
    def are_all(self) -> bool:
        """Whether these are all nodes of the cluster, for which the table has counts by domain."""
        return len(self.nodes) == self.nodes.table.node_count

    def node_counts(self, key: str) -> Floats:
        """float64[slots]: all nodes of the cluster by slot."""
        counts = self._node_counts.get(key)
        if counts is None:
            counts = self._node_counts[key] = self.pod_counts(key, None)
            counts[ABSENT_SLOT] = self.nodes.table.node_count - counts.sum()
        return counts

    def has_absent(self, key: str) -> bool:
        """Whether some node lacks the label."""
        if self.nodes.labels.any_missing(key):
            return self.are_all or not self.slots(key).all()
        return False

    def pod_counts(self, key: str, pods: PodSet | None) -> Floats:
        """float64[slots]: pods of the set (None: nodes) of all the cluster; of those without the
        label 0."""
        counts = np.zeros(self.slot_count(key))
        by_value = self.nodes.pods.by_domain(pods, key)
        if by_value is not None:
            counts[1:] = by_value[:-1]
        return counts

    def complete(self, constraints: Iterable[Constraint]) -> Mask | None:
        """bool[nodes]: nodes with the label of every constraint; None: all nodes."""
        complete: Mask | None = None
        for key in dict.fromkeys(constraint.topology_key for constraint in constraints):
            if self.has_absent(key):
                complete = both(complete, self.slots(key) != ABSENT_SLOT)
        return complete

    def included(self, constraint: Constraint) -> Mask | None:
        """bool[nodes]: nodes that the policies of a constraint include; None: all."""
        by_affinity = self.by_affinity() if constraint.honors_affinity else None
        by_taints = self._by_taints() if constraint.honors_taints else None
        return both(by_affinity, by_taints)

    def by_affinity(self) -> Mask | None:
        if True not in self._masks:
            self._masks[True] = _demands(self._shape).matching(self.nodes)
        return self._masks[True]

    def _by_taints(self) -> Mask | None:
        if False not in self._masks:
            tolerated = _tolerated(self._shape).table(self.nodes.taints.sets())
            everywhere = bool(tolerated.all())
            self._masks[False] = None if everywhere else tolerated.take(self.nodes.taints.set_ids())
        return self._masks[False]


def both(one: Mask | None, other: Mask | None) -> Mask | None:
    """Where both hold; None holds everywhere."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def summed(slots: Slots, counts: Int32s, slot_count: int) -> Floats:
    """float64[slots]: the counts of the nodes of each slot added up; whole numbers, so exact."""
    # numpy's stubs do not know that weights make the sums floats.
    return cast(Floats, np.bincount(slots, counts, slot_count))


def counts_node(shape: PodShape, constraint: Constraint, node: NodeInfo) -> bool:
    """Whether the policies of a constraint let one node in."""
    if constraint.honors_affinity and not _demands(shape).matches(node):
        return False
    return not constraint.honors_taints or not _has_untolerated(node.taints, shape)


# ---- node affinity -------------------------------------------------------------------------


class _Demands(Struct, frozen=True):
    """All labels of the pod's nodeSelector, and one of its required terms.

    Terms that do not parse match nothing.
    """

    selector: NodeTerm | None
    #: None: no required affinity; (): one that nothing satisfies.
    terms: tuple[NodeTerm, ...] | None

    def matching(self, nodes: NodeView) -> Mask | None:
        """bool[nodes]; None: nothing is demanded."""
        selected = None if self.selector is None else nodes.labels.matching_term(self.selector)
        if self.terms is None:
            return selected
        matching = np.zeros(len(nodes), np.bool_)
        for term in self.terms:
            matching |= nodes.labels.matching_term(term)
        return both(selected, matching)

    def matches(self, node: NodeInfo) -> bool:
        labels, name = node.labels, node.name
        if self.selector is not None and not self.selector.matches(labels, name):
            return False
        return self.terms is None or any(term.matches(labels, name) for term in self.terms)


def _demands(shape: PodShape) -> _Demands:
    return shape.once("PodTopologySpread.demands", _compiled_demands)


def _compiled_demands(shape: PodShape) -> _Demands:
    labels, affinity = shape.spec.node_selector, shape.spec.affinity
    rules = affinity.node_affinity if affinity is not None else None
    required = rules.required if rules is not None else None
    return _Demands(
        selector=NodeTerm(map_selector(labels).requirements) if labels else None,
        terms=None
        if required is None
        else tuple(node_term(term) for term in required.node_selector_terms or ()),
    )


# ---- taints --------------------------------------------------------------------------------


class _ToleratedTaints:
    """Whether one pod shape tolerates each distinct list of taints, by the list's id."""

    def __init__(self, shape: PodShape) -> None:
        # Not the shape itself: it holds this.
        self._tolerations = shape.tolerations
        self._taint_sets: Sequence[tuple[Taint, ...]] = ()
        self._table: Mask = np.zeros(0, np.bool_)

    def table(self, taint_sets: Sequence[tuple[Taint, ...]]) -> Mask:
        """bool[taint sets]; ``taint_sets`` is the cluster's vocabulary, which only grows."""
        if taint_sets is not self._taint_sets or len(taint_sets) != len(self._table):
            self._taint_sets = taint_sets
            answers = [
                first_untolerated(taints, self._tolerations, keeps_away) is None
                for taints in taint_sets
            ]
            self._table = np.array(answers, np.bool_)
        return self._table


def _tolerated(shape: PodShape) -> _ToleratedTaints:
    return shape.once("PodTopologySpread.tolerated", _ToleratedTaints)


def _has_untolerated(taints: Iterable[Taint], shape: PodShape) -> bool:
    return first_untolerated(taints, shape.tolerations, keeps_away) is not None
