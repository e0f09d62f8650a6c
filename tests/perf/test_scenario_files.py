"""The files of a test case become the objects of its operations."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from bayplan.perf.manifests import ManifestError
from bayplan.perf.scenario_files import ScenarioFiles, env
from bayplan.perf.schema import OPERATIONS
from tests.perf.kit import SMALL_POD, op, write_cases

VOLUME = "{apiVersion: v1, kind: PersistentVolume, spec: {csi: {driver: d}}}"
CLAIM = "{apiVersion: v1, kind: PersistentVolumeClaim, spec: {}}"
NAMED = "{apiVersion: v1, kind: Node, metadata: {name: 'n-{{.Index}}-of-{{.Count}}-{{.x}}'}}"


def operation(opcode: str, **fields: Any) -> Any:
    return convert(op(opcode, **fields), OPERATIONS[opcode])


@pytest.fixture
def files(tmp_path: Path) -> ScenarioFiles:
    write_cases(tmp_path, pod=SMALL_POD, volume=VOLUME, claim=CLAIM, node=NAMED)
    return ScenarioFiles(tmp_path, None)


def test_a_template_may_use_index_count_and_params(files: ScenarioFiles) -> None:
    nodes = operation(
        "createNodes", nodeTemplatePath="node.yaml", count=2, templateParams={"x": "y"}
    )
    assert files.node(nodes, "", 1)["metadata"]["name"] == "n-1-of-2-y"
    assert env({"x": 1}, 2, 3) == {"x": 1, "Index": 2, "Count": 3}


def test_without_a_file_nodes_and_pods_have_upstreams_defaults(files: ScenarioFiles) -> None:
    assert (
        files.node(operation("createNodes"), "node-0-", 0)["metadata"]["generateName"] == "node-0-"
    )
    (pod,) = files.pod(operation("createPods"), "ns", 0)
    assert pod["metadata"] == {"generateName": "pod-", "namespace": "ns"}


def test_the_pod_of_an_operation_has_priority_over_that_of_the_test_case(tmp_path: Path) -> None:
    write_cases(tmp_path, pod=SMALL_POD, other=SMALL_POD.replace("pod-", "other-"))
    files = ScenarioFiles(tmp_path, "other.yaml")

    def prefix(**fields: Any) -> str:
        (pod,) = files.pod(operation("createPods", **fields), "ns", 0)
        return pod["metadata"]["generateName"]

    assert (prefix(), prefix(podTemplatePath="pod.yaml")) == ("other-", "pod-")


def test_a_pod_may_be_created_after_its_claim_and_volume(files: ScenarioFiles) -> None:
    pods = operation(
        "createPods",
        persistentVolumeTemplatePath="volume.yaml",
        persistentVolumeClaimTemplatePath="claim.yaml",
    )
    kinds = [content["kind"] for content in files.pod(pods, "ns", 0)]
    assert kinds == ["PersistentVolumeClaim", "PersistentVolume", "Pod"]


def test_a_file_is_read_once(files: ScenarioFiles) -> None:
    assert files.file("pod.yaml") is files.file("pod.yaml")
    assert files.file("pod.yaml") is not files.file("pod.yaml", is_template=False)


@pytest.mark.parametrize(
    ("operation", "kinds"),
    [
        (operation("createNodes"), ["Node"]),
        (operation("createPods"), ["Pod"]),
        (operation("createNamespaces", prefix="a"), []),
        (operation("createAny", templatePath="pod.yaml"), ["Pod"]),
        (operation("updateAny", templatePath="pod.yaml"), ["Pod"]),
        (operation("churn", mode="create", templatePaths=["pod.yaml", "claim.yaml"]), None),
        (operation("barrier"), []),
    ],
)
def test_an_operation_gives_examples_of_its_objects(
    files: ScenarioFiles, operation: Any, kinds: list[str] | None
) -> None:
    results = [content["kind"] for _, content in files.examples(operation)]
    assert results == (["Pod", "PersistentVolumeClaim"] if kinds is None else kinds)


def test_a_missing_file_is_reported(files: ScenarioFiles) -> None:
    with pytest.raises(ManifestError, match=r"gone\.yaml: cannot be read"):
        list(files.examples(operation("createAny", templatePath="gone.yaml")))
