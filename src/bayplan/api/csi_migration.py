"""In-tree volumes as the CSI drivers see them that took over from the in-tree plugins.

A scheduler needs the driver that attaches a volume, the handle that identifies the volume, and the
node labels of the nodes that reach it. Upstream: csi-translation-lib v0.37.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from bayplan.api.object_meta import LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from bayplan.api.storage_objects import (
    AwsDisk,
    AzureDisk,
    PersistentVolume,
    PersistentVolumeSpec,
    Volume,
)

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
#: Separates the zones in the value of one label.
ZONE_DELIMITER = "__"

_UNSPECIFIED = "UNSPECIFIED"
_EBS_ID = re.compile(r"vol-[^/]*")


class NotTranslated(ValueError):
    """An in-tree volume cannot be translated for its CSI driver; the message has the reason."""


class InTreePlugin(Struct, frozen=True):
    """An in-tree plugin that a CSI driver has replaced."""

    name: str
    driver: str
    #: The field of a volume for this plugin.
    field: str
    #: (source, labels of the PersistentVolume or None for an inline volume) → handle.
    handle: Callable[[Any, Mapping[str, str] | None], str]
    #: The driver's own label for the zone of a node, if its volumes are bound to that label.
    zone_label: str = ""
    #: Whether its volumes count as volumes of the driver on nodes with a CSINode.
    is_counted: bool = True


class CSIVolume(Struct, frozen=True):
    """An in-tree volume as its CSI driver identifies it."""

    driver: str
    handle: str


def plugin_of(owner: Volume | PersistentVolumeSpec) -> InTreePlugin | None:
    """The in-tree plugin of a volume, if the plugin was migrated to a CSI driver."""
    for plugin in PLUGINS:
        if getattr(owner, plugin.field) is not None:
            return plugin
    return None


def inline_volume(plugin: InTreePlugin, volume: Volume) -> CSIVolume:
    """The CSI form of an inline volume of a pod. Raises NotTranslated."""
    return CSIVolume(plugin.driver, plugin.handle(getattr(volume, plugin.field), None))


def persistent_volume(plugin: InTreePlugin, volume: PersistentVolume) -> CSIVolume:
    """The CSI form of a PersistentVolume. Raises NotTranslated."""
    source, labels = getattr(volume.spec, plugin.field), volume.metadata.labels or {}
    return CSIVolume(plugin.driver, plugin.handle(source, labels))


def node_selector(plugin: InTreePlugin, volume: PersistentVolume) -> NodeSelector | None:
    """The nodes that can access the volume, with zones in the driver's label. None: all nodes.
    Raises NotTranslated."""
    persistent_volume(plugin, volume)
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    if not plugin.zone_label:
        return required
    zone, region = _topology_labels(required, volume.metadata.labels or {})
    if _has_values(required, zone):
        required = _renamed(required, zone, plugin.zone_label)
    else:
        label = (volume.metadata.labels or {}).get(zone)
        zones = sorted({part.strip() for part in (label or "").split(ZONE_DELIMITER)} - {""})
        if zones:
            required = _with_zones(required, plugin.zone_label, tuple(zones))
    if region == BETA_REGION and _has_values(required, region):
        required = _renamed(required, region, REGION)
    return required


# ---- topology ------------------------------------------------------------------------------


def _topology_labels(required: NodeSelector | None, labels: Mapping[str, str]) -> tuple[str, str]:
    """(label of the zone, label of the region) that this volume uses. Its node affinity takes
    precedence over its labels."""
    keys = {one.key for term in _terms(required) for one in term.match_expressions or ()}
    for names in (keys, labels):
        if ZONE in names:
            return ZONE, REGION
        if BETA_ZONE in names:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _terms(required: NodeSelector | None) -> tuple[NodeSelectorTerm, ...]:
    return (required.node_selector_terms or ()) if required is not None else ()


def _has_values(required: NodeSelector | None, key: str) -> bool:
    expressions = (one for term in _terms(required) for one in term.match_expressions or ())
    return any(one.key == key and one.values for one in expressions)


def _renamed(required: NodeSelector | None, old: str, new: str) -> NodeSelector:
    def renamed(one: LabelSelectorRequirement) -> LabelSelectorRequirement:
        return msgspec.structs.replace(one, key=new) if one.key == old else one

    terms = tuple(
        msgspec.structs.replace(
            term, match_expressions=tuple(map(renamed, term.match_expressions or ()))
        )
        for term in _terms(required)
    )
    return NodeSelector(node_selector_terms=terms)


def _with_zones(required: NodeSelector | None, key: str, zones: tuple[str, ...]) -> NodeSelector:
    demanded = LabelSelectorRequirement(key=key, operator="In", values=zones)
    terms = tuple(
        msgspec.structs.replace(term, match_expressions=(*(term.match_expressions or ()), demanded))
        for term in _terms(required) or (NodeSelectorTerm(),)
    )
    return NodeSelector(node_selector_terms=terms)


# ---- handles -------------------------------------------------------------------------------


def _ebs(source: AwsDisk, labels: Mapping[str, str] | None) -> str:
    """The handle of an EBS volume: vol-1, aws://zone/vol-1 and aws:///vol-1 are the same volume."""
    written = source.volume_id
    if not written.startswith("aws://"):
        return written
    _, _, path = written.removeprefix("aws://").partition("/")
    disk = path.strip("/")
    if not _EBS_ID.fullmatch(disk):
        raise NotTranslated(
            f"failed to translate Kubernetes ID to EBS Volume ID "
            f"Invalid format for AWS volume ({written})"
        )
    return disk


def _gce(source: Any, labels: Mapping[str, str] | None) -> str:
    written = (labels or {}).get(BETA_ZONE) or (labels or {}).get(ZONE) or ""
    zones = written.split(ZONE_DELIMITER)
    if len(zones) > 1:
        where = f"regions/{_gce_region(zones)}"
    else:
        where = f"zones/{zones[0] or _UNSPECIFIED}"
    return f"projects/{_UNSPECIFIED}/{where}/disks/{source.pd_name}"


def _gce_region(zones: list[str]) -> str:
    """The region of zones: us-east1-b and us-east1-c are in us-east1."""
    parts = [zone.split("-") for zone in zones]
    regions = {"-".join(part[:2]) for part in parts}
    if any(len(part) != 3 for part in parts) or len(regions) != 1:
        raise NotTranslated(f"failed to get region from zones: {', '.join(zones)}")
    return regions.pop()


def _azure_disk(source: AzureDisk, labels: Mapping[str, str] | None) -> str:
    if source.kind is not None and source.kind.lower() != "managed":
        raise NotTranslated(f"kind({source.kind}) is not supported in csi migration")
    return source.disk_uri


def _volume_id(source: Any, labels: Mapping[str, str] | None) -> str:
    return source.volume_id


def _share_name(source: Any, labels: Mapping[str, str] | None) -> str:
    return source.share_name


def _volume_path(source: Any, labels: Mapping[str, str] | None) -> str:
    return source.volume_path


PLUGINS: Final = (
    InTreePlugin(
        "kubernetes.io/gce-pd",
        "pd.csi.storage.gke.io",
        "gce_persistent_disk",
        _gce,
        zone_label="topology.gke.io/zone",
    ),
    InTreePlugin(
        "kubernetes.io/aws-ebs",
        "ebs.csi.aws.com",
        "aws_elastic_block_store",
        _ebs,
        zone_label="topology.ebs.csi.aws.com/zone",
    ),
    InTreePlugin(
        "kubernetes.io/cinder",
        "cinder.csi.openstack.org",
        "cinder",
        _volume_id,
        zone_label="topology.cinder.csi.openstack.org/zone",
    ),
    InTreePlugin("kubernetes.io/azure-disk", "disk.csi.azure.com", "azure_disk", _azure_disk),
    InTreePlugin(
        "kubernetes.io/portworx-volume", "pxd.portworx.com", "portworx_volume", _volume_id
    ),
    InTreePlugin(
        "kubernetes.io/azure-file",
        "file.csi.azure.com",
        "azure_file",
        _share_name,
        is_counted=False,
    ),
    InTreePlugin(
        "kubernetes.io/vsphere-volume",
        "csi.vsphere.vmware.com",
        "vsphere_volume",
        _volume_path,
        is_counted=False,
    ),
)

#: Name of the provisioner in a storage class → in-tree plugin.
BY_NAME: Final[Mapping[str, InTreePlugin]] = {plugin.name: plugin for plugin in PLUGINS}
