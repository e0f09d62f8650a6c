"""The runner connects the scheduler to a cluster, live or embedded.

One reflector per kind lists the objects, watches them, resumes after a dropped connection, lists
again after 410 Gone, and reports what changed in between. All events go into one inbox. The main
loop takes items out of the inbox, lets the scheduler decide, and performs effects as tasks; the
result of a task returns through the inbox. Only this loop calls the engine.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol, cast, final

from bayplan.api.objects import NODE, POD, ApiObject, Node, ObjectMeta, Pod, Unstructured
from bayplan.engine.binding import BindingCycle, BindingOutcome
from bayplan.engine.cache_check import differences
from bayplan.engine.extenders.results import not_connected, raised
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.status import Status
from bayplan.ports import (
    ApiError,
    Ask,
    AskExtender,
    BindPod,
    Cluster,
    ClusterReader,
    Effect,
    EmitEvent,
    EventType,
    ExtenderAnswer,
    ExtenderVerb,
    GoneError,
    ImmediateCluster,
    OutcomeUnknownError,
    PatchPodGroupStatus,
    PatchPodStatus,
    Perform,
    PushingWatch,
    WatchDroppedError,
    WatchEvent,
)
from bayplan.status_patches import (
    RETRY_SECONDS_MAX,
    RETRY_SECONDS_MIN,
    DroppedPatch,
    GroupPatches,
    PodPatches,
)

WAIT_SECONDS_MIN = 0.001
#: Attempts at equal pods that are made at once, and for how long, so that events do not wait.
RUN_PODS_MAX, RUN_SECONDS_MAX = 64, 0.002
#: How long a change may take to arrive through a watch.
CHECK_AGAIN_SECONDS = 2.0

_Item = Callable[[], None]
#: What a cluster in memory performs during the call.
_ImmediateWrite = EmitEvent | PatchPodStatus | BindPod

#: Verbs that upstream counts in scheduler_goroutines → the name of the operation there.
_OPERATIONS = {ExtenderVerb.PRIORITIZE: "prioritizing_extender"}


def _nothing() -> None: ...


def _drop(patch: PatchPodStatus, problem: Exception) -> None: ...


def _end(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


class _NextRound:
    """What `asyncio.sleep(0)` does: everything else that is ready runs first."""

    def __await__(self) -> Generator[None]:
        return iter((None,))  # pyright: ignore[reportReturnType] - asyncio only iterates


_NEXT_ROUND = _NextRound()


class Turns(Protocol):
    """An event loop that runs callbacks inside a task that pauses; see bayplan.sim.loop.Turns."""

    is_waiting: bool

    def wake(self) -> None: ...
    def pause(self, *, until_woken: bool = False) -> bool: ...
    def let_run(self, last: Callable[[], object] | None = None) -> bool: ...
    def call_if_next(self, call: Callable[..., object], *args: Any) -> bool: ...
    def is_free(self) -> bool: ...
    def put_first(self, call: Callable[[], None]) -> None: ...


@final
class Runner:
    """Runs one scheduler against one cluster until cancelled."""

    def __init__(
        self,
        scheduler: Scheduler,
        cluster: Cluster,
        extenders: Mapping[str, Ask] | None = None,
        *,
        on_synced: Callable[[], None] = _nothing,
        dropped_patch: DroppedPatch = _drop,
        turns: Turns | None = None,
    ) -> None:
        """``extenders``: name → how to call each extender that is not a Python class.

        ``on_synced``: called when every kind has been listed. ``dropped_patch``: called with each
        status patch of a pod that is given up. ``turns``: of the event loop, if it has them: then
        the runner is seldom suspended.
        """
        self._scheduler = scheduler
        self._cluster = cluster
        self._asking = _ExtenderCaller(scheduler, {**scheduler.asks(cluster), **(extenders or {})})
        self._on_synced = on_synced
        self._patches = PodPatches(cluster, dropped_patch)
        self._group_patches = GroupPatches(cluster)
        self._inbox: deque[WatchEvent | _Item] = deque()
        #: Answers of extenders, with the token of the question. They are handled after the inbox,
        #: so that an attempt continues with everything that was received.
        self._answers: deque[tuple[int, ExtenderAnswer]] = deque()
        self._is_woken = False
        self._turns = turns
        #: With turns: the writes to an immediate cluster that a turn leaves, as the last callback.
        self._last: Callable[[], object] | None = None
        #: Whether a status patch is among the effects of the last turn that had some.
        self._has_patched = False
        #: What `run` waits for while nothing is to be done.
        self._waiter: asyncio.Future[None] | None = None
        self._immediate = cluster if isinstance(cluster, ImmediateCluster) else None
        #: A cluster that answers at once reports each binding before the next attempt.
        self._schedule: Callable[[], int] = (
            partial(scheduler.schedule_run, RUN_PODS_MAX, RUN_SECONDS_MAX)
            if self._immediate is None
            else scheduler.schedule_one
        )
        self._performers: Mapping[type, Callable[[Any], None]] = {
            BindPod: self._perform_binding,
            PatchPodStatus: self._patch_status,
            PatchPodGroupStatus: self._patch_group_status,
            EmitEvent: self._perform_event,
            Perform: self._perform,
            AskExtender: self._perform_question,
        }
        self._tasks: set[asyncio.Task[None]] = set()
        #: The tasks that perform an effect.
        self._performing: set[asyncio.Task[None]] = set()
        #: Writes to an immediate cluster that the event loop is about to make.
        self._immediate_count = 0
        self._is_stopped = False
        self._binding_count = 0
        work = scheduler.metrics.goroutines
        work.show("binding", lambda: self._binding_count)
        if extenders:
            work.add(_OPERATIONS[ExtenderVerb.PRIORITIZE], 0)
        self._is_paused = False
        #: Follows the pods.
        self._pods: Reflector | None = None
        #: Whether an attempt was made whose effects the next turn performs.
        self._has_attempted = False
        #: Kinds that were passed to `follow`.
        self._late_kinds: list[str] = []
        #: Whether every kind has been listed.
        self.is_synced = False
        self._failure: BaseException | None = None

    async def run(self) -> None:
        """Run until cancelled. A cancellation also cancels every task of the runner."""
        self._scheduler.on_wake(self._wake)
        try:
            # Pods come last, so that the first cycle sees all nodes, groups and other objects.
            for kind in (NODE, *self._scheduler.kinds, *self._scheduler.group_kinds, POD):
                await self._reflect(kind)
            self.is_synced = True
            for kind in self._late_kinds:
                self._begin_to_follow(kind)
            self._on_synced()
            turns, ready = self._turns, self._scheduler.queue.ready
            while True:
                if self._turn():
                    last, self._last = self._last, None
                    if turns is None or not turns.let_run(last):
                        await _NEXT_ROUND
                    elif (
                        last is not None
                        and not self._has_patched
                        and not any(ready)
                        and not turns.let_run()
                    ):
                        # No attempt comes before the watch reports the bindings. A pod that failed
                        # waits for no report: what is in the inbox may come first.
                        await _NEXT_ROUND
                elif self._is_woken or (turns is not None and turns.pause(until_woken=True)):
                    pass
                elif self._is_woken:  # meanwhile
                    await _NEXT_ROUND
                else:
                    # Not a coroutine of its own: each one on the way costs a call per wake.
                    waiter, timer = self._set_waiter()
                    try:
                        await waiter
                    finally:
                        self._waiter = None
                        if timer is not None:
                            timer.cancel()
                if self._failure is not None:
                    raise self._failure
        finally:
            await self._stop()

    def follow(self, kind: str) -> None:
        """Follow a kind that the API server did not offer at the start, without waiting for it."""
        self._late_kinds.append(kind)
        if self.is_synced:
            self._begin_to_follow(kind)

    def pause(self) -> None:
        """Start no further attempt. Work in progress and watches continue."""
        self._is_paused = True

    def resume(self) -> None:
        """Start attempts again."""
        self._is_paused = False
        self._wake()

    async def drained(self) -> None:
        """Wait until all work in progress has ended. Call `pause` first. Before every kind is
        listed there is none, and nothing is taken out of the inbox."""
        while self.is_synced and (
            self._performing or self._inbox or self._answers or self._immediate_count
        ):
            if self._performing:
                await asyncio.wait(self._performing)
            else:
                await asyncio.sleep(0)

    def arrive(self, steps: Iterator[object]) -> bool:
        """Take steps that create one pod each, as long as the pods are placed and bound one after
        another and nothing else can happen in between. The order of all changes, attempts and
        records is that of turns. Returns whether a step was taken; False: the runner is busy.

        What the last pod leaves is done in a turn. No change may precede a step's pod.
        """
        turns, pods, cluster = self._turns, self._pods, self._immediate
        is_waiting = self._waiter is not None or (turns is not None and turns.is_waiting)
        if not is_waiting or self._is_woken or self._is_paused or self._is_stopped:
            return False
        if self._patches.requests:  # a pod that is tried meanwhile may have an unsent patch
            return False
        if turns is None or pods is None or cluster is None or not pods.hold():
            return False
        source = _Arrivals(steps, turns, pods)
        try:
            self._has_attempted = self._scheduler.place_arrivals(source, cluster)
        finally:
            push = pods.release()
            if push is not None:
                if any(self._scheduler.queue.ready):
                    # As in turns, an attempt comes before the changes that a binding causes.
                    self._wake()
                turns.put_first(push)
            if source.count:
                self._wake()
        return source.count > 0

    def _begin_to_follow(self, kind: str) -> "Reflector":
        reflector = Reflector(self._cluster, kind, self._deliver, self._scheduler.bug)
        if kind == POD:
            self._pods = reflector
        self._spawn(reflector.run())
        return reflector

    async def _reflect(self, kind: str) -> None:
        """Start to follow a kind. Returns when the kind has been listed."""
        reflector = self._begin_to_follow(kind)
        while not reflector.is_synced:
            await self._next_item()

    def _turn(self) -> bool:
        """One turn of the main loop. Returns whether the next turn need not wait."""
        self._is_woken = False
        inbox, scheduler = self._inbox, self._scheduler
        while inbox:
            item = inbox.popleft()
            if isinstance(item, WatchEvent):
                scheduler.handle(item)
            else:
                item()
        while self._answers:
            scheduler.extender_answered(*self._answers.popleft())
        if self._has_attempted:
            self._has_attempted, is_busy = False, True
        else:
            scheduler.run_timers()
            is_busy = not self._is_paused and self._schedule() > 0
        effects, is_busy = scheduler.take_effects(), is_busy or bool(inbox)
        if effects:
            self._perform_all(effects, is_busy=is_busy)
        return is_busy

    def _set_waiter(self) -> "tuple[asyncio.Future[None], asyncio.TimerHandle | None]":
        """Make a waiter for the next item or the scheduler's next deadline, and its timer."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = asyncio.Future(loop=loop)
        self._waiter = waiter
        deadline = self._scheduler.next_deadline_seconds()
        if deadline is None:
            return waiter, None
        # Timers that were due have just run. A timer that is still due must not cause a busy loop.
        delay = max(deadline - self._scheduler.now_seconds(), WAIT_SECONDS_MIN)
        return waiter, loop.call_later(delay, _end, waiter)

    async def _next_item(self) -> None:
        """Wait for the next item. Raises the exception of a task of the runner that failed."""
        if not self._is_woken:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        self._is_woken = False
        if self._failure is not None:
            raise self._failure

    # ---- inbox ----------------------------------------------------------------------------

    def _deliver(self, items: Iterable[WatchEvent | _Item]) -> None:
        self._inbox.extend(items)
        self._is_woken = True
        # Not `_wake`: this is called twice per pod.
        turns = self._turns
        if self._waiter is not None:
            self._wake()
        elif turns is not None and turns.is_waiting:
            turns.wake()

    def _wake(self) -> None:
        self._is_woken = True
        if self._waiter is not None:
            if not self._waiter.done():
                self._waiter.set_result(None)
        elif self._turns is not None and self._turns.is_waiting:
            self._turns.wake()

    # ---- tasks ----------------------------------------------------------------------------

    def _start(self, work: Coroutine[Any, Any, None]) -> "_TaskWork":
        """ports.StartWork."""
        return _TaskWork(self._spawn(work))

    def _spawn(
        self, work: Coroutine[Any, Any, None], *, performs: bool = False
    ) -> asyncio.Task[None]:
        """``performs``: the work performs an effect, so it ends by itself."""
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        # A task that is cancelled before its first step leaves its coroutine unawaited.
        task.add_done_callback(lambda _: work.close())
        if performs:
            self._performing.add(task)
            task.add_done_callback(self._performing.discard)
        return task

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Report an unexpected exception as a bug, so that a live scheduler continues."""
        try:
            await work
        except Exception as problem:  # noqa: BLE001 - the scheduler decides how far it reaches
            self._scheduler.bug(work.__qualname__, problem)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A task that fails all the same ends the runner."""
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()
            self._wake()

    async def _stop(self) -> None:
        self._is_stopped = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ---- effects --------------------------------------------------------------------------

    def _perform(self, effect: Perform) -> None:
        self._spawn(effect.run(self._cluster), performs=True)

    def _perform_question(self, effect: AskExtender) -> None:
        self._spawn(self._ask(effect), performs=True)

    def _perform_all(self, effects: Iterable[Effect], *, is_busy: bool) -> None:
        """Perform effects in order. Writes to an immediate cluster that follow one another are one
        callback. ``is_busy``: the next turn need not wait."""
        writes: list[_ImmediateWrite] = []
        turns, patches, has_binding = self._turns, self._patches, False
        self._has_patched = False
        for effect in effects:
            if self._immediate is not None:
                if type(effect) is EmitEvent:
                    writes.append(effect)
                    continue
                if type(effect) is PatchPodStatus:
                    self._has_patched = True
                    if patches.add(effect):
                        writes.append(effect)
                    continue
                if (
                    type(effect) is BindPod
                    # The binding is one write, and nothing must be written before it.
                    and isinstance(effect.run, BindingCycle)
                    and effect.run.is_one_request
                    and not (patches.requests and patches.is_pending(effect.pod.uid))
                ):
                    has_binding = True
                    writes.append(effect)
                    continue
            if writes:
                self._write_soon(writes)
                writes = []
            self._performers[type(effect)](effect)
        if not writes:
            return
        if is_busy and turns is not None:
            self._immediate_count += 1
            self._last = partial(self._write_last, writes)
        elif has_binding or turns is None or not turns.call_if_next(self._write_all, writes):
            self._write_soon(writes)

    def _perform_event(self, effect: EmitEvent) -> None:
        self._spawn(self._emit(effect), performs=True)

    def _perform_binding(self, effect: BindPod) -> None:
        self._spawn(self._bind(effect), performs=True)

    def _write_soon(self, writes: "list[_ImmediateWrite]") -> None:
        self._immediate_count += 1
        asyncio.get_running_loop().call_soon(self._write, writes)

    def _write(self, writes: "list[_ImmediateWrite]") -> None:
        """Write events, status patches and bindings to a cluster that answers without waiting."""
        self._immediate_count -= 1
        outcomes = self._write_all(writes)
        if outcomes:
            self._deliver(
                [partial(self._scheduler.binding_finished, outcome) for outcome in outcomes]
            )

    def _write_last(self, writes: "list[_ImmediateWrite]") -> None:
        """As `_write`, right before a turn: what would come first in the inbox is handled now."""
        self._immediate_count -= 1
        inbox, finished = self._inbox, self._scheduler.binding_finished
        for outcome in self._write_all(writes):
            if inbox:
                inbox.append(partial(finished, outcome))
            else:
                finished(outcome)

    def _write_all(self, writes: "Iterable[_ImmediateWrite]") -> list[BindingOutcome]:
        """Returns the outcomes of the bindings that were made."""
        cluster, outcomes = self._immediate, list[BindingOutcome]()
        assert cluster is not None
        for effect in writes:
            if self._is_stopped:
                break
            if isinstance(effect, EmitEvent):
                try:
                    cluster.create_event_now(effect)
                except ApiError:
                    continue  # events are best effort, as in `_emit`
                continue
            if isinstance(effect, PatchPodStatus):
                if not self._patches.write_now(effect.uid, cluster):
                    self._spawn(self._patches.write(effect.uid), performs=True)
                continue
            run = effect.run
            assert isinstance(run, BindingCycle)
            outcome = run.run_now(cluster)
            if outcome is None:
                self._spawn(self._bind(effect), performs=True)
            else:
                outcomes.append(outcome)
        return outcomes

    async def _bind(self, effect: BindPod) -> None:
        uid = effect.pod.uid
        self._binding_count += 1
        try:
            await self._patches.settle(uid)
            outcome = await effect.run(self._cluster, self._start, self._asking.ask)
        except Exception as problem:  # noqa: BLE001 - a binding cycle does not raise: a bug of ours
            self._scheduler.bug(effect.pod.key, problem)
            outcome = BindingOutcome(uid, Status.from_error(problem))
        finally:
            self._binding_count -= 1
        self._deliver((partial(self._scheduler.binding_finished, outcome),))

    def _patch_status(self, effect: PatchPodStatus) -> None:
        if self._patches.add(effect):
            self._spawn(self._patches.write(effect.uid), performs=True)

    def _patch_group_status(self, effect: PatchPodGroupStatus) -> None:
        if self._group_patches.add(effect):
            self._spawn(self._group_patches.write(effect), performs=True)

    async def _emit(self, effect: EmitEvent) -> None:
        """Events are best effort: an event that cannot be written is dropped."""
        with contextlib.suppress(ApiError, OutcomeUnknownError):
            await self._cluster.create_event(effect)

    async def _ask(self, effect: AskExtender) -> None:
        answer = await self._asking.ask(effect)
        self._answers.append((effect.token, answer))
        self._wake()


@final
class _Arrivals:
    """ports.PodSource: each step creates a pod, and nothing else can happen before the next one."""

    def __init__(self, steps: Iterator[object], turns: Turns, pods: "Reflector") -> None:
        self._steps = steps
        self._turns = turns
        self._pods = pods
        #: How many steps were taken.
        self.count = 0

    def arrival(self) -> WatchEvent | None:
        if not self._turns.is_free():
            return None
        for _ in self._steps:
            self.count += 1
            # As `change`, without a call for each pod.
            return self._pods.pull() if self._turns.is_free() else None
        return None

    def change(self) -> WatchEvent | None:
        return self._pods.pull() if self._turns.is_free() else None


@final
class _TaskWork:
    """ports.Work as a task."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def cancel(self) -> None:
        self._task.cancel()

    async def wait(self) -> None:
        # asyncio.wait, because `await task` would pass the task's cancellation to the caller.
        await asyncio.wait([self._task])


@final
class _ExtenderCaller:
    """Calls extenders and measures the duration of each call."""

    def __init__(self, scheduler: Scheduler, asks: Mapping[str, Ask]) -> None:
        self._scheduler = scheduler
        self._asks = dict(asks)

    async def ask(self, effect: AskExtender) -> ExtenderAnswer:
        """Always returns an answer: without one the pod's attempt would never end."""
        ask, metrics = self._asks.get(effect.extender), self._scheduler.metrics
        if ask is None:
            return ExtenderAnswer(error=not_connected(effect.extender))
        start = self._scheduler.now_seconds()
        with metrics.working_on(_OPERATIONS.get(effect.verb)):
            try:
                answer = await ask(effect)
            except GeneratorExit:
                raise
            except BaseException as problem:  # noqa: BLE001 - whatever an extender's client raises
                answer = ExtenderAnswer(error=raised(effect.extender, problem))
        seconds, result = self._scheduler.now_seconds() - start, "error" if answer.error else "ok"
        metrics.extender_duration.observe(seconds, effect.extender, effect.verb, result)
        return answer


async def check_cache(scheduler: Scheduler, cluster: Cluster) -> list[str]:
    """Differences between the scheduler's cache and a fresh list of the API, as sentences.

    Differences that disappear within `CHECK_AGAIN_SECONDS` are changes still under way and are not
    returned. Raises ApiError.
    """
    differing = await _differences(scheduler, cluster)
    if differing:
        await cluster.sleep(CHECK_AGAIN_SECONDS)
        differing = sorted(set(differing) & set(await _differences(scheduler, cluster)))
    return differing


async def _differences(scheduler: Scheduler, cluster: Cluster) -> list[str]:
    nodes, pods = await cluster.list(NODE), await cluster.list(POD)
    return differences(scheduler, cast(list[Node], nodes.objects), cast(list[Pod], pods.objects))


@final
class Reflector:
    """Delivers all objects of one kind, and their changes, to the engine."""

    def __init__(
        self,
        cluster: ClusterReader,
        kind: str,
        deliver: Callable[[Iterable[WatchEvent]], None],
        failed: Callable[[str, Exception], None],
    ) -> None:
        """``failed``: called with an exception that is not the API server's. Either ``failed``
        raises the exception, or the reflector lists again."""
        self._cluster = cluster
        self._kind = kind
        self._deliver = deliver
        self._failed = failed
        #: Metadata of the objects that were delivered to the engine.
        self._delivered: dict[tuple[str, str], ObjectMeta] = {}
        self._version = ""
        self._delay = RETRY_SECONDS_MIN
        #: Whether the present watch, or the last one, has delivered something.
        self._has_heard = False
        #: The present watch, if it pushes changes.
        self._pushing: PushingWatch | None = None
        #: Whether the kind has been listed.
        self.is_synced = False

    async def run(self) -> None:
        """List, watch and resume until cancelled. Delays double while nothing is heard: a server
        may end each watch at once, or forget each version."""
        while True:
            self._has_heard, is_failed = False, False
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except GoneError:
                self._version = ""
            except WatchDroppedError:
                pass
            except (ApiError, OutcomeUnknownError):
                is_failed = True
            except Exception as problem:  # noqa: BLE001 - one unexpected object stops no reflector
                self._failed(self._kind, problem)
                self._version, is_failed = "", True
            if self._has_heard:
                self._delay = RETRY_SECONDS_MIN
            if is_failed or not self._has_heard:
                self._delay = min(self._delay * 2, RETRY_SECONDS_MAX)
            await self._cluster.sleep(self._delay)

    async def _list(self) -> None:
        listing = await self._cluster.list(self._kind)
        self._take(self._changes(listing.objects))
        self._version = listing.resource_version
        self.is_synced = True

    async def _watch(self) -> None:
        """Follow changes until the watch ends."""
        watch = self._cluster.watch(self._kind, self._version)
        if isinstance(watch, PushingWatch):
            self._pushing = watch
            try:
                await watch.push(self._take)
            finally:
                self._pushing = None
            return
        async for event in watch:
            self._take((event,))

    def _take(self, events: Iterable[WatchEvent]) -> None:
        """Deliver the changes that a watch or a fresh listing reports, together."""
        if self._version:  # from a watch
            self._has_heard = True
        changes: list[WatchEvent] = []
        try:
            self._follow(events, changes)
        finally:
            self._deliver(changes)

    def _follow(self, events: Iterable[WatchEvent], changes: list[WatchEvent]) -> None:
        """Add what the events change of what was delivered."""
        delivered = self._delivered
        for event in events:
            if event.type is _DELETED:
                if delivered.pop(_key(event.object.metadata), None) is not None:
                    changes.append(event)
            elif event.type is not _BOOKMARK:
                meta = event.object.metadata
                key = (meta.namespace or "", meta.name)
                before = delivered.get(key)
                if before is not None and before.uid != meta.uid:
                    # The deletion of the earlier object of this name was missed.
                    changes.append(self._deletion(before))
                delivered[key] = meta
                changes.append(event)
            self._version = event.resource_version

    def hold(self) -> bool:
        """From now on, changes are pulled. False: the watch does not push, or is about to."""
        return self._pushing is not None and self._pushing.hold()

    def pull(self) -> WatchEvent | None:
        """The next change, which is not delivered then. None: there is none, or there are others,
        which are delivered."""
        assert self._pushing is not None, "the watch is held"
        event = self._pushing.pull()
        if event is None:
            return None
        if event.type is _ADDED or event.type is _MODIFIED:
            # As `_follow`, without a call for each change.
            meta = event.object.metadata
            key = (meta.namespace or "", meta.name)
            if key not in self._delivered or self._delivered[key].uid == meta.uid:
                self._delivered[key] = meta
                self._version = event.resource_version
                return event
        changes: list[WatchEvent] = []
        self._follow((event,), changes)
        if len(changes) == 1:
            return changes[0]
        self._deliver(changes)
        return None

    def release(self) -> Callable[[], None] | None:
        """Changes are delivered again. Returns what delivers those that were not pulled; None: all
        were pulled."""
        return None if self._pushing is None else self._pushing.release()

    def _changes(self, objects: Iterable[ApiObject]) -> list[WatchEvent]:
        """What changed until a fresh listing."""
        listed = {_key(item.metadata): item for item in objects}
        changes = [
            self._deletion(meta) for key, meta in self._delivered.items() if key not in listed
        ]
        for key, item in listed.items():
            before, version = self._delivered.get(key), item.metadata.resource_version or ""
            if before is None or _version(before) != _version(item.metadata):
                kind = EventType.ADDED if before is None else EventType.MODIFIED
                changes.append(WatchEvent(kind, self._kind, item, version))
        return changes

    def _deletion(self, meta: ObjectMeta) -> WatchEvent:
        return WatchEvent(EventType.DELETED, self._kind, Unstructured(metadata=meta))


#: Access to a member of an enumeration costs more than a name of the module.
_ADDED, _MODIFIED = EventType.ADDED, EventType.MODIFIED
_DELETED, _BOOKMARK = EventType.DELETED, EventType.BOOKMARK


def _key(meta: ObjectMeta) -> tuple[str, str]:
    return (meta.namespace or "", meta.name)


def _version(meta: ObjectMeta) -> tuple[str | None, str | None]:
    return (meta.uid, meta.resource_version)
