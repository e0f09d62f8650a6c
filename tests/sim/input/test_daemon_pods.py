"""DaemonSets: the selected nodes and the fields of their pods."""

from typing import Any

import pytest

from bayplan.adapters.embedded.api_validation import problems
from bayplan.sim.input.controller_pods import DaemonTemplate, daemon_pod, target_node
from tests.kit.manifests import Content, node, pod
from tests.sim.manifests import controller, template

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def tainted(effect: str, key: str = "dedicated") -> Content:
    return node("n1", spec={"taints": [{"key": key, "effect": effect}]})


def requiring(**expression: Any) -> Content:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return template(affinity={"nodeAffinity": {REQUIRED: terms}})


@pytest.mark.parametrize(
    ("pod_template", "there", "expected"),
    [
        pytest.param(template(), node("n1"), True, id="any node"),
        pytest.param(
            template(nodeSelector={"disk": "ssd"}),
            node("n1"),
            False,
            id="a selector that the node does not match",
        ),
        pytest.param(
            template(nodeSelector={"disk": "ssd"}),
            node("n1", labels={"disk": "ssd"}),
            True,
            id="a selector that the node matches",
        ),
        pytest.param(
            requiring(key="disk", operator="In", values=["ssd"]),
            node("n1", labels={"disk": "hdd"}),
            False,
            id="an affinity that the node does not match",
        ),
        pytest.param(
            requiring(key="disk", operator="Exists"),
            node("n1", labels={"disk": "hdd"}),
            True,
            id="an affinity that the node matches",
        ),
        pytest.param(template(nodeName="n2"), node("n1"), False, id="another node's name"),
        pytest.param(template(), tainted("NoSchedule"), False, id="a NoSchedule taint"),
        pytest.param(template(), tainted("NoExecute"), False, id="a NoExecute taint"),
        pytest.param(template(), tainted("PreferNoSchedule"), True, id="a PreferNoSchedule taint"),
        pytest.param(
            template(tolerations=[{"operator": "Exists"}]),
            tainted("NoExecute"),
            True,
            id="a tolerated taint",
        ),
        pytest.param(
            template(),
            node(
                "n1",
                spec={
                    "unschedulable": True,
                    "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
                },
            ),
            True,
            id="a cordon",
        ),
        pytest.param(
            template(),
            tainted("NoSchedule", "node.kubernetes.io/network-unavailable"),
            False,
            id="no network",
        ),
        pytest.param(
            template(hostNetwork=True),
            tainted("NoSchedule", "node.kubernetes.io/network-unavailable"),
            True,
            id="no network, on the host network",
        ),
    ],
)
def test_a_daemon_set_selects_its_nodes(
    pod_template: Content, there: Content, expected: bool
) -> None:
    daemon_template = DaemonTemplate(controller("DaemonSet", template=pod_template))
    assert daemon_template.is_meant_for(there) is expected


def test_a_daemon_pod_requires_its_node() -> None:
    preferences = [{"weight": 1, "preference": {"matchFields": []}}]
    nodes = {REQUIRED: {"nodeSelectorTerms": [{}]}, PREFERRED: preferences}
    daemon = daemon_pod(pod(affinity={"nodeAffinity": nodes, "podAffinity": {}}), "n7")
    affinity = daemon["spec"]["affinity"]
    assert affinity["podAffinity"] == {}
    assert affinity["nodeAffinity"][PREFERRED] == preferences
    assert target_node(daemon) == "n7"
    assert problems(daemon_pod(pod(), "n7")) == []


def test_daemon_pods_tolerate_node_conditions() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    tolerations = daemon_pod(pod(tolerations=[own]), "n7")["spec"]["tolerations"]
    assert [one["key"].removeprefix("node.kubernetes.io/") for one in tolerations] == [
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
    ]
    assert len(daemon_pod(pod(hostNetwork=True), "n7")["spec"]["tolerations"]) == 7


def test_the_target_node_is_read_from_a_daemon_pod() -> None:
    assert target_node(pod(nodeName="n1")) == "n1"
    assert target_node(pod()) is None
    other = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": []}, {"matchFields": []}]}}
    assert target_node(pod(affinity={"nodeAffinity": other})) is None
