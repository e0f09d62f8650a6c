"""NodeName: a pod that names its node in spec.nodeName fits no other node.

The author of such a pod has usually bound the pod already. Upstream: plugins/nodename.

NodeNameOrder is a tie-break key of Bayplan: among equal nodes, the one with the smallest name.
Names are compared letter by letter, as kubectl sorts them: node-10 comes before node-9.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import final

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from bayplan.framework.plugin import (
    Caching,
    EnqueueExtensions,
    FilterPlugin,
    PreFilterPlugin,
    RowFilter,
    SignPlugin,
)
from bayplan.framework.status import Code, Rejection, Status
from bayplan.framework.tie_break import TieBreakPlugin
from bayplan.framework.types import PreFilterResult, Verdict
from bayplan.state.change_log import Facet
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo

# ---- node name ------------------------------------------------------------------------------


OTHER_NODE = "node(s) didn't match the requested node name"


@final
class NodeName(PreFilterPlugin, FilterPlugin, RowFilter, EnqueueExtensions, SignPlugin):
    """Restricts a pod to the node that it names."""

    name = "NodeName"
    caching = Caching(facets=Facet.NODE, signs_template=True, pre_state_per_template=True)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        return PreFilterResult(frozenset((pod.node_name,))) if pod.node_name else None

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        if not pod.node_name:
            return
        elsewhere = np.ones(len(nodes), np.bool_)
        position = nodes.position(pod.node_name)
        if position is not None:
            elsewhere[position] = False
        yield Rejection(elsewhere, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (OTHER_NODE,))

    def filter_row(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Verdict:
        if pod.node_name and pod.node_name != node.name:
            return ((Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (OTHER_NODE,)),)
        return ()

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [ClusterEventWithHint(ClusterEvent(EventResource.NODE, ActionType.ADD))]

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return (pod.node_name,)


# ---- node name order ------------------------------------------------------------------------


@final
class NodeNameOrder(TieBreakPlugin):
    """Prefers the smallest name to all others."""

    name = "NodeNameOrder"
    scope = "cluster"
    caching = Caching(facets=Facet(0))

    def tie_break(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: 1 for the smallest name, 0 for all others."""
        names = nodes.names()
        first = np.zeros(len(names), np.int64)
        first[min(range(len(names)), key=names.__getitem__)] = 1
        return first
