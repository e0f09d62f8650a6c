"""S-01: three strategies, three winners."""

from typing import Any

import pytest

from bayplan.journal import AttemptRecord
from tests.scenarios.strategies import scene, three_nodes
from tests.scenarios.world import World, play, scenario

FIT = "NodeResourcesFit"


def scored(record: AttemptRecord) -> dict[str, int]:
    return {line.node: line.plugins[0].weighted for line in record.scores}


def weights(cpu: int, memory: int) -> list[dict[str, Any]]:
    return [{"name": "cpu", "weight": cpu}, {"name": "memory", "weight": memory}]


@pytest.mark.parametrize(
    ("strategy", "scores", "winner"),
    [
        pytest.param({"type": "LeastAllocated"}, {"a": 43, "b": 31, "c": 62}, "c", id="A, least"),
        pytest.param({"type": "MostAllocated"}, {"a": 56, "b": 68, "c": 37}, "b", id="B, most"),
        pytest.param(
            {"type": "LeastAllocated", "resources": weights(3, 1)},
            {"a": 34, "b": 40, "c": 56},
            "c",
            id="D, least with weights",
        ),
    ],
)
def test_the_strategy_decides(
    strategy: dict[str, Any], scores: dict[str, int], winner: str
) -> None:
    world = play(scene, plugins=[(FIT, 1)], args={FIT: {"scoringStrategy": strategy}})
    (record,) = world.attempts("p")
    assert world.bound("p") == (0.0, winner)
    assert scored(record) == scores
    for line in record.scores:
        assert line.total == sum(plugin.weighted for plugin in line.plugins)


def test_a_ratio_is_truncated_towards_zero() -> None:
    """Part C: the line falls from 100 at 0 % to 0 at 3 %; at 1 % its value is 100 - 33."""
    points = [(0, 10), (3, 0), (100, 0)]
    shape = [{"utilization": where, "score": score} for where, score in points]
    strategy = {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": "cpu", "weight": 1}],
        "requestedToCapacityRatio": {"shape": shape},
    }

    async def two_nodes(world: World) -> None:
        for name in ("x", "y"):
            world.add_node(name, cpu=100, memory="64Gi")
        world.add_pod("ry", cpu=2, memory="1Gi", node="y")
        await world.until(0)
        world.add_pod("p", cpu=1, memory="1Gi")
        await world.until(0)

    world = play(two_nodes, plugins=[(FIT, 1)], args={FIT: {"scoringStrategy": strategy}})
    assert scored(world.attempts("p")[0]) == {"x": 67, "y": 0}
    assert world.bound("p") == (0.0, "x")


@scenario(plugins=[(FIT, 1)])
async def test_a_single_node_is_not_scored(world: World) -> None:
    await three_nodes(world)
    for name in ("b", "c"):
        world.delete_node(name)
    world.add_pod("p", cpu=1, memory="1Gi")
    await world.until(0)
    (record,) = world.attempts("p")
    assert world.bound("p") == (0.0, "a")
    assert (record.scores, record.feasible_count, record.node_count) == ((), 1, 1)
    points = "scheduler_framework_extension_point_duration_seconds_count"
    labels = {"status": "Success", "profile": "bayplan"}
    assert world.metric(points, extension_point="Filter", **labels) == 1
    assert world.metric(points, extension_point="Score", **labels) == 0
