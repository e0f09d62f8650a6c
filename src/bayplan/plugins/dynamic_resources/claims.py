"""A pod's claims, looked up by name; a claim made from a template must belong to the pod.

A pod names a claim, or a template from which a controller creates one; the controller writes its
name into the pod's status. Messages are upstream's: dynamic-resource-allocation/resourceclaim.
"""

from typing import Protocol

from bayplan.api.device_objects import ResourceClaim
from bayplan.api.objects import PodResourceClaim
from bayplan.framework.status import Status, unresolvable
from bayplan.state.pods import PodInfo


class ClaimLookup(Protocol):
    def get(self, namespace: str, name: str) -> ResourceClaim | None: ...


def claims_of(pod: PodInfo, claims: ClaimLookup) -> list[ResourceClaim] | Status:
    """The claims a pod names, in its order; or why it cannot be placed yet."""
    existing: list[ResourceClaim] = []
    for named in pod.spec.resource_claims or ():
        claim = _claim(pod, named, claims)
        if isinstance(claim, Status):
            return claim
        if claim is not None:
            existing.append(claim)
    return existing


def is_owned_by(claim: ResourceClaim, pod: PodInfo) -> bool:
    """Whether the claim was made for this pod, and not for an earlier pod of the same name."""
    owners = claim.metadata.owner_references or ()
    return any(owner.controller and owner.uid == pod.uid for owner in owners)


def _claim(
    pod: PodInfo, named: PodResourceClaim, claims: ClaimLookup
) -> ResourceClaim | Status | None:
    """None: it was decided that the pod needs none."""
    name = _name(pod, named)
    if name is None or isinstance(name, Status):
        return name
    claim = claims.get(pod.namespace, name)
    if claim is None:
        return unresolvable(f'could not find ResourceClaim "{pod.namespace}/{name}"')
    if claim.metadata.deletion_timestamp is not None:
        return unresolvable(f'resourceclaim "{name}" is being deleted')
    if named.resource_claim_name is None and not is_owned_by(claim, pod):
        whose = f"{pod.key} (Pod is not owner)"
        return unresolvable(f"ResourceClaim {claim.key} was not created for Pod {whose}")
    return claim


def _name(pod: PodInfo, named: PodResourceClaim) -> str | Status | None:
    if named.resource_claim_name is not None:
        return named.resource_claim_name
    if named.resource_claim_template_name is None:
        where = f'pod "{pod.key}", spec.resourceClaim "{named.name}"'
        return unresolvable(f"{where}: none of the supported fields are set")
    for status in pod.status.resource_claim_statuses or ():
        if status.name == named.name:
            return status.resource_claim_name
    return unresolvable(f'pod "{pod.key}": ResourceClaim not created yet')
