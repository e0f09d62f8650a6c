"""Pods placed by a real scheduler process against a real API server."""

import asyncio
from typing import Any

import pytest

from bayplan.api.objects import NODE, POD
from bayplan.config import config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.journal import AttemptRecord, MemorySink
from bayplan.plugins.registry import Registry
from bayplan.sim.input.workload import Workload
from bayplan.sim.simulation import Simulation
from tests.live.kubelet import ready_node
from tests.live.mirror import Object
from tests.live.world import SchedulerOptions, World, scenario, small_pod

pytestmark = pytest.mark.timeout(400)


@scenario()
async def test_pods_are_bound_and_get_events(world: World) -> None:
    await world.add_nodes(ready_node("n1", cpu=2), ready_node("n2", cpu=2))
    async with world.scheduler() as running:
        await world.add_pods(small_pod("a", cpu=2), small_pod("b", cpu=2))
        await world.until_running(2)
        assert sorted(world.bound().values()) == ["n1", "n2"]
        assert world.condition("a")["status"] == "True"
        await running.cluster.flush_events()
        [event] = await world.events("a", "Scheduled")
        where = f"{world.namespace}/a to {world.bound()['a']}"
        assert event["note"] == f"Successfully assigned {where}"
        assert event["reportingController"] == "default-scheduler"
        assert await running.differences() == []


@scenario()
async def test_a_pod_that_fits_nowhere_has_a_condition_with_reason_and_time(world: World) -> None:
    await world.add_nodes(ready_node("n1", cpu=1))
    async with world.scheduler() as running:
        await world.add_pods(small_pod("big", cpu=2))
        await world.until_unschedulable("big")
        condition = world.condition("big")
        assert condition["reason"] == "Unschedulable"
        assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert condition["lastTransitionTime"]
        assert condition["observedGeneration"] == 1
        await running.cluster.flush_events()
        [event] = await world.events("big", "FailedScheduling")
        assert event["note"] == condition["message"]
        assert event["type"] == "Warning"


@scenario()
async def test_a_pod_of_an_unknown_scheduler_is_ignored(world: World) -> None:
    await world.add_nodes(ready_node("n1"))
    async with world.scheduler() as running:
        await world.add_pods(small_pod("theirs", scheduler="nobody"), small_pod("ours"))
        await world.until_bound("ours")
        assert await running.differences() == []
    assert world.condition("theirs") == {}
    assert list(world.bound()) == ["ours"]
    assert ("theirs", 201) not in world.bindings()


@scenario()
async def test_a_gated_pod_is_placed_when_its_last_gate_is_removed(world: World) -> None:
    await world.add_nodes(ready_node("n1"))
    gates = [{"name": "example.com/a"}, {"name": "example.com/b"}]
    async with world.scheduler():
        await world.add_pods(small_pod("gated", spec={"schedulingGates": gates}))
        await world.until(
            lambda: world.condition("gated").get("reason") == "SchedulingGated", "gated"
        )
        await world.patch_pod("gated", {"spec": {"schedulingGates": gates[1:]}})
        await world.add_pods(small_pod("free"))
        await world.until_bound("free")
        assert "gated" not in world.bound()
        await world.patch_pod("gated", {"spec": {"schedulingGates": None}})
        await world.until_bound("gated")


@scenario()
async def test_one_new_node_is_filled_with_three_hundred_pending_pods(world: World) -> None:
    names = [f"p{number:03}" for number in range(300)]
    await world.add_nodes(ready_node("small", cpu=1, pods=2))
    async with world.scheduler() as running:
        await world.add_pods(*(small_pod(name, cpu="2") for name in names))
        await world.until_unschedulable(*names)
        await world.add_nodes(ready_node("large", cpu=600, memory="1Ti", pods=300))
        await world.until_bound(*names)
        assert set(world.bound().values()) == {"large"}
        assert await running.differences() == []


@scenario()
async def test_a_node_that_is_deleted_and_created_again_is_a_new_node(world: World) -> None:
    await world.add_nodes(ready_node("n1", cpu=1, labels={"disk": "old"}))
    async with world.scheduler() as running:
        await world.add_pods(small_pod("first", cpu="1"), small_pod("second", cpu="1"))
        await world.until_bound_count(1)
        [bound] = world.bound()
        [other] = {"first", "second"} - {bound}
        await world.until_unschedulable(other)
        await world.delete_node("n1")
        await world.add_nodes(ready_node("n1", cpu=2, labels={"disk": "new"}))
        await world.until_bound(other)
        await world.add_pods(small_pod("third", spec={"nodeSelector": {"disk": "old"}}))
        await world.until_unschedulable("third")
        assert await running.differences() == []


@scenario()
async def test_two_schedulers_share_the_same_nodes(world: World) -> None:
    await world.add_nodes(*(ready_node(f"n{number}", cpu=4) for number in range(5)))
    one, other = SchedulerOptions(("one",)), SchedulerOptions(("other",))
    async with world.scheduler(one) as first, world.scheduler(other) as second:
        await world.add_pods(
            *(small_pod(f"one-{number}", scheduler="one", cpu="50m") for number in range(40)),
            *(small_pod(f"other-{number}", scheduler="other", cpu="50m") for number in range(40)),
        )
        await world.until_bound_count(80)
        # Each scheduler counts the pods of the other: at most 3.2 of 4 cpu are free per node.
        await world.add_pods(*(small_pod(f"big-{n}", scheduler="one", cpu="3") for n in range(5)))
        await world.until_bound(*(f"big-{number}" for number in range(5)))
        await world.add_pods(small_pod("late", scheduler="other", cpu="3"))
        await world.until_unschedulable("late")
        for running in (first, second):
            assert await running.differences() == []
        assert {record.profile for record in first.attempts()} == {"one"}
    assert all(code == 201 for _, code in world.bindings())


# ---- live and simulated ---------------------------------------------------------------------


def spread(key: str, when: str, app: str) -> Object:
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": app}},
    }


def near(app: str, kind: str = "podAffinity") -> Object:
    term = {
        "labelSelector": {"matchLabels": {"app": app}},
        "topologyKey": "topology.kubernetes.io/zone",
    }
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def mixed_nodes() -> list[Object]:
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    soft = {"key": "old", "value": "", "effect": "PreferNoSchedule"}
    return [
        ready_node(
            f"n{number:02}",
            cpu=2 + number % 3,
            zone=f"z{number % 3}",
            labels={"disk": "ssd" if number % 4 else "hdd"},
            taints=[taint] if number % 5 == 0 else [soft] if number % 5 == 1 else [],
        )
        for number in range(15)
    ]


def mixed_pods() -> list[Object]:
    zone = "topology.kubernetes.io/zone"
    batch = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}
    shapes: list[Any] = [
        {"spec": {"topologySpreadConstraints": [spread(zone, "DoNotSchedule", "s0")]}},
        {"spec": {"topologySpreadConstraints": [spread(zone, "ScheduleAnyway", "s1")]}},
        {"spec": near("s0")},
        {"spec": near("s3", "podAntiAffinity")},
        {"spec": {**batch, "nodeSelector": {"disk": "hdd"}}},
        {"cpu": "1500m"},
        {"spec": batch},
        {},
    ]
    return [
        small_pod(f"p{number:03}", labels={"app": f"s{number % 8}"}, **shapes[number % 8])
        for number in range(64)
    ]


def comparable(record: AttemptRecord) -> dict[str, Any]:
    """All fields of an attempt except its time."""
    return {
        name: getattr(record, name) for name in record.__struct_fields__ if name != "at_seconds"
    }


def simulated(objects: list[Object], seed: int) -> list[AttemptRecord]:
    """The attempts of a simulation with these objects of the API server."""
    workload = Workload(initial=tuple(objects))
    config = config_from({**DEFAULT_CONFIG, "profiles": [{"schedulerName": "default-scheduler"}]})
    run = Simulation(workload, config, Registry(), seed=seed)
    sink = MemorySink()
    run.keep_journal(sink)
    run.run()
    return [record for record in sink.records if isinstance(record, AttemptRecord)]


@scenario()
@pytest.mark.parametrize("seed", [1, 2])
async def test_the_same_objects_give_the_same_decisions_live_and_simulated(
    world: World, seed: int
) -> None:
    """Each attempt has equal feasible nodes, rejections, scores, ties and draws."""
    await world.add_nodes(*mixed_nodes())
    await world.add_pods(*mixed_pods())
    await world.until(lambda: len(world.pods()) == 64, "all pods are there")
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": world.namespace}},
        *({"apiVersion": "v1", "kind": "Node", **each} for each in _sorted(world, NODE)),
        *({"apiVersion": "v1", "kind": "Pod", **each} for each in _sorted(world, POD)),
    ]
    expected = await asyncio.to_thread(simulated, objects, seed)
    async with world.scheduler(SchedulerOptions(seed=seed)) as running:
        await world.until(lambda: len(running.attempts()) >= 64, "every pod was tried")
        first = {record.pod: record for record in running.attempts() if record.attempt == 1}
    assert len(first) == 64
    tried = {record.pod: record for record in expected if record.attempt == 1}
    differing = [name for name in first if comparable(first[name]) != comparable(tried[name])]
    assert differing == []
    assert any(record.feasible_count < 15 for record in first.values())


def _sorted(world: World, kind: str) -> list[Object]:
    if kind == NODE:
        return [content for _, content in sorted(world.mirror.nodes.items())]
    return world.pods()
