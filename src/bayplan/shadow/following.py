"""follow: read a cluster until the end of a shadow, and report.

The cluster is followed as `model/following.py` has it. The report names a kind that may not be
read. A watch that is lost is resumed or, if that is too late, the kind is listed again: the
report counts the changes that such a list brings, because the events in between are lost.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Final, NamedTuple, Protocol, final

import msgspec

from bayplan.adapters.embedded.versioned_store import WholeObjects
from bayplan.adapters.live import cluster as live_cluster
from bayplan.adapters.live.client import ClientOptions, open_client
from bayplan.adapters.live.cluster import ClusterOptions, open_cluster
from bayplan.adapters.live.errors import UnreachableError
from bayplan.answers.amounts import counted, pod_count
from bayplan.api.objects import NODE
from bayplan.clock import RealClock, rfc3339
from bayplan.config import SchedulerConfig
from bayplan.model.cluster_kinds import ClusterKinds, cluster_kinds
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.following import CountedReads, KindReflectors, objects_of_events
from bayplan.model.picture import ClusterPicture
from bayplan.objects.keys import ObjectKey, key_of_metadata
from bayplan.plugins.registry import Registry
from bayplan.ports import (
    ClusterReader,
    EventType,
    WatchEvent,
)
from bayplan.profile.dry_start import declared_fields
from bayplan.serving.process import stop_on_signals
from bayplan.serving.server_version import version_line, version_of_server
from bayplan.shadow.folder import DecisionFile, write_report, write_report_so_far
from bayplan.shadow.metrics import MetricsEndpoint
from bayplan.shadow.recording import Recording
from bayplan.shadow.report import ShadowReport
from bayplan.shadow.shadow import Shadow

#: Reading a cluster takes a few lists, and needs no rate limit.
_UNLIMITED_QPS = -1.0
#: How often waiting pods are tried.
_TICK_SECONDS: Final = 1.0
_PROGRESS_SECONDS: Final = 30.0
#: After how long a request without an answer is a line.
_NOTICE_SECONDS: Final = 5.0
#: How often the report so far is written.
_REPORT_SECONDS: Final = 5.0
#: Events that are taken before the watches get a turn.
_BATCH: Final = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowOptions:
    """What `bayplan shadow` follows."""

    config: SchedulerConfig
    registry: Registry
    kubeconfig: str | None = None
    #: A context of the kubeconfig; "": its current context.
    context_name: str = ""
    #: Another configuration to compare with the same decisions, and its name.
    policy: SchedulerConfig | None = None
    policy_source: str = ""
    #: None: until a signal.
    seconds: float | None = None
    #: Where the recording is written; None: nowhere.
    folder: Path | None = None
    seed: int = 0
    #: The port of /metrics on loopback; None: there is none.
    port: int | None = None


async def follow(options: FollowOptions, say: Callable[[str], None]) -> ShadowReport:
    """Follow the cluster until the time is over, or until SIGTERM or SIGINT.

    The time counts from the moment when all lists are read. A cluster that is not read within the
    same time is given up. ``say``: takes lines about the progress. Raises CredentialsError,
    ConfigError, ApiError, OSError.
    """
    stop, is_read = stop_on_signals(), asyncio.Event()
    loop = asyncio.get_running_loop()
    shadow = loop.create_task(_follow(options, say, stop, is_read))
    events = [loop.create_task(each.wait()) for each in (stop, is_read)]
    try:
        await asyncio.wait(
            (shadow, *events), timeout=options.seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if not is_read.is_set() and not shadow.done():
            why = "it was interrupted" if stop.is_set() else f"{options.seconds:g} s are over"
            raise UnreachableError(f"{why}, and the cluster is not read yet: there is no report")
        return await shadow
    finally:
        for task in (shadow, *events):
            task.cancel()
        await asyncio.gather(shadow, *events, return_exceptions=True)


async def _follow(
    options: FollowOptions, say: Callable[[str], None], stop: asyncio.Event, is_read: asyncio.Event
) -> ShadowReport:
    """``is_read``: set when all lists are read. Raises as `follow`."""
    # The same failures, which `say` takes and the report counts.
    failures = logging.getLogger(live_cluster.__name__)
    failures.addHandler(logging.NullHandler())
    failures.propagate = False
    rates = ClientOptions(
        qps=_UNLIMITED_QPS, context_name=options.context_name, notice_seconds=_NOTICE_SECONDS
    )
    async with open_client(options.kubeconfig, rates) as client:
        choice = await version_of_server(options.config, client)
        say(version_line(choice))
        options = replace(options, config=choice.config)
        if options.policy is not None:
            policy = await version_of_server(options.policy, client)
            options = replace(options, policy=policy.config)
        configs = [options.config, *([] if options.policy is None else [options.policy])]
        source = await cluster_kinds(client, configs, options.registry)
        for kind in sorted(source.absent):
            say(f"the API server does not have {kind}")
        live = ClusterOptions(
            declared=declared_fields(configs, options.registry),
            whole_kinds=source.kinds if options.folder is not None else (),
        )
        async with open_cluster(client, live) as cluster:
            await cluster.discover(source.kinds)
            return await Follower(cluster, source, options, say).run(stop, is_read)


class Reader(ClusterReader, WholeObjects, Protocol):
    """Lists and watches of a cluster, and the objects as the server wrote them."""


class _Arrival(NamedTuple):
    """One event, and the bytes of its object if they are recorded."""

    event: WatchEvent
    at_seconds: float
    is_listed: bool
    content: bytes | None


class _Relist(NamedTuple):
    """A list that was not the first brought so many changes."""

    kind: str
    change_count: int
    at_seconds: float


@final
class Follower:
    """One run of the shadow."""

    def __init__(
        self,
        cluster: Reader,
        source: ClusterKinds,
        options: FollowOptions,
        say: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._reads = CountedReads(cluster)
        self._source = source
        self._options = options
        self._say = say
        self._clock = RealClock()
        self._inbox: deque[_Arrival | _Relist] = deque()
        self._is_woken = asyncio.Event()
        self._reported: set[str] = set()

    async def run(self, stop: asyncio.Event, is_read: asyncio.Event) -> ShadowReport:
        """``is_read``: set when all lists are read. Raises ApiError, ConfigError, OSError."""
        async with KindReflectors(self._reads, self._source.kinds, self._deliver) as reflectors:
            await reflectors.until_read(stop, self._tick, self._left_out)
            self._say_failures()
            is_read.set()
            return await self._shadow(stop)

    async def _tick(self) -> None:
        self._say_failures()
        await self._woken(_TICK_SECONDS)

    def _left_out(self, kind: str, reason: str) -> None:
        self._say(f"the shadow decides without {kind}: {reason}")

    # ---- arrivals ---------------------------------------------------------------------------

    def _deliver(self, kind: str, events: Iterable[WatchEvent]) -> None:
        """Called by a reflector, at once after it read the list or the event."""
        now, list_number = self._clock.now(), self._reads.take_list(kind)
        delivered = list(events)
        if list_number > 1:
            self._inbox.append(_Relist(kind, len(delivered), now))
        for event in delivered:
            content = self._content(event) if self._options.folder is not None else None
            self._inbox.append(_Arrival(event, now, list_number > 1, content))
        self._is_woken.set()

    def _content(self, event: WatchEvent) -> bytes:
        meta = event.object.metadata
        namespace, name = meta.namespace or "", meta.name
        content = None
        if event.type is not EventType.DELETED:
            content = self._cluster.whole(event.kind, namespace, name)
        if content is None:
            names = {
                "name": name,
                "uid": meta.uid,
                **({"namespace": namespace} if namespace else {}),
            }
            return msgspec.json.encode({"metadata": names})
        return content

    async def _woken(self, seconds: float) -> None:
        """Wait for an arrival, at most so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._is_woken.wait()
        self._is_woken.clear()

    # ---- start ------------------------------------------------------------------------------

    def _objects(self) -> tuple[ClusterPicture, list[tuple[str, bytes]]]:
        """The objects after the first lists, and their contents where they are recorded."""
        arrivals = [each for each in self._inbox if isinstance(each, _Arrival)]
        self._inbox.clear()
        objects = objects_of_events(
            self._source,
            (each.event for each in arrivals),
            self._reads.denials,
            self._clock.epoch_seconds(),
        )
        contents: dict[ObjectKey, bytes] = {}
        for each in arrivals:
            key = key_of_metadata(each.event.kind, each.event.object.metadata)
            if each.event.type is EventType.DELETED:
                contents.pop(key, None)
            elif each.content is not None:
                contents[key] = each.content
        recorded = [(key.kind, content) for key, content in contents.items()]
        return objects, sorted(recorded, key=lambda one: self._source.kinds.index(one[0]))

    async def _shadow(self, stop: asyncio.Event) -> ShadowReport:
        options = self._options
        objects, contents = self._objects()
        model = ClusterModel(objects, options.config, options.registry, seed=options.seed)
        policy = None
        if options.policy is not None:
            policy = ClusterModel(objects, options.policy, options.registry, seed=options.seed)
        start = self._clock.now()
        decisions = None if options.folder is None else DecisionFile(options.folder)
        shadow = Shadow(
            model,
            policy=policy,
            policy_source=options.policy_source,
            at_seconds=start,
            on_decision=lambda decision: decisions.write(decision) if decisions else None,
        )
        names = ", ".join(model.scheduler.profile_names)
        nodes, waiting = len(objects.of(NODE)), shadow.waiting_count
        self._say(
            f"{self._source.name}: {counted(nodes, 'node')}, {pod_count(waiting)} waiting; "
            f"decisions of {names} are compared"
        )
        recording = None
        if options.folder is not None:
            recording = Recording(options.folder, model.scheduler.profile_names)
            recording.begin(contents)
        del contents
        endpoint = None if options.port is None else MetricsEndpoint(shadow)

        def report() -> ShadowReport:
            return shadow.report(
                rfc3339(objects.epoch_seconds),
                failures=self._reads.failures,
                remarks=self._remarks(recording),
            )

        def write_so_far() -> None:
            if options.folder is not None:
                write_report_so_far(options.folder, report())

        try:
            if endpoint is not None and options.port is not None:
                port = await endpoint.start(options.port)
                self._say(f"metrics at http://127.0.0.1:{port}/metrics")
            await self._take_all(shadow, recording, start, stop, write_so_far=write_so_far)
        finally:
            if endpoint is not None:
                await endpoint.stop()
            if recording is not None:
                recording.close()
            shadow.finish(self._clock.now())
            if decisions is not None:
                decisions.close()
        result = report()
        if options.folder is not None:
            write_report(options.folder, result)
        for each in (model, policy):
            if each is not None:
                each.close()
        return result

    def _remarks(self, recording: Recording | None) -> tuple[str, ...]:
        remarks = [f"the API server does not have {kind}" for kind in sorted(self._source.absent)]
        if recording is not None:
            remarks.append(
                f"{recording.path}: {recording.step_count} changes recorded, "
                f"{recording.left_out_count} left out"
            )
        return tuple(remarks)

    # ---- events -----------------------------------------------------------------------------

    async def _take_all(
        self,
        shadow: Shadow,
        recording: Recording | None,
        start: float,
        stop: asyncio.Event,
        *,
        write_so_far: Callable[[], None],
    ) -> None:
        """Take events until the end."""
        seconds = self._options.seconds
        end = inf if seconds is None else start + seconds
        tick, progress, report = start + _TICK_SECONDS, start + _PROGRESS_SECONDS, start
        while True:
            now = self._clock.now()
            is_over = stop.is_set() or now >= end
            for _ in range(len(self._inbox) if is_over else min(_BATCH, len(self._inbox))):
                self._take(self._inbox.popleft(), shadow, recording, start)
            if is_over:
                return
            if now >= tick:
                tick = now + _TICK_SECONDS
                shadow.check_waiting(now)
                self._say_failures()
            if now >= report:
                report = now + _REPORT_SECONDS
                write_so_far()
            if now >= progress:
                progress = now + _PROGRESS_SECONDS
                compared = sum(shadow.results.values())
                self._say(
                    f"{now - start:.0f} s: {compared} decisions, {shadow.results['best']} best"
                )
            await self._woken(0.0 if self._inbox else min(tick, end) - now)

    def _take(
        self,
        arrival: "_Arrival | _Relist",
        shadow: Shadow,
        recording: Recording | None,
        start: float,
    ) -> None:
        if isinstance(arrival, _Relist):
            shadow.relisted(arrival.kind, arrival.change_count, arrival.at_seconds)
            count = arrival.change_count
            self._say(f"{arrival.kind} was listed again: {count} changes; events were lost")
            return
        event, at = arrival.event, arrival.at_seconds
        if recording is not None and arrival.content is not None:
            recording.add(event.type, event.kind, arrival.content, at - start)
        shadow.observe(event, at, is_listed=arrival.is_listed)

    def _say_failures(self) -> None:
        """One line for each failure that is new."""
        for line in self._reads.failures:
            if line not in self._reported:
                self._reported.add(line)
                self._say(f"cannot {line}")
