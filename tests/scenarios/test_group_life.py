"""The life of a group in a topology: it grows, loses members, makes room, waits for a domain."""

from typing import Any

import pytest

from bayplan.api.objects import POD
from bayplan.objects.keys import object_key
from tests.scenarios.gangs import (
    FIT,
    SLICES,
    UPSTREAM,
    X_K8S,
    add_member,
    add_members,
    members,
    put_group,
    racks,
    racks_of,
)
from tests.scenarios.world import World, play, scenario

RACK = {"bayplan.dev/required-topology": "rack"}
ALONE = {**RACK, "bayplan.dev/exclusive-topology": "rack"}

# ---- elastic groups -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [X_K8S, UPSTREAM])
@scenario(plugins=FIT)
async def test_an_elastic_group_starts_with_whole_slices_and_grows_by_whole_slices(
    world: World, kind: str
) -> None:
    """The placed members stay where they are."""
    racks(world, (2,), (3,))
    put_group(world, "g", 2, kind, annotations={SLICES: "rack=2"})
    names = members(world, *[1] * 8, kind=kind)
    await world.until(1)
    before = racks_of(world, *names)
    assert sorted(before) == ["", "", "", "", "r0", "r0", "r1", "r1"]
    racks(world, (1,), first=2)
    await world.until(20)
    assert racks_of(world, *names) == before
    racks(world, (2,), first=3)
    await world.until(40)
    after = racks_of(world, *names)
    assert all(now == then for now, then in zip(after, before, strict=True) if then)
    assert sorted(after) == ["", "", "r0", "r0", "r1", "r1", "r3", "r3"]


@scenario(plugins=FIT)
async def test_members_that_come_later_wait_until_they_are_a_slice_or_the_last_of_the_group(
    world: World,
) -> None:
    """A single further member is the smaller last slice."""
    racks(world, (2,), (4,))
    put_group(world, "g", 2, annotations={SLICES: "rack=2"})
    members(world, 1, 1)
    await world.until(1)
    first = racks_of(world, "m00", "m01")
    add_members(world, ("late-0", "late-1"), "g", cpu=1)
    await world.until(20)
    assert racks_of(world, "m00", "m01") == first
    late = racks_of(world, "late-0", "late-1")
    assert late[0] == late[1] != ""


# ---- replacement ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [X_K8S, UPSTREAM])
@pytest.mark.parametrize("annotations", [RACK, {SLICES: "rack=2"}])
@scenario(plugins=FIT)
async def test_a_replacement_waits_for_the_domain_of_the_lost_member(
    world: World, annotations: dict[str, str], kind: str
) -> None:
    racks(world, (1, 1), (1,))
    constraint = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
    is_required = annotations is RACK
    spec = constraint if is_required and kind == UPSTREAM else {}
    put_group(world, "g", 2, kind, annotations, **spec)
    names = members(world, 1, 1, kind=kind)
    await world.until(1)
    assert racks_of(world, *names) == ["r0", "r0"]
    lost = world.bound(names[0])
    assert lost is not None
    world.delete_pod(names[0])
    world.add_pod("guest", cpu=1, node=lost[1])
    add_member(world, "again", "g", kind, cpu=1)
    await world.until(20)
    assert racks_of(world, "again") == [""], "r1 is free, but it is another domain"
    world.delete_pod("guest")
    await world.until(40)
    assert racks_of(world, "again") == ["r0"]


@scenario(plugins=FIT)
async def test_a_lost_inner_slice_comes_back_in_the_outer_domain(world: World) -> None:
    """Rack r1 of block b0 is lost; block b1 is empty, but it is another domain."""
    racks(world, (1, 1), (1, 1))
    put_group(world, "g", 4, annotations={SLICES: "block=4, rack=2"})
    names = members(world, *[1] * 4)
    await world.until(1)
    before = racks_of(world, *names)
    assert sorted(before) == ["r0", "r0", "r1", "r1"]
    racks(world, (1, 1), (1, 1), first=2)
    for name, rack in zip(names, before, strict=True):
        if rack == "r1":
            world.delete_pod(name)
    for index in range(2):
        world.add_pod(f"guest-{index}", cpu=1, node=f"r1-{index}")
        add_member(world, f"again-{index}", "g", cpu=1)
    await world.until(20)
    assert racks_of(world, "again-0", "again-1") == ["", ""]
    for index in range(2):
        world.delete_pod(f"guest-{index}")
    await world.until(40)
    assert racks_of(world, "again-0", "again-1") == ["r1", "r1"]


# ---- preemption -----------------------------------------------------------------------------

PREEMPTING = ["NodeResourcesFit", "DefaultPreemption"]


def cheap(world: World, name: str, on: str, group: str = "") -> None:
    """A running pod with priority 0."""
    if group:
        add_member(world, name, group, cpu=1, node=on, priority=0)
    else:
        world.add_pod(name, cpu=1, node=on, priority=0)


def remaining(world: World, *names: str) -> list[str]:
    """The pods that are still there."""
    return [n for n in names if world.cluster.get(object_key(POD, "default", n)) is not None]


@scenario(plugins=PREEMPTING)
async def test_preemption_frees_the_rack_in_which_the_fewest_groups_lose_pods(world: World) -> None:
    """r0 and r2 hold pods of two owners, r1 three pods of one group."""
    racks(world, (1, 1), (1, 1, 1), (1, 1))
    for name in ("a", "b"):
        put_group(world, name, 1)
    cheap(world, "a-0", "r0-0", "a")
    cheap(world, "single", "r0-1")
    for index in range(3):
        cheap(world, f"b-{index}", f"r1-{index}", "b")
    cheap(world, "a-1", "r2-0", "a")
    cheap(world, "other", "r2-1")
    await world.until(1)
    put_group(world, "g", 2, annotations=RACK)
    names = members(world, 1, 1, priority=100)
    await world.until(20)
    assert racks_of(world, *names) == ["r1", "r1"]
    assert remaining(world, "a-0", "a-1", "single", "other") == [
        "a-0",
        "a-1",
        "single",
        "other",
    ]
    assert len(remaining(world, "b-0", "b-1", "b-2")) == 1


@scenario(plugins=PREEMPTING)
async def test_preemption_for_an_exclusive_group_frees_the_whole_rack(world: World) -> None:
    """The rack has a free node for each member, but not without other pods."""
    racks(world, (2, 2, 2))
    cheap(world, "first", "r0-0")
    cheap(world, "second", "r0-1")
    await world.until(1)
    put_group(world, "g", 2, annotations=ALONE)
    names = members(world, 1, 1, priority=100)
    await world.until(20)
    assert racks_of(world, *names) == ["r0", "r0"]
    assert remaining(world, "first", "second") == []


@scenario(plugins=PREEMPTING)
async def test_a_rack_with_many_groups_is_freed_if_few_of_them_lose_pods(world: World) -> None:
    """r0 holds pods of two owners, both of which would lose one; r1 of three, of which one does."""
    racks(world, (2, 2), (4, 1, 1))
    names = ["r0-0", "r0-1", "r1-0", "r1-1", "r1-2"]
    for node, cpu in zip(names, (2, 2, 4, 1, 1), strict=True):
        world.add_pod(f"on-{node}", cpu=cpu, node=node, priority=0)
    await world.until(1)
    put_group(world, "g", 2, annotations=RACK)
    placed = members(world, 2, 2, priority=100)
    await world.until(20)
    assert racks_of(world, *placed) == ["r1", "r1"]
    lost = {f"on-{name}" for name in names} - set(remaining(world, *[f"on-{n}" for n in names]))
    assert lost == {"on-r1-0"}


@scenario(plugins=PREEMPTING)
async def test_groups_are_placed_on_the_racks_that_they_freed(world: World) -> None:
    """There are so many racks that the free places of each are counted first. The nominations of
    the members change nothing about these."""
    racks(world, *[(5, 5)] * 50)
    cheap_names = [f"cheap-{rack}-{place}" for rack in range(50) for place in range(2)]
    for name in cheap_names:
        world.add_pod(name, cpu=5, node=name.replace("cheap-", "r"), priority=0)
    await world.until(1)
    names = {group: [f"{group}-{nth}" for nth in range(10)] for group in ("g", "h")}
    for group, own in names.items():
        put_group(world, group, 10, annotations=RACK)
        add_members(world, own, group, cpu=1, priority=100)
    await world.until(40)
    assert [set(racks_of(world, *own)) for own in names.values()] == [{"r0"}, {"r1"}]
    assert len(remaining(world, *cheap_names)) == 96


# ---- reservations and backfill --------------------------------------------------------------


@pytest.mark.parametrize("is_exclusive", [False, True])
def test_an_exclusive_group_has_its_whole_rack_reserved_and_short_pods_backfill_it(
    is_exclusive: bool,
) -> None:
    """Without exclusive use, only the nodes that the members need are reserved."""

    async def scenario(world: World) -> None:
        racks(world, (2, 2, 2), (1,))
        for index in range(2):
            world.add_pod(f"old-{index}", _lasting("100s"), cpu=2, node=f"r0-{index}")
        world.add_pod("taken", cpu=1, node="r1-0")
        await world.until(1)
        put_group(world, "g", 2, annotations=ALONE if is_exclusive else RACK)
        names = members(world, 2, 2)
        await world.until(30)
        assert racks_of(world, *names) == ["", ""]
        world.add_pod("long", _lasting("600s"), cpu=1)
        world.add_pod("short", _lasting("20s"), cpu=1)
        await world.until(40)
        assert racks_of(world, "short") == ["r0"]
        assert racks_of(world, "long") == [""]
        for name in ("short", "old-0", "old-1"):
            world.end_pod(name)
        await world.until(100)
        assert racks_of(world, *names) == ["r0", "r0"]
        assert racks_of(world, "long") == ([""] if is_exclusive else ["r0"])

    config = {"podGroups": {"reserveAfterSeconds": 10}}
    play(scenario, plugins=FIT, config=config)


def _lasting(duration: str) -> dict[str, Any]:
    """``metadata`` of a pod that runs so long."""
    return {"annotations": {"bayplan.dev/duration": duration}}
