"""S-10: racks, end to end. Part E, the same policy in code, is in tests/examples."""

from typing import Any

import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import ScalarScorePlugin
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from tests.scenarios.racks import NODES, ONLY_RACK, a_pod_among_racks, fit, scorer
from tests.scenarios.world import Setup, World, play


def played(
    plugins: Any, args: Any, *keys: str, full: str = "", **options: Any
) -> tuple[World, dict[str, int]]:
    """The world, and each scored node's total. ``full``: the name of a full node in r2."""

    async def scene(world: World) -> None:
        await a_pod_among_racks(world, **({full: ("r2", "z1", 10)} if full else {}))

    setup = Setup(plugins=plugins, args=args, **options)
    if keys:
        setup.tie_break = keys
    world = play(scene, setup)
    (record,) = world.attempts("p")
    return world, {line.node: line.total for line in record.scores}


def test_the_fullest_rack_and_its_fullest_node_win() -> None:
    args = {**fit(), **scorer()}
    world, totals = played(ONLY_RACK, args, "NodeResourcesFit")
    assert totals == {"n1": 100, "n2": 100, "n3": 66, "n4": 66, "n5": 0}
    assert world.bound("p") == (0.0, "n1")
    (record,) = world.attempts("p")
    [step] = record.tie_break
    assert (step.key, step.equal_count, step.left_count) == ("NodeResourcesFit", 2, 1)


def test_with_the_mean_the_rack_of_one_node_wins() -> None:
    world, _ = played(ONLY_RACK, {**fit(), **scorer(aggregate="mean")})
    assert world.bound("p") == (0.0, "n5")


def test_one_value_selects_the_emptiest_rack() -> None:
    world, totals = played(ONLY_RACK, {**fit("LeastAllocated"), **scorer()}, "NodeNameOrder")
    assert totals == {"n3": 100, "n4": 100, "n1": 87, "n2": 87, "n5": 0}
    assert world.bound("p") == (0.0, "n3")


def test_a_full_node_counts_in_the_score_of_its_rack() -> None:
    """With the full node, r2 has 30 + 30 + 100, and r1 has 70."""
    near, _ = played(ONLY_RACK, {**fit(), **scorer()}, "NodeNameOrder", full="n7")
    far, _ = played(ONLY_RACK, {**fit(), **scorer(over="all")}, "NodeNameOrder", full="n7")
    assert near.bound("p") == (0.0, "n1")
    assert far.bound("p") == (0.0, "n3")


def test_node_rack_and_zone_add_up_and_the_source_is_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []
    score = NodeResourcesFit.score

    def counted(self: Any, state: Any, pod: Any, nodes: Any) -> Any:
        calls.append(len(nodes))
        return score(self, state, pod, nodes)

    monkeypatch.setattr(NodeResourcesFit, "score", counted)
    plugins = [("NodeResourcesFit", 1), ("TopologyScorer/rack", 1), ("TopologyScorer/zone", 1)]
    world, totals = played(plugins, {**fit(), **scorer(), **scorer("zone")})
    assert totals == {"n1": 250, "n2": 220, "n3": 196, "n4": 196, "n5": 40}
    assert world.bound("p") == (0.0, "n1")
    assert calls == [6]


def test_resource_weights_of_the_source_change_the_order_of_racks() -> None:
    """The scores for cpu and memory are 50 and 10 on n1, 10 and 90 on n2. The means are 30 and 50;
    if cpu has three times the weight, they are 40 and 30."""

    async def scene(world: World) -> None:
        for name, rack, cpu, memory in (("n1", "r1", 4, 0), ("n2", "r2", 0, 8)):
            world.add_node(name, cpu=10, memory="10Gi", labels={"rack": rack})
            world.add_pod(f"on-{name}", cpu=cpu, memory=f"{memory}Gi", node=name)
        world.add_pod("p", cpu=1, memory="1Gi")
        await world.until(0)

    def chosen(**more: Any) -> str:
        world = play(scene, Setup(plugins=ONLY_RACK, args={**fit(**more), **scorer()}))
        bound = world.bound("p")
        assert bound is not None
        return bound[1]

    weights = [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}]
    assert chosen() == "n2"
    assert chosen(resources=weights) == "n1"


def test_equal_racks_all_score_100() -> None:
    async def scene(world: World) -> None:
        for name, rack in (("m1", "ra"), ("m2", "rb")):
            world.add_node(name, cpu=10, memory="10Gi", labels={"rack": rack})
            world.add_pod(f"on-{name}", cpu=3, memory="3Gi", node=name)
        world.add_pod("p", cpu=1, memory="1Gi")
        await world.until(0)

    world = play(scene, Setup(plugins=ONLY_RACK, args={**fit(), **scorer()}))
    (record,) = world.attempts("p")
    assert {line.node: line.total for line in record.scores} == {"m1": 100, "m2": 100}


class SameScores(ScalarScorePlugin):
    """Returns the scores of NodeResourcesFit for the six nodes from a table."""

    name = "SameScores"
    table = dict(zip(NODES, (50, 20, 30, 30, 40, 10), strict=True))

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return self.table[node.name]


def test_another_class_with_equal_scores_can_be_the_source() -> None:
    """A reader gets only scores: any score plugin can be the source, and only its name changes in
    the configuration."""
    args = scorer()
    _, expected = played(ONLY_RACK, {**fit(), **args}, "NodeNameOrder")
    args["TopologyScorer/rack"]["scoreFrom"] = "SameScores"
    _, totals = played(ONLY_RACK, args, "NodeNameOrder", classes=[SameScores])
    assert totals == expected


@pytest.mark.parametrize(
    "source",
    [
        "NodeResourcesFit",
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
        "TaintToleration",
        "NodeAffinity",
        "PodTopologySpread",
        "InterPodAffinity",
    ],
)
@pytest.mark.parametrize("over", ["feasible", "all"])
def test_every_score_plugin_can_be_a_source(source: str, over: str) -> None:
    args = {"scoreFrom": source, "topologyKey": "rack", "over": over}
    world, _ = played(ONLY_RACK, {"TopologyScorer/rack": args})
    assert world.bound("p") is not None
