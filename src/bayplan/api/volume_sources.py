"""Sources of volumes, as far as they affect where a pod may run.

A pod's volume and a PersistentVolume name the same sources in the same words. Only fields that a
plugin reads are decoded: the identity of the volume, and whether it is read-only.
"""

from msgspec import field

from bayplan.api.object_meta import Api


class CSISource(Api):
    """``volume_handle`` is a PersistentVolume's; an inline volume has none."""

    driver: str = ""
    volume_handle: str = ""


class GceDisk(Api):
    pd_name: str = ""
    read_only: bool = False


class AwsDisk(Api):
    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class AzureDisk(Api):
    disk_uri: str = field(default="", name="diskURI")
    kind: str | None = None


class AzureFile(Api):
    share_name: str = ""


class CinderDisk(Api):
    volume_id: str = field(default="", name="volumeID")


class PortworxVolume(Api):
    volume_id: str = field(default="", name="volumeID")


class VsphereVolume(Api):
    volume_path: str = ""


class ISCSISource(Api):
    iqn: str = ""
    read_only: bool = False


class RBDSource(Api):
    monitors: tuple[str, ...] | None = None
    pool: str = ""
    image: str = ""
    read_only: bool = False


class ImageVolumeSource(Api):
    reference: str | None = None


class ClaimVolumeSource(Api):
    claim_name: str = ""


class EphemeralVolumeSource(Api):
    """A claim made for the pod alone; its template is the controller's business."""


class Volume(Api):
    """Only volume sources that a plugin reads are decoded."""

    name: str = ""
    image: ImageVolumeSource | None = None
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    csi: CSISource | None = None
    gce_persistent_disk: GceDisk | None = None
    aws_elastic_block_store: AwsDisk | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: CinderDisk | None = None
    portworx_volume: PortworxVolume | None = None
    vsphere_volume: VsphereVolume | None = None
    iscsi: ISCSISource | None = None
    rbd: RBDSource | None = None
