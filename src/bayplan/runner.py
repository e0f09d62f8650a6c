"""The runner between engine and cluster: the same for a live API server and the embedded one.

One reflector per kind lists, then watches, resumes after a drop, lists anew after 410 Gone, and
reconciles what changed meanwhile. Everything that happens goes into one inbox; the main loop takes
it out, lets the scheduler decide, and performs effects as tasks whose results return as events.
The engine is touched by this loop only.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, final

from bayplan.api.objects import NODE, POD
from bayplan.engine.binding import BindingOutcome
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.status import Status
from bayplan.ports import (
    ApiError,
    AskExtender,
    BindPod,
    Cluster,
    Effect,
    EmitEvent,
    EventType,
    GoneError,
    NotFoundError,
    OutcomeUnknownError,
    PatchPodStatus,
    WatchDroppedError,
    WatchEvent,
)

RETRY_SECONDS_MIN = 0.05
RETRY_SECONDS_MAX = 5.0
STATUS_PATCH_TRIES = 4

_Item = Callable[[], None]


@final
class Runner:
    """Runs one scheduler against one cluster until cancelled."""

    def __init__(self, scheduler: Scheduler, cluster: Cluster) -> None:
        self._scheduler = scheduler
        self._cluster = cluster
        self._inbox: deque[_Item] = deque()
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._reflectors: list[Reflector] = []
        self._in_flight = 0

    async def run(self) -> None:
        """Until cancelled; then every task of the runner is cancelled, too."""
        try:
            # Nodes and what plugins look up come first, so that the first cycle sees them.
            for kind in (NODE, *self._scheduler.kinds, POD):
                await self._start_reflector(kind)
            await self._loop()
        finally:
            for task in self._tasks:
                task.cancel()

    async def _start_reflector(self, kind: str) -> None:
        reflector = Reflector(self._cluster, kind, self._deliver)
        self._reflectors.append(reflector)
        self._spawn(reflector.run())
        await reflector.synced.wait()

    async def _loop(self) -> None:
        while True:
            self._take_in()
            self._scheduler.run_timers()
            busy = self._scheduler.schedule_one()
            self._perform(self._scheduler.take_effects())
            if busy or self._inbox:
                await asyncio.sleep(0)
            else:
                await self._wait()

    def _take_in(self) -> None:
        self._wake.clear()
        while self._inbox:
            self._inbox.popleft()()

    async def _wait(self) -> None:
        """Until something happens or the scheduler's next deadline."""
        deadline = self._scheduler.next_deadline_seconds()
        if deadline is None:
            await self._wake.wait()
            return
        delay = max(deadline - self._scheduler.now_seconds(), 0.0)
        try:
            await asyncio.wait_for(self._wake.wait(), delay)
        except TimeoutError:
            return

    # ---- what the driver of a simulation asks ---------------------------------------------

    @property
    def is_settled(self) -> bool:
        """Nothing is in the inbox, ready to be scheduled, or on its way to the API."""
        return not (self._inbox or self._in_flight or self._scheduler.queue.has_ready) and all(
            reflector.is_current for reflector in self._reflectors
        )

    # ---- inbox ----------------------------------------------------------------------------

    def _deliver(self, event: WatchEvent) -> None:
        self._put(lambda: self._scheduler.handle(event))

    def _put(self, item: _Item) -> None:
        self._inbox.append(item)
        self._wake.set()

    # ---- effects --------------------------------------------------------------------------

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._in_flight += 1
            if isinstance(effect, BindPod):
                self._spawn(self._bind(effect))
            elif isinstance(effect, PatchPodStatus):
                self._spawn(self._patch_status(effect))
            elif isinstance(effect, EmitEvent):
                self._spawn(self._emit(effect))
            else:
                self._in_flight -= 1
                self._no_extender(effect)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _finished(self, item: _Item | None = None) -> None:
        self._in_flight -= 1
        if item is not None:
            self._put(item)
        else:
            self._wake.set()

    async def _bind(self, effect: BindPod) -> None:
        try:
            outcome = await effect.run(self._cluster)
        except Exception as problem:  # noqa: BLE001 - nothing may lose a pod
            outcome = BindingOutcome(effect.pod.uid, Status.from_error(problem))
        self._finished(lambda: self._scheduler.binding_finished(outcome))

    async def _patch_status(self, effect: PatchPodStatus) -> None:
        """Tried again when the outcome is unknown or in conflict; a pod that is gone needs none."""
        delay = RETRY_SECONDS_MIN
        for _ in range(STATUS_PATCH_TRIES):
            try:
                await self._cluster.patch_pod_status(effect)
                break
            except NotFoundError:
                break
            except (ApiError, OutcomeUnknownError):
                await self._cluster.sleep(delay)
                delay *= 2
        self._finished()

    async def _emit(self, effect: EmitEvent) -> None:
        """Events are best effort: one that cannot be written is dropped."""
        with contextlib.suppress(ApiError, OutcomeUnknownError):
            await self._cluster.create_event(effect)
        self._finished()

    def _no_extender(self, effect: AskExtender) -> None:
        raise AssertionError(f"nobody performs {effect.verb} of extender {effect.extender}")


@final
class Reflector:
    """Keeps the engine's picture of one kind equal to the API's."""

    def __init__(self, cluster: Cluster, kind: str, deliver: Callable[[WatchEvent], None]) -> None:
        self._cluster = cluster
        self._kind = kind
        self._deliver = deliver
        self._known: dict[tuple[str, str], Any] = {}
        self.synced = asyncio.Event()
        self.is_current = False

    async def run(self) -> None:
        """List, watch, resume; for ever."""
        delay = RETRY_SECONDS_MIN
        version = ""
        while True:
            try:
                if not version:
                    version = await self._list()
                    delay = RETRY_SECONDS_MIN
                version = await self._watch(version)
            except GoneError:
                version = ""
            except (ApiError, OutcomeUnknownError):
                version = ""
                await self._cluster.sleep(delay)
                delay = min(delay * 2, RETRY_SECONDS_MAX)

    async def _list(self) -> str:
        self.is_current = False
        listing = await self._cluster.list(self._kind)
        self._reconcile(listing.objects)
        self.is_current = True
        self.synced.set()
        return listing.resource_version

    async def _watch(self, version: str) -> str:
        """Follow changes until the watch ends. Returns the version to resume from."""
        try:
            async for event in self._cluster.watch(self._kind, version):
                self._take(event)
                version = event.resource_version
        except WatchDroppedError:
            self.is_current = False
            await self._cluster.sleep(RETRY_SECONDS_MIN)
        return version

    def _take(self, event: WatchEvent) -> None:
        self.is_current = True
        key = _key(event.object)
        old = self._known.get(key)
        if event.type is EventType.DELETED:
            if self._known.pop(key, None) is not None:
                self._deliver(event)
            return
        self._replaced(old, event.object)
        self._known[key] = event.object
        self._deliver(event)

    def _replaced(self, old: Any, new: Any) -> None:
        """Another object under the same name: the one before was deleted unseen."""
        if old is not None and old.metadata.uid != new.metadata.uid:
            self._deliver(WatchEvent(EventType.DELETED, self._kind, old))

    def _reconcile(self, objects: Any) -> None:
        """Tell what changed between what is known and a fresh listing."""
        listed = {_key(found): found for found in objects}
        for key in [key for key in self._known if key not in listed]:
            old = self._known.pop(key)
            self._deliver(WatchEvent(EventType.DELETED, self._kind, old))
        for key, found in listed.items():
            old = self._known.get(key)
            if old is not None and _version(old) == _version(found):
                continue
            self._replaced(old, found)
            self._known[key] = found
            kind = EventType.ADDED if old is None else EventType.MODIFIED
            self._deliver(WatchEvent(kind, self._kind, found))


def _key(found: Any) -> tuple[str, str]:
    return (found.metadata.namespace or "", found.metadata.name)


def _version(found: Any) -> tuple[str | None, str | None]:
    return (found.metadata.uid, found.metadata.resource_version)
