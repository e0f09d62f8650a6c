"""Listeners get events about pods when they happen."""

from typing import Any

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.objects import POD, Condition, Pod, PodStatus
from bayplan.clock import ManualClock
from bayplan.objects.keys import ObjectKey, object_key
from bayplan.perf.pod_watch import ATTEMPTED, SCHEDULED, BindingLog, NewlyBound, PodWatch, Wait
from bayplan.sim.loop import run
from tests.kit.manifests import node, pod

KEY = object_key(POD, "default", "a")
CONDITION = {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}}


class WatchedCluster:
    """A cluster with one node and no scheduler. The test binds pods."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.cluster = EmbeddedCluster(self.clock)
        self.watch = PodWatch()
        self.cluster.observe(self.watch.observe)
        self.cluster.create(node("n1"))

    def bind(self, key: ObjectKey = KEY) -> None:
        stored = self.cluster.get(key)
        assert stored is not None
        self.cluster._server.bind(key, stored.content["metadata"]["uid"], "n1")


def in_a_loop(check: Any) -> None:
    async def main() -> None:
        check(WatchedCluster())

    run(main(), ManualClock())


def test_a_wait_ends_when_the_last_pod_is_bound() -> None:
    def check(world: WatchedCluster) -> None:
        keys = [object_key(POD, "default", name) for name in "ab"]
        wait = Wait(keys, SCHEDULED)
        world.watch.join(wait)
        for key in keys:
            world.cluster.create(pod(key.name))
        world.bind(keys[0])
        assert list(wait.outstanding) == [keys[1]]
        assert not wait.done.done()
        world.cluster.delete(keys[1])
        assert wait.done.done()

    in_a_loop(check)


def test_a_pod_with_an_attempt_is_attempted_and_not_scheduled() -> None:
    def check(world: WatchedCluster) -> None:
        waits = [Wait([KEY], stage) for stage in (ATTEMPTED, SCHEDULED)]
        for wait in waits:
            world.watch.join(wait)
        world.cluster.create({**pod("a"), **CONDITION})
        assert [wait.done.done() for wait in waits] == [True, False]

    in_a_loop(check)


def test_a_wait_for_no_pods_ends_at_once() -> None:
    in_a_loop(lambda world: Wait([], SCHEDULED).done.result())


def test_bindings_are_logged_with_time_and_node() -> None:
    def check(world: WatchedCluster) -> None:
        log = BindingLog(world.clock, ["default"], {"app": "x"})
        world.watch.join(log)
        for name, labels in (("a", {"app": "x"}), ("b", {})):
            made = pod(name)
            made["metadata"]["labels"] = labels
            world.cluster.create(made)
            world.clock.advance_to(world.clock.now() + 1.5)
            world.bind(object_key(POD, "default", name))
        other = pod("c")
        other["metadata"]["namespace"] = "other"
        world.cluster.create(other)
        world.bind(object_key(POD, "other", "c"))
        assert (log.times, log.nodes, world.watch.bound_count) == ([1.5], {"n1"}, 3)

    in_a_loop(check)


def test_a_removed_listener_gets_no_events() -> None:
    def check(world: WatchedCluster) -> None:
        bound = NewlyBound("default")
        world.watch.join(bound)
        world.cluster.create(pod("a"))
        world.bind()
        assert bound.some.is_set()
        assert (bound.take(), bound.take(), bound.some.is_set()) == ([KEY], [], False)
        world.watch.leave(bound)
        world.cluster.create(pod("b"))
        world.bind(object_key(POD, "default", "b"))
        assert bound.take() == []

    in_a_loop(check)


def test_a_status_with_another_condition_is_not_an_attempt() -> None:
    def check(world: WatchedCluster) -> None:
        wait = Wait([KEY], ATTEMPTED)
        other = Condition(type="Ready", status="False")
        wait.pod_changed(KEY, Pod(status=PodStatus(conditions=(other,))), False)
        assert not wait.done.done()

    in_a_loop(check)
