"""The event loop of commands that use an API server: uvloop if it is installed.

Warnings of the code below a command become remarks. `bayplan run` has log lines of its own.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from bayplan.cli.streams import remark

try:
    import uvloop
except ImportError:
    uvloop = None

T = TypeVar("T")

#: How long a handshake goes on that nobody waits for any more. A server may never answer it.
_HANDSHAKE_SECONDS = 1.0


class _Remarks(logging.Handler):
    """Prints each record as a remark."""

    def emit(self, record: logging.LogRecord) -> None:
        remark(record.getMessage())


class _Handshakes:
    """Part of an event loop: no connection is cut off within its TLS handshake.

    If the caller of create_connection or start_tls is cancelled meanwhile, asyncio and uvloop
    forget the socket, and uvloop logs a traceback. Here the handshake goes on without its caller,
    for a second at most, and the connection is then aborted.
    """

    def __init__(self) -> None:
        super().__init__()
        self._begun: set[asyncio.Future[Any]] = set()

    async def create_connection(self, *arguments: Any, **options: Any) -> Any:
        connection = cast(asyncio.AbstractEventLoop, super()).create_connection(
            *arguments, **options
        )
        if not options.get("ssl"):
            return await connection
        return await self._result(connection, lambda made: made[0])

    async def start_tls(self, *arguments: Any, **options: Any) -> Any:
        """What a connection through a proxy begins with."""
        handshake = cast(asyncio.AbstractEventLoop, super()).start_tls(*arguments, **options)
        return await self._result(handshake, lambda made: made)

    async def _result(
        self, handshake: Coroutine[Any, Any, T], transport_of: Callable[[T], Any]
    ) -> T:
        made = asyncio.ensure_future(handshake)
        self._begun.add(made)
        made.add_done_callback(self._begun.discard)
        try:
            # Not asyncio.shield, which logs in newer versions of Python what nobody waits for.
            await asyncio.wait((made,))
        except asyncio.CancelledError:
            limit = asyncio.get_running_loop().call_later(_HANDSHAKE_SECONDS, made.cancel)

            def abort(made: asyncio.Future[T]) -> None:
                limit.cancel()
                if not made.cancelled() and made.exception() is None:
                    transport = transport_of(made.result())
                    if transport is not None:  # the server ended the connection meanwhile
                        transport.abort()

            made.add_done_callback(abort)
            raise
        return made.result()

    async def end_handshakes(self) -> None:
        if self._begun:
            await asyncio.wait(tuple(self._begun), timeout=_HANDSHAKE_SECONDS)


class _AsyncioLoop(_Handshakes, asyncio.SelectorEventLoop):
    """asyncio's loop."""


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
