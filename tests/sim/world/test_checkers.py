"""The checkers detect exactly the planted errors: capacity, occupancy, gangs, lost pods."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.objects import NODE, POD, Pod
from bayplan.clock import ManualClock
from bayplan.engine.placements import Placements
from bayplan.engine.podgroups.placements import GroupPlacements
from bayplan.framework.status import Code, Status
from bayplan.objects.keys import object_key
from bayplan.plugins.coscheduling import Coscheduling
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.sim.simulation import Simulation
from bayplan.sim.world.checkers import (
    CapacityChecker,
    InvariantBroken,
    differences,
)
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import pod_info
from tests.framework.answering import answering
from tests.kit.manifests import Content, container, node, pod
from tests.scenarios.gangs import FIT, add_member, add_members, bound, put_group
from tests.scenarios.world import World, play, scenario
from tests.sim.runs import simulation, workload

# ---- checkers -------------------------------------------------------------------------------


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}


# ---- capacity ------------------------------------------------------------------------------


class Watched:
    """A cluster whose bindings are checked, without a scheduler."""

    def __init__(self, *contents: Content) -> None:
        self.cluster = EmbeddedCluster(ManualClock())
        self.checker = CapacityChecker(self.cluster)
        self.cluster.observe(self.checker.observe)
        for content in (NAMESPACE, *contents):
            self.cluster.create(content)

    def bind(self, name: str, node_name: str = "n1") -> None:
        stored = self.cluster.get(object_key(POD, "default", name))
        assert stored is not None
        assert isinstance(stored.object, Pod)
        asyncio.run(self.cluster.bind(pod_info(stored.object), node_name))


def test_a_binding_over_capacity_is_detected() -> None:
    watched = Watched(node("n1"), pod("a", cpu="3"), pod("b", cpu="3"))
    watched.bind("a")
    with pytest.raises(InvariantBroken) as broken:
        watched.bind("b")
    assert str(broken.value) == ("default/b was bound to n1, which has 4000 cpu and now 6000 taken")


def test_a_resource_missing_on_the_node_is_over_capacity() -> None:
    gpu = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    watched = Watched(node("n1"), pod("a", containers=[container(resources=gpu)]))
    with pytest.raises(InvariantBroken, match=r"has 0 example\.com/gpu and now 1 taken"):
        watched.bind("a")


def test_one_pod_too_many_is_detected() -> None:
    small = {"allocatable": {"cpu": "64", "pods": "1"}}
    watched = Watched(node("n1", status=small), pod("a", cpu="3"), pod("b", cpu="3"))
    watched.bind("a")
    with pytest.raises(InvariantBroken, match="has 1 pods and now 2 taken"):
        watched.bind("b")


def test_a_binding_that_fits_is_counted() -> None:
    watched = Watched(node("n1"), node("n2"), pod("a", cpu="3"), pod("b", cpu="3"))
    watched.bind("a", "n1")
    watched.bind("b", "n2")
    assert watched.checker.bindings_checked == 2


def test_the_capacity_of_deleted_pods_may_be_used() -> None:
    watched = Watched(node("n1"), pod("a", cpu="3"), pod("b", cpu="3"), pod("c", cpu="3"))
    watched.bind("a")
    watched.cluster.end_pod(object_key(POD, "default", "a"))
    watched.bind("b")
    watched.cluster.delete(object_key(POD, "default", "b"))
    watched.bind("c")
    assert watched.checker.bindings_checked == 3


def test_a_node_that_was_overfull_before_is_not_reported() -> None:
    watched = Watched(
        node("n1"), pod("a", cpu="3", nodeName="n1"), pod("b", cpu="3", nodeName="n1")
    )
    assert watched.checker.bindings_checked == 0
    with pytest.raises(InvariantBroken):
        Watched.bind(_with(watched, pod("c", cpu="1m")), "c")


def test_a_pod_without_requests_fits_on_a_full_node() -> None:
    watched = Watched(
        node("n1"), pod("a", cpu="3", nodeName="n1"), pod("b", cpu="3", nodeName="n1")
    )
    _with(watched, pod("c", cpu="0")).bind("c")
    assert watched.checker.bindings_checked == 1


def test_a_node_that_shrank_is_reported_only_at_the_next_binding() -> None:
    watched = Watched(node("n1"), pod("a", cpu="3"), pod("b", cpu="1m"))
    watched.bind("a")
    watched.cluster.update(node("n1", status={"allocatable": {"cpu": "1", "pods": "110"}}))
    with pytest.raises(InvariantBroken, match="has 1000 cpu and now 3001 taken"):
        watched.bind("b")


def test_a_binding_to_a_node_deleted_meanwhile_is_not_checked() -> None:
    watched = Watched(node("n1"), pod("a", cpu="3"))
    watched.cluster.delete(object_key(NODE, "", "n1"))
    watched.bind("a")
    assert watched.checker.bindings_checked == 0


def _with(watched: Watched, content: Content) -> Watched:
    watched.cluster.create(content)
    return watched


def test_a_filter_that_accepts_everything_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def let_pass(*_: Any) -> Iterator[Any]:
        return iter(())

    monkeypatch.setattr(NodeResourcesFit, "filter", let_pass)
    run = simulation(workload(node("n1"), pod("a", cpu="3"), pod("b", cpu="3")))
    with pytest.raises(InvariantBroken, match="default/b was bound to n1"):
        run.run()


# ---- cache, queue and API ------------------------------------------------------------------


def test_a_finished_run_has_no_differences() -> None:
    run = two_pods()
    run.run()
    assert differences(run.scheduler, run.cluster) == []
    run.cluster.create(pod("untold", cpu="3"))
    assert differences(run.scheduler, run.cluster) == [
        "pod default/untold is pending in the API and not in the queue"
    ]


def test_a_run_that_loses_a_pod_ends_with_the_name_of_the_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SchedulingQueue, "add_unschedulable", lambda *_, **__: None)
    with pytest.raises(
        InvariantBroken, match="pod default/b is pending in the API and not in the queue"
    ):
        two_pods().run()


def test_a_run_that_never_binds_ends_with_the_name_of_the_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(EmbeddedCluster, "bind_now", lambda *_: None)
    with pytest.raises(
        InvariantBroken, match="pod default/a is on no node in the API and on n1 in the cache"
    ):
        two_pods().run()


def two_pods() -> Simulation:
    return simulation(workload(node("n1"), pod("a", cpu="3"), pod("b", cpu="3")))


# ---- gang checker ---------------------------------------------------------------------------


POD_BY_POD = {
    "plugins": FIT,
    "queue_sort": "Coscheduling",
    "args": {"Coscheduling": {"placement": "pod"}},
}


def two_of_three_fit(world: World) -> None:
    world.add_node("n1", cpu=2)
    put_group(world, "g", 3)
    add_members(world, "abc", "g", cpu=1)


def always(_: Any) -> bool:
    return True


# ---- violations -----------------------------------------------------------------------------


def test_members_placed_one_by_one_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupState, "is_met", property(always))

    async def scene(world: World) -> None:
        two_of_three_fit(world)
        await world.until(1)

    expected = "default/a was placed on n1: group default/g holds 1 nodes of 3"
    with pytest.raises(InvariantBroken, match=expected):
        play(scene, plugins=FIT)


def test_a_member_placed_without_a_group_object_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(GroupState, "is_met", property(always))

    async def scene(world: World) -> None:
        world.add_node("n1")
        add_member(world, "a", "g")
        await world.until(1)

    with pytest.raises(InvariantBroken, match="holds 1 nodes and has no object"):
        play(scene, plugins=FIT)


def test_a_group_that_releases_only_some_nodes_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two pods wait at Permit; the rejection of the first does not reject the second."""

    def give_back(self: GroupPlacements, group: Any, pod: Any, status: Any) -> None:
        placements: Placements = self._placements
        placements.give_back(next(one for one in group.members if one.pod.uid == pod.uid))

    monkeypatch.setattr(GroupPlacements, "_give_back", give_back)
    seconds = {"a": 10.0, "b": 20.0}
    slow = answering("Slow", permit=lambda _, pod, __: (Status(Code.WAIT), seconds[pod.name]))

    async def scene(world: World) -> None:
        world.add_node("n1")
        put_group(world, "g", 2)
        add_members(world, seconds, "g")
        await world.until(11)

    expected = "group default/g gave nodes back and holds 1 of 2: default/b waits on n1"
    with pytest.raises(InvariantBroken, match=expected):
        play(scene, plugins=[*FIT, "Slow"], classes=[slow])


def test_a_member_placed_alone_that_does_not_wait_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Coscheduling, "permit", lambda *_: (None, 0.0))

    async def scene(world: World) -> None:
        two_of_three_fit(world)
        await world.until(1)

    with pytest.raises(InvariantBroken, match="group default/g holds 1 nodes of 3"):
        play(scene, **POD_BY_POD)


# ---- allowed behaviour ----------------------------------------------------------------------


def test_groups_placed_in_one_pass_are_checked() -> None:
    async def scene(world: World) -> None:
        two_of_three_fit(world)
        await world.until(1)
        assert world.gangs.placement_check_count == 0
        world.add_node("n2", cpu=2)
        await world.until(20)

    assert play(scene, plugins=FIT).gangs.placement_check_count == 3


@scenario(**POD_BY_POD)
async def test_members_placed_one_by_one_may_wait_on_their_nodes(world: World) -> None:
    two_of_three_fit(world)
    await world.until(1)
    assert world.gangs.placement_check_count
    assert not any(bound(world, *"abc"))


@scenario(plugins=FIT)
async def test_changes_by_users_to_a_group_are_not_reported(world: World) -> None:
    """After a member is deleted and the minimum raised, no member is placed below the quorum."""
    world.add_node("n1", cpu=4)
    put_group(world, "g", 2)
    add_members(world, "ab", "g", cpu=1)
    await world.until(1)
    world.delete_pod("a")
    put_group(world, "g", 3)
    await world.until(2)
    assert world.gangs.loss_check_count == 1
    add_member(world, "c", "g", cpu=1)
    await world.until(3)
    assert world.gangs.placement_check_count == 2
    add_member(world, "d", "g", cpu=1)
    await world.until(4)
    assert world.gangs.placement_check_count == 4


@scenario(plugins=FIT)
async def test_without_groups_nothing_is_checked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add_node("n1")
    monkeypatch.setattr(world.scheduler.cache.table.log, "rows_since", None)
    world.add_pod("p")
    assert world.gangs.placement_check_count == 0
