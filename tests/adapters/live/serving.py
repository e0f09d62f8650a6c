"""A web server on loopback with the answers of a test: for what a real API server rarely does."""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@contextlib.asynccontextmanager
async def serving(handler: Handler) -> AsyncGenerator[str]:
    """The URL of a server that runs as long as the block."""
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


def status(code: int, reason: str, message: str, **headers: str) -> web.Response:
    """A refusal as an API server writes it."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return web.json_response(body, status=code, headers=headers)


class Script:
    """Answers each request with the next of `answers`, and records the requests."""

    def __init__(self, *answers: Callable[[], web.StreamResponse]) -> None:
        self._answers = list(answers)
        self.requests: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs))
        self.headers.append(dict(request.headers))
        self.bodies.append(await request.read())
        return self._answers.pop(0)()


def fine() -> web.Response:
    return web.json_response({"fine": True})


def cut(request: web.BaseRequest) -> web.StreamResponse:
    """The connection breaks before there is an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


class Naps:
    """A sleep that takes no time and records its durations."""

    def __init__(self) -> None:
        self.durations: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.durations.append(seconds)


CORE = [
    {"name": "pods", "kind": "Pod", "namespaced": True},
    {"name": "pods/binding", "kind": "Binding", "namespaced": True},
    {"name": "pods/status", "kind": "Pod", "namespaced": True},
    {"name": "nodes", "kind": "Node", "namespaced": False},
]
