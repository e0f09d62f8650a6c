"""The verbs of the port that take any object: read, patch, create, delete."""

from typing import Any

from bayplan.adapters.api_server import ApiServer
from bayplan.adapters.object_names import Content, object_key
from bayplan.api.objects import ApiObject

#: Metadata by which a patch of a status says which version it means.
_MEANT = ("resourceVersion", "uid")


class ObjectPort:
    """The part of ports.Cluster that knows no kinds, over a server in memory."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    async def read(self, kind: str, namespace: str, name: str) -> ApiObject:
        """Raises ApiError."""
        return self._server.get(object_key(kind, namespace, name)).object

    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> ApiObject:
        """Raises ApiError."""
        if subresource:
            patch = _within(patch, subresource)
        return self._server.patch(object_key(kind, namespace, name), patch).object

    async def create_object(self, kind: str, content: dict[str, Any]) -> ApiObject:
        """Raises ApiError."""
        api_version, _, name = kind.partition(" ")
        return self._server.create({**content, "apiVersion": api_version, "kind": name}).object

    async def delete_object(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Raises ApiError."""
        self._server.delete(object_key(kind, namespace, name), uid)


def _within(patch: Content, subresource: str) -> Content:
    """What a write of a subresource may change: that part, and nothing else."""
    meta = {name: value for name, value in (patch.get("metadata") or {}).items() if name in _MEANT}
    return {"metadata": meta, **{name: part for name, part in patch.items() if name == subresource}}
