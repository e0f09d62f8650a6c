"""Trees of groups: enough groups of a CompositePodGroup run together, or none."""

import asyncio
from typing import Any

from bayplan.api.objects import POD
from bayplan.objects.keys import object_key
from bayplan.ports import AskExtender, ExtenderAnswer, ExtenderVerb
from tests.kit.extenders import FakeExtender
from tests.kit.scenes import scene_of
from tests.scenarios.gangs import UPSTREAM, condition, message
from tests.scenarios.trees import GATES, PLUGINS, add_pods, put_part, put_tree
from tests.scenarios.world import World, play, scenario

INITIALLY = "PodGroupInitiallyScheduled"


def add_tree(world: World, minimum: int) -> tuple[list[str], list[str]]:
    """A tree of the groups a and b, which need both of their pods."""
    put_tree(world, "t", minimum)
    for name in ("a", "b"):
        put_part(world, name, 2, "t")
    return add_pods(world, "a", 2), add_pods(world, "b", 2)


def nodes(world: World, *cpus: int, **labels: str) -> None:
    for index, cpu in enumerate(cpus):
        world.add_node(f"n{index}", cpu=cpu, labels=labels)


def played(scene: Any, **options: Any) -> World:
    return play(scene, plugins=[*PLUGINS, *options.pop("plugins", ())], gates=GATES, **options)


def bound(world: World, names: list[str]) -> list[str]:
    """The nodes of the pods; "" for a pod without one."""
    places = [world.bound(name) for name in names]
    return ["" if place is None else place[1] for place in places]


@scene_of(played)
async def test_a_tree_is_placed_when_all_its_groups_fit(world: World) -> None:
    nodes(world, 4)
    first, second = add_tree(world, 2)
    await world.until(5)
    assert bound(world, [*first, *second]) == ["n0"] * 4
    for name in ("a", "b"):
        assert condition(world, name, INITIALLY, UPSTREAM)["status"] == "True"


@scene_of(played)
async def test_no_group_of_a_tree_is_placed_while_too_few_of_them_fit(world: World) -> None:
    nodes(world, 3)
    first, second = add_tree(world, 2)
    await world.until(1)
    assert bound(world, [*first, *second]) == [""] * 4
    leaf = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    root = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    start = "pod group is unschedulable, 0/1 placements are available, first placement status:"
    assert message(world, "a-0") == message(world, "a-1") == f"{start} {root}"
    assert message(world, "b-1") == "0/1 nodes are available: 1 Insufficient cpu."
    texts = [condition(world, name, INITIALLY, UPSTREAM)["message"] for name in ("a", "b")]
    assert texts[1] == f"{start} {leaf}, "
    # The group that fits shares the verdict of the root, to which the end is added twice.
    assert texts[0] == f"{start} {root}, , "
    world.add_node("more", cpu=1)
    await world.until(30)
    assert "" not in bound(world, [*first, *second])


@scene_of(played)
async def test_groups_beyond_the_minimum_wait_while_the_tree_runs(world: World) -> None:
    nodes(world, 3)
    first, second = add_tree(world, 1)
    await world.until(5)
    assert bound(world, first) == ["n0"] * 2
    assert bound(world, second) == [""] * 2
    world.add_node("more", cpu=2)
    await world.until(60)
    assert "" not in bound(world, second)


@scene_of(played)
async def test_pods_wait_for_every_group_above_them(world: World) -> None:
    nodes(world, 9)
    put_part(world, "a", 1, "middle")
    names = add_pods(world, "a", 1)
    await world.until(2)
    assert bound(world, names) == [""]
    put_tree(world, "middle", 1, "top")
    await world.until(4)
    assert bound(world, names) == [""]
    put_tree(world, "top", 1)
    await world.until(20)
    assert bound(world, names) == ["n0"]


@scene_of(played)
async def test_a_tree_waits_until_enough_groups_have_enough_pods(world: World) -> None:
    nodes(world, 9)
    put_tree(world, "t", 2)
    put_part(world, "a", 1, "t")
    first = add_pods(world, "a", 1)
    await world.until(2)
    put_part(world, "b", 2, "t")
    second = add_pods(world, "b", 1)
    await world.until(4)
    assert bound(world, [*first, *second]) == [""] * 2
    second = add_pods(world, "b", 1, first=1)
    await world.until(20)
    assert "" not in bound(world, [*first, "b-0", *second])


@scene_of(played)
async def test_all_groups_of_a_tree_share_a_block_and_each_has_its_rack(world: World) -> None:
    for block, racks in {"b1": {"r1": 2, "r2": 1}, "b2": {"r3": 2, "r4": 2}}.items():
        for rack, cpu in racks.items():
            world.add_node(rack, cpu=cpu, labels={"block": block, "rack": rack})
    put_tree(world, "t", 2, schedulingConstraints={"topology": [{"key": "block"}]})
    for name in ("a", "b"):
        rack = {"topology": [{"key": "rack"}]}
        put_part(world, name, 2, "t", schedulingConstraints=rack)
    names = [*add_pods(world, "a", 2), *add_pods(world, "b", 2)]
    await world.until(5)
    assert sorted(bound(world, names)) == ["r3", "r3", "r4", "r4"]


@scene_of(played, plugins=["DefaultPreemption"])
async def test_a_tree_preempts_as_one_and_only_if_that_helps(world: World) -> None:
    nodes(world, 4)
    for index in range(4):
        world.add_pod(f"low{index}", cpu="1", priority=0)
    await world.until(2)
    put_tree(world, "t", 2, priority=10)
    for name in ("a", "b"):
        put_part(world, name, 1, "t", priority=10)
    names = [
        *add_pods(world, "a", 1, priority=10),
        *add_pods(world, "b", 1, priority=10),
    ]
    await world.until(60)
    assert bound(world, names) == ["n0"] * 2
    keys = [object_key(POD, "default", f"low{index}") for index in range(4)]
    assert sum(world.cluster.get(key) is not None for key in keys) == 2


@scenario(plugins=PLUGINS, gates={**GATES, "CompositePodGroup": False})
async def test_without_the_gate_the_parent_of_a_group_has_no_effect(world: World) -> None:
    nodes(world, 4)
    put_part(world, "a", 2, "missing")
    names = add_pods(world, "a", 2)
    await world.until(2)
    assert bound(world, names) == ["n0"] * 2


@scene_of(played, plugins=["DefaultPreemption"])
async def test_a_pod_that_preempts_a_tree_with_mode_all_evicts_all_pods_of_it(world: World) -> None:
    nodes(world, 2, 2)
    put_tree(world, "t", 2, priority=0, disruptionMode={"all": {}})
    for name in ("a", "b"):
        put_part(world, name, 2, "t", priority=0)
    names = [*add_pods(world, "a", 2), *add_pods(world, "b", 2)]
    await world.until(2)
    world.add_pod("high", cpu="1", priority=9)
    await world.until(30)
    assert world.bound("high") is not None
    keys = [object_key(POD, "default", name) for name in names]
    assert not any(world.cluster.get(key) for key in keys)


@scene_of(played)
async def test_pods_of_a_tree_must_have_the_priority_of_its_root(world: World) -> None:
    nodes(world, 4)
    put_tree(world, "t", 2, priority=5)
    for name in ("a", "b"):
        put_part(world, name, 1, "t", priority=5)
    names = [*add_pods(world, "a", 1, priority=5), *add_pods(world, "b", 1, priority=3)]
    await world.until(1)
    assert bound(world, names) == ["", ""]
    text = (
        "all pods in a single pod group should have the same priority as the pod group's "
        "priority, got 3 and 5"
    )
    assert [message(world, name) for name in names] == [text] * 2
    assert condition(world, "a", INITIALLY, UPSTREAM)["reason"] == "SchedulerError"


@scene_of(played)
async def test_a_deleted_group_of_a_waiting_tree_stays_until_its_pods_have_ended(
    world: World,
) -> None:
    key = object_key(UPSTREAM, "default", "a")
    nodes(world, 1)
    put_tree(world, "t", 1)
    put_part(world, "a", 2, "t")
    names = add_pods(world, "a", 2)
    await world.until(1)
    world.cluster.delete(key)
    world.add_node("more", cpu=4)
    await world.until(60)
    assert "" not in bound(world, names)
    for name in names:
        assert world.cluster.get(key) is not None
        world.cluster.end_pod(object_key(POD, "default", name))
        await world.until(world.now + 1)
    assert world.cluster.get(key) is None


@scene_of(played)
async def test_a_group_that_is_gone_from_a_waiting_tree_holds_its_pods_until_it_is_back(
    world: World,
) -> None:
    key = object_key(UPSTREAM, "default", "a")
    nodes(world, 1)
    first, second = add_tree(world, 1)
    await world.until(1)
    world.cluster.delete(key)
    world.cluster.server.patch(key, {"metadata": {"finalizers": None}})
    world.add_node("more", cpu=4)
    await world.until(60)
    assert bound(world, first) == ["", ""]
    assert "" not in bound(world, second)
    put_part(world, "a", 2, "t")
    await world.until(120)
    assert "" not in bound(world, first)


@scene_of(played)
async def test_a_tree_is_tried_again_when_a_pod_that_waits_is_deleted(world: World) -> None:
    """The second group fits where the first one has fewer pods."""
    nodes(world, 3)
    put_tree(world, "t", 2)
    for name in ("a", "b"):
        put_part(world, name, 1, "t")
    first, second = add_pods(world, "a", 2), add_pods(world, "b", 1, cpu=2)
    await world.until(30)
    assert bound(world, [*first, *second]) == [""] * 3
    world.delete_pod(first[1])
    await world.until(60)
    assert bound(world, [first[0], *second]) == ["n0"] * 2


@scene_of(played, plugins=["DynamicResources", "DefaultPreemption"])
async def test_only_preemption_adds_its_reason_to_the_message_of_a_tree(world: World) -> None:
    """The plugin of devices has a reason for a group without a topology constraint only."""
    nodes(world, 1)
    world.add_pod("low", cpu="1", priority=0)
    await world.until(1)
    put_tree(world, "t", 1, priority=5)
    put_part(world, "a", 2, "t", priority=5)
    add_pods(world, "a", 2, priority=5)
    await world.until(2)
    text = condition(world, "a", INITIALLY, UPSTREAM)["message"]
    assert ", pod group preemption: pod group is unschedulable, 0/1 placements" in text
    assert "ResourceClaims" not in text


def test_an_extender_decides_about_the_pods_of_a_tree() -> None:
    async def ask(question: AskExtender) -> ExtenderAnswer:
        await asyncio.sleep(1)
        return ExtenderAnswer(node_names=frozenset(question.node_names) - {"n0"})

    async def scene(world: World) -> None:
        nodes(world, 4, 4)
        first, second = add_tree(world, 2)
        await world.until(10)
        assert bound(world, [*first, *second]) == ["n1"] * 4

    verbs = frozenset((ExtenderVerb.FILTER,))
    far = FakeExtender("far", verbs=verbs, selects=lambda pod: True)
    played(scene, extenders=[far], asks={"far": ask})
