"""The cluster events of a change, and their order."""

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


def test_adding_and_removing_a_node_are_events() -> None:
    assert node_labels(None, bare_node()) == ["NodeAdd"]
    assert node_labels(bare_node(), None) == ["NodeDelete"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(bare_node(), bare_node(), [], id="nothing"),
        pytest.param(bare_node(labels={}), bare_node(), [], id="empty labels equal missing labels"),
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
            id="the same quantity in another notation",
        ),
        pytest.param(
            bare_node(capacity={"cpu": "1"}),
            bare_node(),
            [],
            id="a change of capacity has no event",
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
            id="no value equals the empty value",
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
            id="uncordoned and without its taint",
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
            id="a policy without fields",
        ),
        pytest.param(
            bare_node(spec={"podPreemptionPolicy": {}}),
            bare_node(spec={"podPreemptionPolicy": {"disableResizePreemption": []}}),
            [],
            id="an empty list of policies",
        ),
    ],
)
def test_events_of_an_update_of_a_node(old: Node, new: Node, expected: list[str]) -> None:
    assert node_labels(old, new) == [f"Node{action}" for action in expected]


def test_events_of_several_changes_are_in_upstreams_order() -> None:
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
        pytest.param(None, bare_pod(), [], id="a new pod without a node"),
        pytest.param(bare_pod(), None, [], id="a deleted pod without a node"),
        pytest.param(None, bare_pod(nodeName="n1"), ["AssignedPodAdd"], id="a new pod on a node"),
        pytest.param(bare_pod(), bare_pod(nodeName="n1"), ["AssignedPodAdd"], id="bound"),
        pytest.param(
            bare_pod(status=NOMINATED),
            bare_pod(nodeName="n2"),
            ["AssignedPodAdd"],
            id="bound elsewhere",
        ),
        pytest.param(
            bare_pod(nodeName="n1"), None, ["AssignedPodDelete"], id="deleted from its node"
        ),
        pytest.param(
            bare_pod(status=NOMINATED), None, ["AssignedPodDelete"], id="finished on its node"
        ),
    ],
)
def test_adding_and_removing_pods_are_events(
    old: PodInfo | None, new: PodInfo | None, expected: list[str]
) -> None:
    assert pod_labels(old, new) == expected


CLAIM = {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "p-c"}]}
EXTENDED = {"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": []}}
TOLERATIONS = [{"operator": "Exists"}]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param({}, {"labels": {"a": "1"}}, ["UpdatePodLabel"], id="a label"),
        pytest.param({"cpu": "2"}, {"cpu": "1"}, ["UpdatePodScaleDown"], id="a smaller request"),
        pytest.param({"cpu": "1"}, {"cpu": "2"}, ["UpdatePodScaleUp"], id="a larger request"),
        pytest.param({"cpu": "1"}, {}, ["UpdatePodScaleDown"], id="no request any more"),
        pytest.param({"cpu": "1"}, {"cpu": "1000m"}, ["Update"], id="an equal request"),
        pytest.param(
            {"cpu": "1"},
            {"overhead": {"memory": "1"}},
            ["UpdatePodScaleDown", "UpdatePodScaleUp"],
            id="one smaller and one larger request",
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
        pytest.param(
            {},
            {"status": EXTENDED},
            ["UpdatePodGeneratedResourceClaim"],
            id="an extended resource claim",
        ),
        pytest.param({"status": {"phase": "Pending"}}, {}, ["Update"], id="any other change"),
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
            id="several changes, in upstream's order",
        ),
    ],
)
@pytest.mark.parametrize(("node_name", "resource"), [(None, "TargetPod"), ("n1", "AssignedPod")])
def test_events_of_an_update_of_a_pod(
    old: dict[str, Any],
    new: dict[str, Any],
    expected: list[str],
    node_name: str | None,
    resource: str,
) -> None:
    result = pod_labels(bare_pod(nodeName=node_name, **old), bare_pod(nodeName=node_name, **new))
    assert result == [f"{resource}{action}" for action in expected]


@pytest.mark.parametrize(
    ("new", "is_withdrawn"),
    [
        pytest.param({}, True, id="cleared"),
        pytest.param({"nominatedNodeName": "n2"}, True, id="moved"),
        pytest.param(NOMINATED, False, id="unchanged"),
    ],
)
def test_a_withdrawn_nomination_frees_resources(new: dict[str, str], is_withdrawn: bool) -> None:
    freed = ["AssignedPodDelete"] if is_withdrawn else []
    assert pod_labels(bare_pod(status=NOMINATED), bare_pod(status=new)) == [
        "TargetPodUpdate",
        *freed,
    ]


def test_a_new_nomination_frees_nothing() -> None:
    assert pod_labels(bare_pod(), bare_pod(status=NOMINATED)) == ["TargetPodUpdate"]


def test_a_placed_pod_has_no_nomination_to_withdraw() -> None:
    old, new = bare_pod(status=NOMINATED, nodeName="n1"), bare_pod(nodeName="n1")
    assert pod_labels(old, new) == ["AssignedPodUpdate"]
