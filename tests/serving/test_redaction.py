"""Redaction removes names, images and other confidential text from captured objects."""

from pathlib import Path
from typing import Any

import msgspec.inspect as inspection
import pytest

from bayplan.api import objects, storage_objects
from bayplan.serving import redaction
from bayplan.serving.redaction import redacted
from tests.cli.command_line import answer, write_objects
from tests.serving.confidential import NODE, POD

Content = dict[str, Any]


def hidden(*objects: Content) -> list[Content]:
    return redacted(objects).objects


def test_no_confidential_text_remains() -> None:
    text = str(hidden(NODE, POD))
    for secret in ("hunter2", "acme", "billing", "charge-cards", "10.0.0.7", "annotations"):
        assert secret not in text


def test_a_name_is_replaced_by_the_same_name_everywhere() -> None:
    node, pod = hidden(NODE, POD)
    assert node["metadata"]["name"] == "node-1"
    assert node["metadata"]["labels"] == {"kubernetes.io/hostname": "node-1", "zone": "z1"}
    assert pod["spec"]["nodeName"] == "node-1"
    required = pod["spec"]["affinity"]["nodeAffinity"]
    terms = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms[0]["matchFields"][0]["values"] == ["node-1"]
    meta = pod["metadata"]
    assert (meta["name"], meta["namespace"]) == ("statefulset-1-0", "namespace-1")
    assert meta["labels"]["statefulset.kubernetes.io/pod-name"] == "statefulset-1-0"
    assert meta["ownerReferences"][0]["name"] == "statefulset-1"


def test_fields_that_affect_placement_stay() -> None:
    node, pod = hidden(NODE, POD)
    assert node["status"]["allocatable"] == {"cpu": "4"}
    (container,) = pod["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "1"}}
    assert (pod["metadata"]["labels"]["app"], pod["metadata"]["uid"]) == ("web", "u1")


def test_the_groups_of_a_tree_still_name_their_parent() -> None:
    meta = {"name": "acme-tree", "namespace": "default"}
    tree = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": meta,
        "spec": {"schedulingPolicy": {"gang": {"minGroupCount": 2}}, "preemptionPolicy": "Never"},
    }
    part = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {**meta, "name": "acme-part"},
        "spec": {"parentCompositePodGroupName": "acme-tree"},
    }
    above, below = hidden(tree, part)
    assert above["metadata"]["name"] == "compositepodgroup-1"
    assert above["spec"]["preemptionPolicy"] == "Never"
    assert below["spec"]["parentCompositePodGroupName"] == "compositepodgroup-1"


def test_an_image_without_a_tag_still_matches_the_image_on_the_node() -> None:
    node, pod = hidden(NODE, POD)
    assert pod["spec"]["containers"][0]["image"] == "image-1:latest"
    assert node["status"]["images"] == [{"names": ["image-1:latest"], "sizeBytes": 10}]


@pytest.mark.parametrize("namespace", ["default", "kube-system"])
def test_namespaces_that_every_cluster_has_keep_their_names(namespace: str) -> None:
    pod = {**POD, "metadata": {**POD["metadata"], "namespace": namespace}}
    here = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    result, own = hidden(pod, here)
    assert result["metadata"]["namespace"] == own["metadata"]["name"] == namespace


def test_a_value_that_may_be_a_number_is_not_replaced_as_a_name() -> None:
    node = {**NODE, "metadata": {"name": "7"}}
    _, pod = hidden(node, POD)
    assert pod["metadata"]["labels"]["rank"] == "7"


def test_values_that_resemble_names_stay() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"zone": "zone"}}}
    spec = {
        "schedulerName": "zone",
        "topologySpreadConstraints": [{**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
    }
    pod = {**POD, "metadata": {"name": "zone", "namespace": "default"}, "spec": spec}
    (result,) = hidden(pod)
    assert result["spec"]["schedulerName"] == "zone"
    (constraint,) = result["spec"]["topologySpreadConstraints"]
    assert constraint["topologyKey"] == "zone"
    assert constraint["labelSelector"]["matchLabels"] == {"zone": "pod-1"}


def test_kinds_that_only_plugins_define_are_left_out_and_counted() -> None:
    wish = {"apiVersion": "example.com/v1", "kind": "Wish", "metadata": {"name": "w"}}
    result = redacted([NODE, wish, wish])
    assert result.left_out == {"example.com/v1 Wish": 2}
    assert [content["kind"] for content in result.objects] == ["Node"]


def test_the_argument_is_not_changed() -> None:
    before = str(POD)
    hidden(NODE, POD)
    assert str(POD) == before


CONTROLLERS = ("apps/v1 ReplicaSet", "apps/v1 StatefulSet", "v1 ReplicationController")


@pytest.mark.parametrize("kind", CONTROLLERS)
def test_a_controller_in_a_redacted_capture_creates_its_pods(kind: str, tmp_path: Path) -> None:
    """Two replicas are missing in the capture; the template says what they request."""
    meta = {"name": "billing", "namespace": "acme-prod", "uid": "u2"}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": POD["spec"] | {"nodeName": ""}}
    selector = labels if kind.startswith("v1") else {"matchLabels": labels}
    version, _, name = kind.partition(" ")
    spec = {"replicas": 2, "selector": selector, "template": template}
    controller = {"apiVersion": version, "kind": name, "metadata": meta, "spec": spec}
    large = {**NODE, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}
    captured = hidden(large, controller)
    assert "hunter2" not in str(captured)
    assert "acme" not in str(captured)
    answer_text = answer("simulate", write_objects(tmp_path / "c.yaml", *captured))
    assert answer_text.startswith("2 of 2 pods placed on 1 node\n")


def test_only_the_text_of_listed_fields_of_a_template_remains() -> None:
    markers = Markers()
    template = markers.fill(inspection.type_info(objects.Pod))
    content = {"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {"template": template}}
    text = str(hidden(content))
    places = {place for marker, place in markers.places.items() if marker in text}
    assert not {place for place in places if not stays(place)}
    assert ("PodSpec", "scheduler_name") in places


# ---- a marker in every text field of every kind ----------------------------------------------

#: (struct, field) of labels, whose keys and values are not redacted.
LABELS = {
    ("ObjectMeta", "labels"),
    ("LabelSelector", "match_labels"),
    ("PodSpec", "node_selector"),
    ("RuntimeScheduling", "node_selector"),
    ("ServiceSpec", "selector"),
    ("LabelSelectorRequirement", "values"),
    ("TopologySelectorRequirement", "values"),
}
#: (struct, field) of which only the keys are not redacted.
ATTRIBUTES = {("Device", "attributes"), ("Device", "capacity")}


class Markers:
    """Fills each field of structs with a unique text; records the field of each text."""

    def __init__(self) -> None:
        self.places: dict[str, tuple[str, str]] = {}
        self._number = 0

    def text(self, place: tuple[str, str]) -> str:
        self._number += 1
        marker = f"planted-{self._number:04d}-end"
        self.places[marker] = place
        # The text of an expression is in its string literals; the remainder is code.
        return f'"{marker}"' if place[1] == "expression" else marker

    def fill(self, kind: inspection.Type, place: tuple[str, str] = ("", "")) -> Any:
        match kind:
            case inspection.StructType():
                owner = kind.cls.__name__
                return {
                    row.encode_name: self.fill(row.type, (owner, row.name)) for row in kind.fields
                }
            case inspection.VarTupleType() | inspection.ListType():
                return [self.fill(kind.item_type, place)]
            case inspection.DictType():
                return {self.text(place): self.fill(kind.value_type, place)}
            case inspection.UnionType():
                texts = [row for row in kind.types if isinstance(row, inspection.StrType)]
                remaining = [row for row in kind.types if not isinstance(row, inspection.NoneType)]
                return self.fill((texts or remaining)[0], place)
            case inspection.StrType():
                return self.text(place)
            case inspection.AnyType():
                return {self.text(place): [self.text(place)]}
            case inspection.BoolType():
                return True
            case _:
                return 1


def stays(place: tuple[str, str]) -> bool:
    listed = {
        (struct.__name__, field)
        for struct, fields in redaction._PRESERVED_FIELDS.items()
        for field in fields
    }
    return place in listed | LABELS | ATTRIBUTES


@pytest.mark.parametrize("kind", sorted(objects._TYPES))
def test_only_the_text_of_listed_fields_remains(kind: str) -> None:
    markers = Markers()
    version, _, name = kind.partition(" ")
    content = markers.fill(inspection.type_info(objects._TYPES[kind]))
    (result,) = hidden({**content, "apiVersion": version, "kind": name})
    text = str(result)
    surviving = {place for marker, place in markers.places.items() if marker in text}
    assert {place for place in surviving if not stays(place)} == (
        # The names of CSIDrivers are names of drivers, which are not redacted.
        {("ObjectMeta", "name")} if kind == objects.CSI_DRIVER else set()
    )
    assert not {
        place for marker, place in markers.places.items() if stays(place) and marker not in text
    }
    assert redacted([result]).objects, "the redacted object can be decoded"


def test_every_listed_field_exists() -> None:
    for struct, fields in redaction._PRESERVED_FIELDS.items():
        assert not fields - set(struct.__struct_fields__), struct


def test_names_of_objects_outside_the_file_are_replaced() -> None:
    pod: Content = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "ports": [{"name": "http", "hostIP": "10.1.2.3"}]}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {
                                        "key": "kubernetes.io/hostname",
                                        "operator": "In",
                                        "values": ["gone-1"],
                                    }
                                ],
                                "matchFields": [
                                    {"key": "metadata.name", "operator": "In", "values": ["gone-1"]}
                                ],
                            }
                        ]
                    }
                },
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"namespaces": ["payments"], "topologyKey": "zone"}
                    ]
                },
            },
        },
        "status": {"nominatedNodeName": "gone-1"},
    }
    (result,) = hidden(pod)
    for secret in ("gone-1", "payments", "10.1.2.3", "http"):
        assert secret not in str(result)
    terms = result["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"][0]
    new = result["status"]["nominatedNodeName"]
    assert terms["matchExpressions"][0]["values"] == terms["matchFields"][0]["values"] == [new]


def test_the_claim_of_an_ephemeral_volume_matches_the_name_derived_from_its_pod() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "billing-0", "namespace": "default"},
        "spec": {"volumes": [{"name": "scratch", "ephemeral": {}}]},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "billing-0-scratch",
            "namespace": "default",
            "annotations": {storage_objects.BIND_COMPLETED: "yes", "owner": "acme"},
        },
    }
    left_claim, left_pod = hidden(claim, pod)
    volume = left_pod["spec"]["volumes"][0]["name"]
    assert left_claim["metadata"]["name"] == f"{left_pod['metadata']['name']}-{volume}"
    assert left_claim["metadata"]["annotations"] == {storage_objects.BIND_COMPLETED: "yes"}


def test_a_cel_selector_still_selects_its_attribute() -> None:
    slices: Content = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "secret-rack"},
            "devices": [{"name": "d", "attributes": {"model": {"string": "acme-7"}}}],
        },
    }
    expression = (
        '// acme only\ndevice.driver == "gpu.example.com" && '
        "device.attributes['gpu.example.com'].model == 'acme-7' && "
        'device.capacity["gpu.example.com"].memory >= quantity("40Gi") && r"""acme-8""" != ""'
    )
    selector = {"cel": {"expression": expression}}
    device_class: Content = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "acme-class"},
        "spec": {"selectors": [selector], "config": [{"opaque": {"parameters": "acme"}}]},
    }
    left_slice, left_class = hidden(slices, device_class)
    assert "acme" not in str(left_class) and "secret" not in str(left_slice)
    model = left_slice["spec"]["devices"][0]["attributes"]["model"]["string"]
    text = left_class["spec"]["selectors"][0]["cel"]["expression"]
    assert f'.model == "{model}"' in text
    assert 'quantity("40Gi")' in text
    assert 'device.driver == "gpu.example.com"' in text


def test_a_request_for_a_device_class_by_its_resource_still_names_the_class() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "containers": [
                {"resources": {"requests": {"deviceclass.resource.kubernetes.io/acme": "1"}}}
            ]
        },
    }
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "acme"},
    }
    left_pod, left_class = hidden(pod, device_class)
    (resource,) = left_pod["spec"]["containers"][0]["resources"]["requests"]
    assert resource == f"deviceclass.resource.kubernetes.io/{left_class['metadata']['name']}"
