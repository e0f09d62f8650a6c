"""Trees of groups against a real API server with the gates of Kubernetes 1.37."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.conftest import UPSTREAM_GROUPS, started
from tests.live.control_plane import ControlPlane
from tests.live.gangs import Gangs
from tests.live.kubelet import ready_node
from tests.live.world import World, scenario, small_pod
from tests.scenarios.trees import GATES

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def tree_plane() -> Iterator[ControlPlane]:
    """A control plane with Kubernetes' pod groups and groups of groups."""
    gates = ",".join(f"{name}={str(value).lower()}" for name, value in GATES.items())
    served = f"{UPSTREAM_GROUPS}=true,scheduling.k8s.io/v1alpha3=true"
    yield from started(f"--feature-gates={gates}", f"--runtime-config={served}")


async def nested_tree(gangs: Gangs) -> None:
    """A tree that needs both its groups: one of pods, and one of two groups of pods."""
    await gangs.add_tree("t", 2)
    await gangs.add_group("a", 2, parent="t")
    await gangs.add_tree("m", 2, parent="t")
    for name in ("b", "c"):
        await gangs.add_group(name, 1, parent="m")


@scenario("tree_plane")
async def test_a_tree_is_bound_completely_or_not_at_all(world: World, tmp_path: Path) -> None:
    gangs = Gangs(world, UPSTREAM_GROUPS, tmp_path, GATES)
    await gangs.begin()
    await world.add_nodes(ready_node("n1", cpu=3))
    async with gangs.scheduler() as one:
        await nested_tree(gangs)
        await gangs.add_members("a", "a0", "a1")
        await gangs.add_members("b", "b0")
        # The tree is not tried before the last group has its pod.
        await world.add_pods(small_pod("between", scheduler=gangs.name, cpu=9))
        await world.until_unschedulable("between")
        assert world.condition("a0") == {}
        await gangs.add_members("c", "c0")
        await world.until_unschedulable("a0", "a1", "b0", "c0")
        root = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
        for name in ("a", "b", "c"):
            await gangs.until_status(name, gangs.is_pending("minCount"))
        assert root in world.condition("a0")["message"]
        assert world.bound() == {}
        await world.add_nodes(ready_node("n2", cpu=1))
        await world.until_bound("a0", "a1", "b0", "c0")
        for name in ("a", "b", "c"):
            await gangs.until_status(name, gangs.is_running(1))
        assert "Rights are missing" not in one.output
        assert "forbidden" not in one.output


@scenario("tree_plane")
async def test_a_tree_shares_a_block(world: World, tmp_path: Path) -> None:
    gangs = Gangs(world, UPSTREAM_GROUPS, tmp_path, GATES)
    await gangs.begin()
    blocks = {"n1": "x", "n2": "y", "n3": "y"}
    for name, block in blocks.items():
        await world.add_nodes(ready_node(name, cpu=2, labels={"block": block}))
    async with gangs.scheduler():
        topology = {"topology": [{"key": "block"}]}
        await gangs.add_tree("t", 2, schedulingConstraints=topology)
        for name in ("a", "b"):
            await gangs.add_group(name, 2, parent="t")
            await gangs.add_members(name, f"{name}0", f"{name}1")
        await world.until_bound("a0", "a1", "b0", "b1")
    assert {blocks[name] for name in world.bound().values()} == {"y"}


@scenario("tree_plane")
async def test_a_scheduler_killed_between_the_bindings_of_a_tree_is_replaced(
    world: World, tmp_path: Path
) -> None:
    groups = {name: [f"{name}{number}" for number in range(10)] for name in ("a", "b", "c")}
    names = [name for members in groups.values() for name in members]
    gangs = Gangs(world, UPSTREAM_GROUPS, tmp_path, GATES)
    await gangs.begin()
    await world.add_nodes(*(ready_node(f"n{number}", cpu=10) for number in range(3)))
    await nested_tree(gangs)
    for group, members in groups.items():
        await gangs.add_members(group, *members)
    # The requests are so slow that the first bindings arrive before the last are sent.
    async with gangs.scheduler(qps=4, burst=40) as one:
        await world.until(lambda: bool(world.bound()), "the first are bound")
        one.end(signal.SIGKILL)
    assert 0 < len(world.bound()) < len(names)
    async with gangs.scheduler():
        await world.until_bound(*names)
    # `play` checks that no pod was bound twice.
    assert set(world.bound()) == set(names)
