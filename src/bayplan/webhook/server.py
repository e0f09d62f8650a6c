"""The process of `bayplan webhook`: a cluster that is followed, and an HTTPS endpoint.

POST /validate              an AdmissionReview; the answer always allows, with at most one warning
/metrics                    Prometheus' text format
/healthz, /livez            the process answers
/readyz                     every kind was listed once
"""

import asyncio
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, final

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from bayplan.adapters.live.client import ClientOptions, open_client
from bayplan.adapters.live.cluster import ClusterOptions, open_cluster
from bayplan.clock import RealClock
from bayplan.config import SchedulerConfig
from bayplan.metrics import COUNTER, GAUGE, ScrapedFamily
from bayplan.model.cluster_kinds import ClusterKinds, cluster_kinds
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.following import CountedReads, KindReflectors, objects_of_events
from bayplan.model.picture import ClusterPicture
from bayplan.plugins.registry import Registry
from bayplan.ports import ClusterReader
from bayplan.profile.dry_start import declared_fields
from bayplan.serving.http_server import DEFAULT_LIMITS, HttpServer, Rate, refuse_pages
from bayplan.serving.log_lines import Log
from bayplan.serving.process import settle_memory, stop_on_signals, unless, until_started
from bayplan.serving.server_version import log_version, version_of_server
from bayplan.webhook.judgement import FURTHER_KINDS, Judge
from bayplan.webhook.reviews import UnreadableReviewError, answer_of, read_review
from bayplan.webhook.timed_judge import TimedJudge
from bayplan.webhook.warm_up import warm_up

VALIDATE_PATH: Final = "/validate"
#: Twice what etcd stores of one object.
BODY_BYTES_MAX: Final = 3 * 2**20
#: Reading a cluster takes a few lists, and needs no rate limit.
_UNLIMITED_QPS = -1.0
_TICK_SECONDS: Final = 0.2
#: The clients are the API servers, which are few and known.
_LIMITS = replace(
    DEFAULT_LIMITS, connection_rate_per_peer=Rate(100.0, 200), connection_rate=Rate(200.0, 400)
)
_log = Log("webhook")


@dataclass(frozen=True, kw_only=True)
class WebhookOptions:
    """The options of `bayplan webhook`."""

    config: SchedulerConfig
    registry: Registry
    kubeconfig: str | None = None
    context_name: str = ""
    address: str = "127.0.0.1"
    port: int = 9443
    #: None: plain HTTP.
    tls: ssl.SSLContext | None = None
    #: An answer that takes longer has no warning.
    budget_seconds: float = 0.05


async def serve_webhook(options: WebhookOptions) -> None:
    """Run until SIGTERM or SIGINT.

    Raises CredentialsError, ConfigError, ApiError, and OSError if the endpoint cannot be served.
    """
    stop = stop_on_signals()
    connection = options.config.spec.client_connection
    rates = ClientOptions(qps=_UNLIMITED_QPS, context_name=options.context_name)
    kubeconfig = options.kubeconfig or connection.kubeconfig or None
    async with until_started(stop) as start_is_over, open_client(kubeconfig, rates) as client:
        choice = await version_of_server(options.config, client)
        log_version(_log, choice)
        options = replace(options, config=choice.config)
        followed = await cluster_kinds(client, [options.config], options.registry, FURTHER_KINDS)
        declared = declared_fields([options.config], options.registry)
        async with open_cluster(client, ClusterOptions(declared=declared)) as cluster:
            await cluster.discover(followed.kinds)
            start_is_over()
            await serve(options, cluster, followed, stop)


async def serve(
    options: WebhookOptions,
    cluster: ClusterReader,
    followed: ClusterKinds,
    stop: asyncio.Event,
) -> None:
    """Follow a cluster and answer until ``stop`` is set. Raises ApiError, ConfigError, OSError."""
    judge = TimedJudge(RealClock(), options.budget_seconds)
    reads = CountedReads(cluster)
    endpoint = WebhookEndpoint(judge, reads)
    try:
        port = await endpoint.start(options.address, options.port, options.tls)
        scheme = "http" if options.tls is None else "https"
        _log.info("Serving a webhook", url=f"{scheme}://{options.address}:{port}{VALIDATE_PATH}")
        async with KindReflectors(reads, followed.kinds, judge.deliver) as reflectors:
            await reflectors.until_read(stop, lambda: asyncio.sleep(_TICK_SECONDS), _left_out)
            if stop.is_set():
                return
            await judge.begin(lambda: _model(options, judge, followed, reads))
            _log.info("The cluster was read", cluster=followed.name)
            await unless(stop, judge.follow())
    finally:
        await endpoint.stop()
        judge.close()


def _left_out(kind: str, reason: str) -> None:
    _log.warning("A kind is left out", kind=kind, reason=reason)


def _model(
    options: WebhookOptions, judge: TimedJudge, followed: ClusterKinds, reads: CountedReads
) -> tuple[ClusterModel, Judge]:
    """A model of what was read, in the thread that uses it. Raises ConfigError."""
    events = [judge.inbox.popleft() for _ in range(len(judge.inbox))]
    objects: ClusterPicture = objects_of_events(
        followed, events, reads.denials, RealClock().epoch_seconds()
    )
    model = ClusterModel(objects, options.config, options.registry)
    judge_of_model = Judge(model, options.config, options.registry)
    warm_up(judge_of_model, model)
    settle_memory()
    return model, judge_of_model


@final
class WebhookEndpoint:
    """An HTTP server on one address."""

    def __init__(self, judge: TimedJudge, reads: CountedReads) -> None:
        self._judge = judge
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_post(VALIDATE_PATH, self._validate)
        app.router.add_get("/metrics", self._metrics)
        for path in ("/healthz", "/livez"):
            app.router.add_get(path, self._healthy)
        app.router.add_get("/readyz", self._ready)
        self._server = HttpServer(app, limits=_LIMITS, guard=refuse_pages)
        self._registry = CollectorRegistry()
        for each in (*_families(judge, reads), judge.seconds):
            self._registry.register(each)
        self._server.register(self._registry)

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None) -> int:
        """Serve; returns the port, which the system chooses for 0. Raises OSError."""
        return await self._server.start(host, port, tls)

    async def stop(self) -> None:
        await self._server.stop()

    async def _validate(self, request: web.Request) -> web.Response:
        try:
            review = read_review(await request.read())
        except UnreadableReviewError as problem:
            return web.Response(status=400, text=f"bayplan: {problem}\n")
        answer = answer_of(review.uid, await self._judge.warning(review))
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

    async def _metrics(self, request: web.Request) -> web.Response:
        body = generate_latest(self._registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    async def _healthy(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _ready(self, request: web.Request) -> web.Response:
        if self._judge.is_ready:
            return web.Response(text="ok")
        return web.Response(status=500, text="the cluster has not been listed yet\n")


def _families(judge: TimedJudge, reads: CountedReads) -> Iterator[ScrapedFamily]:
    yield ScrapedFamily(
        COUNTER,
        "bayplan_webhook_reviews",
        "Admission reviews by result: fits, warned, unjudged; late is beyond the budget; failed is "
        "a defect; not-ready is before the first list.",
        ("result",),
        read=lambda: [((result,), count) for result, count in sorted(judge.results.items())],
    )
    yield ScrapedFamily(
        GAUGE,
        "bayplan_webhook_events_waiting",
        "Events of the cluster that the model does not have yet.",
        (),
        read=lambda: [((), len(judge.inbox))],
    )
    yield ScrapedFamily(
        COUNTER,
        "bayplan_webhook_read_failures",
        "Lists and watches that failed.",
        (),
        read=lambda: [((), sum(reads.failures.values()))],
    )
