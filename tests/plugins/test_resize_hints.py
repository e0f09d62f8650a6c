"""Which events matter to a pod that runs and waits for a resize."""

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
    """An event that is always worth it, and what resizes add."""
    return with_resizes([ClusterEventWithHint(event, lambda pod, old, new: QUEUE)])


@pytest.mark.parametrize(
    ("old", "new", "matters"),
    [
        pytest.param(pod(node="n1"), None, True, id="a pod of its node goes"),
        pytest.param(pod(node="n2"), None, False, id="another goes"),
        pytest.param(pod(nominated_node="n1"), None, False, id="one that never came"),
        pytest.param(pod(node="n1"), pod(node="n1"), True, id="a pod of its node changes"),
        pytest.param(pod(node="n2"), pod(node="n2"), False, id="another changes"),
        pytest.param(None, node("n1"), True, id="its node comes"),
        pytest.param(node("n1"), node("n1"), True, id="its node changes"),
        pytest.param(node("n2"), node("n2"), False, id="another node changes"),
        pytest.param(None, object(), True, id="something that is nowhere"),
    ],
)
def test_what_happens_elsewhere_is_no_news_to_it(old: Any, new: Any, matters: bool) -> None:
    hint = hinted(ClusterEvent("Node", ActionType.ADD))[0].hint
    assert hint is not None
    assert hint(GROWS, old, new) is (QUEUE if matters else SKIP)
    assert hint(WAITS, old, new) is QUEUE


def test_an_event_that_is_always_worth_it_stays_one() -> None:
    without = ClusterEventWithHint(ClusterEvent("Node", ActionType.ADD))
    assert with_resizes([without])[0] is without


@pytest.mark.parametrize(
    ("who", "where", "matters"),
    [(GROWS, "n1", True), (GROWS, "n2", False), (WAITS, "n1", False)],
)
def test_a_resized_pod_may_use_its_own_room(who: PodInfo, where: str, matters: bool) -> None:
    _, other, itself = hinted(ClusterEvent("Node", ActionType.ADD))
    events = [(e.event.resource, str(e.event.action)) for e in (other, itself)]
    assert events == [("AssignedPod", "UpdatePodScaleUp"), ("TargetPod", "UpdatePodScaleUp")]
    for each in (other, itself):
        assert each.hint is not None
        grown = pod(node=where, cpu=2)
        assert each.hint(who, pod(node=where, cpu=1), grown) is (QUEUE if matters else SKIP)
