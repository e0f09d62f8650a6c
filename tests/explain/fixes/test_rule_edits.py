"""Edits that relax the rules of a pod."""

from typing import Any

from bayplan.explain.explainer import explain_pod
from bayplan.testing import node, pod
from tests.model.clusters import model_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def steps(waiting: Any) -> list[tuple[str, ...]]:
    nodes = [node("n1", labels={"disk": "hdd"}), node("n2", labels={"disk": "hdd"})]
    nodes.append(node("n3", labels={"disk": "nvme"}))
    explanation = explain_pod(model_of(nodes, [waiting]), "default/p")
    return [fix.steps for fix in explanation.fixes]


def test_a_term_is_widened_by_the_most_frequent_value_before_it_is_dropped() -> None:
    expression = {"key": "disk", "operator": "In", "values": ["ssd"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    rule = {"nodeAffinity": {REQUIRED: terms}}
    assert steps(pod("p", affinity=rule))[:3] == [
        ("add hdd to disk In (ssd) in the node affinity",),
        ("add nvme to disk In (ssd) in the node affinity",),
        ("drop the required node affinity (disk In (ssd))",),
    ]


def test_a_node_selector_is_changed_to_a_value_that_nodes_have() -> None:
    assert steps(pod("p", node_selector={"disk": "ssd"}))[:3] == [
        ("change disk=ssd to disk=hdd in the node selector",),
        ("change disk=ssd to disk=nvme in the node selector",),
        ("drop disk=ssd from the node selector",),
    ]
