"""Requests of a client to a server of the page."""

import asyncio
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Sequence
from threading import Event
from typing import Any

import msgspec
from aiohttp import ClientResponse, ClientSession, CookieJar
from aiohttp.test_utils import TestServer

from bayplan.clock import wall_seconds
from bayplan.ui.answers import Computation
from bayplan.ui.server import PAGE_HEADER, application
from bayplan.ui.subjects import Subject

#: What the page's own requests have.
PAGE = {PAGE_HEADER: "1"}
WAIT_SECONDS = 60.0
Visit = Callable[[ClientSession, str], Awaitable[Any]]


def visited(subject: Sequence[Subject], visit: Visit, token: str = "") -> Any:
    """The result of a visit to a new server."""

    async def main() -> Any:
        server = TestServer(application(subject, token))
        await server.start_server()
        jar = CookieJar(unsafe=True)
        try:
            async with ClientSession(cookie_jar=jar) as session:
                return await visit(session, str(server.make_url("/")))
        finally:
            await server.close()

    return asyncio.run(main())


def fetched(subject: Sequence[Subject], path: str, **options: Any) -> tuple[ClientResponse, bytes]:
    async def visit(session: ClientSession, url: str) -> tuple[ClientResponse, bytes]:
        options.setdefault("headers", PAGE)
        async with session.get(url + path, **options) as response:
            return response, await response.read()

    return visited(subject, visit)


def packed(text: str) -> str:
    """A text as the address of the page has it."""
    packing = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    content = packing.compress(text.encode()) + packing.flush()
    return urlsafe_b64encode(content).decode().rstrip("=")


def ready(ask: Callable[[], Any]) -> Any:
    """The answer, after it has been computed."""
    end = wall_seconds() + WAIT_SECONDS
    while (answer := ask()).phase == "computing":
        assert wall_seconds() < end, "the answer takes too long"
        Event().wait(0.02)
    return answer


def answer_of(subject: Subject, path: str, kind: Any) -> Any:
    """An answer of the server."""

    def ask() -> Any:
        response, body = fetched([subject], f"api/{path}")
        assert response.status == 200, body
        return msgspec.json.decode(body, type=Computation[kind], strict=True)

    answer = ready(ask)
    assert answer.phase == "ready", answer.problem
    return answer
