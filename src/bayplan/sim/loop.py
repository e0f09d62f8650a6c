"""asyncio on a manual clock: an event loop that never waits.

As long as a callback or task can run, it runs, and time stands still. When none can run, the clock
jumps to the next timer. When there is no timer either, nothing can ever run again. That is a
deadlock, and it is an exception that names the waiting tasks, never a hang.

There are no threads, sockets or signals here. Methods that need them are not implemented, so that a
run is a function of its coroutine and its clock. While a call to the real world (`real_time`) is in
progress, time stands still; results are taken in the order of the calls. Callbacks run in the order
in which they became due, timers of one moment in the order in which they were set.

A switch to another task costs a dozen calls. So the task that pauses most often, the runner of the
scheduler, has `Turns`, and the task that feeds it has `settled_after_each`: both keep the order of
all callbacks and avoid the switch.

If a task fails and no other task awaits it, the run ends with its exception before time moves on.
"""

import asyncio
import concurrent.futures
import heapq
import math
import sys
from asyncio import Handle, Task, TimerHandle
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from contextvars import Context, copy_context
from functools import partial
from pathlib import Path
from types import FrameType, FunctionType, MethodType
from typing import Any, TypeVar, final
from weakref import WeakValueDictionary

from msgspec import Struct

from bayplan.clock import ManualClock

T = TypeVar("T")

#: Cancelled timers are removed when there are more than this many and they are the majority.
_SWEEP_FROM = 64


class DeadlockError(RuntimeError):
    """Tasks wait, and nothing is left that could wake one of them."""

    def __init__(self, now_seconds: float, waiting: Iterable[str]) -> None:
        self.waiting = tuple(waiting)
        listed = "".join(f"\n  {one}" for one in self.waiting)
        super().__init__(f"at {now_seconds:g} s nothing is left to happen, yet these wait:{listed}")


def run(coroutine: Coroutine[Any, Any, T], clock: ManualClock) -> T:
    """Run a coroutine to its end under virtual time and return its result.

    In a thread that runs another event loop, such as that of a notebook, the coroutine runs in a
    thread of its own, and the caller waits for it. Raises the exception of the coroutine, the
    exception of a task that no other task awaited, or DeadlockError. Tasks that are left at the end
    are cancelled.
    """
    loop = VirtualLoop(clock)
    outer = asyncio._get_running_loop()
    if outer is None or isinstance(outer, VirtualLoop):
        return loop.run(coroutine)
    with concurrent.futures.ThreadPoolExecutor(1, "virtual-time") as thread:
        return thread.submit(copy_context().run, loop.run, coroutine).result()


def settled() -> "asyncio.Future[None]":
    """What to await until nothing else can run at this moment: only a timer can bring more work.

    If several tasks wait for this, they continue one after the other.
    """
    return running_loop().until_idle()


def settled_after_each(work: Iterator[object]) -> "asyncio.Future[None]":
    """What to await until ``work`` ends: each of its steps begins when nothing else can run at this
    moment. The steps run without a switch of tasks."""
    return running_loop().feed(work)


def running_loop() -> "VirtualLoop":
    """The virtual loop in which the caller runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop), "this runs under virtual time only"
    return loop


@final
class _Callback(Struct, eq=False):
    """What asyncio uses of a Handle. It is made without a call of Python."""

    call: Callable[..., object]
    args: tuple[Any, ...]
    context: Context
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True

    def cancelled(self) -> bool:
        return self.is_cancelled


@final
class _Timers:
    """Timers by moment and, within one moment, by the order in which they were set."""

    def __init__(self) -> None:
        #: A heap of (when, number, timer).
        self.heap: list[tuple[float, int, TimerHandle]] = []
        self._number = 0
        self._cancelled_count = 0

    def add(self, timer: TimerHandle) -> None:
        self._number += 1
        heapq.heappush(self.heap, (timer.when(), self._number, timer))

    def one_was_cancelled(self) -> None:
        """A cancelled timer stays until it would be due, or until many timers are cancelled."""
        self._cancelled_count += 1
        if self._cancelled_count > _SWEEP_FROM and 2 * self._cancelled_count > len(self.heap):
            self.heap = [entry for entry in self.heap if not entry[2].cancelled()]
            heapq.heapify(self.heap)
            self._cancelled_count = 0

    def next_seconds(self) -> float | None:
        """The time of the next timer."""
        while self.heap and self.heap[0][2].cancelled():
            heapq.heappop(self.heap)
            self._cancelled_count -= 1
        return self.heap[0][0] if self.heap else None

    def take_due(self, now_seconds: float, ready: "deque[_Callback | TimerHandle]") -> None:
        """Make the timers of this moment ready."""
        while self.heap and self.heap[0][0] <= now_seconds:
            timer = heapq.heappop(self.heap)[2]
            if timer.cancelled():
                self._cancelled_count -= 1
            else:
                ready.append(timer)

    def __len__(self) -> int:
        return len(self.heap)


@final
class _Tasks:
    """Tasks that run, and tasks that failed without being awaited."""

    def __init__(self) -> None:
        #: Unfinished tasks in the order of their creation.
        self.unfinished: dict[Task[Any], None] = {}
        #: Tasks that failed and that `lost_failure` has not looked at.
        self.failed: list[Task[Any]] = []

    def begin(self, task: Task[Any]) -> None:
        self.unfinished[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: Task[Any]) -> None:
        del self.unfinished[task]
        if not task.cancelled() and task._exception is not None:
            self.failed.append(task)

    def lost_failure(self, main: Task[Any]) -> BaseException | None:
        """The first failure that no task has seen; ``main``'s failure is the run's own."""
        failed, self.failed = self.failed, []
        for task in failed:
            # asyncio's own mark: a task that awaits this task removes the mark.
            if task is not main and task._log_traceback:
                failure = task.exception()
                assert failure is not None
                failure.add_note(f"in task {task.get_name()}, which no task awaits")
                return failure
        return None

    def cancel(self) -> None:
        for task in list(self.unfinished):
            if not task.done():  # cancelling a task that failed would take away asyncio's mark
                task.cancel()

    def deadlock(self, now_seconds: float) -> DeadlockError:
        return DeadlockError(now_seconds, map(_described, self.unfinished))


@final
class _Generators:
    """Asynchronous generators that were begun, in order. Some of them are never run to their
    end."""

    def __init__(self) -> None:
        self._begun: WeakValueDictionary[int, AsyncGenerator[Any, Any]] = WeakValueDictionary()
        self._number = 0

    def begin(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._number += 1
        self._begun[self._number] = generator

    def left(self) -> list[AsyncGenerator[Any, Any]]:
        return list(self._begun.values())


@final
class _RealTimeCalls:
    """Calls to the real world, the oldest first."""

    def __init__(self) -> None:
        self.calls: deque[tuple[concurrent.futures.Future[Any], asyncio.Future[Any]]] = deque()

    async def answer(self, begun: "concurrent.futures.Future[T]") -> T:
        """The result of a call to the real world; no virtual time passes until then."""
        waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.calls.append((begun, waiter))
        return await waiter

    def take_answer(self) -> None:
        """Wait, in real time, for the oldest call."""
        begun, waiter = self.calls.popleft()
        if waiter.done():
            begun.cancel()
            return
        problem = begun.exception()
        if problem is None:
            waiter.set_result(begun.result())
        else:
            waiter.set_exception(problem)

    def give_up(self) -> None:
        """Cancel all calls that have not ended."""
        for begun, _ in self.calls:
            begun.cancel()


def _nothing() -> None: ...


#: Callbacks of these types are plain functions. The steps of tasks are of other types; they cannot
#: run inside the step of another task.
_PLAIN = frozenset((FunctionType, MethodType, partial))


@final
class Turns:
    """Lets one task pause without being suspended, as long as only plain functions run meanwhile.

    A pause inside the task has the order of a real one: what would run before the task goes on runs
    here. If the step of another task comes first, or a timer is due, the task must be suspended.
    Then it has to await `asyncio.sleep(0)`, and goes on in its place among the callbacks.
    """

    def __init__(self, loop: "VirtualLoop") -> None:
        self._loop = loop
        self._context = copy_context()
        #: Whether the task pauses until `wake`.
        self.is_waiting = False
        #: Where the task goes on among the callbacks; None: before all of them.
        self._place: _Callback | None = None

    def wake(self) -> None:
        """End a pause: the task goes on after the callbacks that are ready now."""
        self.is_waiting = False
        ready = self._loop.ready
        if ready:
            self._place = _Callback(_nothing, (), self._context)
            ready.append(self._place)

    def let_run(self, last: Callable[[], object] | None = None) -> bool:
        """Run what is ready now, and then ``last``, as `asyncio.sleep(0)` does. False: the task
        must be suspended."""
        loop = self._loop
        if not loop.ready and not (loop.timers.heap and loop.has_due_timer):
            if last is not None:
                last()
            return True
        if last is not None:
            loop.call_soon(last)
        self._place = _Callback(_nothing, (), self._context)
        loop.ready.append(self._place)
        return self.pause()

    def is_free(self) -> bool:
        """Whether the running callback is all that can run at this moment."""
        loop = self._loop
        return not (
            loop.ready
            or loop.idle
            or (loop.timers.heap and loop.has_due_timer)
            or loop.broken is not None
            or loop.tasks.failed
            or loop.real_time.calls
        )

    def put_first(self, call: Callable[[], None]) -> None:
        """Call ``call`` soon, before what is ready now."""
        self._loop.ready.appendleft(_Callback(call, (), self._context))

    def call_if_next(self, call: Callable[..., object], *args: Any) -> bool:
        """Call what would run next if it was ready. False: something else comes first."""
        loop = self._loop
        if loop.ready or (loop.timers.heap and loop.has_due_timer):
            return False
        call(*args)
        return True

    def pause(self, *, until_woken: bool = False) -> bool:
        """Run callbacks inside the running one, until the place of the task comes or the task is
        woken before all callbacks.

        False: the next callback is the step of a task, or there is no callback: the task must be
        suspended, or must wait to be woken. If there is a place, the next callback that is made
        takes it.
        """
        loop, ready = self._loop, self._loop.ready
        self.is_waiting = until_woken
        while True:
            if not loop.round_count:
                if loop.timers.heap and loop.has_due_timer:
                    loop.make_due_ready()
                loop.round_count = len(ready)
            place = self._place
            if place is None and not self.is_waiting:
                return True
            if (
                not ready
                and loop.idle
                and loop.idle[0][1] is not None
                and loop.broken is None
                and not loop.tasks.failed
                and not loop.real_time.calls
            ):
                # Nothing can run at this moment, and the next step of work is due.
                loop.serve(*loop.idle.popleft())
                continue
            handle = ready[0] if ready else None
            if handle is not None and handle is place:
                loop.round_count -= 1
                ready.popleft()
                self._place, self.is_waiting = None, False
                return True
            if (
                type(handle) is not _Callback
                or type(handle.call) not in _PLAIN
                or loop.broken is not None
            ):
                loop.next_handle, self._place = place, None
                self.is_waiting = False
                return False
            loop.round_count -= 1
            ready.popleft()
            if handle.is_cancelled:
                continue
            try:
                handle.context.run(handle.call, *handle.args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as problem:  # noqa: BLE001 - it ends the run
                loop.call_exception_handler({"exception": problem})


@final
class VirtualLoop(asyncio.AbstractEventLoop):
    """The part of asyncio's event loop that needs nothing from outside."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        #: Callbacks that run at this moment, in order.
        self.ready: deque[_Callback | TimerHandle] = deque()
        #: How many of them are left of this round. Timers become ready between two rounds.
        self.round_count = 0
        #: The handle that the next callback takes over with its place; None: it comes last.
        self.next_handle: _Callback | None = None
        #: For the one task that pauses most often.
        self.turns = Turns(self)
        self.timers = _Timers()
        #: Who waits until nothing else can run: a task, or work to be done step by step.
        self.idle: deque[tuple[asyncio.Future[None], Iterator[object] | None]] = deque()
        #: Calls to the real world.
        self.real_time = _RealTimeCalls()
        self.tasks = _Tasks()
        self._generators = _Generators()
        self.broken: BaseException | None = None

    # ---- the interface of asyncio -----------------------------------------------------------

    def time(self) -> float:
        return self._clock.now_seconds

    def is_running(self) -> bool:
        return asyncio._get_running_loop() is self

    def is_closed(self) -> bool:
        return False

    #: asyncio calls this for each future and each task; `bool()` is False without a Python call.
    get_debug = bool  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        if context is None:
            context = copy_context()
        handle = self.next_handle
        if handle is None:
            handle = _Callback(callback, args, context)
            self.ready.append(handle)
        else:
            handle.call, handle.args, handle.context = callback, args, context
            self.next_handle = None
        return handle  # pyright: ignore[reportReturnType] - see _Callback

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> TimerHandle:
        return self.call_at(self._clock.now_seconds + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> TimerHandle:
        """A time that has passed means now; an infinite time means never."""
        assert not math.isnan(when), "a timer needs a moment"
        timer = TimerHandle(when, callback, args, self, context)
        if when < math.inf:
            self.timers.add(timer)
        return timer

    def _timer_handle_cancelled(self, handle: TimerHandle) -> None:
        if handle.when() < math.inf:
            self.timers.one_was_cancelled()

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Any,
        *,
        name: str | None = None,
        context: Context | None = None,
        **options: Any,
    ) -> Task[Any]:
        task: Task[Any] = Task(coro, loop=self, name=name, context=context, **options)
        self.tasks.begin(task)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """asyncio reports exceptions of callbacks here; the first one ends the run."""
        if self.broken is None:
            self.broken = context.get("exception") or RuntimeError(context.get("message"))

    # ---- running ----------------------------------------------------------------------------

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """See `bayplan.sim.loop.run`."""
        if asyncio._get_running_loop() is not None:
            coroutine.close()
            raise RuntimeError("virtual time cannot be started from inside a running event loop")
        hooks = sys.get_asyncgen_hooks()
        asyncio._set_running_loop(self)
        sys.set_asyncgen_hooks(firstiter=self._generators.begin, finalizer=self._close_generator)
        try:
            main = self.create_task(coroutine, name="main")
            try:
                self._run_until(main)
            finally:
                self._end_tasks()
            self._raise_lost_failure(main)
            return main.result()
        finally:
            sys.set_asyncgen_hooks(*hooks)
            asyncio._set_running_loop(None)

    def until_idle(self) -> "asyncio.Future[None]":
        """See `settled`."""
        return self.feed(None)

    def feed(self, work: Iterator[object] | None) -> "asyncio.Future[None]":
        """See `settled_after_each`. None: no work."""
        waiter: asyncio.Future[None] = asyncio.Future(loop=self)
        self.idle.append((waiter, work))
        return waiter

    def next_timer_seconds(self) -> float | None:
        """The time of the next timer: the next event once everything has settled."""
        return self.timers.next_seconds()

    def _run_until(self, main: Task[Any]) -> None:
        timers, ready = self.timers, self.ready
        while not main.done():
            if timers.heap and timers.heap[0][0] <= self._clock.now_seconds:
                timers.take_due(self._clock.now_seconds, ready)
            if ready and self.broken is None:
                self._run_ready()
                continue
            if self.broken is not None or self.tasks.failed:
                self._raise_lost_failure(main)
            if self.real_time.calls:
                self.real_time.take_answer()
            elif self.idle:
                self.serve(*self.idle.popleft())
            elif (due := self.timers.next_seconds()) is not None:
                self._clock.advance_to(due)
            else:
                raise self.tasks.deadlock(self._clock.now_seconds)

    def serve(self, waiter: "asyncio.Future[None]", work: Iterator[object] | None) -> None:
        """Nothing else can run: do the next step of the work, or end the wait."""
        if waiter.done():
            return
        try:
            if work is None:
                waiter.set_result(None)
                return
            for _ in work:
                self.idle.append((waiter, work))
                return
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as problem:  # noqa: BLE001 - the waiting task gets it
            waiter.set_exception(problem)
        else:
            waiter.set_result(None)

    def _run_ready(self) -> None:
        """Run what is ready now. Callbacks that become ready meanwhile run in the next round."""
        ready = self.ready
        self.round_count = len(ready)
        while self.round_count:
            self.round_count -= 1
            handle = ready.popleft()
            if type(handle) is not _Callback:
                if not handle.cancelled():
                    handle._run()
                continue
            if handle.is_cancelled:
                continue
            try:
                handle.context.run(handle.call, *handle.args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as problem:  # noqa: BLE001 - it ends the run
                self.call_exception_handler({"exception": problem})

    # ---- pauses inside a task ---------------------------------------------------------------

    @property
    def has_due_timer(self) -> bool:
        heap = self.timers.heap
        return bool(heap) and heap[0][0] <= self._clock.now_seconds

    def make_due_ready(self) -> None:
        """Make the timers of this moment ready, between two rounds."""
        self.timers.take_due(self._clock.now_seconds, self.ready)

    def _raise_lost_failure(self, main: Task[Any]) -> None:
        failure = self.broken or self.tasks.lost_failure(main)
        if failure is not None:
            raise failure

    def _end_tasks(self) -> None:
        """Cancel the tasks while time stands still. A task that waits after that is a bug."""
        self.tasks.cancel()
        self.real_time.give_up()
        while self.ready:
            self._run_ready()
        for generator in self._generators.left():
            self._close_generator(generator)
        while self.ready:
            self._run_ready()
        if self.tasks.unfinished:
            raise self.tasks.deadlock(self._clock.now_seconds)

    def _close_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        self.create_task(generator.aclose())


def _described(task: Task[Any]) -> str:
    """`main: Simulation.run, driver.py:71`: a task, and the place of its innermost await."""
    coroutine: Any = task.get_coro()
    frame: FrameType | None = None
    inner = coroutine
    while inner is not None:
        frame = getattr(inner, "cr_frame", None) or frame
        inner = getattr(inner, "cr_await", None)
    name = getattr(coroutine, "__qualname__", type(coroutine).__name__)
    if frame is None:
        return f"{task.get_name()}: {name}"
    return f"{task.get_name()}: {name}, {Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
