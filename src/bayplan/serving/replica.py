"""The phases of one replica: standby, leader, shutdown.

A standby watches the cluster from the beginning, so that it can take over at once. Only the leader
schedules pods. At shutdown the leader starts no further attempt, waits for the bindings under way,
and releases the lease, in this order: the next leader finds no unfinished binding. A leader that
lost its lease stops at once.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, final

from bayplan.runner import Runner
from bayplan.serving.election.candidate import Candidate
from bayplan.serving.log_lines import Log

#: The longest shutdown, even if the API server does not answer; less than a pod's grace period. Its
#: parts follow one another: bindings end, the lease is released, the endpoints close, events are
#: written, connections close.
SHUTDOWN_SECONDS_MAX = 20.0
DRAIN_SECONDS_MAX = 12.0
RELEASE_SECONDS_MAX = 3.0
ENDPOINTS_SECONDS_MAX = 2.0
FLUSH_SECONDS_MAX = 2.0
CLOSE_SECONDS_MAX = 1.0


class LeaseLostError(Exception):
    """Another replica leads or may lead."""


@final
class Replica:
    """Runs one scheduler. Use it once."""

    def __init__(
        self, runner: Runner, candidate: Candidate | None, *, delays_cache: bool = False
    ) -> None:
        """``candidate`` None: there is no election; this replica leads. ``delays_cache``: the
        replica watches only while it leads (delayCacheUntilActive)."""
        self._runner = runner
        self._candidate = candidate
        self._delays_cache = delays_cache
        self._may_listen = asyncio.Event()
        self._log = Log("replica")
        self.is_leading = False
        self.is_stopping = False

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop``. Raises LeaseLostError, and the failure of the runner."""
        self._runner.pause()
        if not self._delays_cache:
            self._may_listen.set()
        listening, leading = _begin(self._listen()), _begin(self._lead())
        stopping = _begin(stop.wait())
        tasks = (listening, leading, stopping)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in (listening, leading):
                if task.done():
                    task.result()
            await self._end(leading)
        finally:
            await _cancel(*tasks)

    async def _listen(self) -> None:
        await self._may_listen.wait()
        await self._runner.run()

    async def _lead(self) -> None:
        """Raises LeaseLostError at the end."""
        if self._candidate is not None:
            self._log.info("Attempting to acquire leader lease...")
            await self._candidate.win()
            self._log.info("Successfully acquired lease")
        self._may_listen.set()
        self.is_leading = True
        self._runner.resume()
        if self._candidate is None:
            await asyncio.Event().wait()
            return
        try:
            raise LeaseLostError(await self._candidate.hold())
        finally:
            self._runner.pause()
            self.is_leading = False

    async def _end(self, leading: "asyncio.Task[None]") -> None:
        """Shut down. Raises LeaseLostError if the lease is lost meanwhile."""
        self.is_stopping = True
        self._runner.pause()
        if self.is_leading:
            self._log.info("Requested to terminate, waiting for bindings under way")
            draining = _begin(self._runner.drained())
            await asyncio.wait(
                (draining, leading),
                timeout=DRAIN_SECONDS_MAX,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not draining.done():
                self._log.warning("Some bindings did not end in time; their outcome is open")
            await _cancel(draining)
            if leading.done():
                leading.result()
        await _cancel(leading)
        if self._candidate is not None:
            await self._candidate.release(RELEASE_SECONDS_MAX)


def _begin(work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    return asyncio.get_running_loop().create_task(work)


async def _cancel(*tasks: "asyncio.Task[Any]") -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task
