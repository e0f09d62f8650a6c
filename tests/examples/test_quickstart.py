"""examples/quickstart: every object is read as intended."""

from typing import Any

import pytest

from bayplan.api.objects import NODE, POD, Node, Pod, decode
from bayplan.api.pod_requests import amounts
from bayplan.state.pods import pod_info
from bayplan.yaml_documents import load_documents
from tests.examples.policies import EXAMPLES


def objects(name: str) -> list[Any]:
    file = EXAMPLES / "quickstart" / name
    return [each.value for each in load_documents(file.read_text(encoding="utf-8"), file.name)]


def of_kind(name: str, kind: str) -> list[Any]:
    contents = [each for each in objects(name) if f"{each['apiVersion']} {each['kind']}" == kind]
    return [decode(kind, each) for each in contents]


def test_the_cluster_has_twelve_nodes_in_three_zones() -> None:
    nodes: list[Node] = of_kind("cluster.yaml", NODE)
    zones = {(node.metadata.labels or {})["topology.kubernetes.io/zone"] for node in nodes}
    assert (len(nodes), sorted(zones)) == (12, ["a", "b", "c"])
    assert all(amounts(node.status.allocatable)["cpu"] for node in nodes)


def test_running_pods_are_on_nodes_of_the_cluster() -> None:
    names = {node.metadata.name for node in of_kind("cluster.yaml", NODE)}
    running: list[Pod] = of_kind("cluster.yaml", POD)
    assert running
    assert {pod.spec.node_name for pod in running} <= names


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "Job", "Pod"])
def test_the_workload_has_every_kind_of_controller(kind: str) -> None:
    assert kind in {each["kind"] for each in objects("workload.yaml")}


def test_pods_of_the_workload_can_be_compiled() -> None:
    templates = [each["spec"].get("template", each) for each in objects("workload.yaml")]
    for template in templates:
        content = {"metadata": {"name": "p", "uid": "u"}, "spec": template["spec"]}
        decoded = decode(POD, content)
        assert isinstance(decoded, Pod)
        assert not pod_info(decoded).shape.errors
