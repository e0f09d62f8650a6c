"""`bayplan upgrade`: what differs between two versions for a cluster, and why."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.manifests import Content
from tests.cli.command_line import bayplan, configuration, refusal, write_objects

BALANCE = "BalancedAllocation's formula (1.36)"
RELEASE = "text of PostFilter without claims to release (1.37.0)"


def node(name: str, cpu: str, memory: str) -> Content:
    allocatable = {"cpu": cpu, "memory": memory, "pods": "20"}
    status = {"allocatable": allocatable, "nodeInfo": {"kubeletVersion": "v1.35.4"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, cpu: str, memory: str, **spec: Any) -> Content:
    requests = {"cpu": cpu, "memory": memory}
    container = {"name": "c", "image": "x", "resources": {"requests": requests}}
    whole = {"schedulerName": "default-scheduler", "containers": [container], **spec}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": whole}


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Before 1.36, w is as welcome on n0 as on n3."""
    return write_objects(
        tmp_path / "cluster.yaml",
        node("n0", "8", "16Gi"),
        node("n3", "4", "32Gi"),
        pod("r0", "1", "3Gi", nodeName="n0"),
        pod("r3", "1", "3Gi", nodeName="n3"),
        pod("w", "1", "5Gi"),
        pod("big", "99", "1Gi"),
    )


def upgrade(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    result = bayplan("upgrade", *arguments, "-o", "json")
    return result.exit_code, json.loads(result.stdout)


def test_a_pod_that_prefers_other_nodes_is_named_with_the_change(cluster: Path) -> None:
    code, answer = upgrade(cluster, "--to", "1.36")
    assert (code, answer["verdict"], answer["before"]) == (1, "changes", "1.35")
    [moved] = [each for each in answer["pods"] if each["pod"] == "default/w"]
    assert (moved["what"], moved["causes"]) == ("moves", [BALANCE])
    assert (moved["nodesBefore"], moved["nodesAfter"]) == (["n0", "n3"], ["n3"])


def test_other_words_alone_are_no_other_placement(tmp_path: Path) -> None:
    only = write_objects(tmp_path / "a.yaml", node("n0", "8", "16Gi"), pod("big", "99", "1Gi"))
    code, answer = upgrade(only, "--from", "1.36", "--to", "1.37")
    assert (code, answer["verdict"]) == (0, "same")
    [waiting] = answer["pods"]
    assert (waiting["what"], waiting["causes"]) == ("message", [RELEASE])
    assert "no new claims to deallocate" in waiting["messageBefore"]
    assert "no new claims to deallocate" not in waiting["messageAfter"]


def test_a_reader_sees_the_pods_below_each_cause(cluster: Path) -> None:
    text = bayplan("upgrade", cluster, "--to", "1.37").stdout
    head = "from kube-scheduler 1.35 to 1.37: 1 of 4 pods would be placed differently"
    assert text.startswith(head)
    assert "featureGates.StorageCapacityScoring: off before, on now" in text
    assert f"{BALANCE}: 1 pod would get other nodes" in text


def test_a_configuration_that_the_new_version_refuses_comes_first(
    cluster: Path, tmp_path: Path
) -> None:
    gates = ("--feature-gates", "SchedulerQueueingHints=true")
    code, answer = upgrade(cluster, "--to", "1.37", "--config", configuration(tmp_path), *gates)
    assert (code, answer["verdict"], answer["pods"]) == (1, "refused", [])
    [refused] = [each for each in answer["configuration"] if each["what"] == "refused"]
    assert refused["path"] == "--feature-gates.SchedulerQueueingHints"
    assert "Kubernetes 1.36 is the last version with it" in refused["text"]


def test_two_versions_are_needed(cluster: Path) -> None:
    assert refusal("upgrade", cluster, "--to", "1.35") == [
        "--to: found 1.35, which is the version before, too"
    ]


def test_a_preview_says_that_it_is_not_released(cluster: Path) -> None:
    code, answer = upgrade(cluster, "--from", "1.37", "--to", "1.38-preview")
    assert (code, answer["verdict"], answer["after"]) == (0, "same", "1.38-preview")
    [note] = answer["notes"]
    assert note.startswith("1.38-preview is not released: it has what merged pull requests say")
