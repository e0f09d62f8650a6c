"""Volumes: claims and volumes of the API, overlaid with the scheduler's unfinished changes.

From the moment a pod gets a volume until the API reports it, other pods must see the volume as
taken. The version that is about to be written is stored as an *assumed* version, which replaces the
API's version until the API reports a newer one. Upstream: volumebinding/passive_assume_cache.go.
"""

from typing import final

from bayplan.api.objects import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, Node
from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from bayplan.printable import quoted
from bayplan.state.cluster_objects import ClusterObjects
from bayplan.state.node_table import NodeTable
from bayplan.state.pods import PodInfo
from bayplan.state.storage_infos import ClaimInfo, VolumeInfo
from bayplan.state.storage_objects import STORAGE_KINDS, StorageChanges, StorageObjects

__all__ = ["STORAGE_KINDS", "Volumes"]


@final
class Volumes:
    """Storage as a scheduling cycle sees it. ``api``: without assumed versions."""

    def __init__(self, table: NodeTable, objects: ClusterObjects) -> None:
        self._table = table
        self._changes = StorageChanges(table)
        self.api = StorageObjects(self._changes, objects)
        self._assumed_claims: dict[str, ClaimInfo] = {}
        self._assumed_volumes: dict[str, VolumeInfo] = {}
        objects.of(PERSISTENT_VOLUME_CLAIM).subscribe(self._claim_changed)
        objects.of(PERSISTENT_VOLUME).subscribe(self._volume_changed)

    # ---- with assumed versions ------------------------------------------------------------

    def claim(self, key: str) -> ClaimInfo | None:
        """A claim by "namespace/name"."""
        return self._assumed_claims.get(key) or self.api.claim(key)

    def volume(self, name: str) -> VolumeInfo | None:
        return self._assumed_volumes.get(name) or self.api.volume(name)

    def volumes_of_class(self, class_name: str) -> list[VolumeInfo]:
        """In order of their names."""
        volumes = map(self.volume, self.api.volumes_of_class(class_name))
        return [volume for volume in volumes if volume is not None]

    # ---- outside of a cycle ---------------------------------------------------------------

    def node(self, name: str) -> Node | None:
        """The node of this name, as it is now."""
        row = self._table.row_of.get(name)
        return None if row is None else self._table.nodes[row]

    def is_placed(self, pod: PodInfo) -> bool:
        """Whether a pod counts on its node. A deleted pod does not."""
        row = self._table.row_of.get(pod.node_name)
        return row is not None and pod.uid in self._table.pods[row]

    # ---- assuming -------------------------------------------------------------------------

    def assume_claim(self, claim: PersistentVolumeClaim) -> None:
        """Assume a version that is about to be written, made from the API's newest version."""
        info = ClaimInfo(claim)
        reported = self.api.claim(info.key)
        assert reported is not None and reported.version == info.version, (
            f"claim {info.key} has changed"
        )
        self._assumed_claims[info.key] = info
        self._changes.note_storage()

    def assume_volume(self, volume: PersistentVolume) -> None:
        """The same of a volume."""
        info = VolumeInfo(volume)
        reported = self.api.volume(info.name)
        assert reported is not None and reported.version == info.version, f"{info.name} has changed"
        self._assumed_volumes[info.name] = info
        self._changes.note_storage()

    def restore_claim(self, claim: PersistentVolumeClaim) -> None:
        """Drop this assumed version. Calling it again does nothing."""
        info = ClaimInfo(claim)
        assumed = self._assumed_claims.get(info.key)
        if assumed is not None and assumed.claim == claim:
            del self._assumed_claims[info.key]
            self._changes.note_storage()

    def restore_volume(self, volume: PersistentVolume) -> None:
        """The same of a volume."""
        assumed = self._assumed_volumes.get(volume.metadata.name)
        if assumed is not None and assumed.volume == volume:
            del self._assumed_volumes[volume.metadata.name]
            self._changes.note_storage()

    @property
    def assumed_count(self) -> int:
        """How many claims and volumes have an assumed version."""
        return len(self._assumed_claims) + len(self._assumed_volumes)

    # ---- changes from the API -------------------------------------------------------------

    def _claim_changed(
        self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None
    ) -> None:
        """Drop the assumed version, unless the API reports the version it was made from."""
        changed = old if new is None else new
        assert changed is not None
        key = ClaimInfo(changed).key
        assumed = self._assumed_claims.get(key)
        if assumed is not None and (new is None or assumed.version != ClaimInfo(new).version):
            del self._assumed_claims[key]

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        changed = old if new is None else new
        assert changed is not None
        name = changed.metadata.name
        assumed = self._assumed_volumes.get(name)
        if assumed is not None and (new is None or assumed.version != VolumeInfo(new).version):
            del self._assumed_volumes[name]


def claim_not_found(name: str) -> str:
    """The message of upstream's lister."""
    return f"persistentvolumeclaim {quoted(name)} not found"


def volume_not_found(name: str) -> str:
    return f"persistentvolume {quoted(name)} not found"


def class_not_found(name: str) -> str:
    return f"storageclass.storage.k8s.io {quoted(name)} not found"
