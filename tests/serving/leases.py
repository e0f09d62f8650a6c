"""A lease in memory with the failures of an API server, and a recording election log."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from typing import Any

from bayplan.ports import ApiError, ConflictError, NotFoundError, WatchDroppedError
from bayplan.serving.election.lease import Lease, LeaseChange

#: How long a change takes to the watch.
WATCH_DELAY_SECONDS = 0.05
#: As those of an API server, also for a lease that was deleted.
_versions = itertools.count(1)


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
        #: From the write until its answer.
        self.answer_seconds = 0.0
        self.requests: list[str] = []
        #: Whether the lock has a watch that works.
        self.is_watched = True

    async def get(self) -> Lease:
        await self._request("get")
        if not self._store:
            raise NotFoundError('leases.coordination.k8s.io "bayplan" not found')
        return dict(self._store)

    async def create(self, lease: Lease) -> Lease:
        await self._request("create")
        if self._store:
            raise ConflictError("there is one already")
        return await self._stored(lease)

    async def update(self, lease: Lease) -> Lease:
        await self._request("update")
        version = lease["metadata"]["resourceVersion"]
        if self._store.get("metadata", {}).get("resourceVersion") != version:
            raise ConflictError("the object has been modified")
        return await self._stored(lease)

    async def changes(self, resource_version: str) -> AsyncGenerator[LeaseChange]:
        last = resource_version
        while True:
            await asyncio.sleep(WATCH_DELAY_SECONDS)
            version = self._store.get("metadata", {}).get("resourceVersion", "")
            if not self.is_watched:
                raise WatchDroppedError("cut")
            if version != last:
                last = version
                gone = LeaseChange(next(_versions), None)
                yield LeaseChange(int(version), dict(self._store)) if version else gone

    async def _request(self, verb: str) -> None:
        self.requests.append(verb)
        await asyncio.sleep(self.delay_seconds)
        if self.problem is not None and not self.answers_get_lost:
            raise self.problem

    async def _stored(self, lease: Lease) -> Lease:
        meta = {**lease["metadata"], "resourceVersion": str(next(_versions))}
        self._store.clear()
        self._store.update({**lease, "metadata": meta})
        if self.problem is not None:
            raise self.problem
        written = dict(self._store)
        await asyncio.sleep(self.answer_seconds)
        return written


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
