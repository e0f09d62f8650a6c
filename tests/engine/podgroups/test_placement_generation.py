"""Under the gate TopologyAwareWorkloadScheduling, PlacementGenerate makes a group's placements."""

from collections.abc import Sequence
from typing import Any

import pytest

from bayplan.framework.placements import Placement
from bayplan.framework.plugin import PlacementGeneratePlugin
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.problems import ConfigError
from bayplan.state.nodes import NodeView
from bayplan.state.pod_group_trees import GroupTree
from bayplan.state.pod_groups import GroupState
from bayplan.testing import check_plugin
from bayplan.testing.evaluation import CheckFailed
from tests.engine.podgroups.racks_kit import UPSTREAM, members, racks
from tests.scenarios.gangs import FIT, message, put_group
from tests.scenarios.world import World, play

GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
CONSTRAINTS = {"topology": [{"key": "rack"}]}
GENERATOR = "TopologyPlacementGenerator"


class Pairs(PlacementGeneratePlugin):
    """Two nodes that follow one another by name, whatever the group says."""

    name = "Pairs"

    def generate_placements(
        self, group: GroupState | GroupTree, nodes: NodeView
    ) -> Sequence[Placement]:
        names = sorted(nodes.names())
        pairs = zip(names[::2], names[1::2], strict=False)
        return [Placement("+".join(pair), frozenset(pair)) for pair in pairs]


class Ghosts(PlacementGeneratePlugin):
    """Places groups on a node that does not exist."""

    name = "Ghosts"

    def generate_placements(
        self, group: GroupState | GroupTree, nodes: NodeView
    ) -> Sequence[Placement]:
        return [Placement("ghost", frozenset(("casper",)))]


class Closed(PlacementGeneratePlugin):
    """Has no placement for anybody, in its own words."""

    name = "Closed"

    def generate_placements(self, group: GroupState | GroupTree, nodes: NodeView) -> Status:
        return unschedulable("the cluster is closed for groups")


class Out(PlacementGeneratePlugin):
    """Cannot tell."""

    name = "Out"

    def generate_placements(self, group: GroupState | GroupTree, nodes: NodeView) -> Status:
        return Status(Code.ERROR, ("the inventory does not answer",))


def outcome(*plugins: Any, classes: Any = (), gates: Any = GATES) -> list[str]:
    """The node of each member of a group of two with a constraint, or its message."""
    result: list[str] = []

    async def scene(world: World) -> None:
        racks(world, r1=(4,), r2=(3, 3), r3=(5,))
        put_group(world, "g", 2, UPSTREAM, schedulingConstraints=CONSTRAINTS)
        members(world, "a", "b", kind=UPSTREAM)
        await world.until(1)
        for name in ("a", "b"):
            place = world.bound(name)
            result.append(message(world, name) if place is None else place[1])

    play(scene, plugins=[*FIT, *plugins], classes=classes, gates=gates)
    return sorted(result)


def test_the_plugin_of_topology_keeps_a_group_within_one_value_of_its_key() -> None:
    assert outcome(GENERATOR) == ["r2-0", "r2-1"]


def test_without_a_plugin_of_placement_generate_a_group_may_use_all_nodes() -> None:
    """The constraint is the plugin's business, as in kube-scheduler."""
    assert outcome() == ["r1-0", "r3-0"]


def test_a_profile_has_one_plugin_of_placement_generate_at_most() -> None:
    assert outcome("Pairs", classes=[Pairs]) == ["r1-0", "r2-0"]
    with pytest.raises(ConfigError, match="placementGenerate: 2 plugins"):
        outcome("Pairs", GENERATOR, classes=[Pairs])


def test_without_the_gate_no_plugin_of_placement_generate_is_called() -> None:
    gates = {"GenericWorkload": True}
    assert outcome("Closed", classes=[Closed], gates=gates) == ["r2-0", "r2-1"]


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        (Closed, "the cluster is closed for groups"),
        (Out, "the inventory does not answer"),
        (
            Ghosts,
            (
                'running PlacementGenerate plugin "Ghosts": generate_placements returned a '
                'placement "ghost" with the node "casper"; wanted nodes that the group may use'
            ),
        ),
    ],
)
def test_what_the_plugin_says_is_said_of_each_member(
    plugin: type[PlacementGeneratePlugin], expected: str
) -> None:
    texts = outcome(plugin.name, classes=[plugin])
    assert [text.partition(", at ")[0] for text in texts] == [expected] * 2


def test_check_plugin_calls_placement_generate() -> None:
    check_plugin(Pairs)
    with pytest.raises(CheckFailed, match="casper"):
        check_plugin(Ghosts)
