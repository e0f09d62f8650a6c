"""The process of `bayplan run`: client, cluster, scheduler, election, endpoints, signals.

The scheduler and its runner are those of a simulation. Only the API server behind the port and the
clock differ. A plugin call that blocks the scheduler is logged and counted. On SIGUSR2, the caches
are compared with the API server, as in kube-scheduler.
"""

import asyncio
import platform
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import final

from prometheus_client import ProcessCollector

from bayplan import __version__
from bayplan.adapters.extenders.client import open_extenders, sender_makers
from bayplan.adapters.live import errors
from bayplan.adapters.live.access import denial, missing_rights, rights_to_follow
from bayplan.adapters.live.client import ApiClient, ClientOptions, open_client
from bayplan.adapters.live.cluster import ClusterOptions, LiveCluster, open_cluster
from bayplan.adapters.live.discovery import Discovery
from bayplan.api.objects import NODE, POD
from bayplan.clock import RealClock, rfc3339
from bayplan.config import SchedulerConfig
from bayplan.config.metric_table import metric_standard
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.config.schema import LeaderElection
from bayplan.durations import duration_seconds
from bayplan.engine.scheduler import Scheduler
from bayplan.history.past_state import StateRing
from bayplan.history.state_log import LiveStateLog
from bayplan.journal import Journal, MemorySink
from bayplan.metrics import SchedulerMetrics
from bayplan.plugins.registry import Registry
from bayplan.ports import ApiError, Ask, Cluster, OutcomeUnknownError, PatchPodStatus
from bayplan.profile.effective_config import effective
from bayplan.profile.kinds_in_use import kinds_in_use, without_absent
from bayplan.rng import stable_hash, stream
from bayplan.runner import Runner, check_cache
from bayplan.serving import certificates
from bayplan.serving.access import Access, OpenAccess, ReviewedAccess
from bayplan.serving.component_metrics import register_build_info, register_cluster
from bayplan.serving.decision_history import RECORDS_MAX, DecisionHistory, history_of
from bayplan.serving.delegation import Delegation, DelegationOptions, open_delegation
from bayplan.serving.discovery import GroupKinds
from bayplan.serving.dry_runs import dry_run_of
from bayplan.serving.election.candidate import Candidate
from bayplan.serving.election.election import Election, ElectionSettings, LeaderGauge
from bayplan.serving.election.leader_guard import FencedCluster, fenced_ask
from bayplan.serving.election.lease import ApiLeaseLock, new_identity, own_namespace
from bayplan.serving.endpoints import Endpoints, EndpointSources
from bayplan.serving.log_lines import Log, OutcomeLog
from bayplan.serving.page import (
    LEADING,
    STANDBY,
    STARTING,
    STOPPING,
    MakePage,
    ModelSources,
    PageSources,
    ReplicaPhase,
    SchedulerPage,
)
from bayplan.serving.past_attempts import ENTRIES_MAX, PastAttempts
from bayplan.serving.process import (
    on_signal,
    settle_memory,
    stop_on_signals,
    unless,
    until_started,
)
from bayplan.serving.rbac import rights_to_write
from bayplan.serving.replica import FLUSH_SECONDS_MAX, LeaseLostError, Replica
from bayplan.serving.server_version import log_version, version_of_server
from bayplan.watchdog import PERIOD_SECONDS, BlockingCall, PluginWatchdog

# ---- blocking -------------------------------------------------------------------------------


_watchdog_log = Log("watchdog")


def tell_of_blocking(metrics: SchedulerMetrics, call: BlockingCall) -> None:
    """Log a plugin call that blocks the scheduler. Called once a period while it lasts, on another
    thread."""
    metrics.plugin_blocking.add(call.plugin, call.point, count=PERIOD_SECONDS)
    if call.is_news:
        keys = {"plugin": call.plugin, "extensionPoint": call.point, "at": call.place}
        text = "A plugin blocks the scheduler"
        _watchdog_log.error(text, **keys, seconds=round(call.seconds, 1))


# ---- cache check ----------------------------------------------------------------------------


#: Maximum number of differences in the log; further ones are only counted.
_SHOWN_MAX = 20


@final
class CacheCheck:
    """Runs one check at a time, and logs the differences."""

    def __init__(self, scheduler: Scheduler, cluster: Cluster) -> None:
        self._scheduler = scheduler
        self._cluster = cluster
        self._log = Log("cache-check")
        self._running: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start a check, unless one is running. Returns at once."""
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self.run())

    async def run(self) -> None:
        try:
            differing = await check_cache(self._scheduler, self._cluster)
        except (ApiError, OutcomeUnknownError) as problem:
            self._log.error("The caches could not be compared", err=str(problem))
            return
        for difference in differing[:_SHOWN_MAX]:
            self._log.error("Cache differs from the API server", difference=difference)
        queue = {name: len(pods) for name, pods in self._scheduler.queue.pending_pods().items()}
        nodes, pods = self._scheduler.cache.table.node_count, len(self._scheduler.cache.pods())
        self._log.info(
            "Compared caches", differences=len(differing), nodes=nodes, pods=pods, pending=queue
        )

    def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()


# ---- scheduler server -----------------------------------------------------------------------


_log = Log("server")

#: The first delay before another request to the API server at start; delays double.
_FIRST_RETRY_SECONDS, _RETRY_SECONDS_MAX = 1.0, 15.0
#: How long the API server may refuse requests at start.
DENIED_SECONDS_MAX = 30.0
_LOOPBACK = frozenset(("127.0.0.1", "::1", "localhost"))


@dataclass(frozen=True, kw_only=True)
class ServingOptions:
    """Where and how the endpoints are served. Port 0: they are not served."""

    address: str = "127.0.0.1"
    port: int = 10259
    cert_file: str = ""
    key_file: str = ""
    #: The folder of the certificate and key, which are made if missing; "": they stay in memory.
    cert_dir: str = ""
    #: A file with the accepted authorities of client certificates; "": none.
    client_ca_file: str = ""
    tls: certificates.TlsSettings = field(default_factory=certificates.TlsSettings)
    is_port_shared: bool = False
    #: Full names of metrics that are not exposed.
    hidden_metrics: frozenset[str] = frozenset()
    delegation: DelegationOptions = field(default_factory=DelegationOptions)

    @property
    def is_open(self) -> bool:
        """Whether every request is answered: on loopback, unless callers are to be reviewed."""
        is_reviewed = self.client_ca_file or self.delegation.is_enabled
        return self.address in _LOOPBACK and not is_reviewed


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """The options of `bayplan run`."""

    config: SchedulerConfig
    registry: Registry
    #: None: inside a pod its ServiceAccount, else $KUBECONFIG or ~/.kube/config.
    kubeconfig: str | None = None
    #: The URL of the API server, in place of that of the kubeconfig; "": the kubeconfig's.
    master: str = ""
    seed: int = 0
    serving: ServingOptions = ServingOptions()
    #: How the page below /ui/ is made; None: there is no page.
    make_page: MakePage | None = None


async def serve(options: ServerOptions) -> None:
    """Run until SIGTERM or SIGINT.

    Raises CredentialsError, ConfigError, CertificateError, ApiError, LeaseLostError, and OSError if
    the endpoints cannot be served.
    """
    stop, clock = stop_on_signals(), RealClock()
    connection = options.config.spec.client_connection
    rates = ClientOptions(qps=connection.qps, burst=connection.burst, seed=options.seed)
    rates = replace(rates, clock=clock, master=options.master)
    kubeconfig = options.kubeconfig or connection.kubeconfig or None
    async with (
        until_started(stop) as start_is_over,
        open_client(kubeconfig, rates) as client,
        open_delegation(options.serving.delegation, client, kubeconfig, rates) as delegation,
    ):
        _log.info(
            "Starting Bayplan",
            version=__version__,
            python=platform.python_version(),
            server=client.server,
        )
        server = _SchedulerServer(options, client, clock, delegation)
        await server.prepare()
        start_is_over()
        await server.run(stop)
    _log.info("Ended")


@final
class _SchedulerServer:
    """The scheduler of one process, with its cluster, election and endpoints."""

    def __init__(
        self, options: ServerOptions, client: ApiClient, clock: RealClock, delegation: Delegation
    ) -> None:
        self._options = options
        self._client = client
        self._delegation = delegation
        self._clock = clock
        self._config = options.config
        self._sender_makers = sender_makers(options.config.spec.extenders)
        self._memory = MemorySink(RECORDS_MAX)
        self._states = StateRing(ENTRIES_MAX)
        self._state_log = LiveStateLog(self._states.put, self._clock.now)
        self._started = rfc3339(clock.epoch_seconds() - clock.now())
        #: Kinds of pod groups that the API server offers and the scheduler may read.
        kinds = group_kinds(options.config.spec.pod_groups.kinds)
        self._group_kinds = GroupKinds(client, tuple(kinds))
        self._group_kinds_at_start: tuple[str, ...] = ()
        #: Kinds that plugins use and the API server does not have.
        self._absent_kinds: tuple[str, ...] = ()

    async def prepare(self) -> None:
        """Wait for the API server, discover its kinds, and check the rights of the scheduler.

        A starting API server does not answer, fails, or refuses requests until its roles exist.
        Failures are retried without limit, refusals for `DENIED_SECONDS_MAX`. An untrusted
        certificate is not retried. Raises ApiError, ConfigError.
        """
        delay_seconds, start_seconds = _FIRST_RETRY_SECONDS, self._clock.now()
        while True:
            try:
                await self._find_out()
                return
            except errors.UntrustedServerError:
                raise
            except ApiError as problem:
                left_seconds = DENIED_SECONDS_MAX - (self._clock.now() - start_seconds)
                _log_delay(problem, left_seconds)
            await asyncio.sleep(delay_seconds)
            delay_seconds = min(2 * delay_seconds, _RETRY_SECONDS_MAX)

    async def _find_out(self) -> None:
        """Raises ApiError, ConfigError."""
        discovery = Discovery(self._client)
        # A server whose roles do not exist yet refuses this, and is asked for its version later.
        await discovery.discover((NODE, POD))
        choice = await version_of_server(self._options.config, self._client)
        kinds = kinds_in_use(choice.config, self._options.registry)
        await discovery.discover((NODE, POD, *kinds))
        self._config, absent = without_absent(
            choice.config,
            self._options.registry,
            lambda kind: discovery.resource(kind) is not None,
        )
        if absent:
            kinds = kinds_in_use(self._config, self._options.registry)
        await self._check_rights(discovery, kinds)
        log_version(_log, choice)
        for each in absent:
            _log.warning("Plugin switched off", plugin=each.plugin, reason=str(each))
        self._absent_kinds = tuple(kind for kind in kinds if discovery.resource(kind) is None)

    async def _check_rights(self, discovery: Discovery, kinds: Sequence[str]) -> None:
        """Check the rights. A missing right to read ends the process; a missing right to write is
        logged."""
        resources = [discovery.resource(kind) for kind in (NODE, POD, *kinds)]
        reading = rights_to_follow(resource for resource in resources if resource is not None)
        writing = rights_to_write(self._config, self._options.registry)
        missing = await missing_rights(self._client, (*reading, *writing))
        unreadable = [right for right in missing if right in reading]
        if unreadable:
            raise errors.AccessDeniedError(403, "Forbidden", denial(unreadable))
        if missing:
            _log.error("Rights are missing", err=denial(missing))
        self._group_kinds_at_start += await self._group_kinds.look()

    async def run(self, stop: asyncio.Event) -> None:
        """Schedule until ``stop``."""
        options = self._options
        scheduler = Scheduler(
            self._config,
            options.registry,
            self._clock,
            seed=options.seed,
            journal=Journal([self._memory, OutcomeLog()]),
            state_log=self._state_log,
            pod_group_kinds=self._group_kinds_at_start,
            absent_kinds=self._absent_kinds,
        )
        entries = self._config.spec.extenders
        cluster_options = ClusterOptions(
            clock=self._clock,
            seed=options.seed,
            declared=scheduler.declared_fields,
            whole_kinds=(NODE, POD) if entries else (),
        )
        try:
            async with (
                open_cluster(self._client, cluster_options) as cluster,
                open_extenders(entries, cluster, self._sender_makers) as asks,
            ):
                await self._run(scheduler, cluster, asks, stop)
                await cluster.flush_events(FLUSH_SECONDS_MAX)
        finally:
            scheduler.close()

    async def _run(
        self,
        scheduler: Scheduler,
        cluster: LiveCluster,
        asks: Mapping[str, Ask],
        stop: asyncio.Event,
    ) -> None:
        election, candidate = self._election()
        port: Cluster = cluster
        if election is not None:

            def may_act() -> bool:
                return election.is_leader(self._clock.now())

            port = FencedCluster(cluster, may_act)
            asks = {name: fenced_ask(ask, may_act) for name, ask in asks.items()}
        parts = _Parts()
        page = self._page(scheduler, parts, election)
        runner = Runner(
            scheduler, port, asks, on_synced=settle_memory, dropped_patch=_log_dropped_patch
        )
        delays = self._config.spec.delay_cache_until_active
        replica = Replica(runner, candidate, delays_cache=delays)
        parts.runner, parts.replica = runner, replica
        sources = replace(self._sources(scheduler, cluster, runner, replica), page=page)
        endpoints = Endpoints(sources, self._access())
        self._add_collectors(scheduler, replica, cluster)
        check = CacheCheck(scheduler, cluster)
        watchdog = PluginWatchdog(partial(tell_of_blocking, scheduler.metrics))
        late_kinds = self._group_kinds.watch(lambda: scheduler.awaited_api_groups, runner.follow)
        looking = asyncio.get_running_loop().create_task(late_kinds, name="group kinds")
        with on_signal("SIGUSR2", check.begin), watchdog:
            reason = "The scheduler was stopped."
            try:
                if not await unless(stop, self._start(endpoints)):
                    return
                if page is not None:
                    page.start()
                await replica.run(stop)
            except LeaseLostError as problem:
                reason = f"This replica lost the lease: {problem}."
                raise
            finally:
                looking.cancel()
                check.stop()
                if page is not None:
                    await page.stop(reason)
                await endpoints.stop()

    # ---- parts ----------------------------------------------------------------------------

    def _election(self) -> tuple[Election | None, Candidate | None]:
        """The election; None: the configuration disables it."""
        spec = self._config.spec.leader_election
        if not spec.leader_elect:
            return None, None
        election = Election(new_identity(), _durations(spec))
        namespace = spec.resource_namespace or own_namespace()
        lock = ApiLeaseLock(self._client, namespace, spec.resource_name)
        # Each replica draws its delays from another stream, so that replicas do not retry at the
        # same time.
        jitter = stream(stable_hash(election.identity), "election")
        log = _ElectionLog(f"{namespace}/{spec.resource_name}", election.identity)
        return election, Candidate(election, lock, self._clock, jitter, log=log)

    def _page(
        self, scheduler: Scheduler, parts: "_Parts", election: Election | None
    ) -> SchedulerPage | None:
        if self._options.make_page is None or not self._options.serving.port:
            return None
        spec = self._config.spec.leader_election
        name = spec.resource_name if election is not None else ", ".join(scheduler.profile_names)
        return self._options.make_page(
            PageSources(
                scheduler=scheduler,
                memory=self._memory,
                log=self._state_log,
                clock=self._clock,
                name=name,
                phase=lambda: parts.phase(election),
                model=ModelSources(
                    states=self._states,
                    config=self._config,
                    registry=self._options.registry,
                    seed=self._options.seed,
                    absent_kinds=frozenset(self._absent_kinds),
                ),
            )
        )

    def _sources(
        self, scheduler: Scheduler, cluster: LiveCluster, runner: Runner, replica: Replica
    ) -> EndpointSources:
        config = effective(self._config, self._options.registry)
        return EndpointSources(
            registry=scheduler.metrics.registry,
            metric_standard=metric_standard(self._config.gates),
            ready={
                "caches": lambda: runner.is_synced or self._is_waiting_for_its_turn(replica),
                "watches": lambda: cluster.is_hearing,
                "shutdown": lambda: not replica.is_stopping,
            },
            config=config,
            history=self._history,
            attempts=PastAttempts(
                self._states,
                self._memory,
                config=config,
                seed=self._options.seed,
                absent=self._absent_kinds,
            ),
            dry_run=partial(dry_run_of, scheduler=scheduler),
            hidden_metrics=self._options.serving.hidden_metrics,
        )

    def _is_waiting_for_its_turn(self, replica: Replica) -> bool:
        """Whether this is a standby with delayCacheUntilActive, which is ready without caches."""
        return self._config.spec.delay_cache_until_active and not replica.is_leading

    def _history(self, pod: str) -> DecisionHistory:
        return history_of(pod, self._memory, self._started)

    def _add_collectors(self, scheduler: Scheduler, replica: Replica, cluster: LiveCluster) -> None:
        registry = scheduler.metrics.registry
        ProcessCollector(registry=registry)
        register_build_info(registry)
        register_cluster(registry, cluster)
        self._client.metrics.register(registry)
        lease = self._config.spec.leader_election.resource_name
        registry.register(LeaderGauge(lease, lambda: replica.is_leading))

    def _access(self) -> Access:
        if self._options.serving.is_open:
            return OpenAccess()
        policy = self._options.serving.delegation.policy
        return ReviewedAccess(self._delegation.review, self._clock, policy)

    async def _start(self, endpoints: Endpoints) -> None:
        """Start the endpoints: plain HTTP on loopback, TLS otherwise. Raises ApiError,
        CertificateError, OSError."""
        serving = self._options.serving
        if not serving.port:
            return
        tls = self._tls()
        if tls is not None:
            await self._trust(tls)
        port = await endpoints.start(
            serving.address, serving.port, tls, is_port_shared=serving.is_port_shared
        )
        scheme = "http" if tls is None else "https"
        _log.info("Serving endpoints", address=f"{scheme}://{serving.address}:{port}")

    def _tls(self) -> ssl.SSLContext | None:
        """The TLS context; None: plain HTTP. Raises CertificateError."""
        serving = self._options.serving
        if serving.cert_file or serving.key_file:
            tls = certificates.server_context(serving.cert_file, serving.key_file)
        elif serving.is_open and not serving.cert_dir and not serving.tls.named_pairs:
            return None
        elif serving.cert_dir:
            now_seconds = self._clock.epoch_seconds()
            tls = certificates.directory_context(serving.cert_dir, serving.address, now_seconds)
        else:
            tls = certificates.self_signed_context(serving.address, self._clock.epoch_seconds())
        certificates.apply_tls_settings(tls, serving.tls)
        return tls

    async def _trust(self, tls: ssl.SSLContext) -> None:
        """Accept client certificates of the authorities in a file and, if looked up, of the
        cluster's authorities. Raises ApiError, CertificateError."""
        serving = self._options.serving
        if serving.client_ca_file:
            certificates.trust_clients(tls, serving.client_ca_file)
            return
        authorities = await self._delegation.client_authorities()
        if authorities:
            certificates.trust_client_authorities(tls, authorities)


@final
class _Parts:
    """The data of the page that comes from parts which are made after the page."""

    runner: Runner | None = None
    replica: Replica | None = None

    def phase(self, election: Election | None) -> ReplicaPhase:
        assert self.runner is not None
        assert self.replica is not None
        leader = "" if election is None else election.holder
        if self.replica.is_stopping:
            return ReplicaPhase(STOPPING, leader)
        if self.replica.is_leading:
            return ReplicaPhase(LEADING if self.runner.is_synced else STARTING, leader)
        return ReplicaPhase(STANDBY, leader)


def _log_delay(problem: ApiError, left_seconds: float) -> None:
    """Log why the start is delayed. Raises ``problem`` if a retry does not help."""
    if problem.code in (errors.UNAUTHORIZED, errors.FORBIDDEN):
        if left_seconds <= 0:
            raise problem
        text = "The API server refuses; trying again, for it may be starting"
        _log.warning(text, secondsLeft=round(left_seconds), err=str(problem))
    elif problem.code >= errors.SERVER_ERRORS or problem.code == errors.TOO_MANY_REQUESTS:
        _log.warning("The API server does not answer; trying again", err=str(problem))
    else:
        raise problem


def _log_dropped_patch(patch: PatchPodStatus, problem: Exception) -> None:
    """The line is upstream's."""
    Log("scheduler").error(
        "Error updating pod", pod=f"{patch.namespace}/{patch.name}", err=str(problem)
    )


@final
class _ElectionLog:
    """Implements serving.election.candidate.ElectionLog with log lines."""

    def __init__(self, lease: str, identity: str) -> None:
        self._lease = lease
        self._identity = identity
        self._log = Log("election")
        self._log.info("Standing for election", lease=lease, identity=identity)

    def leader_changed(self, holder: str) -> None:
        text = "This replica leads" if holder == self._identity else "Leader changed"
        self._log.info(text, lease=self._lease, leader=holder)

    def trouble(self, text: str) -> None:
        self._log.warning("The lease could not be taken or renewed", lease=self._lease, err=text)


def _durations(spec: LeaderElection) -> ElectionSettings:
    return ElectionSettings(
        lease_duration_seconds=duration_seconds(spec.lease_duration),
        renew_deadline_seconds=duration_seconds(spec.renew_deadline),
        retry_period_seconds=duration_seconds(spec.retry_period),
    )
