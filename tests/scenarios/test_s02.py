"""S-02: the message if no node is feasible. S-06 tests the part that preemption adds."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bayplan.framework.plugin import PostFilterPlugin
from bayplan.framework.status import Code, Status
from bayplan.framework.types import Nomination
from bayplan.testing import PodOptions
from tests.scenarios.world import World, play, scenario

PLUGINS = ["TaintToleration", "NodeAffinity", "NodeResourcesFit"]
U, UUU = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE


class Witness(PostFilterPlugin):
    """Records the statuses of the nodes."""

    name = "Witness"

    def setup(self) -> None:
        self.statuses: list[dict[str, Status]] = []

    def post_filter(
        self, state: Any, pod: Any, node_to_status: Any
    ) -> tuple[Nomination | None, Status | None]:
        self.statuses.append(dict(node_to_status.for_each_explicit_node()))
        return None, Status(U)


async def thirteen_nodes(world: World) -> None:
    for number in range(1, 11):
        world.add_node(f"t{number}", cpu=4, memory="8Gi", taints=["dedicated=x:NoSchedule"])
    for name, memory in (("w1", "1Gi"), ("w2", "1Gi"), ("w3", "6Gi")):
        world.add_node(name, cpu=4, memory="8Gi")
        world.add_pod(f"on-{name}", cpu=3, memory=memory, node=name)
    await world.until(0)


def tried(**pod: Any) -> Callable[[World], Awaitable[None]]:
    async def scene(world: World) -> None:
        await thirteen_nodes(world)
        world.add_pod("p", **pod)
        await world.until(0)

    return scene


def only(name: str) -> dict[str, Any]:
    """Required node affinity to the node of this name."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        pytest.param(
            {"cpu": 2, "memory": "4Gi"},
            "0/13 nodes are available: 1 Insufficient memory, "
            "10 node(s) had untolerated taint(s), 3 Insufficient cpu.",
            id="A, a node may give two reasons, sorted as plain strings",
        ),
        pytest.param(
            {"cpu": 2, "memory": "1Gi", **only("w1")},
            "0/13 nodes are available: 1 Insufficient cpu, "
            "12 node(s) didn't satisfy plugin(s) [NodeAffinity].",
            id="B, nodes that PreFilter excludes",
        ),
        pytest.param(
            {"cpu": 5, "memory": "1Gi"},
            "0/13 nodes are available: 10 node(s) had untolerated taint(s), 3 Insufficient cpu.",
            id="C, request larger than any node",
        ),
        pytest.param(
            {"cpu": 1, "memory": "1Gi", **only("ghost")},
            "0/13 nodes are available: 13 node(s) didn't satisfy plugin(s) [NodeAffinity].",
            id="PreFilter names only a missing node",
        ),
    ],
)
def test_the_message_counts_the_reasons(pod: PodOptions, message: str) -> None:
    world = play(tried(**pod), plugins=PLUGINS)
    assert world.bound("p") is None
    assert world.message("p") == message
    assert world.events("p", "FailedScheduling") == [message]
    assert world.reason("p") == "Unschedulable"


def test_each_node_has_its_status() -> None:
    """Part A, node by node."""
    plugins = [*PLUGINS, "Witness"]
    world = play(tried(cpu=2, memory="4Gi"), plugins=plugins, classes=[Witness])
    (statuses,) = world.plugin("Witness").statuses
    assert statuses["t1"].code is UUU
    assert statuses["t1"].plugin == "TaintToleration"
    assert (statuses["w1"].code, statuses["w1"].plugin) == (U, "NodeResourcesFit")
    assert statuses["w1"].reasons == ("Insufficient cpu",)
    assert statuses["w3"].reasons == ("Insufficient cpu", "Insufficient memory")
    assert world.unschedulable_plugins("p") == {"TaintToleration", "NodeResourcesFit"}


@scenario(plugins=[*PLUGINS, "Witness"], classes=[Witness])
async def test_without_nodes_no_plugin_is_evaluated(world: World) -> None:
    """Part D."""
    world.add_pod("p", cpu=1)
    await world.until(0)
    assert world.message("p") == "no nodes available to schedule pods"
    assert world.reason("p") == "Unschedulable"
    assert world.plugin("Witness").statuses == []


def test_the_journal_counts_the_rejections_of_each_plugin() -> None:
    world = play(tried(cpu=2, memory="1Gi", **only("w1")), plugins=PLUGINS)
    (record,) = world.attempts("p")
    assert (record.result, record.node_count, record.feasible_count) == ("unschedulable", 13, 0)
    reports = {(r.plugin, r.code, r.reason): r.nodes for r in record.rejections}
    assert reports == {
        ("NodeAffinity", str(UUU), "node(s) didn't satisfy plugin(s) [NodeAffinity]"): 12,
        ("NodeResourcesFit", str(U), "Insufficient cpu"): 1,
    }


@scenario(plugins=PLUGINS)
async def test_an_unchanged_message_is_written_once(world: World) -> None:
    """An attempt with the same outcome as the previous one does not change the pod's status."""
    await tried(cpu=5)(world)
    version = world.pod("p").version
    world.change_node("w1", labels={"colour": "blue"})
    world.delete_pod("on-w1")
    await world.until(20)
    assert world.pod("p").version == version
    assert len(world.attempts("p")) == 2
    assert len(world.events("p", "FailedScheduling")) == 2
