"""Causes name the object behind a reason, for objects as dumps of clusters have them."""

from pathlib import Path
from typing import Any

from tests.cases.workloads import TERMINATING
from tests.cli.command_line import bayplan, write_objects
from tests.explain.reported_causes import details_in
from tests.kit.manifests import Content, api_object, container, node, pod

HOST = "kubernetes.io/hostname"
N1 = node("n1", labels={HOST: "n1"})
DATA = [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]


def required(what: str, **term: Any) -> Content:
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOST, **term}]}
    return {what: rule}


def selecting(**labels: str) -> Content:
    return {"labelSelector": {"matchLabels": labels}}


def test_a_pod_that_keeps_others_away_is_named() -> None:
    rule = required("podAntiAffinity", **selecting(app="p"))
    guard = pod("guard", nodeName="n1", affinity=rule)
    elsewhere = pod("far", namespace="other", nodeName="n1", affinity=rule)
    [detail] = details_in(N1, guard, elsewhere, pod("p", labels={"app": "p"}))
    assert detail == f"default/guard on n1 has the required anti-affinity to app=p over {HOST}"


def test_pods_of_other_namespaces_are_mentioned_where_a_term_does_not_count_them() -> None:
    cache = pod("cache", namespace="data", nodeName="n1", labels={"app": "cache"})
    rule = required("podAffinity", **selecting(app="cache"))
    [detail] = details_in(N1, cache, pod("p", affinity=rule))
    end = "no such pod is placed in namespace default; 1 is elsewhere, for example data/cache"
    assert detail.endswith(end)


def test_a_namespace_selector_counts() -> None:
    full = node("n1", labels={HOST: "n1"}, cpu="1")
    cache = pod("cache", namespace="data", nodeName="n1", labels={"app": "cache"})
    term = {**selecting(app="cache"), "namespaceSelector": {}}
    anti = required("podAntiAffinity", **term)
    [detail] = details_in(full, cache, pod("p", cpu="0", affinity=anti))
    assert detail.endswith("1 of 1 domains have such pods: n1: 1")


def test_a_daemon_pod_of_a_node_that_is_gone_says_so() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["ghost"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    details = details_in(N1, pod("p", affinity=affinity))
    assert "the pod is for node ghost, which does not exist" in details


def test_a_claim_template_that_does_not_exist_is_named() -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    details = details_in(N1, pod("p", resourceClaims=claims))
    assert "ResourceClaimTemplate default/one-gpu does not exist" in details


def test_a_volume_of_an_earlier_claim_of_the_same_name_is_no_volume_of_the_claim() -> None:
    claim = api_object(
        "v1 PersistentVolumeClaim",
        "c",
        "default",
        spec={"volumeName": "v", "storageClassName": "", "accessModes": ["ReadWriteOnce"]},
    )
    claim["metadata"]["uid"] = "new"
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}
    reference = {"namespace": "default", "name": "c", "uid": "old"}
    spec = {"capacity": {"storage": "1Gi"}, "claimRef": reference, "hostPath": {"path": "/d"}}
    volume = api_object("v1 PersistentVolume", "v", spec=spec, status={"phase": "Released"})
    details = details_in(N1, volume, claim, pod("p", volumes=DATA))
    expected = "names v, which is bound to an earlier PersistentVolumeClaim default/c"
    assert f"PersistentVolumeClaim default/c: {expected}" in details


def test_a_claim_that_its_controller_removes_is_mentioned(tmp_path: Path) -> None:
    claim = api_object("v1 PersistentVolumeClaim", "c", "default")
    claim["metadata"] |= {**TERMINATING, "finalizers": ["kubernetes.io/pvc-protection"]}
    resources = {"requests": {"storage": "1Gi"}}
    claim["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": resources}
    file = write_objects(tmp_path / "in.yaml", N1, claim, pod("p", volumes=DATA))
    text = bayplan("why", "default/p", file).stdout
    assert "PersistentVolumeClaim default/c was being deleted in the input" in text


def test_a_volume_that_its_controller_removes_is_mentioned(tmp_path: Path) -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    volume = api_object("v1 PersistentVolume", "v", spec={**spec, "hostPath": {"path": "/d"}})
    volume["metadata"] |= {**TERMINATING, "finalizers": ["kubernetes.io/pv-protection"]}
    file = write_objects(tmp_path / "in.yaml", N1, volume, pod("p"))
    text = bayplan("why", "default/p", file).stdout
    assert "PersistentVolume v was being deleted in the input" in text


def test_a_copy_of_a_node_has_the_devices_behind_an_extended_resource(tmp_path: Path) -> None:
    names = {"extendedResourceName": "example.com/gpu"}
    device_class = api_object("resource.k8s.io/v1 DeviceClass", "gpu", spec=names)
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": "d", "nodeName": "n1", "pool": pool, "devices": [{"name": "d0"}]}
    piece = api_object("resource.k8s.io/v1 ResourceSlice", "s", spec=devices)
    limits = {"limits": {"example.com/gpu": "1"}}
    pods = [pod(name, containers=[container(resources=limits)]) for name in ("a", "b")]
    file = write_objects(tmp_path / "in.yaml", N1, device_class, piece, *pods)
    text = bayplan("why", "--all-pending", file).stdout
    assert "add one node like n1\n" in text
