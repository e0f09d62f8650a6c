"""A cluster without a scheduler."""

import pytest

from bayplan.framework.handle import UndeclaredKind
from bayplan.framework.types import Nomination
from bayplan.state.nodes import LoanEnded
from bayplan.testing import SampleCluster, cluster, handle, node, pod


def contents(sample: SampleCluster) -> list[str]:
    return [repr(info) for info in sample.lend().nodes.infos()]


def test_a_seed_determines_the_cluster() -> None:
    assert contents(cluster(5, 9, seed=3)) == contents(cluster(5, 9, seed=3))
    assert contents(cluster(5, 9, seed=3)) != contents(cluster(5, 9, seed=4))


def test_the_requested_numbers_of_nodes_and_pods_are_drawn() -> None:
    sample = cluster(nodes=50, pods=100, seed=1)
    assert sample.lend().node_count == 50
    assert len(sample.cache.pods()) == 100


def test_passed_nodes_and_pods_are_used_unchanged() -> None:
    sample = cluster([node("a"), node("b")], [pod("p", node="a")])
    assert [len(info.pods) for info in sample.lend().nodes.infos()] == [1, 0]


def test_pods_are_drawn_onto_passed_nodes() -> None:
    assert {each.node_name for each in cluster([node("a")], 5).cache.pods()} == {"a"}


def test_without_nodes_no_pods_are_drawn() -> None:
    assert not cluster(0, 5).cache.pods()


def test_a_pod_without_a_node_cannot_be_added() -> None:
    with pytest.raises(AssertionError, match="give it one with node="):
        cluster([node("a")], [pod("p")])


def test_a_new_loan_ends_the_previous_one() -> None:
    sample = cluster(2, 0)
    nodes = sample.lend().nodes
    sample.lend()
    with pytest.raises(LoanEnded):
        nodes.names()


def test_adding_ends_the_loan() -> None:
    result = cluster(1, 0)
    result.lend()
    result.add(node("late"))
    assert result.lent_snapshot is None
    assert result.lend().node_count == 2


def test_a_handle_reads_the_cluster() -> None:
    sample = cluster(3, 0, seed=8)
    plugin_handle = handle(sample, kinds=["v1 Namespace"])
    sample.clock.advance_to(5.0)
    snapshot = sample.lend()
    assert (plugin_handle.seed, plugin_handle.now_seconds, plugin_handle.snapshot) == (
        8,
        5.0,
        snapshot,
    )
    namespaces = [each.metadata.name for each in plugin_handle.objects("v1 Namespace").list()]
    assert namespaces == ["default", "other"]


def test_a_handle_lists_declared_kinds_only() -> None:
    with pytest.raises(UndeclaredKind):
        handle().objects("v1 Service")


def test_objects_are_added_as_in_a_manifest() -> None:
    sample = SampleCluster().put("v1 Service", {"metadata": {"name": "s", "namespace": "n"}})
    plugin_handle = handle(sample, kinds=["v1 Service"])
    assert plugin_handle.objects("v1 Service").get("s", "n") is not None


def test_requests_of_plugins_are_recorded() -> None:
    sample = SampleCluster()
    plugin_handle, waiting = handle(sample), pod("p")
    plugin_handle.activate([waiting])
    plugin_handle.emit(waiting, "Normal", "Reason", "Action", "note")
    assert sample.activated == [waiting]
    assert [event.note for event in sample.emitted] == ["note"]
    assert plugin_handle.waiting_pods() == []
    assert plugin_handle.waiting_pod("x") is None
    assert not plugin_handle.reject_waiting_pod("x")


def test_nominations_are_those_of_the_cluster() -> None:
    sample = SampleCluster()
    plugin_handle = handle(sample)
    plugin_handle.nominator.add_nominated_pod(pod("p", nominated_node="a"), Nomination())
    assert sample.nominator.nominated_nodes() == ["a"]


def test_a_handle_creates_plugins_of_the_tree() -> None:
    made = handle().make("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated"}})
    assert made.name == "NodeResourcesFit"
