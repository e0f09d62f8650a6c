"""Nominations: which pods are nominated on which node."""

from bayplan.framework.handle import PodNominator
from bayplan.framework.types import NominatingMode, Nomination
from bayplan.queue.nominator import Nominator
from bayplan.state.pods import PodInfo
from bayplan.testing import pod


def to(node_name: str) -> Nomination:
    return Nomination(NominatingMode.OVERRIDE, node_name)


def names(nominator: PodNominator, node_name: str) -> list[str]:
    return [pods.name for pods in nominator.nominated_pods_for_node(node_name)]


def test_a_nomination_comes_from_the_status() -> None:
    nominator = Nominator()
    nominator.add_nominated_pod(pod("a", nominated_node="n1"))
    assert names(nominator, "n1") == ["a"]
    assert nominator.nominated_nodes() == ["n1"]


def test_an_override_wins_over_the_status() -> None:
    nominator = Nominator()
    nominator.add_nominated_pod(pod("a", nominated_node="n1"), to("n2"))
    assert nominator.nominated_nodes() == ["n2"]


def test_the_noop_mode_keeps_the_nomination_of_the_status() -> None:
    nominator = Nominator()
    nominator.add_nominated_pod(pod("a", nominated_node="n1"), Nomination())
    assert nominator.nominated_nodes() == ["n1"]


def test_an_empty_override_clears_the_nomination() -> None:
    nominator, one = Nominator(), pod("a", nominated_node="n1")
    nominator.add_nominated_pod(one)
    nominator.add_nominated_pod(one, to(""))
    assert nominator.nominated_nodes() == []


def test_a_pod_is_nominated_to_at_most_one_node() -> None:
    nominator, one = Nominator(), pod("a")
    nominator.add_nominated_pod(one, to("n1"))
    nominator.add_nominated_pod(one, to("n2"))
    assert names(nominator, "n1") == []
    assert names(nominator, "n2") == ["a"]
    assert nominator.nominated_node(one) == "n2"


def test_deleting_twice_is_harmless() -> None:
    nominator, one = Nominator(), pod("a", nominated_node="n1")
    nominator.add_nominated_pod(one)
    nominator.delete_nominated_pod_if_exists(one)
    nominator.delete_nominated_pod_if_exists(one)
    assert nominator.nominated_nodes() == []
    assert nominator.nominated_node(one) == ""


def test_pods_are_listed_in_the_order_they_were_nominated() -> None:
    nominator = Nominator()
    for name in ("b", "c", "a"):
        nominator.add_nominated_pod(pod(name, nominated_node="n1"))
    assert names(nominator, "n1") == ["b", "c", "a"]


def test_an_update_without_nominations_keeps_the_one_in_memory() -> None:
    nominator, old = Nominator(), pod("a")
    nominator.add_nominated_pod(old, to("n1"))
    new = pod("a", labels={"changed": "yes"})
    nominator.update_nominated_pod(old, new)
    assert nominator.nominated_pods_for_node("n1") == [new]


def test_an_update_of_a_pod_that_is_not_nominated_adds_no_nomination() -> None:
    nominator = Nominator()
    nominator.update_nominated_pod(pod("a"), pod("a"))
    assert nominator.nominated_nodes() == []


def test_an_update_follows_the_status() -> None:
    nominator, old = Nominator(), pod("a", nominated_node="n1")
    nominator.add_nominated_pod(old)
    nominator.update_nominated_pod(old, pod("a", nominated_node="n2"))
    assert nominator.nominated_nodes() == ["n2"]
    nominator.update_nominated_pod(pod("a", nominated_node="n2"), pod("a"))
    assert nominator.nominated_nodes() == []


def test_a_pod_on_a_node_is_never_listed() -> None:
    nominator = Nominator()
    nominator.add_nominated_pod(pod("a", nominated_node="n1", node="n2"))
    assert nominator.nominated_nodes() == []


def test_a_nomination_is_listed_by_the_state_of_the_pod_in_the_api() -> None:
    pods: dict[str, PodInfo] = {
        "uid-default/bound": pod("bound", node="n2"),
        "uid-default/waits": pod("waits"),
    }
    nominator = Nominator(pods.get)
    for name in ("bound", "gone", "waits"):
        nominator.add_nominated_pod(pod(name, nominated_node="n1"))
    assert names(nominator, "n1") == ["waits"]


def test_a_returned_list_of_nominations_is_a_copy() -> None:
    nominator = Nominator()
    nominator.add_nominated_pod(pod("a", nominated_node="n1"))
    nominator.nominated_pods_for_node("n1").clear()
    assert names(nominator, "n1") == ["a"]
