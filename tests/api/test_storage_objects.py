"""Volumes, claims and CSI objects as the API writes them."""

from typing import Any

import pytest

from bayplan.api import storage_objects
from bayplan.api.objects import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    decode,
)


def test_a_volume_has_its_source_and_its_claim() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    spec: dict[str, Any] = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {"namespace": "default", "name": "data", "uid": "u"},
        "storageClassName": "fast",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "csi": {"driver": "disk.test", "volumeHandle": "vol-1"},
    }
    content = {"metadata": {"name": "pv"}, "spec": spec, "status": {"phase": "Bound"}}
    persistent_volume = decode(PERSISTENT_VOLUME, content)
    assert isinstance(persistent_volume, storage_objects.PersistentVolume)
    assert (
        persistent_volume.spec.csi is not None
        and persistent_volume.spec.csi.volume_handle == "vol-1"
    )
    assert (
        persistent_volume.spec.claim_ref is not None and persistent_volume.spec.claim_ref.uid == "u"
    )
    affinity = persistent_volume.spec.node_affinity
    assert affinity is not None and affinity.required is not None
    assert persistent_volume.status.phase == "Bound"


def test_a_claim_has_its_request_and_its_volume() -> None:
    spec = {
        "accessModes": ["ReadWriteOncePod"],
        "resources": {"requests": {"storage": "5Gi"}},
        "storageClassName": "",
        "volumeName": "pv",
    }
    content = {"metadata": {"name": "data"}, "spec": spec, "status": {"phase": "Bound"}}
    persistent_volume_claim = decode(PERSISTENT_VOLUME_CLAIM, content)
    assert isinstance(persistent_volume_claim, storage_objects.PersistentVolumeClaim)
    assert persistent_volume_claim.spec.resources.requests == {"storage": "5Gi"}
    assert (
        persistent_volume_claim.spec.storage_class_name,
        persistent_volume_claim.spec.volume_name,
    ) == ("", "pv")


@pytest.mark.parametrize(
    ("kind", "content", "expected"),
    [
        pytest.param(
            STORAGE_CLASS,
            {"provisioner": "disk.test", "volumeBindingMode": "WaitForFirstConsumer"},
            storage_objects.StorageClass(
                provisioner="disk.test", volume_binding_mode="WaitForFirstConsumer"
            ),
            id="a class",
        ),
        pytest.param(
            CSI_DRIVER,
            {"spec": {"storageCapacity": True}},
            storage_objects.CSIDriver(spec=storage_objects.CSIDriverSpec(storage_capacity=True)),
            id="a driver",
        ),
    ],
)
def test_classes_and_drivers_have_their_fields(kind: str, content: Any, expected: Any) -> None:
    assert decode(kind, content) == expected


def test_a_csi_node_has_the_limit_of_volumes_per_driver() -> None:
    drivers = [{"name": "disk.test", "allocatable": {"count": 3}, "topologyKeys": ["zone"]}]
    csinode = decode(CSI_NODE, {"metadata": {"name": "n1"}, "spec": {"drivers": drivers}})
    assert isinstance(csinode, storage_objects.CSINode)
    limits = [d.allocatable.count for d in csinode.spec.drivers or () if d.allocatable]
    assert limits == [3]


def test_a_storage_capacity_has_its_amount() -> None:
    content = {"nodeTopology": {"matchLabels": {"zone": "a"}}, "capacity": "1Gi"}
    csistorage_capacity = decode(CSI_STORAGE_CAPACITY, {**content, "storageClassName": "fast"})
    assert isinstance(csistorage_capacity, storage_objects.CSIStorageCapacity)
    assert (csistorage_capacity.capacity, csistorage_capacity.maximum_volume_size) == ("1Gi", None)


def test_an_attachment_names_node_driver_and_volume() -> None:
    spec = {"attacher": "disk.test", "nodeName": "n1", "source": {"persistentVolumeName": "pv"}}
    volume_attachment = decode(VOLUME_ATTACHMENT, {"metadata": {"name": "a"}, "spec": spec})
    assert isinstance(volume_attachment, storage_objects.VolumeAttachment)
    assert volume_attachment.spec.source.persistent_volume_name == "pv"
