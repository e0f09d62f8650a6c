"""Objects of a dump that are being deleted: what goes, what stays, what is refused meanwhile."""

from pathlib import Path
from typing import Any

import pytest

from tests.cases.workloads import TERMINATING, owned, simulated, workload
from tests.cli.command_line import bayplan, write_objects
from tests.kit.manifests import Content, api_object, node, pod
from tests.sim.manifests import scenario

UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}


def lost_node(name: str, *taints: Content) -> Content:
    lost = node(name, taints=[UNREACHABLE, *taints])
    lost["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    return lost


def database(replicas: int = 1, **spec: Any) -> Content:
    return workload("StatefulSet", "db", {"replicas": replicas, "serviceName": "db", **spec})


def test_a_pod_stays_on_a_node_whose_kubelet_does_not_answer(tmp_path: Path) -> None:
    leaving = owned(database(), "db-0", nodeName="n1", **TERMINATING)
    result = simulated(tmp_path, lost_node("n1"), node("n2"), database(), leaving)
    assert result["placements"] == {}
    [note] = [note for note in result["notes"] if "kubelet" in note]
    assert note.startswith("Pod default/db-0 is being deleted and keeps its room on n1")


def test_a_pod_of_a_deployment_is_replaced_while_the_old_one_stays(tmp_path: Path) -> None:
    web = workload("ReplicaSet", "web", {"replicas": 1})
    leaving = owned(web, "web-a", nodeName="n1", **TERMINATING)
    result = simulated(tmp_path, lost_node("n1"), node("n2"), web, leaving)
    assert list(result["placements"].values()) == ["n2"]
    assert result["pods"]["default/web-a"]["deletedAt"] is None


READY = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "spec": {"taints": []},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


@pytest.mark.parametrize(
    "change", [{"patch": [READY]}, {"delete": [{"kind": "Node", "name": "n1"}]}]
)
def test_the_pod_goes_when_the_node_answers_or_is_gone(change: Content, tmp_path: Path) -> None:
    leaving = owned(database(), "db-0", nodeName="n1", **TERMINATING)
    events = scenario({"at": "1m", **change})
    result = simulated(tmp_path, lost_node("n1"), node("n2"), database(), leaving, events)
    assert list(result["placements"]) == ["default/db-0"]
    assert not any("kubelet" in note for note in result["notes"])


def test_pods_of_a_node_out_of_service_go(tmp_path: Path) -> None:
    leaving = owned(database(), "db-0", nodeName="n1", **TERMINATING)
    lost = lost_node("n1", OUT_OF_SERVICE)
    result = simulated(tmp_path, lost, node("n2"), database(), leaving)
    assert result["placements"] == {"default/db-0": "n2"}


def test_nothing_is_created_in_a_namespace_that_is_being_deleted(tmp_path: Path) -> None:
    namespace = api_object(
        "v1 Namespace", "shop", spec={"finalizers": ["kubernetes"]}, status={"phase": "Terminating"}
    )
    namespace["metadata"] |= TERMINATING
    web = workload("Deployment", "web", {"replicas": 2})
    web["metadata"]["namespace"] = "shop"
    result = simulated(tmp_path, node("n1"), namespace, web)
    assert result["placements"] == {}
    expected = "unable to create new content in namespace shop because it is being terminated"
    assert any(expected in note for note in result["notes"])
    assert (
        "Namespace shop is being deleted and stays: it has the finalizer kubernetes"
        in result["notes"]
    )


def test_a_stateful_set_without_its_claim_makes_no_pod(tmp_path: Path) -> None:
    limits = [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]
    limit_range = api_object("v1 LimitRange", "small", "default", spec={"limits": limits})
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "5Gi"}},
        },
    }
    objects = (node("n1"), limit_range, database(volumeClaimTemplates=[claim]))
    result = simulated(tmp_path, *objects)
    assert result["counts"]["pods"] == 0
    expected = 'StatefulSet default/db lacks 1 pod: persistentvolumeclaims "data-db-0" is forbidden'
    assert any(note.startswith(expected) for note in result["notes"])
    file = write_objects(tmp_path / "in.yaml", *objects)
    text = bayplan("why", "--all-pending", file).stdout
    assert "1 pod of StatefulSet default/db cannot be created" in text
    assert "create the missing" not in text


def test_a_waiting_pod_that_is_being_deleted_is_left_alone(tmp_path: Path) -> None:
    leaving = pod("p", cpu="1", finalizers=["a/b"], **TERMINATING)
    file = write_objects(tmp_path / "in.yaml", node("n1"), leaving)
    result = bayplan("why", "default/p", file)
    assert result.exit_code == 1
    assert "default/p is being deleted: no scheduler tries it" in result.stdout
