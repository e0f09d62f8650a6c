"""The event loop of commands that use an API server: uvloop if it is installed.

Warnings of the code below a command become remarks. `bayplan run` has log lines of its own.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

from bayplan.cli.streams import remark

try:
    import uvloop
except ImportError:
    uvloop = None

T = TypeVar("T")

#: How long the end of a loop waits for handshakes that nobody waits for any more.
_HANDSHAKE_SECONDS = 1.0


class _Remarks(logging.Handler):
    """Prints each record as a remark."""

    def emit(self, record: logging.LogRecord) -> None:
        remark(record.getMessage())


class _Handshakes:
    """Part of an event loop: no connection is cut off within its TLS handshake.

    If the caller of create_connection is cancelled meanwhile, asyncio and uvloop forget the socket,
    and uvloop logs a traceback. Here the connection is made to its end and then aborted.
    """

    def __init__(self) -> None:
        super().__init__()
        self._begun: set[asyncio.Future[Any]] = set()

    async def create_connection(self, *arguments: Any, **options: Any) -> Any:
        begin = cast(asyncio.AbstractEventLoop, super()).create_connection
        made = asyncio.ensure_future(begin(*arguments, **options))
        self._begun.add(made)
        made.add_done_callback(self._begun.discard)
        try:
            return await asyncio.shield(made)
        except asyncio.CancelledError:
            made.add_done_callback(_abort)
            raise

    async def end_handshakes(self) -> None:
        if self._begun:
            await asyncio.wait(tuple(self._begun), timeout=_HANDSHAKE_SECONDS)


class _AsyncioLoop(_Handshakes, asyncio.SelectorEventLoop):
    """asyncio's loop."""


def _abort(made: asyncio.Future[Any]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result()[0].abort()


def run_event_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine to its end and return its result."""
    # Does nothing if the command has set up its log.
    logging.basicConfig(handlers=[_Remarks()], level=logging.WARNING)
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        return runner.run(_whole(work))


def _new_loop() -> asyncio.AbstractEventLoop:
    if uvloop is None:
        return _AsyncioLoop()

    class _UvLoop(_Handshakes, uvloop.Loop):
        """uvloop's loop."""

    return _UvLoop()


async def _whole(work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    finally:
        await cast(_Handshakes, asyncio.get_running_loop()).end_handshakes()
