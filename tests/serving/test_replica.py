"""Replicas on one embedded cluster: standby, leader, shutdown."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from bayplan.adapters.embedded.cluster import EVENT, EmbeddedCluster
from bayplan.adapters.live import transport
from bayplan.api.objects import POD
from bayplan.clock import ManualClock
from bayplan.config import config_from
from bayplan.engine.scheduler import Scheduler
from bayplan.plugins.registry import Registry
from bayplan.ports import OutcomeUnknownError
from bayplan.rng import stream
from bayplan.runner import Runner
from bayplan.serving import http_server, replica
from bayplan.serving.election.candidate import Candidate
from bayplan.serving.election.election import Election, ElectionSettings
from bayplan.serving.election.leader_guard import FencedCluster
from bayplan.serving.replica import DRAIN_SECONDS_MAX, LeaseLostError, Replica
from bayplan.sim.loop import run, settled
from bayplan.state.pods import PodInfo
from tests.kit.ports import ReplacedCalls
from tests.kit.scenes import scene_of
from tests.scenarios.world import PROFILE, Setup, config_dict
from tests.serving.leases import BUSY, MemoryLock, RecordedElection


def slow_cluster(world: "ReplicaSet", name: str) -> ReplacedCalls:
    """The cluster; its bindings take time, and the world records who bound each pod."""

    async def bind(pod: PodInfo, node_name: str) -> None:
        await asyncio.sleep(world.bind_seconds)
        await world.cluster.bind(pod, node_name)
        world.binders.append((pod.name, name))

    return ReplacedCalls(world.cluster, bind=bind)


class ReplicaSet:
    """The cluster and the lease that several replicas share."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.cluster = EmbeddedCluster(clock)
        self.cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "n1"},
                "status": {"allocatable": {"pods": "110"}},
            }
        )
        self.lease: dict[str, Any] = {}
        self.bind_seconds = 0.0
        #: (pod, replica)
        self.binders: list[tuple[str, str]] = []

    def add_pods(self, *names: str) -> None:
        for name in names:
            spec = {"schedulerName": PROFILE, "containers": [{"name": "c", "image": "i"}]}
            meta = {"name": name, "namespace": "default"}
            content = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
            self.cluster.create(content)

    def bound(self) -> list[str]:
        pods = [stored.content for stored in self.cluster.objects(POD)]
        return [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")]


class OneReplica:
    """A replica with its scheduler, runner, lease lock and log."""

    def __init__(self, world: ReplicaSet, name: str, *, elects: bool = True, delays: bool = False):
        self.scheduler = Scheduler(config_from(config_dict(Setup())), Registry(), world.clock)
        self.lock = MemoryLock(world.lease)
        self.log = RecordedElection()
        election = Election(name, ElectionSettings())
        port: Any = slow_cluster(world, name)
        candidate = None
        if elects:
            port = FencedCluster(port, lambda: election.is_leader(world.clock.now()))
            chance = stream(1, f"election/{name}")
            candidate = Candidate(election, self.lock, world.clock, chance, log=self.log)
        self.runner = Runner(self.scheduler, port)
        self.replica = Replica(self.runner, candidate, delays_cache=delays)
        self.stop = asyncio.Event()
        self.task = asyncio.get_running_loop().create_task(self.replica.run(self.stop))


def run_replicas(script: Any) -> ReplicaSet:
    clock = ManualClock()
    worlds: list[ReplicaSet] = []

    async def main() -> None:
        world = ReplicaSet(clock)
        worlds.append(world)
        coroutine: Coroutine[Any, Any, None] = script(world)
        await coroutine

    run(main(), clock)
    return worlds[0]


async def until(world: ReplicaSet, seconds: float) -> None:
    await asyncio.sleep(seconds - world.clock.now())
    await settled()


async def end(*replicas: OneReplica) -> None:
    for each in replicas:
        each.stop.set()
        await each.task


@scene_of(run_replicas)
async def test_without_an_election_a_replica_leads_at_once_and_ends_on_request(
    world: ReplicaSet,
) -> None:
    one = OneReplica(world, "a", elects=False)
    world.add_pods("p")
    await until(world, 1)
    assert one.replica.is_leading
    assert world.bound() == ["p"]
    await end(one)


@scene_of(run_replicas)
async def test_a_standby_watches_and_binds_nothing(world: ReplicaSet) -> None:
    a = OneReplica(world, "a")
    await until(world, 1)
    b = OneReplica(world, "b")
    await until(world, 2)
    world.add_pods("p", "q")
    await until(world, 30)
    assert (a.replica.is_leading, b.replica.is_leading) == (True, False)
    assert {name for _, name in world.binders} == {"a"}
    assert b.runner.is_synced
    assert len(b.scheduler.cache.pods()) == 2
    await end(a, b)


@scene_of(run_replicas)
async def test_a_stopped_replica_finishes_its_bindings_and_then_releases_the_lease(
    world: ReplicaSet,
) -> None:
    world.bind_seconds = 5.0
    a = OneReplica(world, "a")
    await until(world, 1)
    b = OneReplica(world, "b")
    world.add_pods("p")
    await until(world, 2)
    a.stop.set()
    await until(world, 2.5)
    world.add_pods("later")
    await until(world, 5)
    assert world.lease["spec"]["holderIdentity"] == "a"
    await a.task
    assert world.clock.now() == 6.0
    assert world.binders == [("p", "a")]
    assert world.lease["spec"]["holderIdentity"] == ""
    await until(world, 20)
    assert world.binders == [("p", "a"), ("later", "b")]
    reasons = [stored.content["reason"] for stored in world.cluster.objects(EVENT)]
    assert reasons == ["Scheduled", "Scheduled"]
    await end(b)


@scene_of(run_replicas)
async def test_a_hanging_binding_does_not_block_the_shutdown(world: ReplicaSet) -> None:
    world.bind_seconds = 1000.0
    a = OneReplica(world, "a")
    world.add_pods("p")
    await until(world, 1)
    a.stop.set()
    await a.task
    assert world.clock.now() == 1.0 + DRAIN_SECONDS_MAX
    assert world.lease["spec"]["holderIdentity"] == ""


@scene_of(run_replicas)
async def test_a_replica_that_cannot_renew_stops_binding_before_its_lease_ends(
    world: ReplicaSet,
) -> None:
    a = OneReplica(world, "a")
    await until(world, 1)
    b = OneReplica(world, "b")
    await until(world, 20)
    a.lock.problem = BUSY
    with pytest.raises(LeaseLostError, match="busy"):
        await a.task
    lost_seconds = world.clock.now()
    world.add_pods("p")
    await until(world, 60)
    assert 28 <= lost_seconds <= 30
    assert world.binders == [("p", "b")]
    await end(b)


@scene_of(run_replicas)
async def test_a_pod_decided_before_the_lease_ended_is_not_bound_afterwards(
    world: ReplicaSet,
) -> None:
    """The process is suspended between the decision and the request."""
    a = OneReplica(world, "a")
    await until(world, 1)
    world.add_pods("p")
    world.clock.advance_to(50.0)
    with pytest.raises(LeaseLostError):
        await a.task
    assert world.binders == []


@pytest.mark.parametrize("seed", range(5))
@scene_of(run_replicas)
async def test_if_a_leader_is_killed_no_pod_is_lost_or_bound_twice(
    world: ReplicaSet, seed: int
) -> None:
    chance = stream(seed, "kill")
    world.bind_seconds = 0.05
    a = OneReplica(world, "a")
    await until(world, 0.5)
    b = OneReplica(world, "b")
    names = [f"p{number}" for number in range(100)]
    for name in names[:60]:
        world.add_pods(name)
        await until(world, world.clock.now() + 0.01)
    await until(world, world.clock.now() + chance.uniform(0.0, 0.06))
    a.task.cancel()
    world.add_pods(*names[60:])
    await until(world, 60)
    assert sorted(world.bound()) == sorted(names), f"seed {seed}"
    assert sorted(pod for pod, _ in world.binders) == sorted(names), f"seed {seed}"
    await end(b)


@scene_of(run_replicas)
async def test_with_a_delayed_cache_a_replica_watches_only_after_it_leads(
    world: ReplicaSet,
) -> None:
    a = OneReplica(world, "a")
    await until(world, 1)
    b = OneReplica(world, "b", delays=True)
    await until(world, 10)
    assert (a.runner.is_synced, b.runner.is_synced) == (True, False)
    await end(a)
    await until(world, 20)
    assert b.runner.is_synced
    await end(b)


@scene_of(run_replicas)
async def test_a_failure_of_the_runner_ends_the_replica(world: ReplicaSet) -> None:
    a = OneReplica(world, "a", elects=False)
    await until(world, 1)
    a.scheduler._telemetry.raise_bugs = True

    def broken() -> None:
        raise ZeroDivisionError("broken")

    a.scheduler.run_timers = broken  # pyright: ignore[reportAttributeAccessIssue]
    world.add_pods("p")
    with pytest.raises(ZeroDivisionError):
        await a.task


@scene_of(run_replicas)
async def test_a_stopped_standby_does_not_release_the_lease_of_the_leader(
    world: ReplicaSet,
) -> None:
    a = OneReplica(world, "a")
    await until(world, 1)
    b = OneReplica(world, "b")
    await until(world, 2)
    b.lock.problem = OutcomeUnknownError("cut off")
    await end(b)
    assert world.lease["spec"]["holderIdentity"] == "a"
    await end(a)


def test_the_parts_of_the_shutdown_fit_into_its_time_limit():
    """aiohttp applies its time-out twice: it waits for handlers, and then it cancels them."""
    assert 2 * http_server.SHUTDOWN_SECONDS == replica.ENDPOINTS_SECONDS_MAX
    assert transport.CLOSE_SECONDS == replica.CLOSE_SECONDS_MAX
    parts = (
        replica.DRAIN_SECONDS_MAX,
        replica.RELEASE_SECONDS_MAX,
        replica.ENDPOINTS_SECONDS_MAX,
        replica.FLUSH_SECONDS_MAX,
        replica.CLOSE_SECONDS_MAX,
    )
    assert sum(parts) == replica.SHUTDOWN_SECONDS_MAX


@scene_of(run_replicas)
async def test_a_lease_that_cannot_be_released_does_not_block_the_shutdown(
    world: ReplicaSet,
) -> None:
    a = OneReplica(world, "a")
    await until(world, 1)
    a.lock.delay_seconds = 60.0
    await end(a)
    assert world.clock.now() == 1.0 + replica.RELEASE_SECONDS_MAX
