"""A minimal API server with which a scheduler starts: no objects, and watches that stay open.

tests/live has the tests with a real API server.
"""

import asyncio
import json
from typing import Any

from aiohttp import web

from tests.adapters.live.serving import status

#: Group and version → kinds with their plurals, as (kind, plural, is namespaced).
OFFERED = {
    "v1": (
        ("Pod", "pods", True),
        ("Node", "nodes", False),
        ("Namespace", "namespaces", False),
        ("Service", "services", True),
        ("ReplicationController", "replicationcontrollers", True),
    ),
    "apps/v1": (("ReplicaSet", "replicasets", True), ("StatefulSet", "statefulsets", True)),
}


class FakeApi:
    """Offers kinds and denies rights as configured; stores the lease, and records the requests."""

    def __init__(self, offered: Any = OFFERED, forbidden: tuple[str, ...] = ()) -> None:
        self._offered = offered
        #: Denied rights in the form "verb resource".
        self._forbidden = forbidden
        self.lease: dict[str, Any] | None = None
        self.requests: list[str] = []
        self.listed = asyncio.Event()

    def offer(self, more: dict[str, Any]) -> None:
        """Offer further kinds by version from now on; None for a version that fails."""
        self._offered = {**self._offered, **more}

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path}")
        version = request.path.removeprefix("/apis/").removeprefix("/api/")
        if version in self._offered:
            if self._offered[version] is None:
                return status(503, "ServiceUnavailable", "out of order")
            return self._discovery(version)
        if "selfsubjectaccessreviews" in request.path:
            return self._review(await request.json())
        if "/leases" in request.path:
            return await self._lease(request)
        if "watch" in request.query:
            answer = web.StreamResponse()
            await answer.prepare(request)
            await asyncio.Event().wait()
        resource = request.path.rpartition("/")[2]
        if any(resource == plural for kinds in self._offered.values() for _, plural, _ in kinds):
            if resource == "pods":
                self.listed.set()
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})
        return status(404, "NotFound", f"the server could not find {request.path}")

    def _discovery(self, version: str) -> web.Response:
        resources = [
            {"kind": kind, "name": plural, "namespaced": is_namespaced}
            for kind, plural, is_namespaced in self._offered[version]
        ]
        return web.json_response({"kind": "APIResourceList", "resources": resources})

    def _review(self, review: Any) -> web.Response:
        attributes = review["spec"]["resourceAttributes"]
        name = "/".join(
            part for part in (attributes["resource"], attributes.get("subresource")) if part
        )
        allowed = f"{attributes['verb']} {name}" not in self._forbidden
        return web.json_response({"status": {"allowed": allowed}})

    async def _lease(self, request: web.BaseRequest) -> web.Response:
        if request.method == "GET" and self.lease is None:
            return status(404, "NotFound", "no lease")
        if request.method != "GET":
            self.lease = json.loads(await request.read())
            assert self.lease is not None
            self.lease["metadata"]["resourceVersion"] = str(len(self.requests))
        return web.json_response(self.lease)
