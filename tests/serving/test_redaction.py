"""Captured objects without what they are called and what they run."""

from typing import Any

import pytest

from bayplan.serving.redaction import redacted

Content = dict[str, Any]

NODE: Content = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "acme-gpu-7.internal",
        "labels": {"kubernetes.io/hostname": "acme-gpu-7.internal", "zone": "z1"},
        "annotations": {"secret": "x"},
    },
    "status": {
        "allocatable": {"cpu": "4"},
        "images": [{"names": ["registry.acme/app:latest"], "sizeBytes": 10}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
    },
}
POD: Content = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "billing-0",
        "generateName": "billing-",
        "namespace": "acme-prod",
        "uid": "u1",
        "labels": {"app": "web", "statefulset.kubernetes.io/pod-name": "billing-0", "rank": "7"},
        "annotations": {"token": "hunter2"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "billing"}],
    },
    "spec": {
        "nodeName": "acme-gpu-7.internal",
        "serviceAccountName": "billing-robot",
        "containers": [
            {
                "name": "charge-cards",
                "image": "registry.acme/app",
                "command": ["--password=hunter2"],
                "env": [{"name": "TOKEN", "value": "hunter2"}],
                "resources": {"requests": {"cpu": "1"}},
            }
        ],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchFields": [
                                {
                                    "key": "metadata.name",
                                    "operator": "In",
                                    "values": ["acme-gpu-7.internal"],
                                }
                            ]
                        }
                    ]
                }
            }
        },
    },
    "status": {"conditions": [{"type": "Ready", "status": "True", "message": "hunter2 is late"}]},
}


def hidden(*objects: Content) -> list[Content]:
    return redacted(objects).objects


def test_nothing_that_is_told_to_a_pod_is_left() -> None:
    text = str(hidden(NODE, POD))
    for secret in ("hunter2", "acme", "billing", "charge-cards", "10.0.0.7", "annotations"):
        assert secret not in text


def test_a_name_is_the_same_wherever_it_stands() -> None:
    node, pod = hidden(NODE, POD)
    assert node["metadata"]["name"] == "node-1"
    assert node["metadata"]["labels"] == {"kubernetes.io/hostname": "node-1", "zone": "z1"}
    assert pod["spec"]["nodeName"] == "node-1"
    required = pod["spec"]["affinity"]["nodeAffinity"]
    terms = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms[0]["matchFields"][0]["values"] == ["node-1"]
    meta = pod["metadata"]
    assert (meta["name"], meta["namespace"]) == ("pod-1", "namespace-1")
    assert meta["labels"]["statefulset.kubernetes.io/pod-name"] == "pod-1"
    assert meta["ownerReferences"][0]["name"] == "statefulset-1"


def test_what_decides_about_placement_stays() -> None:
    node, pod = hidden(NODE, POD)
    assert node["status"]["allocatable"] == {"cpu": "4"}
    (container,) = pod["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "1"}}
    assert (pod["metadata"]["labels"]["app"], pod["metadata"]["uid"]) == ("web", "u1")


def test_an_image_without_a_tag_is_still_the_one_on_the_node() -> None:
    node, pod = hidden(NODE, POD)
    assert pod["spec"]["containers"][0]["image"] == "image-1:latest"
    assert node["status"]["images"] == [{"names": ["image-1:latest"], "sizeBytes": 10}]


@pytest.mark.parametrize("namespace", ["default", "kube-system"])
def test_namespaces_that_every_cluster_has_stay(namespace: str) -> None:
    pod = {**POD, "metadata": {**POD["metadata"], "namespace": namespace}}
    here = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    found, own = hidden(pod, here)
    assert found["metadata"]["namespace"] == own["metadata"]["name"] == namespace


def test_a_value_that_may_be_a_number_is_none_of_the_names() -> None:
    node = {**NODE, "metadata": {"name": "7"}}
    _, pod = hidden(node, POD)
    assert pod["metadata"]["labels"]["rank"] == "7"


def test_what_looks_like_a_name_and_is_none_stays() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"zone": "zone"}}}
    spec = {
        "schedulerName": "zone",
        "topologySpreadConstraints": [{**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
    }
    pod = {**POD, "metadata": {"name": "zone", "namespace": "default"}, "spec": spec}
    (found,) = hidden(pod)
    assert found["spec"]["schedulerName"] == "zone"
    (constraint,) = found["spec"]["topologySpreadConstraints"]
    assert constraint["topologyKey"] == "zone"
    assert constraint["labelSelector"]["matchLabels"] == {"zone": "pod-1"}


def test_kinds_that_only_a_plugin_knows_are_left_out_and_counted() -> None:
    wish = {"apiVersion": "example.com/v1", "kind": "Wish", "metadata": {"name": "w"}}
    found = redacted([NODE, wish, wish])
    assert found.left_out == {"example.com/v1 Wish": 2}
    assert [content["kind"] for content in found.objects] == ["Node"]


def test_what_was_given_is_not_changed() -> None:
    before = str(POD)
    hidden(NODE, POD)
    assert str(POD) == before
