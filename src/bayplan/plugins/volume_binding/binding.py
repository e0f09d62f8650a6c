"""The decision about a pod's claims on its node: assumed, written, awaited.

An existing volume is reserved for its claim. A claim without a volume gets the name of the node, so
that the volume controller provisions a volume there. Both are assumed at once, so that no other pod
takes the same volume. Then each object is written, unless it changed since. The binding ends when
the volume controller has bound all claims, or by a timeout; it reads the API's versions, which the
controller sees, and not the assumed ones. Upstream: binder.go (AssumePodVolumes, BindPodVolumes,
checkBindings).
"""

from typing import Any, Final, final

import msgspec
from msgspec import Struct

from bayplan.api.csi_migration import NotTranslated
from bayplan.api.objects import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, Node
from bayplan.api.storage_objects import (
    BOUND_BY_CONTROLLER,
    MIGRATED_PLUGINS,
    SELECTED_NODE,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
)
from bayplan.plugins.volume_binding.claims import NONE, NodeVolumes
from bayplan.printable import quoted
from bayplan.state.storage_infos import ClaimInfo, NodeTerms, VolumeInfo
from bayplan.state.volumes import Volumes

# ---- decision -------------------------------------------------------------------------------


@final
class Binding(Struct):
    """A claim that will be bound to an existing volume."""

    claim: ClaimInfo
    volume: VolumeInfo
    #: The volume to be assumed; None: it has these values already, or another pod assumed them.
    new: PersistentVolume | None = None
    is_written: bool = False

    @property
    def target(self) -> PersistentVolume:
        """The volume as each binding writes it."""
        return self.new or self.volume.volume


@final
class Provision(Struct):
    """A claim that a volume is made for."""

    claim: ClaimInfo
    new: PersistentVolumeClaim
    is_written: bool = False


@final
class VolumeDecision(Struct):
    """For one pod on one node."""

    node_name: str
    bindings: list[Binding]
    provisions: list[Provision]

    def assume(self, volumes: Volumes) -> None:
        """Assume the decision, so that other pods see it."""
        for binding in self.bindings:
            if binding.new is not None:
                volumes.assume_volume(binding.new)
        for provision in self.provisions:
            volumes.assume_claim(provision.new)

    def restore(self, volumes: Volumes) -> None:
        """Drop assumed objects that were not written; the API reports the written ones. May be
        called again."""
        for binding in self.bindings:
            if binding.new is not None and not binding.is_written:
                volumes.restore_volume(binding.new)
        for provision in self.provisions:
            if not provision.is_written:
                volumes.restore_claim(provision.new)


def decide(volumes: NodeVolumes, node_name: str) -> VolumeDecision:
    """``volumes``: for the node alone."""
    bindings = [
        _binding(matched.claim, matched.volumes[index])
        for matched in volumes.matched
        if (index := matched.chosen.item(0)) != NONE
    ]
    provisions = [
        Provision(each.claim, _with_node(each.claim.claim, node_name))
        for each in volumes.provisioned
        if each.needed.item(0)
    ]
    return VolumeDecision(node_name, bindings, provisions)


def _binding(claim: ClaimInfo, volume: VolumeInfo) -> Binding:
    """Upstream: GetBindVolumeToClaim."""
    persistent_volume, meta = volume.volume, volume.volume.metadata
    annotations = dict(meta.annotations or {})
    if not volume.is_claimed_by(claim):
        annotations.setdefault(BOUND_BY_CONTROLLER, "yes")
    ref = persistent_volume.spec.claim_ref
    if ref is None or not volume.is_claimed_by(claim) or ref.uid != claim.uid:
        ref = _reference(claim)
    new = msgspec.structs.replace(
        persistent_volume,
        metadata=msgspec.structs.replace(meta, annotations=annotations or None),
        spec=msgspec.structs.replace(persistent_volume.spec, claim_ref=ref),
    )
    return Binding(claim, volume, None if new == persistent_volume else new)


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
    """The API refuses the write if the volume changed meanwhile."""
    new = binding.target
    patch = {
        "metadata": _expecting(new.metadata.resource_version, new.metadata.annotations),
        "spec": {"claimRef": msgspec.to_builtins(new.spec.claim_ref)},
    }
    return PERSISTENT_VOLUME, "", binding.volume.name, patch


def claim_write(provision: Provision) -> Write:
    """The API refuses the write if the claim changed meanwhile."""
    new, claim = provision.new, provision.claim
    patch = {"metadata": _expecting(new.metadata.resource_version, new.metadata.annotations)}
    return PERSISTENT_VOLUME_CLAIM, claim.namespace, claim.name, patch


def _expecting(version: str | None, annotations: dict[str, str] | None) -> dict[str, Any]:
    return {"resourceVersion": version, "annotations": annotations or {}}


# ---- binding --------------------------------------------------------------------------------


NO_NODE: Final = 'failed to get node "{0}": node "{0}" not found'
NO_POD: Final = 'pod does not exist any more: pod "{}" not found'
CLAIM_RESET: Final = 'ClaimRef got reset for pv "{}"'
ANNOTATION_RESET: Final = 'selectedNode annotation reset for PVC "{}"'
NOT_PROVISIONED: Final = 'provisioning failed for PVC "{}"'
WRONG_NODE: Final = 'pv "{}" node affinity doesn\'t match node "{}": no matching NodeSelectorTerms'
NOT_CHECKED: Final = "failed to check binding: {}"
CLAIM_NOT_CHECKED: Final = "failed to check provisioning pvc: {}"
NOT_TRANSLATED: Final = "failed to translate pv to csi: could not translate pv: {}"


def _not_in_cache(resource: str, key: str) -> str:
    """The message of upstream's cache, which names the resource (passive_assume_cache.go)."""
    return f"{resource} {quoted(key)} not found"


class BindingFailed(Exception):
    """The binding cannot succeed; the message says why."""


class Progress(Struct, frozen=True):
    """Looks at the API's objects on behalf of one decision."""

    volumes: Volumes
    node: Node

    def is_complete(self, decision: VolumeDecision) -> bool:
        """Whether all claims are bound. Raises BindingFailed."""
        return all(map(self._is_bound, decision.bindings)) and all(
            map(self._is_provisioned, decision.provisions)
        )

    def _is_bound(self, binding: Binding) -> bool:
        volume = self.volumes.api.volume(binding.volume.name)
        if volume is None:
            raise BindingFailed(
                NOT_CHECKED.format(_not_in_cache("persistentvolumes", binding.volume.name))
            )
        claim = self.volumes.api.claim(binding.claim.key)
        if claim is None:
            raise BindingFailed(
                NOT_CHECKED.format(_not_in_cache("persistentvolumeclaims", binding.claim.key))
            )
        if volume.version == binding.volume.version and volume.volume != binding.target:
            return False  # what we wrote has not come back yet
        self._check_reach(volume)
        ref = volume.volume.spec.claim_ref
        if ref is None or not ref.uid:
            raise BindingFailed(CLAIM_RESET.format(volume.name))
        return claim.is_fully_bound

    def _is_provisioned(self, provision: Provision) -> bool:
        claim = self.volumes.api.claim(provision.claim.key)
        if claim is None:
            raise BindingFailed(
                CLAIM_NOT_CHECKED.format(
                    _not_in_cache("persistentvolumeclaims", provision.claim.key)
                )
            )
        if provision.new != provision.claim.claim and claim.version == provision.claim.version:
            return False  # what we wrote has not come back yet
        self._check_node(claim)
        if claim.volume_name:
            volume = self.volumes.api.volume(claim.volume_name)
            if volume is None:
                return False  # reported later than the claim, or deleted: wait
            self._check_reach(volume)
        return claim.is_fully_bound

    def _check_node(self, claim: ClaimInfo) -> None:
        """A provisioner that fails takes the node's name away: another one is to be chosen."""
        if not claim.annotations:
            raise BindingFailed(ANNOTATION_RESET.format(claim.name))
        if claim.selected_node != self.node.metadata.name:
            raise BindingFailed(NOT_PROVISIONED.format(claim.name))

    def _check_reach(self, volume: VolumeInfo) -> None:
        terms = volume.node_terms
        if volume.plugin is not None and self._is_migrated(volume.plugin.name):
            try:
                terms = volume.csi_node_terms
            except NotTranslated as problem:
                raise BindingFailed(NOT_TRANSLATED.format(problem)) from None
        if not _reaches(terms, self.node):
            raise BindingFailed(WRONG_NODE.format(volume.name, self.node.metadata.name))

    def _is_migrated(self, plugin: str) -> bool:
        csi_node = self.volumes.api.csi_node(self.node.metadata.name)
        annotations = (csi_node.metadata.annotations or {}) if csi_node is not None else {}
        return plugin in annotations.get(MIGRATED_PLUGINS, "").split(",")


def _reaches(terms: NodeTerms, node: Node) -> bool:
    labels = node.metadata.labels or {}
    return terms is None or any(all(one.matches(labels) for one in term) for term in terms)
