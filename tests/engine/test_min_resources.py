"""minResources of a group."""

from tests.scenarios.gangs import FIT, add_member, bound, message, put_group
from tests.scenarios.world import World, play


def test_s14_min_resources_are_a_floor_that_is_checked_too() -> None:
    async def story(world: World) -> None:
        world.add_node("n1", cpu=4)
        put_group(world, "g", 2, minResources={"cpu": "6"})
        for name in ("g1", "g2"):
            add_member(world, name, "g", cpu=1)
        await world.until(10)
        assert list(bound(world, "g1", "g2")) == [None, None]
        said = "minResources are not free in the cluster: cpu (wanted 6, found 4)"
        assert said in message(world, "g1")
        world.add_node("n2", cpu=4)
        await world.until(20)
        assert None not in list(bound(world, "g1", "g2"))

    play(story, plugins=FIT)


def test_s14_part_c_what_members_hold_is_given_back() -> None:
    async def story(world: World) -> None:
        world.add_node("n1", cpu=4)
        world.add_node("n2", cpu=2)
        put_group(world, "m", 3, minResources={"cpu": "6"})
        add_member(world, "m1", "m", cpu=2, node="n1")
        for name in ("m2", "m3"):
            add_member(world, name, "m", cpu=2)
        await world.until(1)
        assert {world.bound(name) for name in ("m2", "m3")} == {(0.0, "n1"), (0.0, "n2")}

    play(story, plugins=FIT)


def test_what_is_no_quantity_is_told_with_its_place() -> None:
    async def story(world: World) -> None:
        world.add_node("n1", cpu=4)
        put_group(world, "g", 1, minResources={"cpu": "many"})
        add_member(world, "g1", "g", cpu=1)
        await world.until(10)
        assert list(bound(world, "g1")) == [None]
        wanted = "group default/g: spec.minResources: found 'many', wanted a quantity"
        assert message(world, "g1").startswith(wanted)
        put_group(world, "g", 1, minResources={"cpu": "1500m"})
        await world.until(30)
        assert None not in list(bound(world, "g1"))

    play(story, plugins=FIT)
