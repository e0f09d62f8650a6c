"""The Lease of an election: the identity of a replica, the port for the lease, and its HTTP
adapter.

A replica is identified by its host name and a random token. Its Lease (coordination.k8s.io/v1) is
in the namespace of its pod.
"""

import os
import socket
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple, Protocol, final
from urllib.parse import urlencode

import msgspec

from bayplan.adapters.live.client import ApiClient
from bayplan.adapters.live.errors import read_answer
from bayplan.adapters.live.rate_limit import Lane
from bayplan.adapters.live.watching import watch_lines
from bayplan.config.schema import KUBE_SCHEDULER_NAMESPACE
from bayplan.ports import WatchDroppedError
from bayplan.rng import unique_token
from bayplan.serving.election.election import LeaseRecord, identity_of

# ---- identity -------------------------------------------------------------------------------


_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def own_namespace(namespace_file: Path = _NAMESPACE_FILE) -> str:
    """The namespace of the scheduler's own objects."""
    from_environment = os.environ.get("POD_NAMESPACE", "")
    if from_environment:
        return from_environment
    try:
        return namespace_file.read_text(encoding="utf-8").strip() or KUBE_SCHEDULER_NAMESPACE
    except OSError:
        return KUBE_SCHEDULER_NAMESPACE


def new_identity() -> str:
    """A new identity at each call."""
    return identity_of(os.environ.get("POD_NAME", "") or socket.gethostname(), unique_token())


# ---- lease ----------------------------------------------------------------------------------


_WATCH_SECONDS = 300
_SILENCE_SECONDS_MAX = 30.0
API_VERSION = "coordination.k8s.io/v1"

#: A Lease as plain values, as the API has it.
Lease = dict[str, Any]


class LeaseLock(Protocol):
    """One lease at an API server. All requests raise ApiError and OutcomeUnknownError."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...

    async def get(self) -> Lease:
        """The lease. Raises NotFoundError if it does not exist."""
        ...

    async def create(self, lease: Lease) -> Lease:
        """Create the lease. Raises ConflictError if it exists."""
        ...

    async def update(self, lease: Lease) -> Lease:
        """Replace the lease. Raises ConflictError if it has changed."""
        ...

    def changes(self, resource_version: str) -> AsyncGenerator["LeaseChange"]:
        """The changes of the lease after a version, until the server ends the watch. Raises
        WatchDroppedError, too."""
        ...


class LeaseChange(NamedTuple):
    """The lease after a change; None: it was deleted."""

    version: int
    lease: Lease | None


def version_of(lease: Lease) -> int:
    """The resourceVersion of a lease; 0 if it has none. Versions of one resource are ordered."""
    meta: dict[str, Any] = lease.get("metadata") or {}
    text = str(meta.get("resourceVersion") or "")
    return int(text) if text.isdecimal() else 0


def record_of(lease: Lease) -> LeaseRecord:
    """The record of a lease; missing fields are empty."""
    spec: dict[str, Any] = lease.get("spec") or {}
    return LeaseRecord(
        holder_identity=spec.get("holderIdentity") or "",
        lease_duration_seconds=spec.get("leaseDurationSeconds") or 0,
        acquire_time=spec.get("acquireTime") or "",
        renew_time=spec.get("renewTime") or "",
        lease_transitions=spec.get("leaseTransitions") or 0,
    )


def with_record(lease: Lease, record: LeaseRecord) -> Lease:
    """``lease`` with the fields of ``record``; all other fields and the version stay."""
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
    """A lease without a holder."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Lease",
        "metadata": {"namespace": namespace, "name": name},
    }


class _Event(msgspec.Struct):
    type: str
    object: Lease


# ---- api lease lock -------------------------------------------------------------------------


@final
class ApiLeaseLock:
    """serving.election.lease.LeaseLock over HTTP, with a rate limit of its own."""

    def __init__(self, client: ApiClient, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._path = f"/apis/{API_VERSION}/namespaces/{namespace}/leases"

    @property
    def namespace(self) -> str:
        return self._namespace

    @property
    def name(self) -> str:
        return self._name

    async def get(self) -> Lease:
        return await self._request("GET", f"{self._path}/{self._name}")

    async def create(self, lease: Lease) -> Lease:
        return await self._request("POST", self._path, lease)

    async def update(self, lease: Lease) -> Lease:
        return await self._request("PUT", f"{self._path}/{self._name}", lease)

    async def changes(self, resource_version: str) -> AsyncGenerator[LeaseChange]:
        query = {
            "watch": "1",
            "fieldSelector": f"metadata.name={self._name}",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        path = f"{self._path}?{urlencode(query)}"
        # A leader renews its lease, so a silent watch has stalled.
        async for line in watch_lines(self._client, path, _SILENCE_SECONDS_MAX):
            event = read_answer(line, _Event, f"watch {self._path}/{self._name}")
            if event.type == "ERROR":
                raise WatchDroppedError(f"watch {self._path}/{self._name}: {event.object}")
            lease = None if event.type == "DELETED" else event.object
            yield LeaseChange(version_of(event.object), lease)

    async def _request(self, method: str, path: str, content: Lease | None = None) -> Lease:
        answer = await self._client.request(method, path, content, lane=Lane.LEASES)
        return read_answer(answer, dict[str, Any], f"{method} {path}")
