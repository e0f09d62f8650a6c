"""What one more pod costs as the cluster grows, and as there are more kinds of pods.

    python -m benchmarks.bench_growth [--nodes 1000,5000,15000,50000] [--kinds 10,100,1000,5000]
        [--out growth.json] [--plot growth.svg]

Each size is measured in turn, several times, and the best of its rounds counts: what a busy machine
adds is not growth. Plots need the extra `compare`.
"""

import gc
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from bayplan.api.objects import POD
from bayplan.engine.scheduler import Scheduler
from benchmarks import shapes
from benchmarks.engine_run import added, loaded, with_cluster
from benchmarks.shapes import SHAPES, Shape

ROUNDS = 20
PODS_PER_ROUND = 50
#: Row-wise only, spreading, and affinity.
NAMES = ("basic-5000", "topology-spreading", "pod-affinity")
KIND_NODES = 5000


@dataclass(frozen=True, slots=True)
class Point:
    series: str
    size: int
    micros: float
    bytes_used: int


def by_nodes(name: str, sizes: Sequence[int]) -> list[Point]:
    """One kind of pods on ever larger clusters, which are as full."""
    [shape] = [found for found in SHAPES if found.name == name]
    points: list[Point] = []
    for size in sizes:
        init_pods = size if shape.init_pods else 0
        pods = (ROUNDS + 1) * PODS_PER_ROUND
        scheduler = loaded(replace(shape, nodes=size, init_pods=init_pods, pods=pods))
        points.append(point(name, size, scheduler))
    return points


def by_kinds(sizes: Sequence[int]) -> list[Point]:
    """Ever more kinds of pods, in turns, on one cluster."""
    points: list[Point] = []
    for size in sizes:
        scheduler = with_cluster(Shape("kinds", KIND_NODES, "default", 0))
        for index in range(size + (ROUNDS + 1) * PODS_PER_ROUND):
            scheduler.handle(added(POD, pod_of_kind(index, index % size)))
        for _ in range(size):
            scheduler.schedule_one()
        points.append(point("kinds", size, scheduler))
    return points


def pod_of_kind(index: int, kind: int) -> dict[str, Any]:
    pod = shapes.make_pod("default", f"pod-{index:06d}", "sched-1")
    requests = {"cpu": f"{1 + kind % 50}m", "memory": f"{1 + kind // 50}Mi"}
    pod["spec"]["containers"][0]["resources"] = {"requests": requests}
    return pod


def point(series: str, size: int, scheduler: Scheduler) -> Point:
    attempt(scheduler, PODS_PER_ROUND)
    gc.collect()
    gc.freeze()
    best = min(attempt(scheduler, PODS_PER_ROUND) for _ in range(ROUNDS))
    gc.unfreeze()
    return Point(series, size, best * 1e6, scheduler.reuse("default-scheduler").bytes_used)


def attempt(scheduler: Scheduler, count: int) -> float:
    """Seconds of this process per attempt: others do not count."""
    start = process_time()
    for _ in range(count):
        assert scheduler.schedule_one(), "pods ran out"
        scheduler.take_effects()
    return (process_time() - start) / count


def plot(points: Sequence[Point], path: Path) -> None:
    import matplotlib.pyplot as plt  # noqa: PLC0415 - only who plots needs it

    figure, (nodes, kinds) = plt.subplots(1, 2, figsize=(10, 4))
    for name in NAMES:
        found = [p for p in points if p.series == name]
        nodes.loglog([p.size for p in found], [p.micros for p in found], "o-", label=name)
    nodes.set(xlabel="nodes", ylabel="µs per pod", title="one more pod of a known kind")
    nodes.legend()
    found = [p for p in points if p.series == "kinds"]
    kinds.semilogx([p.size for p in found], [p.micros for p in found], "o-")
    kinds.set(xlabel="kinds of pods in turns", title=f"{KIND_NODES:,} nodes, table of 64 MiB")
    kinds.set_ylim(bottom=0)
    figure.tight_layout()
    figure.savefig(path)


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


@click.command(help=__doc__)
@click.option("--nodes", default="1000,5000,15000,50000")
@click.option("--kinds", default="10,100,1000,5000")
@click.option("--out", type=click.Path(path_type=Path), help="write the points as JSON, too")
@click.option("--plot", "plot_path", type=click.Path(path_type=Path), help="PNG or SVG")
def main(nodes: str, kinds: str, out: Path | None, plot_path: Path | None) -> None:
    points = [found for name in NAMES for found in by_nodes(name, numbers(nodes))]
    points += by_kinds(numbers(kinds))
    table = Table("series", "size", "µs per pod", "times the first", "bytes kept")
    firsts: dict[str, float] = {}
    for found in points:
        first = firsts.setdefault(found.series, found.micros)
        ratio = f"{found.micros / first:.2f}"
        cells = (f"{found.size:,}", f"{found.micros:,.0f}", ratio, f"{found.bytes_used:,}")
        table.add_row(found.series, *cells)
    Console().print(table)
    if out is not None:
        rows = [{"series": p.series, "size": p.size, "micros": p.micros} for p in points]
        out.write_text(json.dumps(rows, indent=2) + "\n")
    if plot_path is not None:
        plot(points, plot_path)


if __name__ == "__main__":
    main()
