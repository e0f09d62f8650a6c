"""What makes a rejected member worth another attempt."""

from typing import Any

import pytest

from bayplan.api.objects import decode
from bayplan.framework.events import (
    EVENT_ASSIGNED_POD_ADD,
    EVENT_ASSIGNED_POD_DELETE,
    EVENT_UNSCHEDULED_POD_ADD,
    UPDATE,
    ActionType,
    ClusterEvent,
    EventResource,
    QueueingHint,
)
from bayplan.plugins.coscheduling.hints import member_events
from bayplan.testing import SampleCluster, node, pod
from tests.plugins.coscheduling_kit import (
    KIND,
    group_manifest,
    labels,
    member,
    nodes,
    put_group,
    put_members,
)

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
X_K8S_UPDATE = ClusterEvent("scheduling.x-k8s.io/PodGroup", UPDATE)
MING_ADD = ClusterEvent("scheduling.ming.io/PodGroup", ActionType.ADD)


def wakes(cluster: SampleCluster, event: ClusterEvent, old: Any, new: Any) -> bool:
    """Whether it is worth another attempt to member a of group g."""
    hints = [r.hint for r in member_events(cluster.pod_groups) if r.event.match(event)]
    waiting = member("a")
    return any(h is None or h(waiting, old, new) is QueueingHint.QUEUE for h in hints)


def with_group(min_member: int, *members: str) -> SampleCluster:
    cluster = nodes()
    put_group(cluster, minMember=min_member)
    put_members(cluster, *members)
    return cluster


@pytest.mark.parametrize("event", [EVENT_UNSCHEDULED_POD_ADD, EVENT_ASSIGNED_POD_ADD])
def test_a_sibling_that_comes_is_worth_an_attempt(event: ClusterEvent) -> None:
    cluster = with_group(2, "a")
    assert wakes(cluster, event, None, member("b"))
    assert not wakes(cluster, event, None, member("b", group="other"))
    assert not wakes(cluster, event, None, pod("alone"))
    elsewhere = pod("b", namespace="other", labels=labels())
    assert not wakes(cluster, event, None, elsewhere)


def test_freed_room_is_where_the_group_is_complete() -> None:
    left = pod("other", node="n1")
    assert wakes(with_group(2, "a", "b"), EVENT_ASSIGNED_POD_DELETE, left, None)
    assert not wakes(with_group(3, "a", "b"), EVENT_ASSIGNED_POD_DELETE, left, None)


def test_a_place_that_is_given_back_is_no_freed_room() -> None:
    cluster = with_group(2, "a", "b")
    assert not wakes(cluster, EVENT_ASSIGNED_POD_DELETE, member("b", node="n1"), None)
    put_members(cluster, "x", group="other")
    other = member("x", group="other", node="n1")
    assert not wakes(cluster, EVENT_ASSIGNED_POD_DELETE, other, None)
    assert wakes(cluster, EVENT_ASSIGNED_POD_DELETE, member("gone", node="n1"), None)


def test_a_node_is_where_the_group_is_complete() -> None:
    assert wakes(with_group(1, "a"), NODE_ADD, None, node("n1"))
    assert not wakes(with_group(2, "a"), NODE_ADD, None, node("n1"))
    assert not wakes(with_group(1, "a"), NODE_LABEL, node("n1"), node("n1"))


def test_a_change_of_its_own_groups_object_is() -> None:
    cluster = with_group(3, "a")
    mine, other = (decode(KIND, group_manifest(name)) for name in ("g", "other"))
    assert wakes(cluster, X_K8S_UPDATE, mine, mine)
    assert not wakes(cluster, X_K8S_UPDATE, other, other)
    assert not wakes(cluster, MING_ADD, None, mine)
