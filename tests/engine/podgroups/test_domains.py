"""Topology domains: all members of a group on nodes of one label value."""

import pytest

from bayplan.framework.status import unschedulable
from tests.engine.podgroups.racks_kit import UPSTREAM, members, racks, racks_of
from tests.framework.answering import answering
from tests.scenarios.gangs import (
    FIT,
    MING,
    X_K8S,
    bound,
    group_attempts,
    message,
    put_group,
    timed_count,
)
from tests.scenarios.world import PROFILE, World, play, scenario

REQUIRED = {"bayplan.dev/required-topology": "rack"}
PREFERRED = {"bayplan.dev/preferred-topology": "rack"}


@pytest.mark.parametrize("kind", [X_K8S, MING])
@scenario(plugins=FIT)
async def test_a_required_domain_holds_all_members(world: World, kind: str) -> None:
    racks(world, r1=(2, 3), r2=(3, 3), r3=(3,))
    put_group(world, "g", 2, kind, annotations=REQUIRED)
    members(world, "a", "b", kind=kind)
    await world.until(1)
    assert racks_of(world, "a", "b") == ["r2", "r2"]
    (attempt,) = group_attempts(world, "g")
    assert attempt.domain == "r2"


@scenario(plugins=FIT)
async def test_upstreams_topology_constraint_has_the_same_effect(world: World) -> None:
    racks(world, r1=(2, 3), r2=(3, 3))
    constraints = {"topology": [{"key": "rack"}]}
    put_group(world, "g", 2, UPSTREAM, schedulingConstraints=constraints)
    members(world, "a", "b", kind=UPSTREAM)
    await world.until(1)
    assert racks_of(world, "a", "b") == ["r2", "r2"]


@pytest.mark.parametrize(
    ("annotations", "expected"), [(REQUIRED, ["", ""]), (PREFERRED, ["r1", "r2"])]
)
@scenario(plugins=FIT)
async def test_a_preferred_domain_that_does_not_suffice_is_ignored_and_a_required_one_is_not(
    world: World, annotations: dict[str, str], expected: list[str]
) -> None:
    racks(world, r1=(3,), r2=(3,))
    put_group(world, "g", 2, annotations=annotations)
    members(world, "a", "b")
    await world.until(30)
    assert racks_of(world, "a", "b") == expected
    if annotations is REQUIRED:
        assert "group default/g: 1 of 2 members fit; the 2nd" in message(world, "a")
        racks(world, r3=(3, 3))
        await world.until(40)
        assert racks_of(world, "a", "b") == ["r3", "r3"]


@scenario(plugins=FIT)
async def test_a_preferred_domain_lies_within_the_required_domain(world: World) -> None:
    """Zones za (racks r1, r2) and zb (r3): only zb has room for three, only r3 of its racks."""
    for rack, zone, cpus in (("r1", "za", (3,)), ("r2", "za", (3,)), ("r3", "zb", (3, 3, 3))):
        for index, cpu in enumerate(cpus):
            labels = {"rack": rack, "zone": zone}
            world.add_node(f"{rack}-{index}", cpu=cpu, labels=labels)
    both = {"bayplan.dev/required-topology": "zone", **PREFERRED}
    put_group(world, "g", 3, annotations=both)
    members(world, "a", "b", "c")
    await world.until(1)
    assert racks_of(world, "a", "b", "c") == ["r3"] * 3


@scenario(plugins=FIT)
async def test_the_domain_with_the_most_members_wins_and_then_the_highest_score(
    world: World,
) -> None:
    racks(world, r1=(9, 9), r2=(3, 3, 9), r3=(3, 3, 4))
    put_group(world, "g", 2, annotations=REQUIRED)
    members(world, "a", "b", "c", "d", "e")
    await world.until(1)
    assert (
        racks_of(world, "a", "b", "c", "d", "e") == ["r1"] * 4 + ["r2"]
        or racks_of(world, "a", "b", "c", "d", "e") == ["r1"] * 5
    )


def test_the_score_decides_between_domains_with_equally_many_members() -> None:
    """Two racks that are filled up one by one, or spread over."""
    most = {"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}}
    result: dict[str, list[str]] = {}
    for name, args in (("least", {}), ("most", most)):

        async def scenario(world: World, name: str = name) -> None:
            racks(world, r1=(16, 16), r2=(4, 4))
            put_group(world, "g", 2, annotations=REQUIRED)
            members(world, "a", "b")
            await world.until(1)
            result[name] = racks_of(world, "a", "b")

        play(scenario, plugins=FIT, args=args)
    assert result == {"least": ["r1", "r1"], "most": ["r2", "r2"]}


@scenario(plugins=FIT)
async def test_placed_members_decide_the_domain(world: World) -> None:
    racks(world, r1=(9, 9), r2=(3, 3, 3))
    put_group(world, "g", 3, annotations=REQUIRED)
    members(world, "old", node="r2-0")
    members(world, "a", "b")
    await world.until(1)
    assert racks_of(world, "a", "b") == ["r2", "r2"]


@scenario(plugins=["NodeAffinity", *FIT])
async def test_a_late_member_stays_in_the_domain_of_its_group(world: World) -> None:
    racks(world, r1=(3, 3, 3), r2=(9, 9, 9))
    put_group(world, "g", 2, annotations=REQUIRED)
    members(world, "a", "b", node_selector={"rack": "r1"})
    await world.until(1)
    assert racks_of(world, "a", "b") == ["r1", "r1"]
    members(world, "late")
    await world.until(2)
    assert racks_of(world, "late") == ["r1"]
    members(world, "later")
    await world.until(30)
    assert list(bound(world, "later")) == [None]
    assert "outside of the domain" in message(world, "later")
    world.add_node("r1-9", cpu=4, labels={"rack": "r1"})
    await world.until(40)
    assert racks_of(world, "later") == ["r1"]


@scenario(plugins=FIT)
async def test_a_missing_domain_label_is_reported(world: World) -> None:
    world.add_node("n1", cpu=9)
    put_group(world, "g", 2, annotations=REQUIRED)
    members(world, "a", "b")
    await world.until(30)
    assert "no node has the label rack" in message(world, "a")
    world.change_node("n1", labels={"rack": "r1"})
    await world.until(31)
    assert list(bound(world, "a", "b")) == [30, 30]


def test_rejected_domains_hold_no_resources() -> None:
    """Reserve and Unreserve balance, and the cache counts the bound pods only."""
    keeper = answering(
        "Keeper",
        reserve=lambda _, pod, node: unschedulable("not here") if node == "r2-1" else None,
        unreserve=None,
    )

    async def scenario(world: World) -> None:
        racks(world, r1=(3,), r2=(3, 3), r3=(3, 3))
        put_group(world, "g", 2, annotations=REQUIRED)
        members(world, "a", "b")
        await world.until(1)
        assert racks_of(world, "a", "b") == ["r3", "r3"]
        assert [world.requested(f"r2-{index}") for index in (0, 1)] == [0, 0]
        calls = [call[1] for call in keeper.calls]
        assert calls.count("reserve") - calls.count("unreserve") == 2

    play(scenario, plugins=[*FIT, "Keeper"], classes=[keeper])


@scenario(plugins=FIT)
async def test_tried_domains_are_counted_by_whether_the_group_fits(world: World) -> None:
    def tried(world: World, result: str) -> float:
        counter, duration = "placement_evaluations", "placement_evaluation_duration"
        return timed_count(world, counter, duration, result)

    racks(world, r1=(2, 3), r2=(3, 3), r3=(3,))
    put_group(world, "g", 2, annotations=PREFERRED)
    members(world, "a", "b")
    await world.until(1)
    assert world.metric("scheduler_generated_placements_total", profile=PROFILE) == 3
    assert (tried(world, "feasible"), tried(world, "infeasible")) == (1, 2)
