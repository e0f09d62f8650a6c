"""A candidate: takes part in an election on a lease of the API server.

    await candidate.win()            returns as leader
    reason = await candidate.hold()  renews; returns once the lease is lost
    await candidate.release()        so that the next leader need not wait

As upstream, a leader writes first and reads only after a failed write: usually a renewal is one
request. No request outlives the end of the leadership.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol, final

from bayplan.clock import Clock
from bayplan.ports import ApiError, NotFoundError, OutcomeUnknownError
from bayplan.rng import Stream
from bayplan.serving.election.election import JITTER_FACTOR, Election, LeaseRecord
from bayplan.serving.election.lease import Lease, LeaseLock, new_lease, record_of, with_record


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
        self._trouble = ""

    async def win(self) -> None:
        """Returns when this replica has the lease."""
        period = self._election.settings.retry_period_seconds
        while not await self._try(self._request_seconds_max):
            await asyncio.sleep(period * self._jitter.uniform(1.0, JITTER_FACTOR))

    async def hold(self) -> str:
        """Renew the lease until renewals have failed for too long; returns the reason. The
        leadership has ended then."""
        election = self._election
        while (left := self._left_seconds()) > 0:
            await asyncio.sleep(min(election.settings.retry_period_seconds, left))
            if (left := self._left_seconds()) > 0:
                await self._try(min(self._request_seconds_max, left))
        holder = election.holder
        election.resign()
        if holder not in ("", election.identity):
            return f"{holder} holds the lease"
        return self._trouble or "the process stood still for longer than the renew deadline"

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
        self._election.wrote(record, sent_seconds)
        return True
