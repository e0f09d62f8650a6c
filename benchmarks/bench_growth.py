"""The cost of one more pod in larger clusters, and with more kinds of pods.

    python -m benchmarks growth [--nodes 1000,5000,15000,50000] [--kinds 10,100,1000,5000]
        [--out growth.json] [--docs docs]

Each size is measured several times, and the best of its rounds counts, in processor time of this
process, because other programs only add time. With --docs the plots in docs/images and the table
in docs/benchmarks.md are written again; that needs the extra `compare`. Exit status 1: a repeat
placement in a row-local profile grows twofold from the smallest cluster to the largest, any other
as much as the cluster, or the table of cached results is larger than its bound.
"""

import gc
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import process_time
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from bayplan.api.objects import POD
from bayplan.config import SchedulerConfig
from bayplan.engine.scheduler import Scheduler
from benchmarks import shapes
from benchmarks.engine_run import added, loaded, with_cluster
from benchmarks.machine import machine, markdown_table, put_between, today
from benchmarks.shapes import SHAPES, Shape

ROUNDS = 20
PODS_PER_ROUND = 50
#: Series in which no plugin reads other nodes for the pods that arrive.
ROW_LOCAL = ("basic-5000", "node-affinity")
ACROSS_NODES = ("topology-spreading", "pod-affinity", "pod-anti-affinity")
KINDS = "kinds"
KIND_NODES = 5000
#: A repeat placement in a row-local profile grows by less than this over all sizes.
GROWTH_MAX = 2.0
BYTES_MAX = SchedulerConfig().spec.reuse.max_bytes
HEADINGS = ("series", "size", "µs per pod", "times the first", "KiB kept")


@dataclass(frozen=True, slots=True)
class Point:
    series: str
    size: int
    micros: float
    bytes_used: int


def by_nodes(name: str, sizes: Sequence[int]) -> list[Point]:
    """One kind of pods on clusters of increasing size that are equally full."""
    [shape] = [s for s in SHAPES if s.name == name]
    points: list[Point] = []
    for size in sizes:
        init_pods = size // 5 if shape.init_pods else 0
        pods = (ROUNDS + 1) * PODS_PER_ROUND
        # Pods with anti-affinity need one free node each.
        pods = min(pods, size - init_pods) if name == "pod-anti-affinity" else pods
        scheduler = loaded(replace(shape, nodes=size, init_pods=init_pods, pods=pods))
        points.append(point(name, size, scheduler, pods // PODS_PER_ROUND - 1))
    return points


def by_kinds(sizes: Sequence[int]) -> list[Point]:
    """An increasing number of kinds of pods, in turns, on one cluster."""
    points: list[Point] = []
    for size in sizes:
        scheduler = with_cluster(Shape(KINDS, KIND_NODES, "default", 0))
        for index in range(size + (ROUNDS + 1) * PODS_PER_ROUND):
            scheduler.handle(added(POD, pod_of_kind(index, index % size)))
        for _ in range(size):
            scheduler.schedule_one()
        points.append(point(KINDS, size, scheduler, ROUNDS))
    return points


def pod_of_kind(index: int, kind: int) -> dict[str, Any]:
    pod = shapes.make_pod("default", f"pod-{index:06d}", "sched-1")
    requests = {"cpu": f"{1 + kind % 50}m", "memory": f"{1 + kind // 50}Mi"}
    pod["spec"]["containers"][0]["resources"] = {"requests": requests}
    return pod


def point(series: str, size: int, scheduler: Scheduler, rounds: int) -> Point:
    attempt(scheduler, PODS_PER_ROUND)
    gc.collect()
    gc.freeze()
    best = min(attempt(scheduler, PODS_PER_ROUND) for _ in range(rounds))
    gc.unfreeze()
    return Point(series, size, best * 1e6, scheduler.reuse("default-scheduler").bytes_used)


def attempt(scheduler: Scheduler, count: int) -> float:
    """Seconds per attempt that this process uses; other processes do not count."""
    start = process_time()
    for _ in range(count):
        assert scheduler.schedule_one(), "pods ran out"
        scheduler.take_effects()
    return (process_time() - start) / count


# ---- report --------------------------------------------------------------------------------


def growth(points: Sequence[Point], series: str) -> float:
    """The cost at the last size over the cost at the first."""
    costs = [p.micros for p in points if p.series == series]
    return costs[-1] / costs[0]


def problems(points: Sequence[Point]) -> list[str]:
    lines: list[str] = []
    for series in dict.fromkeys(p.series for p in points):
        sizes = [p.size for p in points if p.series == series]
        limit = GROWTH_MAX if series in ROW_LOCAL else sizes[-1] / sizes[0]
        grown = growth(points, series)
        if len(sizes) > 1 and grown >= limit:
            lines.append(f"{series}: {grown:.2f} times the first, wanted less than {limit:g}")
    large = [p for p in points if p.bytes_used > BYTES_MAX]
    return lines + [f"{p.series} {p.size:,}: {p.bytes_used:,} bytes kept" for p in large]


def table_rows(points: Iterable[Point]) -> list[tuple[str, ...]]:
    firsts: dict[str, float] = {}
    rows: list[tuple[str, ...]] = []
    for p in points:
        first = firsts.setdefault(p.series, p.micros)
        kibibytes = f"{p.bytes_used / 1024:,.0f}"
        ratio = f"{p.micros / first:.2f}"
        rows.append((p.series, f"{p.size:,}", f"{p.micros:,.0f}", ratio, kibibytes))
    return rows


def write_docs(points: Sequence[Point], folder: Path) -> None:
    """Two plots, and the table in benchmarks.md. Raises ValueError: no place for the table."""
    (folder / "images").mkdir(exist_ok=True)
    nodes = [p for p in points if p.series != KINDS]
    plot(nodes, folder / "images" / "growth-nodes.svg", "nodes", log=True)
    kinds = [p for p in points if p.series == KINDS]
    plot(kinds, folder / "images" / "growth-kinds.svg", "kinds of pods in turns", log=False)
    text = [f"Measured {today()}: {machine()}.", "", *markdown_table(HEADINGS, table_rows(points))]
    put_between(folder / "benchmarks.md", "growth", text)


def plot(points: Sequence[Point], path: Path, label: str, *, log: bool) -> None:
    import matplotlib as mpl  # noqa: PLC0415 - only plots need it
    import matplotlib.pyplot as plt  # noqa: PLC0415

    mpl.rcParams.update({"svg.hashsalt": "bayplan", "svg.fonttype": "none"})
    figure, axes = plt.subplots(figsize=(6, 4))
    draw: Callable[..., Any] = axes.loglog if log else axes.semilogx
    for series in dict.fromkeys(p.series for p in points):
        in_series = [p for p in points if p.series == series]
        draw([p.size for p in in_series], [p.micros for p in in_series], "o-", label=series)
    axes.set(xlabel=label, ylabel="µs per pod")
    axes.grid(visible=True, which="major", alpha=0.3)
    if log:
        axes.legend()
    else:
        axes.set_ylim(bottom=0)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


@click.command(help=__doc__)
@click.option("--nodes", default="1000,5000,15000,50000")
@click.option("--kinds", default="10,100,1000,5000")
@click.option("--out", type=click.Path(path_type=Path), help="write the points as JSON, too")
@click.option("--docs", type=click.Path(path_type=Path, exists=True, file_okay=False))
def main(nodes: str, kinds: str, out: Path | None, docs: Path | None) -> None:
    points = [p for name in (*ROW_LOCAL, *ACROSS_NODES) for p in by_nodes(name, numbers(nodes))]
    points += by_kinds(numbers(kinds))
    table = Table(*HEADINGS)
    for cells in table_rows(points):
        table.add_row(*cells)
    Console().print(table)
    if out is not None:
        out.write_text(json.dumps([asdict(p) for p in points], indent=2) + "\n")
    if docs is not None:
        write_docs(points, docs)
    broken_limits = problems(points)
    for problem in broken_limits:
        click.echo(problem, err=True)
    sys.exit(bool(broken_limits))
