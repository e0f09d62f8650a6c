"""The life of a group in a topology: it grows, loses members, makes room, waits for a domain."""

import pytest

from tests.scenarios.gangs import (
    FIT,
    SLICES,
    UPSTREAM,
    X_K8S,
    add_member,
    members,
    put_group,
    racks,
    racks_of,
)
from tests.scenarios.world import World, play

RACK = {"bayplan.dev/required-topology": "rack"}
ALONE = {**RACK, "bayplan.dev/exclusive-topology": "rack"}

# ---- elastic groups -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [X_K8S, UPSTREAM])
def test_an_elastic_group_starts_with_whole_slices_and_grows_by_whole_slices(kind: str) -> None:
    """The placed members stay where they are."""

    async def scenario(world: World) -> None:
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

    play(scenario, plugins=FIT)


def test_members_that_come_later_wait_until_they_are_a_slice_or_the_last_of_the_group() -> None:
    """A single further member is the smaller last slice."""

    async def scenario(world: World) -> None:
        racks(world, (2,), (4,))
        put_group(world, "g", 2, annotations={SLICES: "rack=2"})
        members(world, 1, 1)
        await world.until(1)
        first = racks_of(world, "m00", "m01")
        for name in ("late-0", "late-1"):
            add_member(world, name, "g", cpu=1)
        await world.until(20)
        assert racks_of(world, "m00", "m01") == first
        late = racks_of(world, "late-0", "late-1")
        assert late[0] == late[1] != ""

    play(scenario, plugins=FIT)


# ---- replacement ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [X_K8S, UPSTREAM])
@pytest.mark.parametrize("annotations", [RACK, {SLICES: "rack=2"}])
def test_a_replacement_waits_for_the_domain_of_the_lost_member(
    annotations: dict[str, str], kind: str
) -> None:
    async def scenario(world: World) -> None:
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

    play(scenario, plugins=FIT)
