"""LiveCluster: a real API server behind the same port as the embedded one.

The scheduler cannot distinguish the two. Every request is one that kube-scheduler sends: lists and
watches with bookmarks, the binding subresource with the pod's uid, strategic merge patches of
pods/status, events.k8s.io/v1. A binding carries no resourceVersion: a pod that changed meanwhile is
still the pod that was placed, and the server refuses a pod that is bound, being deleted or gated.

A reflector retries forever. `FailureLog` therefore logs a failure when it begins and when it ends,
not at every attempt.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast, final

from bayplan import ports
from bayplan.adapters.live import errors
from bayplan.adapters.live.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiClient
from bayplan.adapters.live.discovery import Discovery, Resource
from bayplan.adapters.live.event_writer import EventWriter
from bayplan.adapters.live.rate_limit import Lane
from bayplan.adapters.live.watching import (
    SILENCE_SECONDS_MAX,
    KindReader,
    Originals,
    ReadingOptions,
)
from bayplan.adapters.live.work_queue_metrics import WorkQueueMetrics
from bayplan.api.objects import POD, ApiObject, DecodeError, Pod, decode
from bayplan.clock import Clock, RealClock
from bayplan.rng import stream
from bayplan.state.pods import PodInfo

# ---- failures -------------------------------------------------------------------------------


_log = logging.getLogger(__name__)

#: So many watches without an event, one after the other, are logged.
EMPTY_WATCHES_MAX = 5


@final
class FailureLog:
    """Operation ("list v1 Node") → the error of its last attempt."""

    def __init__(self) -> None:
        self._problems: dict[str, str] = {}

    @property
    def problems(self) -> Mapping[str, str]:
        return self._problems

    def begin(self, what: str, problem: Exception) -> None:
        """Note that an operation has failed, and begin to wait. Logs an error that differs from the
        last one."""
        why = str(problem)
        if self._problems.get(what) != why:
            self._problems[what] = why
            _log.error("cannot %s: %s", what, why)

    def end(self, what: str) -> None:
        """Note that an operation has succeeded. Logs the end of a failure."""
        if self._problems and self._problems.pop(what, None) is not None:
            _log.info("can %s again", what)


# ---- objects --------------------------------------------------------------------------------


class LiveObjects:
    """The methods of ports.Cluster that take any kind."""

    def __init__(
        self, client: ApiClient, discovery: Discovery, declared: Mapping[str, tuple[str, ...]]
    ) -> None:
        """``declared``: kind → further field paths that decoded objects have."""
        self._client = client
        self._discovery = discovery
        self._declared = declared

    async def resource(self, kind: str) -> Resource:
        """Path and scope of a kind. Raises NotFoundError, ApiError."""
        await self._discovery.discover((kind,))
        discovered = self._discovery.resource(kind)
        if discovered is None:
            raise ports.NotFoundError(f"the API server at {self._client.server} has no kind {kind}")
        return discovered

    async def read(self, kind: str, namespace: str, name: str) -> ApiObject:
        """Raises ApiError."""
        path = (await self.resource(kind)).path(namespace, name)
        body = await self._client.request("GET", path, lane=Lane.BINDINGS)
        return self._read(kind, body, f"GET {path}")

    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> ApiObject:
        """Raises ApiError, OutcomeUnknownError."""
        path = (await self.resource(kind)).path(namespace, name, subresource)
        body = await self._client.request("PATCH", path, patch, media_type=MERGE_PATCH)
        return self._written(kind, body, f"PATCH {path}")

    async def create_object(self, kind: str, content: dict[str, Any]) -> ApiObject:
        """Raises ApiError, OutcomeUnknownError."""
        api_version, _, name = kind.partition(" ")
        meta: Mapping[str, Any] = content.get("metadata") or {}
        path = (await self.resource(kind)).path(meta.get("namespace") or "")
        whole = {**content, "apiVersion": api_version, "kind": name}
        return self._written(kind, await self._client.request("POST", path, whole), f"POST {path}")

    async def delete_object(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Raises ApiError, OutcomeUnknownError."""
        content: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            content["preconditions"] = {"uid": uid}
        path = (await self.resource(kind)).path(namespace, name)
        await self._client.request("DELETE", path, content)

    def _read(self, kind: str, body: bytes, request: str) -> ApiObject:
        """Raises UnreadableAnswerError."""
        try:
            return decode(kind, body, self._declared.get(kind, ()))
        except DecodeError as problem:
            raise errors.UnreadableAnswerError(errors.unreadable(request, body, problem)) from None

    def _written(self, kind: str, body: bytes, request: str) -> ApiObject:
        """Raises OutcomeUnknownError."""
        try:
            return self._read(kind, body, request)
        except errors.UnreadableAnswerError as problem:
            raise ports.OutcomeUnknownError(str(problem)) from None


# ---- cluster --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Options of a LiveCluster."""

    clock: Clock = field(default_factory=RealClock)
    seed: int = 0
    #: Kind → further field paths that decoded objects have: `Scheduler.declared_fields`.
    declared: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    #: Kind → label selector. Other objects do not exist for the scheduler.
    label_selectors: Mapping[str, str] = field(default_factory=dict[str, str])
    #: A watch that is silent for longer has stalled.
    silence_seconds_max: float = SILENCE_SECONDS_MAX
    #: Kinds whose objects are also stored as the server wrote them.
    whole_kinds: tuple[str, ...] = ()


@final
class LiveCluster(LiveObjects):
    """ports.Cluster over HTTP. Made by `open_cluster`."""

    def __init__(self, client: ApiClient, options: ClusterOptions, events: EventWriter) -> None:
        super().__init__(client, Discovery(client), options.declared)
        self._options = options
        self._events = events
        self._random = stream(options.seed, "watches")
        self._failures = FailureLog()
        self._originals = Originals(options.whole_kinds)
        #: Kinds whose watch is silent now, and how often each watch fell silent.
        self._stalled_kinds: set[str] = set()
        self._stall_counts: Counter[str] = Counter()
        #: How many watches of a kind have ended one after the other without an event.
        self._empty_counts: Counter[str] = Counter()

    # ---- kinds ------------------------------------------------------------------------------

    async def discover(self, kinds: Iterable[str]) -> None:
        """Look up which of these kinds the server has. Raises ApiError."""
        await self._discovery.discover(kinds)

    def offers(self, kind: str) -> bool:
        """Whether the server has a kind. Call `discover` first."""
        return self._discovery.resource(kind) is not None

    # ---- reading ----------------------------------------------------------------------------

    async def list(self, kind: str) -> ports.Listing:
        what = f"list {kind}"
        try:
            listing = await (await self._reading(kind)).list()
        except ports.ApiError as problem:
            self._failures.begin(what, problem)
            raise
        self._failures.end(what)
        return listing

    def watch(self, kind: str, resource_version: str) -> AsyncIterator[ports.WatchEvent]:
        return self._watch(kind, resource_version)

    async def _watch(self, kind: str, resource_version: str) -> AsyncIterator[ports.WatchEvent]:
        what, is_empty = f"watch {kind}", True
        try:
            async for event in (await self._reading(kind)).watch(resource_version):
                if is_empty:
                    is_empty = False
                    self._stalled_kinds.discard(kind)
                    self._empty_counts.pop(kind, None)
                    self._failures.end(what)
                yield event
        except errors.WatchStalledError as problem:
            self._stall_counts[kind] += 1
            self._stalled_kinds.add(kind)
            self._failures.begin(what, problem)
            raise
        except (ports.GoneError, ports.WatchDroppedError) as problem:
            if is_empty:
                self._note_empty_watch(kind, str(problem))
            raise
        except ports.ApiError as problem:
            self._failures.begin(what, problem)
            raise
        self._stalled_kinds.discard(kind)
        if is_empty:
            self._note_empty_watch(kind, "the server ends it")

    def _note_empty_watch(self, kind: str, why: str) -> None:
        """One such watch is usual: a server restarts, or has forgotten a version. The server sends
        a bookmark every minute, so a working watch has an event."""
        self._empty_counts[kind] += 1
        if self._empty_counts[kind] >= EMPTY_WATCHES_MAX:
            problem = f"each watch ends without an event: {why}"
            problem += "; is a proxy or a load balancer in between?"
            self._failures.begin(f"watch {kind}", ports.WatchDroppedError(problem))

    async def _reading(self, kind: str) -> KindReader:
        options = self._options
        how = ReadingOptions(
            declared=options.declared.get(kind, ()),
            label_selector=options.label_selectors.get(kind, ""),
            silence_seconds_max=options.silence_seconds_max,
            originals=self._originals if kind in options.whole_kinds else None,
        )
        return KindReader(self._client, await self.resource(kind), self._random, how)

    async def get_pod(self, namespace: str, name: str) -> Pod:
        path = (await self.resource(POD)).path(namespace, name)
        body = await self._client.request("GET", path, lane=Lane.BINDINGS)
        return cast(Pod, self._read(POD, body, f"GET {path}"))

    def whole(self, kind: str, namespace: str, name: str) -> bytes | None:
        """See WholeObjects: the object as it was last listed or watched."""
        return self._originals.whole(kind, namespace, name)

    # ---- writing ----------------------------------------------------------------------------

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        meta = {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
        content = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": meta,
            "target": {"kind": "Node", "name": node_name},
        }
        path = (await self.resource(POD)).path(pod.namespace, pod.name, "binding")
        try:
            await self._client.request("POST", path, content, lane=Lane.BINDINGS)
        except errors.UnreachableError:
            raise
        except ports.ApiError as problem:
            # The server may have written the binding before it failed.
            if problem.code >= errors.SERVER_ERRORS:
                raise ports.OutcomeUnknownError(str(problem), problem.code) from None
            raise

    async def patch_pod_status(self, patch: ports.PatchPodStatus) -> None:
        path = (await self.resource(POD)).path(patch.namespace, patch.name, "status")
        with _meant_by_uid():
            await self._client.request(
                "PATCH",
                path,
                status_patch(patch),
                lane=Lane.STATUS,
                media_type=STRATEGIC_MERGE_PATCH,
            )

    async def patch_group_status(self, patch: ports.PatchPodGroupStatus) -> None:
        path = (await self.resource(patch.kind)).path(patch.namespace, patch.name, "status")
        meta = {"uid": patch.uid} if patch.uid else {}
        content = {"metadata": meta, "status": patch.status}
        with _meant_by_uid():
            await self._client.request(
                "PATCH", path, content, lane=Lane.STATUS, media_type=MERGE_PATCH
            )

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        content: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            content["preconditions"] = {"uid": uid}
        path = (await self.resource(POD)).path(namespace, name)
        with _meant_by_uid():
            await self._client.request("DELETE", path, content)

    async def create_event(self, event: ports.EmitEvent) -> None:
        """Returns at once. The event is written in the background."""
        self._events.put(event)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    # ---- for operators ----------------------------------------------------------------------

    @property
    def problems(self) -> Mapping[str, str]:
        """Operation that fails at present ("list v1 Node") → its error."""
        return self._failures.problems

    @property
    def is_hearing(self) -> bool:
        """Whether no watch is silent."""
        return not self._stalled_kinds

    @property
    def watch_stall_counts(self) -> Mapping[str, int]:
        """Kind → how often a watch was not answered or fell silent."""
        return self._stall_counts

    @property
    def dropped_event_count(self) -> int:
        """The number of events that were dropped."""
        return self._events.dropped_count

    @property
    def event_queue(self) -> WorkQueueMetrics:
        """Metrics of the queue of events."""
        return self._events.metrics

    async def flush_events(self, seconds_max: float | None = None) -> None:
        """Wait until the events so far are written; after ``seconds_max`` they are dropped."""
        await self._events.flush(seconds_max)


@contextlib.asynccontextmanager
async def open_cluster(
    client: ApiClient, options: ClusterOptions | None = None
) -> AsyncGenerator[LiveCluster]:
    """A cluster. Its events are written until the block ends."""
    options = options or ClusterOptions()
    events = EventWriter(client, options.clock)
    events.start()
    try:
        yield LiveCluster(client, options, events)
    finally:
        await events.stop()


@contextlib.contextmanager
def _meant_by_uid() -> Generator[None]:
    """Raises NotFoundError if the pod of that name has another uid."""
    try:
        yield
    except ports.ApiError as problem:
        if errors.is_uid_mismatch(problem):
            raise ports.NotFoundError(str(problem)) from None
        raise


def status_patch(patch: ports.PatchPodStatus) -> dict[str, Any]:
    """A strategic merge patch of the status; conditions are merged by type.

    With the uid, the server refuses the patch for another pod of the same name.
    """
    status: dict[str, Any] = {}
    condition = patch.condition
    if condition is not None:
        fields = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": condition.last_transition_time,
            "observedGeneration": condition.observed_generation,
        }
        # A field that the patch leaves out stays, such as the last transition time of an unchanged
        # condition.
        written = {name: value for name, value in fields.items() if value is not None}
        status["conditions"] = [written]
    if patch.nominated_node_name is not None:
        status["nominatedNodeName"] = patch.nominated_node_name or None
    return {"metadata": {"uid": patch.uid}, "status": status}
