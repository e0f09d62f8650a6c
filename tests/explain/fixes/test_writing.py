"""Fixes are written as patches of the pod template of the controller."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.adapters.embedded.api_features import NO_FEATURES
from bayplan.config import SchedulerConfig
from bayplan.explain.explainer import explain_pod
from bayplan.explain.explanation import Explanation
from bayplan.explain.fixes.writing import clean
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.reading import objects_of_files
from bayplan.plugins.registry import default_registry

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}},
}
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "containers": [
            {"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}}},
            {"name": "side", "image": "x"},
        ]
    },
}


def answer(tmp_path: Path, workload: dict[str, Any]) -> Explanation:
    (tmp_path / "in.yaml").write_text(yaml.safe_dump_all([NODE, workload]))
    objects = objects_of_files([str(tmp_path / "in.yaml")], features=NO_FEATURES)
    model = ClusterModel(objects, SchedulerConfig(), default_registry(()))
    return explain_pod(model, model.pending()[0].key)


@pytest.mark.parametrize(
    ("kind", "version"),
    [("Deployment", "apps/v1"), ("StatefulSet", "apps/v1"), ("ReplicaSet", "apps/v1")],
)
def test_the_template_of_a_controller_is_patched(tmp_path: Path, kind: str, version: str) -> None:
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    workload = {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": spec}
    fix = answer(tmp_path, workload).fixes[0]
    change = fix.changes[0]
    assert (change.verb, change.kind, change.name) == ("patch", f"{version} {kind}", "web")
    path = "/spec/template/spec/containers/0/resources/requests/cpu"
    assert change.patch == ({"op": "replace", "path": path, "value": "1"},)
    assert fix.commands[0].startswith(
        f"kubectl patch {kind.lower()}.apps/web -n default --type=json"
    )


def test_a_job_is_created_again_because_its_template_cannot_change(tmp_path: Path) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}},
    }
    change = answer(tmp_path, job).fixes[0].changes[0]
    assert (change.verb, change.kind) == ("replace", "batch/v1 Job")
    assert change.content is not None
    assert "selector" not in change.content["spec"]


def test_a_manifest_has_no_field_that_servers_and_schedulers_write() -> None:
    token = {"name": "kube-api-access-x", "mountPath": "/var"}
    spec = {
        "nodeName": "n1",
        "priority": 0,
        "containers": [{"name": "c", "volumeMounts": [token]}],
        "volumes": [{"name": "kube-api-access-x"}],
    }
    metadata = {"name": "p", "uid": "u", "resourceVersion": "1", "labels": {"a": "b"}}
    content = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {}}
    assert clean(content) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c"}]},
    }


def test_a_daemon_pod_stays_on_its_node(tmp_path: Path) -> None:
    daemons = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "logs"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
    }
    fixes = answer(tmp_path, daemons).fixes
    assert not [step for fix in fixes for step in fix.steps if "node affinity" in step]
    assert fixes[0].changes[0].kind == "apps/v1 DaemonSet"


def test_a_controller_of_an_unknown_kind_gets_a_sentence_and_no_command(tmp_path: Path) -> None:
    owner = {"apiVersion": "x/v1", "kind": "Rollout", "name": "web", "uid": "u", "controller": True}
    metadata = {"name": "p", "labels": {"app": "web"}, "ownerReferences": [owner]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": TEMPLATE["spec"]}
    fix = answer(tmp_path, pod).fixes[0]
    assert (fix.target, fix.commands) == ("Rollout default/web", ())
    assert fix.steps == ("lower the request for cpu from 2 to 1",)
