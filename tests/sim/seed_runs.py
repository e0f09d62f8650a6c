"""`make sim`: the worlds of many seeds, on several processes, with progress and a summary.

    python -m tests.sim.seed_runs --jobs 2

The environment names the seeds (`tests.seeded`). Each seed is one world of the fault simulation and
one of the disruptions of controllers. A failure is printed at once, with the steps of the smallest
plan that fails and the command that replays it. Exit code 1: a seed failed.
"""

import argparse
import contextlib
import multiprocessing
import signal
import sys
import tempfile
import time  # noqa: TID251 - durations are printed
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TextIO

from bayplan.sim.world.checkers import InvariantBroken
from tests.seeded import REPLAY, replay_command, seeds, table_of
from tests.sim.disruptions import check
from tests.sim.fault_plan import Plan
from tests.sim.fault_world import FaultWorld
from tests.sim.shrinking import failure_of, shrunk

SEEDS_BY_DEFAULT = 20
#: The shortest time between two lines of progress, on a terminal and in a file.
_TERMINAL_SECONDS, _FILE_SECONDS = 1.0, 30.0
#: A seed takes about 0.3 s. A seed that takes this long does not end.
_HANGS_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class SeedResult:
    """The result of one seed."""

    seed: int
    #: How often each step and each fault happened.
    counts: Counter[str] = field(default_factory=Counter[str])
    #: Empty if the seed passes.
    failure: str = ""


class SeedHangs(KeyboardInterrupt):
    """A seed does not end. asyncio lets only this kind of exception through a task."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises SeedHangs in the main thread, once more after each ``seconds``."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise SeedHangs(f"does not end in {seconds:g} s")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run_seed(seed: int, hangs_seconds: float = _HANGS_SECONDS) -> SeedResult:
    """Play both worlds of a seed."""
    world = FaultWorld(seed)
    try:
        with time_limit(hangs_seconds):
            world.play()
    except SeedHangs as problem:
        return SeedResult(seed, world.counts, f"fault world: {problem}")
    except (Exception, InvariantBroken):  # noqa: BLE001 - any exception of a bug
        return SeedResult(seed, world.counts, _failure_text(seed))
    try:
        with tempfile.TemporaryDirectory() as folder, time_limit(hangs_seconds):
            check(seed, Path(folder))
    except (Exception, InvariantBroken, SeedHangs) as problem:  # noqa: BLE001
        return SeedResult(seed, failure=f"disruptions of controllers: {problem!r}")
    return SeedResult(seed, world.counts)


def _failure_text(seed: int) -> str:
    failure = failure_of(Plan.drawn(seed))
    return "the second play of the seed did not fail" if failure is None else str(shrunk(failure))


def results(numbers: Sequence[int], jobs: int) -> Iterator[SeedResult]:
    """The results of all seeds, in any order."""
    if jobs == 1 or len(numbers) == 1:
        yield from map(run_seed, numbers)
        return
    with multiprocessing.Pool(jobs) as pool:
        yield from pool.imap_unordered(run_seed, numbers)


class Progress:
    """One line: the number of completed seeds, their rate, and the remaining time."""

    def __init__(self, total: int, out: TextIO) -> None:
        self._total = total
        self._out = out
        self._started_seconds = self._printed_seconds = time.monotonic()
        self._is_terminal = out.isatty()
        self.completed_count = self.failure_count = 0

    def add(self, result: SeedResult) -> None:
        self.completed_count += 1
        self.failure_count += bool(result.failure)
        if result.failure:
            self._out.write(f"\nseed {result.seed} fails\n{result.failure}\n")
            self._out.write(f"{REPLAY}{replay_command(result.seed)}\n")
        interval_seconds = _TERMINAL_SECONDS if self._is_terminal else _FILE_SECONDS
        now = time.monotonic()
        if now - self._printed_seconds >= interval_seconds:
            self._printed_seconds = now
            self._out.write(f"\r{self.line()}" if self._is_terminal else f"{self.line()}\n")
            self._out.flush()

    def line(self) -> str:
        seconds = max(time.monotonic() - self._started_seconds, 1e-9)
        per_minute = 60 * self.completed_count / seconds
        left_minutes = (self._total - self.completed_count) / per_minute if per_minute else 0
        return (
            f"{self.completed_count} of {self._total} seeds, {per_minute:.0f} a minute, "
            f"{left_minutes:.0f} min left, {self.failure_count} failed"
        )

    def summary(self) -> str:
        seconds = time.monotonic() - self._started_seconds
        per_minute = 60 * self.completed_count / max(seconds, 1e-9)
        return (
            f"{self.completed_count} seeds in {seconds:.0f} s ({per_minute:.0f} a minute), "
            f"{self.failure_count} failed"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="worlds of the fault simulation, seed by seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    jobs = parser.parse_args(arguments).jobs
    numbers = seeds(SEEDS_BY_DEFAULT)
    progress, counts = Progress(len(numbers), sys.stdout), Counter[str]()
    for result in results(numbers, jobs):
        progress.add(result)
        counts.update(result.counts)
    print(f"\n{table_of(counts)}\n{progress.summary()}")
    return 1 if progress.failure_count else 0


if __name__ == "__main__":
    sys.exit(main())
