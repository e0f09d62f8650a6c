"""Volumes, claims and CSI drivers: the kinds that volume plugins read, and the sources of volumes.

A pod's volume and a PersistentVolume name the same sources in the same words. Of a source only the
fields that a plugin reads are decoded: the identity of the volume, and whether it is read-only.
"""

from msgspec import field

from bayplan.api.object_meta import (
    Api,
    Int64,
    LabelSelector,
    NodeSelector,
    ObjectMeta,
    Quantities,
    Strings,
)

# ---- sources of volumes ---------------------------------------------------------------------


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


class VolumeResources(Api):
    requests: Quantities | None = None


class PersistentVolumeClaimSpec(Api):
    access_modes: tuple[str, ...] | None = None
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class ClaimTemplate(Api):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(Api):
    """A claim made for the pod alone."""

    volume_claim_template: ClaimTemplate | None = None


class _Disks(Api):
    """The sources of pods and of volumes that are CSI disks, or migrate to such."""

    csi: CSISource | None = None
    gce_persistent_disk: GceDisk | None = None
    aws_elastic_block_store: AwsDisk | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: CinderDisk | None = None
    portworx_volume: PortworxVolume | None = None
    vsphere_volume: VsphereVolume | None = None


class Volume(_Disks):
    """Only volume sources that a plugin reads are decoded."""

    name: str = ""
    image: ImageVolumeSource | None = None
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    iscsi: ISCSISource | None = None
    rbd: RBDSource | None = None


# ---- kinds ----------------------------------------------------------------------------------


READ_WRITE_ONCE_POD = "ReadWriteOncePod"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
#: The provisioner of a class whose volumes are created by hand.
NO_PROVISIONER = "kubernetes.io/no-provisioner"
FILESYSTEM = "Filesystem"
STORAGE = "storage"

AVAILABLE = "Available"
BOUND = "Bound"
LOST = "Lost"

#: Annotations that scheduler and volume controller write for each other.
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
#: The annotation of a CSINode with the in-tree plugins whose volumes a CSI driver serves on the
#: node, separated by commas.
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


class ObjectReference(Api):
    api_version: str | None = None
    kind: str | None = None
    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class VolumeNodeAffinity(Api):
    required: NodeSelector | None = None


class PersistentVolumeSpec(_Disks):
    capacity: Quantities | None = None
    access_modes: tuple[str, ...] | None = None
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None


class VolumePhase(Api):
    """The status of a volume or a claim."""

    phase: str | None = None


class PersistentVolume(Api):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: VolumePhase = VolumePhase()


class PersistentVolumeClaim(Api):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: VolumePhase = VolumePhase()


class TopologySelectorRequirement(Api):
    key: str = ""
    values: tuple[str, ...] | None = None


class TopologySelectorTerm(Api):
    match_label_expressions: tuple[TopologySelectorRequirement, ...] | None = None


class StorageClass(Api):
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] | None = None
    reclaim_policy: str | None = None
    parameters: Strings | None = None


class VolumeNodeResources(Api):
    count: Int64 | None = None


class CSINodeDriver(Api):
    name: str = ""
    allocatable: VolumeNodeResources | None = None
    topology_keys: tuple[str, ...] | None = None


class CSINodeSpec(Api):
    drivers: tuple[CSINodeDriver, ...] | None = None


class CSINode(Api):
    """The CSI drivers of a node, and the number of volumes that each may attach; has the node's
    name."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Api):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Api):
    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Api):
    """The free capacity of a storage class on the nodes with certain labels."""

    metadata: ObjectMeta = ObjectMeta()
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: str | Int64 | float | None = None
    maximum_volume_size: str | Int64 | float | None = None


class AttachedVolume(Api):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Api):
    attacher: str = ""
    node_name: str = ""
    source: AttachedVolume = AttachedVolume()


class VolumeAttachment(Api):
    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = field(default_factory=VolumeAttachmentSpec)
