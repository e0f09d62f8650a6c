"""The process of `bayplan serve-extender`: a cluster that is only read, a scheduler that makes no
attempts, and the endpoints that run its plugins.
"""

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bayplan.adapters.embedded.api_features import api_features
from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.live.client import ApiClient, ClientOptions, open_client
from bayplan.adapters.live.cluster import ClusterOptions, open_cluster
from bayplan.adapters.live.discovery import Discovery
from bayplan.api.objects import NODE, POD
from bayplan.clock import RealClock
from bayplan.config import SchedulerConfig
from bayplan.engine.scheduler import Scheduler
from bayplan.plugins.registry import Registry
from bayplan.ports import Cluster
from bayplan.profile.kinds_in_use import kinds_in_use, without_absent
from bayplan.runner import Runner
from bayplan.serving.election.leader_guard import FencedCluster
from bayplan.serving.extender_endpoints import Advice, ExtenderEndpoints
from bayplan.serving.log_lines import Log
from bayplan.serving.process import stop_on_signals, unless, until_started
from bayplan.serving.server_version import log_version, version_of_server

_log = Log("extender")


@dataclass(frozen=True, kw_only=True)
class ExtenderServerOptions:
    """The options of `bayplan serve-extender`."""

    config: SchedulerConfig
    registry: Registry
    profile: str
    #: Objects from files; None: a cluster is watched.
    objects: Sequence[Mapping[str, Any]] | None = None
    kubeconfig: str | None = None
    address: str = "127.0.0.1"
    port: int = 8888
    tls: ssl.SSLContext | None = None
    score_max: int = 10


async def serve_extender(options: ExtenderServerOptions) -> None:
    """Run until SIGTERM or SIGINT.

    Raises CredentialsError, ConfigError, ApiError, and OSError if the endpoints cannot be served.
    """
    stop, clock = stop_on_signals(), RealClock()
    if options.objects is not None:
        scheduler = Scheduler(options.config, options.registry, clock, pod_group_kinds=())
        features = api_features(options.config.gates)
        cluster = EmbeddedCluster(clock, scheduler.declared_fields, features=features)
        for content in options.objects:
            cluster.create(dict(content))
        await _serve(options, scheduler, cluster, stop)
        return
    connection = options.config.spec.client_connection
    rates = ClientOptions(qps=connection.qps, burst=connection.burst, clock=clock)
    kubeconfig = options.kubeconfig or connection.kubeconfig or None
    async with until_started(stop) as start_is_over, open_client(kubeconfig, rates) as client:
        config = await _offered(options, client)
        scheduler = Scheduler(config, options.registry, clock, pod_group_kinds=())
        declared = ClusterOptions(clock=clock, declared=scheduler.declared_fields)
        async with open_cluster(client, declared) as live:
            start_is_over()
            await _serve(options, scheduler, live, stop)


async def _offered(options: ExtenderServerOptions, client: ApiClient) -> SchedulerConfig:
    """The configuration in the version of the API server, without plugins that read kinds which
    the API server does not have."""
    choice = await version_of_server(options.config, client)
    log_version(_log, choice)
    discovery = Discovery(client)
    kinds = kinds_in_use(choice.config, options.registry)
    await discovery.discover((NODE, POD, *kinds))
    config, absent = without_absent(
        choice.config, options.registry, lambda kind: discovery.resource(kind) is not None
    )
    for each in absent:
        _log.warning("Plugin switched off", plugin=each.plugin, reason=str(each))
    return config


async def _serve(
    options: ExtenderServerOptions, scheduler: Scheduler, cluster: Cluster, stop: asyncio.Event
) -> None:
    """Watch the cluster and serve the endpoints. Nothing is written to the API."""
    runner = Runner(scheduler, FencedCluster(cluster, lambda: False))
    runner.pause()
    advice = Advice(
        advisor=scheduler.one_shot,
        profile=options.profile,
        is_ready=lambda: runner.is_synced,
        declared=scheduler.declared_fields.get(POD, ()),
        score_max=options.score_max,
    )
    endpoints = ExtenderEndpoints(advice)
    try:
        port = await endpoints.start(options.address, options.port, options.tls)
        scheme = "http" if options.tls is None else "https"
        url = f"{scheme}://{options.address}:{port}/"
        _log.info("Serving a scheduler extender", urlPrefix=url, profile=options.profile)
        await unless(stop, runner.run())
    finally:
        await endpoints.stop()
        scheduler.close()
