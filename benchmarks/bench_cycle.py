"""Full scheduling cycles, all nodes scored, default profile: pods per second by cluster size.

python -m benchmarks.bench_cycle [--seconds 2] [--only basic,affinity]
"""

import click
from rich.console import Console
from rich.table import Table

from benchmarks.engine_run import run
from benchmarks.shapes import SHAPES, Shape

SIZES = (100, 1_000, 5_000, 15_000)


def measured_shapes() -> list[Shape]:
    sizes = [Shape(f"basic-{size}", size, "default") for size in SIZES]
    return sizes + [shape for shape in SHAPES if not shape.name.startswith("basic")]


@click.command(help=__doc__)
@click.option("--seconds", default=2.0, help="how long each run may take")
@click.option("--only", default="", help="shapes whose name contains one of these")
@click.option("--repeat", default=3, help="runs of each shape; the median is printed")
def main(seconds: float, only: str, repeat: int) -> None:
    table = Table("shape", "nodes", "pods/s", "µs per pod", "bound", "of")
    for column in table.columns[1:]:
        column.justify = "right"
    wanted = [part for part in only.split(",") if part]
    for shape in measured_shapes():
        if wanted and not any(part in shape.name for part in wanted):
            continue
        runs = sorted((run(shape, 20_000, seconds) for _ in range(repeat)), key=lambda r: r.rate)
        median = runs[len(runs) // 2]
        cells = (
            shape.name,
            f"{shape.nodes:,}",
            f"{median.rate:,.0f}",
            f"{1e6 / median.rate:,.0f}",
            f"{median.bound:,}",
            f"{median.attempts:,}",
        )
        table.add_row(*cells)
    Console().print(table)


if __name__ == "__main__":
    main()
