"""An ApiClient that talks to a handler of the test, without a kubeconfig on disk."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from bayplan.adapters.live.client import ApiClient, ClientOptions
from bayplan.adapters.live.cluster import LiveCluster, open_cluster
from bayplan.adapters.live.credentials import Credentials
from bayplan.adapters.live.kubeconfig import Login
from bayplan.clock import ManualClock
from tests.adapters.live.serving import CORE, Handler, Naps, serving, status


class _Nowhere:
    """Credentials that are never renewed."""

    async def load(self) -> Login:
        raise AssertionError("nothing to renew")

    async def renew(self) -> Login:
        return await self.load()


@contextlib.asynccontextmanager
async def talking_to(handler: Handler) -> AsyncGenerator[ApiClient]:
    """A client whose server runs as long as the block."""
    async with serving(handler) as server:
        credentials = Credentials(_Nowhere(), Login(server=server), ManualClock())
        client = ApiClient(credentials, ClientOptions(qps=-1, sleep=Naps()))
        try:
            yield client
        finally:
            await client.close()


T = TypeVar("T")


class Server:
    """Has pods and nodes; answers every other request with the next of `answers`."""

    def __init__(self, *answers: web.StreamResponse) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[str, str, Any]] = []
        self.media_types: list[str] = []

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/api/v1":
            return web.json_response({"resources": CORE})
        if request.path.startswith("/apis/"):
            return status(404, "NotFound", "no such group")
        body = await request.read()
        self.requests.append(
            (request.method, request.path, msgspec.json.decode(body) if body else None)
        )
        self.media_types.append(request.content_type)
        return self.answers.pop(0) if self.answers else web.json_response({})


def result_of(server: Server, ask: Callable[[LiveCluster], Awaitable[T]]) -> T:
    async def main() -> T:
        async with talking_to(server) as client, open_cluster(client) as cluster:
            return await ask(cluster)

    return asyncio.run(main())
