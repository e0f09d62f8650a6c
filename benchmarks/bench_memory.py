"""Peak memory of a scheduler that knows a large cluster.

    python -m benchmarks.bench_memory [--sizes 5000x100000,50000x500000]

Each size runs in a process of its own: nodes and placed pods are handed in one by one, as a watch
would, and then a thousand pods are placed. The peak is what the operating system says of it.
"""

import resource
import subprocess
import sys
from itertools import islice
from time import perf_counter

import click
from rich.console import Console
from rich.table import Table

from benchmarks.engine_run import loaded
from benchmarks.shapes import Shape

PENDING = 1000
MIB = 2**20
#: What the operating system counts in.
RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def measure(nodes: int, pods: int) -> None:
    """In this process: prints nodes, pods, seconds, peak in bytes."""
    start = perf_counter()
    scheduler = loaded(Shape("memory", nodes, "default", PENDING, init_pods=pods))
    for _ in islice(iter(scheduler.schedule_one, False), PENDING):
        scheduler.take_effects()
    assert len(scheduler.cache.pods()) == pods + PENDING, "some pods found no node"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT
    click.echo(f"{nodes} {pods} {perf_counter() - start:.1f} {peak}")


@click.command(help=__doc__)
@click.option("--sizes", default="5000x100000,50000x500000", help="NODESxPODS, …")
@click.option("--here", help="measure one size in this process")
def main(sizes: str, here: str | None) -> None:
    if here is not None:
        nodes, pods = here.split("x")
        measure(int(nodes), int(pods))
        return
    table = Table("nodes", "placed pods", "seconds", "peak MiB", "bytes per pod")
    for size in sizes.split(","):
        command = [sys.executable, "-m", "benchmarks.bench_memory", "--here", size]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        nodes, pods, peak = int(told[0]), int(told[1]), int(told[3])
        cells = (told[2], f"{peak / MIB:,.0f}", f"{peak / pods:,.0f}")
        table.add_row(f"{nodes:,}", f"{pods:,}", *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
