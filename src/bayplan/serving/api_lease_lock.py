"""The lease at a real API server."""

from typing import Any, final

from bayplan.adapters.live.client import ApiClient
from bayplan.adapters.live.errors import read_answer
from bayplan.adapters.live.rate_limit import Lane
from bayplan.serving.lease import API_VERSION, Lease


@final
class ApiLeaseLock:
    """serving.lease.LeaseLock over HTTP, with a rate limit of its own."""

    def __init__(self, client: ApiClient, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._path = f"/apis/{API_VERSION}/namespaces/{namespace}/leases"

    @property
    def namespace(self) -> str:
        return self._namespace

    @property
    def name(self) -> str:
        return self._name

    async def get(self) -> Lease:
        return await self._request("GET", f"{self._path}/{self._name}")

    async def create(self, lease: Lease) -> Lease:
        return await self._request("POST", self._path, lease)

    async def update(self, lease: Lease) -> Lease:
        return await self._request("PUT", f"{self._path}/{self._name}", lease)

    async def _request(self, method: str, path: str, content: Lease | None = None) -> Lease:
        answer = await self._client.request(method, path, content, lane=Lane.LEASES)
        return read_answer(answer, dict[str, Any], f"{method} {path}")
