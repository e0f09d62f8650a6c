"""The operations that a replica without the lease may perform."""

import asyncio
from typing import Any

import pytest

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.objects import NODE
from bayplan.clock import ManualClock
from bayplan.ports import (
    AskExtender,
    Cluster,
    EmitEvent,
    ExtenderAnswer,
    ExtenderVerb,
    PatchPodGroupStatus,
    PatchPodStatus,
    pod_reference,
)
from bayplan.serving.election.leader_guard import FencedCluster, NotLeaderError, fenced_ask
from bayplan.sim.loop import run
from bayplan.testing import pod
from tests.scenarios.world import World, play

WRITES: dict[str, Any] = {
    "bind": lambda port: port.bind(pod("p"), "n1"),
    "patch": lambda port: port.patch("v1 Pod", "default", "p", {}),
    "create_object": lambda port: port.create_object("v1 Pod", {}),
    "delete_object": lambda port: port.delete_object("v1 Pod", "default", "p", "u"),
    "patch_pod_status": lambda port: port.patch_pod_status(PatchPodStatus("d", "p", "u", None)),
    "patch_group_status": lambda port: port.patch_group_status(
        PatchPodGroupStatus("scheduling.x-k8s.io/v1alpha1 PodGroup", "d", "g", "u", {})
    ),
    "create_event": lambda port: port.create_event(
        EmitEvent(pod_reference(pod("p")), "Normal", "Scheduled", "Binding", "", "bayplan")
    ),
    "delete_pod": lambda port: port.delete_pod("default", "p", "u"),
}


class CallLog:
    """A cluster that records its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any) -> None:
            self.calls.append(name)

        return call


@pytest.mark.parametrize("name", WRITES)
def test_every_write_checks_leadership_at_the_last_moment(name: str) -> None:
    log, leads = CallLog(), [True, False]
    fenced = FencedCluster(log, lambda: leads[0])  # pyright: ignore[reportArgumentType]

    async def main() -> None:
        await WRITES[name](fenced)
        leads.pop(0)
        with pytest.raises(NotLeaderError, match="does not hold the lease"):
            await WRITES[name](fenced)

    run(main(), ManualClock())
    assert log.calls == [name]


def test_every_method_of_the_port_is_a_read_or_a_guarded_write() -> None:
    reads = {"list", "watch", "get_pod", "read", "sleep"}
    methods = {name for name in dir(Cluster) if not name.startswith("_")}
    assert methods == reads | set(WRITES)
    assert methods <= set(dir(FencedCluster))


def test_a_standby_can_read() -> None:
    clock = ManualClock()
    fenced = FencedCluster(EmbeddedCluster(clock), lambda: False)

    async def main() -> None:
        listing = await fenced.list(NODE)
        assert list(listing.objects) == []
        watch = fenced.watch(NODE, listing.resource_version)
        waiting = asyncio.ensure_future(anext(watch))
        await fenced.sleep(1)
        waiting.cancel()

    run(main(), clock)


def test_a_pod_whose_binding_is_refused_is_bound_by_the_leader() -> None:
    leads = [False]

    async def scene(world: World) -> None:
        world.add_node("n1")
        world.add_pod("p")
        await world.until(0.5)
        assert world.bound("p") is None
        leads[0] = True
        await world.until(30)
        assert world.bound("p") is not None

    play(scene, reach=lambda cluster: FencedCluster(cluster, lambda: leads[0]))


def test_a_standby_calls_no_extender() -> None:
    calls: list[AskExtender] = []

    async def ask(question: AskExtender) -> ExtenderAnswer:
        calls.append(question)
        return ExtenderAnswer()

    question, leads = AskExtender(1, "far", ExtenderVerb.BIND, pod("p"), ("n1",)), [True]
    fenced = fenced_ask(ask, lambda: leads[0])

    async def main() -> None:
        assert await fenced(question) == ExtenderAnswer()
        leads[0] = False
        with pytest.raises(NotLeaderError):
            await fenced(question)

    run(main(), ManualClock())
    assert calls == [question]
