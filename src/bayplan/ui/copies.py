"""Computations in a copy of this process (fork), for a scheduler that must not wait for them.

The copy has all objects as they are at one instant, without a lock and without copying one: the
kernel copies a page of memory when one of both processes writes to it. The copy computes, writes
its answer into a pipe, and ends. It runs with the lowest priority, is the first process that the
kernel ends if memory runs out, holds no socket of the scheduler, and ends when the scheduler ends.
"""

import asyncio
import gc
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn, ParamSpec, TypeVar, final

from bayplan.internal_errors import internal_error
from bayplan.ports import RunAborted
from bayplan.problems import BadInputError

P = ParamSpec("P")
T = TypeVar("T")

#: Whether the system has a fork that its libraries survive.
IS_AVAILABLE: Final = sys.platform == "linux"
#: A copy that computes for longer is ended. As a rule, `computations.SECONDS_MAX` ends its
#: computation before.
SECONDS_MAX: Final = 130.0
_READ_BYTES: Final = 1 << 20
_OUTPUTS: Final = 3
_DESCRIPTORS_MAX: Final = 1 << 20
_LOWEST_PRIORITY: Final = 19
#: The OOM score of a copy: processes with 1000 are ended first, see proc(5).
_FIRST_TO_END: Final = "1000"


@final
class Copies(Executor):
    """Runs calls one after the other. Each call runs in a copy of the process as it is when the
    call starts.

    Use it on the thread of an event loop. Results must be picklable.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._copy: _Copy | None = None

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        self._waiting.append((future, lambda: fn(*args, **kwargs)))
        self._start_next()
        return future

    def _start_next(self) -> None:
        while self._copy is None and self._waiting:
            future, call = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                self._copy = _Copy(future, call, self._ended)
            except OSError as problem:
                future.set_exception(problem)

    def _ended(self) -> None:
        self._copy = None
        self._start_next()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the copy, and drop the calls that wait."""
        for future, _ in self._waiting:
            future.cancel()
        self._waiting.clear()
        if self._copy is not None:
            self._copy.kill()


@final
class _Copy:
    """One copy, as this process sees it. Raises OSError."""

    def __init__(
        self, future: Future[Any], call: Callable[[], Any], ended: Callable[[], None]
    ) -> None:
        self._future, self._ended = future, ended
        self._answer = bytearray()
        self._pipe, writing = os.pipe()
        try:
            self._pid = _forked(call, writing)
        except OSError:
            os.close(self._pipe)
            raise
        finally:
            os.close(writing)
        os.set_blocking(self._pipe, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._pipe, self._read)
        self._timer = self._loop.call_later(SECONDS_MAX, self.kill)

    def _read(self) -> None:
        with suppress(BlockingIOError):
            part = os.read(self._pipe, _READ_BYTES)
            self._answer += part
            if not part:
                self._end()

    def kill(self) -> None:
        """End the copy now. Its call fails."""
        os.kill(self._pid, signal.SIGKILL)
        self._end()

    def _end(self) -> None:
        self._timer.cancel()
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)
        os.waitpid(self._pid, 0)
        try:
            is_result, value = pickle.loads(self._answer)
        except (EOFError, pickle.UnpicklingError):
            is_result, value = False, RunAborted("the computation was ended: it took too much")
        if is_result:
            self._future.set_result(value)
        else:
            self._future.set_exception(value)
        self._ended()


# ---- in the copy ----------------------------------------------------------------------------


def _forked(call: Callable[[], Any], writing: int) -> int:
    """The pid of the copy, which never returns from here. Raises OSError."""
    pid = os.fork()
    if not pid:
        _compute(call, writing)
    return pid


def _compute(call: Callable[[], Any], writing: int) -> NoReturn:
    code = 1
    try:
        _detach(writing)
        answer = _answer(call)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(answer)
        code = 0
    finally:
        # No code of the scheduler may run here: no handler at exit, and no destructor.
        os._exit(code)


def _detach(writing: int) -> None:
    """Release what belongs to the scheduler."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    gc.disable()
    os.closerange(_OUTPUTS, writing)
    os.closerange(writing + 1, _DESCRIPTORS_MAX)
    os.nice(_LOWEST_PRIORITY)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_END)


def _answer(call: Callable[[], Any]) -> bytes:
    """Returns (whether the call succeeded, its result or its failure)."""
    try:
        return pickle.dumps((True, call()))
    except BadInputError as problem:
        return pickle.dumps((False, BadInputError(str(problem))))
    except RunAborted as problem:
        return pickle.dumps((False, RunAborted(str(problem))))
    except BaseException as problem:  # noqa: BLE001 - the page shows it
        return pickle.dumps((False, RunAborted(internal_error(problem))))


def is_orphan(parent: int) -> bool:
    """Whether the scheduler has ended; called in the copy. ``parent``: the pid of the scheduler."""
    return os.getpid() != parent and os.getppid() != parent
