"""PreFilter: are the pod's claims there, and what has to be allocated?"""

from collections.abc import Sequence

from bayplan.api.device_objects import DeviceRequest, ResourceClaim
from bayplan.api.selectors import NodeTerm
from bayplan.framework.shared_devices import DeviceClassLister, SharedDRAManager
from bayplan.framework.status import Code, Status, unresolvable
from bayplan.plugins.dynamic_resources.allocator import Allocator, PoolsByNode
from bayplan.plugins.dynamic_resources.attempt import Attempt
from bayplan.plugins.dynamic_resources.claims import claims_of
from bayplan.plugins.dynamic_resources.extended import asked_of_devices, special_claim
from bayplan.plugins.dynamic_resources.pools import compiled
from bayplan.plugins.dynamic_resources.problems import AllocationError
from bayplan.state.pods import PodInfo


def prepare(pod: PodInfo, devices: SharedDRAManager, pools: PoolsByNode) -> Attempt | Status:
    """The pod's claims, ready for Filter; or why it cannot be placed now."""
    claims = claims_of(pod, devices.resource_claims)
    if isinstance(claims, Status):
        return claims
    has_special = asked_of_devices(pod, devices.device_classes)
    if has_special:
        claims.append(special_claim(pod, devices.resource_claims.list(pod.namespace)))
    attempt = Attempt(claims, has_special)
    why_not = _why_not(attempt, devices)
    if why_not is not None:
        return why_not
    try:
        attempt.selectors = [_terms(claim) for claim in claims]
    except AllocationError as problem:
        return Status(Code.ERROR, (str(problem),))
    if any(claim.allocation is None for claim in claims):
        allocated = devices.resource_claims.allocated
        attempt.allocator = Allocator(pools, devices.device_classes, allocated)
    return attempt


def _terms(claim: ResourceClaim) -> Sequence[NodeTerm] | None:
    if claim.allocation is None or claim.allocation.node_selector is None:
        return None
    return compiled(claim.allocation.node_selector)


def _why_not(attempt: Attempt, devices: SharedDRAManager) -> Status | None:
    for index, claim in attempt.unallocated():
        if devices.resource_claims.pending_allocation(claim.uid) is not None:
            return unresolvable(f"resource claim {claim.key} is in the process of being allocated")
        if attempt.is_special(index):
            continue
        for request in claim.spec.devices.requests or ():
            why_not = _class_missing(claim, request, devices.device_classes)
            if why_not is not None:
                return why_not
    return None


def _class_missing(
    claim: ResourceClaim, request: DeviceRequest, classes: DeviceClassLister
) -> Status | None:
    if request.exactly is not None:
        named = [(request.name, request.exactly.device_class_name)]
    elif request.first_available:
        named = [(f"{request.name}/{a.name}", a.device_class_name) for a in request.first_available]
    else:
        text = f"resource claim {claim.key}, request {request.name}: unknown request type"
        return unresolvable(text)
    for name, device_class in named:
        if not device_class:
            return Status(Code.ERROR, (f"request {name}: unsupported request type",))
        if classes.get(device_class) is None:
            return unresolvable(f"request {name}: device class {device_class} does not exist")
    return None
