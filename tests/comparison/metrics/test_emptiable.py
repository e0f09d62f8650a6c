"""How many nodes could be emptied, compared with values calculated by hand."""

from typing import Any

import pytest

from bayplan.api.objects import NODE, POD, Node, Pod, decode
from bayplan.comparison.metrics.emptiable import Emptiable
from bayplan.state.pods import PodInfo, pod_info
from tests.comparison.kit import node_with_cpu, pod_with_cpu


def on(node_name: str, name: str, cpu: int = 1, owner: str = "", **spec: Any) -> PodInfo:
    content = pod_with_cpu(name, cpu)
    content["metadata"]["uid"] = name
    content["spec"] |= {"nodeName": node_name, **spec}
    content["status"] = {"phase": "Running"}
    if owner:
        reference = {"apiVersion": "v1", "kind": owner, "name": "o", "uid": "o"}
        content["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    pod = decode(POD, content)
    assert isinstance(pod, Pod)
    return pod_info(pod)


def a_node(name: str, cpu: int = 4, **fields: Any) -> Node:
    content = node_with_cpu(name, cpu)
    content["metadata"]["labels"] = fields.pop("labels", {})
    node = decode(NODE, {**content, "spec": fields})
    assert isinstance(node, Node)
    return node


def measured(nodes: list[Node], pods: list[PodInfo]) -> Emptiable:
    metric = Emptiable()
    for one in nodes:
        metric.node(None, one)
    for one in pods:
        metric.pod(None, one)
    return metric


A, B, C = (a_node(name) for name in "abc")


def test_spread_pods_fit_on_one_node() -> None:
    metric = measured([A, B, C], [on("a", "p"), on("b", "q"), on("c", "r")])
    # The pod of a moves to b, which therefore cannot be emptied. The pod of c moves to b, too.
    assert metric.emptiable() == ["a", "c"]
    assert metric.values(None) == {"nodes_emptiable": 2.0}  # pyright: ignore[reportArgumentType]


def test_full_nodes_cannot_be_emptied() -> None:
    assert measured([A, B], [on("a", "p", 3), on("b", "q", 3)]).emptiable() == []


def test_free_capacity_is_used_once() -> None:
    # The pod of b takes the last free core of a. The pod of c fits nowhere.
    metric = measured([A, B, C], [on("a", "p", 2), on("a", "q"), on("b", "r"), on("c", "s", 4)])
    assert metric.emptiable() == ["b"]


def test_a_node_is_emptied_completely_or_not_at_all() -> None:
    pods = [on("a", "p"), on("a", "q", 2), on("b", "r"), on("b", "s"), on("b", "t")]
    metric = measured([A, B], pods)
    assert metric.emptiable() == []
    assert measured([A, B], pods[:1] + pods[2:]).emptiable() == ["a"]


def test_nodes_without_pods_accept_nothing_and_are_not_counted() -> None:
    assert measured([A, B], [on("a", "p")]).emptiable() == []


@pytest.mark.parametrize("owner", ["DaemonSet", "Node"])
def test_pods_that_start_on_their_node_stay_and_use_capacity(owner: str) -> None:
    daemons = [on(name, f"d{name}", 3, owner) for name in "abc"]
    assert measured([A, B, C], daemons).emptiable() == []
    assert measured([A, B], [*daemons, on("a", "p"), on("b", "q")]).emptiable() == []
    assert measured([A, B], [on("a", "p"), on("b", "q"), on("b", "d", 2, owner)]).emptiable() == [
        "a"
    ]


@pytest.mark.parametrize(
    "other",
    [
        a_node("b", unschedulable=True),
        a_node("b", taints=[{"key": "own", "effect": "NoSchedule"}]),
        a_node("b", labels={"disk": "hdd"}),
    ],
    ids=["cordoned", "tainted", "another label"],
)
def test_a_node_that_rejects_a_pod_does_not_accept_it(other: Node) -> None:
    here = a_node("a", 1, labels={"disk": "ssd"})
    pods = [on("a", "p", nodeSelector={"disk": "ssd"}), on("b", "q", 3)]
    assert measured([here, other], pods).emptiable() == []
    assert measured([here, a_node("b", labels={"disk": "ssd"})], pods).emptiable() == ["a"]


def test_finished_and_deleted_pods_do_not_count() -> None:
    metric = measured([A, B], [on("a", "p"), on("b", "q")])
    metric.pod(on("a", "p"), None)
    assert metric.emptiable() == []
    metric.pod(None, on("a", "p"))
    metric.node(B, None)
    assert metric.emptiable() == []
