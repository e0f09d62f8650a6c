"""Nodes get numbers before their names; nodes that are referenced by name are refused."""

from typing import Any

import pytest

from bayplan.comparison.renumbering import name_users, renumbered
from bayplan.objects.keys import object_key
from bayplan.sim.input.workload import Step, Verb, Workload, create_step
from tests.comparison.kit import node_with_cpu, pod_with_cpu

NODES = tuple(node_with_cpu(f"n{i:02}") for i in range(12))
HOSTNAME = "kubernetes.io/hostname"


def names(workload: Workload) -> list[str]:
    return [one["metadata"]["name"] for one in workload.initial if one["kind"] == "Node"]


def test_each_node_gets_a_number_before_its_name() -> None:
    numbered = names(renumbered(Workload(initial=NODES), 1))
    assert [name.partition("-")[2] for name in numbered] == names(Workload(initial=NODES))
    assert sorted(name.partition("-")[0] for name in numbered) == [f"{i:02}" for i in range(12)]


def test_the_seed_determines_the_numbers() -> None:
    one, same, other = (renumbered(Workload(initial=NODES), seed) for seed in (1, 1, 2))
    assert names(one) == names(same) != names(other)


def test_numbers_do_not_depend_on_the_order_of_the_nodes() -> None:
    one, other = Workload(initial=NODES), Workload(initial=NODES[::-1])
    assert sorted(names(renumbered(one, 1))) == sorted(names(renumbered(other, 1)))


def labelled(name: str, **labels: str) -> dict[str, Any]:
    return {**node_with_cpu(name), "metadata": {"name": name, "labels": labels}}


def test_only_the_hostname_label_changes_with_the_name() -> None:
    first = labelled("a", **{HOSTNAME: "a", "zone": "a"})
    [result] = renumbered(Workload(initial=(first,)), 1).initial
    assert result["metadata"] == {"name": "0-a", "labels": {HOSTNAME: "0-a", "zone": "a"}}
    assert result["status"] == first["status"]


def test_a_hostname_label_that_differs_from_the_name_stays() -> None:
    [result] = renumbered(Workload(initial=(labelled("a", **{HOSTNAME: "b"}),)), 1).initial
    assert result["metadata"]["labels"] == {HOSTNAME: "b"}


def bound(name: str, node_name: str) -> dict[str, Any]:
    pod = pod_with_cpu(name)
    return {**pod, "spec": {**pod["spec"], "nodeName": node_name}}


@pytest.mark.parametrize(
    ("workload", "users"),
    [
        pytest.param(Workload(initial=(*NODES, pod_with_cpu("a"))), [], id="no reference"),
        pytest.param(
            Workload(initial=(*NODES, pod_with_cpu("n01"))), [], id="pod with the name of a node"
        ),
        pytest.param(Workload(initial=(*NODES, bound("a", "n01"))), ["Pod default/a"], id="bound"),
        pytest.param(Workload(initial=(*NODES, bound("a", "n99"))), [], id="bound to another node"),
        pytest.param(
            Workload(
                initial=(
                    *NODES,
                    {
                        "apiVersion": "storage.k8s.io/v1",
                        "kind": "CSINode",
                        "metadata": {"name": "x", "ownerReferences": [{"name": "n01"}]},
                    },
                )
            ),
            ["CSINode x"],
            id="nested",
        ),
        pytest.param(
            Workload(initial=NODES, followers={"job": (bound("b", "n02"),)}),
            ["Pod default/b"],
            id="follower of a job",
        ),
        pytest.param(
            Workload(initial=NODES, steps=(create_step(1, bound("c", "n03")),)),
            ["create Pod default/c"],
            id="pod of a step",
        ),
        pytest.param(
            Workload(
                initial=NODES,
                steps=(Step(at_seconds=1, verb=Verb.DELETE, key=object_key("v1 Node", "", "n01")),),
            ),
            ["delete Node n01"],
            id="deletion of a node",
        ),
    ],
)
def test_objects_that_reference_a_node_by_name_are_found(
    workload: Workload, users: list[str]
) -> None:
    assert list(name_users(workload)) == users
