"""A lease in memory with the failures of an API server, and a recording election log."""

import asyncio
from typing import Any

from bayplan.ports import ApiError, ConflictError, NotFoundError
from bayplan.serving.election.lease import Lease


class MemoryLock:
    """A serving.election.lease.LeaseLock on a dict that several candidates share."""

    namespace, name = "kube-system", "bayplan"

    def __init__(self, store: dict[str, Any]) -> None:
        self._store = store
        #: If set, this is raised in place of an answer.
        self.problem: Exception | None = None
        #: Whether the write is carried out before `problem` is raised.
        self.answers_get_lost = False
        self.delay_seconds = 0.0
        self.requests: list[str] = []

    async def get(self) -> Lease:
        await self._request("get")
        if not self._store:
            raise NotFoundError('leases.coordination.k8s.io "bayplan" not found')
        return dict(self._store)

    async def create(self, lease: Lease) -> Lease:
        await self._request("create")
        if self._store:
            raise ConflictError("there is one already")
        return self._stored(lease, 1)

    async def update(self, lease: Lease) -> Lease:
        await self._request("update")
        version = lease["metadata"]["resourceVersion"]
        if self._store.get("metadata", {}).get("resourceVersion") != version:
            raise ConflictError("the object has been modified")
        return self._stored(lease, int(version) + 1)

    async def _request(self, verb: str) -> None:
        self.requests.append(verb)
        await asyncio.sleep(self.delay_seconds)
        if self.problem is not None and not self.answers_get_lost:
            raise self.problem

    def _stored(self, lease: Lease, version: int) -> Lease:
        meta = {**lease["metadata"], "resourceVersion": str(version)}
        self._store.clear()
        self._store.update({**lease, "metadata": meta})
        if self.problem is not None:
            raise self.problem
        return dict(self._store)


class RecordedElection:
    """A serving.election.candidate.ElectionLog that records its calls."""

    def __init__(self) -> None:
        self.leaders: list[str] = []
        self.troubles: list[str] = []

    def leader_changed(self, holder: str) -> None:
        self.leaders.append(holder)

    def trouble(self, text: str) -> None:
        self.troubles.append(text)


BUSY = ApiError(503, "ServiceUnavailable", "the API server is busy")
