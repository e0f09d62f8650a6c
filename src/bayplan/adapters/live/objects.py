"""The verbs of the port that take any object, over HTTP: read, patch, create, delete."""

from collections.abc import Mapping
from typing import Any

from bayplan.adapters.live.client import MERGE_PATCH, ApiClient
from bayplan.adapters.live.discovery import Discovery, Resource
from bayplan.adapters.live.rate_limit import Lane
from bayplan.api.objects import ApiObject, decode
from bayplan.ports import NotFoundError


class LiveObjects:
    """The part of ports.Cluster that knows no kinds."""

    def __init__(
        self, client: ApiClient, discovery: Discovery, declared: Mapping[str, tuple[str, ...]]
    ) -> None:
        """``declared``: per kind, further field paths that decoded objects keep."""
        self._client = client
        self._discovery = discovery
        self._declared = declared

    async def resource(self, kind: str) -> Resource:
        """Path and scope of a kind. Raises NotFoundError, ApiError."""
        await self._discovery.discover((kind,))
        found = self._discovery.resource(kind)
        if found is None:
            raise NotFoundError(f"the API server at {self._client.server} has no kind {kind}")
        return found

    async def read(self, kind: str, namespace: str, name: str) -> ApiObject:
        """Raises ApiError."""
        path = (await self.resource(kind)).path(namespace, name)
        return self._decoded(kind, await self._client.request("GET", path, lane=Lane.BINDINGS))

    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> ApiObject:
        """Raises ApiError, OutcomeUnknownError."""
        path = (await self.resource(kind)).path(namespace, name, subresource)
        body = await self._client.request("PATCH", path, patch, media_type=MERGE_PATCH)
        return self._decoded(kind, body)

    async def create_object(self, kind: str, content: dict[str, Any]) -> ApiObject:
        """Raises ApiError, OutcomeUnknownError."""
        api_version, _, name = kind.partition(" ")
        meta: Mapping[str, Any] = content.get("metadata") or {}
        path = (await self.resource(kind)).path(meta.get("namespace") or "")
        whole = {**content, "apiVersion": api_version, "kind": name}
        return self._decoded(kind, await self._client.request("POST", path, whole))

    async def delete_object(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Raises ApiError, OutcomeUnknownError."""
        content: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            content["preconditions"] = {"uid": uid}
        path = (await self.resource(kind)).path(namespace, name)
        await self._client.request("DELETE", path, content)

    def _decoded(self, kind: str, body: bytes) -> ApiObject:
        return decode(kind, body, self._declared.get(kind, ()))
