"""The volume controllers of a simulation: claims get their volumes, in no time.

What kube-controller-manager and a provisioner do in a cluster: pods with ephemeral volumes get
their claims; a claim that need not wait for its pod is bound to a volume that fits, or one is made
for it; one that waits is bound when the scheduler has reserved a volume for it, or has named the
node to make one for. A claim that goes gives its volume back, or takes it along.

It looks at what has changed, one object after the other, in the order of the changes.

Upstream: pkg/controller/volume/{persistentvolume,ephemeral},
sig-storage-lib-external-provisioner. Left out: volumes that are lost under a bound claim, resizing,
and that a claim in use is protected.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, final

from bayplan.adapters.embedded import EmbeddedCluster
from bayplan.adapters.json_merge import merge_patch
from bayplan.adapters.object_names import ObjectKey, key_of, object_key
from bayplan.adapters.object_store import Stored
from bayplan.api.objects import (
    CSI_NODE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STORAGE_CLASS,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    is_terminal,
)
from bayplan.api.selectors import SelectorError
from bayplan.api.storage_objects import (
    AVAILABLE,
    BIND_COMPLETED,
    BOUND,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
)
from bayplan.plugins.volume_binding.finding import may_hold
from bayplan.ports import ApiError
from bayplan.sim.assumed_classes import DEFAULT_CLASS_ANNOTATION, named_class
from bayplan.sim.free_volumes import FreeVolumes, volume_info
from bayplan.sim.loop import running_loop
from bayplan.sim.made_volumes import (
    allowed_keys,
    allowed_terms,
    claim_reference,
    driver_of,
    ephemeral_claims,
    is_dynamic,
    made_volume,
    node_terms,
)
from bayplan.state.storage_infos import ClaimInfo

_BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"

#: What it was about, and what the API server said.
Refuse = Callable[[str, ApiError], None]


@final
class VolumeController:
    """Of one embedded cluster; it must see all of its changes, from the first on."""

    def __init__(self, cluster: EmbeddedCluster, refuse: Refuse) -> None:
        self._cluster = cluster
        self._refuse = refuse
        #: Objects to look at.
        self._due: dict[ObjectKey, None] = {}
        self._is_called = False
        #: A volume or a class came that may serve any claim.
        self._all_claims_due = False
        self._unbound: dict[ObjectKey, None] = {}
        self._free = FreeVolumes()
        #: By claim: the volumes that say they are its.
        self._reserved: dict[ObjectKey, dict[ObjectKey, None]] = defaultdict(dict)
        #: Volumes whose claim went.
        self._abandoned: dict[ObjectKey, None] = {}
        #: Claims whose pod went, with the pod's uid.
        self._orphans: dict[ObjectKey, str] = {}
        self._acts = {
            POD: self._look_at_pod,
            PERSISTENT_VOLUME: self._look_at_volume,
            PERSISTENT_VOLUME_CLAIM: self._look_at_claim,
        }
        cluster.observe(self._observe)

    # ---- what changes ----------------------------------------------------------------------

    def _observe(self, before: Stored | None, after: Stored | None) -> None:
        """Called while a change is made: what follows from it comes right after."""
        changed = after or before
        assert changed is not None
        key = changed.key
        if key.kind == POD:
            self._see_pod(key, before, after)
        elif key.kind == PERSISTENT_VOLUME_CLAIM:
            self._see_claim(key, before, after)
        elif key.kind == PERSISTENT_VOLUME:
            self._see_volume(key, before, after)
        elif key.kind == STORAGE_CLASS and after is not None:
            self._all_claims_due = True
        else:
            return
        self._call()

    def _call(self) -> None:
        if self._is_called or not self._has_work:
            return
        self._is_called = True
        running_loop().call_soon(self._called)

    def _called(self) -> None:
        self._is_called = False
        self.act()

    @property
    def _has_work(self) -> bool:
        return bool(self._due or self._all_claims_due or self._abandoned or self._orphans)

    def _see_pod(self, key: ObjectKey, before: Stored | None, after: Stored | None) -> None:
        """Only a pod that comes or goes matters, and only one with ephemeral volumes."""
        if before is not None and after is not None:
            return
        changed = after or before
        assert changed is not None
        if not changed.content["spec"].get("volumes"):
            return
        if after is not None:
            self._due[key] = None
            return
        for claim in ephemeral_claims(changed.content):
            self._orphans[key_of(claim)] = changed.content["metadata"]["uid"]

    def _see_claim(self, key: ObjectKey, before: Stored | None, after: Stored | None) -> None:
        self._unbound.pop(key, None)
        if after is not None:
            if not _claim(after).is_fully_bound:
                self._unbound[key] = None
            self._due[key] = None
            return
        assert before is not None
        uid = _claim(before).uid
        for volume in self._reserved.get(key, ()):
            stored = self._cluster.get(volume)
            ref = None if stored is None else volume_info(stored).volume.spec.claim_ref
            if ref is not None and ref.uid == uid:
                self._abandoned[volume] = None
        for owner in before.content["metadata"].get("ownerReferences") or ():
            if owner["kind"] == "Pod" and owner.get("controller"):
                self._due[object_key(POD, key.namespace, owner["name"])] = None

    def _see_volume(self, key: ObjectKey, before: Stored | None, after: Stored | None) -> None:
        for stored, is_new in ((before, False), (after, True)):
            claim = None if stored is None else _claimed_by(stored)
            if claim is not None and is_new:
                self._reserved[claim][key] = None
            elif claim is not None:
                self._reserved[claim].pop(key, None)
        if self._free.see(key, after):
            self._all_claims_due = True
        if after is not None:
            self._due[key] = None

    # ---- what follows ----------------------------------------------------------------------

    def act(self) -> None:
        """All that there is to do at this moment."""
        while self._has_work:
            self._clean_up()
            while self._due:
                key = next(iter(self._due))
                del self._due[key]
                self._look_at(key)
            if self._all_claims_due:
                self._all_claims_due = False
                self._due.update(self._unbound)

    def _look_at(self, key: ObjectKey) -> None:
        stored = self._cluster.get(key)
        if stored is None or stored.content["metadata"].get("deletionTimestamp"):
            return
        try:
            self._acts[key.kind](stored)
        except ApiError as problem:
            self._refuse(f"volumes of {key}", problem)
        except SelectorError:
            return  # nothing fits a selector that says nothing; the pod's attempt tells

    def _write(self, stored: Stored, patch: Any) -> Stored:
        return self._cluster.update(merge_patch(stored.content, patch))

    def _clean_up(self) -> None:
        orphans, self._orphans = self._orphans, {}
        for key, uid in orphans.items():
            claim = self._cluster.get(key)
            if claim is not None and _is_of_pod(claim, uid):
                self._cluster.delete(key)
        abandoned, self._abandoned = self._abandoned, {}
        for key in abandoned:
            volume = self._cluster.get(key)
            if volume is None:
                continue
            if volume.content["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                self._cluster.delete(key)
            else:
                self._write(volume, {"status": {"phase": "Released"}})

    # ---- pods and volumes ------------------------------------------------------------------

    def _look_at_pod(self, stored: Stored) -> None:
        """Make the claims of its ephemeral volumes, where they are not there yet."""
        if isinstance(stored.object, Pod) and is_terminal(stored.object):
            return
        for claim in ephemeral_claims(stored.content):
            if self._cluster.get(key_of(claim)) is None:
                self._cluster.create(claim)

    def _look_at_volume(self, stored: Stored) -> None:
        """Say what state it is in; a claim that it is reserved for is looked at."""
        owner = _claimed_by(stored)
        if owner is None:
            self._set_phase(stored, AVAILABLE)
            return
        ref = stored.content["spec"]["claimRef"]
        if not ref.get("uid") and self._set_phase(stored, AVAILABLE):
            return  # it is looked at once more
        claim = self._cluster.get(owner)
        if claim is None or not volume_info(stored).is_claimed_by(_claim(claim)):
            return
        named = _claim(claim).volume_name
        if named == stored.key.name and ref.get("uid"):
            self._set_phase(stored, BOUND)
        elif named and named != stored.key.name and _is_bound_by_controller(stored):
            # The claim has another one: what the controller, or a scheduler, began is undone.
            annotations = {BOUND_BY_CONTROLLER: None}
            self._write(
                stored, {"metadata": {"annotations": annotations}, "spec": {"claimRef": None}}
            )
        elif not _claim(claim).is_fully_bound:
            self._due[owner] = None

    def _set_phase(self, stored: Stored, phase: str) -> bool:
        """Whether that is news."""
        if (stored.content.get("status") or {}).get("phase") == phase:
            return False
        self._write(stored, {"status": {"phase": phase}})
        return True

    # ---- claims ----------------------------------------------------------------------------

    def _look_at_claim(self, stored: Stored) -> None:
        """Upstream: syncUnboundClaim."""
        claim = _claim(stored)
        if claim.is_fully_bound:
            # One that says so first lets its volume say so, too.
            volume = object_key(PERSISTENT_VOLUME, "", claim.volume_name)
            if volume in self._reserved.get(stored.key, ()):
                self._due[volume] = None
        elif claim.volume_name:
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
        info, wanted = volume_info(volume), _claim(claim)
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


def _claim(stored: Stored) -> ClaimInfo:
    assert isinstance(stored.object, PersistentVolumeClaim)
    return ClaimInfo(stored.object)


def _claimed_by(volume: Stored) -> ObjectKey | None:
    """Whose a volume says that it is."""
    assert isinstance(volume.object, PersistentVolume)
    ref = volume.object.spec.claim_ref
    return (
        None if ref is None else object_key(PERSISTENT_VOLUME_CLAIM, ref.namespace or "", ref.name)
    )


def _is_bound_by_controller(volume: Stored) -> bool:
    return BOUND_BY_CONTROLLER in (volume.content["metadata"].get("annotations") or {})


def _is_default(storage_class: Stored) -> bool:
    annotations = storage_class.content["metadata"].get("annotations") or {}
    return "true" in map(annotations.get, (DEFAULT_CLASS_ANNOTATION, _BETA_DEFAULT_CLASS))


def _is_of_pod(claim: Stored, uid: str) -> bool:
    owners = claim.content["metadata"].get("ownerReferences") or ()
    return any(one.get("controller") and one.get("uid") == uid for one in owners)
