"""S-14: minResources, and the placements that exist."""

from tests.scenarios.gangs import FIT, add_member, add_members, bound, message, put_group
from tests.scenarios.world import World, scenario


@scenario(plugins=FIT)
async def test_part_a_no_single_node_holds_the_sum_and_the_group_fits(world: World) -> None:
    for name in ("n1", "n2", "n3"):
        world.add_node(name, cpu=4, memory="8Gi")
    put_group(world, "g", 3, minResources={"cpu": 6, "memory": "3Gi"})
    names = ("g1", "g2", "g3")
    add_members(world, names, "g", cpu=2, memory="1Gi")
    await world.until(0)
    assert {world.bound(name) for name in names} == {(0, "n1"), (0, "n2"), (0, "n3")}


@scenario(plugins=FIT)
async def test_part_b_the_sum_suffices_and_no_placement_exists(world: World) -> None:
    for name in ("n1", "n2", "n3"):
        world.add_node(name, cpu=4, memory="8Gi")
    put_group(world, "g", 2, minResources={"cpu": "12"})
    add_members(world, ("g1", "g2"), "g", cpu=6, memory="1Gi")
    await world.until(29)
    assert list(bound(world, "g1", "g2")) == [None, None]
    assert "0 of 2" in message(world, "g1")
    assert "3 Insufficient cpu" in message(world, "g1")
    await world.until(30)
    world.add_node("n4", cpu=16, memory="32Gi")
    await world.until(31)
    assert [world.bound(name) for name in ("g1", "g2")] == [(30, "n4")] * 2


@scenario(plugins=FIT)
async def test_part_c_resources_of_deleted_members_are_released(world: World) -> None:
    world.add_node("n1", cpu=4, memory="8Gi")
    world.add_node("n2", cpu=2, memory="8Gi")
    put_group(world, "m", 3, minResources={"cpu": "6"})
    add_member(world, "m1", "m", cpu=2, node="n1")
    add_members(world, ("m2", "m3"), "m", cpu=2)
    await world.until(1)
    assert {world.bound(name) for name in ("m2", "m3")} == {(0, "n1"), (0, "n2")}
