"""Binds claims to volumes: the volume that a claim gets, and the volume that a provisioner creates.

Of the volumes that fit, the volume controller takes one with the fewest access modes, and of these
the smallest. Without such a volume, a class with a provisioner gets a new one. Pods with ephemeral
volumes get their claims here, too.

Upstream: pv_controller.go, volume/persistentvolume/index.go (allPossibleMatchingAccessModes),
pkg/controller/volume/ephemeral, sig-storage-lib-external-provisioner (controller.go).
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, final

from bayplan.adapters.embedded.admission.default_storage_class import default_class
from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.json_merge import merge_patch
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.csi_migration import BY_NAME
from bayplan.api.objects import (
    CSI_NODE,
    NODE,
    PERSISTENT_VOLUME,
    STORAGE_CLASS,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.api.storage_objects import (
    AVAILABLE,
    BIND_COMPLETED,
    BOUND,
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
)
from bayplan.objects.keys import Content, ObjectKey, key_of, object_key
from bayplan.plugins.volume_binding.claims import fitting_volumes, may_hold
from bayplan.sim.input.controller_pods import reference
from bayplan.sim.input.storage_classes import class_name_of
from bayplan.sim.input.workload import claim_templates
from bayplan.state.storage_infos import ClaimInfo, VolumeInfo

# ---- free volumes ---------------------------------------------------------------------------


#: The sort key of free volumes: (number of access modes, size in billionths of a byte, name).
_Place = tuple[int, int, str]


@final
class FreeVolumes:
    """The available volumes by class. The owner reports each change of a volume."""

    def __init__(self) -> None:
        self._infos: dict[ObjectKey, VolumeInfo] = {}
        self._by_class: dict[str, list[tuple[_Place, ObjectKey]]] = defaultdict(list)

    def see(self, key: ObjectKey, after: StoredObject | None) -> bool:
        """Note the new version of a volume; None: it was deleted. Returns whether it is free."""
        old = self._infos.pop(key, None)
        if old is not None:
            row = self._by_class[old.class_name]
            del row[bisect_left(row, (_place(old), key))]
        if after is None or not is_free(after):
            return False
        info = volume_info(after)
        self._infos[key] = info
        insort(self._by_class[info.class_name], (_place(info), key))
        return True

    def best_for(self, claim: ClaimInfo) -> ObjectKey | None:
        """The first free volume that fits a claim, or None. Raises SelectorError."""
        for _, key in self._by_class.get(claim.class_name, ()):
            info = self._infos[key]
            if may_hold(info, claim) and fitting_volumes(claim, [info]):
                return key
        return None


def volume_info(stored: StoredObject) -> VolumeInfo:
    assert isinstance(stored.object, PersistentVolume)
    return VolumeInfo(stored.object)


def is_free(stored: StoredObject) -> bool:
    volume = stored.object
    assert isinstance(volume, PersistentVolume)
    return volume.spec.claim_ref is None and volume.status.phase == AVAILABLE


def _place(info: VolumeInfo) -> _Place:
    return len(info.volume.spec.access_modes or ()), info.size_nanos, info.name


# ---- the provisioner ------------------------------------------------------------------------


PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def is_dynamic(storage_class: StorageClass) -> bool:
    """Whether a provisioner creates volumes of a class on demand."""
    return storage_class.provisioner not in ("", NO_PROVISIONER)


def driver_of(storage_class: StorageClass) -> str:
    """The CSI driver that creates a class's volumes. If the class names an in-tree plugin, it is
    the driver that replaces the plugin."""
    plugin = BY_NAME.get(storage_class.provisioner)
    return storage_class.provisioner if plugin is None else plugin.driver


def made_volume(claim: Content, storage_class: StorageClass, terms: list[Content]) -> Content:
    """A new volume for one claim. ``terms``: the nodes that can access it; empty: all nodes."""
    name = f"pvc-{claim['metadata']['uid']}"
    spec = claim["spec"]
    made: Content = {
        "capacity": dict((spec.get("resources") or {}).get("requests") or {}),
        "accessModes": spec.get("accessModes") or [],
        "volumeMode": spec.get("volumeMode") or "Filesystem",
        "storageClassName": storage_class.metadata.name,
        "persistentVolumeReclaimPolicy": storage_class.reclaim_policy or "Delete",
        "csi": {"driver": driver_of(storage_class), "volumeHandle": name},
        "claimRef": claim_reference(claim),
    }
    if spec.get("volumeAttributesClassName"):
        made["volumeAttributesClassName"] = spec["volumeAttributesClassName"]
    if terms:
        made["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    annotations = {PROVISIONED_BY: storage_class.provisioner}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": annotations},
        "spec": made,
    }


def claim_reference(claim: Content) -> Content:
    """The claimRef of a volume that belongs to a claim."""
    meta = claim["metadata"]
    named = {field: meta[field] for field in ("namespace", "name", "uid")}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **named}


def allowed_terms(storage_class: StorageClass) -> list[Content]:
    """The nodes for which a class may create volumes, as terms of a node selector; empty: all
    nodes."""
    return [
        {"matchExpressions": [_one_of(each.key, each.values or ()) for each in expressions]}
        for term in storage_class.allowed_topologies or ()
        if (expressions := term.match_label_expressions)
    ]


def allowed_keys(storage_class: StorageClass) -> list[str]:
    """The labels with which a class restricts where volumes are created."""
    terms = storage_class.allowed_topologies or ()
    keys = (each.key for term in terms for each in term.match_label_expressions or ())
    return list(dict.fromkeys(keys))


def node_terms(labels: Mapping[str, str], keys: Iterable[str]) -> list[Content]:
    """The nodes that have the same values of these labels as one node, as terms of a node selector;
    empty: all nodes."""
    expressions = [_one_of(key, (labels[key],)) for key in keys if key in labels]
    return [{"matchExpressions": expressions}] if expressions else []


def _one_of(key: str, values: Iterable[str]) -> Content:
    return {"key": key, "operator": "In", "values": list(values)}


# ---- ephemeral volumes ---------------------------------------------------------------------


def ephemeral_claims(pod: Content) -> list[Content]:
    """The claims of a pod's ephemeral volumes. They are created and deleted with the pod."""
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                **_noted(template.get("metadata") or {}),
                "name": name,
                "namespace": key_of(pod).namespace,
                "ownerReferences": [reference(pod)],
            },
            "spec": template.get("spec") or {},
        }
        for name, template in claim_templates(pod)
    ]


def _noted(meta: Content) -> Content:
    return {field: meta[field] for field in ("labels", "annotations") if meta.get(field)}


# ---- claim binding --------------------------------------------------------------------------


@final
class ClaimBinding:
    """Binds the claims of one cluster."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        free: FreeVolumes,
        reserved: Mapping[ObjectKey, dict[ObjectKey, None]],
    ) -> None:
        """``reserved``: claim → the volumes whose claimRef names it."""
        self._cluster = cluster
        self._free = free
        self._reserved = reserved

    def _write(self, stored: StoredObject, patch: Any) -> StoredObject:
        return self._cluster.update(merge_patch(stored.content, patch))

    def look_at(self, stored: StoredObject) -> None:
        """Bind an unbound claim if that is possible now. Upstream: syncUnboundClaim."""
        claim = claim_info(stored)
        if claim.volume_name:
            self._bind_named(stored, claim)
        elif class_name_of(stored.content) is None and (
            default := default_class(self._cluster.objects(STORAGE_CLASS))
        ):
            self._write(stored, {"spec": {"storageClassName": default}})
        elif (reserved := self._reserved_for(stored.key, claim)) is not None:
            self._bind(reserved, stored)
        else:
            self._find_or_make(stored, claim)

    def _bind_named(self, stored: StoredObject, claim: ClaimInfo) -> None:
        """Bind a claim to the volume that it names, if that volume exists and fits."""
        volume = self._cluster.get(object_key(PERSISTENT_VOLUME, "", claim.volume_name))
        if volume is not None and may_hold(volume_info(volume), claim):
            self._bind(volume, stored)

    def _reserved_for(self, key: ObjectKey, claim: ClaimInfo) -> StoredObject | None:
        """The volume that a user or the scheduler has reserved for the claim. None: there is no
        such volume."""
        for name in self._reserved.get(key, ()):
            volume = self._cluster.get(name)
            if volume is not None and may_hold(volume_info(volume), claim):
                return volume
        return None

    def _find_or_make(self, stored: StoredObject, claim: ClaimInfo) -> None:
        stored_class = self._cluster.get(object_key(STORAGE_CLASS, "", claim.class_name))
        storage_class = None if stored_class is None else stored_class.object
        assert storage_class is None or isinstance(storage_class, StorageClass)
        if storage_class is None or storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
            best = self._free.best_for(claim)
            if best is not None:
                volume = self._cluster.get(best)
                assert volume is not None, f"{best} is kept as free and is not there"
                self._bind(volume, stored)
            elif storage_class is not None and is_dynamic(storage_class):
                self._make(stored, storage_class, allowed_terms(storage_class))
        elif claim.selected_node is not None and is_dynamic(storage_class):
            self._make_for_node(stored, storage_class, claim.selected_node)

    def _make_for_node(self, stored: StoredObject, storage_class: StorageClass, name: str) -> None:
        node = self._cluster.get(object_key(NODE, "", name))
        if node is None:  # A provisioner does the same: the scheduler must choose another node.
            self._write(stored, {"metadata": {"annotations": {SELECTED_NODE: None}}})
            return
        keys = self._topology_keys(name, driver_of(storage_class)) or allowed_keys(storage_class)
        labels = node.content["metadata"].get("labels") or {}
        self._make(stored, storage_class, node_terms(labels, keys))

    def _topology_keys(self, node_name: str, driver: str) -> tuple[str, ...]:
        """The node labels by which a driver describes the nodes that can access its volumes."""
        csi_node = self._cluster.get(object_key(CSI_NODE, "", node_name))
        if csi_node is None:
            return ()
        assert isinstance(csi_node.object, CSINode)
        for each in csi_node.object.spec.drivers or ():
            if each.name == driver:
                return each.topology_keys or ()
        return ()

    def _make(self, stored: StoredObject, storage_class: StorageClass, terms: list[Any]) -> None:
        """Create a volume that is reserved for the claim. The change of the volume causes the
        binding."""
        self._cluster.create(made_volume(stored.content, storage_class, terms))

    def _bind(self, volume: StoredObject, claim: StoredObject) -> None:
        """Bind a volume and a claim to each other: first the volume, then the claim. Upstream:
        bind."""
        info, requested = volume_info(volume), claim_info(claim)
        marks = {} if info.is_claimed_by(requested) else {BOUND_BY_CONTROLLER: "yes"}
        ref = {**(volume.content["spec"].get("claimRef") or {}), **claim_reference(claim.content)}
        self._write(
            volume,
            {
                "metadata": {"annotations": marks},
                "spec": {"claimRef": ref},
                "status": {"phase": BOUND},
            },
        )
        noted = {BIND_COMPLETED: "yes"}
        if not requested.volume_name:
            noted[BOUND_BY_CONTROLLER] = "yes"
        spec = volume.content["spec"]
        modes, capacity = spec.get("accessModes") or [], spec.get("capacity") or {}
        self._write(
            claim,
            {
                "metadata": {"annotations": noted},
                "spec": {"volumeName": volume.key.name},
                "status": {"phase": BOUND, "accessModes": modes, "capacity": capacity},
            },
        )


def claim_info(stored: StoredObject) -> ClaimInfo:
    assert isinstance(stored.object, PersistentVolumeClaim)
    return ClaimInfo(stored.object)
