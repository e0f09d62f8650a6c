"""S-17, part C: pods get the same nodes on a real API server as on the embedded cluster."""

from pathlib import Path

import pytest

from tests.live.control_plane import ControlPlane
from tests.live.gangs import X_K8S, Gangs
from tests.live.kubelet import ready_node
from tests.live.replays import Scene, embedded, replay
from tests.live.world import World, play, small_pod
from tests.scenarios import equal_pods, evictions, racks, strategies
from tests.scenarios.world import PROFILE, Setup

pytestmark = pytest.mark.timeout(400)

FIT = "NodeResourcesFit"


def strategy(name: str) -> Setup:
    return Setup(plugins=[(FIT, 1)], args={FIT: {"scoringStrategy": {"type": name}}})


def rack_scores(aggregate: str, *keys: str) -> Setup:
    args = {**racks.fit(), **racks.scorer(aggregate=aggregate)}
    return Setup(plugins=racks.ONLY_RACK, args=args, tie_break=keys)


@pytest.mark.parametrize(
    ("scene", "setup", "expected_node"),
    [
        pytest.param(strategies.scene, strategy("LeastAllocated"), "c", id="S-01 A"),
        pytest.param(strategies.scene, strategy("MostAllocated"), "b", id="S-01 B"),
        pytest.param(racks.a_pod_among_racks, rack_scores("sum", FIT), "n1", id="S-10 A"),
        pytest.param(racks.a_pod_among_racks, rack_scores("mean"), "n5", id="S-10 B"),
    ],
)
def test_a_pod_gets_the_same_node_as_on_the_embedded_cluster(
    control_plane: ControlPlane, scene: Scene, setup: Setup, expected_node: str
) -> None:
    recorded = embedded(scene, setup)
    assert recorded.places == {"p": expected_node}

    async def live(world: World) -> None:
        await replay(world, recorded, setup)
        assert world.bound()["p"] == expected_node

    play(control_plane, live)


def test_the_same_victims_are_evicted(control_plane: ControlPlane) -> None:
    """S-06 A."""
    setup = Setup(plugins=evictions.PLUGINS)
    recorded = embedded(evictions.h_preempts, setup)
    assert (recorded.places, recorded.deleted) == ({"h": "n3"}, {"v2", "v3", "v4"})

    async def live(world: World) -> None:
        await replay(world, recorded, setup)
        assert world.bound()["h"] == "n3"
        names = {content["metadata"]["name"] for content in recorded.running}
        assert names - world.bound().keys() == recorded.deleted

    play(control_plane, live)


def test_the_same_number_of_rows_is_evaluated_and_each_pod_has_its_own_node(
    control_plane: ControlPlane,
) -> None:
    """S-07 A."""
    setup = equal_pods.setup()
    recorded = embedded(equal_pods.part_a(50), setup)
    assert len(set(recorded.places.values())) == len(recorded.places) == 20

    async def live(world: World) -> None:
        running = await replay(world, recorded, setup)
        places = {name: world.bound()[name] for name in recorded.places}
        assert len(set(places.values())) == 20
        plugins = running.scheduler.framework(PROFILE).plugins.instances()
        counting = [each for each in plugins if isinstance(each, equal_pods.CountingFilter)]
        assert [each.evaluated_rows for each in counting] == [50 + 19]

    play(control_plane, live)


def test_the_same_groups_are_placed_and_nothing_is_reserved(
    group_plane: ControlPlane, tmp_path: Path
) -> None:
    """S-13 A."""
    group_x, group_y = ("x1", "x2", "x3"), ("y1", "y2", "y3")

    async def live(world: World) -> None:
        gangs = Gangs(world, X_K8S, tmp_path)
        await gangs.begin()
        await world.add_nodes(*(ready_node(f"n{number}", cpu=4) for number in range(1, 5)))
        for name in ("x", "y"):
            await gangs.add_group(name, 3)
        for pair in zip(group_x, group_y, strict=True):
            for name in pair:
                await gangs.add_members(name[0], name, cpu=3)
        async with gangs.scheduler():
            await world.until_bound(*group_x)
            text = f"group {world.namespace}/y: 1 of 3 members fit"
            await world.until(lambda: text in world.condition("y1").get("message", ""), text)
            assert set(world.bound()) == set(group_x)
            assert len(set(world.bound().values())) == 3
            await world.add_pods(small_pod("z", cpu=3, scheduler=gangs.name))
            await world.until_bound("z")
            assert set(world.bound()) == {*group_x, "z"}
            for name in group_x:
                await world.delete_pod(name)
            await world.until_bound(*group_y)
            for name in group_y:
                reports = [event["note"] for event in await world.events(name, "FailedScheduling")]
                assert not any("last failed" in note for note in reports)

    play(group_plane, live)
