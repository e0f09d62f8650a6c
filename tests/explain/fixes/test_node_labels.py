"""A new node has the labels of the pod's rules and of the places of its volumes."""

from typing import Any

import pytest

from bayplan.whatif.cluster import Cluster
from tests.kit.manifests import Content, node, pod

ZONE = "topology.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"


def steps(labels: dict[str, str], *objects: Content, **spec: Any) -> list[str]:
    """What the fixes of a pod with one claim say about new nodes."""
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    waiting = pod("p", volumes=volumes, **spec)
    with Cluster.from_files(node("n1", labels=labels), waiting, *objects) as cluster:
        fixes = cluster.why("p").fixes
    return [step for fix in fixes for step in fix.steps if step.startswith("add one node")]


def claim(volume: str = "pv") -> Content:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data",
            "namespace": "default",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "fast",
            **({"volumeName": volume} if volume else {}),
        },
    }


def volume(labels: dict[str, str], *places: tuple[str, str]) -> Content:
    """A volume with zone labels, or one that is in one of these places."""
    terms = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
        for key, value in places
    ]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv", "labels": labels},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "default", "name": "data"},
            "csi": {"driver": "d", "volumeHandle": "v"},
            **({"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if terms else {}),
        },
    }


def test_a_volume_states_the_zone_that_no_node_is_in() -> None:
    assert steps({ZONE: "a"}, claim(), volume({}, (ZONE, "c"))) == [
        f"add one node like n1 with label {ZONE}=c"
    ]


def test_the_label_of_a_driver_and_the_common_one_change_together() -> None:
    assert steps({ZONE: "a", EBS_ZONE: "a"}, claim(), volume({}, (EBS_ZONE, "c"))) == [
        f"add one node like n1 with label {EBS_ZONE}=c, label {ZONE}=c"
    ]


@pytest.mark.parametrize("key", [ZONE, "failure-domain.beta.kubernetes.io/zone"])
def test_an_old_volume_has_its_zones_as_a_label(key: str) -> None:
    assert steps({ZONE: "a"}, claim(), volume({key: "c__d"})) == [
        f"add one node like n1 with label {ZONE}=c"
    ]


def test_the_topology_of_a_class_counts_before_there_is_a_volume() -> None:
    fast = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "example.com/disks",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["c", "d"]}]}],
    }
    assert steps({ZONE: "a"}, claim(""), fast) == [f"add one node like n1 with label {ZONE}=c"]


def test_no_node_is_offered_where_the_volume_is_on_a_node_that_is_gone() -> None:
    assert steps({}, claim(), volume({}, ("kubernetes.io/hostname", "gone"))) == []


def test_no_node_is_in_two_zones() -> None:
    disk = volume({}, (ZONE, "c"))
    assert steps({ZONE: "a"}, claim(), disk, nodeSelector={ZONE: "b"}) == []
    assert steps({ZONE: "a"}, claim(), disk, nodeSelector={ZONE: "c"}) == [
        f"add one node like n1 with label {ZONE}=c"
    ]
