"""A fake API server over HTTP, for what a real one rarely does. Faults are parameters.

api = FakeApiServer(status(409, "Conflict", "no"))
async with serving(api) as url: ...
assert api.calls == [("PATCH", "/api/v1/nodes/n1", {"spec": {}})]

`tests/live` has the tests with a real API server.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
#: A response serves one request only; a callable makes one for each.
Answer = web.StreamResponse | Callable[[], web.StreamResponse]
#: Group and version → what discovery answers; None: discovery fails.
Resources = Mapping[str, Iterable[Mapping[str, Any]] | None]


def resource(kind: str, plural: str, *, is_namespaced: bool = True) -> dict[str, Any]:
    return {"name": plural, "kind": kind, "namespaced": is_namespaced}


CORE = [
    resource("Pod", "pods"),
    resource("Binding", "pods/binding"),
    resource("Pod", "pods/status"),
    resource("Node", "nodes", is_namespaced=False),
]
#: What a scheduler needs at its start.
FOR_A_SCHEDULER: Resources = {
    "v1": [
        *CORE,
        resource("Namespace", "namespaces", is_namespaced=False),
        resource("Service", "services"),
        resource("ReplicationController", "replicationcontrollers"),
    ],
    "apps/v1": [resource("ReplicaSet", "replicasets"), resource("StatefulSet", "statefulsets")],
}
_VERSION_PATH = re.compile(r"/api/\w+|/apis/[^/]+/\w+")


def status(code: int, reason: str, message: str, **headers: str) -> web.Response:
    """A refusal as an API server writes it."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return web.json_response(body, status=code, headers=headers)


def fine() -> web.Response:
    return web.json_response({"fine": True})


async def refuse(request: web.BaseRequest) -> web.StreamResponse:
    """A handler that forbids every request."""
    return status(403, "Forbidden", "no")


async def silent(request: web.BaseRequest) -> web.StreamResponse:
    """A handler that answers nothing."""
    await asyncio.Event().wait()
    raise AssertionError


def cut(request: web.BaseRequest) -> web.StreamResponse:
    """The connection breaks before there is an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


class Request(NamedTuple):
    method: str
    path: str
    #: The path with the query.
    target: str
    headers: dict[str, str]
    body: bytes


class FakeApiServer:
    """Offers kinds, stores objects by path, and keeps watches open.

    ``refusals`` answer the first requests of all; ``answers`` the first requests after discovery.
    ``forbidden``: rights, such as "list nodes", that are denied. ``page_length``: of lists in
    pages; ``pages_expire``: the version of a list is too old for its second page.
    """

    def __init__(
        self,
        *answers: Answer,
        refusals: Iterable[Answer] = (),
        resources: Resources | None = None,
        forbidden: Iterable[str] = (),
        page_length: int | None = None,
        pages_expire: bool = False,
    ) -> None:
        self.resources = dict({"v1": CORE} if resources is None else resources)
        #: Path → content.
        self.objects: dict[str, Any] = {}
        self.received: list[Request] = []
        #: Set once the pods were listed.
        self.listed = asyncio.Event()
        self._answers = list(answers)
        self._refusals = list(refusals)
        self._forbidden = frozenset(forbidden)
        self._page_length = page_length
        self._pages_expire = pages_expire

    @property
    def calls(self) -> list[tuple[str, str, Any]]:
        """(method, path, content) of every request but those of discovery."""
        return [
            (each.method, each.path, msgspec.json.decode(each.body) if each.body else None)
            for each in self.received
            if not _VERSION_PATH.fullmatch(each.path)
        ]

    @property
    def lines(self) -> list[str]:
        """Each request as "METHOD path"."""
        return [f"{each.method} {each.path}" for each in self.received]

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        received = Request(
            request.method, request.path, request.path_qs, dict(request.headers), body
        )
        self.received.append(received)
        if self._refusals:
            return _response(self._refusals.pop(0))
        if _VERSION_PATH.fullmatch(request.path):
            return self._discovery(request.path.removeprefix("/apis/").removeprefix("/api/"))
        if self._answers:
            return _response(self._answers.pop(0))
        if request.path.endswith("reviews"):
            return self._review(msgspec.json.decode(body))
        if "watch" in request.query:
            await web.StreamResponse().prepare(request)
            await asyncio.Event().wait()
        return self._read(request) if request.method == "GET" else self._write(received)

    def _discovery(self, version: str) -> web.Response:
        if version not in self.resources:
            return status(404, "NotFound", f"there is no {version}")
        offered = self.resources[version]
        if offered is None:
            return status(503, "ServiceUnavailable", "out of order")
        return web.json_response({"kind": "APIResourceList", "resources": list(offered)})

    def _review(self, review: Any) -> web.Response:
        attributes = review.get("spec", {}).get("resourceAttributes", {})
        parts = (attributes.get("resource"), attributes.get("subresource"))
        right = f"{attributes.get('verb')} {'/'.join(filter(None, parts))}"
        return web.json_response({"status": {"allowed": right not in self._forbidden}})

    def _read(self, request: web.BaseRequest) -> web.Response:
        path = request.path
        if path in self.objects:
            return web.json_response(self.objects[path])
        plural = path.rpartition("/")[2]
        offered = [each for kinds in self.resources.values() for each in kinds or ()]
        if not any(each["name"] == plural for each in offered):
            return status(404, "NotFound", f"the server could not find {path}")
        if f"list {plural}" in self._forbidden:
            return status(403, "Forbidden", f"user cannot list {path}")
        if plural == "pods":
            self.listed.set()
        items = [each for key, each in self.objects.items() if path in _lists_with(key)]
        if self._page_length is None or request.query.get("limit") == "0":
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})
        start = int(request.query.get("continue", "0"))
        if start and self._pages_expire:
            return status(410, "Expired", "too old")
        end = start + self._page_length
        metadata = {"resourceVersion": "1", "continue": str(end) if end < len(items) else ""}
        return web.json_response({"metadata": metadata, "items": items[start:end]})

    def _write(self, received: Request) -> web.Response:
        content, path = msgspec.json.decode(received.body), received.path
        if received.method == "POST":
            path = f"{path}/{content['metadata']['name']}"
        elif path not in self.objects:
            return status(404, "NotFound", f"the server could not find {path}")
        elif received.method == "DELETE":
            return web.json_response(self.objects.pop(path))
        elif received.method == "PATCH":
            content = {**self.objects[path], **content}
        content.setdefault("metadata", {})["resourceVersion"] = str(len(self.received))
        self.objects[path] = content
        return web.json_response(content)


def _lists_with(path: str) -> tuple[str, str]:
    """The paths of the lists that contain an object: of its namespace, and of all namespaces."""
    of_namespace = path.rpartition("/")[0]
    return of_namespace, re.sub(r"/namespaces/[^/]+(?=/)", "", of_namespace)


def _response(answer: Answer) -> web.StreamResponse:
    return answer if isinstance(answer, web.StreamResponse) else answer()


@contextlib.asynccontextmanager
async def serving(handler: Handler) -> AsyncGenerator[str]:
    """The URL of a server on loopback that runs as long as the block."""
    runner = web.ServerRunner(web.Server(handler, handler_cancellation=True), shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def kubeconfig(
    folder: Path, server: str, user: dict[str, Any] | None = None, *, is_verified: bool = True
) -> str:
    """A kubeconfig with one context; returns its path."""
    cluster = {"server": server} | ({} if is_verified else {"insecure-skip-tls-verify": True})
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {"token": "secret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_bytes(msgspec.json.encode(content))
    return str(path)


class Naps:
    """A sleep that takes no time and records its durations."""

    def __init__(self) -> None:
        self.durations: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.durations.append(seconds)
