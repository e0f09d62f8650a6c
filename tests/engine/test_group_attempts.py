"""Attempts at groups."""

from tests.scenarios.gangs import FIT, add_member, put_group
from tests.scenarios.world import World, play


def test_s13_part_c_a_group_that_never_fits_does_not_spin() -> None:
    async def story(world: World) -> None:
        world.add_node("n1", cpu=1)
        put_group(world, "g", 50)
        for index in range(50):
            add_member(world, f"m{index}", "g", cpu=1)
        await world.until(3600)
        assert len(world.attempts("m0")) <= 13

    play(story, plugins=FIT)
