"""An extender on loopback, on a thread of its own, for callers whose loop has no sockets.

with extender({"filter": {"NodeNames": ["n1"]}}) as server:
    config = {"urlPrefix": server.url, "filterVerb": "filter"}
    ...
    assert server.requests_of("filter")[0]["NodeNames"] == ["n1", "n2"]
"""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from aiohttp import web

#: The answer to a verb: JSON, bytes as they are, a response, or a function of the request.
Answer = Any


class Extender:
    """Answers each verb as `answers` defines, and records the requests."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.answers = dict(answers)
        self.url = ""
        self._requests: list[tuple[str, Any]] = []

    def requests_of(self, verb: str) -> list[Any]:
        return [question for name, question in self._requests if name == verb]

    @property
    def verbs(self) -> list[str]:
        """The verbs of all requests, in order."""
        return [name for name, _ in self._requests]

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        verb = request.path.rpartition("/")[2]
        question = msgspec.json.decode(await request.read())
        self._requests.append((verb, question))
        answer = self.answers[verb]
        if callable(answer):
            answer = answer(question)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer is CUT:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if isinstance(answer, web.StreamResponse):
            return answer
        body = answer if isinstance(answer, bytes) else msgspec.json.encode(answer)
        return web.Response(body=body, content_type="application/json")


#: The connection breaks before there is an answer.
CUT = object()


async def never() -> None:
    """An answer that never comes."""
    await asyncio.Event().wait()


@contextlib.contextmanager
def extender(
    answers: Mapping[str, Answer], tls: ssl.SSLContext | None = None
) -> Iterator[Extender]:
    """A server that runs as long as the block."""
    server, loop = Extender(answers), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        start = asyncio.run_coroutine_threadsafe(_started(server, tls), loop)
        runner = start.result()
        try:
            yield server
        finally:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _started(server: Extender, tls: ssl.SSLContext | None) -> web.ServerRunner:
    answering = web.Server(server.handle, handler_cancellation=True)
    runner = web.ServerRunner(answering, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    scheme = "http" if tls is None else "https"
    server.url = f"{scheme}://127.0.0.1:{runner.addresses[0][1]}"
    return runner


def closed_port() -> int:
    """A port on which no server listens."""
    with socket.create_server(("127.0.0.1", 0)) as opened:
        return opened.getsockname()[1]
