"""NodeUnschedulable: reject nodes with spec.unschedulable, unless the pod tolerates it.

A pod tolerates it by a toleration of the taint that the node controller adds to such nodes, even
before the node has the taint. Upstream: plugins/nodeunschedulable.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import final

from bayplan.api.objects import NO_SCHEDULE, Node, Taint
from bayplan.api.selectors import tolerates
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ClusterEventWithHint, QueueingHint, taint_events
from bayplan.framework.plugin import (
    Caching,
    EnqueueExtensions,
    FilterPlugin,
    PreFilterPlugin,
    RowFilter,
    SignPlugin,
)
from bayplan.framework.status import Code, Rejection, Status
from bayplan.framework.types import PreFilterResult, Verdict
from bayplan.state.change_log import Facet
from bayplan.state.columns import NodeMask
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo, PodShape

UNSCHEDULABLE = "node(s) were unschedulable"

_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


@final
class NodeUnschedulable(PreFilterPlugin, FilterPlugin, RowFilter, EnqueueExtensions, SignPlugin):
    """Rejects cordoned nodes."""

    name = "NodeUnschedulable"
    caching = Caching(facets=Facet.TAINTS, signs_template=True, pre_state_per_template=True)
    ignores_resizes = True

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        """Upstream's PreFilter runs for every pod and never returns Skip."""
        return None

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        if nodes.taints.any_unschedulable() and not _tolerated(pod):
            rows = nodes.taints.unschedulable()
            yield Rejection(rows, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (UNSCHEDULABLE,))

    def filter_row(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Verdict:
        if node.unschedulable and not _tolerated(pod):
            return ((Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (UNSCHEDULABLE,)),)
        return ()

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return taint_events(_after_node, _after_tolerations)

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return (_tolerated(pod),)


def _after_node(pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
    """QUEUE if the node is schedulable, and was not schedulable or did not exist before."""
    was_closed = old is None or old.spec.unschedulable
    return QueueingHint.QUEUE if was_closed and not new.spec.unschedulable else _SKIP


def _after_tolerations(pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
    return QueueingHint.QUEUE if _tolerated(new) else _SKIP


_SKIP = QueueingHint.QUEUE_SKIP


def _tolerated(pod: PodInfo) -> bool:
    return pod.shape.once("NodeUnschedulable", _shape_tolerates)


def _shape_tolerates(shape: PodShape) -> bool:
    return any(tolerates(toleration, _TAINT) for toleration in shape.tolerations)
