"""The page of a command: first its progress, then its result.

The command works in the main thread, and a thread of its own serves the page. The page polls the
progress, which the command writes as two numbers.
"""

import asyncio
import signal
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import final

from bayplan.comparison.curves import ComparedCurve, curves_of
from bayplan.comparison.report import ComparisonAnswer, comparison_answer
from bayplan.comparison.table import Comparison
from bayplan.ui.answers import Source
from bayplan.ui.server import UiOptions, serve_until
from bayplan.ui.subjects import LOADING, READY, Subject

_START_SECONDS_MAX = 30.0


@final
class WorkSubject(Subject):
    """The progress of a command."""

    kind = "work"

    def __init__(self, name: str, doing: str, unit: str) -> None:
        """``doing``: a sentence; ``unit``: what is counted, such as "pod"."""
        super().__init__(name)
        self._doing = doing
        self._unit = unit

    def update(self, done_count: int, total_count: int) -> None:
        """Note the progress; the command calls this in its thread."""
        self._progress = (done_count, total_count)

    def answer(self) -> Source:
        done_count, total_count = self._progress
        return Source(
            name=self.name,
            kind=self.kind,
            phase=LOADING,
            done_count=done_count,
            total_count=total_count,
            doing=self._doing,
            unit=self._unit,
        )


@final
class ComparisonSubject(Subject):
    """The metrics of several configurations over the same pods and seeds."""

    kind = "comparison"

    def __init__(self, comparison: Comparison, title: str) -> None:
        super().__init__(title)
        self._comparison = comparison
        self._answer = comparison_answer(comparison, title)
        self._phase = READY

    def answer(self) -> Source:
        return Source(name=self.name, kind=self.kind, phase=self._phase)

    @property
    def comparison(self) -> ComparisonAnswer:
        """The answer of `bayplan compare`."""
        return self._answer

    def curves(self, input_name: str) -> tuple[ComparedCurve, ...]:
        """The curves of one input; none for an unknown one."""
        return tuple(curves_of(self._comparison, input_name))


# ---- the page in a thread -------------------------------------------------------------------


@final
class WorkPage:
    """The page of a command, on loopback."""

    def __init__(self, work: WorkSubject) -> None:
        self._subject: list[Subject] = [work]
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="page", daemon=True)
        self._worker = ThreadPoolExecutor(1, "runs")
        self._failure: OSError | None = None
        self.url = ""

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            served = serve_until(
                self._ended, self._subject, UiOptions(), on_ready=self._ready, worker=self._worker
            )
            self._loop.run_until_complete(served)
        except OSError as problem:
            self._failure = problem
            self._started.set()
        finally:
            self._loop.close()

    def _ready(self, url: str) -> None:
        self.url = url
        self._started.set()

    def start(self) -> None:
        """Raises OSError."""
        self._thread.start()
        assert self._started.wait(_START_SECONDS_MAX), "the page was not served in time"
        if self._failure is not None:
            raise self._failure

    def show(self, *subject: Subject) -> None:
        """Show the result of the work, until SIGINT or SIGTERM."""

        def change() -> None:
            self._subject[:] = subject
            for one in subject:
                one.start(self._worker)

        stopped = threading.Event()
        previous = signal.signal(signal.SIGTERM, lambda _number, _frame: stopped.set())
        self._loop.call_soon_threadsafe(change)
        try:
            stopped.wait()
        except KeyboardInterrupt:
            return
        finally:
            signal.signal(signal.SIGTERM, previous)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()


@contextmanager
def work_page(name: str, doing: str, unit: str) -> Generator[tuple[WorkPage, WorkSubject]]:
    """The page of a command while the block runs. Raises OSError."""
    work = WorkSubject(name, doing, unit)
    page = WorkPage(work)
    page.start()
    try:
        yield page, work
    finally:
        page.stop()
