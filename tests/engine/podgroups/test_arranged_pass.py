"""Groups whose members are placed by an arrangement of all of them."""

import pytest

from tests.scenarios.gangs import (
    FIT,
    SLICES,
    UPSTREAM,
    X_K8S,
    add_member,
    members,
    message,
    node_of,
    put_group,
    racks,
    racks_of,
)
from tests.scenarios.world import World, play, scenario


@pytest.mark.parametrize("annotations", [{}, {"bayplan.dev/required-topology": "rack"}])
@scenario(plugins=[("NodeResourcesFit", 1)])
async def test_small_members_leave_the_large_place_to_the_large_member(
    world: World, annotations: dict[str, str]
) -> None:
    """NodeResourcesFit spreads: one after another, the small member takes the node with 4 cpus."""
    racks(world, (1, 4))
    put_group(world, "g", 2, annotations=annotations)
    small, large = members(world, 1, 4)
    await world.until(1)
    assert (node_of(world, small), node_of(world, large)) == ("r0-0", "r0-1")


@pytest.mark.parametrize("is_searched", [False, True])
def test_groups_of_kubernetes_are_searched_for_on_request(is_searched: bool) -> None:
    async def scenario(world: World) -> None:
        racks(world, (1, 4))
        put_group(world, "g", 2, UPSTREAM)
        names = members(world, 1, 4, kind=UPSTREAM)
        await world.until(1)
        assert racks_of(world, *names) == (["r0", "r0"] if is_searched else ["", ""])

    config = {"podGroups": {"searchForKubernetesGroups": is_searched}}
    play(scenario, plugins=[("NodeResourcesFit", 1)], config=config)


@scenario(plugins=FIT)
async def test_the_message_says_that_no_arrangement_exists(world: World) -> None:
    racks(world, (2, 4))
    put_group(world, "g", 2)
    first, _ = members(world, 3, 4)
    await world.until(1)
    assert "no arrangement of 2 members exists." in message(world, first)


@scenario(plugins=FIT)
async def test_slices_share_racks_and_blocks(world: World) -> None:
    racks(world, (2, 2), (1, 2), (2, 2), (2, 2))
    put_group(world, "g", 8, annotations={SLICES: "block=4, rack=2"})
    names = members(world, *[1] * 8)
    await world.until(1)
    placed = racks_of(world, *names)
    assert "" not in placed
    for begin in range(0, 8, 2):
        assert placed[begin] == placed[begin + 1]
    blocks = ["b" + str(int(rack[1:]) // 2) for rack in placed]
    assert blocks[:4] == blocks[:1] * 4
    assert blocks[4:] == blocks[4:5] * 4


@scenario(plugins=FIT)
async def test_balanced_slices_spread_across_racks_and_packed_ones_do_not(world: World) -> None:
    racks(world, (4, 4), (4, 4))
    strategy = {"bayplan.dev/topology-strategy": "balanced"}
    put_group(world, "g", 4, annotations={SLICES: "rack=2", **strategy})
    names = members(world, *[1] * 4)
    await world.until(1)
    assert sorted(racks_of(world, *names)) == ["r0", "r0", "r1", "r1"]


@scenario(plugins=FIT)
async def test_a_group_whose_slices_fit_nowhere_waits_and_says_how_many_fit(world: World) -> None:
    racks(world, (2, 2), (1, 2), (1,))
    put_group(world, "g", 8, annotations={SLICES: "rack=4"})
    names = members(world, *[1] * 8)
    await world.until(1)
    assert racks_of(world, *names) == [""] * 8
    expected = "no arrangement of 8 members exists (1 of 2 slices of 4 fit by rack)."
    assert expected in message(world, names[0])
    racks(world, (2, 2), first=3)
    await world.until(60)
    assert sorted(set(racks_of(world, *names))) == ["r0", "r3"]


@pytest.mark.parametrize("kind", [X_K8S, UPSTREAM])
@scenario(plugins=FIT)
async def test_the_replacement_of_a_lost_member_joins_its_slice(world: World, kind: str) -> None:
    racks(world, (2, 2), (2, 2), (8, 8))
    put_group(world, "g", 4, kind, annotations={SLICES: "rack=2"})
    names = members(world, *[1] * 4, kind=kind)
    await world.until(1)
    before = racks_of(world, *names)
    world.delete_pod(names[0])
    add_member(world, "again", "g", kind, cpu=1)
    await world.until(5)
    assert racks_of(world, "again") == before[:1]


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (
            {SLICES: "rack"},
            (
                "found 'rack', wanted a node label, = and a number of members, such as "
                "example.com/rack=16"
            ),
        ),
        ({SLICES: "rack=0"}, "found 'rack=0', wanted a node label"),
        ({SLICES: "block=5, rack=2"}, "5 is no multiple of 2, the size of the next slices"),
        (
            {"bayplan.dev/topology-strategy": "tight"},
            "annotation bayplan.dev/topology-strategy: found 'tight', wanted packed or balanced",
        ),
    ],
)
@scenario(plugins=FIT)
async def test_a_wrong_annotation_is_told_and_no_member_is_placed(
    world: World, annotation: dict[str, str], text: str
) -> None:
    racks(world, (2, 2))
    put_group(world, "g", 2, annotations=annotation)
    names = members(world, 1, 1)
    await world.until(1)
    assert racks_of(world, *names) == ["", ""]
    assert text in message(world, names[0])


@scenario(plugins=FIT)
async def test_preferred_levels_are_tried_in_their_order(world: World) -> None:
    """No rack has room for three; a block has."""
    racks(world, (2,), (1,), (2,), (2, 2))
    annotations = {"bayplan.dev/preferred-topology": "rack, block"}
    put_group(world, "g", 5, annotations=annotations)
    names = members(world, *[1] * 5)
    await world.until(1)
    assert set(racks_of(world, *names)) <= {"r2", "r3"}
