"""Defaults that the API server fills in."""

from typing import Any

import pytest

from bayplan.adapters.embedded.api_defaults import claim_with_defaults as claim
from bayplan.adapters.embedded.api_defaults import (
    created_status,
    defaulted,
    prepared_pod,
)
from bayplan.adapters.embedded.api_defaults import template_with_defaults as template
from bayplan.objects.keys import kind_of
from tests.kit.manifests import Content, container, node, pod

# ---- api defaults ---------------------------------------------------------------------------


ZONE = "topology.kubernetes.io/zone"


def written(content: Content) -> Content:
    return defaulted(kind_of(content), content)


def created(content: Content) -> Content:
    return prepared_pod(written(content))


def test_a_pod_gets_its_plain_defaults() -> None:
    spec = written(pod())["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 0


@pytest.mark.parametrize("absent", [None, ""])
def test_null_and_empty_values_count_as_absent(absent: Any) -> None:
    assert written(pod(schedulerName=absent))["spec"]["schedulerName"] == "default-scheduler"


def test_a_negative_grace_period_becomes_one_second() -> None:
    content = pod(terminationGracePeriodSeconds=-5)
    assert written(content)["spec"]["terminationGracePeriodSeconds"] == 1


@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_missing_requests_are_copied_from_limits(field: str) -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "500m"}}
    content: Content = {field: [container(resources=resources)]}
    spec = written(pod(**content))["spec"]
    assert spec[field][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


def test_ports_default_to_tcp_and_get_host_ports_on_the_host_network() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 53, "hostPort": 5353, "protocol": "UDP"}]
    inside = written(pod(containers=[container(ports=ports)]))["spec"]
    assert inside["containers"][0]["ports"][0] == {"protocol": "TCP", "containerPort": 80}
    outside = written(pod(hostNetwork=True, containers=[container(ports=ports)]))["spec"]
    assert outside["containers"][0]["ports"] == [
        {"protocol": "TCP", "containerPort": 80, "hostPort": 80},
        {"containerPort": 53, "hostPort": 5353, "protocol": "UDP"},
    ]


def test_quantities_are_rounded_up_to_thousandths() -> None:
    calls = {"requests": {"cpu": "1500u", "memory": "1Gi"}, "limits": {"cpu": "2"}}
    content = pod(containers=[container(resources=calls)], overhead={"cpu": "1n"})
    spec = written(content)["spec"]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "2m", "memory": "1Gi"}
    assert spec["overhead"] == {"cpu": "1m"}
    assert written(node(status={"capacity": {"cpu": "0.0001"}}))["status"] == {
        "capacity": {"cpu": "1m"},
        "allocatable": {"cpu": "1m"},
    }


# ---- label keys -----------------------------------------------------------------------------


def affinity_pod(term: Content, **labels: str) -> Content:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    weighted = [{"weight": 1, "podAffinityTerm": term}]
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": weighted}
    return pod(labels=labels, affinity={"podAffinity": required, "podAntiAffinity": preferred})


def test_match_label_keys_are_merged_into_the_selectors_of_all_terms() -> None:
    term = {
        "topologyKey": ZONE,
        "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": ["hash", "absent"],
        "mismatchLabelKeys": ["tenant"],
    }
    affinity = created(affinity_pod(term, hash="h1", tenant="t1"))["spec"]["affinity"]
    expected = [
        {"key": "hash", "operator": "In", "values": ["h1"]},
        {"key": "tenant", "operator": "NotIn", "values": ["t1"]},
    ]
    required = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    preferred = affinity["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]
    for term in (required, preferred["podAffinityTerm"]):
        assert term["labelSelector"]["matchExpressions"] == expected
        assert term["labelSelector"]["matchLabels"] == {"app": "a"}


def test_merging_is_idempotent() -> None:
    spread = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
        "matchLabelKeys": ["hash"],
    }
    once = created(pod(labels={"hash": "h1"}, topologySpreadConstraints=[spread]))
    constraint = once["spec"]["topologySpreadConstraints"][0]
    assert constraint["labelSelector"]["matchExpressions"] == [
        {"key": "hash", "operator": "In", "values": ["h1"]}
    ]
    assert prepared_pod(once)["spec"] == once["spec"]


def test_without_a_selector_nothing_is_merged() -> None:
    term = {"topologyKey": ZONE, "matchLabelKeys": ["hash"]}
    affinity = created(affinity_pod(term, hash="h1"))["spec"]["affinity"]
    required = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert "labelSelector" not in required


# ---- pod-level resources --------------------------------------------------------------------


def test_pod_level_requests_default_to_container_requests_and_then_to_the_limit() -> None:
    content = pod(
        resources={"limits": {"cpu": "2", "memory": "1Gi"}},
        containers=[container("300m"), container("200m")],
        overhead={"cpu": "1"},
    )
    resources = created(content)["spec"]["resources"]
    assert resources["requests"] == {"cpu": "500m", "memory": "1Gi"}


# ---- status ---------------------------------------------------------------------------------


def test_a_new_pod_is_pending() -> None:
    assert created_status(pod()) == {"phase": "Pending"}


def test_a_gated_pod_has_the_gated_condition() -> None:
    status = created_status(pod(schedulingGates=[{"name": "x"}]))
    assert status["conditions"][0]["reason"] == "SchedulingGated"


@pytest.mark.parametrize("phase", ["Pending", "Unknown", None])
def test_a_pod_on_a_node_is_running(phase: str | None) -> None:
    assert created_status(pod(nodeName="n", status={"phase": phase}))["phase"] == "Running"


# ---- nodes and namespaces -------------------------------------------------------------------


def test_allocatable_defaults_to_capacity() -> None:
    assert written(node(status={"capacity": {"cpu": "4"}}))["status"] == {
        "capacity": {"cpu": "4"},
        "allocatable": {"cpu": "4"},
    }
    no_allocatable = node(status={"capacity": {"cpu": "4"}, "allocatable": {}})
    assert written(no_allocatable)["status"]["allocatable"] == {}
    assert written(node(status={}))["status"] == {}


def test_a_namespace_has_its_name_as_a_label() -> None:
    shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    assert written(shop)["metadata"]["labels"] == {"kubernetes.io/metadata.name": "shop"}


# ---- device defaults ------------------------------------------------------------------------


TOLERATION = {"key": "a", "value": "b"}
SPEC: dict[str, Any] = {
    "devices": {
        "requests": [
            {"name": "a", "exactly": {"deviceClassName": "gpu", "tolerations": [TOLERATION]}},
            {"name": "b", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
            {"name": "c", "firstAvailable": [{"name": "x", "deviceClassName": "gpu", "count": 2}]},
        ]
    }
}
FILLED: dict[str, Any] = {
    "devices": {
        "requests": [
            {
                "name": "a",
                "exactly": {
                    "deviceClassName": "gpu",
                    "tolerations": [{"operator": "Equal", **TOLERATION}],
                    "allocationMode": "ExactCount",
                    "count": 1,
                },
            },
            {"name": "b", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
            {
                "name": "c",
                "firstAvailable": [
                    {
                        "name": "x",
                        "deviceClassName": "gpu",
                        "count": 2,
                        "allocationMode": "ExactCount",
                    }
                ],
            },
        ]
    }
}


def test_a_device_request_defaults_to_one_device() -> None:
    assert claim({"spec": SPEC}) == {"spec": FILLED}


def test_a_template_has_the_defaults_of_its_claims() -> None:
    assert template({"spec": {"spec": SPEC}}) == {"spec": {"spec": FILLED}}
