"""Nominations: which pods are nominated on which node."""

from collections.abc import Callable

import pytest

from bayplan.framework.types import NominatingMode, Nomination
from bayplan.queue.nominator import Nominator
from bayplan.state.pods import PodInfo
from bayplan.testing import pod

#: Pods without a nomination, and with one in their status.
FREE, ON_N1, ON_N2 = pod("a"), pod("a", nominated_node="n1"), pod("a", nominated_node="n2")

Call = Callable[[Nominator], None]


def add(one: PodInfo, nomination: Nomination | None = None) -> Call:
    return lambda nominator: nominator.add_nominated_pod(one, nomination)


def to(node_name: str) -> Nomination:
    return Nomination(NominatingMode.OVERRIDE, node_name)


def update(old: PodInfo, new: PodInfo) -> Call:
    return lambda nominator: nominator.update_nominated_pod(old, new)


def delete(nominator: Nominator) -> None:
    nominator.delete_nominated_pod_if_exists(FREE)


@pytest.mark.parametrize(
    ("calls", "node_name"),
    [
        pytest.param([add(ON_N1)], "n1", id="the status nominates"),
        pytest.param([add(ON_N1, to("n2"))], "n2", id="an override wins over the status"),
        pytest.param([add(ON_N1, Nomination())], "n1", id="noop keeps what the status says"),
        pytest.param([add(ON_N1), add(ON_N1, to(""))], "", id="an empty override clears"),
        pytest.param([add(FREE, to("n1")), add(FREE, to("n2"))], "n2", id="one node at most"),
        pytest.param([add(ON_N1), delete, delete], "", id="deleting twice is harmless"),
        pytest.param([update(FREE, FREE)], "", id="an update alone nominates nothing"),
        pytest.param([add(FREE, to("n1")), update(FREE, FREE)], "n1", id="an update keeps"),
        pytest.param([add(ON_N1), update(ON_N1, ON_N2)], "n2", id="an update follows the status"),
        pytest.param([add(ON_N1), update(ON_N1, FREE)], "", id="an update clears"),
        pytest.param([add(pod("a", nominated_node="n1", node="n2"))], "", id="not of a placed pod"),
    ],
)
def test_a_pod_is_nominated_to_the_node_that_came_last(calls: list[Call], node_name: str) -> None:
    nominator = Nominator()
    for call in calls:
        call(nominator)
    assert nominator.nominated_nodes() == [node_name] * bool(node_name)
    for each in ("n1", "n2"):
        names = [one.name for one in nominator.nominated_pods_for_node(each)]
        assert names == ["a"] * (each == node_name)
    assert nominator.nominated_node(FREE) == node_name


def test_pods_are_listed_in_the_order_they_were_nominated_as_a_copy() -> None:
    nominator = Nominator()
    for name in ("b", "c", "a"):
        nominator.add_nominated_pod(pod(name, nominated_node="n1"))
    for _ in range(2):
        pods = nominator.nominated_pods_for_node("n1")
        assert [one.name for one in pods] == ["b", "c", "a"]
        pods.clear()


def test_an_update_replaces_the_pod_and_keeps_the_nomination_in_memory() -> None:
    nominator, new = Nominator(), pod("a", labels={"changed": "yes"})
    nominator.add_nominated_pod(FREE, to("n1"))
    nominator.update_nominated_pod(FREE, new)
    assert nominator.nominated_pods_for_node("n1") == [new]


def test_a_nomination_is_listed_by_the_state_of_the_pod_in_the_api() -> None:
    pods: dict[str, PodInfo] = {
        "uid-default/bound": pod("bound", node="n2"),
        "uid-default/waits": pod("waits"),
    }
    nominator = Nominator(pods.get)
    for name in ("bound", "gone", "waits"):
        nominator.add_nominated_pod(pod(name, nominated_node="n1"))
    assert [one.name for one in nominator.nominated_pods_for_node("n1")] == ["waits"]
