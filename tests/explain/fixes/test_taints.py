"""Taints of special hardware, of the control plane and of broken nodes."""

from typing import Any

import pytest

from bayplan.api.objects import Node, Taint
from bayplan.explain.fixes.edits import Harm
from bayplan.explain.fixes.taints import harm_of_tolerating
from bayplan.testing import node, pod

GPU_NODE = node("g", allocatable={"nvidia.com/gpu": "1"})
PLAIN_NODE = node("n")


@pytest.mark.parametrize(
    ("key", "where", "requests", "harm"),
    [
        ("nvidia.com/gpu", GPU_NODE, {}, None),
        ("nvidia.com/gpu", GPU_NODE, {"nvidia.com/gpu": "1"}, Harm.NONE),
        ("sku", GPU_NODE, {}, Harm.RULE),
        ("accelerator", PLAIN_NODE, {}, None),
        ("cloud.google.com/tpu", PLAIN_NODE, {}, None),
        ("team", PLAIN_NODE, {}, Harm.RULE),
        ("node-role.kubernetes.io/control-plane", PLAIN_NODE, {}, Harm.RISKY),
        ("node.kubernetes.io/not-ready", PLAIN_NODE, {}, None),
        ("karpenter.sh/disrupted", PLAIN_NODE, {}, None),
        ("ToBeDeletedByClusterAutoscaler", PLAIN_NODE, {}, None),
    ],
)
def test_what_it_costs_to_tolerate_a_taint(
    key: str, where: Node, requests: dict[str, Any], harm: Harm | None
) -> None:
    taint = Taint(key=key, effect="NoSchedule")
    assert harm_of_tolerating(pod("p", requests=requests), where, taint) is harm
