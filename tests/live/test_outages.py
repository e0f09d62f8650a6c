"""Outages of the API server and of etcd: the scheduler recovers without a restart."""

import asyncio

import pytest

from bayplan.adapters.live.client import ClientOptions
from tests.live.control_plane import ControlPlane
from tests.live.failing_server import AnswerFaults, FailingServer
from tests.live.kubelet import large_nodes
from tests.live.world import SchedulerOptions, World, scenario, small_pod

pytestmark = pytest.mark.timeout(400)

PAUSE_SECONDS = 20
#: Requests without an answer end soon.
HASTY = ClientOptions(qps=-1, answer_seconds=5)


@scenario()
async def test_all_pods_are_placed_after_etcd_was_paused_for_20_seconds(
    world: World, control_plane: ControlPlane
) -> None:
    await world.add_nodes(*large_nodes(10))
    async with world.scheduler(SchedulerOptions(client=HASTY)) as running:
        await world.add_pods(*(small_pod(f"a{number:03}") for number in range(300)))
        await world.until_bound_count(50)
        with control_plane.pause_etcd():
            await asyncio.sleep(PAUSE_SECONDS)
        await world.until_bound_count(300)
        await world.add_pods(*(small_pod(f"b{number:03}") for number in range(100)))
        await world.until_bound_count(400)
        assert await running.differences() == []


@scenario()
@pytest.mark.parametrize("seed", [1])
async def test_five_hundred_pods_are_placed_although_requests_are_refused_cut_and_delayed(
    world: World, control_plane: ControlPlane, seed: int
) -> None:
    await world.add_nodes(*large_nodes(10))
    trust = control_plane.client_ssl_context()
    server = FailingServer(control_plane.port, trust, seed, AnswerFaults())
    async with server.running():
        options = SchedulerOptions(server=server.url, client=HASTY, seed=seed)
        async with world.scheduler(options) as running:
            for part in range(5):
                await world.add_pods(*(small_pod(f"p{part}{n:02}") for n in range(100)))
                await asyncio.sleep(1)
                server.cut_watches()
            await world.until_bound_count(500)
            assert server.all_happened(), server.counts
            server.calm()
            server.cut_watches()
            await world.add_pods(small_pod("last"))
            await world.until_bound_count(501)
            assert await running.differences() == []
