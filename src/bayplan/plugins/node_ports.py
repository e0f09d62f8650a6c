"""NodePorts: reject nodes on which a host port of the pod is in use.

Ports in use are indexed by (protocol, port), so a conflict is a look-up. Upstream:
plugins/nodeports.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, final

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.framework.plugin import (
    Caching,
    EnqueueExtensions,
    FilterPlugin,
    PreFilterPlugin,
    RowFilter,
    SignPlugin,
)
from bayplan.framework.status import SKIP, Code, Rejection, Status
from bayplan.framework.types import PreFilterResult, Verdict
from bayplan.state.change_log import Facet
from bayplan.state.columns import NodeMask
from bayplan.state.host_ports import conflicts
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo, PodShape

PORT_TAKEN = "node(s) didn't have free ports for the requested pod ports"
_TAKEN: Final = ((Code.UNSCHEDULABLE, (PORT_TAKEN,)),)


@final
class NodePorts(PreFilterPlugin, FilterPlugin, RowFilter, EnqueueExtensions, SignPlugin):
    """Rejects nodes on which a host port of the pod is in use."""

    name = "NodePorts"
    caching = Caching(
        facets=Facet.PORTS, amounts_only=True, signs_template=True, pre_state_per_template=True
    )
    ignores_resizes = True

    def concerns(self, shape: PodShape) -> bool:
        return bool(shape.host_ports)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        return None if pod.shape.host_ports else SKIP

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        taken = nodes.pods.conflicting_ports(pod.shape.host_ports)
        if np.count_nonzero(taken):
            yield nodes.reject(taken, PORT_TAKEN)

    def filter_row(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Verdict:
        for port in pod.shape.host_ports:
            if node.is_port_taken(port):
                return _TAKEN
        return ()

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        pod_gone = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
        node_added = ClusterEvent(EventResource.NODE, ActionType.ADD)
        return [
            ClusterEventWithHint(pod_gone, _after_pod_gone),
            ClusterEventWithHint(node_added),
        ]

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """Address, protocol and port, sorted, with their defaults."""
        return pod.shape.host_ports


def _after_pod_gone(pod: PodInfo, old: PodInfo, new: None) -> QueueingHint:
    """QUEUE if the deleted pod was placed or nominated, and had a conflicting host port."""
    freed = old.shape.host_ports if old.node_name or old.nominated_node_name else ()
    ports = pod.shape.host_ports
    if any(conflicts(one, other) for one in ports for other in freed):
        return QueueingHint.QUEUE
    return QueueingHint.QUEUE_SKIP
