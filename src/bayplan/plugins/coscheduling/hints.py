"""What makes a member that was rejected worth another attempt.

A sibling that comes, or gets a node, may complete the group; a change of the group's object may
ask for less; room that is freed may let one more member wait. A place that a member of some group
gives back, unbound, is no such room: two groups that both fall short would hand it to and fro.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from bayplan.api.objects import Node
from bayplan.api.pod_groups import GroupKey, PodGroupKinds
from bayplan.framework.events import (
    UPDATE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    resource_of_kind,
)
from bayplan.state.pod_groups import PodGroups, Standing
from bayplan.state.pods import DEFAULT_NAMESPACE, PodInfo

_QUEUE, _SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP


def member_events(groups: PodGroups) -> Sequence[ClusterEventWithHint]:
    """What members wait for, with hints that look at their groups."""
    came = ClusterEvent(EventResource.POD, ActionType.ADD)
    left = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
    added_or_grown = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
    more_nodes = ClusterEvent(EventResource.NODE, added_or_grown)
    return [
        ClusterEventWithHint(came, _after_pod_came),
        ClusterEventWithHint(left, partial(_after_pod_left, groups)),
        ClusterEventWithHint(more_nodes, partial(_after_node, groups)),
        *_group_events(groups.kinds),
    ]


def _group_events(kinds: PodGroupKinds) -> list[ClusterEventWithHint]:
    changed = ActionType.ADD | UPDATE
    return [
        ClusterEventWithHint(
            ClusterEvent(resource, changed), partial(_after_group, resource.partition("/")[0])
        )
        for resource in dict.fromkeys(map(resource_of_kind, kinds))
    ]


def _after_pod_came(pod: PodInfo, old: None, new: PodInfo) -> QueueingHint:
    """Another member is here, or on a node."""
    is_sibling = pod.group_key is not None and pod.group_key == new.group_key
    return _QUEUE if is_sibling else _SKIP


def _after_pod_left(groups: PodGroups, pod: PodInfo, old: PodInfo, new: None) -> QueueingHint:
    """Room for a member of a group that is complete."""
    state = groups.of(pod)
    if state is None or not state.is_complete:
        return _SKIP
    left = groups.of(old)
    gives_back = left is not None and old.uid in left.members[Standing.PENDING]
    return _SKIP if gives_back else _QUEUE


def _after_node(groups: PodGroups, pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
    state = groups.of(pod)
    return _QUEUE if state is not None and state.is_complete else _SKIP


def _after_group(api_group: str, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """Its own group's object came, or says something else."""
    metadata = new.metadata
    key = GroupKey(api_group, metadata.namespace or DEFAULT_NAMESPACE, metadata.name)
    return _QUEUE if pod.group_key == key else _SKIP
