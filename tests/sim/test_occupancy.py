"""What placed pods take, counted from the API server's objects."""

from typing import Any

import pytest

from bayplan.adapters.embedded import EmbeddedCluster
from bayplan.adapters.object_names import object_key
from bayplan.api.objects import POD, Pod
from bayplan.clock import ManualClock
from bayplan.sim.occupancy import Occupancy, placed_pod
from bayplan.sim.result import Usage
from tests.adapters.manifests import Content, container, node, pod

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}


def cluster_with(*contents: Content) -> tuple[EmbeddedCluster, Occupancy]:
    cluster, occupancy = EmbeddedCluster(ManualClock()), Occupancy()
    cluster.observe(occupancy.observe)
    for content in (NAMESPACE, *contents):
        cluster.create(content)
    return cluster, occupancy


def cpu_of(occupancy: Occupancy) -> Usage:
    [found] = [usage for usage in occupancy.usage() if usage.resource == "cpu"]
    return found


def placed(name: str = "web", cpu: str = "1", **fields: Any) -> Content:
    return pod(name, nodeName="n1", containers=[container(cpu)], **fields)


def key_of(name: str) -> Any:
    return object_key(POD, "default", name)


def test_a_pod_takes_what_it_asks_for_and_its_own_place() -> None:
    _, occupancy = cluster_with(node("n1"), placed("a", "1500m"), placed("b", "500m"))
    assert occupancy.used["n1"] == {"cpu": 2000, "pods": 2}


def test_a_pending_pod_takes_nothing() -> None:
    _, occupancy = cluster_with(node("n1"), pod("a"))
    assert not occupancy.used["n1"]


def test_a_pod_that_ended_takes_nothing_though_it_is_there() -> None:
    cluster, occupancy = cluster_with(node("n1"), placed("a"))
    cluster.end_pod(key_of("a"))
    assert not any(occupancy.used["n1"].values())


def test_a_deleted_pod_takes_nothing() -> None:
    cluster, occupancy = cluster_with(node("n1"), placed("a"), placed("b"))
    cluster.delete(key_of("a"))
    assert occupancy.used["n1"] == {"cpu": 1000, "pods": 1}


def test_a_change_of_the_pod_that_is_not_its_spec_is_not_counted_again() -> None:
    cluster, occupancy = cluster_with(node("n1"), placed("a"))
    cluster.update(placed("a", labels={"new": "label"}))
    assert occupancy.used["n1"] == {"cpu": 1000, "pods": 1}


def test_what_a_pod_takes_is_asked_by_the_pod() -> None:
    cluster, occupancy = cluster_with(node("n1"), placed("a", "250m"))
    stored = cluster.get(key_of("a"))
    assert stored is not None
    assert isinstance(stored.object, Pod)
    assert occupancy.taken_by(stored.object) == {"cpu": 250, "pods": 1}


def test_the_peak_stays_when_pods_have_gone() -> None:
    cluster, occupancy = cluster_with(node("n1"), placed("a", "2"), placed("b", "1"))
    cluster.delete(key_of("a"))
    assert cpu_of(occupancy) == Usage(resource="cpu", requested=1000, peak=3000, allocatable=4000)


def test_resources_are_sorted_and_those_no_node_has_are_left_out() -> None:
    allocatable = {"memory": "1Gi", "cpu": "1", "example.com/gpu": "2", "pods": "0"}
    _, occupancy = cluster_with(node("n1", status={"allocatable": allocatable}))
    assert [usage.resource for usage in occupancy.usage()] == ["cpu", "example.com/gpu", "memory"]


def test_a_node_that_went_offers_nothing() -> None:
    cluster, occupancy = cluster_with(node("n1"), node("n2"))
    cluster.delete(object_key("v1 Node", "", "n1"))
    assert cpu_of(occupancy).allocatable == 4000
    assert "n1" not in occupancy.allocatable


def test_sums_may_be_larger_than_a_column() -> None:
    whole = {"allocatable": {"memory": "7Ei", "pods": "110"}}
    _, occupancy = cluster_with(node("n1", status=whole), node("n2", status=whole))
    [memory] = [usage for usage in occupancy.usage() if usage.resource == "memory"]
    assert memory.allocatable == 14 * 2**60


@pytest.mark.parametrize(
    ("content", "is_placed"),
    [
        pytest.param(pod("a"), False, id="it has no node"),
        pytest.param(pod("a", nodeName="n1"), True, id="it is on a node"),
        pytest.param(pod("a", nodeName="n1", status={"phase": "Failed"}), False, id="it failed"),
        pytest.param(node("a"), False, id="it is no pod"),
    ],
)
def test_placed_is_who_has_a_node_and_has_not_ended(content: Content, is_placed: bool) -> None:
    cluster, _ = cluster_with(node("n1"))
    assert (placed_pod(cluster.create(content)) is not None) is is_placed


def test_nothing_is_no_placed_pod() -> None:
    assert placed_pod(None) is None
