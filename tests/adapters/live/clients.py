"""An ApiClient that talks to a handler of the test, without a kubeconfig on disk."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

from bayplan.adapters.live.client import ApiClient, ClientOptions
from bayplan.adapters.live.cluster import LiveCluster, open_cluster
from bayplan.adapters.live.credentials import Credentials
from bayplan.adapters.live.kubeconfig import Login
from bayplan.clock import ManualClock
from tests.kit.api_server import FakeApiServer, Handler, Naps, serving


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


def result_of(server: FakeApiServer, ask: Callable[[LiveCluster], Awaitable[T]]) -> T:
    async def main() -> T:
        async with talking_to(server) as client, open_cluster(client) as cluster:
            return await ask(cluster)

    return asyncio.run(main())
