"""TopologyPlacementGenerator: which nodes a group with a topology constraint may use."""

import pytest

from bayplan.plugins.topology_placement_generator import TopologyPlacementGenerator
from bayplan.testing import check_plugin
from tests.engine.podgroups.racks_kit import UPSTREAM, members, racks, racks_of
from tests.scenarios.gangs import FIT, message, put_group
from tests.scenarios.world import World, scenario

GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
PLUGINS = [*FIT, "TopologyPlacementGenerator"]


def constraints(key: str) -> dict[str, object]:
    return {"topology": [{"key": key}]}


def test_it_keeps_the_contract_of_its_point() -> None:
    check_plugin(TopologyPlacementGenerator)


@scenario(plugins=PLUGINS, gates=GATES)
async def test_a_later_member_goes_to_the_domain_of_those_that_have_nodes(world: World) -> None:
    racks(world, r1=(2,), r2=(6,))
    put_group(world, "g", 1, UPSTREAM, schedulingConstraints=constraints("rack"))
    members(world, "a", kind=UPSTREAM, node="r1-0")
    await world.until(1)
    members(world, "b", kind=UPSTREAM)
    await world.until(2)
    assert racks_of(world, "b") == [""]
    assert message(world, "b") == "0/1 nodes are available: 1 Insufficient cpu."


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("rack", "more than 1 domain found for pod group: r1, r2"),
        ("zone", "no topology domain found for pod default/a"),
    ],
)
@scenario(plugins=PLUGINS, gates=GATES)
async def test_members_without_one_domain_are_an_error_of_the_attempt(
    world: World, key: str, problem: str
) -> None:
    racks(world, r1=(6,), r2=(6,))
    put_group(world, "g", 1, UPSTREAM, schedulingConstraints=constraints(key))
    members(world, "a", kind=UPSTREAM, node="r1-0")
    members(world, "b", kind=UPSTREAM, node="r2-0")
    await world.until(1)
    members(world, "c", kind=UPSTREAM)
    await world.until(2)
    start = "cannot determine domain for already scheduled pods: "
    assert message(world, "c") == start + problem
