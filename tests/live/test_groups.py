"""Pod groups of each kind against a real API server, under no more rights than are computed."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.live.control_plane import ControlPlane
from tests.live.gangs import LABELS, VERSIONS, X_K8S, Gangs
from tests.live.kubelet import node
from tests.live.world import World, play, pod

pytestmark = pytest.mark.timeout(400)

every_version = pytest.mark.parametrize("version", VERSIONS)


@every_version
def test_a_group_is_bound_completely_or_not_at_all(
    group_plane: ControlPlane, tmp_path: Path, version: str
) -> None:
    async def story(world: World) -> None:
        gangs = Gangs(world, version, tmp_path)
        await gangs.begin()
        await world.add_nodes(node("n1", cpu=2), node("n2", cpu=1))
        async with gangs.scheduler() as one:
            await gangs.add_group("late", 3)
            await gangs.add_members("late", "a", "b")
            await gangs.until_status("late", gangs.is_assembling)
            await world.add_pods(pod("between", scheduler=gangs.name, cpu=3))
            await world.until_unschedulable("between")
            # Its members came before that pod, and nothing was written to them.
            assert world.condition("a") == world.condition("b") == {}
            await world.delete_pod("between")
            await gangs.add_members("late", "c")
            await world.until_bound("a", "b", "c")
            await gangs.until_status("late", gangs.is_running(3))
            # The next one does not fit, but for one member.
            await world.add_nodes(node("n3", cpu=1))
            await gangs.add_group("big", 3)
            await gangs.add_members("big", "x", "y", "z")
            whole = f"group {world.namespace}/big: 1 of 3 members fit; the 2nd, "
            if version not in LABELS:
                whole = "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"

            def is_written() -> bool:
                return any(whole in world.condition(name).get("message", "") for name in "xyz")

            await world.until(is_written, whole)
            await gangs.until_status("big", gangs.is_pending(whole))
            # Nothing is held: who comes later takes the room.
            await world.add_pods(pod("later", cpu=1, scheduler=gangs.name))
            await world.until_bound("later")
            assert set(world.bound()) == {"a", "b", "c", "later"}
            await world.add_nodes(node("n4", cpu=3))
            await world.until_bound("x", "y", "z")
            await gangs.until_status("big", gangs.is_running(3))
            assert "Rights are missing" not in one.said
            assert "Pod groups are not" not in one.said
            assert "forbidden" not in one.said

    play(group_plane, story)


@every_version
def test_a_scheduler_killed_between_the_bindings_of_a_gang_is_replaced(
    group_plane: ControlPlane, tmp_path: Path, version: str
) -> None:
    names = [f"p{number}" for number in range(30)]

    async def story(world: World) -> None:
        gangs = Gangs(world, version, tmp_path)
        await gangs.begin()
        await world.add_nodes(*(node(f"n{number}", cpu=10) for number in range(3)))
        await gangs.add_group("gang", len(names))
        await gangs.add_members("gang", *names)
        # So slow that some of the bindings are seen before others are sent.
        async with gangs.scheduler(qps=4, burst=40) as one:
            await world.until(lambda: bool(world.bound()), "the first are bound")
            one.end(signal.SIGKILL)
        assert 0 < len(world.bound()) < len(names)
        async with gangs.scheduler():
            await world.until_bound(*names)
            await gangs.until_status("gang", gangs.is_running(len(names)))
        # That none was bound twice is checked at every test's end.
        assert set(world.bound()) == set(names)

    play(group_plane, story)


def test_missing_rights_for_groups_are_logged_and_pods_are_placed(
    group_plane: ControlPlane, tmp_path: Path
) -> None:
    async def story(world: World) -> None:
        gangs = Gangs(world, X_K8S, tmp_path)
        await gangs.begin(forbidden="podgroups/status")
        await world.add_nodes(node("n1", cpu=2))
        async with gangs.scheduler() as one:
            await gangs.add_group("g", 2)
            await gangs.add_members("g", "a", "b")
            await world.until_bound("a", "b")
            wanted = 'cannot patch resource \\"podgroups/status\\" in API group \\"{}\\"'
            for group in ("scheduling.x-k8s.io", "scheduling.ming.io", "scheduling.k8s.io"):
                await asyncio.to_thread(one.wait_until_printed, wanted.format(group))

    play(group_plane, story)


def test_group_kinds_installed_at_run_time_are_watched(
    group_plane: ControlPlane, tmp_path: Path
) -> None:
    """Members of a group wait for its kind, its object, and then no more."""

    async def story(world: World) -> None:
        gangs = Gangs(world, X_K8S, tmp_path)
        await gangs.begin()
        await gangs.withdraw()
        await world.add_nodes(node("n1", cpu=2))
        async with gangs.scheduler() as one:
            await gangs.add_members("g", "a", "b")
            await asyncio.to_thread(one.wait_until_printed, "Pods wait for groups of an API group")
            assert "deploy/crds" in one.said
            await gangs.offer()
            await asyncio.to_thread(one.wait_until_printed, "Pod groups are followed from now on")
            await gangs.add_group("g", 2)
            await world.until_bound("a", "b")
            await gangs.until_status("g", gangs.is_running(2))

    play(group_plane, story)
