"""The Lease of coordination.k8s.io/v1 as the election sees it, and the port it is kept through."""

from typing import Any, Protocol

from bayplan.serving.election import LeaseRecord

API_VERSION = "coordination.k8s.io/v1"
KIND = f"{API_VERSION} Lease"

#: A Lease as plain values, as the API has it.
Lease = dict[str, Any]


class LeaseLock(Protocol):
    """One lease at an API server. All requests raise ApiError and OutcomeUnknownError."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...

    async def get(self) -> Lease:
        """Raises NotFoundError where there is none."""
        ...

    async def create(self, lease: Lease) -> Lease:
        """Raises ConflictError where there is one."""
        ...

    async def update(self, lease: Lease) -> Lease:
        """Raises ConflictError where it changed since."""
        ...


def record_of(lease: Lease) -> LeaseRecord:
    """What a lease says; anything it does not say is empty."""
    spec: dict[str, Any] = lease.get("spec") or {}
    return LeaseRecord(
        holder_identity=spec.get("holderIdentity") or "",
        lease_duration_seconds=spec.get("leaseDurationSeconds") or 0,
        acquire_time=spec.get("acquireTime") or "",
        renew_time=spec.get("renewTime") or "",
        lease_transitions=spec.get("leaseTransitions") or 0,
    )


def with_record(lease: Lease, record: LeaseRecord) -> Lease:
    """``lease`` saying ``record``: what others wrote into it stays, and so does its version."""
    spec: dict[str, Any] = {
        **(lease.get("spec") or {}),
        "holderIdentity": record.holder_identity,
        "leaseDurationSeconds": record.lease_duration_seconds,
        "acquireTime": record.acquire_time,
        "renewTime": record.renew_time,
        "leaseTransitions": record.lease_transitions,
    }
    return {**lease, "spec": spec}


def new_lease(namespace: str, name: str) -> Lease:
    """One that nobody holds."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Lease",
        "metadata": {"namespace": namespace, "name": name},
    }
