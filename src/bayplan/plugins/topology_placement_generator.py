"""TopologyPlacementGenerator: the placements of a group are the values of a topology key.

A group with a topology constraint is to have all its members on nodes that share a value of one
label. Without a constraint, it may use all nodes. Members that have a node decide for the others.
Upstream: plugins/topologyaware (v1.37), which lists the placements in no order; here they are
sorted by value.
"""

from collections.abc import Sequence
from typing import final

from bayplan.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from bayplan.framework.placements import LabelPlacements, Placement
from bayplan.framework.plugin import EnqueueExtensions, PlacementGeneratePlugin
from bayplan.framework.status import Code, Status
from bayplan.state.nodes import NodeView
from bayplan.state.pod_group_trees import GroupTree
from bayplan.state.pod_groups import GroupState, node_of

_ALL_NODES = (Placement(),)


@final
class TopologyPlacementGenerator(PlacementGeneratePlugin, EnqueueExtensions):
    """Generates one placement for each value of the topology key of a group."""

    name = "TopologyPlacementGenerator"

    def setup(self) -> None:
        self._placements = LabelPlacements()

    def generate_placements(
        self, group: GroupState | GroupTree, nodes: NodeView
    ) -> Sequence[Placement] | Status:
        key = "" if group.group is None else group.group.required_topology
        if not key:
            return _ALL_NODES
        domain = _domain_of_members(group, nodes.all(), key)
        if isinstance(domain, Status):
            return domain
        placements = self._placements.of(nodes, key)
        if domain is None:
            return placements
        return [placement for placement in placements if placement.name == domain]

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A new node or a changed label may be another placement. In kube-scheduler any event
        retries a group without a placement."""
        return (
            ClusterEventWithHint(
                ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
            ),
        )


def _domain_of_members(
    group: GroupState | GroupTree, nodes: NodeView, key: str
) -> str | Status | None:
    """The value of the key that the nodes of the members share; None: no member has a node."""
    domain: str | None = None
    for pod in group.assigned():
        where, node_name = f"{group.key.namespace}/{pod.metadata.name}", node_of(pod)
        position = nodes.position(node_name)
        if position is None:
            text = f'nodeinfo not found for node name "{node_name}"'
            return _unknown_domain(f"getting node for pod {where}: {text}")
        value = nodes.info(position).labels.get(key)
        if value is None:
            return _unknown_domain(f"no topology domain found for pod {where}")
        if domain not in (None, value):
            return _unknown_domain(f"more than 1 domain found for pod group: {domain}, {value}")
        domain = value
    return domain


def _unknown_domain(problem: str) -> Status:
    text = f"cannot determine domain for already scheduled pods: {problem}"
    return Status(Code.ERROR, (text,))
