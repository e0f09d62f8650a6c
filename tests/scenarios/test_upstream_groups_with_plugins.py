"""Cases of Kubernetes' integration tests of groups that need plugins of their own, or more than one
look at the objects. The names say where a case is: `test_upstream_groups` has the others.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from bayplan.api.objects import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD
from bayplan.api.storage_objects import BIND_COMPLETED
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    PlacementAssignments,
    PlacementScorePlugin,
    Plugin,
    PodGroupPostFilterPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    ReservePlugin,
    ScalarFilterPlugin,
    ScalarScorePlugin,
)
from bayplan.framework.status import Code, Status
from bayplan.objects.keys import object_key
from bayplan.ports import BindPort
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pod_group_trees import GroupTree
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo
from tests.kit.scenes import scene_of
from tests.scenarios.gangs import UPSTREAM, condition, put_group
from tests.scenarios.trees import GATES, put_tree
from tests.scenarios.upstream_objects import create, is_gone, is_refused, node_of
from tests.scenarios.world import World, play

BASIC = {"basic": {}}
INITIALLY = "PodGroupInitiallyScheduled"
BOTH_POLICIES = pytest.mark.parametrize("minimum", [2, None])


def played(
    scene: Any, *plugins: type[Plugin], points: dict[str, Any] | None = None, **gates: bool
) -> World:
    """A scene with the default profile, further plugins, and sets of single extension points."""
    enabled = [{"name": plugin.name} for plugin in plugins]
    return play(
        scene,
        profile={"plugins": {"multiPoint": {"enabled": enabled}, **(points or {})}},
        classes=plugins,
        gates={**GATES, "CompositePodGroup": False, **gates},
        kubernetes=KubernetesVersion.V1_37,
    )


def group(world: World, minimum: int | None, name: str = "g", **fields: Any) -> None:
    if minimum is None:
        fields["schedulingPolicy"] = BASIC
    put_group(world, name, minimum or 1, UPSTREAM, **fields)


def member(world: World, name: str, cpu: str, group_name: str = "g", **options: Any) -> None:
    create(world, {"pod": name, "cpu": cpu, "group": group_name, **options})


def nodes_of(world: World, *names: str) -> list[str]:
    return [node_of(world, name) for name in names]


# ---- podgroup/queueing: a member that joins in the middle of a cycle ---------------------------


def joining(watched: str) -> type[Plugin]:
    """A plugin that creates the pod p3 while ``watched`` is tried for the first time."""

    class Joins(PreFilterPlugin):
        name = "Joins"
        arrivals: ClassVar[list[Callable[[], None]]] = []

        def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> None:
            if pod.name == watched and self.arrivals:
                self.arrivals.pop()()

    return Joins


def joins_during(watched: str, scene: Callable[[World], Any]) -> None:
    plugin: Any = joining(watched)

    async def whole(world: World) -> None:
        plugin.arrivals.append(lambda: member(world, "p3", "2"))
        create(world, {"node": "small", "cpu": "2"})
        await scene(world)

    played(whole, plugin)


@BOTH_POLICIES
@pytest.mark.parametrize("comes_early", [True, False])
def test_a_member_that_joins_in_the_middle_of_a_cycle_is_tried_after_it(
    minimum: int | None, comes_early: bool
) -> None:
    async def scene(world: World) -> None:
        if comes_early:
            create(world, {"node": "large", "cpu": "6"})
        group(world, minimum)
        for name in ("p1", "p2"):
            member(world, name, "2")
        await world.until(world.now + 20)
        if not comes_early:
            refused = ("p1", "p2", "p3") if minimum else ("p2", "p3")
            assert all(is_refused(world, name) for name in refused)
            create(world, {"node": "large", "cpu": "6"})
            await world.until(world.now + 30)
        assert "" not in nodes_of(world, "p1", "p2", "p3")

    joins_during("p1" if minimum else "p2", scene)


# ---- podgroup/queueing: a member whose PreBind fails -------------------------------------------


def failing() -> type[Plugin]:
    class FailsOnce(PreBindPlugin):
        """PreBind of p1 fails once."""

        name = "FailsOnce"
        failures: ClassVar[list[str]] = []

        async def pre_bind(
            self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
        ) -> Status | None:
            if pod.name != "p1" or self.failures:
                return None
            self.failures.append(node_name)
            return Status(Code.ERROR, ("mock binding failure",))

    return FailsOnce


@BOTH_POLICIES
@pytest.mark.parametrize("count", [1, 2])
def test_a_member_whose_binding_fails_is_tried_again(minimum: int | None, count: int) -> None:
    plugin: Any = failing()

    async def scene(world: World) -> None:
        create(world, {"node": "small", "cpu": "2"})
        names = ["p1", "p2"][:count]
        if count == 2:
            create(world, {"node": "large", "cpu": "6"})
        group(world, minimum and count)
        for name in names:
            member(world, name, "2")
        await world.until(world.now + 60)
        assert "" not in nodes_of(world, *names)
        assert len(plugin.failures) == 1

    played(scene, plugin)


@pytest.mark.parametrize("minimum", [1, None])
def test_a_binding_fails_while_another_member_finds_no_node(minimum: int | None) -> None:
    plugin: Any = failing()

    async def scene(world: World) -> None:
        create(world, {"node": "small", "cpu": "2"})
        member(world, "p1", "2")
        member(world, "p2", "4")
        await world.until(world.now + 1)
        group(world, minimum)
        await world.until(world.now + 60)
        assert nodes_of(world, "p1", "p2") == ["small", ""]
        assert is_refused(world, "p2")
        create(world, {"node": "large", "cpu": "6"})
        await world.until(world.now + 60)
        assert nodes_of(world, "p2") == ["large"]
        assert len(plugin.failures) == 1

    played(scene, plugin)


# ---- podgroup/queueing: what comes after a group of which some members are placed --------------


@scene_of(played)
async def test_a_more_important_pod_goes_before_the_members_that_are_left(world: World) -> None:
    create(world, {"node": "n1", "cpu": "4"})
    group(world, None)
    for name in ("p1", "p2", "p3"):
        member(world, name, "2", priority=0)
    await world.until(world.now + 1)
    assert sorted(nodes_of(world, "p1", "p2", "p3")) == ["", "n1", "n1"]
    (left,) = [name for name in ("p1", "p2", "p3") if not node_of(world, name)]
    create(world, {"pod": "high", "cpu": "4", "priority": 1000, "policy": "Never"})
    create(world, {"node": "n2", "cpu": "4"})
    await world.until(world.now + 60)
    assert nodes_of(world, "high", left) == ["n2", ""]


@scene_of(played)
async def test_a_member_that_is_left_goes_before_a_younger_pod(world: World) -> None:
    create(world, {"node": "n1", "cpu": "4"})
    group(world, None)
    names = ("p1", "p2", "p3")
    for name in names:
        member(world, name, "2", priority=0)
    await world.until(world.now + 0.5)
    create(world, {"pod": "young", "cpu": "2", "priority": 0})
    await world.until(world.now + 0.5)
    create(world, {"node": "n3", "cpu": "2"})
    await world.until(world.now + 60)
    assert sorted(nodes_of(world, *names)) == ["n1", "n1", "n3"]
    assert nodes_of(world, "young") == [""]


# ---- podgroup: volumes, preemption and PostFilter ----------------------------------------------


@pytest.mark.parametrize("claims", [("one", "one"), ("one", "two")])
@scene_of(played)
async def test_two_members_do_not_share_a_claim_for_one_pod(
    world: World, claims: tuple[str, str]
) -> None:
    create(world, {"node": "n1", "cpu": "2"})
    for name in sorted({*claims}):
        bound_claim(world, name)
    group(world, 2, priority=200)
    for name, claim in zip(("p1", "p2"), claims, strict=True):
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
        spec = {"schedulingGroup": {"podGroupName": "g"}, "volumes": [volume]}
        world.add_pod(name, cpu="1", priority=200, spec=spec)
    await world.until(world.now + 5)
    if claims[0] != claims[1]:
        assert nodes_of(world, "p1", "p2") == ["n1", "n1"]
        return
    assert all(is_refused(world, name) for name in ("p1", "p2"))
    refused = condition(world, "g", INITIALLY, UPSTREAM)
    assert (refused["status"], refused["reason"]) == ("False", "Unschedulable")


def bound_claim(world: World, name: str) -> None:
    spec = {"accessModes": ["ReadWriteOncePod"], "capacity": {"storage": "1Mi"}}
    claim = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
    volume = {"hostPath": {"path": "/mnt"}, "claimRef": claim, **spec}
    put(world, PERSISTENT_VOLUME, f"pv-{name}", volume, status={"phase": "Bound"})
    asked = {
        "accessModes": ["ReadWriteOncePod"],
        "resources": {"requests": {"storage": "1Mi"}},
        "volumeName": f"pv-{name}",
        "storageClassName": "",
    }
    meta = {"namespace": "default", "uid": f"uid-{name}", "annotations": {BIND_COMPLETED: "yes"}}
    put(world, PERSISTENT_VOLUME_CLAIM, name, asked, meta, status={"phase": "Bound"})


def put(world: World, kind: str, name: str, spec: Any, meta: Any = None, **more: Any) -> None:
    api_version, _, own = kind.partition(" ")
    metadata = {"name": name, **(meta or {})}
    content = {"apiVersion": api_version, "kind": own, "metadata": metadata, "spec": spec}
    world.cluster.create({**content, **more})


def counting() -> type[Plugin]:
    class Counts(PostFilterPlugin):
        name = "Counts"
        pods: ClassVar[list[str]] = []

        def post_filter(self, state: CycleState, pod: PodInfo, node_to_status: Any) -> Any:
            self.pods.append(pod.name)
            return None, Status(Code.UNSCHEDULABLE)

    return Counts


@pytest.mark.parametrize(
    ("point", "plugin_set", "is_preempting", "releases"),
    [
        ("postFilter", {"disabled": [{"name": "*"}]}, True, False),
        ("podGroupPostFilter", {"disabled": [{"name": "*"}]}, False, False),
        ("podGroupPostFilter", {"disabled": [{"name": "DefaultPreemption"}]}, False, True),
        ("podGroupPostFilter", {"enabled": [{"name": "Releases"}]}, True, True),
        ("podGroupPostFilter", {"enabled": [{"name": "DefaultPreemption"}]}, True, False),
    ],
)
def test_the_plugins_of_pod_group_post_filter_are_called_in_order_until_one_makes_room(
    point: str, plugin_set: Any, is_preempting: bool, releases: bool
) -> None:
    class Releases(PodGroupPostFilterPlugin):
        name = "Releases"
        group_reason = "released"
        calls: ClassVar[list[str]] = []

        def release_for_group(self, notes: Any) -> None:
            self.calls.append(self.name)

    async def scene(world: World) -> None:
        create(world, {"node": "n1", "cpu": "2"})
        create(world, {"pod": "low", "cpu": "1", "priority": 10})
        await world.until(world.now + 5)
        group(world, 2, priority=100)
        for name in ("a", "b"):
            member(world, name, "1", priority=100)
        await world.until(world.now + 60)
        assert is_gone(world, "low") == is_preempting
        if not is_preempting:
            message = condition(world, "g", INITIALLY, UPSTREAM)["message"]
            assert message.endswith(", released") == releases
        assert bool(Releases.calls) == releases

    played(scene, Releases, points={point: plugin_set})


def test_a_group_preempts_as_a_group_and_its_members_reach_no_post_filter() -> None:
    plugin: Any = counting()

    async def scene(world: World) -> None:
        create(world, {"node": "n1", "cpu": "4"})
        low, high = [f"low{n}" for n in range(4)], [f"high{n}" for n in range(3)]
        for name in low:
            create(world, {"pod": name, "cpu": "1", "priority": 10})
        await world.until(world.now + 5)
        group(world, 3, priority=100, disruptionMode={"all": {}})
        for name in high:
            member(world, name, "1", priority=100)
        await world.until(world.now + 60)
        assert nodes_of(world, *high) == ["n1"] * 3
        victims = [name for name in low if is_gone(world, name)]
        assert len(victims) == 3
        for name in victims:
            (note,) = world.events(name, "Preempted")
            assert note.startswith("Preempted by podgroup")
        assert not plugin.pods

    played(scene, plugin)


@scene_of(played)
async def test_a_group_that_preempts_says_so_in_its_condition(world: World) -> None:
    create(world, {"node": "n1", "cpu": "1"})
    world.add_pod("low", cpu="1", priority=10, spec={"terminationGracePeriodSeconds": 30})
    await world.until(world.now + 1)
    group(world, 1, priority=100)
    member(world, "high", "1", priority=100)
    await world.until(world.now + 5)
    assert world.pod("low").content["metadata"]["deletionTimestamp"]
    refused = condition(world, "g", INITIALLY, UPSTREAM)
    assert (refused["status"], refused["reason"]) == ("False", "Unschedulable")
    assert "minCount (1) cannot be satisfied" in refused["message"]
    found = "pod group preemption: found a placement for podgroup, preempting 1 victims"
    assert found in refused["message"]


def preset(**scores: int) -> type[Plugin]:
    class Preset(ScalarScorePlugin, PlacementScorePlugin):
        """Scores by the names of nodes."""

        name = "Preset"

        def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
            return scores.get(node.name, 0)

        def score_placement(
            self, group: GroupState | GroupTree, placement: PlacementAssignments
        ) -> int:
            names = placement.nodes.names()
            return sum(scores.get(name, 0) for name in names) // len(names)

    return Preset


def test_nominated_nodes_of_a_group_stay_while_its_victims_leave() -> None:
    async def scene(world: World) -> None:
        names = ("high1", "high2")
        for number, priority in enumerate((100, 10, 10), 1):
            create(world, {"node": f"node{number}", "cpu": "1"})
            spec = {"terminationGracePeriodSeconds": 1000}
            node = f"node{number}"
            world.add_pod(f"pod{number}", cpu="1", priority=priority, node=node, spec=spec)
        group(world, 2, priority=50)
        for name in names:
            member(world, name, "1", priority=50)
        await world.until(world.now + 5)
        nominated = [world.nominated(name) for name in names]
        assert sorted(nominated) == ["node2", "node3"]
        world.cluster.server.delete(object_key(POD, "default", "pod1"), is_forced=True)
        await world.until(world.now + 60)
        assert [world.nominated(name) for name in names] == nominated
        assert nodes_of(world, *names) == ["", ""]

    played(scene, preset(node1=100))


# ---- preemption/podgroup ----------------------------------------------------------------------


@pytest.mark.parametrize(("is_basic", "is_tree"), [(False, False), (True, False), (False, True)])
def test_a_group_preempts_on_the_node_that_its_members_prefer(
    is_basic: bool, is_tree: bool
) -> None:
    async def scene(world: World) -> None:
        sizes = {"low1": ("1" if is_basic else "2", "node1", 10)}
        sizes["low2"] = ("1", "node2", 5 if is_basic else 10)
        for node in ("node1", "node2"):
            create(world, {"node": node, "cpu": "2"})
        for name, (cpu, node, priority) in sizes.items():
            create(world, {"pod": name, "cpu": cpu, "priority": priority, "node": node})
        if is_tree:
            put_tree(world, "t", 1, priority=100, schedulingPolicy=BASIC)
        parent = {"parentCompositePodGroupName": "t"} if is_tree else {}
        group(world, None if is_basic else 3, priority=100, **parent)
        names = ("high1", "high2", "high3")
        for name in names:
            member(world, name, "1", priority=100)
        await world.until(world.now + 60)
        assert sorted(nodes_of(world, *names)) == ["node1", "node1", "node2"]
        assert is_gone(world, "low1") and not is_gone(world, "low2")

    played(scene, preset(node1=100), CompositePodGroup=is_tree, PodGroupPreemptionPolicy=is_tree)


@scene_of(played)
@pytest.mark.parametrize("has_other", [False, True])
async def test_a_group_preempts_for_its_spreading(world: World, has_other: bool) -> None:
    """The pod of the other node stays, although it is less important."""
    spread = {
        "maxSkew": 2,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "foo"}},
        "minDomains": 10,
    }
    labels = {"app": "foo"}
    for node in ("node1", "node2"):
        own = {"kubernetes.io/hostname": node}
        create(world, {"node": node, "cpu": "16", "labels": own})
    create(world, {"pod": "old", "cpu": "1", "priority": 10, "node": "node1", "labels": labels})
    if has_other:
        other = {"pod": "other", "cpu": "1", "priority": 5, "node": "node2", "labels": labels}
        create(world, other)
    group(world, 2, priority=100)
    for name in ("high1", "high2"):
        spec = {"schedulingGroup": {"podGroupName": "g"}}
        options = {"spread": [spread], "node_selector": {"kubernetes.io/hostname": "node1"}}
        world.add_pod(name, cpu="1", priority=100, labels=labels, spec=spec, **options)
    await world.until(world.now + 60)
    assert nodes_of(world, "high1", "high2") == ["node1", "node1"]
    assert is_gone(world, "old")
    assert not has_other or not is_gone(world, "other")


def reserving() -> type[Plugin]:
    class TakesTwo(ReservePlugin, ScalarFilterPlugin):
        """A node has room for two: pods that run there, and pods that are reserved."""

        name = "TakesTwo"
        reserved: ClassVar[set[str]] = set()

        def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
            if (pod.labels or {}).get("test-plugin") != "true":
                return None
            taken = sum((one.labels or {}).get("resource-taken") == "true" for one in node.pods)
            is_full = len(self.reserved) + taken >= 2
            return Status(Code.UNSCHEDULABLE, ("already reserved",)) if is_full else None

        def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
            if (pod.labels or {}).get("test-plugin") == "true":
                self.reserved.add(pod.uid)
            return None

        def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
            self.reserved.discard(pod.uid)

    return TakesTwo


@pytest.mark.parametrize("is_tree", [False, True])
def test_reserve_of_other_plugins_decides_about_victims(is_tree: bool) -> None:
    async def scene(world: World) -> None:
        create(world, {"node": "n1", "cpu": "3"})
        for name, priority, labels in (("v1", 15, {"resource-taken": "true"}), ("v2", 10, {})):
            pod = {"pod": name, "cpu": "1", "priority": priority, "node": "n1", "labels": labels}
            create(world, pod)
        fields: dict[str, Any] = {"priority": 100}
        if is_tree:
            put_tree(world, "t", 1, priority=100)
            fields["parentCompositePodGroupName"] = "t"
        group(world, 2, **fields)
        for name in ("a", "b"):
            member(world, name, "1", priority=100, labels={"test-plugin": "true"})
        await world.until(world.now + 60)
        assert nodes_of(world, "a", "b") == ["n1", "n1"]
        assert is_gone(world, "v1") and not is_gone(world, "v2")

    played(scene, reserving(), CompositePodGroup=is_tree)


@BOTH_POLICIES
@scene_of(played)
async def test_members_that_fit_are_bound_before_others_preempt(
    world: World, minimum: int | None
) -> None:
    create(world, {"node": "n1", "cpu": "4"})
    group(world, minimum, priority=100)
    for name in ("p1", "p2"):
        member(world, name, "1", priority=100)
    create(world, {"pod": "low", "cpu": "1", "priority": 10})
    await world.until(world.now + 5)
    for name in ("high1", "high2"):
        member(world, name, "1", priority=100)
    await world.until(world.now + 60)
    assert nodes_of(world, "p1", "p2", "high1", "high2") == ["n1"] * 4
    assert is_gone(world, "low")
    times = sorted(world.bound(name) or (0.0, "") for name in ("high1", "high2"))
    assert times[0][0] < times[1][0]


def test_a_group_preempts_in_the_domain_of_the_higher_score() -> None:
    async def scene(world: World) -> None:
        for number in range(1, 5):
            node, zone = f"node{number}", "zone1" if number < 3 else "zone2"
            create(world, {"node": node, "cpu": "1", "labels": {"zone": zone}})
            create(world, {"pod": f"low{number}", "cpu": "1", "priority": 10, "node": node})
        constraints = {"topology": [{"key": "zone"}]}
        group(world, 2, priority=100, schedulingConstraints=constraints)
        for name in ("high1", "high2"):
            member(world, name, "1", priority=100)
        await world.until(world.now + 60)
        assert sorted(nodes_of(world, "high1", "high2")) == ["node3", "node4"]
        assert [is_gone(world, f"low{n}") for n in range(1, 5)] == [False, False, True, True]

    played(scene, preset(node3=100, node4=100))
