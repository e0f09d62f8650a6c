"""A candidate: takes part in an election on a lease of the API server.

    await candidate.win()            returns as leader
    reason = await candidate.hold()  renews; returns once the lease is lost
    await candidate.release()        so that the next leader need not wait

As upstream, a leader writes first and reads only after a failed write: usually a renewal is one
request. No request outlives the end of the leadership.

All replicas watch the lease. A standby so learns of each holder, however short. If the lease is
deleted, the leader stops acting when the event arrives, and acts again only after it has created
the lease anew, which at most one replica can. If another holder is in the lease, the leadership has
ended. Without the watch (a connection that breaks, a role without the verb) a renewal notices the
same, up to a retry period later.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, Protocol, final

from bayplan.adapters.live.errors import AccessDeniedError
from bayplan.clock import Clock
from bayplan.ports import ApiError, NotFoundError, OutcomeUnknownError, WatchDroppedError
from bayplan.rng import Stream
from bayplan.serving.election.election import JITTER_FACTOR, Election, LeaseRecord
from bayplan.serving.election.lease import (
    Lease,
    LeaseChange,
    LeaseLock,
    new_lease,
    record_of,
    version_of,
    with_record,
)


class ElectionLog(Protocol):
    """Receives the changes of an election."""

    def leader_changed(self, holder: str) -> None:
        """Another holder of the lease was observed; "" for none."""
        ...

    def trouble(self, text: str) -> None:
        """A request failed and will be retried."""
        ...


@final
class Candidate:
    """One replica in one election. Use an object once."""

    def __init__(
        self, election: Election, lock: LeaseLock, clock: Clock, jitter: Stream, *, log: ElectionLog
    ) -> None:
        self._election = election
        self._lock = lock
        self._clock = clock
        self._jitter = jitter
        self._log = log
        self._lease: Lease = new_lease(lock.namespace, lock.name)
        self._last_holder: str | None = None
        #: Whether the lease was deleted, and the version of the last deletion.
        self._is_gone = False
        self._gone_version = 0
        #: Set when the watch saw that the lease is not ours any more.
        self._is_changed = asyncio.Event()
        self._trouble = ""

    async def win(self) -> None:
        """Returns when this replica has the lease."""
        period = self._election.settings.retry_period_seconds
        async with self._watching():
            while not await self._try(self._request_seconds_max):
                await asyncio.sleep(period * self._jitter.uniform(1.0, JITTER_FACTOR))

    async def hold(self) -> str:
        """Renew the lease until renewals have failed for too long; returns the reason. The
        leadership has ended then."""
        election = self._election
        async with self._watching():
            while self._is_gone or self._left_seconds() > 0:
                await self._renew()
        holder = election.holder
        election.resign()
        if holder not in ("", election.identity):
            return f"{holder} holds the lease"
        return self._trouble or "the process stood still for longer than the renew deadline"

    async def _renew(self) -> None:
        """Renew the lease when it is due, or create it anew as soon as it is gone."""
        if not self._is_gone:
            period = min(self._election.settings.retry_period_seconds, self._left_seconds())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(period):
                    await self._is_changed.wait()
        self._is_changed.clear()
        if self._is_gone:
            self._is_gone = False
            await self._try(self._request_seconds_max)
        elif (left := self._left_seconds()) > 0:
            await self._try(min(self._request_seconds_max, left))

    @contextlib.asynccontextmanager
    async def _watching(self) -> AsyncGenerator[None]:
        watching = asyncio.get_running_loop().create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _watch(self) -> None:
        """Follow the lease, without an end."""
        while True:
            version = str(self._lease["metadata"].get("resourceVersion") or "")
            try:
                async with contextlib.aclosing(self._lock.changes(version)) as changes:
                    async for change in changes:
                        self._see(change)
            except AccessDeniedError as problem:
                self._log.trouble(str(problem))
                return
            except (ApiError, OutcomeUnknownError, WatchDroppedError):
                pass  # a renewal tells what is wrong
            await asyncio.sleep(self._election.settings.retry_period_seconds)

    def _see(self, change: LeaseChange) -> None:
        """A change of the lease, perhaps one that is older than our last write."""
        if change.version <= version_of(self._lease):
            return
        record = LeaseRecord() if change.lease is None else record_of(change.lease)
        if record.holder_identity == self._election.identity:
            return
        if change.lease is None:
            self._is_gone, self._gone_version = self._left_seconds() > 0, change.version
        self._election.observe(record, self._clock.now())
        self._is_changed.set()

    async def release(self, seconds_max: float) -> None:
        """Give up the lease if this replica has it. Best effort: a lease expires anyway."""
        if self._left_seconds() <= 0:
            return
        await self._in_time(self._give_up(), min(seconds_max, self._request_seconds_max))
        self._election.resign()

    async def _give_up(self) -> bool:
        """Write the release, again after a read if a cancelled renewal has been written."""
        if await self._succeeded(self._write(self._released())):
            return True
        await self._read()
        is_ours = self._election.holder == self._election.identity
        return not is_ours or await self._write(self._released())

    def _released(self) -> LeaseRecord:
        return self._election.release_record(self._clock.epoch_seconds())

    # ---- one try --------------------------------------------------------------------------

    @property
    def _request_seconds_max(self) -> float:
        # Upstream gives the lease's client half the renew deadline as time-out.
        return self._election.settings.renew_deadline_seconds / 2

    def _left_seconds(self) -> float:
        deadline = self._election.deadline_seconds
        return 0.0 if deadline is None else deadline - self._clock.now()

    async def _try(self, seconds_max: float) -> bool:
        """Take or renew the lease. Returns whether that succeeded."""
        is_renewed = await self._in_time(self._take_or_renew(), seconds_max)
        holder = self._election.holder
        if holder != self._last_holder:
            self._last_holder = holder
            self._log.leader_changed(holder)
        return is_renewed

    async def _take_or_renew(self) -> bool:
        election = self._election
        if election.is_leader(self._clock.now()):
            with_luck = election.next_record(self._clock.now(), self._clock.epoch_seconds())
            if with_luck is not None and await self._succeeded(self._write(with_luck)):
                return True
        await self._read()
        record = election.next_record(self._clock.now(), self._clock.epoch_seconds())
        return record is not None and await self._write(record)

    async def _succeeded(self, request: Coroutine[Any, Any, bool]) -> bool:
        """The result of a request; False and a log entry if the request failed."""
        try:
            return await request
        except (ApiError, OutcomeUnknownError) as problem:
            self._failed(str(problem))
            return False

    async def _in_time(self, request: Coroutine[Any, Any, bool], seconds_max: float) -> bool:
        """As `_succeeded`, with a time-out."""
        try:
            async with asyncio.timeout(seconds_max):
                return await self._succeeded(request)
        except TimeoutError:
            self._failed(f"no answer within {seconds_max:.1f} s")
            return False

    def _failed(self, text: str) -> None:
        self._trouble = text
        self._log.trouble(text)

    async def _read(self) -> None:
        try:
            self._lease = await self._lock.get()
        except NotFoundError:
            self._lease = new_lease(self._lock.namespace, self._lock.name)
        self._election.observe(record_of(self._lease), self._clock.now())

    async def _write(self, record: LeaseRecord) -> bool:
        """Raises what the lock raises. The time of sending counts."""
        sent_seconds = self._clock.now()
        lease = with_record(self._lease, record)
        write = self._lock.update if "resourceVersion" in lease["metadata"] else self._lock.create
        self._lease = await write(lease)
        if version_of(self._lease) <= self._gone_version:
            return False  # the deletion came after it, and is known already
        if not self._election.is_free(self._clock.now()):
            return False  # another holder came and went meanwhile; it may not know yet
        self._election.wrote(record, sent_seconds)
        return True
