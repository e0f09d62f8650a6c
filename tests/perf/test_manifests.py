"""Objects come from files as upstream creates them, and share their common parts."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from bayplan.perf.manifests import (
    BASE_POD,
    Manifest,
    ManifestError,
    base_node,
    csi_node,
    in_namespace,
    prepared_node,
    scope_fault,
    signed_pod,
    with_volume,
)
from bayplan.perf.schema import CreateNodes


def manifest(folder: Path, text: str, **options: Any) -> Manifest:
    path = folder / "a.yaml"
    path.write_text(text)
    return Manifest(path, **options)


def test_a_template_is_executed(tmp_path: Path) -> None:
    made = manifest(tmp_path, "apiVersion: v1\nkind: X\nmetadata: {name: 'a-{{.Index}}'}")
    assert [made.made({"Index": n})["metadata"]["name"] for n in (1, 2)] == ["a-1", "a-2"]


def test_equal_text_is_parsed_once(tmp_path: Path) -> None:
    made = manifest(tmp_path, "kind: 'a-{{DivideInt .Index 2}}'")
    assert made.made({"Index": 0}) is made.made({"Index": 1})
    assert made.made({"Index": 0}) is not made.made({"Index": 2})


def test_a_plain_file_is_not_executed(tmp_path: Path) -> None:
    made = manifest(tmp_path, "kind: '{{.Index}}'", is_template=False)
    assert made.made({}) == {"kind": "{{.Index}}"}


def test_fields_of_pods_are_case_insensitive(tmp_path: Path) -> None:
    made = manifest(tmp_path, "apiVersion: v1\nkind: Pod\nSpec: {NodeName: n}")
    assert made.made({})["spec"] == {"nodeName": "n"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ with .x }}", 'a.yaml: line 1: found "with"'),
        ("kind: {{.x}}", 'a.yaml: line 1: no parameter "x"'),
        ("a: [", "a.yaml: line 2: "),
        ("a: 1\n---\nb: 1", "a.yaml: wanted one object"),
        ("- a", "a.yaml: wanted one object"),
    ],
)
def test_an_invalid_manifest_is_reported_with_its_file(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ManifestError) as refused:
        manifest(tmp_path, text).made({})
    assert message in str(refused.value)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"none\.yaml: cannot be read: No such file"):
        Manifest(tmp_path / "none.yaml")


def test_only_namespaced_objects_get_a_namespace() -> None:
    assert in_namespace(BASE_POD, "a")["metadata"] == {"generateName": "pod-", "namespace": "a"}
    assert "namespace" not in in_namespace(base_node("n-"), "a")["metadata"]
    assert "namespace" not in BASE_POD["metadata"]


def test_namespace_and_kind_must_agree() -> None:
    assert scope_fault(BASE_POD, "a") is None
    assert scope_fault(base_node("n"), "") is None
    assert scope_fault(BASE_POD, "") == "found no namespace, wanted one: v1 Pod has one"
    assert scope_fault(base_node("n"), "a") == 'found namespace "a", but v1 Node has none'
    assert scope_fault({"kind": "A"}, "") == "apiVersion: found nothing, wanted a name such as v1"


def test_pods_of_one_operation_share_a_signature_label() -> None:
    labels = [signed_pod(BASE_POD, n, 2)["metadata"]["labels"]["signature"] for n in range(3)]
    assert labels == ["signature-label-0", "signature-label-0", "signature-label-1"]


def test_a_claim_and_its_volume_refer_to_each_other() -> None:
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "spec": {"csi": {"driver": "d"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {"accessModes": []}}
    claim, volume, pod = with_volume(BASE_POD, claim, volume, "ns", index=3)
    assert claim["metadata"] == {"name": "pvc-3", "namespace": "ns"}
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"] == "ns-vol-3"
    assert volume["spec"]["csi"] == {"driver": "d", "volumeHandle": "ns-vol-3"}
    assert volume["spec"]["claimRef"]["name"] == "pvc-3"
    assert pod["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": "pvc-3"}
    assert {claim["status"]["phase"], volume["status"]["phase"]} == {"Bound"}


def test_an_aws_volume_gets_a_unique_id() -> None:
    volume = {"kind": "PersistentVolume", "spec": {"awsElasticBlockStore": {"volumeID": "x"}}}
    _, volume, _ = with_volume(BASE_POD, {}, volume, "ns", index=3)
    assert volume["spec"]["awsElasticBlockStore"] == {"volumeID": "vol-3"}


def prepared(index: int, **fields: Any) -> Any:
    operation = convert({"opcode": "createNodes", **fields}, CreateNodes)
    return prepared_node(base_node("n-"), operation, index, "stem")


def test_a_node_has_its_name_as_a_label() -> None:
    node = prepared(0)
    assert node["metadata"]["name"].startswith("n-")
    assert node["metadata"]["labels"] == {"kubernetes.io/hostname": node["metadata"]["name"]}
    assert prepared(1)["metadata"]["name"] != node["metadata"]["name"]


def test_label_values_are_assigned_in_turn() -> None:
    strategy = {"labelKey": "zone", "labelValues": ["a", "b"]}
    nodes = [prepared(n, labelNodePrepareStrategy=strategy) for n in range(3)]
    assert [node["metadata"]["labels"]["zone"] for node in nodes] == ["a", "b", "a"]


def test_a_unique_label_differs_for_each_node() -> None:
    nodes = [prepared(n, uniqueNodeLabelStrategy={"labelKey": "id"}) for n in range(3)]
    assert len({node["metadata"]["labels"]["id"] for node in nodes}) == 3


def test_allocatable_amounts_are_added_to_those_of_the_node() -> None:
    strategy = {"nodeAllocatable": {"gpu": "2"}, "csiNodeAllocatable": {"d": {"count": 20}}}
    node = prepared(0, nodeAllocatableStrategy=strategy)
    assert node["status"]["allocatable"]["gpu"] == "2"
    assert node["status"]["allocatable"]["cpu"] == "4"
    operation = convert({"opcode": "createNodes", "nodeAllocatableStrategy": strategy}, CreateNodes)
    assert operation.node_allocatable_strategy is not None
    drivers = csi_node("n", operation.node_allocatable_strategy)["spec"]["drivers"]
    assert drivers == [{"name": "d", "nodeID": "n", "allocatable": {"count": 20}}]
