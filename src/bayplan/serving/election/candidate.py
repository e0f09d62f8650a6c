"""A candidate: plays an election on a lease at an API server, until it leads, until it lost.

    await candidate.win()            returns as leader
    reason = await candidate.hold()  renews; returns once the lease is lost
    await candidate.release()        so that another need not wait

A leader writes first and reads only when that failed, as upstream does: in a quiet cluster a
renewal is one request. No request outlives the moment at which leading ends.
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
    """Who is told how an election goes."""

    def leader_changed(self, holder: str) -> None:
        """Somebody is seen to lead; "" for nobody."""
        ...

    def trouble(self, text: str) -> None:
        """A try failed; it is made again."""
        ...


@final
class Candidate:
    """One replica's way through an election. Use it once."""

    def __init__(
        self, election: Election, lock: LeaseLock, clock: Clock, jitter: Stream, log: ElectionLog
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
        """Returns once the lease is ours."""
        period = self._election.settings.retry_period_seconds
        while not await self._try(self._request_seconds_max):
            await asyncio.sleep(period * self._jitter.uniform(1.0, JITTER_FACTOR))

    async def hold(self) -> str:
        """Renew until that has failed for too long; returns why. Nobody leads here from then on."""
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
        """Give the lease up, if it is ours; best effort, since it ends by itself."""
        if self._left_seconds() <= 0:
            return
        await self._in_time(self._give_up(), min(seconds_max, self._request_seconds_max))
        self._election.resign()

    async def _give_up(self) -> bool:
        """A renewal that was cancelled under way may have been carried out: then it is read."""
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
        """Take or renew the lease; whether it is ours now."""
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
        """What a request came to; one that failed is told of and came to nothing."""
        try:
            return await request
        except (ApiError, OutcomeUnknownError) as problem:
            self._failed(str(problem))
            return False

    async def _in_time(self, request: Coroutine[Any, Any, bool], seconds_max: float) -> bool:
        """The same, and one that takes too long is given up."""
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
        """Raises what the lock raises. What counts is when it was sent."""
        sent_seconds = self._clock.now()
        lease = with_record(self._lease, record)
        write = self._lock.update if "resourceVersion" in lease["metadata"] else self._lock.create
        self._lease = await write(lease)
        self._election.wrote(record, sent_seconds)
        return True
