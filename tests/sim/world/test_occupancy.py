"""What placed pods use is computed from the API server's objects alone."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.objects import POD, Pod
from bayplan.clock import ManualClock
from bayplan.objects.keys import object_key
from bayplan.sim.output.result import Usage
from bayplan.sim.world.occupancy import Occupancy
from bayplan.state.pods import pod_info
from tests.kit.manifests import Content, node, pod

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}


def cluster_with(*contents: Content) -> tuple[EmbeddedCluster, Occupancy]:
    cluster, occupancy = EmbeddedCluster(ManualClock()), Occupancy()
    cluster.observe(occupancy.observe)
    for content in (NAMESPACE, *contents):
        cluster.create(content)
    return cluster, occupancy


def cpu_of(occupancy: Occupancy) -> Usage:
    [usage_of_cpu] = [usage for usage in occupancy.usage() if usage.resource == "cpu"]
    return usage_of_cpu


def placed(name: str = "web", cpu: str = "1", **fields: Any) -> Content:
    return pod(name, nodeName="n1", cpu=cpu, **fields)


def key_of(name: str) -> Any:
    return object_key(POD, "default", name)


@pytest.mark.parametrize(
    ("pods", "change", "used"),
    [
        pytest.param(
            [placed("a", "1500m"), placed("b", "500m")],
            lambda _: None,
            {"cpu": 2000, "pods": 2},
            id="requests and one slot each",
        ),
        pytest.param([pod("a")], lambda _: None, {}, id="a pending pod uses nothing"),
        pytest.param(
            [placed("a")], lambda one: one.end_pod(key_of("a")), {}, id="nor does a finished pod"
        ),
        pytest.param(
            [placed("a"), placed("b")],
            lambda one: one.delete(key_of("a")),
            {"cpu": 1000, "pods": 1},
            id="nor does a deleted pod",
        ),
        pytest.param(
            [placed("a")],
            lambda one: one.update(placed("a", labels={"new": "label"})),
            {"cpu": 1000, "pods": 1},
            id="an updated pod counts once",
        ),
    ],
)
def test_pods_on_a_node_use_their_requests(
    pods: list[Content], change: Callable[[EmbeddedCluster], object], used: dict[str, int]
) -> None:
    cluster, occupancy = cluster_with(node("n1"), *pods)
    change(cluster)
    assert +occupancy.used["n1"] == used


def test_the_usage_of_a_pod_is_computed_from_its_requests() -> None:
    cluster, occupancy = cluster_with(node("n1"), placed("a", "250m"))
    stored = cluster.get(key_of("a"))
    assert stored is not None
    assert isinstance(stored.object, Pod)
    assert occupancy.taken[stored.object.metadata.uid or ""] == {"cpu": 250, "pods": 1}


def test_pods_of_one_template_may_differ_in_what_their_kubelets_report() -> None:
    cluster, occupancy = cluster_with(node("n1"), pod("a"), pod("b"))
    for stored in cluster.objects(POD):
        asyncio.run(cluster.bind(pod_info(cast(Pod, stored.object)), "n1"))
    assert occupancy.used["n1"] == {"cpu": 2000, "pods": 2}
    resized = {"name": "c", "allocatedResources": {"cpu": "3"}, "resources": {}}
    cluster.server.patch(key_of("b"), {"status": {"containerStatuses": [resized]}})
    assert occupancy.used["n1"] == {"cpu": 4000, "pods": 2}


def test_the_peak_stays_after_pods_are_deleted() -> None:
    cluster, occupancy = cluster_with(node("n1"), placed("a", "2"), placed("b", "1"))
    cluster.delete(key_of("a"))
    assert cpu_of(occupancy) == Usage(
        resource="cpu", requested=1000, peak=3000, allocatable=4000, peak_allocatable=4000
    )


def test_a_peak_stands_beside_what_the_nodes_offered_at_that_time() -> None:
    cluster, occupancy = cluster_with(node("n1"), node("n2"), placed("a", "2"), placed("b", "3"))
    cluster.delete(object_key("v1 Node", "", "n1"))
    cluster.delete(key_of("a"))
    cluster.delete(key_of("b"))
    assert cpu_of(occupancy) == Usage(
        resource="cpu", requested=0, allocatable=4000, peak=5000, peak_allocatable=8000
    )


def test_the_latest_of_equal_peaks_counts() -> None:
    cluster, occupancy = cluster_with(node("n1"), node("n2"), placed("a", "2"))
    cluster.delete(object_key("v1 Node", "", "n2"))
    assert cpu_of(occupancy).peak_allocatable == 4000


def test_pods_on_a_node_that_is_gone_request_nothing_until_it_is_back() -> None:
    cluster, occupancy = cluster_with(node("n1"), node("n2"), placed("a", "2"))
    cluster.delete(object_key("v1 Node", "", "n1"))
    assert cpu_of(occupancy).requested == 0
    cluster.create(node("n1"))
    assert cpu_of(occupancy).requested == 2000


def test_a_resource_that_no_node_offers_any_more_has_its_peak() -> None:
    cluster, occupancy = cluster_with(node("n1"), placed("a", "2"))
    cluster.delete(object_key("v1 Node", "", "n1"))
    assert cpu_of(occupancy) == Usage(
        resource="cpu", requested=0, allocatable=0, peak=2000, peak_allocatable=4000
    )


def test_resources_are_sorted_and_those_without_nodes_are_left_out() -> None:
    allocatable = {"memory": "1Gi", "cpu": "1", "example.com/gpu": "2", "pods": "0"}
    _, occupancy = cluster_with(node("n1", status={"allocatable": allocatable}))
    assert [usage.resource for usage in occupancy.usage()] == ["cpu", "example.com/gpu", "memory"]


def test_a_deleted_node_has_no_capacity() -> None:
    cluster, occupancy = cluster_with(node("n1"), node("n2"))
    cluster.delete(object_key("v1 Node", "", "n1"))
    assert cpu_of(occupancy).allocatable == 4000
    assert "n1" not in occupancy.allocatable


def test_sums_may_exceed_64_bits() -> None:
    whole = {"allocatable": {"memory": "7Ei", "pods": "110"}}
    _, occupancy = cluster_with(node("n1", status=whole), node("n2", status=whole))
    [memory] = [usage for usage in occupancy.usage() if usage.resource == "memory"]
    assert memory.allocatable == 14 * 2**60


@pytest.mark.parametrize(
    ("content", "is_placed"),
    [
        pytest.param(pod("a"), False, id="no node"),
        pytest.param(pod("a", nodeName="n1"), True, id="on a node"),
        pytest.param(pod("a", nodeName="n1", status={"phase": "Failed"}), False, id="failed"),
        pytest.param(node("a"), False, id="not a pod"),
    ],
)
def test_a_placed_pod_has_a_node_and_has_not_ended(content: Content, is_placed: bool) -> None:
    cluster, _ = cluster_with(node("n1"))
    assert (cluster.create(content).placed_pod is not None) is is_placed
