"""Which cluster events a change amounts to, and in which order they are announced."""

from typing import Any

import pytest

from bayplan.api.objects import NODE, POD, Node, Pod, decode
from bayplan.framework.object_changes import node_events, pod_events
from bayplan.state.pods import PodInfo, pod_info


def bare_node(
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    spec: dict[str, Any] | None = None,
    **status: Any,
) -> Node:
    metadata = {"name": "n1", "labels": labels, "annotations": annotations}
    node = decode(NODE, {"metadata": metadata, "spec": spec or {}, "status": status})
    assert isinstance(node, Node)
    return node


def bare_pod(
    labels: dict[str, str] | None = None,
    status: dict[str, Any] | None = None,
    cpu: str | None = None,
    **spec: Any,
) -> PodInfo:
    resources = {"requests": {"cpu": cpu}} if cpu else None
    spec = {"containers": [{"name": "c", "resources": resources}], **spec}
    metadata = {"name": "p", "uid": "uid-p", "labels": labels}
    pod = decode(POD, {"metadata": metadata, "spec": spec, "status": status or {}})
    assert isinstance(pod, Pod)
    return pod_info(pod)


def node_labels(old: Node | None, new: Node | None) -> list[str]:
    return [event.label for event in node_events(old, new)]


def pod_labels(old: PodInfo | None, new: PodInfo | None) -> list[str]:
    return [event.label for event in pod_events(old, new)]


# ---- nodes ---------------------------------------------------------------------------------

CORDON_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def test_a_node_comes_and_goes() -> None:
    assert node_labels(None, bare_node()) == ["NodeAdd"]
    assert node_labels(bare_node(), None) == ["NodeDelete"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(bare_node(), bare_node(), [], id="nothing"),
        pytest.param(bare_node(labels={}), bare_node(), [], id="no labels are no labels"),
        pytest.param(bare_node(), bare_node({"a": "1"}), ["UpdateNodeLabel"], id="a label"),
        pytest.param(
            bare_node(), bare_node(None, {"a": "1"}), ["UpdateNodeAnnotation"], id="an annotation"
        ),
        pytest.param(
            bare_node(allocatable={"cpu": "1"}),
            bare_node(allocatable={"cpu": "2"}),
            ["UpdateNodeAllocatable"],
            id="allocatable",
        ),
        pytest.param(
            bare_node(allocatable={"cpu": "1", "memory": "1024Mi"}),
            bare_node(allocatable={"cpu": "1000m", "memory": "1Gi"}),
            [],
            id="the same quantity, spelt otherwise",
        ),
        pytest.param(
            bare_node(capacity={"cpu": "1"}), bare_node(), [], id="capacity is nobody's concern"
        ),
        pytest.param(
            bare_node(),
            bare_node(spec={"taints": [CORDON_TAINT]}),
            ["UpdateNodeTaint"],
            id="a taint",
        ),
        pytest.param(
            bare_node(spec={"taints": [{**CORDON_TAINT, "value": ""}]}),
            bare_node(spec={"taints": [{**CORDON_TAINT, "value": None}]}),
            [],
            id="no value is the empty one",
        ),
        pytest.param(
            bare_node(spec={"unschedulable": True}),
            bare_node(spec={"unschedulable": False}),
            ["UpdateNodeTaint"],
            id="uncordoned",
        ),
        pytest.param(bare_node(), bare_node(spec={"unschedulable": True}), [], id="cordoned"),
        pytest.param(
            bare_node(spec={"unschedulable": True, "taints": [CORDON_TAINT]}),
            bare_node(),
            ["UpdateNodeTaint", "UpdateNodeTaint"],
            id="uncordoned, and its taint is gone too",
        ),
        pytest.param(
            bare_node(conditions=[{"type": "Ready", "status": "True", "lastHeartbeatTime": "a"}]),
            bare_node(conditions=[{"type": "Ready", "status": "True", "lastHeartbeatTime": "b"}]),
            [],
            id="a heartbeat",
        ),
        pytest.param(
            bare_node(conditions=[{"type": "Ready", "status": "True"}]),
            bare_node(conditions=[{"type": "Ready", "status": "False"}]),
            ["UpdateNodeCondition"],
            id="a condition",
        ),
        pytest.param(
            bare_node(),
            bare_node(declaredFeatures=["F"]),
            ["UpdateNodeDeclaredFeature"],
            id="a feature",
        ),
        pytest.param(
            bare_node(),
            bare_node(spec={"podPreemptionPolicy": {}}),
            ["UpdateNodePreemptionPolicy"],
            id="a policy, though it says nothing",
        ),
        pytest.param(
            bare_node(spec={"podPreemptionPolicy": {}}),
            bare_node(spec={"podPreemptionPolicy": {"disableResizePreemption": []}}),
            [],
            id="nor does an empty list",
        ),
    ],
)
def test_which_events_an_update_of_a_node_announces(
    old: Node, new: Node, expected: list[str]
) -> None:
    assert node_labels(old, new) == [f"Node{action}" for action in expected]


def test_all_at_once_comes_in_upstreams_order() -> None:
    spec = {"taints": [CORDON_TAINT], "podPreemptionPolicy": {"disableResizePreemption": ["a"]}}
    ready = [{"type": "Ready", "status": "True"}]
    new = bare_node(
        {"a": "1"},
        {"b": "2"},
        spec,
        allocatable={"cpu": "1"},
        conditions=ready,
        declaredFeatures=["F"],
    )
    assert node_labels(bare_node(spec={"unschedulable": True}), new) == [
        "NodeUpdateNodeTaint",
        "NodeUpdateNodeAllocatable",
        "NodeUpdateNodeLabel",
        "NodeUpdateNodeTaint",
        "NodeUpdateNodeCondition",
        "NodeUpdateNodeAnnotation",
        "NodeUpdateNodePreemptionPolicy",
        "NodeUpdateNodeDeclaredFeature",
    ]


# ---- pods ----------------------------------------------------------------------------------

NOMINATED = {"nominatedNodeName": "n1"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, bare_pod(), [], id="a pod that waits is no news"),
        pytest.param(bare_pod(), None, [], id="nor is its end"),
        pytest.param(None, bare_pod(nodeName="n1"), ["AssignedPodAdd"], id="seen on a node"),
        pytest.param(bare_pod(), bare_pod(nodeName="n1"), ["AssignedPodAdd"], id="bound"),
        pytest.param(
            bare_pod(status=NOMINATED),
            bare_pod(nodeName="n2"),
            ["AssignedPodAdd"],
            id="bound elsewhere",
        ),
        pytest.param(bare_pod(nodeName="n1"), None, ["AssignedPodDelete"], id="gone from its node"),
        pytest.param(
            bare_pod(status=NOMINATED), None, ["AssignedPodDelete"], id="its room is free"
        ),
    ],
)
def test_pods_come_and_go(old: PodInfo | None, new: PodInfo | None, expected: list[str]) -> None:
    assert pod_labels(old, new) == expected


CLAIM = {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "p-c"}]}
EXTENDED = {"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": []}}
TOLERATIONS = [{"operator": "Exists"}]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param({}, {"labels": {"a": "1"}}, ["UpdatePodLabel"], id="a label"),
        pytest.param({"cpu": "2"}, {"cpu": "1"}, ["UpdatePodScaleDown"], id="less"),
        pytest.param({"cpu": "1"}, {"cpu": "2"}, ["UpdatePodScaleUp"], id="more"),
        pytest.param({"cpu": "1"}, {}, ["UpdatePodScaleDown"], id="none"),
        pytest.param({"cpu": "1"}, {"cpu": "1000m"}, ["Update"], id="as much"),
        pytest.param(
            {"cpu": "1"},
            {"overhead": {"memory": "1"}},
            ["UpdatePodScaleDown", "UpdatePodScaleUp"],
            id="less of one, more of another",
        ),
        pytest.param({}, {"tolerations": TOLERATIONS}, ["UpdatePodToleration"], id="a toleration"),
        pytest.param(
            {"schedulingGates": [{"name": "a"}, {"name": "b"}]},
            {"schedulingGates": [{"name": "b"}]},
            ["Update"],
            id="one gate of two",
        ),
        pytest.param(
            {"schedulingGates": [{"name": "b"}]},
            {"schedulingGates": []},
            ["UpdatePodSchedulingGatesEliminated"],
            id="the last gate",
        ),
        pytest.param({}, {"status": CLAIM}, ["UpdatePodGeneratedResourceClaim"], id="a claim"),
        pytest.param({}, {"status": EXTENDED}, ["UpdatePodGeneratedResourceClaim"], id="for DRA"),
        pytest.param({"status": {"phase": "Pending"}}, {}, ["Update"], id="anything else"),
        pytest.param(
            {"schedulingGates": [{"name": "b"}], "cpu": "2"},
            {"labels": {"a": "1"}, "cpu": "1", "tolerations": TOLERATIONS, "status": CLAIM},
            [
                "UpdatePodLabel",
                "UpdatePodScaleDown",
                "UpdatePodSchedulingGatesEliminated",
                "UpdatePodToleration",
                "UpdatePodGeneratedResourceClaim",
            ],
            id="all at once, in upstream's order",
        ),
    ],
)
@pytest.mark.parametrize(("node_name", "resource"), [(None, "TargetPod"), ("n1", "AssignedPod")])
def test_which_events_an_update_of_a_pod_announces(
    old: dict[str, Any],
    new: dict[str, Any],
    expected: list[str],
    node_name: str | None,
    resource: str,
) -> None:
    result = pod_labels(bare_pod(nodeName=node_name, **old), bare_pod(nodeName=node_name, **new))
    assert result == [f"{resource}{action}" for action in expected]


@pytest.mark.parametrize(
    ("new", "given_up"),
    [
        pytest.param({}, True, id="cleared"),
        pytest.param({"nominatedNodeName": "n2"}, True, id="moved"),
        pytest.param(NOMINATED, False, id="kept"),
    ],
)
def test_a_nomination_given_up_frees_room_for_others(new: dict[str, str], given_up: bool) -> None:
    freed = ["AssignedPodDelete"] if given_up else []
    assert pod_labels(bare_pod(status=NOMINATED), bare_pod(status=new)) == [
        "TargetPodUpdate",
        *freed,
    ]


def test_a_new_nomination_frees_nothing() -> None:
    assert pod_labels(bare_pod(), bare_pod(status=NOMINATED)) == ["TargetPodUpdate"]


def test_a_placed_pod_has_no_nomination_to_give_up() -> None:
    old, new = bare_pod(status=NOMINATED, nodeName="n1"), bare_pod(nodeName="n1")
    assert pod_labels(old, new) == ["AssignedPodUpdate"]
