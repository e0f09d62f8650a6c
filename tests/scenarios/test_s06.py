"""S-06: preemption: victims, their events, and the nominated room."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bayplan.adapters.embedded.object_store import Stored
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
from tests.scenarios.gangs import X_K8S, add_member, put_group
from tests.scenarios.world import World, play

PLUGINS = ["NodeResourcesFit", "DefaultPreemption"]
START = "0/3 nodes are available: 3 Insufficient cpu. preemption: "


class Seen:
    """What the API told of pods that had to go."""

    def __init__(self, world: World) -> None:
        #: Name → when it was gone.
        self.deleted: dict[str, float] = {}
        #: Name → reason of its condition DisruptionTarget.
        self.targets: dict[str, str] = {}
        self._world = world
        world.cluster.observe(self._observe)

    def _observe(self, before: Stored | None, after: Stored | None) -> None:
        if after is None and before is not None and before.key.kind == "v1 Pod":
            self.deleted[before.key.name] = self._world.now
        if after is None or after.key.kind != "v1 Pod":
            return
        for each in after.content.get("status", {}).get("conditions", ()):
            if each["type"] == "DisruptionTarget" and each["status"] == "True":
                self.targets[after.key.name] = each["reason"]


def add_running(world: World, name: str, where: str, cpu: int, priority: int, age: int) -> None:
    """``age``: for how many seconds it has been running."""
    minutes, seconds = divmod(600 - age, 60)
    status = {"phase": "Running", "startTime": f"2025-12-31T23:{50 + minutes}:{seconds:02}Z"}
    labels = {"app": name[0]}
    options: dict[str, Any] = {"node": where, "labels": labels, "status": status}
    world.add_pod(name, cpu=cpu, memory="1Gi", priority=priority, **options)


def three_nodes(world: World) -> Seen:
    for name in ("n1", "n2", "n3"):
        world.add_node(name, cpu=4, memory="64Gi")
    add_running(world, "p5", "n1", 2, 5, 400)
    add_running(world, "p10", "n1", 2, 10, 400)
    add_running(world, "w7", "n2", 3, 7, 400)
    add_running(world, "w2000", "n2", 1, 2000, 400)
    for number in range(1, 5):
        add_running(world, f"v{number}", "n3", 1, 1, 500 - 100 * number)
    return Seen(world)


def add_h(world: World, **options: Any) -> None:
    world.add_pod("h", cpu=3, memory="1Gi", priority=1000, **options)


async def h_preempts(world: World) -> None:
    """Part A, without looking."""
    three_nodes(world)
    add_h(world)
    await world.until(2)


def place(world: World) -> str:
    """Where h went."""
    result = world.bound("h")
    assert result is not None
    return result[1]


def first_attempt(world: World) -> tuple[str, str]:
    """(message, nomination)"""
    first = world.attempts("h")[0]
    return first.message, first.nominated_node


def test_part_a_the_node_whose_most_important_victim_is_least_important_wins() -> None:
    async def story(world: World) -> None:
        seen = three_nodes(world)
        add_h(world)
        await world.until(2)
        assert place(world) == "n3"
        assert seen.deleted == dict.fromkeys(("v2", "v3", "v4"), 0.0)
        assert seen.targets == dict.fromkeys(seen.deleted, "PreemptionByScheduler")
        for name in seen.deleted:
            (note,) = world.events(name, "Preempted")
            assert note == f"Preempted by pod {world.uid('h')} on node n3"
        found = "found a potential placement for pod on node n3, preempting 3 victims"
        assert first_attempt(world) == (f"{START}{found}", "n3")

    play(story, plugins=PLUGINS)


def budget(allowed_count: int) -> dict[str, Any]:
    """Of all pods labelled app=v."""
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


def test_part_b_a_budget_violation_moves_the_preemptor_to_another_node() -> None:
    async def story(world: World) -> None:
        seen = three_nodes(world)
        world.cluster.create(budget(2))
        add_h(world)
        await world.until(2)
        assert place(world) == "n2"
        assert set(seen.deleted) == {"w7"}
        assert first_attempt(world)[1] == "n2"

    play(story, plugins=PLUGINS)


def test_a_budget_exhausted_by_evictions_protects_the_remaining_pods() -> None:
    """Three may go, the most important ones first; then v4 must not, of the lowest priority."""

    async def story(world: World) -> None:
        seen = three_nodes(world)
        unwritten = {name: part for name, part in budget(0).items() if name != "status"}
        unwritten["spec"]["minAvailable"] = 1
        world.cluster.create(unwritten)
        add_h(world)
        await world.until(5)
        assert set(seen.deleted) == {"v1", "v2", "v3"}
        world.add_pod("next", cpu=1, memory="1Gi", priority=900)
        await world.until(10)
        assert (world.bound("next") or ("", ""))[1] == "n1"
        assert set(seen.deleted) == {"v1", "v2", "v3", "p5"}

    play(story, plugins=PLUGINS)


def test_part_c_preemption_policy_never_evicts_nothing() -> None:
    async def story(world: World) -> None:
        seen = three_nodes(world)
        add_h(world, spec={"preemptionPolicy": "Never"})
        await world.until(300)
        assert world.bound("h") is None
        assert world.message("h") == f"{START}not eligible due to preemptionPolicy=Never."
        assert (seen.deleted, seen.targets, world.nominated("h")) == ({}, {}, "")

    play(story, plugins=PLUGINS)


def test_part_e_the_room_stays_nominated_while_the_victim_terminates() -> None:
    async def story(world: World) -> None:
        world.add_node("m1", cpu=4, memory="64Gi")
        grace = {"terminationGracePeriodSeconds": 20}
        world.add_pod("v", cpu=2, priority=1, node="m1", spec=grace)
        seen = Seen(world)
        add_h(world)
        await world.until(5)
        assert (world.nominated("h"), seen.deleted) == ("m1", {})
        world.add_pod("s", cpu=2, priority=0)
        await world.until(19)
        assert "1 Insufficient cpu" in world.message("s")
        assert world.bound("h") is None
        await world.until(60)
        assert seen.deleted == {"v": 20.0}
        assert world.bound("h") == (20.0, "m1")
        assert world.bound("s") is None

    play(story, plugins=PLUGINS)


@pytest.mark.parametrize("other_priority", [0, 20])
def test_part_f_a_group_evicts_for_all_its_members_or_for_none(other_priority: int) -> None:
    async def story(world: World) -> None:
        for number, priority in ((1, 0), (2, other_priority)):
            world.add_node(f"m{number}", cpu=4, memory="64Gi")
            add_running(world, f"r{number}", f"m{number}", 4, priority, 100)
        seen = Seen(world)
        put_group(world, "g", 2, X_K8S)
        for name in ("g1", "g2"):
            add_member(world, name, "g", X_K8S, cpu=4, priority=10)
        await world.until(3)
        places = {found and found[1] for found in map(world.bound, ("g1", "g2"))}
        if other_priority == 0:
            assert places == {"m1", "m2"}
            assert set(seen.deleted) == {"r1", "r2"}
        else:
            assert places == {None}
            assert (seen.deleted, seen.targets) == ({}, {})
            assert "0 of 2" in world.message("g1")

    play(story, plugins=PLUGINS)


# ---- the row F-019: what becomes of a nomination ---------------------------------------------


class Moody(ScalarFilterPlugin):
    """Breaks where a node says so."""

    name = "Moody"

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if "broken" in node.labels:
            raise RuntimeError("broken")
        return None


@pytest.mark.parametrize(
    "labels", [pytest.param({"broken": "yes"}, id="error"), pytest.param({}, id="no candidate")]
)
def test_a_nomination_is_cleared_if_nothing_helps_or_an_attempt_ends_in_an_error(
    labels: dict[str, str],
) -> None:
    async def story(world: World) -> None:
        world.add_node("m1", cpu=4, memory="64Gi")
        grace = {"terminationGracePeriodSeconds": 20}
        world.add_pod("v", cpu=2, priority=1, node="m1", spec=grace)
        add_h(world)
        await world.until(5)
        assert world.nominated("h") == "m1"
        # Somebody who is more important is placed there by hand.
        world.add_pod("king", cpu=2, priority=5000, node="m1")
        world.change_node("m1", labels=labels)
        await world.until(60)
        assert len(world.attempts("h")) > 1
        assert (world.nominated("h"), world.bound("h")) == ("", None)

    play(story, plugins=["Moody", *PLUGINS], classes=[Moody], raise_bugs=False)


# ---- the rows F-008, F-052, F-068: the dry run keeps plugins' notes right --------------------


class Notes(dict[str, int], Cloneable):
    """Node → pods on it."""

    def clone(self) -> "Notes":
        return Notes(self)


class Counting(PreFilterPlugin, PreFilterExtensions, ScalarFilterPlugin):
    """Takes nodes with less than two pods, by notes of its own."""

    name = "Counting"

    def setup(self) -> None:
        self.calls: list[tuple[str, str]] = []
        #: Notes as a Filter saw them beside what is there.
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
    """Three pods on n1, and on n2 three that must not go but for one."""
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
    # All three leave; each is tried back in turn; two cannot stay.
    assert on_n1 == [
        ("remove", "a0"), ("remove", "a1"), ("remove", "a2"),
        ("add", "a0"),
        ("add", "a1"), ("remove", "a1"),
        ("add", "a2"), ("remove", "a2"),
    ]  # fmt: skip
    # n2 is of no use without b0 either: nobody is tried back.
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
    """Helps nobody."""

    name = "Info"
    asked = 0

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: Any
    ) -> tuple[Nomination | None, Status | None]:
        self.asked += 1
        return None, unschedulable("seen")


BOTH = ["Info", *PLUGINS]


def played_with(story: Callable[[World], Awaitable[None]], *names: str) -> World:
    return play(story, plugins=list(names), classes=[Info, Moody], raise_bugs=False)


def test_the_second_post_filter_helps_where_the_first_does_not() -> None:
    async def story(world: World) -> None:
        three_nodes(world)
        add_h(world)
        await world.until(2)
        assert place(world) == "n3"
        assert first_attempt(world)[1] == "n3"
        assert world.plugin("Info").asked == 1

    played_with(story, *BOTH)


def test_if_no_post_filter_helps_all_messages_are_reported() -> None:
    async def story(world: World) -> None:
        three_nodes(world)
        add_h(world, spec={"preemptionPolicy": "Never"})
        await world.until(2)
        result = world.message("h").partition(" cpu. ")[2]
        assert result == "seen, preemption: not eligible due to preemptionPolicy=Never."

    played_with(story, *BOTH)


def test_after_an_error_post_filter_is_not_called() -> None:
    async def story(world: World) -> None:
        seen = three_nodes(world)
        world.change_node("n1", labels={"broken": "yes"})
        add_h(world)
        await world.until(0)
        assert "broken" in world.message("h")
        assert (world.plugin("Info").asked, seen.targets) == (0, {})

    played_with(story, "Moody", *BOTH)


def test_nodes_where_no_eviction_helps_are_not_tried() -> None:
    """The plugin is asked all the same, and finds no candidate by itself."""

    async def story(world: World) -> None:
        seen = three_nodes(world)
        world.add_pod("huge", cpu=5, priority=1000)
        await world.until(2)
        expected = f"{START}0/3 nodes are available: 3 Preemption is not helpful for scheduling."
        assert world.message("huge") == expected
        assert seen.targets == {}

    played_with(story, *PLUGINS)
