"""The cost of the journal: the time of an attempt with and without the sinks of `bayplan run`.

    python -m benchmarks journal [--nodes 1000,5000,20000,50000] [--shape basic-5000]
        [--rounds 40] [--markdown benchmarks/RESULTS.md]

Two schedulers with equal clusters attempt equal pods in turn, some dozens at a time, in processor
time of this process. The ratio is the median of the ratios of neighbouring rounds. Exit status 1: a
ratio is above the bound in ranges.yaml.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import process_time

import click
from rich.console import Console
from rich.table import Table

from bayplan.engine.scheduler import Scheduler
from bayplan.journal import Journal
from benchmarks.engine_run import discarded_log, loaded, production_journal, settled_memory
from benchmarks.machine import machine, markdown_table, put_between, today
from benchmarks.ranges import ranges
from benchmarks.shapes import SHAPES, Shape

PODS_PER_ROUND = 30
#: Rounds of each side before the measurement.
_WARM_UP_ROUNDS = 3
HEADINGS = ("shape", "nodes", "µs per attempt with", "without", "ratio")


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of each round, in pairs of neighbours."""

    shape: Shape
    rounds: Sequence[tuple[float, float]]

    @property
    def ratio(self) -> float:
        return median(with_sinks / without for with_sinks, without in self.rounds)

    def cells(self) -> tuple[str, ...]:
        micros = [median(side) / PODS_PER_ROUND * 1e6 for side in zip(*self.rounds, strict=True)]
        shape = self.shape
        return (
            shape.template,
            f"{shape.nodes:,}",
            *(f"{each:,.0f}" for each in micros),
            f"{self.ratio:.2f}",
        )


def measure(shape: Shape, round_count: int) -> Measured:
    """Run both sides in the order A B B A A B …, so that neither side is always the second."""
    with discarded_log():
        sides = (loaded(shape, journal=production_journal()), loaded(shape, journal=Journal()))
        with settled_memory():
            rounds = [_pair(sides, is_swapped=bool(n % 2)) for n in range(round_count)]
        for scheduler in sides:
            scheduler.close()
    return Measured(shape, rounds[_WARM_UP_ROUNDS:])


def _pair(sides: tuple[Scheduler, Scheduler], *, is_swapped: bool) -> tuple[float, float]:
    first, second = reversed(sides) if is_swapped else sides
    seconds = _round(first), _round(second)
    return (seconds[1], seconds[0]) if is_swapped else seconds


def _round(scheduler: Scheduler) -> float:
    start = process_time()
    for _ in range(PODS_PER_ROUND):
        assert scheduler.schedule_one(), "pods ran out"
        scheduler.take_effects()
    return process_time() - start


def sized(shape: Shape, nodes: int, round_count: int) -> Shape:
    """The shape on another number of nodes, equally full, with the pods that the rounds need."""
    init_pods = nodes * shape.init_pods // shape.nodes
    return replace(shape, nodes=nodes, init_pods=init_pods, pods=round_count * PODS_PER_ROUND)


def problems(rows: Sequence[Measured]) -> list[str]:
    at_most = ranges().journal_at_most
    return [
        f"{row.shape.template}, {row.shape.nodes:,} nodes: {row.ratio:.2f}, at most {at_most:g}"
        for row in rows
        if row.ratio > at_most
    ]


@click.command(help=__doc__)
@click.option("--nodes", default="1000,5000,20000,50000", help="sizes of the cluster")
@click.option("--shape", "name", default="basic-5000", help="the shape of the pods")
@click.option("--rounds", "round_count", default=40, help="rounds of each side")
@click.option(
    "--markdown", type=click.Path(path_type=Path, exists=True), help="put the table there"
)
def main(nodes: str, name: str, round_count: int, markdown: Path | None) -> None:
    [shape] = [each for each in SHAPES if each.name == name]
    sizes = [int(size) for size in nodes.split(",")]
    rows = [
        measure(sized(shape, size, round_count + _WARM_UP_ROUNDS), round_count + _WARM_UP_ROUNDS)
        for size in sizes
    ]
    table = Table(*HEADINGS)
    for row in rows:
        table.add_row(*row.cells())
    Console(width=110).print(table)
    if markdown is not None:
        lines = [f"Measured {today()}: {machine()}.", "", "    python -m benchmarks journal"]
        lines += ["", *markdown_table(HEADINGS, (row.cells() for row in rows))]
        put_between(markdown, "journal", lines)
    for problem in problems(rows):
        click.echo(problem, err=True)
    sys.exit(bool(problems(rows)))
