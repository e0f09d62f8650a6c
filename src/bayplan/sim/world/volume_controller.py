"""The volume controllers of a simulation: claims get their volumes without delay.

The tasks are those of kube-controller-manager and a provisioner in a cluster. Pods with ephemeral
volumes get their claims. A claim that need not wait for its pod is bound to a volume that fits, or
to a new one. A claim that waits is bound when the scheduler has reserved a volume for it, or has
chosen the node for a new one. A deleted claim releases its volume, or the volume is deleted with
it.

The controller handles changed objects one after the other, in the order of the changes.

Some deleted objects stay if they have the finalizers of a cluster. A claim stays while a pod on a
node uses it, even a pod that has ended, and a volume stays while it is bound. When that pod or
claim is gone, the controller removes the finalizers.

Upstream: pkg/controller/volume/{persistentvolume,ephemeral,pvcprotection,pvprotection},
sig-storage-lib-external-provisioner. Missing here: volumes that are lost under a bound claim, and
resizing.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, final

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.json_merge import merge_patch
from bayplan.adapters.embedded.versioned_store import PodChange, StoredObject
from bayplan.api.finalizers import (
    ATTACHER_PREFIX,
    PROVISIONER,
    PV_CONTROLLER,
    PV_PROTECTION,
    PVC_PROTECTION,
)
from bayplan.api.objects import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STORAGE_CLASS,
    PersistentVolume,
    Pod,
    is_terminal,
)
from bayplan.api.selectors import SelectorError
from bayplan.api.storage_objects import (
    AVAILABLE,
    BOUND,
    BOUND_BY_CONTROLLER,
)
from bayplan.objects.keys import ObjectKey, key_of, object_key
from bayplan.objects.workloads import controller_reference
from bayplan.ports import ApiError
from bayplan.sim.loop import running_loop
from bayplan.sim.world.claim_binding import (
    ClaimBinding,
    FreeVolumes,
    claim_info,
    ephemeral_claims,
    volume_info,
)

#: The kinds that the controller follows.
_KINDS = (POD, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS)

#: A function that gets the action and the error of the API server.
Refuse = Callable[[str, ApiError], None]


@final
class VolumeController:
    """The controller of one embedded cluster. It must see every change, from the first."""

    def __init__(self, cluster: EmbeddedCluster, refuse: Refuse) -> None:
        self._cluster = cluster
        self._refuse = refuse
        #: Objects to handle.
        self._due: dict[ObjectKey, None] = {}
        self._is_called = False
        #: Whether all claims are to be handled, because a new volume or class may serve any of
        #: them.
        self._all_claims_due = False
        self._unbound: dict[ObjectKey, None] = {}
        self._free = FreeVolumes()
        #: Claim → the volumes whose claimRef names it.
        self._reserved: dict[ObjectKey, dict[ObjectKey, None]] = defaultdict(dict)
        self._claims = ClaimBinding(cluster, self._free, self._reserved)
        #: Volumes whose claim was deleted.
        self._abandoned: dict[ObjectKey, None] = {}
        #: Claims whose pod was deleted, with the uid of the pod.
        self._orphans: dict[ObjectKey, str] = {}
        self._acts = {
            POD: self._look_at_pod,
            PERSISTENT_VOLUME: self._look_at_volume,
            PERSISTENT_VOLUME_CLAIM: self._look_at_claim,
        }
        cluster.observe(self._observe, _KINDS, ignored_changes=tuple(PodChange))

    # ---- what changes ----------------------------------------------------------------------

    def _observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        """Called during a change. The consequences of the change follow right after it."""
        changed = after or before
        assert changed is not None
        key = changed.key
        if key.kind == POD:
            ends = before is None or after is None or not after.is_visible
            if ends and changed.content["spec"].get("volumes"):
                self._see_pod(changed, is_there=after is not None)
        elif key.kind == PERSISTENT_VOLUME_CLAIM:
            self._see_claim(key, before, after)
        elif key.kind == PERSISTENT_VOLUME:
            self._see_volume(key, before, after)
        elif key.kind == STORAGE_CLASS and after is not None:
            self._all_claims_due = True
        else:
            return
        if not self._is_called and (
            self._due or self._all_claims_due or self._abandoned or self._orphans
        ):
            self._is_called = True
            running_loop().call_soon(self._called)

    def _called(self) -> None:
        self._is_called = False
        self.act()

    def _see_pod(self, changed: StoredObject, *, is_there: bool) -> None:
        """Note that a pod with volumes was created, changed or deleted."""
        if is_there:
            self._due[changed.key] = None
        else:
            for claim in ephemeral_claims(changed.content):
                self._orphans[key_of(claim)] = changed.content["metadata"]["uid"]
        if is_there and changed.is_visible:
            return
        for key in _claims_of(changed):
            stored = self._cluster.get(key)
            if stored is not None and stored.content["metadata"].get("deletionTimestamp"):
                self._due[key] = None

    def _see_claim(
        self, key: ObjectKey, before: StoredObject | None, after: StoredObject | None
    ) -> None:
        self._unbound.pop(key, None)
        if after is not None:
            if not claim_info(after).is_fully_bound:
                self._unbound[key] = None
            self._due[key] = None
            return
        assert before is not None
        uid = claim_info(before).uid
        for volume in self._reserved.get(key, ()):
            stored = self._cluster.get(volume)
            ref = None if stored is None else volume_info(stored).volume.spec.claim_ref
            if ref is not None and ref.uid == uid:
                self._abandoned[volume] = None
        owner = controller_reference(before.content)
        if owner is not None and owner["kind"] == "Pod":
            self._due[object_key(POD, key.namespace, owner["name"])] = None

    def _see_volume(
        self, key: ObjectKey, before: StoredObject | None, after: StoredObject | None
    ) -> None:
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
        """Do all work of this moment."""
        while self._due or self._all_claims_due or self._abandoned or self._orphans:
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
        if stored is None:
            return
        if stored.content["metadata"].get("deletionTimestamp"):
            self._release(stored)
            return
        try:
            self._acts[key.kind](stored)
        except ApiError as problem:
            self._refuse(f"volumes of {key}", problem)
        except SelectorError:
            return  # No volume fits an invalid selector. The attempt at the pod reports the error.

    def _release(self, stored: StoredObject) -> None:
        """Remove the finalizers of a deleted claim or volume that is no longer in use."""
        finalizers: list[str] = stored.content["metadata"].get("finalizers") or []
        left = [one for one in finalizers if not _is_own(stored, one)]
        if len(left) < len(finalizers) and not self._is_in_use(stored):
            self._cluster.server.patch(stored.key, {"metadata": {"finalizers": left or None}})

    def _is_in_use(self, stored: StoredObject) -> bool:
        """Whether a pod on a node uses a claim, or a claim has a volume."""
        if stored.key.kind == PERSISTENT_VOLUME:
            owner = _claimed_by(stored)
            claim = None if owner is None else self._cluster.get(owner)
            return claim is not None and volume_info(stored).is_claimed_by(claim_info(claim))
        return any(
            stored.key in _claims_of(pod)
            for pod in self._cluster.objects(POD)
            if pod.content["spec"].get("nodeName")
        )

    def _write(self, stored: StoredObject, patch: Any) -> StoredObject:
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
                self._due[key] = None
            else:
                self._write(volume, {"status": {"phase": "Released"}})

    # ---- pods and volumes ------------------------------------------------------------------

    def _look_at_pod(self, stored: StoredObject) -> None:
        """Create the missing claims of a pod's ephemeral volumes."""
        if isinstance(stored.object, Pod) and is_terminal(stored.object):
            return
        for claim in ephemeral_claims(stored.content):
            if self._cluster.get(key_of(claim)) is None:
                self._cluster.create(claim)

    def _look_at_volume(self, stored: StoredObject) -> None:
        """Set the phase of a volume. If the volume is reserved for a claim, handle the claim
        next."""
        owner = _claimed_by(stored)
        if owner is None:
            self._set_phase(stored, AVAILABLE)
            return
        ref = stored.content["spec"]["claimRef"]
        if not ref.get("uid") and self._set_phase(stored, AVAILABLE):
            return  # The write is a change, so the volume is handled again.
        claim = self._cluster.get(owner)
        if claim is None or not volume_info(stored).is_claimed_by(claim_info(claim)):
            return
        named = claim_info(claim).volume_name
        if named == stored.key.name and ref.get("uid"):
            self._set_phase(stored, BOUND)
        elif named and named != stored.key.name and _is_bound_by_controller(stored):
            # The claim has another volume: undo the reservation of the controller or the scheduler.
            annotations = {BOUND_BY_CONTROLLER: None}
            self._write(
                stored, {"metadata": {"annotations": annotations}, "spec": {"claimRef": None}}
            )
        elif not claim_info(claim).is_fully_bound:
            self._due[owner] = None

    def _set_phase(self, stored: StoredObject, phase: str) -> bool:
        """Set the phase of a volume. Returns whether the phase changed."""
        if (stored.content.get("status") or {}).get("phase") == phase:
            return False
        self._write(stored, {"status": {"phase": phase}})
        return True

    def _look_at_claim(self, stored: StoredObject) -> None:
        claim = claim_info(stored)
        if not claim.is_fully_bound:
            self._claims.look_at(stored)
            return
        # The claim is bound, but its volume may not be: handle the volume, too.
        volume = object_key(PERSISTENT_VOLUME, "", claim.volume_name)
        if volume in self._reserved.get(stored.key, ()):
            self._due[volume] = None


def _claims_of(pod: StoredObject) -> Iterator[ObjectKey]:
    """The claims that a pod uses."""
    for volume in pod.content["spec"].get("volumes") or ():
        source: Any = volume.get("persistentVolumeClaim") or {}
        name: str = source.get("claimName") or ""
        if volume.get("ephemeral"):
            name = f"{pod.key.name}-{volume['name']}"
        if name:
            yield object_key(PERSISTENT_VOLUME_CLAIM, pod.key.namespace, name)


def _is_own(stored: StoredObject, finalizer: str) -> bool:
    """Whether the controllers of storage remove a finalizer of an object that is not in use."""
    if stored.key.kind == PERSISTENT_VOLUME_CLAIM:
        return finalizer == PVC_PROTECTION
    if stored.key.kind != PERSISTENT_VOLUME:
        return False
    if finalizer in (PV_CONTROLLER, PROVISIONER):
        # The storage of a volume that never had a claim is not deleted.
        spec = stored.content["spec"]
        return spec.get("persistentVolumeReclaimPolicy") != "Delete" or "claimRef" in spec
    return finalizer == PV_PROTECTION or finalizer.startswith(ATTACHER_PREFIX)


def _claimed_by(volume: StoredObject) -> ObjectKey | None:
    """The claim that a volume's claimRef names, or None."""
    assert isinstance(volume.object, PersistentVolume)
    ref = volume.object.spec.claim_ref
    return (
        None if ref is None else object_key(PERSISTENT_VOLUME_CLAIM, ref.namespace or "", ref.name)
    )


def _is_bound_by_controller(volume: StoredObject) -> bool:
    return BOUND_BY_CONTROLLER in (volume.content["metadata"].get("annotations") or {})


def _is_of_pod(claim: StoredObject, uid: str) -> bool:
    owner = controller_reference(claim.content)
    return owner is not None and owner.get("uid") == uid
