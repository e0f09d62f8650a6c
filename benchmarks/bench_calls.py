"""What an attempt spends its time on: microseconds by part of the engine, and longest functions.

    python -m benchmarks calls [--only basic] [--seconds 5] [--markdown benchmarks/RESULTS.md]

A timer interrupts the measured run, and the function that runs at that moment gets the sample; time
in numpy and in builtins counts for the function that called them. A second, shorter run counts the
calls of an attempt. Nothing here is compared with a bound: `bench_peer` does that.
"""

import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import click
from rich.console import Console
from rich.table import Table

import bayplan
from benchmarks.engine_run import run
from benchmarks.machine import machine, markdown_table, put_between, today
from benchmarks.shapes import SHAPES, Shape

#: The kernel's clock may tick more slowly than this.
_INTERVAL_SECONDS = 0.001
#: The run that counts calls is that much shorter: counting makes an attempt slower.
_COUNTING_SHARE = 0.2
_FUNCTIONS_MAX = 6
_SOURCE = f"{Path(bayplan.__file__).parent}/"
#: Part → the beginnings of the modules' paths; the first that fits counts.
PARTS = {
    "queue": ("queue/",),
    "state": ("state/", "api/"),
    "plugins": ("plugins/", "framework/"),
    "ranking": ("engine/ranking/",),
    "reuse": ("engine/reuse",),
    "engine": ("engine/",),
    "journal, metrics": ("journal", "metrics", "serving/", "printable"),
}
#: The load generator, and what has no frame of Bayplan.
OTHER = "other"
HEADINGS = ("shape", "µs", "calls: Python", "C", *PARTS, OTHER, "longest functions, µs")

_Function = tuple[str, str]


@dataclass(slots=True)
class Samples:
    """The samples of one shape, by part and function."""

    shape: Shape
    #: Microseconds of an attempt, on average.
    micros: float
    functions: Counter[_Function]
    python_calls: float
    c_calls: float

    def cells(self) -> tuple[str, ...]:
        parts = Counter[str]()
        for (part, _), count in self.functions.items():
            parts[part] += count
        share = self.micros / (self.functions.total() or 1)
        longest = [
            f"`{name}` {count * share:.1f}"
            for (part, name), count in self.functions.most_common(_FUNCTIONS_MAX + 1)
            if part != OTHER
        ][:_FUNCTIONS_MAX]
        return (
            self.shape.name,
            f"{self.micros:.0f}",
            f"{self.python_calls:.0f}",
            f"{self.c_calls:.0f}",
            *(f"{parts[part] * share:.1f}" for part in (*PARTS, OTHER)),
            ", ".join(longest),
        )


def measure(shape: Shape, seconds: float) -> Samples:
    functions, calls = Counter[_Function](), Counter[str]()
    timed = run(shape, seconds, around=sampled(functions))
    counted = run(shape, seconds * _COUNTING_SHARE, around=profiled(calls))
    return Samples(
        shape,
        timed.ends[-1] / timed.attempts * 1e6,
        functions,
        calls["call"] / counted.attempts,
        calls["c_call"] / counted.attempts,
    )


@contextmanager
def sampled(functions: Counter[_Function]) -> Iterator[None]:
    """Count the running function at each tick."""

    def tick(_: int, frame: FrameType | None) -> None:
        functions[running_function(frame)] += 1

    before = signal.signal(signal.SIGPROF, tick)
    signal.setitimer(signal.ITIMER_PROF, _INTERVAL_SECONDS, _INTERVAL_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def running_function(frame: FrameType | None) -> _Function:
    """The part and the name of the innermost function of Bayplan.

    A function of numpy or of the standard library counts for its caller.
    """
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(_SOURCE):
            return part_of(path.removeprefix(_SOURCE)), frame.f_code.co_qualname
        frame = frame.f_back
    return OTHER, ""


def part_of(path: str) -> str:
    return next((part for part, starts in PARTS.items() if path.startswith(starts)), OTHER)


@contextmanager
def profiled(calls: Counter[str]) -> Iterator[None]:
    """Count the Python calls and the C calls, with the few of the load generator."""

    def see(_frame: FrameType, event: str, _: Any) -> None:
        calls[event] += 1

    sys.setprofile(see)
    try:
        yield
    finally:
        sys.setprofile(None)


def markdown_lines(rows: Sequence[Samples]) -> Iterator[str]:
    yield f"Measured {today()}: {machine()}."
    yield from ("", "    python -m benchmarks calls", "")
    yield from markdown_table(HEADINGS, (row.cells() for row in rows))


@click.command(help=__doc__)
@click.option("--only", default="", help="part of the shapes' names")
@click.option("--seconds", default=5.0, help="how long each shape is measured")
@click.option(
    "--markdown", type=click.Path(path_type=Path, exists=True), help="put the table there"
)
def main(only: str, seconds: float, markdown: Path | None) -> None:
    rows = [measure(shape, seconds) for shape in SHAPES if only in shape.name]
    table = Table(*HEADINGS)
    for row in rows:
        table.add_row(*row.cells())
    Console(width=220).print(table)
    if markdown is not None:
        put_between(markdown, "calls", markdown_lines(rows))
