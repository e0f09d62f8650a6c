"""A rejection for volumes names the object that does not match, and why."""

from typing import Any

import pytest

from tests.explain.reported_causes import case, causes_in, details_in
from tests.kit.manifests import Content, node, pod

NO_PROVISIONER = "kubernetes.io/no-provisioner"
BY_HAND = "StorageClass fast provisions no volume (kubernetes.io/no-provisioner)"
NOT_BOUND = "PersistentVolumeClaim default/data: not bound; its StorageClass is fast"


def storage_class(provisioner: str = NO_PROVISIONER, **fields: Any) -> Content:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **fields,
    }


def claim(name: str = "data", **spec: Any) -> Content:
    whole = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "10Gi"}},
        **spec,
    }
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": whole,
    }


def volume(name: str = "pv", phase: str = "Available", **spec: Any) -> Content:
    whole = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "csi": {"driver": "csi.example.com", "volumeHandle": name},
        **spec,
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {"tier": "tin"}},
        "spec": whole,
        "status": {"phase": phase},
    }


def capacity(name: str, zone: str, amount: str, **fields: Any) -> Content:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": name, "namespace": "kube-system"},
        "storageClassName": "fast",
        "nodeTopology": {"matchLabels": {"zone": zone}},
        "capacity": amount,
        **fields,
    }


def pod_with(*claims: str) -> Content:
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return pod("p", volumes=volumes)


def on_host(*names: str) -> Content:
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(names)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}


def test_a_volume_that_is_too_small_is_named_with_both_sizes() -> None:
    assert details_in(case("36-small.yaml"))[1] == (
        "PersistentVolume lpv: 49Gi, less than the 50Gi requested"
    )


def test_a_released_volume_is_named_with_the_claim_that_is_gone() -> None:
    assert details_in(case("38-released.yaml"))[1] == (
        "PersistentVolume lpv: Released, with a claimRef to an earlier PersistentVolumeClaim "
        "default/data (uid old-uid), which is gone"
    )


@pytest.mark.parametrize(
    ("of_claim", "of_volume", "reason"),
    [
        (
            {"accessModes": ["ReadWriteMany"]},
            {},
            "access modes ReadWriteOnce, without ReadWriteMany",
        ),
        ({"volumeMode": "Block"}, {}, "volumeMode Filesystem, not Block"),
        (
            {"volumeAttributesClassName": "gold"},
            {},
            "volumeAttributesClassName none, not gold",
        ),
        ({"selector": {"matchLabels": {"tier": "gold"}}}, {}, "labels do not match tier=gold"),
        (
            {},
            {"claimRef": {"namespace": "other", "name": "x", "uid": "u"}, "phase": "Released"},
            "Released, with a claimRef to PersistentVolumeClaim other/x, which does not exist",
        ),
        (
            {},
            {"nodeAffinity": on_host("gone")},
            "reachable from nodes with kubernetes.io/hostname In (gone), not from the node",
        ),
        (
            {"volumeMode": "Block", "resources": {"requests": {"storage": "1Ti"}}},
            {},
            "10Gi, less than the 1Ti requested; volumeMode Filesystem, not Block",
        ),
    ],
)
def test_a_volume_says_all_that_does_not_match(
    of_claim: Content, of_volume: Content, reason: str
) -> None:
    objects = node("n1"), storage_class(), claim(**of_claim), volume(**of_volume), pod_with("data")
    assert details_in(*objects) == [NOT_BOUND, f"PersistentVolume pv: {reason}", BY_HAND]


def test_the_nearest_volumes_come_first_and_the_others_are_counted() -> None:
    sizes = [volume(f"v{i}", capacity={"storage": f"{i}Gi"}) for i in range(1, 7)]
    _, *volumes, rest, _ = details_in(
        node("n1"), storage_class(), claim(), *sizes, pod_with("data")
    )
    assert [line.split(":")[0] for line in volumes] == [
        f"PersistentVolume v{i}" for i in (6, 5, 4, 3)
    ]
    assert rest == "and 2 more PersistentVolumes of the class"


def test_volumes_of_another_class_are_named() -> None:
    other = volume(storageClassName="slow")
    lines = details_in(node("n1"), storage_class(), claim(), other, pod_with("data"))
    assert lines[1] == "no PersistentVolume has the class fast; there are pv (slow)"


def test_one_volume_for_two_claims_says_so() -> None:
    lines = details_in(
        node("n1"), storage_class(), claim(), claim("b"), volume(), pod_with("data", "b")
    )
    assert lines[1] == (
        "PersistentVolume pv: matches, but serves one claim only, and another claim of the pod "
        "matches, too"
    )


def test_the_nodes_outside_the_topology_of_a_class_are_named_with_their_labels() -> None:
    term = {"matchLabelExpressions": [{"key": "zone", "values": ["c", "d"]}]}
    lines = details_in(
        node("n1", labels={"zone": "a"}),
        node("n2"),
        storage_class("csi.example.com", allowedTopologies=[term]),
        claim(),
        pod_with("data"),
    )
    assert lines == [
        NOT_BOUND,
        "StorageClass fast allows only zone in (c, d), which excludes n1 (zone=a), n2 (no zone)",
    ]


def test_capacities_that_are_too_small_and_nodes_without_one_are_named() -> None:
    driver = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "csi.example.com"},
        "spec": {"storageCapacity": True},
    }
    nodes = [node(f"n{i}", labels={"zone": zone}) for i, zone in enumerate("abc", 1)]
    lines = details_in(
        *nodes,
        storage_class("csi.example.com"),
        driver,
        capacity("c1", "a", "5Gi"),
        capacity("c2", "b", "50Gi", maximumVolumeSize="8Gi"),
        claim(),
        pod_with("data"),
    )
    assert lines == [
        NOT_BOUND,
        (
            "CSIStorageCapacity kube-system/c2 (zone=b): 50Gi, at most 8Gi for one volume, "
            "less than 10Gi"
        ),
        "CSIStorageCapacity kube-system/c1 (zone=a): 5Gi, less than 10Gi",
        "no CSIStorageCapacity of StorageClass fast covers n3",
    ]


def test_a_limit_is_named_with_its_driver_and_the_volumes_that_are_attached() -> None:
    [cause] = causes_in(case("35-csilimit.yaml"), pod="default/u2")
    assert cause.details[0] == (
        "CSI driver ebs.csi.aws.com: the limit is 1, 1 attached, the pod brings 1 more: full"
    )


def bound(**fields: Any) -> list[Content]:
    """A claim and its volume."""
    modes = fields.pop("accessModes", ["ReadWriteOnce"])
    own = claim(volumeName="pv", accessModes=modes)
    own["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    ref = {"namespace": "default", "name": "data"}
    pv = volume(phase="Bound", claimRef=ref, accessModes=modes)
    pv["metadata"]["labels"] |= fields.pop("labels", {})
    return [own, pv]


def test_a_volume_in_another_zone_is_named_with_its_zone_and_that_of_the_nodes() -> None:
    key = "topology.kubernetes.io/zone"
    lines = details_in(node("n1", labels={key: "b"}), *bound(labels={key: "a"}), pod_with("data"))
    assert lines == [
        f"PersistentVolumeClaim default/data: bound to pv, labeled {key}=a",
        f"1 node with {key}=b: n1",
    ]


def test_the_pod_that_uses_an_exclusive_claim_is_named() -> None:
    user = pod("user", nodeName="n1", volumes=pod_with("data")["spec"]["volumes"])
    objects = bound(accessModes=["ReadWriteOncePod"])
    assert details_in(node("n1"), *objects, user, pod_with("data")) == [
        "default/user on n1 uses default/data, which is ReadWriteOncePod"
    ]
