"""The events that help a running pod with a deferred resize."""

from typing import Any

import pytest

from bayplan.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from bayplan.plugins.node_resources_fit import with_resizes
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod

DEFERRED: Any = {"conditions": [{"type": "PodResizePending", "reason": "Deferred"}]}
GROWS = pod("grows", node="n1", status=DEFERRED)
WAITS = pod("waits")
QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP


def hinted(event: ClusterEvent) -> list[ClusterEventWithHint]:
    """An event that always queues the pod, with the check for resizes."""
    return with_resizes([ClusterEventWithHint(event, lambda pod, old, new: QUEUE)])


@pytest.mark.parametrize(
    ("old", "new", "matters"),
    [
        pytest.param(pod(node="n1"), None, True, id="a pod of its node is deleted"),
        pytest.param(pod(node="n2"), None, False, id="a pod of another node is deleted"),
        pytest.param(pod(nominated_node="n1"), None, False, id="a pod without a node is deleted"),
        pytest.param(pod(node="n1"), pod(node="n1"), True, id="a pod of its node is updated"),
        pytest.param(pod(node="n2"), pod(node="n2"), False, id="a pod of another node is updated"),
        pytest.param(None, node("n1"), True, id="its node is added"),
        pytest.param(node("n1"), node("n1"), True, id="its node is updated"),
        pytest.param(node("n2"), node("n2"), False, id="another node is updated"),
        pytest.param(None, object(), True, id="an object without a node"),
    ],
)
def test_events_of_other_nodes_do_not_help(old: Any, new: Any, matters: bool) -> None:
    hint = hinted(ClusterEvent("Node", ActionType.ADD))[0].hint
    assert hint is not None
    assert hint(GROWS, old, new) is (QUEUE if matters else SKIP)
    assert hint(WAITS, old, new) is QUEUE


def test_for_other_pods_the_hint_is_unchanged() -> None:
    without = ClusterEventWithHint(ClusterEvent("Node", ActionType.ADD))
    assert with_resizes([without])[0] is without


@pytest.mark.parametrize(
    ("who", "where", "matters"),
    [(GROWS, "n1", True), (GROWS, "n2", False), (WAITS, "n1", False)],
)
def test_the_resources_of_the_pod_itself_count_as_free(
    who: PodInfo, where: str, matters: bool
) -> None:
    _, other, itself = hinted(ClusterEvent("Node", ActionType.ADD))
    events = [(e.event.resource, str(e.event.action)) for e in (other, itself)]
    assert events == [("AssignedPod", "UpdatePodScaleUp"), ("TargetPod", "UpdatePodScaleUp")]
    for each in (other, itself):
        assert each.hint is not None
        grown = pod(node=where, cpu=2)
        assert each.hint(who, pod(node=where, cpu=1), grown) is (QUEUE if matters else SKIP)
