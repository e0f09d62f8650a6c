"""Storage: claims, volumes, classes and CSI objects of the API, indexed, with the scheduler's
unfinished changes over them.

Every change of an object is written to the change log of the nodes, so that cached results become
stale: the result for any row may depend on storage objects, and the volumes of a node's pods depend
on claims.

From the moment a pod gets a volume until the API reports it, other pods must see the volume as
taken. The version that is about to be written is stored as an *assumed* version, which replaces the
API's version until the API reports a newer one. Upstream: volumebinding/passive_assume_cache.go.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, final

from bayplan.api.objects import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    Node,
)
from bayplan.api.storage_objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.objects.object_store import ObjectStore
from bayplan.printable import quoted
from bayplan.state.change_log import ALL_ROWS, Facet
from bayplan.state.node_table import NodeTable
from bayplan.state.pods import PodInfo
from bayplan.state.storage_infos import CapacityInfo, ClaimInfo, VolumeInfo

# ---- objects of the API ---------------------------------------------------------------------


#: All storage kinds, for `Plugin.kinds`.
STORAGE_KINDS: Final = (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    VOLUME_ATTACHMENT,
)

#: Kind → the facets that a change of an object is logged as, for all rows or for the rows of the
#: nodes it concerns. A plugin that reads these facets need not watch the objects themselves.
STORAGE_FACETS: Final[Mapping[str, Facet]] = {
    PERSISTENT_VOLUME: Facet.STORAGE,
    PERSISTENT_VOLUME_CLAIM: Facet.STORAGE,
    STORAGE_CLASS: Facet.STORAGE,
    CSI_NODE: Facet.STORAGE | Facet.VOLUMES,
    CSI_DRIVER: Facet.STORAGE,
    CSI_STORAGE_CAPACITY: Facet.STORAGE,
    VOLUME_ATTACHMENT: Facet.VOLUMES,
}


@final
class StorageChanges:
    """Writes changes of storage to the nodes' change log."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table

    def note_storage(self, facets: Facet = Facet.STORAGE) -> None:
        """Log a change of all rows."""
        self._table.log.note(ALL_ROWS, facets)

    def note_users(self, claim: str) -> None:
        """Log a change of the rows whose pods use a claim."""
        for row in self._table.claim_users.rows(claim):
            self._table.log.note(row, Facet.VOLUMES)

    def note_nodes(self, names: Iterable[str], facets: Facet) -> None:
        """Log a change of the named nodes that exist."""
        row_of = self._table.row_of
        for row in sorted(row_of[name] for name in names if name in row_of):
            self._table.log.note(row, facets)


@final
class StorageObjects:
    """Storage objects as the API reports them."""

    def __init__(self, changes: StorageChanges, objects: ObjectStore[Any]) -> None:
        self._changes = changes
        self._classes = objects.of(STORAGE_CLASS)
        self._csi_nodes = objects.of(CSI_NODE)
        self._drivers = objects.of(CSI_DRIVER)
        #: By "namespace/name" and by name.
        self._claims: dict[str, ClaimInfo] = {}
        self._volumes: dict[str, VolumeInfo] = {}
        self._capacities: dict[str, CapacityInfo] = {}
        self._attachments: dict[str, VolumeAttachment] = {}
        self._by_class = _Groups()
        self._claims_of_volume = _Groups()
        self._capacities_of_class = _Groups()
        self._attachments_on = _Groups()
        self._attachments_of_volume = _Groups()
        self._subscribe(objects)

    def claim(self, key: str) -> ClaimInfo | None:
        """A claim by "namespace/name"."""
        return self._claims.get(key)

    def volume(self, name: str) -> VolumeInfo | None:
        return self._volumes.get(name)

    def storage_class(self, name: str) -> StorageClass | None:
        return self._classes.get(name)

    def csi_node(self, name: str) -> CSINode | None:
        """The CSINode of a node."""
        return self._csi_nodes.get(name)

    @property
    def csi_nodes(self) -> Sequence[CSINode]:
        return self._csi_nodes.list()

    def csi_driver(self, name: str) -> CSIDriver | None:
        return self._drivers.get(name)

    def capacities(self, class_name: str) -> list[CapacityInfo]:
        """The capacities of a class, in order of the objects' names."""
        return [self._capacities[key] for key in self._capacities_of_class.of(class_name)]

    def attachments(self, node_name: str) -> list[VolumeAttachment]:
        """VolumeAttachments of a node."""
        return [self._attachments[name] for name in self._attachments_on.of(node_name)]

    def volumes_of_class(self, class_name: str) -> list[str]:
        """Names of the volumes of a class, sorted."""
        return self._by_class.of(class_name)

    # ---- what the API tells ---------------------------------------------------------------

    def _subscribe(self, objects: ObjectStore[Any]) -> None:
        tells = {
            PERSISTENT_VOLUME_CLAIM: self._claim_changed,
            PERSISTENT_VOLUME: self._volume_changed,
            STORAGE_CLASS: self._class_changed,
            CSI_NODE: self._csi_node_changed,
            CSI_DRIVER: self._driver_changed,
            CSI_STORAGE_CAPACITY: self._capacity_changed,
            VOLUME_ATTACHMENT: self._attachment_changed,
        }
        for kind, tell in tells.items():
            store = objects.of(kind)
            for each in store.list():
                tell(None, each)
            store.observe(tell)

    def _claim_changed(
        self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None
    ) -> None:
        info = ClaimInfo(_either(old, new))
        key = info.key
        if old is not None:
            self._claims_of_volume.discard(old.spec.volume_name, key)
        if new is None:
            del self._claims[key]
        else:
            self._claims[key] = info
            self._claims_of_volume.add(new.spec.volume_name, key)
        self._changes.note_storage()
        self._changes.note_users(key)

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        info = VolumeInfo(_either(old, new))
        name = info.name
        if old is not None:
            self._by_class.discard(self._volumes.pop(name).class_name, name)
        if new is not None:
            self._volumes[name] = info
            self._by_class.add(info.class_name, name)
        self._changes.note_storage()
        for key in self._claims_of_volume.of(name):
            self._changes.note_users(key)
        attached = (self._attachments[each] for each in self._attachments_of_volume.of(name))
        self._changes.note_nodes((a.spec.node_name for a in attached), Facet.VOLUMES)

    def _class_changed(self, old: StorageClass | None, new: StorageClass | None) -> None:
        self._changes.note_storage(Facet.STORAGE | Facet.VOLUMES)

    def _csi_node_changed(self, old: CSINode | None, new: CSINode | None) -> None:
        name = _either(old, new).metadata.name
        self._changes.note_nodes([name], Facet.VOLUMES | Facet.STORAGE)

    def _driver_changed(self, old: CSIDriver | None, new: CSIDriver | None) -> None:
        self._changes.note_storage()

    def _capacity_changed(
        self, old: CSIStorageCapacity | None, new: CSIStorageCapacity | None
    ) -> None:
        info = CapacityInfo(_either(old, new))
        if old is not None:
            self._capacities_of_class.discard(old.storage_class_name, info.key)
            del self._capacities[info.key]
        if new is not None:
            self._capacities[info.key] = info
            self._capacities_of_class.add(new.storage_class_name, info.key)
        self._changes.note_storage()

    def _attachment_changed(
        self, old: VolumeAttachment | None, new: VolumeAttachment | None
    ) -> None:
        name = _either(old, new).metadata.name
        if old is not None:
            self._attachments_on.discard(old.spec.node_name, name)
            self._attachments_of_volume.discard(_volume_of(old), name)
            del self._attachments[name]
        if new is not None:
            self._attachments[name] = new
            self._attachments_on.add(new.spec.node_name, name)
            self._attachments_of_volume.add(_volume_of(new), name)
        nodes = {each.spec.node_name for each in (old, new) if each is not None}
        self._changes.note_nodes(nodes, Facet.VOLUMES)


class _Groups:
    """Names by group, sorted on demand."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}
        self._sorted: dict[str, list[str]] = {}

    def add(self, group: str, name: str) -> None:
        self._names.setdefault(group, set()).add(name)
        self._sorted.pop(group, None)

    def discard(self, group: str, name: str) -> None:
        self._names[group].discard(name)
        self._sorted.pop(group, None)
        if not self._names[group]:
            del self._names[group]

    def of(self, group: str) -> list[str]:
        names = self._sorted.get(group)
        if names is None:
            names = sorted(self._names.get(group, ()))
            if names:
                self._sorted[group] = names
        return names


def _either(old: Any, new: Any) -> Any:
    return old if new is None else new


def _volume_of(attachment: VolumeAttachment) -> str:
    return attachment.spec.source.persistent_volume_name or ""


# ---- with unfinished changes ----------------------------------------------------------------


@final
class Volumes:
    """Storage as a scheduling cycle sees it. ``api``: without assumed versions."""

    def __init__(self, table: NodeTable, objects: ObjectStore[Any]) -> None:
        self._table = table
        self._changes = StorageChanges(table)
        self.api = StorageObjects(self._changes, objects)
        self._assumed_claims: dict[str, ClaimInfo] = {}
        self._assumed_volumes: dict[str, VolumeInfo] = {}
        objects.of(PERSISTENT_VOLUME_CLAIM).observe(self._claim_changed)
        objects.of(PERSISTENT_VOLUME).observe(self._volume_changed)

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
