"""Computations for the page that take longer than a request: one at a time, by a worker.

The first request for an answer starts its computation, and the page asks again until the answer is
there. Answers are cached by key. Few computations wait at a time: a new one replaces the oldest one
that has not started. A computation calls `Deadline.check` at each step, which ends a computation
that takes too long and all computations when the page is closed.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Executor, Future
from typing import Any, NamedTuple, final

from bayplan.answers.document import Answer
from bayplan.clock import wall_seconds
from bayplan.internal_errors import internal_error
from bayplan.ports import RunAborted
from bayplan.problems import BadInputError
from bayplan.ui.answers import Computation

COMPUTING, READY, FAILED = "computing", "ready", "failed"
#: Answers that are cached, and computations that wait.
_CACHED_MAX = 32
_WAITING_MAX = 4
#: The most seconds of one computation.
SECONDS_MAX = 120.0


class ComputationState(NamedTuple):
    """What there is of an answer now."""

    #: computing, ready, failed
    phase: str
    value: Any = None
    #: Why it failed.
    problem: str = ""

    def answer(self) -> Computation[Any]:
        """The whole answer, for the page."""
        return Computation(phase=self.phase, problem=self.problem, value=self.value)

    def part(self, offset: int, limit: int) -> Computation[Any]:
        """The answer with a part of its list; no other list in it is longer than ``limit``."""
        if not isinstance(self.value, Answer):
            return self.answer()
        value, total = self.value.page(offset, limit)
        return Computation(phase=self.phase, value=value, total=total, offset=min(offset, total))


@final
class Deadline:
    """The end of one computation."""

    def __init__(self, is_stopped: Callable[[], bool], seconds: float = SECONDS_MAX) -> None:
        self._is_stopped = is_stopped
        self._seconds = seconds
        self._end_seconds = wall_seconds() + seconds

    def check(self) -> None:
        """Raises RunAborted after the end, or when the page is closed."""
        if self._is_stopped():
            raise RunAborted("the page was closed")
        if wall_seconds() > self._end_seconds:
            raise RunAborted(f"no answer within {self._seconds:g} s: ask for less")


@final
class Computations:
    """The computations about one run or cluster. The server's thread calls it."""

    def __init__(
        self,
        worker: Executor,
        is_stopped: Callable[[], bool],
        on_defect: Callable[[BaseException], str] = internal_error,
    ) -> None:
        """``worker``: runs one call at a time; ``on_defect``: gives the line about a defect."""
        self._worker = worker
        self._on_defect = on_defect
        self._is_stopped = is_stopped
        #: The newest last.
        self._futures: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._defects: dict[Hashable, str] = {}

    def ask(self, key: Hashable, compute: Callable[[Deadline], Any]) -> ComputationState:
        """The answer of a key, or that it is being computed."""
        future = self._futures.get(key)
        if future is None:
            self._make_room()
            future = self._worker.submit(self._run, compute)
            self._futures[key] = future
        self._futures.move_to_end(key)
        if not future.done():
            return ComputationState(COMPUTING)
        try:
            return ComputationState(READY, future.result())
        except CancelledError:
            del self._futures[key]
            return self.ask(key, compute)
        except (BadInputError, RunAborted) as problem:
            return ComputationState(FAILED, problem=str(problem))
        except Exception as problem:  # noqa: BLE001 - the page shows it
            return ComputationState(FAILED, problem=self._defect(key, problem))

    def _run(self, compute: Callable[[Deadline], Any]) -> Any:
        return compute(Deadline(self._is_stopped))

    def _defect(self, key: Hashable, problem: BaseException) -> str:
        """The line about a defect, which is reported once however often the page asks."""
        if key not in self._defects:
            self._defects[key] = self._on_defect(problem)
        return self._defects[key]

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
