"""Pods and nodes from keyword arguments."""

import pytest

from bayplan.api.objects import HOSTNAME_LABEL, ZONE_LABEL, DecodeError, Taint, Toleration
from bayplan.testing import api_pod, node, pod


def test_all_arguments_have_defaults() -> None:
    assert (pod().key, pod().uid) == ("default/pod", "uid-default/pod")
    assert pod().requests == {}
    assert node().metadata.labels == {HOSTNAME_LABEL: "node"}


def test_the_uid_is_derived_from_the_name() -> None:
    assert pod("a").uid == pod("a", cpu=1).uid
    assert pod("a").uid != pod("a", namespace="other").uid
    assert pod("a", uid="x").uid == "x"


def test_requests_are_those_of_the_container() -> None:
    result = pod("p", cpu="500m", memory="1Gi", requests={"nvidia.com/gpu": 2})
    assert result.requests == {"cpu": 500, "memory": 1 << 30, "nvidia.com/gpu": 2}


def test_complex_fields_have_the_form_of_a_manifest_or_of_structs() -> None:
    plain = pod("p", tolerations=[{"key": "gpu", "operator": "Exists"}])
    typed = pod("p", tolerations=[Toleration(key="gpu", operator="Exists")])
    assert plain.shape is typed.shape


def test_an_invalid_field_is_refused() -> None:
    with pytest.raises(DecodeError, match=r"spec\.tolerations"):
        pod("p", tolerations=[{"key": 3}])


def test_a_container_has_its_own_requests() -> None:
    with pytest.raises(AssertionError, match="cpu belongs to the containers"):
        pod("p", cpu=1, containers=[{"name": "c"}])


def test_a_pod_is_created_on_a_node_or_pending() -> None:
    assert pod("p", node="a").node_name == "a"
    assert pod("p").node_name == ""
    assert pod("p", nominated_node="a").nominated_node_name == "a"
    assert pod("p", terminating=True).is_terminating


def test_gates_and_ports_have_short_forms() -> None:
    result = api_pod("p", gates=["example.com/a"], host_ports=[80])
    assert [gate.name for gate in result.spec.scheduling_gates or ()] == ["example.com/a"]
    assert [port.port for port in pod("p", host_ports=[80]).shape.host_ports] == [80]


def test_further_fields_are_merged_with_the_named_ones() -> None:
    result = api_pod("p", priority=3, spec={"hostNetwork": True}, status={"phase": "Running"})
    assert (result.spec.priority, result.spec.host_network, result.status.phase) == (
        3,
        True,
        "Running",
    )


def test_taints_have_the_syntax_of_kubectl() -> None:
    result = node("a", taints=["gpu=a100:NoSchedule", "old:NoExecute"])
    assert result.spec.taints == (
        Taint(key="gpu", value="a100", effect="NoSchedule"),
        Taint(key="old", effect="NoExecute"),
    )


def test_a_taint_without_an_effect_is_refused() -> None:
    with pytest.raises(AssertionError, match="wanted a taint such as"):
        node("a", taints=["gpu"])


def test_a_node_has_allocatable_amounts_and_labels() -> None:
    result = node("a", cpu=8, memory="32Gi", allocatable={"nvidia.com/gpu": 4}, zone="z1")
    assert result.status.allocatable == {
        "cpu": 8,
        "memory": "32Gi",
        "pods": 110,
        "nvidia.com/gpu": 4,
    }
    assert (result.metadata.labels or {})[ZONE_LABEL] == "z1"


def test_images_and_declared_fields_can_be_passed() -> None:
    result = node("a", images={"web": 5}, declared={"status.nodeInfo.osImage": "x"})
    assert [(i.names, i.size_bytes) for i in result.status.images or ()] == [(("web",), 5)]
    assert result.declared == {"status.nodeInfo.osImage": "x"}
