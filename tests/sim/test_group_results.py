"""What became of groups of pods."""

from bayplan.sim.group_results import group_results
from tests.scenarios.gangs import FIT, MING, X_K8S, add_member, put_group
from tests.scenarios.world import World, play


def test_a_result_tells_how_a_group_stands_and_why_it_waits() -> None:
    async def story(world: World) -> None:
        world.add_node("n1")
        put_group(world, "g", 2)
        add_member(world, "a", "g")
        await world.until(1)
        found = group_results(world.scheduler)["default/g"]
        assert (found.phase, found.scheduled) == ("Pending", 0)
        assert "1 of 2 members are here" in (found.message or "")
        add_member(world, "b", "g")
        await world.until(2)
        found = group_results(world.scheduler)["default/g"]
        assert (found.phase, found.scheduled, found.running) == ("Running", 2, 2)
        assert found.message is None

    play(story, plugins=FIT)


def test_groups_of_two_kinds_with_one_name_are_both_told() -> None:
    async def story(world: World) -> None:
        put_group(world, "g", 2, MING)
        put_group(world, "g", 3, X_K8S)
        await world.until(1)
        found = group_results(world.scheduler)
        assert {name: each.min_member for name, each in found.items()} == {
            "default/g": 2,
            "default/g (scheduling.x-k8s.io)": 3,
        }

    play(story, plugins=FIT)
