"""Under the gate TopologyAwareWorkloadScheduling, PlacementScore chooses the domain of a group."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from bayplan.framework.plugin import PlacementAssignments, PlacementScorePlugin
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.plugins.pod_group_pods_count import PodGroupPodsCount
from bayplan.state.pod_group_trees import GroupTree
from bayplan.state.pod_groups import GroupKey, GroupState
from bayplan.testing import check_plugin
from bayplan.testing import plugin as made
from bayplan.testing.evaluation import CheckFailed
from tests.engine.podgroups.racks_kit import UPSTREAM, members, racks, racks_of
from tests.plugins.resource_kit import GPU, Amounts, Place, lent, pod_of_containers
from tests.scenarios.gangs import FIT, message, put_group
from tests.scenarios.world import World, play, scenario

GROUP = GroupState(GroupKey("", "default", "g"))
GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
CONSTRAINTS = {"topology": [{"key": "rack"}]}
GENERATOR = "TopologyPlacementGenerator"
BOTH = [*FIT, GENERATOR, "PodGroupPodsCount"]


class Names(PlacementScorePlugin):
    """The later the name of the placement, the better."""

    name = "Names"
    seen: ClassVar[list[tuple[str, int, int]]] = []

    def score_placement(
        self, group: GroupState | GroupTree, placement: PlacementAssignments
    ) -> int:
        self.seen.append((placement.name, len(placement.nodes), len(placement.pods)))
        return int(placement.name[1:] or 1)

    def normalize_placements(
        self, group: GroupState | GroupTree, scores: Sequence[int]
    ) -> Sequence[int]:
        return [score * 100 // max(scores) for score in scores]


class Broken(PlacementScorePlugin):
    """Scores above the highest score."""

    name = "Broken"

    def score_placement(
        self, group: GroupState | GroupTree, placement: PlacementAssignments
    ) -> int:
        return 101


def racks_with(
    plugins: Any, *names: str, gates: Any = GATES, classes: Any = (), **cpus: tuple[int, ...]
) -> list[str]:
    """The racks of the members of a group of two at least."""
    result: list[str] = []

    async def scene(world: World) -> None:
        racks(world, **cpus)
        put_group(world, "g", 2, UPSTREAM, schedulingConstraints=CONSTRAINTS)
        members(world, *names, kind=UPSTREAM)
        await world.until(1)
        result.extend(racks_of(world, *names))

    play(scene, plugins=plugins, classes=classes, gates=gates)
    return result


def test_a_fuller_domain_is_better_under_the_gate_and_an_emptier_one_without_it() -> None:
    cpus = {"r1": (16, 16), "r2": (4, 4)}
    assert racks_with(BOTH, "a", "b", **cpus) == ["r2", "r2"]
    without = {"GenericWorkload": True}
    assert racks_with(BOTH, "a", "b", gates=without, **cpus) == ["r1", "r1"]


def test_more_members_are_better_unless_the_domain_is_much_emptier() -> None:
    """r1 places two of three; r2 places all of them."""
    assert racks_with(BOTH, "a", "b", "c", r1=(3, 3), r2=(10,)) == ["r2"] * 3
    assert racks_with(BOTH, "a", "b", "c", r1=(3, 3), r2=(40,)) == ["", "r1", "r1"]
    only_fit = [*FIT, GENERATOR]
    assert racks_with(only_fit, "a", "b", "c", r1=(3, 3), r2=(10,)) == ["", "r1", "r1"]


def test_a_plugin_of_ones_own_scores_the_domains_in_which_the_group_fits() -> None:
    Names.seen.clear()
    cpus = {"r1": (3, 3), "r2": (3,), "r3": (9,), "r4": (6, 1)}
    chosen = racks_with([*FIT, GENERATOR, "Names"], "a", "b", "c", classes=[Names], **cpus)
    assert chosen == ["", "r4", "r4"]
    assert Names.seen[:3] == [("r1", 2, 2), ("r3", 1, 3), ("r4", 2, 2)]


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        (GATES, "no feasible placements found"),
        ({}, "group default/g: 0 of 2 members fit: no node has the label rack"),
    ],
)
def test_a_group_without_a_domain_gets_upstreams_message(gates: Any, expected: str) -> None:
    async def scene(world: World) -> None:
        world.add_node("n", cpu=9)
        put_group(world, "g", 2, UPSTREAM, schedulingConstraints=CONSTRAINTS)
        members(world, "a", "b", kind=UPSTREAM)
        await world.until(1)
        assert [message(world, name) for name in ("a", "b")] == [expected] * 2
        racks(world, r1=(9,))
        await world.until(20)
        assert racks_of(world, "a", "b") == ["r1", "r1"]

    play(scene, plugins=BOTH, gates={"GenericWorkload": True, **gates})


@scenario(plugins=BOTH, gates=GATES)
async def test_the_message_of_a_member_counts_the_nodes_of_one_placement(world: World) -> None:
    racks(world, r1=(3,), r2=(3, 2, 1))
    put_group(world, "g", 2, UPSTREAM, schedulingConstraints=CONSTRAINTS)
    members(world, "a", "b", kind=UPSTREAM)
    await world.until(1)
    texts = [message(world, name) for name in ("a", "b")]
    assert "0/1 nodes are available: 1 Insufficient cpu." in texts


@scenario(plugins=[*FIT, GENERATOR, "Broken"], classes=[Broken], gates=GATES)
async def test_a_score_out_of_range_is_an_error_of_the_attempt_that_names_the_plugin(
    world: World,
) -> None:
    racks(world, r1=(3, 3), r2=(9,))
    put_group(world, "g", 2, UPSTREAM, schedulingConstraints=CONSTRAINTS)
    members(world, "a", "b", kind=UPSTREAM)
    await world.until(1)
    assert racks_of(world, "a", "b") == ["", ""]
    texts = {message(world, name) for name in ("a", "b")}
    assert len(texts) == 1
    assert texts.pop().startswith('running PlacementScore plugin "Broken"')


CPU_AND_MEMORY = ({"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1})
WITH_GPU = (*CPU_AND_MEMORY, {"name": GPU, "weight": 1})
TWO = ({"cpu": 1000, "memory": 0}, {"cpu": 2000, "memory": 2000})


@pytest.mark.parametrize(
    ("resources", "pods", "running", "expected"),
    [
        (CPU_AND_MEMORY, TWO, (), 25),
        (({"name": "cpu", "weight": 4}, {"name": "memory", "weight": 1}), TWO, (), 28),
        (CPU_AND_MEMORY, TWO, ({"cpu": 1000, "memory": 0},), 30),
        (
            WITH_GPU,
            ({"cpu": 1000, "memory": 0}, {"cpu": 1000, "memory": 2000, GPU: 1}),
            ({"cpu": 1000, "memory": 0},),
            20,
        ),
        (
            WITH_GPU,
            ({"cpu": 1000, "memory": 0}, {"cpu": 1000, "memory": 2000}),
            ({"cpu": 1000, "memory": 0, GPU: 1},),
            25,
        ),
    ],
)
def test_the_fullness_of_a_domain_is_that_of_its_nodes_together(
    resources: Any, pods: Sequence[Amounts], running: Sequence[Amounts], expected: int
) -> None:
    """The values of upstream's TestScorePlacement_Resources."""
    offered = {"cpu": 5000, "memory": 5000, GPU: 5}
    nodes = lent([Place(offered, running=[[each] for each in running]), Place(offered)])
    args = {"scoringStrategy": {"type": "LeastAllocated", "resources": list(resources)}}
    fit = made(NodeResourcesFit, args)
    placed = [pod_of_containers(f"p{nth}", [each]) for nth, each in enumerate(pods)]
    assert fit.score_placement(GROUP, PlacementAssignments("r1", nodes, placed)) == expected


def test_placements_are_scored_together_as_one_by_one() -> None:
    """They have other members, other nodes, nodes in common, or no node that offers anything."""
    offered = {"cpu": 5000, "memory": 5000}
    running = [[{"cpu": 1000 * nth, "memory": 700}] for nth in range(3)]
    places = [Place(offered, running=running[:count]) for count in (0, 1, 3)]
    nodes = lent([*places, Place({"cpu": 3000, GPU: 2}), Place({})])
    strategy = {"type": "LeastAllocated", "resources": list(WITH_GPU)}
    fit = made(NodeResourcesFit, {"scoringStrategy": strategy})
    pods = [pod_of_containers(f"p{nth}", [each]) for nth, each in enumerate(TWO)]
    pods.append(pod_of_containers("gpu", [{"cpu": 500, GPU: 1}]))
    placements = [
        PlacementAssignments("", nodes, pods[:count], None if rows is None else np.array(rows))
        for count in (1, 2, 3)
        for rows in ([0, 1], [1, 2, 3], [4], None)
    ]
    together = fit.score_placements(GROUP, placements)
    alone = [PlacementAssignments("", each.nodes, each.pods) for each in placements]
    assert together == [fit.score_placement(GROUP, each) for each in alone]
    assert len(set(together)) > 5


def test_check_plugin_calls_placement_score() -> None:
    check_plugin(PodGroupPodsCount)
    check_plugin(Names)
    with pytest.raises(CheckFailed, match="the scores of placements are"):
        check_plugin(Broken)


def test_counts_are_compared_with_the_highest_one() -> None:
    count = made(PodGroupPodsCount)
    assert list(count.normalize_placements(GROUP, [3, 2, 1])) == [100, 66, 33]
