"""Pod garbage collection: which pods of missing nodes are deleted, and when."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.pod_gc_controller import (
    OUT_OF_SERVICE_TAINT,
    UPSTREAM_PERIOD_SECONDS,
    UPSTREAM_QUARANTINE_SECONDS,
    PodGcTimes,
)
from bayplan.api.objects import NODE, POD
from bayplan.clock import ManualClock
from bayplan.objects.keys import object_key
from bayplan.sim.loop import run, settled
from tests.kit.manifests import Content, node, pod

AT_ONCE = PodGcTimes()
UPSTREAM = PodGcTimes(UPSTREAM_QUARANTINE_SECONDS, UPSTREAM_PERIOD_SECONDS)


class CollectedCluster:
    """A cluster with pod garbage collection; records the time of each pod's deletion."""

    def __init__(self, times: PodGcTimes | None) -> None:
        self.clock = ManualClock()
        self.cluster = EmbeddedCluster(self.clock, pod_gc=times)
        self.cluster.observe(self._observe)
        self.deletion_times: dict[str, float] = {}
        self.last: dict[str, Content] = {}

    def _observe(self, before: Any, after: Any) -> None:
        key = (after or before).key
        if key.kind == POD:
            self.last[key.name] = (after or before).content
            if after is None:
                self.deletion_times[key.name] = self.clock.now()

    def delete_node(self, name: str = "n1") -> None:
        self.cluster.delete(object_key(NODE, "", name))

    def delete_pod(self, name: str) -> None:
        self.cluster.delete(object_key(POD, "default", name))


def run_steps(
    times: PodGcTimes | None, *steps: tuple[float, Callable[[CollectedCluster], object]]
) -> CollectedCluster:
    """Do each step at its time, then let ten minutes pass."""
    world = CollectedCluster(times)

    async def main() -> None:
        for at_seconds, step in steps:
            await asyncio.sleep(at_seconds - world.clock.now())
            step(world)
            await settled()
        await asyncio.sleep(600)

    run(main(), world.clock)
    return world


def create(*contents: Content) -> Callable[[CollectedCluster], None]:
    def step(world: CollectedCluster) -> None:
        for one in contents:
            world.cluster.create(one)

    return step


def on(name: str, node_name: str = "n1", **fields: Any) -> Content:
    return {**pod(name, nodeName=node_name), **fields}


NODE_AND_POD = create(node("n1"), on("a"))


# ---- orphans --------------------------------------------------------------------------------


def test_the_pods_of_a_deleted_node_fail_and_are_deleted_at_once() -> None:
    world = run_steps(AT_ONCE, (0, NODE_AND_POD), (5, CollectedCluster.delete_node))
    assert world.deletion_times == {"a": 5}
    status = world.last["a"]["status"]
    assert status["phase"] == "Failed"
    assert status["conditions"][-1]["type"] == "DisruptionTarget"
    assert status["conditions"][-1]["reason"] == "DeletionByPodGC"
    assert status["conditions"][-1]["message"] == "PodGC: node no longer exists"


def test_without_pod_garbage_collection_the_pods_stay() -> None:
    assert not run_steps(None, (0, NODE_AND_POD), (5, CollectedCluster.delete_node)).deletion_times


@pytest.mark.parametrize(
    ("deleted_at", "expected"),
    [
        pytest.param(5, 60, id="found at 20 s, quarantined for 40 s"),
        pytest.param(20, 60, id="found at once"),
        pytest.param(20.5, 80, id="found at 40 s"),
    ],
)
def test_with_upstreams_times_an_orphan_is_deleted_40_to_60_seconds_after_its_node(
    deleted_at: float, expected: float
) -> None:
    world = run_steps(UPSTREAM, (0, NODE_AND_POD), (deleted_at, CollectedCluster.delete_node))
    assert world.deletion_times == {"a": expected}


def test_a_node_that_returns_within_the_quarantine_keeps_its_pods() -> None:
    back = create(node("n1"))
    assert not run_steps(
        UPSTREAM, (0, NODE_AND_POD), (5, CollectedCluster.delete_node), (59, back)
    ).deletion_times


def test_a_quarantine_without_a_period_ends_exactly() -> None:
    times = PodGcTimes(quarantine_seconds=0.1)
    world = run_steps(times, (0, NODE_AND_POD), (0.2, CollectedCluster.delete_node))
    assert world.deletion_times["a"] == pytest.approx(0.3)


def test_a_succeeded_pod_is_deleted_with_its_node_and_keeps_its_phase() -> None:
    succeeded = on("a", status={"phase": "Succeeded"})
    world = run_steps(
        AT_ONCE, (0, create(node("n1"), succeeded)), (5, CollectedCluster.delete_node)
    )
    assert world.deletion_times == {"a": 5}
    assert world.last["a"]["status"]["phase"] == "Succeeded"


def test_an_orphan_that_is_being_deleted_skips_its_grace_period() -> None:
    slow = pod("a", nodeName="n1", terminationGracePeriodSeconds=300)
    world = run_steps(
        AT_ONCE,
        (0, create(node("n1"), slow)),
        (5, lambda world: world.delete_pod("a")),
        (6, CollectedCluster.delete_node),
    )
    assert world.deletion_times == {"a": 6}


def test_a_finalizer_keeps_an_orphan_in_phase_failed() -> None:
    orphan = on("a")
    orphan["metadata"]["finalizers"] = ["example.com/keep"]
    world = run_steps(AT_ONCE, (0, create(node("n1"), orphan)), (5, CollectedCluster.delete_node))
    assert not world.deletion_times
    assert world.last["a"]["status"]["phase"] == "Failed"
    assert world.last["a"]["metadata"]["deletionTimestamp"]
    assert world.cluster.next_collection_seconds is None


# ---- pods that are being deleted ------------------------------------------------------------


def test_a_pod_without_a_node_that_is_being_deleted_fails() -> None:
    deleted = pod("a")
    deleted["metadata"]["finalizers"] = ["example.com/keep"]
    world = run_steps(AT_ONCE, (0, create(deleted)), (5, lambda world: world.delete_pod("a")))
    assert world.last["a"]["status"]["phase"] == "Failed"


@pytest.mark.parametrize(("ready", "expected"), [("Unknown", 5), ("True", 305)])
def test_on_an_out_of_service_node_a_terminating_pod_is_deleted_unless_the_node_is_ready(
    ready: str, expected: float
) -> None:
    taint = {"key": OUT_OF_SERVICE_TAINT, "effect": "NoExecute"}
    there = {**node("n1"), "spec": {"taints": [taint]}}
    there["status"] = {**there["status"], "conditions": [{"type": "Ready", "status": ready}]}
    slow = pod("a", nodeName="n1", terminationGracePeriodSeconds=300)
    world = run_steps(AT_ONCE, (0, create(there, slow)), (5, lambda world: world.delete_pod("a")))
    assert world.deletion_times == {"a": expected}
