"""What becomes of a pod's claims on the node it goes to: assumed, written, waited for.

Volumes that are there are reserved for their claims, claims without get the node's name, which
tells the volume controller where to make one. Both are assumed at once, so that no other pod takes
the same volume, then written, each only if nobody wrote it meanwhile. Upstream: binder.go
(AssumePodVolumes, BindPodVolumes).
"""

from dataclasses import dataclass
from typing import Any, final

import msgspec

from bayplan.api.objects import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from bayplan.api.storage_objects import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
)
from bayplan.plugins.volume_binding.finding import NONE, Found
from bayplan.state.storage_infos import ClaimInfo, VolumeInfo
from bayplan.state.volumes import Volumes


@final
@dataclass(slots=True)
class Binding:
    """A claim that is bound to a volume which is there."""

    claim: ClaimInfo
    volume: VolumeInfo
    #: What the volume will be; None: it says so already.
    new: PersistentVolume | None = None
    is_written: bool = False


@final
@dataclass(slots=True)
class Provision:
    """A claim that a volume is made for."""

    claim: ClaimInfo
    new: PersistentVolumeClaim
    is_written: bool = False


@final
@dataclass(slots=True)
class Decision:
    """For one pod on one node."""

    node_name: str
    bindings: list[Binding]
    provisions: list[Provision]

    def assume(self, volumes: Volumes) -> None:
        """Have everybody see it."""
        for binding in self.bindings:
            if binding.new is not None:
                volumes.assume_volume(binding.new)
        for provision in self.provisions:
            volumes.assume_claim(provision.new)

    def restore(self, volumes: Volumes) -> None:
        """Take back what was not written; the API will tell of the rest. May be repeated."""
        for binding in self.bindings:
            if binding.new is not None and not binding.is_written:
                volumes.restore_volume(binding.new)
        for provision in self.provisions:
            if not provision.is_written:
                volumes.restore_claim(provision.new)


def decide(found: Found, node_name: str) -> Decision:
    """``found``: for the node alone."""
    bindings = [
        _binding(matched.claim, matched.volumes[index])
        for matched in found.matched
        if (index := matched.chosen.item(0)) != NONE
    ]
    provisions = [
        Provision(each.claim, _with_node(each.claim.claim, node_name))
        for each in found.provisioned
        if each.wanted.item(0)
    ]
    return Decision(node_name, bindings, provisions)


def _binding(claim: ClaimInfo, volume: VolumeInfo) -> Binding:
    """Upstream: GetBindVolumeToClaim."""
    known, meta = volume.volume, volume.volume.metadata
    annotations = dict(meta.annotations or {})
    if not volume.is_claimed_by(claim):
        annotations.setdefault(BOUND_BY_CONTROLLER, "yes")
    ref = known.spec.claim_ref
    if ref is None or not volume.is_claimed_by(claim) or ref.uid != claim.uid:
        ref = _reference(claim)
    new = msgspec.structs.replace(
        known,
        metadata=msgspec.structs.replace(meta, annotations=annotations or None),
        spec=msgspec.structs.replace(known.spec, claim_ref=ref),
    )
    return Binding(claim, volume, None if new == known else new)


def _reference(claim: ClaimInfo) -> ObjectReference:
    return ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        name=claim.name,
        namespace=claim.namespace,
        uid=claim.uid,
        resource_version=claim.version or None,
    )


def _with_node(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    annotations = {**(claim.metadata.annotations or {}), SELECTED_NODE: node_name}
    metadata = msgspec.structs.replace(claim.metadata, annotations=annotations)
    return msgspec.structs.replace(claim, metadata=metadata)


# ---- what is written -----------------------------------------------------------------------

#: kind, namespace, name, JSON merge patch
Write = tuple[str, str, str, dict[str, Any]]


def volume_write(binding: Binding) -> Write:
    """Refused if somebody wrote the volume meanwhile."""
    new = binding.new or binding.volume.volume
    patch = {
        "metadata": _expecting(new.metadata.resource_version, new.metadata.annotations),
        "spec": {"claimRef": msgspec.to_builtins(new.spec.claim_ref)},
    }
    return PERSISTENT_VOLUME, "", binding.volume.name, patch


def claim_write(provision: Provision) -> Write:
    """Refused if somebody wrote the claim meanwhile."""
    new, claim = provision.new, provision.claim
    patch = {"metadata": _expecting(new.metadata.resource_version, new.metadata.annotations)}
    return PERSISTENT_VOLUME_CLAIM, claim.namespace, claim.name, patch


def _expecting(version: str | None, annotations: dict[str, str] | None) -> dict[str, Any]:
    return {"resourceVersion": version, "annotations": annotations or {}}
