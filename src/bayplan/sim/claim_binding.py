"""Which volume a claim gets, or whether one is made. Upstream: pv_controller.go."""

from collections.abc import Mapping
from typing import Any, final

from bayplan.adapters.embedded import EmbeddedCluster
from bayplan.adapters.json_merge import merge_patch
from bayplan.adapters.object_names import ObjectKey, object_key
from bayplan.adapters.object_store import Stored
from bayplan.api.objects import (
    CSI_NODE,
    NODE,
    PERSISTENT_VOLUME,
    STORAGE_CLASS,
    CSINode,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.api.storage_objects import (
    BIND_COMPLETED,
    BOUND,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
)
from bayplan.plugins.volume_binding.finding import may_hold
from bayplan.sim.assumed_classes import DEFAULT_CLASS_ANNOTATION, named_class
from bayplan.sim.free_volumes import FreeVolumes, volume_info
from bayplan.sim.made_volumes import (
    allowed_keys,
    allowed_terms,
    claim_reference,
    driver_of,
    is_dynamic,
    made_volume,
    node_terms,
)
from bayplan.state.storage_infos import ClaimInfo

_BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"

#: By claim: volumes.
Reserved = Mapping[ObjectKey, dict[ObjectKey, None]]


@final
class ClaimBinding:
    """Looks at the claims of one cluster."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        free: FreeVolumes,
        reserved: Mapping[ObjectKey, dict[ObjectKey, None]],
    ) -> None:
        """``reserved``: by claim, the volumes that say they are its."""
        self._cluster = cluster
        self._free = free
        self._reserved = reserved

    def _write(self, stored: Stored, patch: Any) -> Stored:
        return self._cluster.update(merge_patch(stored.content, patch))

    def look_at(self, stored: Stored) -> None:
        """A claim that is not bound. Upstream: syncUnboundClaim."""
        claim = claim_info(stored)
        if claim.volume_name:
            self._bind_named(stored, claim)
        elif named_class(stored.content) is None and (default := self._default_class()):
            self._write(stored, {"spec": {"storageClassName": default}})
        elif (reserved := self._reserved_for(stored.key, claim)) is not None:
            self._bind(reserved, stored)
        else:
            self._find_or_make(stored, claim)

    def _bind_named(self, stored: Stored, claim: ClaimInfo) -> None:
        """A claim that wants one certain volume."""
        volume = self._cluster.get(object_key(PERSISTENT_VOLUME, "", claim.volume_name))
        if volume is not None and may_hold(volume_info(volume), claim):
            self._bind(volume, stored)

    def _reserved_for(self, key: ObjectKey, claim: ClaimInfo) -> Stored | None:
        """A volume that a user, or the scheduler, gave to the claim."""
        for name in self._reserved.get(key, ()):
            volume = self._cluster.get(name)
            if volume is not None and may_hold(volume_info(volume), claim):
                return volume
        return None

    def _find_or_make(self, stored: Stored, claim: ClaimInfo) -> None:
        found = self._cluster.get(object_key(STORAGE_CLASS, "", claim.class_name))
        storage_class = None if found is None else found.object
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

    def _make_for_node(self, stored: Stored, storage_class: StorageClass, name: str) -> None:
        node = self._cluster.get(object_key(NODE, "", name))
        if node is None:  # as a provisioner says it: choose another one
            self._write(stored, {"metadata": {"annotations": {SELECTED_NODE: None}}})
            return
        keys = self._topology_keys(name, driver_of(storage_class)) or allowed_keys(storage_class)
        labels = node.content["metadata"].get("labels") or {}
        self._make(stored, storage_class, node_terms(labels, keys))

    def _topology_keys(self, node_name: str, driver: str) -> tuple[str, ...]:
        """The labels by which a driver tells which nodes reach its volumes."""
        found = self._cluster.get(object_key(CSI_NODE, "", node_name))
        if found is None:
            return ()
        assert isinstance(found.object, CSINode)
        for each in found.object.spec.drivers or ():
            if each.name == driver:
                return each.topology_keys or ()
        return ()

    def _make(self, stored: Stored, storage_class: StorageClass, terms: list[Any]) -> None:
        """Once made, the volume is reserved for the claim, and both are bound."""
        self._cluster.create(made_volume(stored.content, storage_class, terms))

    def _default_class(self) -> str | None:
        """The newest of those that say so; then the first by name."""
        found = [one for one in self._cluster.objects(STORAGE_CLASS) if _is_default(one)]
        found.sort(key=lambda one: one.key.name)
        found.sort(key=lambda one: one.content["metadata"]["creationTimestamp"], reverse=True)
        return found[0].key.name if found else None

    def _bind(self, volume: Stored, claim: Stored) -> None:
        """Upstream: bind. First the volume, then the claim."""
        info, wanted = volume_info(volume), claim_info(claim)
        marks = {} if info.is_claimed_by(wanted) else {BOUND_BY_CONTROLLER: "yes"}
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
        if not wanted.volume_name:
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


def claim_info(stored: Stored) -> ClaimInfo:
    assert isinstance(stored.object, PersistentVolumeClaim)
    return ClaimInfo(stored.object)


def _is_default(storage_class: Stored) -> bool:
    annotations = storage_class.content["metadata"].get("annotations") or {}
    return "true" in map(annotations.get, (DEFAULT_CLASS_ANNOTATION, _BETA_DEFAULT_CLASS))
