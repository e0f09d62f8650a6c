"""The cache check reports each planted difference between the scheduler's cache and the API."""

from typing import Any

from msgspec.structs import replace

from bayplan.api.objects import Node, Pod
from bayplan.engine.cache_check import differences
from bayplan.state.pods import PodInfo, pod_info
from bayplan.testing import api_pod, node
from tests.engine.kit import Engine, uid, waiting_pod


class Over:
    """A consistent scheduler with one placed and one pending pod."""

    def __init__(self) -> None:
        self.engine = Engine(plugins=["NodeResourcesFit"])
        self.nodes: list[Node] = [node("n1", cpu=4)]
        self.pods: list[Pod] = [
            api_pod("placed", cpu=3, node="n1"),
            waiting_pod("waits", cpu=3),
        ]
        self.engine.add(*self.nodes, *self.pods)
        self.engine.run()
        assert self.differences() == []

    def differences(self) -> list[str]:
        return differences(self.engine.scheduler, self.nodes, self.pods)

    def placed(self) -> PodInfo:
        [pods] = self.engine.scheduler.cache.pods()
        return pods

    def waiting(self) -> PodInfo:
        queued = self.engine.scheduler.queue.find(uid("waits"))
        assert queued is not None
        return queued.pod


def test_a_pod_missing_from_the_queue_is_lost() -> None:
    over = Over()
    over.engine.scheduler.queue.delete(over.waiting())
    assert over.differences() == ["pod default/waits is pending in the API and not in the queue"]


def test_a_pod_that_stays_in_flight_forever_is_lost() -> None:
    over = Over()
    queue = over.engine.scheduler.queue
    queue.activate([over.waiting()])
    assert queue.pop() is not None
    assert over.differences() == ["pod default/waits is pending in the API and not in the queue"]


def test_a_pod_that_the_scheduler_never_received_is_lost() -> None:
    over = Over()
    over.pods.append(waiting_pod("untold"))
    assert over.differences() == ["pod default/untold is pending in the API and not in the queue"]


def test_a_running_pod_belongs_in_the_queue_if_it_waits_for_a_resize() -> None:
    pending: Any = {"conditions": [{"type": "PodResizePending", "reason": "Deferred"}]}
    grows = waiting_pod("grows", node="n1", status=pending)
    for is_on in (True, False):
        gates = {"InPlacePodVerticalScalingSchedulerPreemption": is_on}
        engine = Engine(plugins=["NodeResourcesFit"], gates=gates)
        engine.add(node("n1"), grows)
        queue = engine.scheduler.queue
        assert differences(engine.scheduler, [node("n1")], [grows]) == []
        if is_on:
            queue.delete(pod_info(grows))
            message = "pod default/grows is pending in the API and not in the queue"
        else:
            queue.add(pod_info(grows))
            message = "pod default/grows is in the queue and not pending in the API"
        assert differences(engine.scheduler, [node("n1")], [grows]) == [message]


def test_a_pod_of_another_scheduler_is_not_reported() -> None:
    over = Over()
    over.pods.append(waiting_pod("theirs", scheduler_name="theirs"))
    assert over.differences() == []


def test_a_finished_pod_counts_as_deleted() -> None:
    over = Over()
    over.pods.append(api_pod("ended", node="n1", status={"phase": "Succeeded"}))
    assert over.differences() == []


def test_a_deleted_pod_that_is_still_queued_is_reported() -> None:
    over = Over()
    del over.pods[1]
    assert over.differences() == ["pod default/waits is in the queue and not pending in the API"]


def test_a_placed_pod_that_is_not_counted_is_reported() -> None:
    over = Over()
    over.engine.scheduler.cache.remove_pod(over.placed().uid)
    assert over.differences() == ["pod default/placed is on n1 in the API and not in the cache"]


def test_a_deleted_pod_that_is_still_counted_is_reported() -> None:
    over = Over()
    del over.pods[0]
    assert over.differences() == [
        "pod default/placed is on no node in the API and on n1 in the cache"
    ]


def test_a_pod_counted_on_another_node_is_reported() -> None:
    over = Over()
    over.engine.add(node("n2"))
    over.nodes.append(node("n2"))
    cache, there = over.engine.scheduler.cache, over.placed()
    cache.remove_pod(there.uid)
    cache.assume(there.on_node("n2"))
    assert over.differences() == ["pod default/placed is on n1 in the API and on n2 in the cache"]


def test_a_pod_counted_twice_is_reported() -> None:
    over = Over()
    there = over.placed()
    again = replace(there, uid="another")
    over.engine.scheduler.cache.table.assign(again)
    assert over.differences() == [
        "node n1: 6000 cpu in the cache, its pods request 3000",
        "node n1: 2 pods in the cache, its pods request 1",
    ]


def test_a_pod_that_stays_assumed_forever_is_reported() -> None:
    over = Over()
    over.engine.scheduler.cache.assume(over.waiting().on_node("n1"))
    assert "pod default/waits is on no node in the API and on n1 in the cache" in over.differences()


def test_a_pod_with_a_running_binding_is_not_reported() -> None:
    over = Over()
    small = waiting_pod("small", cpu=1)
    over.pods.append(small)
    over.engine.add(small)
    over.engine.run()
    assert over.engine.placed_on("small") == "n1"
    assert over.differences() == []


def test_a_node_that_the_scheduler_never_received_is_reported() -> None:
    over = Over()
    over.nodes.append(node("n2"))
    assert over.differences() == ["node n2 is in the API and not in the cache"]


def test_a_deleted_node_in_the_cache_is_reported() -> None:
    over = Over()
    over.nodes.clear()
    assert over.differences() == ["node n1 is in the cache and not in the API"]
