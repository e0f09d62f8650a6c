"""A pod's volumes as the API writes them: the fields that a scheduler reads are decoded."""

from typing import Any

import pytest

from bayplan.api.objects import POD, Pod, decode
from bayplan.api.storage_objects import (
    AwsDisk,
    AzureDisk,
    ClaimTemplate,
    ClaimVolumeSource,
    CSISource,
    EphemeralVolumeSource,
    GceDisk,
    ISCSISource,
    RBDSource,
    Volume,
)

_CLAIM = ClaimTemplate()


def volume(**source: Any) -> Volume:
    pod = decode(POD, {"spec": {"volumes": [{"name": "v", **source}]}})
    assert isinstance(pod, Pod) and pod.spec.volumes is not None
    return pod.spec.volumes[0]


@pytest.mark.parametrize(
    ("source", "new_volume"),
    [
        pytest.param(
            {"persistentVolumeClaim": {"claimName": "data"}},
            Volume(name="v", persistent_volume_claim=ClaimVolumeSource(claim_name="data")),
            id="a claim",
        ),
        pytest.param(
            {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            Volume(
                name="v", ephemeral=EphemeralVolumeSource(volume_claim_template=ClaimTemplate())
            ),
            id="an ephemeral claim",
        ),
        pytest.param(
            {"csi": {"driver": "disk.test"}},
            Volume(name="v", csi=CSISource(driver="disk.test")),
            id="inline csi",
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
            Volume(name="v", gce_persistent_disk=GceDisk(pd_name="d", read_only=True)),
            id="gce",
        ),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "vol-1"}},
            Volume(name="v", aws_elastic_block_store=AwsDisk(volume_id="vol-1")),
            id="aws",
        ),
        pytest.param(
            {"azureDisk": {"diskName": "d", "diskURI": "uri", "kind": "Managed"}},
            Volume(name="v", azure_disk=AzureDisk(disk_uri="uri", kind="Managed")),
            id="azure",
        ),
        pytest.param(
            {"iscsi": {"iqn": "iqn.test", "lun": 0}},
            Volume(name="v", iscsi=ISCSISource(iqn="iqn.test")),
            id="iscsi",
        ),
        pytest.param(
            {"rbd": {"monitors": ["m"], "image": "i", "pool": "p"}},
            Volume(name="v", rbd=RBDSource(monitors=("m",), image="i", pool="p")),
            id="rbd",
        ),
        pytest.param({"emptyDir": {"medium": "Memory"}}, Volume(name="v"), id="any other source"),
    ],
)
def test_the_fields_that_a_scheduler_reads_are_decoded(
    source: dict[str, Any], new_volume: Volume
) -> None:
    assert volume(**source) == new_volume
