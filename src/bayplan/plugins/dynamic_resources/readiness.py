"""Devices that must be made ready before a pod is bound: conditions their driver reports.

An allocated device may name conditions that must be true first, and others that mean it failed.
Upstream: isClaimReadyForBinding, isClaimTimeout.
"""

from bayplan.api.device_objects import (
    AllocatedDeviceStatus,
    DeviceCondition,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from bayplan.clock import epoch_of

BINDING_FAILED = "device binding failed"
BINDING_TIMEOUT = "device binding timeout"


def is_ready(claim: ResourceClaim) -> bool | str:
    """Whether all devices are ready; a text says which of them failed."""
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
    found = _condition(status, name)
    return found is not None and found.status == "True"
