"""The read-only endpoints of a running scheduler: health, metrics, configuration, decisions.

    /livez, /healthz   the process answers
    /readyz            every cache has been listed, and it is not ending; a standby is ready, too
    /metrics           Prometheus' text format, under kube-scheduler's names
    /configz           the effective configuration
    /debug/journal     the decisions about ?pod=namespace/name
    /ui/               the page, with `bayplan run --ui`
    /debug/dry-run     the next attempt at ?pod=namespace/name, with cached results
    /debug/attempt     the state before an attempt at ?pod=namespace/name, &attempt=NUMBER

Health answers are written as upstream's apiserver/pkg/server/healthz writes them.
"""

import asyncio
import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from bayplan.config.metric_table import MetricStandard
from bayplan.serving import decision_history, dry_runs, past_attempts
from bayplan.serving.access import Access, Denial, OpenAccess, owner_of
from bayplan.serving.decision_history import DecisionHistory
from bayplan.serving.dry_runs import DryRun
from bayplan.serving.http_server import Handler, HttpServer, answer_everybody, refuse_foreign_names
from bayplan.serving.page import COOKIE, PREFIX, SchedulerPage
from bayplan.serving.past_attempts import PastAttempts
from bayplan.serving.shown_metrics import ShownMetrics

#: Name → a health check, called at each request.
Checks = Mapping[str, Callable[[], bool]]

_NO_CACHE = "no-cache, private"


@dataclass(frozen=True, kw_only=True)
class EndpointSources:
    """The contents of the endpoints."""

    registry: CollectorRegistry
    #: How a version of kube-scheduler exposes metrics.
    metric_standard: MetricStandard
    ready: Checks
    config: Mapping[str, Any]
    history: Callable[[str], DecisionHistory]
    attempts: PastAttempts
    dry_run: Callable[[str], DryRun]
    #: Full names of metrics that are not exposed.
    hidden_metrics: frozenset[str] = frozenset()
    live: Checks = field(default_factory=dict[str, Callable[[], bool]])
    page: SchedulerPage | None = None


@final
class Endpoints:
    """An HTTP server on one address."""

    def __init__(self, sources: EndpointSources, access: Access | None = None) -> None:
        """``access`` None: every request is answered; only for a server on loopback."""
        self._sources = sources
        self._access = access or OpenAccess()
        is_open = isinstance(self._access, OpenAccess)
        guard = refuse_foreign_names if is_open else answer_everybody
        self._server = HttpServer(self._app(), guard=guard)
        self._server.register(sources.registry)

    async def start(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        *,
        is_port_shared: bool = False,
    ) -> int:
        """As `HttpServer.start`."""
        return await self._server.start(host, port, tls, is_port_shared=is_port_shared)

    async def stop(self) -> None:
        await self._server.stop()

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        sources = self._sources
        for path, checks in (
            ("/livez", sources.live),
            ("/healthz", sources.live),
            ("/readyz", sources.ready),
        ):
            app.router.add_get(path, _health(path[1:], checks))
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/configz", self._configz)
        app.router.add_get(decision_history.PATH, self._journal)
        if sources.page is not None:
            app.router.add_get(PREFIX.rstrip("/"), _to_page)
            app.add_subapp(PREFIX, sources.page.application())
        app.router.add_get(past_attempts.PATH, self._attempt)
        app.router.add_get(dry_runs.PATH, self._dry_run)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        owner = owner_of(request.get_extra_info("peercert"))
        peer = request.remote or ""
        is_page = self._sources.page is not None and request.path.startswith(PREFIX)
        if is_page and "token" in request.query and not isinstance(self._access, OpenAccess):
            return _with_cookie(request)
        # One review for all files and answers of the page.
        path = PREFIX if is_page else request.path
        authorization = request.headers.get("Authorization", "")
        if is_page and not authorization and COOKIE in request.cookies:
            authorization = f"Bearer {request.cookies[COOKIE]}"
        denial = await self._access.denial(path, authorization, owner, peer)
        if denial is not None:
            return _refused(denial)
        answer = await handler(request)
        if not answer.prepared:
            answer.headers["Cache-Control"] = _NO_CACHE
        return answer

    async def _metrics(self, request: web.Request) -> web.Response:
        sources = self._sources
        shown = ShownMetrics(sources.registry, sources.metric_standard, sources.hidden_metrics)
        body = generate_latest(shown)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    async def _configz(self, request: web.Request) -> web.Response:
        text = json.dumps({"componentconfig": self._sources.config})
        return web.Response(text=text, content_type="application/json")

    async def _journal(self, request: web.Request) -> web.Response:
        history = self._sources.history
        return _about_pod(request, lambda pod: decision_history.encode(history(pod)))

    async def _dry_run(self, request: web.Request) -> web.Response:
        dry_run = self._sources.dry_run
        return _about_pod(request, lambda pod: dry_runs.encode(dry_run(pod)))

    async def _attempt(self, request: web.Request) -> web.StreamResponse:
        pod, number = request.query.get("pod", ""), request.query.get("attempt", "")
        if "/" not in pod or not (number.isdecimal() or not number):
            text = f"found ?{request.query_string}, wanted ?pod=namespace/name&attempt=NUMBER\n"
            return web.Response(status=400, text=text)
        parts = self._sources.attempts.parts(pod, int(number) if number else None)
        if parts is None:
            return web.Response(status=404, text=f"the attempt at {pod} is not in memory\n")
        answer = web.StreamResponse(
            headers={"Content-Type": "application/x-ndjson", "Cache-Control": _NO_CACHE}
        )
        await answer.prepare(request)
        for part in parts:
            await answer.write(part)
            # The scheduler runs between two parts.
            await asyncio.sleep(0)
        await answer.write_eof()
        return answer


def _about_pod(request: web.Request, encoded: Callable[[str], bytes]) -> web.Response:
    """The answer about ?pod=namespace/name. ``encoded``: makes its JSON from the name."""
    pod = request.query.get("pod", "")
    if "/" not in pod:
        return web.Response(status=400, text=f"found ?pod={pod}, wanted ?pod=namespace/name\n")
    return web.Response(body=encoded(pod), content_type="application/json")


async def _to_page(request: web.Request) -> web.Response:
    """A relative address, because a proxy may serve the endpoints below another path."""
    return web.Response(status=308, headers={"Location": PREFIX.strip("/") + "/"})


def _with_cookie(request: web.Request) -> web.Response:
    """Put the token into a cookie, so that it leaves the address. The cookie is checked by the next
    request."""
    answer = web.Response(status=303, headers={"Location": request.rel_url.raw_path})
    answer.set_cookie(
        COOKIE,
        request.query["token"],
        path=PREFIX,
        httponly=True,
        secure=request.secure,
        samesite="Strict",
    )
    return answer


def _refused(denial: Denial) -> web.Response:
    seconds = denial.retry_after_seconds
    headers = {"Retry-After": str(seconds)} if seconds else None
    return web.Response(status=denial.status, text=denial.text + "\n", headers=headers)


def _health(name: str, checks: Checks) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        results = {check: is_well() for check, is_well in {"ping": _always, **checks}.items()}
        lines = [
            f"[+]{check} ok" if is_well else f"[-]{check} failed: reason withheld"
            for check, is_well in results.items()
        ]
        if not all(results.values()):
            return web.Response(status=500, text="\n".join((*lines, f"{name} check failed", "")))
        if "verbose" in request.query:
            return web.Response(text="\n".join((*lines, f"{name} check passed", "")))
        return web.Response(text="ok")

    return answer


def _always() -> bool:
    return True
