"""What a pod's volumes demand of a node: compiled once per shape.

Most volumes (configuration, secrets, scratch space) are there on every node and do not count.
"""

from dataclasses import dataclass
from typing import NamedTuple

from bayplan.api.csi_migration import plugin_of
from bayplan.api.objects import PodSpec
from bayplan.api.volume_sources import Volume


class ClaimUse(NamedTuple):
    """A volume that stands for a claim: one that is named, or one made for the pod alone."""

    volume_name: str
    #: "" for one that is made for the pod.
    claim_name: str
    is_ephemeral: bool


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """The volumes of a pod that not every node has."""

    #: In the order of the spec.
    claims: tuple[ClaimUse, ...] = ()
    #: In-tree volumes that a CSI driver serves, written into the pod.
    migrated: tuple[Volume, ...] = ()
    #: Volumes that not any two pods of a node may share.
    exclusive: tuple[Volume, ...] = ()
    #: Drivers of volumes that are written into the pod for them.
    inline_drivers: tuple[str, ...] = ()

    @property
    def has_any(self) -> bool:
        """Whether any of them concerns a node's other pods, or storage."""
        return bool(self.claims or self.migrated or self.exclusive)

    @property
    def has_ephemeral(self) -> bool:
        return any(use.is_ephemeral for use in self.claims)

    def claim_names(self) -> list[str]:
        """Of claims that are named, each as often as it is."""
        return [use.claim_name for use in self.claims if not use.is_ephemeral]


NO_VOLUMES = PodVolumes()


def pod_volumes(spec: PodSpec) -> PodVolumes:
    """All of a spec that counts."""
    volumes = spec.volumes
    if not volumes:
        return NO_VOLUMES
    found = PodVolumes(
        claims=tuple(use for volume in volumes if (use := _claim_use(volume)) is not None),
        migrated=tuple(v for v in volumes if _claim_use(v) is None and plugin_of(v) is not None),
        exclusive=tuple(filter(is_exclusive, volumes)),
        inline_drivers=tuple(volume.csi.driver for volume in volumes if volume.csi is not None),
    )
    return found if found != NO_VOLUMES else NO_VOLUMES


def _claim_use(volume: Volume) -> ClaimUse | None:
    if volume.persistent_volume_claim is not None:
        return ClaimUse(volume.name, volume.persistent_volume_claim.claim_name, False)
    return ClaimUse(volume.name, "", True) if volume.ephemeral is not None else None


def is_exclusive(volume: Volume) -> bool:
    """Upstream: needsRestrictionsCheck."""
    sources = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd)
    return any(source is not None for source in sources)
