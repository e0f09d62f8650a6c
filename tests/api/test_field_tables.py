"""Paths into objects are checked against the fields that Kubernetes has."""

import pytest

from bayplan.api.field_tables import path_fault


@pytest.mark.parametrize(
    "path",
    [
        "status.nodeInfo.kubeletVersion",
        "status.nodeInfo",
        "status.addresses",
        "status.capacity.cpu",
        "metadata.annotations.rack",
        "spec.podCIDR",
    ],
)
def test_a_path_that_a_node_may_have_is_accepted(path: str) -> None:
    assert path_fault("v1 Node", path) is None


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("status.nodeInf", 'Node.status has no field "nodeInf"; did you mean "nodeInfo"?'),
        ("stats", 'Node has no field "stats"; did you mean "status"?'),
        ("status.addresses.type", "is a list; wanted the list itself, Node.status.addresses"),
        ("spec.podCIDR.ip", "Node.spec.podCIDR is a plain value; it has no field ip"),
    ],
)
def test_another_path_says_where_it_leaves_the_object(path: str, said: str) -> None:
    assert said in str(path_fault("v1 Node", path))


def test_a_pod_has_fields_of_its_own() -> None:
    assert path_fault("v1 Pod", "spec.securityContext.runAsUser") is None
    assert path_fault("v1 Pod", "status.nodeInfo") is not None
