"""Exclusive domains: a group has the domains of its members alone.

The annotation `bayplan.dev/exclusive-topology` of a group names a node label. While a member of the
group is on a node, no other pod goes to a node with the same value of the label; and a member does
not go to a domain that has another pod. Pods of DaemonSets are on all nodes and do not count. A pod
that is in a domain already stays: nothing is evicted.

While no group has the annotation, nothing is computed.
"""

from collections.abc import Iterable
from typing import Final, final

import numpy as np

from bayplan.api.pod_groups import GroupKey
from bayplan.framework.events import (
    EVENT_ASSIGNED_POD_DELETE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
)
from bayplan.rng import stable_hash
from bayplan.state.cache import Snapshot
from bayplan.state.change_log import Facet
from bayplan.state.columns import Int64s, Mask
from bayplan.state.nodes import NodeView
from bayplan.state.pod_groups import GroupState, PodGroups
from bayplan.state.pods import PodInfo

#: The rejecting plugin of pods that would fit in domains which they must not share.
EXCLUSIVE_NAME: Final = "PodGroupExclusiveTopology"
TAKEN: Final = "node(s) in a domain that another group of pods has alone"
NOT_ALONE: Final = "node(s) in a domain that the group would not have alone"
#: The event that a group no longer has its domains alone.
EXCLUSIVE_OVER: Final = ClusterEvent(EXCLUSIVE_NAME, ActionType.DELETE)
_NODE_CHANGES: Final = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL
EXCLUSIVE_EVENTS: Final = (
    ClusterEventWithHint(EXCLUSIVE_OVER),
    ClusterEventWithHint(EVENT_ASSIGNED_POD_DELETE),
    ClusterEventWithHint(ClusterEvent(EventResource.NODE, _NODE_CHANGES)),
)

#: Two values of the occupants of a node: no pod counts; the pods are of no group, or of several
#: groups.
_NOBODY: Final = -1
_SEVERAL: Final = -2


@final
class ExclusiveDomains:
    """The domains that a pod must not use, because it or another pod has to be alone."""

    def __init__(self, groups: PodGroups) -> None:
        #: The groups that have their domains alone. While there are none, no pod is restricted.
        self.groups = groups.exclusive

    def barred_nodes(self, snapshot: Snapshot, pod: PodInfo) -> tuple[frozenset[str], str]:
        """The names of the nodes that a pod must not use, and why."""
        exclusive = self.groups
        if not exclusive or is_daemon(pod):
            return frozenset(), ""
        barred, why = np.zeros(len(snapshot.nodes), np.bool_), ""
        for key, state in exclusive.items():
            if key != pod.group_key and state.assigned_count:
                barred |= _domains_of(snapshot.nodes, state, state.node_names())
                why = TAKEN
        own = None if pod.group_key is None else exclusive.get(pod.group_key)
        if own is not None:
            barred |= _shared_domains(snapshot.nodes, own)
            why = NOT_ALONE
        names = snapshot.nodes.names()
        rows: list[int] = np.flatnonzero(barred).tolist()
        return frozenset(names[row] for row in rows), why


def is_daemon(pod: PodInfo) -> bool:
    return any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references or ())


def domain_nodes(nodes: NodeView, state: GroupState, names: Iterable[str]) -> frozenset[str]:
    """The nodes of the domains that a group has alone if its members are on these nodes. There are
    none if the group is not exclusive."""
    if state.group is None or not state.group.exclusive_topology:
        return frozenset()
    all_names = nodes.names()
    rows: list[int] = np.flatnonzero(_domains_of(nodes, state, names)).tolist()
    return frozenset(all_names[row] for row in rows)


def _domains_of(nodes: NodeView, state: GroupState, names: Iterable[str]) -> Mask:
    """bool [nodes]: the domains of some nodes."""
    ids = _ids(nodes, state)
    return np.isin(ids, _with_label(ids[nodes.positions(sorted(names))]))


def _shared_domains(nodes: NodeView, state: GroupState) -> Mask:
    """bool [nodes]: the domains with a pod that is no member of a group, and nodes of no domain."""
    ids, occupants = _ids(nodes, state), _occupants(nodes)
    is_foreign = (occupants != _NOBODY) & (occupants != _number(state.key))
    return (ids < 0) | np.isin(ids, _with_label(ids[is_foreign]))


def _ids(nodes: NodeView, state: GroupState) -> Int64s:
    assert state.group is not None, "only a group with an object is exclusive"
    return nodes.labels.ids(state.group.exclusive_topology).astype(np.int64)


def _with_label(ids: Int64s) -> Int64s:
    return np.unique(ids[ids >= 0])


def _occupants(nodes: NodeView) -> Int64s:
    """int64 [nodes]: the number of the group whose members are the only pods, `_NOBODY` or
    `_SEVERAL`."""
    return nodes.derived("occupants", Facet.PODS, np.int64, _occupants_of)


def _occupants_of(nodes: NodeView) -> Int64s:
    return np.fromiter((_occupant(info.pods) for info in nodes.infos()), np.int64, len(nodes))


def _occupant(pods: list[PodInfo]) -> int:
    keys = {pod.group_key for pod in pods if not is_daemon(pod)}
    if not keys:
        return _NOBODY
    only = keys.pop()
    return _SEVERAL if keys or only is None else _number(only)


def _number(key: GroupKey) -> int:
    """A number for a group, 0 or more."""
    return stable_hash(f"{key.api_group}/{key}") >> 1
