"""Paths into objects are checked against the fields that Kubernetes has."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.api.field_tables import path_fault, typed_structs, unknown_fields
from tests.kit.manifests import pod


@pytest.mark.parametrize(
    "path",
    [
        "status.nodeInfo.kubeletVersion",
        "status.nodeInfo",
        "status.addresses",
        "status.capacity.cpu",
        "metadata.annotations.rack",
        "spec.podCIDR",
    ],
)
def test_a_path_that_a_node_may_have_is_accepted(path: str) -> None:
    assert path_fault("v1 Node", path) is None


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("status.nodeInf", 'Node.status has no field "nodeInf"; did you mean "nodeInfo"?'),
        ("stats", 'Node has no field "stats"; did you mean "status"?'),
        ("status.addresses.type", "is a list; wanted the list itself, Node.status.addresses"),
        ("spec.podCIDR.ip", "Node.spec.podCIDR is a plain value; it has no field ip"),
    ],
)
def test_the_error_for_a_wrong_path_names_the_first_wrong_part(path: str, message: str) -> None:
    assert message in str(path_fault("v1 Node", path))


def test_a_pod_has_fields_of_its_own() -> None:
    assert path_fault("v1 Pod", "spec.securityContext.runAsUser") is None
    assert path_fault("v1 Pod", "status.nodeInfo") is not None


# ---- fields that a kind does not have -------------------------------------------------------


IGNORED = "DuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("content", "path", "hint"),
    [
        (pod(nodeSelectr={}), "spec.nodeSelectr", 'did you mean "nodeSelector"?'),
        ({**pod(), "sepc": {}}, "sepc", 'did you mean "spec"?'),
        ({**pod(), "metadata": {"label": {}}}, "metadata.label", 'did you mean "labels"?'),
        (
            pod(containers=[{"name": "a"}, {"name": "b", "resource": {}}]),
            "spec.containers[].resource",
            'did you mean "resources"?',
        ),
        (
            pod(affinity={"nodeAffinity": {"required": {}}}),
            "spec.affinity.nodeAffinity.required",
            f'did you mean "required{IGNORED}"?',
        ),
    ],
)
def test_a_field_that_a_pod_does_not_have_is_named(
    content: dict[str, Any], path: str, hint: str
) -> None:
    assert unknown_fields("v1 Pod", content) == [(path, hint)]


def test_the_tables_list_legal_fields_that_are_not_read() -> None:
    probes = {"httpGet": {"port": "http", "httpHeaders": [{"name": "a", "value": "b"}]}}
    container = {
        "name": "c",
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "livenessProbe": probes,
        "resources": {"limits": {"example.com/anything": "1"}},
    }
    whole = pod(containers=[container], securityContext={"seccompProfile": {"type": "Localhost"}})
    managed = [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:nodeSelectr": {}}}}]
    whole["metadata"] = {"name": "a", "managedFields": managed, "labels": {"any": "label"}}
    assert unknown_fields("v1 Pod", whole) == []


def test_fields_of_a_template_inside_another_kind_are_checked() -> None:
    template = {"metadata": {}, "spec": {"tolerations": [{"kye": "a"}]}}
    content = {"spec": {"template": template, "replica": 3}}
    assert [path for path, _ in unknown_fields("apps/v1 Deployment", content)] == [
        "spec.template.spec.tolerations[].kye",
        "spec.replica",
    ]


def test_fields_of_the_values_of_a_map_are_checked() -> None:
    devices = [{"name": "d", "attributes": {"model": {"strng": "a"}}}]
    content = {"spec": {"devices": devices}}
    fields = unknown_fields("resource.k8s.io/v1 ResourceSlice", content)
    assert [path for path, _ in fields] == ["spec.devices[].attributes{}.strng"]


@pytest.mark.parametrize("value", [None, 7, "text", [{"a": 1}], {"a": 1}])
def test_a_value_of_a_wrong_type_is_not_checked(value: Any) -> None:
    assert unknown_fields("v1 Pod", pod(nodeName=value)) == []
    assert unknown_fields("example.com/v1 Quota", {"spec": value}) == []


def test_the_table_has_the_fields_of_every_custom_resource_in_deploy() -> None:
    for path in Path("deploy/crds").glob("*.yaml"):
        crd = yaml.safe_load(path.read_text(encoding="utf-8"))
        version = crd["spec"]["versions"][0]
        kind = f"{crd['spec']['group']}/{version['name']} {crd['spec']['names']['kind']}"
        schema = version["schema"]["openAPIV3Schema"]
        assert unknown_fields(kind, _filled(schema)) == []
        assert unknown_fields(kind, {"spec": {"minMembers": 2}})


def _filled(schema: dict[str, Any]) -> Any:
    """An object with every field of a schema."""
    if "items" in schema:
        return [_filled(schema["items"])]
    return {name: _filled(part) for name, part in schema.get("properties", {}).items()}


def test_a_value_of_a_wrong_type_is_named_and_its_struct_lacks_it() -> None:
    probe = {"exec": {"command": "ls"}, "periodSeconds": 5.0, "timeoutSeconds": 1.5, "foo": "x"}
    ports = [{"containerPort": 80}, 80]
    limits = {"cpu": "1", "memory": "1GB", "a.com/b": True}
    fields = {"livenessProbe": probe, "ports": ports, "tty": None, "resources": {"limits": limits}}
    structs, problems = typed_structs("v1 Pod", pod(containers=[{"name": "c", **fields}]))
    first = "spec.containers[0]"
    assert [str(each).removeprefix(f"{first}.") for each in problems] == [
        'livenessProbe.exec.command: found "ls", wanted a list',
        "livenessProbe.timeoutSeconds: found 1.5, wanted a whole number",
        "ports[1]: found 80, wanted a mapping",
        'resources.limits.memory: found "1GB", wanted a quantity such as 500m, 2 or 1Gi',
        "resources.limits.a.com/b: found true, wanted a quantity such as 500m, 2 or 1Gi",
    ]
    by_path = {each.path: each.fields for each in structs}
    assert by_path[f"{first}.livenessProbe"] == {"exec": {}, "periodSeconds": 5.0}
    assert by_path[first] == {
        "name": "c",
        "livenessProbe": by_path[f"{first}.livenessProbe"],
        "resources": {"limits": {"cpu": "1"}},
    }
