"""The checkers, shown to catch what is planted, and nothing else."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from bayplan.adapters.embedded import EmbeddedCluster
from bayplan.adapters.object_names import object_key
from bayplan.api.objects import NODE, POD, Pod
from bayplan.clock import ManualClock
from bayplan.engine.binding import BindingCycle
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.sim.checkers import CapacityChecker, InvariantBroken, differences
from bayplan.sim.simulation import Simulation
from bayplan.state.pods import pod_info
from tests.adapters.manifests import Content, container, node, pod
from tests.sim.runs import simulation, workload

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}


# ---- capacity ------------------------------------------------------------------------------


class Watched:
    """A cluster whose bindings are checked, and nobody to schedule."""

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


def asking(name: str, cpu: str = "3", **fields: Any) -> Content:
    return pod(name, containers=[container(cpu)], **fields)


def test_a_binding_over_capacity_is_caught() -> None:
    watched = Watched(node("n1"), asking("a"), asking("b"))
    watched.bind("a")
    with pytest.raises(InvariantBroken) as broken:
        watched.bind("b")
    assert str(broken.value) == ("default/b was bound to n1, which has 4000 cpu and now 6000 taken")


def test_a_resource_that_the_node_does_not_have_is_over_capacity() -> None:
    gpu = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    watched = Watched(node("n1"), pod("a", containers=[container(resources=gpu)]))
    with pytest.raises(InvariantBroken, match=r"has 0 example\.com/gpu and now 1 taken"):
        watched.bind("a")


def test_one_pod_too_many_is_caught() -> None:
    small = {"allocatable": {"cpu": "64", "pods": "1"}}
    watched = Watched(node("n1", status=small), asking("a"), asking("b"))
    watched.bind("a")
    with pytest.raises(InvariantBroken, match="has 1 pods and now 2 taken"):
        watched.bind("b")


def test_what_fits_is_counted_and_let_pass() -> None:
    watched = Watched(node("n1"), node("n2"), asking("a"), asking("b"))
    watched.bind("a", "n1")
    watched.bind("b", "n2")
    assert watched.checker.bindings_checked == 2


def test_room_of_pods_that_went_may_be_taken() -> None:
    watched = Watched(node("n1"), asking("a"), asking("b"), asking("c"))
    watched.bind("a")
    watched.cluster.end_pod(object_key(POD, "default", "a"))
    watched.bind("b")
    watched.cluster.delete(object_key(POD, "default", "b"))
    watched.bind("c")
    assert watched.checker.bindings_checked == 3


def test_a_node_that_was_too_full_before_is_nobodys_fault() -> None:
    watched = Watched(node("n1"), asking("a", nodeName="n1"), asking("b", nodeName="n1"))
    assert watched.checker.bindings_checked == 0
    with pytest.raises(InvariantBroken):
        Watched.bind(_with(watched, asking("c", "1m")), "c")


def test_a_pod_that_asks_for_nothing_fits_where_everything_is_taken() -> None:
    watched = Watched(node("n1"), asking("a", nodeName="n1"), asking("b", nodeName="n1"))
    _with(watched, asking("c", "0")).bind("c")
    assert watched.checker.bindings_checked == 1


def test_a_node_that_shrank_is_nobodys_fault_until_it_is_bound_to() -> None:
    watched = Watched(node("n1"), asking("a"), asking("b", "1m"))
    watched.bind("a")
    watched.cluster.update(node("n1", status={"allocatable": {"cpu": "1", "pods": "110"}}))
    with pytest.raises(InvariantBroken, match="has 1000 cpu and now 3001 taken"):
        watched.bind("b")


def test_a_binding_to_a_node_that_went_meanwhile_is_not_judged() -> None:
    watched = Watched(node("n1"), asking("a"))
    watched.cluster.delete(object_key(NODE, "", "n1"))
    watched.bind("a")
    assert watched.checker.bindings_checked == 0


def _with(watched: Watched, content: Content) -> Watched:
    watched.cluster.create(content)
    return watched


def test_a_filter_that_lets_everything_pass_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def let_pass(*_: Any) -> Iterator[Any]:
        return iter(())

    monkeypatch.setattr(NodeResourcesFit, "filter", let_pass)
    run = simulation(workload(node("n1"), asking("a"), asking("b")))
    with pytest.raises(InvariantBroken, match="default/b was bound to n1"):
        run.run()


# ---- cache, queue and API ------------------------------------------------------------------


def test_a_run_that_is_over_differs_in_nothing() -> None:
    run = two_pods()
    run.run()
    assert differences(run.scheduler, run.cluster) == []
    run.cluster.create(asking("untold"))
    assert differences(run.scheduler, run.cluster) == ["pod default/untold is pending and lost"]


def test_a_run_that_loses_a_pod_ends_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SchedulingQueue, "add_unschedulable", lambda *_, **__: None)
    with pytest.raises(AssertionError, match="pod default/b is pending and lost"):
        two_pods().run()


def test_a_run_that_never_binds_ends_with_the_pods_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async def succeed(self: BindingCycle, port: Any) -> None:
        return None

    monkeypatch.setattr(BindingCycle, "_bind", succeed)
    with pytest.raises(AssertionError, match="pod default/a is on no node and counted on n1"):
        two_pods().run()


def two_pods() -> Simulation:
    return simulation(workload(node("n1"), asking("a"), asking("b")))
