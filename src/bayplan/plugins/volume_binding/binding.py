"""Whether the volume controller has carried a decision out, and when to give up.

The API's own versions are looked at, not what we assume: they are what the controller sees.
Upstream: binder.go (checkBindings).
"""

from dataclasses import dataclass
from typing import Final

from bayplan.api.csi_migration import NotTranslated
from bayplan.api.objects import Node
from bayplan.api.storage_objects import MIGRATED_PLUGINS
from bayplan.plugins.volume_binding.decision import Binding, Decision, Provision
from bayplan.state.storage_infos import ClaimInfo, NodeTerms, VolumeInfo
from bayplan.state.volumes import Volumes, claim_not_found, volume_not_found

NO_NODE: Final = 'failed to get node "{0}": node "{0}" not found'
NO_POD: Final = 'pod does not exist any more: pod "{}" not found'
CLAIM_RESET: Final = 'ClaimRef got reset for pv "{}"'
ANNOTATION_RESET: Final = 'selectedNode annotation reset for PVC "{}"'
NOT_PROVISIONED: Final = 'provisioning failed for PVC "{}"'
WRONG_NODE: Final = 'pv "{}" node affinity doesn\'t match node "{}": no matching NodeSelectorTerms'
NOT_CHECKED: Final = "failed to check binding: {}"
CLAIM_NOT_CHECKED: Final = "failed to check provisioning pvc: {}"
NOT_TRANSLATED: Final = "failed to translate pv to csi: could not translate pv: {}"


class BindingFailed(Exception):
    """It will not come about; the message says why."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Looks at the API's objects on behalf of one decision."""

    volumes: Volumes
    node: Node

    def is_complete(self, decision: Decision) -> bool:
        """Whether all claims are bound. Raises BindingFailed."""
        return all(map(self._is_bound, decision.bindings)) and all(
            map(self._is_provisioned, decision.provisions)
        )

    def _is_bound(self, binding: Binding) -> bool:
        volume = self.volumes.api.volume(binding.volume.name)
        if volume is None:
            raise BindingFailed(NOT_CHECKED.format(volume_not_found(binding.volume.name)))
        claim = self.volumes.api.claim(binding.claim.key)
        if claim is None:
            raise BindingFailed(NOT_CHECKED.format(claim_not_found(binding.claim.name)))
        if binding.new is not None and volume.version == binding.volume.version:
            return False  # what we wrote has not come back yet
        self._check_reach(volume)
        ref = volume.volume.spec.claim_ref
        if ref is None or not ref.uid:
            raise BindingFailed(CLAIM_RESET.format(volume.name))
        return claim.is_fully_bound

    def _is_provisioned(self, provision: Provision) -> bool:
        claim = self.volumes.api.claim(provision.claim.key)
        if claim is None:
            raise BindingFailed(CLAIM_NOT_CHECKED.format(claim_not_found(provision.claim.name)))
        if provision.new != provision.claim.claim and claim.version == provision.claim.version:
            return False  # what we wrote has not come back yet
        self._check_node(claim)
        if claim.volume_name:
            volume = self.volumes.api.volume(claim.volume_name)
            if volume is None:
                return False  # told of later than the claim, or gone: then the claim will tell
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
