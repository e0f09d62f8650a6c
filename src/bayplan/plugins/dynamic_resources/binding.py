"""Writes allocations of Reserve to the API, and reverts them after a failure.

A claim is written in two steps. The first adds a finalizer, so that the claim is not deleted while
it has devices. The second writes allocation and reservation together into the status. Every patch
names the resourceVersion that it changes. After a conflict the claim is read and checked again. A
write without an answer is not repeated before the claim was read. Upstream: bindClaim, deleteClaim.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from bayplan.api.device_objects import (
    RESOURCE_CLAIM,
    AllocationResult,
    ConsumerReference,
    ResourceClaim,
)
from bayplan.api.finalizers import CLAIM_PROTECTION
from bayplan.api.objects import POD, NodeAllocatableResourceClaimStatus
from bayplan.plugins.dynamic_resources.extended import Mappings
from bayplan.ports import ApiError, BindPort, ConflictError, NotFoundError, OutcomeUnknownError
from bayplan.state.pods import PodInfo

#: Upstream: retry.DefaultRetry.
CONFLICT_TRIES = 5
CONFLICT_DELAY_SECONDS = 0.01

Patch = dict[str, Any]


class BindingError(Exception):
    """A claim cannot get its allocation; the text says why."""


async def bind_claim(
    port: BindPort,
    claim: ResourceClaim,
    user: ConsumerReference,
    allocation: AllocationResult | None,
    *,
    stamp: Callable[[], str] | None,
) -> ResourceClaim:
    """Store the allocation, if it is new, and the reservation for ``user``. Returns the claim after
    that. Another pod that shares the claim may write the same allocation first.

    A claim that is allocated already must still have the devices that it has in ``claim``, because
    the pod's node was chosen for these devices. Raises BindingError, ApiError, OutcomeUnknownError.
    """
    chosen_for = claim
    what = "add allocation and reservation" if allocation is not None else "add reservation"
    reason = ""
    for _ in range(CONFLICT_TRIES):
        if allocation is not None and _has(claim, allocation):
            allocation = None
        if allocation is None and claim.allocation is not None and claim.is_reserved_for(user.uid):
            return claim
        try:
            claim = await _with_finalizer(port, claim, allocation)
            return await _patched(port, claim, _reservation(claim, user, allocation, stamp))
        except ConflictError as problem:
            reason = str(problem)
            await port.sleep(CONFLICT_DELAY_SECONDS)
            claim = await refreshed(port, chosen_for)
        except OutcomeUnknownError as problem:
            reason = str(problem)
            claim = await refreshed(port, chosen_for)
        except ApiError as problem:
            reason = str(problem)
            break
    raise BindingError(f"{what} to claim {claim.key}: {reason}")


async def written_by_sharer(
    port: BindPort, claim: ResourceClaim, allocation: AllocationResult
) -> ResourceClaim:
    """The newest version of a claim whose allocation another pod has written. Raises BindingError
    if the claim has other devices, or none any more."""
    newest = await refreshed(port, claim)
    if newest.allocation is not None and not _has(newest, allocation):
        raise BindingError(f"claim {claim.key} got allocated elsewhere in the meantime")
    return newest


def _has(claim: ResourceClaim, allocation: AllocationResult) -> bool:
    """Whether the claim has the devices of the allocation."""
    return claim.allocation is not None and claim.allocation.results == allocation.results


async def refreshed(port: BindPort, claim: ResourceClaim) -> ResourceClaim:
    """The newest version of a claim. Raises BindingError if other devices were allocated to the
    claim meanwhile, or if another claim has its name."""
    newest = await _read(port, claim)
    if claim.allocation is None or newest.allocation is None:
        return newest
    if claim.allocation.results != newest.allocation.results:
        raise BindingError(f"claim {claim.key} got allocated elsewhere in the meantime")
    return newest


async def unreserve(port: BindPort, claim: ResourceClaim, pod_uid: str) -> ResourceClaim | None:
    """Remove a pod from the users of a claim; returns the updated claim.

    None: the claim was deleted (another claim may have its name), or the conflicts did not end.
    Raises ApiError, OutcomeUnknownError.
    """
    for _ in range(CONFLICT_TRIES):
        try:
            newest = await _newest(port, claim)
        except NotFoundError:
            return None
        if newest is None:
            return None
        claim = newest
        users = [u for u in claim.status.reserved_for or () if u.uid != pod_uid]
        if len(users) == len(claim.status.reserved_for or ()):
            return claim
        status: Patch = {"reservedFor": _plain(users) or None}
        try:
            return await _patched(port, claim, {"status": status})
        except ConflictError:
            await port.sleep(CONFLICT_DELAY_SECONDS)
    return None


async def deallocate(port: BindPort, claim: ResourceClaim) -> None:
    """Remove the allocation of a claim without users. Raises ApiError, OutcomeUnknownError."""
    cleared: Patch = {"reservedFor": None, "allocation": None, "devices": None}
    await _patched(port, claim, {"status": cleared})


async def delete_claim(port: BindPort, claim: ResourceClaim) -> None:
    """Delete a claim that the scheduler created. Its finalizer is removed first. Raises ApiError,
    OutcomeUnknownError."""
    try:
        for _ in range(CONFLICT_TRIES):
            finalizers = [f for f in claim.metadata.finalizers or () if f != CLAIM_PROTECTION]
            meta: Patch = {**_meant(claim), "finalizers": finalizers or None}
            try:
                await _patch(port, claim, {"metadata": meta})
                break
            except ConflictError:
                newest = await _newest(port, claim)
                if newest is None:
                    return
                claim = newest
        namespace = claim.metadata.namespace or ""
        await port.delete_object(RESOURCE_CLAIM, namespace, claim.metadata.name, claim.uid)
    except NotFoundError:
        return


async def create_special_claim(port: BindPort, claim: ResourceClaim) -> ResourceClaim:
    """Create a claim that existed in memory only. Raises ApiError, OutcomeUnknownError."""
    content: Patch = _plain(claim)
    for name in ("name", "uid"):
        content["metadata"].pop(name)
    content.pop("status", None)
    return cast(ResourceClaim, await port.create_object(RESOURCE_CLAIM, content))


async def tell_containers(port: BindPort, pod: PodInfo, claim: str, mappings: Mappings) -> None:
    """Write into the status of the pod which container gets which request. Raises ApiError,
    OutcomeUnknownError."""
    status = {"resourceClaimName": claim, "requestMappings": _plain(mappings)}
    patch: Patch = {
        "metadata": {"uid": pod.uid},
        "status": {"extendedResourceClaimStatus": status},
    }
    await port.patch(POD, pod.namespace, pod.name, patch, "status")


async def write_amounts(
    port: BindPort, pod: PodInfo, amounts: Sequence[NodeAllocatableResourceClaimStatus]
) -> None:
    """Write into the status of the pod what its devices take of the node. Raises BindingError,
    OutcomeUnknownError."""
    try:
        await _patch_amounts(port, pod, _plain(amounts))
    except ApiError as problem:
        what = f"updating pod {pod.key} NodeAllocatableResourceClaimStatuses"
        raise BindingError(f"{what}: {problem}") from None


async def clear_amounts(port: BindPort, pod: PodInfo) -> None:
    """Undo `write_amounts`. Raises ApiError, OutcomeUnknownError."""
    await _patch_amounts(port, pod, [])


async def _patch_amounts(port: BindPort, pod: PodInfo, statuses: list[Patch]) -> None:
    patch: Patch = {
        "metadata": {"uid": pod.uid},
        "status": {"nodeAllocatableResourceClaimStatuses": statuses},
    }
    await port.patch(POD, pod.namespace, pod.name, patch, "status")


# ---- steps ---------------------------------------------------------------------------------


async def _with_finalizer(
    port: BindPort, claim: ResourceClaim, allocation: AllocationResult | None
) -> ResourceClaim:
    if claim.metadata.deletion_timestamp is not None:
        raise BindingError(f"claim {claim.key} got deleted in the meantime")
    if allocation is None:
        if claim.allocation is None:
            raise BindingError(f"claim {claim.key} got deallocated elsewhere in the meantime")
        return claim
    if claim.allocation is not None:
        raise BindingError(f"claim {claim.key} got allocated elsewhere in the meantime")
    finalizers = claim.metadata.finalizers or ()
    if CLAIM_PROTECTION in finalizers:
        return claim
    meta: Patch = {**_meant(claim), "finalizers": [*finalizers, CLAIM_PROTECTION]}
    try:
        return await _patch(port, claim, {"metadata": meta})
    except (ConflictError, OutcomeUnknownError):
        raise
    except ApiError as problem:
        raise BindingError(f"add finalizer to claim {claim.key}: {problem}") from None


def _reservation(
    claim: ResourceClaim,
    user: ConsumerReference,
    allocation: AllocationResult | None,
    stamp: Callable[[], str] | None,
) -> Patch:
    users = _plain((*(claim.status.reserved_for or ()), user))
    status: Patch = {"reservedFor": users}
    if allocation is not None:
        status["allocation"] = _plain(allocation)
        if stamp is not None:
            status["allocation"]["allocationTimestamp"] = stamp()
    return {"status": status}


async def _patched(port: BindPort, claim: ResourceClaim, patch: Patch) -> ResourceClaim:
    """Write the status of a claim."""
    return await _patch(port, claim, {"metadata": _meant(claim), **patch}, "status")


async def _patch(
    port: BindPort, claim: ResourceClaim, patch: Patch, subresource: str = ""
) -> ResourceClaim:
    namespace, name = claim.metadata.namespace or "", claim.metadata.name
    written = await port.patch(RESOURCE_CLAIM, namespace, name, patch, subresource)
    return cast(ResourceClaim, written)


async def _read(port: BindPort, claim: ResourceClaim) -> ResourceClaim:
    """The newest version of a claim, on which the next write is based. Raises BindingError,
    ApiError."""
    try:
        newest = await _newest(port, claim)
    except NotFoundError as problem:
        what = f"get updated claim {claim.key} after conflict"
        raise BindingError(f"{what}: {problem}") from None
    if newest is None:
        raise BindingError(f"claim {claim.key} got deleted in the meantime")
    return newest


async def _newest(port: BindPort, claim: ResourceClaim) -> ResourceClaim | None:
    """The newest version of a claim. None: another claim has its name. Raises ApiError."""
    namespace, name = claim.metadata.namespace or "", claim.metadata.name
    newest = cast(ResourceClaim, await port.read(RESOURCE_CLAIM, namespace, name))
    return newest if newest.uid == claim.uid else None


def _meant(claim: ResourceClaim) -> Patch:
    """A patch that names the version of the claim that it changes."""
    meta: Patch = {"uid": claim.uid}
    if claim.metadata.resource_version:
        meta["resourceVersion"] = claim.metadata.resource_version
    return meta


def _plain(value: Any) -> Any:
    """The value as plain JSON."""
    return msgspec.json.decode(msgspec.json.encode(value))
