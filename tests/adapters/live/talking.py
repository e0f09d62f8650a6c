"""An ApiClient that talks to a handler of the test's, without a kubeconfig on disk."""

import contextlib
from collections.abc import AsyncGenerator

from bayplan.adapters.live.client import ApiClient, ClientOptions
from bayplan.adapters.live.credentials import Credentials
from bayplan.adapters.live.kubeconfig import Login
from bayplan.clock import ManualClock
from tests.adapters.live.serving import Handler, Naps, serving


class _Nowhere:
    """Credentials that are never renewed."""

    async def load(self) -> Login:
        raise AssertionError("nothing to renew")

    async def renew(self) -> Login:
        return await self.load()


@contextlib.asynccontextmanager
async def talking_to(handler: Handler) -> AsyncGenerator[ApiClient]:
    """The client, while its server lives."""
    async with serving(handler) as server:
        credentials = Credentials(_Nowhere(), Login(server=server), ManualClock())
        client = ApiClient(credentials, ClientOptions(qps=-1, sleep=Naps()))
        try:
            yield client
        finally:
            await client.close()
