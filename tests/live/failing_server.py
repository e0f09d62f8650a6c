"""An HTTP server between a scheduler and the API server that answers some requests itself.

From a seed, a request is answered with 429 or 500, its connection is cut before or after the API
server has carried it out, it is delayed, or its answer is no JSON. Watches are cut now and then.
"""

import asyncio
import contextlib
import ssl
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, fields

from aiohttp import ClientResponse, ClientSession, TCPConnector, web

from bayplan.rng import stream
from tests.kit.api_server import cut, status
from tests.live.control_plane import LOOPBACK

_OWN_HEADERS = {"host", "content-length", "connection", "accept-encoding"}


@dataclass(frozen=True)
class AnswerFaults:
    """Chances per request."""

    too_many_requests: float = 0.1
    internal_error: float = 0.1
    cut_before: float = 0.05
    #: The API server carries the request out.
    cut_after: float = 0.05
    delayed: float = 0.1
    garbled: float = 0.02
    delay_seconds_max: float = 2.0


class FailingServer:
    """A server that runs as long as the block; ``url`` is its URL for clients of the API server."""

    def __init__(self, port: int, trust: ssl.SSLContext, seed: int, faults: AnswerFaults) -> None:
        self._target = f"https://{LOOPBACK}:{port}"
        self._trust = trust
        self._random = stream(seed, "failing server")
        self._faults = faults
        self._is_calm = False
        self._watches: dict[int, web.Request] = {}
        self.url = ""
        #: How often each fault happened.
        self.counts: Counter[str] = Counter()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator["FailingServer"]:
        connector = TCPConnector(ssl=self._trust, limit=0)
        async with ClientSession(connector=connector, auto_decompress=False) as session:
            self._session = session
            app = web.Application(client_max_size=1 << 30)
            app.router.add_route("*", "/{path:.*}", self._handle)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, LOOPBACK, 0).start()
            self.url = "http://{}:{}".format(*runner.addresses[0][:2])
            try:
                yield self
            finally:
                self.cut_watches()
                await runner.cleanup()

    def calm(self) -> None:
        """Stop all faults from now on."""
        self._is_calm = True

    def cut_watches(self) -> None:
        for request in list(self._watches.values()):
            self.counts["watch cut"] += 1
            cut(request)

    def all_happened(self) -> bool:
        names = [field.name for field in fields(self._faults) if field.name != "delay_seconds_max"]
        return all(self.counts[name] for name in names)

    def _happens(self, fault: str) -> bool:
        chance: float = getattr(self._faults, fault)
        happens = not self._is_calm and self._random.random() < chance
        self.counts[fault] += happens
        return happens

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if self._happens("too_many_requests"):
            return status(429, "TooManyRequests", "by the test", **{"Retry-After": "1"})
        if self._happens("internal_error"):
            return status(500, "InternalError", "by the test")
        if self._happens("cut_before"):
            return cut(request)
        if self._happens("delayed"):
            await asyncio.sleep(self._random.uniform(0, self._faults.delay_seconds_max))
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _OWN_HEADERS}
        headers["Accept-Encoding"] = "identity"
        url = f"{self._target}{request.raw_path}"
        async with self._session.request(
            request.method, url, headers=headers, data=body or None
        ) as answer:
            if "watch=" in request.query_string:
                return await self._stream(request, answer)
            content = await answer.read()
            if self._happens("cut_after"):
                return cut(request)
            if self._happens("garbled"):
                content = content[: len(content) // 2]
            kind = answer.headers.get("Content-Type", "application/json")
            return web.Response(status=answer.status, body=content, headers={"Content-Type": kind})

    async def _stream(self, request: web.Request, answer: ClientResponse) -> web.StreamResponse:
        """Pass a watch on until either side ends it."""
        passed = web.StreamResponse(status=answer.status)
        self._watches[id(request)] = request
        try:
            with contextlib.suppress(OSError, RuntimeError):
                await passed.prepare(request)
                async for piece in answer.content.iter_any():
                    await passed.write(piece)
        finally:
            del self._watches[id(request)]
        return passed
