"""S-09: a graph of scores, end to end, with reuse and without."""

from typing import Any

import pytest

from tests.examples.policies import policy
from tests.scenarios.world import Setup, World, play

LabelScore: Any = policy("label_score")
LABELS = {"n1": ("10", "50"), "n2": ("45", "60"), "n3": ("90", "5")}
READERS = {
    "LabelScore": {"label": "s"},
    "Scale/B": {"scoreFrom": "LabelScore", "factor": 1},
    "Invert/C": {"scoreFrom": "LabelScore"},
    "Combine/D": {"scoreFrom": ["Scale/B", "Invert/C"], "with": "min"},
}


def world_of(*plugins: Any, args: Any = READERS, pods: int = 1, **options: Any) -> World:
    async def scene(world: World) -> None:
        for name, (s, u) in LABELS.items():
            world.add_node(name, cpu=8, memory="8Gi", labels={"s": s, "u": u})
        for number in range(pods):
            world.add_pod(f"p{number}", cpu=1, memory="1Gi")
        await world.until(0)

    setup = Setup(plugins=["NodeResourcesFit", *plugins], classes=[LabelScore], args=args)
    for name, value in options.items():
        setattr(setup, name, value)
    return play(scene, setup)


def totals(world: World) -> dict[str, int]:
    (record,) = world.attempts("p0")
    return {line.node: line.total for line in record.scores}


def test_the_lower_of_a_score_and_its_inverse_favours_the_middle() -> None:
    world = world_of(("Combine/D", 1))
    assert totals(world) == {"n1": 10, "n2": 45, "n3": 10}
    assert world.bound("p0") == (0.0, "n2")
    (record,) = world.attempts("p0")
    read = {each.plugin: each.normalized for each in record.scores[0].read}
    assert read == {"LabelScore": 45, "Scale/B": 45, "Invert/C": 55}


def test_an_enabled_source_counts_in_the_total() -> None:
    world = world_of(("Combine/D", 1), ("LabelScore", 1))
    assert totals(world) == {"n1": 20, "n2": 90, "n3": 100}
    assert world.bound("p0") == (0.0, "n3")


def test_two_instances_of_a_source_and_of_a_reader_coexist() -> None:
    args = {
        "LabelScore/s": {"label": "s"},
        "LabelScore/u": {"label": "u"},
        "Scale/a": {"scoreFrom": "LabelScore/s", "factor": 2},
        "Scale/b": {"scoreFrom": "LabelScore/u", "factor": 1},
    }
    off = {"OpportunisticBatching": False}  # cached results take no time
    world = world_of(("Scale/a", 1), ("Scale/b", 1), args=args, pods=60, gates=off)
    assert world.bound("p0") == (0.0, "n2")
    (record,) = world.attempts("p0")
    assert {line.node: line.total for line in record.scores} == {"n1": 70, "n2": 150, "n3": 105}
    name = "scheduler_plugin_execution_duration_seconds_count"
    for instance in args:
        labels = {"plugin": instance, "extension_point": "Score", "status": "Success"}
        assert world.metric(name, **labels) > 0, instance


@pytest.mark.parametrize("plugins", [[("Combine/D", 1)], [("Combine/D", 1), ("LabelScore", 2)]])
def test_reuse_changes_no_decision(plugins: Any) -> None:
    worlds = [
        world_of(*plugins, pods=30, gates={"OpportunisticBatching": is_on})
        for is_on in (True, False)
    ]
    placed = [[world.bound(f"p{n}") for n in range(30)] for world in worlds]
    assert placed[0] == placed[1]
    assert worlds[0].digest == worlds[1].digest
