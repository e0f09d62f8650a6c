"""Groups that have their domains alone."""

from typing import Any

from tests.scenarios.gangs import (
    FIT,
    add_member,
    members,
    message,
    owned_by,
    put_group,
    racks,
    racks_of,
)
from tests.scenarios.world import World, scenario

RACK = {"bayplan.dev/required-topology": "rack"}
ALONE = {**RACK, "bayplan.dev/exclusive-topology": "rack"}


@scenario(plugins=FIT)
async def test_other_pods_stay_out_of_the_rack_of_an_exclusive_group(world: World) -> None:
    racks(world, (4, 4), (1,))
    put_group(world, "g", 2, annotations=ALONE)
    names = members(world, 3, 3)
    await world.until(1)
    assert racks_of(world, *names) == ["r0", "r0"]
    world.add_pod("single", cpu=1)
    world.add_pod("late", cpu=1)
    put_group(world, "h", 1)
    add_member(world, "of-h", "h", cpu=1)
    await world.until(2)
    assert sorted(racks_of(world, "single", "late", "of-h")) == ["", "", "r1"]
    waiting = next(n for n in ("single", "late", "of-h") if not racks_of(world, n)[0])
    assert "2 node(s) in a domain that another group of pods has alone" in message(world, waiting)
    for name in names:
        world.delete_pod(name)
    await world.until(20)
    assert racks_of(world, "single", "late", "of-h").count("r0") == 2


@scenario(plugins=FIT)
async def test_a_run_of_equal_pods_stays_out_of_the_rack_of_a_group_that_came_meanwhile(
    world: World,
) -> None:
    racks(world, (9, 9), (9, 9))
    for number in range(6):
        world.add_pod(f"before-{number}", cpu=1)
    await world.until(1)
    for number in range(1, 6):
        world.delete_pod(f"before-{number}")
    free = "r1" if racks_of(world, "before-0") == ["r0"] else "r0"
    put_group(world, "g", 2, annotations=ALONE)
    names = members(world, 2, 2)
    await world.until(2)
    assert racks_of(world, *names) == [free, free]
    after = [f"after-{number}" for number in range(6)]
    for name in after:
        world.add_pod(name, cpu=1)
    await world.until(3)
    assert free not in racks_of(world, *after)


@scenario(plugins=FIT)
async def test_an_exclusive_group_goes_where_it_is_alone_or_waits(world: World) -> None:
    """Pods of DaemonSets do not count."""
    racks(world, (8, 8))
    world.add_pod("single", cpu=1)
    await world.until(1)
    world.add_pod("agent", {"ownerReferences": [_daemon_set()]}, cpu=1)
    put_group(world, "g", 2, annotations=ALONE)
    names = members(world, 2, 2)
    await world.until(2)
    assert racks_of(world, *names) == ["", ""]
    assert "node(s) in a domain that the group would not have alone" in message(world, names[0])
    world.delete_pod("single")
    await world.until(20)
    assert racks_of(world, "agent", *names) == ["r0", "r0", "r0"]


@scenario(plugins=FIT)
async def test_of_two_exclusive_groups_each_has_a_rack(world: World) -> None:
    racks(world, (8, 8), (8, 8))
    for name in ("g", "h", "i"):
        put_group(world, name, 2, annotations=ALONE)
        for index in range(2):
            add_member(world, f"{name}{index}", name, cpu=1)
    await world.until(1)
    placed = racks_of(world, "g0", "g1", "h0", "h1", "i0", "i1")
    assert placed == ["r0", "r0", "r1", "r1", "", ""] or placed == [
        "r1",
        "r1",
        "r0",
        "r0",
        "",
        "",
    ]


@scenario(plugins=FIT)
async def test_a_group_that_is_exclusive_no_longer_lets_others_in_at_once(world: World) -> None:
    racks(world, (8,))
    put_group(world, "g", 1, annotations=ALONE)
    members(world, 1)
    await world.until(1)
    world.add_pod("single", cpu=1)
    await world.until(2)
    assert racks_of(world, "single") == [""]
    put_group(world, "g", 1, annotations=RACK)
    await world.until(15)
    assert racks_of(world, "single") == ["r0"]


def _daemon_set() -> dict[str, Any]:
    [owner] = owned_by("agent")["ownerReferences"]
    return {**owner, "kind": "DaemonSet"}
