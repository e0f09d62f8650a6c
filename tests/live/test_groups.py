"""Pod groups of each kind against a real API server, with only the computed rights."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.live.gangs import LABELS, VERSIONS, X_K8S, Gangs
from tests.live.kubelet import ready_node
from tests.live.world import World, scenario, small_pod

pytestmark = pytest.mark.timeout(400)

every_version = pytest.mark.parametrize("version", VERSIONS)


@scenario("group_plane")
@every_version
async def test_a_group_is_bound_completely_or_not_at_all(
    world: World, tmp_path: Path, version: str
) -> None:
    gangs = Gangs(world, version, tmp_path)
    await gangs.begin()
    await world.add_nodes(ready_node("n1", cpu=2), ready_node("n2", cpu=1))
    async with gangs.scheduler() as one:
        await gangs.add_group("late", 3)
        await gangs.add_members("late", "a", "b")
        await gangs.until_status("late", gangs.is_assembling)
        await world.add_pods(small_pod("between", scheduler=gangs.name, cpu=3))
        await world.until_unschedulable("between")
        # The members are older than that pod, and have no condition.
        assert world.condition("a") == world.condition("b") == {}
        await world.delete_pod("between")
        await gangs.add_members("late", "c")
        await world.until_bound("a", "b", "c")
        await gangs.until_status("late", gangs.is_running(3))
        # Only one member of the next group fits.
        await world.add_nodes(ready_node("n3", cpu=1))
        await gangs.add_group("big", 3)
        await gangs.add_members("big", "x", "y", "z")
        whole = f"group {world.namespace}/big: 1 of 3 members fit; the 2nd, "
        if version not in LABELS:
            whole = "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"

        def is_written() -> bool:
            return any(whole in world.condition(name).get("message", "") for name in "xyz")

        await world.until(is_written, whole)
        await gangs.until_status("big", gangs.is_pending(whole))
        # The group reserves nothing: a later pod takes the room.
        await world.add_pods(small_pod("later", cpu=1, scheduler=gangs.name))
        await world.until_bound("later")
        assert set(world.bound()) == {"a", "b", "c", "later"}
        await world.add_nodes(ready_node("n4", cpu=3))
        await world.until_bound("x", "y", "z")
        await gangs.until_status("big", gangs.is_running(3))
        assert "Rights are missing" not in one.output
        assert "Pod groups are not" not in one.output
        assert "forbidden" not in one.output


@scenario("group_plane")
@every_version
async def test_a_scheduler_killed_between_the_bindings_of_a_gang_is_replaced(
    world: World, tmp_path: Path, version: str
) -> None:
    names = [f"p{number}" for number in range(30)]
    gangs = Gangs(world, version, tmp_path)
    await gangs.begin()
    await world.add_nodes(*(ready_node(f"n{number}", cpu=10) for number in range(3)))
    await gangs.add_group("gang", len(names))
    await gangs.add_members("gang", *names)
    # The requests are so slow that the first bindings arrive before the last are sent.
    async with gangs.scheduler(qps=4, burst=40) as one:
        await world.until(lambda: bool(world.bound()), "the first are bound")
        one.end(signal.SIGKILL)
    assert 0 < len(world.bound()) < len(names)
    async with gangs.scheduler():
        await world.until_bound(*names)
        await gangs.until_status("gang", gangs.is_running(len(names)))
    # `play` checks that no pod was bound twice.
    assert set(world.bound()) == set(names)


@scenario("group_plane")
async def test_missing_rights_for_groups_are_logged_and_pods_are_placed(
    world: World, tmp_path: Path
) -> None:
    gangs = Gangs(world, X_K8S, tmp_path)
    await gangs.begin(forbidden="podgroups/status")
    await world.add_nodes(ready_node("n1", cpu=2))
    async with gangs.scheduler() as one:
        await gangs.add_group("g", 2)
        await gangs.add_members("g", "a", "b")
        await world.until_bound("a", "b")
        missing_right = 'cannot patch resource \\"podgroups/status\\" in API group \\"{}\\"'
        for group in ("scheduling.x-k8s.io", "scheduling.ming.io", "scheduling.k8s.io"):
            await asyncio.to_thread(one.wait_until_printed, missing_right.format(group))


@scenario("group_plane")
async def test_group_kinds_installed_at_run_time_are_watched(world: World, tmp_path: Path) -> None:
    """The members wait for the group's kind and object, and are then placed."""
    gangs = Gangs(world, X_K8S, tmp_path)
    await gangs.begin()
    await gangs.withdraw()
    await world.add_nodes(ready_node("n1", cpu=2))
    async with gangs.scheduler() as one:
        await gangs.add_members("g", "a", "b")
        await asyncio.to_thread(one.wait_until_printed, "Pods wait for groups of an API group")
        assert "deploy/crds" in one.output
        await gangs.offer()
        await asyncio.to_thread(one.wait_until_printed, "Pod groups are followed from now on")
        await gangs.add_group("g", 2)
        await world.until_bound("a", "b")
        await gangs.until_status("g", gangs.is_running(2))
