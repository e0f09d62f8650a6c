"""Under all faults, no pod is lost or bound twice, and the cache equals the server's state."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from bayplan.adapters.live.client import ClientOptions
from bayplan.clock import RealClock
from bayplan.ports import GoneError, WatchEvent
from tests.live.control_plane import ControlPlane
from tests.live.kubelet import large_nodes, ready_node
from tests.live.proxy import Faults, Proxy
from tests.live.world import Running, SchedulerOptions, World, scenario, small_pod

pytestmark = pytest.mark.timeout(400)

NO_FAULTS = Faults(refused=0, cut=0, delayed=0, duplicated=0)
#: A request without an answer ends soon.
HASTY = ClientOptions(qps=-1, answer_seconds=5)


def proxy(control_plane: ControlPlane, seed: int = 1, faults: Faults = NO_FAULTS) -> Proxy:
    return Proxy(control_plane.port, control_plane.client_ssl_context(), seed, faults)


async def check_all_bound(world: World, running: Running, count: int) -> None:
    """Wait until all pods are bound, and check that the cache equals the server's state.

    `play` checks at the end of the scene that no pod was bound twice.
    """
    await world.until_bound_count(count)
    assert await running.differences() == []


@scenario()
async def test_an_api_server_is_killed_and_restarted(
    world: World, control_plane: ControlPlane
) -> None:
    await world.add_nodes(*large_nodes(10))
    async with world.scheduler() as running:
        await world.add_pods(*(small_pod(f"a{number:03}") for number in range(300)))
        await world.until_bound_count(50)
        control_plane.kill_api_server()
        await asyncio.to_thread(control_plane.start_api_server)
        await world.add_pods(*(small_pod(f"b{number:03}") for number in range(100)))
        await check_all_bound(world, running, 400)


def recorded_expiries(running: Running, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the kinds whose watch expires from now on."""
    expired_kinds: list[str] = []
    real = running.cluster.watch

    async def watch(kind: str, resource_version: str) -> AsyncIterator[WatchEvent]:
        try:
            async for event in real(kind, resource_version):
                yield event
        except GoneError:
            expired_kinds.append(kind)
            raise

    monkeypatch.setattr(type(running.cluster), "watch", lambda _, kind, rv: watch(kind, rv))
    return expired_kinds


@scenario()
async def test_changes_during_a_compaction_are_reconciled(
    world: World, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.add_nodes(*large_nodes(3), ready_node("goes", cpu=1))
    async with proxy(control_plane) as network:
        options = SchedulerOptions(server=network.url)
        async with world.scheduler(options) as running:
            expired_kinds = recorded_expiries(running, monkeypatch)
            await world.add_pods(*(small_pod(name) for name in ("stays", "leaves")))
            await world.until_bound("stays", "leaves")
            await network.close()
            await world.delete_pod("leaves")
            await world.delete_node("goes")
            await world.add_nodes(ready_node("comes", cpu=1))
            await world.until(lambda: len(world.pods()) == 1, "the pod is gone")
            control_plane.compact_etcd()
            control_plane.kill_api_server()
            await asyncio.to_thread(control_plane.start_api_server)
            network.open()
            await world.add_pods(small_pod("late"))
            await world.until_bound("late")
            assert await running.differences() == []
            assert {"v1 Pod", "v1 Node"} <= set(expired_kinds)


@scenario()
async def test_a_stalled_watch_is_detected_and_restarted(
    world: World, control_plane: ControlPlane
) -> None:
    await world.add_nodes(*large_nodes(2))
    async with proxy(control_plane) as network:
        options = SchedulerOptions(server=network.url, client=HASTY, silence_seconds_max=3)
        async with world.scheduler(options) as running:
            await world.add_pods(small_pod("before"))
            await world.until_bound("before")
            network.stall()
            await world.add_pods(small_pod("meanwhile"))
            await world.until_bound("meanwhile")
            await check_all_bound(world, running, 2)


@scenario()
@pytest.mark.parametrize("seed", [1, 2])
async def test_two_thousand_pods_are_placed_over_a_failing_network(
    world: World, control_plane: ControlPlane, seed: int
) -> None:
    await world.add_nodes(*large_nodes(50, cpu=16))
    async with proxy(control_plane, seed, Faults()) as network:
        options = SchedulerOptions(server=network.url, client=HASTY, seed=seed)
        async with world.scheduler(options) as running:
            await world.add_pods(
                *(small_pod(f"p{number:04}", cpu="250m") for number in range(2000))
            )
            await world.until_bound_count(2000)
            network.calm()
            await network.cut_all()
            await check_all_bound(world, running, 2000)
    assert all(network.counts[fault] for fault in ("refused", "cut", "delayed", "duplicated"))


@scenario()
async def test_a_binding_with_a_lost_answer_is_read_back_and_not_repeated(
    world: World, control_plane: ControlPlane
) -> None:
    await world.add_nodes(*large_nodes(2))
    async with (
        proxy(control_plane) as network,
        world.scheduler(SchedulerOptions(server=network.url)) as running,
    ):
        network.lose_answer_to(b"/pods/p/binding")
        await world.add_pods(small_pod("p"))
        await world.until_bound("p")
        await world.until(lambda: not running.scheduler.cache.assumed_count, "confirmed")
        assert await running.differences() == []
        assert [record.result for record in running.attempts()] == ["scheduled"]
        assert await world.events("p", "FailedScheduling") == []
    assert network.counts["answer lost"] == 1
    assert world.bindings() == {("p", 201): 1}


@scenario()
async def test_a_pod_bound_by_another_scheduler_is_not_bound_again(world: World) -> None:
    """The server refuses the second binding with 409; both schedulers then agree."""
    await world.add_nodes(*large_nodes(20))
    async with world.scheduler() as first, world.scheduler(SchedulerOptions(seed=2)) as second:
        await world.add_pods(*(small_pod(f"p{number:02}") for number in range(60)))
        await world.until_bound_count(60)
        for running in (first, second):
            await check_all_bound(world, running, 60)
    # Whether both schedulers bind the same pod depends on timing.
    assert {code for _, code in world.bindings()} <= {201, 409}


@scenario()
async def test_a_pod_deleted_during_its_binding_leaves_no_state(
    world: World, control_plane: ControlPlane
) -> None:
    await world.add_nodes(*large_nodes(2))
    async with (
        proxy(control_plane) as network,
        world.scheduler(SchedulerOptions(server=network.url)) as running,
    ):
        await world.add_pods(small_pod("first"))
        await world.until_bound("first")
        await network.close()
        await world.add_pods(small_pod("short"), small_pod("long"))
        await world.delete_pod("short")
        network.open()
        await world.until_bound("long")
        assert await running.differences() == []
    assert ("short", 201) not in world.bindings()


@scenario()
async def test_pods_of_a_terminating_namespace_do_not_block_pods_of_another(world: World) -> None:
    """The server refuses bindings in a terminating namespace with 403."""
    await world.add_nodes(ready_node("small", cpu=1))
    async with world.scheduler() as running:
        await world.add_pods(small_pod("waits", cpu="4"))
        await world.until_unschedulable("waits")
        ended = world.namespace
        await world.client.request("DELETE", f"/api/v1/namespaces/{ended}")
        await world.add_nodes(ready_node("large", cpu=8))
        await world.until(
            lambda: world.condition("waits").get("reason") == "SchedulerError", "refused"
        )
        assert "is being terminated" in world.condition("waits")["message"]
        await world.move_to_new_namespace()
        await world.add_pods(small_pod("other", cpu="4"))
        await world.until_bound("other")
        await world.client.request("DELETE", f"/api/v1/namespaces/{ended}/pods/waits")
        assert await running.differences() == []


class JumpingClock:
    """The clock of a machine that was set back a day and has slept for an hour."""

    def __init__(self) -> None:
        self._real = RealClock()
        self.slept_seconds = 0.0
        self.set_seconds = 0.0

    def now(self) -> float:
        return self._real.now() + self.slept_seconds

    def epoch_seconds(self) -> float:
        return self._real.epoch_seconds() + self.set_seconds


@scenario()
async def test_a_clock_that_jumps_loses_no_pod(world: World) -> None:
    clock = JumpingClock()
    await world.add_nodes(*large_nodes(2), ready_node("full", cpu=1))
    async with world.scheduler(SchedulerOptions(clock=clock)) as running:
        await world.add_pods(
            small_pod("never", cpu="100"), *(small_pod(f"a{n}") for n in range(50))
        )
        await world.until_bound_count(10)
        clock.slept_seconds, clock.set_seconds = 3600.0, -86400.0
        await world.add_pods(*(small_pod(f"b{number}") for number in range(50)))
        await world.until_unschedulable("never")
        await check_all_bound(world, running, 100)
