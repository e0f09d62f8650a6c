"""The endpoint /metrics of a shadow; it listens on loopback."""

from collections.abc import Iterator, Mapping
from typing import final

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from bayplan.metrics import COUNTER, GAUGE, ScrapedFamily
from bayplan.serving.http_server import HttpServer, refuse_foreign_names
from bayplan.shadow.shadow import Shadow

_HOST = "127.0.0.1"


@final
class MetricsEndpoint:
    """Serves the counts of a shadow in Prometheus' text format."""

    def __init__(self, shadow: Shadow) -> None:
        self._registry = registry_of(shadow)
        app = web.Application()
        app.router.add_get("/metrics", self._answer)
        self._server = HttpServer(app, guard=refuse_foreign_names)

    async def start(self, port: int) -> int:
        """Serve on loopback; returns the port, which the system chooses for 0. Raises OSError,
        which names the option."""
        try:
            return await self._server.start(_HOST, port)
        except OSError as problem:
            raise OSError(problem.errno, problem.strerror, f"--port {port}") from None

    async def stop(self) -> None:
        await self._server.stop()

    async def _answer(self, request: web.Request) -> web.Response:
        body = generate_latest(self._registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})


def registry_of(shadow: Shadow) -> CollectorRegistry:
    """The metrics of a shadow; their values are read when somebody looks."""
    registry = CollectorRegistry()
    for reading in _readings(shadow):
        registry.register(reading)
    return registry


def _readings(shadow: Shadow) -> Iterator[ScrapedFamily]:
    yield ScrapedFamily(
        COUNTER,
        "bayplan_shadow_decisions",
        "Decisions of the followed scheduler, by how its node compares with the shadow's.",
        ("result",),
        read=lambda: _by_label(shadow.results),
    )
    yield ScrapedFamily(
        COUNTER,
        "bayplan_shadow_reordered_decisions",
        "Decisions that disagree and are best on a state that a reordering of bindings allows.",
        (),
        read=lambda: [((), shadow.best_when_reordered_count)],
    )
    yield ScrapedFamily(
        COUNTER,
        "bayplan_shadow_disagreements",
        "Disagreements that no reordering explains, by the plugin that makes the difference.",
        ("plugin", "result"),
        read=lambda: _disagreements(shadow),
    )
    yield ScrapedFamily(
        COUNTER,
        "bayplan_shadow_events",
        "Events of the cluster that the shadow took, by kind.",
        ("kind",),
        read=lambda: _by_label(shadow.events),
    )
    yield ScrapedFamily(
        COUNTER,
        "bayplan_shadow_missed_events",
        "Changes that lists after the first brought: at least so many events were missed.",
        (),
        read=lambda: [((), shadow.missed_event_count)],
    )
    yield ScrapedFamily(
        GAUGE,
        "bayplan_shadow_pending_pods",
        "Pods that wait for the followed scheduler.",
        (),
        read=lambda: [((), shadow.waiting_count)],
    )


def _by_label(counts: Mapping[str, int]) -> Iterator[tuple[tuple[str, ...], float]]:
    for label, count in sorted(counts.items()):
        yield (label,), count


def _disagreements(shadow: Shadow) -> Iterator[tuple[tuple[str, ...], float]]:
    for plugin, counts in sorted(shadow.plugins.items()):
        for result, name in (("rejected", "rejected"), ("lower", "favours")):
            if counts.get(name):
                yield (plugin, result), counts[name]
