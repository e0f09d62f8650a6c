"""A pod's claims: those that are bound to a volume, and those that get one with the pod."""

from dataclasses import dataclass
from typing import Final

from bayplan.api.objects import namespaced_name
from bayplan.api.storage_objects import LOST, WAIT_FOR_FIRST_CONSUMER
from bayplan.framework.status import Code, Status, unresolvable
from bayplan.state.pod_volumes import ClaimUse
from bayplan.state.pods import PodInfo
from bayplan.state.storage_infos import ClaimInfo
from bayplan.state.volumes import Volumes, claim_not_found

UNBOUND_IMMEDIATE: Final = "pod has unbound immediate PersistentVolumeClaims"
NOT_MADE_YET: Final = (
    'waiting for ephemeral volume controller to create the persistentvolumeclaim "{}"'
)
LOST_VOLUME: Final = 'persistentvolumeclaim "{}" bound to non-existent persistentvolume "{}"'
BEING_DELETED: Final = 'persistentvolumeclaim "{}" is being deleted'
NOT_OWNED: Final = "PVC {} was not created for pod {} (pod is not owner)"
NO_BINDING_MODE: Final = 'VolumeBindingMode not set for StorageClass "{}"'


@dataclass(frozen=True, slots=True)
class PodClaims:
    """In the order of the pod's volumes, each as often as it is used."""

    bound: tuple[ClaimInfo, ...]
    #: Unbound; bound once it is known where the pod goes.
    delayed: tuple[ClaimInfo, ...]


def pod_claims(volumes: Volumes, pod: PodInfo) -> PodClaims | Status:
    """All claims of a pod, or why it cannot run yet."""
    uses = pod.shape.volumes.claims
    for use in uses:
        problem = _problem(volumes, pod, use)
        if problem:
            return unresolvable(problem)
    bound: list[ClaimInfo] = []
    delayed: list[ClaimInfo] = []
    is_unbound = False
    for use in uses:
        claim = volumes.claim(namespaced_name(pod.namespace, pod.claim_name(use)))
        assert claim is not None, f"a claim of {pod!r} went while it was looked at"
        if claim.is_fully_bound:
            bound.append(claim)
            continue
        waits = _waits_for_consumer(volumes, claim)
        if isinstance(waits, Status):
            return waits
        # One that names a volume already is bound by the volume controller alone.
        if waits and not claim.volume_name:
            delayed.append(claim)
        else:
            is_unbound = True
    return (
        unresolvable(UNBOUND_IMMEDIATE) if is_unbound else PodClaims(tuple(bound), tuple(delayed))
    )


def _problem(volumes: Volumes, pod: PodInfo, use: ClaimUse) -> str:
    """Why one claim cannot be used; "" if it can."""
    name = pod.claim_name(use)
    claim = volumes.api.claim(namespaced_name(pod.namespace, name))
    if claim is None:
        return NOT_MADE_YET.format(name) if use.is_ephemeral else claim_not_found(name)
    if claim.claim.status.phase == LOST:
        return LOST_VOLUME.format(name, claim.volume_name)
    if claim.claim.metadata.deletion_timestamp is not None:
        return BEING_DELETED.format(name)
    if use.is_ephemeral and not claim.is_for(pod):
        return NOT_OWNED.format(claim.key, pod.key)
    return ""


def _waits_for_consumer(volumes: Volumes, claim: ClaimInfo) -> bool | Status:
    """Whether its class binds late. Upstream: IsDelayBindingMode."""
    storage_class = volumes.api.storage_class(claim.class_name) if claim.class_name else None
    if storage_class is None:
        return False
    mode = storage_class.volume_binding_mode
    if mode is None:
        return Status(Code.ERROR, (NO_BINDING_MODE.format(claim.class_name),))
    return mode == WAIT_FOR_FIRST_CONSUMER
