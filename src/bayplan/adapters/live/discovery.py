"""Which kinds the API server has, and under which paths.

One request per API group and version, when a kind of it is first needed. A group that the server
does not have is no error: the plugins that need it are disabled.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final
from urllib.parse import quote

import msgspec

from bayplan.adapters.live.client import ApiClient
from bayplan.adapters.live.errors import read_answer
from bayplan.ports import NotFoundError


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind as the server offers it."""

    kind: str
    #: "" for the core group.
    group: str
    plural: str
    is_namespaced: bool

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of all objects, of the objects of a namespace, or of one object. Names are
        quoted."""
        version = self.kind.partition(" ")[0]
        parts = [_group_path(version)]
        if namespace and self.is_namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts += [self.plural, quote(name, safe=""), subresource]
        return "/".join(part for part in parts if part)


class _ApiResource(msgspec.Struct, rename="camel"):
    name: str = ""
    kind: str = ""
    namespaced: bool = False


class _ApiResourceList(msgspec.Struct):
    resources: tuple[_ApiResource, ...] | None = None


@final
class Discovery:
    """The kinds of one server. Each API group is requested once."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        #: Group and version ("apps/v1") → kind → resource.
        self._versions: dict[str, dict[str, Resource]] = {}

    async def discover(self, kinds: Iterable[str]) -> None:
        """Request the API groups of kinds that were not looked up before. Raises ApiError."""
        for version in sorted({kind.partition(" ")[0] for kind in kinds}):
            if version not in self._versions:
                self._versions[version] = await self._resources(version)

    def resource(self, kind: str) -> Resource | None:
        """The resource of a kind; None: the server does not have it. Call `discover` first."""
        return self._versions[kind.partition(" ")[0]].get(kind)

    async def _resources(self, version: str) -> dict[str, Resource]:
        try:
            body = await self._client.request("GET", _group_path(version))
        except NotFoundError:
            return {}
        request = f"GET {_group_path(version)}"
        listed = read_answer(body, _ApiResourceList, request).resources or ()
        group = version.rpartition("/")[0]
        resources = (
            Resource(f"{version} {one.kind}", group, one.name, one.namespaced)
            for one in listed
            if "/" not in one.name
        )
        return {one.kind: one for one in resources}


def _group_path(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"
