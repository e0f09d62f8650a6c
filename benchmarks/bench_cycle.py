"""Full scheduling cycles on one core, all nodes scored, default profile.

    python -m benchmarks cycle [--seconds 2] [--repeat 3] [--only basic,affinity]

Absolute figures are for orientation. ranges.yaml limits each shape's time per pod over
that of basic-5000, measured in turn in the same run. Exit status 1: a limit is exceeded, or pods
that fit found no node.
"""

import sys
from collections.abc import Sequence
from statistics import median

import click
from rich.console import Console
from rich.table import Table

from benchmarks.engine_run import Run, run
from benchmarks.ranges import ranges
from benchmarks.shapes import SHAPES, Shape

SIZES = (100, 1000, 5000, 15_000)
REFERENCE = "basic-5000"
COLUMNS = ("nodes", "pods/s", "µs p50", "µs p99", "bound", "of", "nodes used", "x reference")


def measured_shapes(only: str) -> list[Shape]:
    """The shapes whose names match ``only``, ordered from the smallest basic shape on."""
    basics = [s for s in SHAPES if s.name.startswith("basic-")]
    node_counts = {s.nodes for s in basics}
    basics += [Shape(f"basic-{n}", n, "default", 3000) for n in SIZES if n not in node_counts]
    further = [s for s in SHAPES if s not in basics]
    patterns = [part for part in only.split(",") if part]
    return [
        shape
        for shape in (*sorted(basics, key=lambda s: s.nodes), *further)
        if not patterns or any(part in shape.name for part in patterns)
    ]


def slowness(runs: Sequence[Run], reference: Sequence[Run]) -> float:
    """Time per pod over the reference's, of medians."""
    return median(r.rate for r in reference) / median(r.rate for r in runs)


def line(shape: Shape, runs: Sequence[Run], ratio: float) -> tuple[str, ...]:
    last = runs[-1]
    return (
        shape.name,
        f"{shape.nodes:,}",
        f"{median(r.rate for r in runs):,.0f}",
        f"{median(r.micros(50) for r in runs):,.0f}",
        f"{median(r.micros(99) for r in runs):,.0f}",
        f"{last.bound:,}",
        f"{last.attempts:,}",
        f"{last.nodes_used(last.bound):,}",
        f"{ratio:.2f}",
    )


def problems_of(shape: Shape, runs: Sequence[Run], ratio: float) -> list[str]:
    messages = [f"{shape.name}: {r.problem}" for r in runs if r.problem]
    at_most = ranges().cycle_at_most.get(shape.name)
    if at_most is not None and ratio > at_most:
        messages.append(f"{shape.name}: {ratio:.2f} x {REFERENCE}, wanted at most {at_most:g}")
    return messages


@click.command(help=__doc__)
@click.option("--seconds", default=2.0, help="how long each run may take")
@click.option("--repeat", default=3, help="runs of each shape")
@click.option("--only", default="", help="shapes whose name contains one of these")
def main(seconds: float, repeat: int, only: str) -> None:
    reference = next(shape for shape in SHAPES if shape.name == REFERENCE)
    table = Table("shape", *COLUMNS)
    for column in table.columns[1:]:
        column.justify = "right"
    problems: list[str] = []
    for shape in measured_shapes(only):
        # In turn, because the speed of a machine varies.
        pairs = [(run(reference, seconds), run(shape, seconds)) for _ in range(repeat)]
        runs = [pair[1] for pair in pairs]
        ratio = slowness(runs, [pair[0] for pair in pairs])
        table.add_row(*line(shape, runs, ratio))
        problems += problems_of(shape, runs, ratio)
    Console(width=120).print(table)
    for problem in problems:
        click.echo(problem, err=True)
    sys.exit(bool(problems))
