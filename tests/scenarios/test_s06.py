"""S-06: preemption: victims, their events, and the nominated node."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bayplan.framework.cycle_state import Cloneable, CycleState
from bayplan.framework.plugin import (
    PostFilterPlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    ScalarFilterPlugin,
)
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.framework.types import Nomination
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo
from tests.framework.answering import answering
from tests.scenarios.evictions import (
    PLUGINS,
    Evictions,
    add_h,
    add_running,
    three_nodes,
)
from tests.scenarios.gangs import X_K8S, add_members, put_group
from tests.scenarios.world import World, play, scenario

START = "0/3 nodes are available: 3 Insufficient cpu. preemption: "


def place(world: World) -> str:
    """The node of pod h."""
    result = world.bound("h")
    assert result is not None
    return result[1]


def first_attempt(world: World) -> tuple[str, str]:
    """(message, nomination)"""
    first = world.attempts("h")[0]
    return first.message, first.nominated_node


@scenario(plugins=PLUGINS)
async def test_part_a_the_node_whose_most_important_victim_is_least_important_wins(
    world: World,
) -> None:
    evictions = three_nodes(world)
    add_h(world)
    await world.until(2)
    assert place(world) == "n3"
    assert evictions.deleted == dict.fromkeys(("v2", "v3", "v4"), 0.0)
    assert evictions.targets == dict.fromkeys(evictions.deleted, "PreemptionByScheduler")
    for name in evictions.deleted:
        (note,) = world.events(name, "Preempted")
        assert note == f"Preempted by pod {world.uid('h')} on node n3"
    nomination = "found a potential placement for pod on node n3, preempting 3 victims"
    assert first_attempt(world) == (f"{START}{nomination}", "n3")


def budget(allowed_count: int) -> dict[str, Any]:
    """A budget for all pods with the label app=v."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "v", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "v"}}},
        "status": {
            "disruptionsAllowed": allowed_count,
            "currentHealthy": 4,
            "desiredHealthy": 4 - allowed_count,
            "expectedPods": 4,
            "observedGeneration": 1,
        },
    }


@scenario(plugins=PLUGINS)
async def test_part_b_a_budget_violation_moves_the_preemptor_to_another_node(world: World) -> None:
    evictions = three_nodes(world)
    world.cluster.create(budget(2))
    add_h(world)
    await world.until(2)
    assert place(world) == "n2"
    assert set(evictions.deleted) == {"w7"}
    assert first_attempt(world)[1] == "n2"


@scenario(plugins=PLUGINS)
async def test_a_budget_exhausted_by_evictions_protects_the_remaining_pods(world: World) -> None:
    """Three pods may be evicted, in order of importance; after that v4 is protected."""
    evictions = three_nodes(world)
    unwritten = {name: part for name, part in budget(0).items() if name != "status"}
    unwritten["spec"]["minAvailable"] = 1
    world.cluster.create(unwritten)
    add_h(world)
    await world.until(5)
    assert set(evictions.deleted) == {"v1", "v2", "v3"}
    world.add_pod("next", cpu=1, memory="1Gi", priority=900)
    await world.until(10)
    assert (world.bound("next") or ("", ""))[1] == "n1"
    assert set(evictions.deleted) == {"v1", "v2", "v3", "p5"}


@scenario(plugins=PLUGINS)
async def test_part_c_preemption_policy_never_evicts_nothing(world: World) -> None:
    evictions = three_nodes(world)
    add_h(world, spec={"preemptionPolicy": "Never"})
    await world.until(300)
    assert world.bound("h") is None
    assert world.message("h") == f"{START}not eligible due to preemptionPolicy=Never."
    assert (evictions.deleted, evictions.targets, world.nominated("h")) == ({}, {}, "")


@scenario(plugins=PLUGINS)
async def test_part_e_the_nomination_stays_while_the_victim_terminates(world: World) -> None:
    world.add_node("m1", cpu=4, memory="64Gi")
    grace = {"terminationGracePeriodSeconds": 20}
    world.add_pod("v", cpu=2, priority=1, node="m1", spec=grace)
    evictions = Evictions(world)
    add_h(world)
    await world.until(5)
    assert (world.nominated("h"), evictions.deleted) == ("m1", {})
    world.add_pod("s", cpu=2, priority=0)
    await world.until(19)
    assert "1 Insufficient cpu" in world.message("s")
    assert world.bound("h") is None
    await world.until(60)
    assert evictions.deleted == {"v": 20.0}
    assert world.bound("h") == (20.0, "m1")
    assert world.bound("s") is None


@pytest.mark.parametrize("other_priority", [0, 20])
@scenario(plugins=PLUGINS)
async def test_part_f_a_group_evicts_for_all_its_members_or_for_none(
    world: World, other_priority: int
) -> None:
    for number, priority in ((1, 0), (2, other_priority)):
        world.add_node(f"m{number}", cpu=4, memory="64Gi")
        add_running(world, f"r{number}", f"m{number}", 4, priority, 100)
    evictions = Evictions(world)
    put_group(world, "g", 2, X_K8S)
    add_members(world, ("g1", "g2"), "g", X_K8S, cpu=4, priority=10)
    await world.until(3)
    places = {place and place[1] for place in map(world.bound, ("g1", "g2"))}
    if other_priority == 0:
        assert places == {"m1", "m2"}
        assert set(evictions.deleted) == {"r1", "r2"}
    else:
        assert places == {None}
        assert (evictions.deleted, evictions.targets) == ({}, {})
        assert "0 of 2" in world.message("g1")


# ---- the row F-019: nominations --------------------------------------------------------------


class Moody(ScalarFilterPlugin):
    """Raises for nodes with the label broken."""

    name = "Moody"

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if "broken" in node.labels:
            raise RuntimeError("broken")
        return None


@pytest.mark.parametrize(
    "labels", [pytest.param({"broken": "yes"}, id="error"), pytest.param({}, id="no candidate")]
)
@scenario(plugins=["Moody", *PLUGINS], classes=[Moody], raise_bugs=False)
async def test_a_nomination_is_cleared_if_there_is_no_candidate_or_an_attempt_ends_in_an_error(
    world: World, labels: dict[str, str]
) -> None:
    world.add_node("m1", cpu=4, memory="64Gi")
    grace = {"terminationGracePeriodSeconds": 20}
    world.add_pod("v", cpu=2, priority=1, node="m1", spec=grace)
    add_h(world)
    await world.until(5)
    assert world.nominated("h") == "m1"
    # A user places a pod of higher priority on the node.
    world.add_pod("king", cpu=2, priority=5000, node="m1")
    world.change_node("m1", labels=labels)
    await world.until(60)
    assert len(world.attempts("h")) > 1
    assert (world.nominated("h"), world.bound("h")) == ("", None)


# ---- the rows F-008, F-052, F-068: the dry run updates the state of plugins ------------------


class Notes(dict[str, int], Cloneable):
    """Node → number of pods on it."""

    def clone(self) -> "Notes":
        return Notes(self)


class Counting(PreFilterPlugin, PreFilterExtensions, ScalarFilterPlugin):
    """Accepts nodes with fewer than two pods, which the plugin counts itself."""

    name = "Counting"

    def setup(self) -> None:
        self.calls: list[tuple[str, str]] = []
        #: (counted pods, pods of the node) at each call of Filter.
        self.compared: list[tuple[int, int]] = []
        self.originals: list[tuple[Notes, Notes]] = []

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        infos = [nodes.info(position) for position in range(len(nodes))]
        counted = Notes({info.name: len(info.pods) for info in infos})
        state[self.name] = counted
        self.originals.append((counted, counted.clone()))
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        self.calls.append(("add", added.name))
        state[self.name][node.name] += 1

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        self.calls.append(("remove", removed.name))
        state[self.name][node.name] -= 1

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        noted = state[self.name][node.name]
        self.compared.append((noted, len(node.pods)))
        return unschedulable("too many pods") if noted >= 2 else None


async def two_full_nodes(world: World) -> None:
    """n1 has three pods that may be evicted; n2 has three pods, of which only one may be."""
    for name in ("n1", "n2"):
        world.add_node(name, cpu=64)
    for number in range(3):
        add_running(world, f"a{number}", "n1", 1, 1, 500 - 100 * number)
        add_running(world, f"b{number}", "n2", 1, 2000 * number, 100)
    add_h(world)
    await world.until(2)


def test_remove_pod_and_add_pod_are_called_for_each_victim_and_each_reprieved_pod() -> None:
    world = play(two_full_nodes, plugins=["Counting", *PLUGINS], classes=[Counting])
    counting: Counting = world.plugin("Counting")
    assert place(world) == "n1"
    on_n1 = [(what, name) for what, name in counting.calls if name.startswith("a")]
    # All three are removed; each is added back in turn; two are removed again.
    assert on_n1 == [
        ("remove", "a0"), ("remove", "a1"), ("remove", "a2"),
        ("add", "a0"),
        ("add", "a1"), ("remove", "a1"),
        ("add", "a2"), ("remove", "a2"),
    ]  # fmt: skip
    # h does not fit on n2 without b0, so that no pod is added back.
    assert [each for each in counting.calls if each[1].startswith("b")] == [("remove", "b0")]


def test_filter_sees_the_node_and_the_state_without_the_victims() -> None:
    world = play(two_full_nodes, plugins=["Counting", *PLUGINS], classes=[Counting])
    counting: Counting = world.plugin("Counting")
    assert {noted for noted, _ in counting.compared} >= {0, 1, 2, 3}
    assert all(noted == there for noted, there in counting.compared)


def test_the_state_of_the_attempt_is_unchanged_after_the_dry_run() -> None:
    world = play(two_full_nodes, plugins=["Counting", *PLUGINS], classes=[Counting])
    originals = world.plugin("Counting").originals
    assert originals and all(now == before for now, before in originals)


def test_remove_pod_is_not_called_for_a_plugin_that_skipped() -> None:
    skipped = answering("Skipped", pre_filter=Status(Code.SKIP), add_pod=None, remove_pod=None)
    plugins = ["Counting", "Skipped", *PLUGINS]
    world = play(two_full_nodes, plugins=plugins, classes=[Counting, skipped])
    assert world.bound("h") is not None
    assert set(skipped.calls) == {("Skipped", "pre_filter")}
    assert world.plugin("Counting").calls != []


# ---- the rows F-054, F-069: several plugins after Filter ---------------------------------------


class Info(PostFilterPlugin):
    """Finds no nomination for any pod."""

    name = "Info"
    calls = 0

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: Any
    ) -> tuple[Nomination | None, Status | None]:
        self.calls += 1
        return None, unschedulable("seen")


BOTH = ["Info", *PLUGINS]


def played_with(scene: Callable[[World], Awaitable[None]], *names: str) -> World:
    return play(scene, plugins=list(names), classes=[Info, Moody], raise_bugs=False)


def test_the_second_post_filter_helps_where_the_first_does_not() -> None:
    async def scene(world: World) -> None:
        three_nodes(world)
        add_h(world)
        await world.until(2)
        assert place(world) == "n3"
        assert first_attempt(world)[1] == "n3"
        assert world.plugin("Info").calls == 1

    played_with(scene, *BOTH)


def test_if_no_post_filter_helps_all_messages_are_reported() -> None:
    async def scene(world: World) -> None:
        three_nodes(world)
        add_h(world, spec={"preemptionPolicy": "Never"})
        await world.until(2)
        result = world.message("h").partition(" cpu. ")[2]
        assert result == "seen, preemption: not eligible due to preemptionPolicy=Never."

    played_with(scene, *BOTH)


def test_after_an_error_post_filter_is_not_called() -> None:
    async def scene(world: World) -> None:
        evictions = three_nodes(world)
        world.change_node("n1", labels={"broken": "yes"})
        add_h(world)
        await world.until(0)
        assert "broken" in world.message("h")
        assert (world.plugin("Info").calls, evictions.targets) == (0, {})

    played_with(scene, "Moody", *BOTH)


def test_nodes_where_no_eviction_helps_are_not_tried() -> None:
    """PostFilter is called, and finds no candidate."""

    async def scene(world: World) -> None:
        evictions = three_nodes(world)
        world.add_pod("huge", cpu=5, priority=1000)
        await world.until(2)
        expected = f"{START}0/3 nodes are available: 3 Preemption is not helpful for scheduling."
        assert world.message("huge") == expected
        assert evictions.targets == {}

    played_with(scene, *PLUGINS)
