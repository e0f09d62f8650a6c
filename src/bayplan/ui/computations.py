"""Computations for the page that take longer than a request.

The first request for an answer starts its computation, and the page asks again until the answer is
there. Answers are cached by key. Few computations wait at a time: a new one replaces the oldest one
that has not started. A computation calls `Deadline.check` at each step, which ends a computation
that takes too long and all computations when the page is closed.

One worker computes the short answers, and another one the long answers. The two take turns, because
engines that run in two threads at the same moment may influence each other. A long computation lets
the short ones go first at each of its steps. So nobody who wants a short answer waits for a long
answer that somebody else wants.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from typing import Any, NamedTuple, final

from bayplan.answers.document import Answer
from bayplan.clock import wall_seconds
from bayplan.ports import RunAborted
from bayplan.ui.answers import Computation

COMPUTING, READY, FAILED = "computing", "ready", "failed"
#: The number of answers that are cached, and of computations that wait.
_CACHED_MAX = 32
_WAITING_MAX = 4
#: The most seconds of one computation.
SECONDS_MAX = 120.0


class ComputationState(NamedTuple):
    """The present state of an answer."""

    #: The phase: computing, ready, failed.
    phase: str
    value: Any = None
    #: Why it failed.
    problem: str = ""

    def answer(self) -> Computation[Any]:
        """The whole answer, for the page."""
        return Computation(phase=self.phase, problem=self.problem, value=self.value)

    def part(self, offset: int, limit: int) -> Computation[Any]:
        """The answer with a part of its list. No other list in it is longer than ``limit``."""
        if not isinstance(self.value, Answer):
            return self.answer()
        value, total = self.value.page(offset, limit)
        return Computation(phase=self.phase, value=value, total=total, offset=min(offset, total))


@final
class EngineLock:
    """Lets one thread at a time use an engine. Threads with short computations go first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_taken = False
        self._short_count = 0

    @contextmanager
    def short(self) -> Generator[None]:
        """Hold the engine for a short computation."""
        with self._changed:
            self._short_count += 1
            self._changed.wait_for(lambda: not self._is_taken)
            self._is_taken = True
        try:
            yield
        finally:
            with self._changed:
                self._short_count -= 1
                self._is_taken = False
                self._changed.notify_all()

    @contextmanager
    def long(self) -> Generator[None]:
        """Hold the engine for a long computation, which calls `give_way` at each step."""
        self._take()
        try:
            yield
        finally:
            self._give_up()

    def give_way(self) -> None:
        """Let the short computations that wait go first."""
        if self._short_count:
            self._give_up()
            self._take()

    def _take(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_taken and not self._short_count)
            self._is_taken = True

    def _give_up(self) -> None:
        with self._changed:
            self._is_taken = False
            self._changed.notify_all()


#: For all engines that work for a page in this process.
ENGINE_LOCK = EngineLock()


@final
class Deadline:
    """The end of one computation."""

    def __init__(
        self, is_stopped: Callable[[], bool], give_way: Callable[[], None] = lambda: None
    ) -> None:
        """``give_way``: the function that is called at each step but the last."""
        self._is_stopped = is_stopped
        self._give_way = give_way
        self._end_seconds = wall_seconds() + SECONDS_MAX

    def check(self) -> None:
        """Raises RunAborted after the end, or when the page is closed."""
        if self._is_stopped():
            raise RunAborted("the page was closed")
        if wall_seconds() > self._end_seconds:
            raise RunAborted(f"no answer within {SECONDS_MAX:g} s: ask for less")
        self._give_way()


@final
class Computations:
    """The computations about one run or cluster. The server's thread calls it."""

    def __init__(
        self,
        worker: Executor,
        long_worker: Executor,
        is_stopped: Callable[[], bool],
        report: Callable[[BaseException], str],
    ) -> None:
        """Each worker runs one call at a time. ``report``: gives the line about a failure."""
        self._worker = worker
        self._long_worker = long_worker
        self._report = report
        self._is_stopped = is_stopped
        #: The computations that wait, the newest last.
        self._futures: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._problems: dict[Hashable, str] = {}

    def ask(
        self, key: Hashable, compute: Callable[[Deadline], Any], *, is_long: bool = False
    ) -> ComputationState:
        """The answer of a key, or the state that says that it is being computed.

        ``is_long``: short computations go first at each step of it.
        """
        future = self._futures.get(key)
        if future is None:
            self._make_room()
            if is_long:
                future = self._long_worker.submit(self._run_long, compute)
            else:
                future = self._worker.submit(self._run, compute)
            self._futures[key] = future
        self._futures.move_to_end(key)
        if not future.done():
            return ComputationState(COMPUTING)
        try:
            return ComputationState(READY, future.result())
        except CancelledError:
            del self._futures[key]
            return self.ask(key, compute, is_long=is_long)
        except (Exception, RunAborted) as problem:  # noqa: BLE001 - the page and the terminal show it
            return ComputationState(FAILED, problem=self._problem(key, problem))

    def _run(self, compute: Callable[[Deadline], Any]) -> Any:
        with ENGINE_LOCK.short():
            return compute(Deadline(self._is_stopped))

    def _run_long(self, compute: Callable[[Deadline], Any]) -> Any:
        with ENGINE_LOCK.long():
            return compute(Deadline(self._is_stopped, ENGINE_LOCK.give_way))

    def _problem(self, key: Hashable, problem: BaseException) -> str:
        """The line about a failure. It is reported once, however often the page asks."""
        if key not in self._problems:
            self._problems[key] = self._report(problem)
        return self._problems[key]

    def _make_room(self) -> None:
        """Drop the oldest answers, and the oldest computations that have not started."""
        open_keys = [key for key, future in self._futures.items() if not future.done()]
        for key in open_keys[: max(0, len(open_keys) - _WAITING_MAX + 1)]:
            if self._futures[key].cancel():
                del self._futures[key]
        while len(self._futures) >= _CACHED_MAX:
            oldest = next((k for k, f in self._futures.items() if f.done()), None)
            if oldest is None:
                return
            del self._futures[oldest]
            self._problems.pop(oldest, None)
