"""PreFilter: whether the pod's claims exist, and which of them need an allocation.

An allocated device may name conditions that must be true before the pod is bound, and conditions
that mean a failure. Upstream: isClaimReadyForBinding, isClaimTimeout.
"""

from collections.abc import Sequence

from bayplan.api.device_objects import (
    AllocatedDeviceStatus,
    DeviceCondition,
    DeviceRequest,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from bayplan.api.selectors import NodeTerm
from bayplan.clock import epoch_of
from bayplan.framework.handle import DeviceClassLister, SharedDRAManager
from bayplan.framework.status import Code, Status, unresolvable
from bayplan.plugins.dynamic_resources.allocator import Allocator, PoolsByNode
from bayplan.plugins.dynamic_resources.attempt import Attempt
from bayplan.plugins.dynamic_resources.claims import claims_of
from bayplan.plugins.dynamic_resources.extended import requested_devices, special_claim
from bayplan.plugins.dynamic_resources.pools import AllocationError, compiled
from bayplan.state.pods import PodInfo

# ---- readiness ------------------------------------------------------------------------------


BINDING_FAILED = "device binding failed"
BINDING_TIMEOUT = "device binding timeout"


def is_ready(claim: ResourceClaim) -> bool | str:
    """Whether all devices are ready; a text names the device that failed."""
    if claim.allocation is None:
        return False
    for result in claim.allocation.results:
        if not result.binding_conditions:
            continue
        reported = _reported(claim, result)
        if reported is None:
            return False
        for name in result.binding_failure_conditions or ():
            failed = _condition(reported, name)
            if failed is not None and failed.status == "True":
                what = f'reason={failed.reason}, message="{failed.message}"'
                return f"{BINDING_FAILED}: claim={claim.metadata.name}, {what}"
        if not all(_is_true(reported, name) for name in result.binding_conditions):
            return False
    return True


def waits_for_conditions(claim: ResourceClaim) -> bool:
    """Whether any of its devices names conditions."""
    return claim.allocation is not None and any(
        result.binding_conditions for result in claim.allocation.results
    )


def is_timed_out(claim: ResourceClaim, epoch_seconds: float, timeout_seconds: float) -> bool:
    """Whether it was allocated so long ago that it is not waited for any longer."""
    allocation = claim.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    allocated = epoch_of(allocation.allocation_timestamp)
    has_conditions = any(r.binding_conditions is not None for r in allocation.results)
    return has_conditions and allocated is not None and allocated + timeout_seconds < epoch_seconds


def _reported(
    claim: ResourceClaim, result: DeviceRequestAllocationResult
) -> AllocatedDeviceStatus | None:
    for status in claim.status.devices or ():
        if (status.driver, status.pool, status.device) == (
            result.driver,
            result.pool,
            result.device,
        ):
            return status
    return None


def _condition(status: AllocatedDeviceStatus, name: str) -> DeviceCondition | None:
    return next((each for each in status.conditions or () if each.type == name), None)


def _is_true(status: AllocatedDeviceStatus, name: str) -> bool:
    condition = _condition(status, name)
    return condition is not None and condition.status == "True"


# ---- preparing ------------------------------------------------------------------------------


def prepare(pod: PodInfo, devices: SharedDRAManager, pools: PoolsByNode) -> Attempt | Status:
    """The pod's claims, ready for Filter; or why it cannot be placed now."""
    claims = claims_of(pod, devices.resource_claims)
    if isinstance(claims, Status):
        return claims
    has_special = requested_devices(pod, devices.device_classes)
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
