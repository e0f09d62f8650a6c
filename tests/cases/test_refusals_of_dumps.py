"""What the API server refuses of an input: nothing follows from it, and each answer says why."""

import json
from pathlib import Path

import pytest

from tests.cases.workloads import TERMINATING, simulated, workload
from tests.cli.command_line import answer, bayplan, write_objects
from tests.kit.manifests import Content, api_object, node, pod


def new(kind: str, **template: object) -> Content:
    """A workload of a manifest, of one pod. ``template``: fields of the pod's spec."""
    made = workload(kind, "web", {"replicas": 1} if kind in ("Deployment", "StatefulSet") else {})
    made["spec"]["template"]["spec"] |= template
    del made["metadata"]["uid"]
    return made


def no_more(resource: str) -> Content:
    hard = {f"count/{resource}": "0"}
    return api_object("v1 ResourceQuota", "none", "default", spec={"hard": hard})


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        ("Deployment", "deployments.apps"),
        ("Deployment", "replicasets.apps"),
        ("StatefulSet", "statefulsets.apps"),
        ("DaemonSet", "daemonsets.apps"),
        ("Job", "jobs.batch"),
    ],
)
def test_a_controller_that_the_server_refuses_makes_no_pods(
    kind: str, resource: str, tmp_path: Path
) -> None:
    cluster = write_objects(tmp_path / "cluster.yaml", node("n1"), no_more(resource))
    result = simulated(tmp_path, node("n1"), no_more(resource), new(kind))
    assert result["counts"]["pods"] == 0
    assert any(f"exceeded quota: none, requested: count/{resource}=1" in n for n in result["notes"])
    file = write_objects(tmp_path / "web.yaml", new(kind))
    fit = bayplan("fit", "-f", file, cluster)
    assert (fit.exit_code, "0 of 1 pod fits" in fit.stdout) == (1, True)
    changed = json.loads(answer("whatif", cluster, "--apply", file, "-o", "json"))
    assert changed["moves"] == []
    later = ("--until", "60s", "-o", "json")
    assert json.loads(answer("whatif", cluster, "--apply", file, *later))["moves"] == []


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "DaemonSet", "Job"])
@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("priorityClassName", "no PriorityClass with name gone was found"),
        ("runtimeClassName", 'pod rejected: RuntimeClass "gone" not found'),
    ],
)
def test_a_missing_class_refuses_the_pods_of_every_workload(
    kind: str, field: str, reason: str, tmp_path: Path
) -> None:
    gone: Content = {field: "gone"}
    made = pod("web", **gone) if kind == "Pod" else new(kind, **gone)
    result = simulated(tmp_path, node("n1"), made, pod("p"))
    assert result["placements"] == {"default/p": "n1"}
    assert any(reason in note for note in result["notes"])
    cluster = write_objects(tmp_path / "cluster.yaml", node("n1"))
    fit = bayplan("fit", "-f", write_objects(tmp_path / "web.yaml", made), cluster)
    assert (fit.exit_code, reason in fit.stdout) == (1, True)
    both = write_objects(tmp_path / "both.yaml", node("n1"), made)
    subject = "default/web" if kind == "Pod" else f"{kind.lower()}/web"
    why = bayplan("why", subject, both)
    assert why.exit_code == (2 if kind == "Pod" else 4)
    assert f"forbidden: {reason}" in why.stdout + why.stderr


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("Deployment", "spec.selector: Required value"),
        (
            "Job",
            'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
        ),
    ],
)
def test_a_workload_that_fits_and_lacks_a_field_is_not_ready_to_be_created(
    kind: str, reason: str, tmp_path: Path
) -> None:
    cluster, made = write_objects(tmp_path / "cluster.yaml", node("n1")), new(kind)
    note = f"an API server refuses {kind} default/web as it is: {reason}"
    whole = bayplan("fit", "-f", write_objects(tmp_path / "whole.yaml", made), cluster)
    assert (whole.exit_code, note in whole.stdout) == (0, False)
    made["spec"].pop("selector", None)
    made["spec"]["template"]["spec"].pop("restartPolicy", None)
    lacking = bayplan("fit", "-f", write_objects(tmp_path / "web.yaml", made), cluster)
    assert (lacking.exit_code, note in lacking.stdout) == (0, True)


def test_a_claim_that_a_pod_uses_is_not_gone_although_it_is_being_deleted(tmp_path: Path) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = api_object("v1 PersistentVolumeClaim", "c", "default", spec=spec)
    claim["spec"] |= {"volumeName": "v", "storageClassName": ""}
    claim["metadata"] |= {**TERMINATING, "finalizers": ["kubernetes.io/pvc-protection"]}
    reference = {"namespace": "default", "name": "c"}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    spec |= {"claimRef": reference, "hostPath": {"path": "/d"}}
    volume = api_object("v1 PersistentVolume", "v", spec=spec, status={"phase": "Bound"})
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]
    user, waiting = pod("u", nodeName="n1", volumes=volumes), pod("p", volumes=volumes)
    file = write_objects(tmp_path / "in.yaml", node("n1"), claim, volume, user, waiting)
    text = bayplan("why", "default/p", file).stdout
    assert 'persistentvolumeclaim "c" is being deleted' in text
    assert "is being deleted and stays: it has the finalizer kubernetes.io/pvc-protection" in text
