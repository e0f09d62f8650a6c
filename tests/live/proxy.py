"""A network between a scheduler and the API server that fails, from a seed.

A small TCP proxy: the scheduler uses plain HTTP, and the proxy uses TLS to the API server. Each
connection may be refused, cut after some bytes in either direction, delayed, or duplicated. On a
duplicated connection, requests arrive twice, and only one of the answers comes back.
"""

import asyncio
import collections
import contextlib
import ssl
from dataclasses import dataclass

from bayplan.rng import stream
from tests.live.control_plane import LOOPBACK

PIECE_BYTES = 65536


@dataclass(frozen=True)
class Faults:
    """Chances per connection, and the limits of the faults."""

    refused: float = 0.05
    cut: float = 0.3
    delayed: float = 0.3
    duplicated: float = 0.2
    cut_bytes_max: int = 60_000
    delay_seconds_max: float = 0.05


@dataclass
class _Plan:
    """The faults of one connection."""

    cut_after_bytes: int | None = None
    delay_seconds: float = 0.0
    is_duplicated: bool = False
    is_answer_lost: bool = False
    owner: "asyncio.Task[None] | None" = None


class Proxy:
    """A proxy that runs as long as the block; ``url`` is its URL for clients of the API server."""

    def __init__(self, port: int, trust: ssl.SSLContext, seed: int, faults: Faults) -> None:
        self._port = port
        self._trust = trust
        self._random = stream(seed, "proxy")
        self._faults = faults
        self._is_calm = False
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._connections: set[asyncio.Task[None]] = set()
        self._stalled: set[asyncio.Task[None]] = set()
        self._lost_after: set[bytes] = set()
        self.url = ""
        #: How often each fault happened.
        self.counts: collections.Counter[str] = collections.Counter()

    async def __aenter__(self) -> "Proxy":
        self._server = await asyncio.start_server(self._accept, LOOPBACK, 0)
        self.url = "http://{}:{}".format(*self._server.sockets[0].getsockname()[:2])
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self.cut_all()

    def calm(self) -> None:
        """Stop all faults of new connections from now on."""
        self._is_calm = True

    async def cut_all(self) -> None:
        """End all open connections."""
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def close(self) -> None:
        """Interrupt the network: end all connections and accept no new ones."""
        self._is_open.clear()
        await self.cut_all()

    def open(self) -> None:
        self._is_open.set()

    def lose_answer_to(self, request: bytes) -> None:
        """Lose the answer to the next request that contains these bytes."""
        self._lost_after.add(request)

    def stall(self) -> None:
        """Stop all data on open connections without ending them; new connections work."""
        self._stalled |= self._connections

    # ---- one connection ---------------------------------------------------------------------

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError, ssl.SSLError):
                await self._serve(reader, writer)
        finally:
            self._connections.discard(task)
            self._stalled.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        plan = self._planned()
        if plan is None or not self._is_open.is_set():
            return
        async with contextlib.AsyncExitStack() as stack:
            server = await self._connect(stack)
            twin = await self._connect(stack) if plan.is_duplicated else None
            writers = [server[1]] if twin is None else [server[1], twin[1]]
            owner = asyncio.current_task()
            assert owner is not None
            plan.owner = owner
            pumps = [self._pump(plan, reader, writers), self._pump(plan, server[0], [writer])]
            if twin is not None:
                pumps.append(_swallow(twin[0]))
            tasks = [asyncio.ensure_future(pump) for pump in pumps]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _connect(
        self, stack: contextlib.AsyncExitStack
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(LOOPBACK, self._port, ssl=self._trust)
        stack.callback(writer.transport.abort)
        return reader, writer

    def _planned(self) -> _Plan | None:
        """Draw the faults of a connection; None means that the connection is refused."""
        faults, plan = self._faults, _Plan()
        if self._happens("refused", faults.refused):
            return None
        if self._happens("cut", faults.cut):
            plan.cut_after_bytes = self._random.randrange(faults.cut_bytes_max)
        if self._happens("delayed", faults.delayed):
            plan.delay_seconds = self._random.uniform(0, faults.delay_seconds_max)
        plan.is_duplicated = self._happens("duplicated", faults.duplicated)
        return plan

    def _happens(self, fault: str, chance: float) -> bool:
        happens = not self._is_calm and self._random.random() < chance
        self.counts[fault] += happens
        return happens

    async def _pump(
        self, plan: _Plan, reader: asyncio.StreamReader, writers: list[asyncio.StreamWriter]
    ) -> None:
        """Copy from one side to the other until an end or a cut."""
        while piece := await reader.read(PIECE_BYTES):
            if plan.owner in self._stalled:
                await asyncio.Event().wait()
            if plan.delay_seconds:
                await asyncio.sleep(plan.delay_seconds)
            for request in [one for one in self._lost_after if one in piece]:
                self._lost_after.discard(request)
                plan.is_answer_lost = True
            if plan.is_answer_lost and piece.startswith(b"HTTP/1.1"):
                self.counts["answer lost"] += 1
                return
            if plan.cut_after_bytes is not None:
                piece = piece[: plan.cut_after_bytes]
                plan.cut_after_bytes -= len(piece)
            for writer in writers:
                writer.write(piece)
                await writer.drain()
            if plan.cut_after_bytes == 0:
                return


async def _swallow(reader: asyncio.StreamReader) -> None:
    """Discard the answers of a duplicated connection."""
    while await reader.read(PIECE_BYTES):
        pass
    await asyncio.Event().wait()
