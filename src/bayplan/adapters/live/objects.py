"""The verbs of the port that take any object, over HTTP: read, patch, create, delete."""

from collections.abc import Mapping
from typing import Any

from bayplan.adapters.live.client import MERGE_PATCH, ApiClient
from bayplan.adapters.live.discovery import Discovery, Resource
from bayplan.adapters.live.errors import UnreadableAnswerError, unreadable
from bayplan.adapters.live.rate_limit import Lane
from bayplan.api.objects import ApiObject, DecodeError, decode
from bayplan.ports import NotFoundError, OutcomeUnknownError


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
        body = await self._client.request("GET", path, lane=Lane.BINDINGS)
        return self._read(kind, body, f"GET {path}")

    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> ApiObject:
        """Raises ApiError, OutcomeUnknownError."""
        path = (await self.resource(kind)).path(namespace, name, subresource)
        body = await self._client.request("PATCH", path, patch, media_type=MERGE_PATCH)
        return self._written(kind, body, f"PATCH {path}")

    async def create_object(self, kind: str, content: dict[str, Any]) -> ApiObject:
        """Raises ApiError, OutcomeUnknownError."""
        api_version, _, name = kind.partition(" ")
        meta: Mapping[str, Any] = content.get("metadata") or {}
        path = (await self.resource(kind)).path(meta.get("namespace") or "")
        whole = {**content, "apiVersion": api_version, "kind": name}
        return self._written(kind, await self._client.request("POST", path, whole), f"POST {path}")

    async def delete_object(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Raises ApiError, OutcomeUnknownError."""
        content: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            content["preconditions"] = {"uid": uid}
        path = (await self.resource(kind)).path(namespace, name)
        await self._client.request("DELETE", path, content)

    def _read(self, kind: str, body: bytes, asked: str) -> ApiObject:
        """Raises UnreadableAnswerError."""
        try:
            return decode(kind, body, self._declared.get(kind, ()))
        except DecodeError as problem:
            raise UnreadableAnswerError(unreadable(asked, body, problem)) from None

    def _written(self, kind: str, body: bytes, asked: str) -> ApiObject:
        """Raises OutcomeUnknownError."""
        try:
            return self._read(kind, body, asked)
        except UnreadableAnswerError as problem:
            raise OutcomeUnknownError(str(problem)) from None
