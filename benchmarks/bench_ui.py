"""The processor time of the page's server for each answer, with a large timeline.

    python -m benchmarks ui [--nodes 15000] [--pods 100000]
    python -m benchmarks ui --live [--nodes 1000] [--rate 100]

The timeline is made up: pods arrive one after the other, one in twenty finds no node. Processor
time of this process; the first question at a moment also computes the state at that moment. The
answers are encoded, as the server sends them. With `--live`, what the page of `bayplan run --ui`
costs the scheduler: see `benchmarks.live_page`.
"""

from collections.abc import Callable
from time import process_time
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from bayplan import rng
from bayplan.api.object_meta import ObjectMeta
from bayplan.api.objects import Node
from bayplan.history.columns import (
    NEVER,
    Attempts,
    Changes,
    Lives,
    Placements,
    PodRow,
    QueueSamples,
    Verdicts,
    Versions,
)
from bayplan.history.timeline import NEW, Cause, CausePart, ChangeKind, Series, State, Timeline
from bayplan.ui import pages
from bayplan.ui.tables import NodeFilter, PodFilter, node_rows, pod_rows
from benchmarks.live_page import Load, measured, rows_of

_ZONES, _RACK_SIZE = 9, 50
#: One pod in this many waits.
_WAITING = 20
_DAY_SECONDS = 86_400.0
#: (cpu, memory, pods) of a node, and of three shapes of pods.
_AMOUNTS = [[64_000, 256 << 30, 110], [500, 1 << 30, 1], [2000, 4 << 30, 1], [4000, 8 << 30, 1]]
_FULL = Cause("unschedulable", (CausePart("NodeResourcesFit", "Insufficient cpu"),))


def timeline(node_count: int, pod_count: int) -> Timeline:
    """One change per node, three per pod: it is created, tried, and bound."""
    draws = rng.stream(1, "timeline")
    last = node_count + 3 * pod_count
    rows = np.arange(pod_count)
    created = node_count + 1 + 3 * rows
    waits = rows % _WAITING == 0
    placed = np.flatnonzero(~waits)
    nodes = np.array([draws.randrange(node_count) for _ in placed], np.int64)
    shapes = 1 + rows % (len(_AMOUNTS) - 1)
    waits_to = np.where(waits, NEVER, created + 2)
    results = np.where(waits, ChangeKind.UNSCHEDULABLE, ChangeKind.SCHEDULED)
    every_node = np.arange(node_count)
    return Timeline(
        seconds=np.linspace(0, _DAY_SECONDS, last + 1),
        changes=Changes.of(np.zeros(last + 1), -1, -1, 0),
        resources=("cpu", "memory", "pods"),
        amounts=np.array(_AMOUNTS, np.int64),
        pods=[_pod(row) for row in range(pod_count)],
        lives=Lives.of(created, NEVER, created, waits_to, -1, 1, 0),
        placements=Placements.of(placed, nodes, shapes[placed], created[placed] + 2, NEVER),
        node_names=[f"node-{row:05d}" for row in range(node_count)],
        versions=Versions.of(every_node, 0, every_node + 1, NEVER),
        nodes=[_node(row) for row in range(node_count)],
        attempts=Attempts.of(created + 1, rows, 1, results, rows),
        verdicts=Verdicts.of(created + 1, rows, np.where(waits, 1, -1), waits_to),
        causes=[NEW, _FULL],
        group_names=[],
        group_minimums=[],
        group_records=[],
        queues=QueueSamples(np.pad(np.arange(last + 1)[:, None], ((0, 0), (0, 4)))),
        queue_names=("active", "backoff", "unschedulable", "gated"),
    )


def _node(row: int) -> Node:
    labels = {"zone": f"z{row % _ZONES}", "rack": f"r{row // _RACK_SIZE}"}
    return Node(metadata=ObjectMeta(name=f"node-{row:05d}", labels=labels))


def _pod(row: int) -> PodRow:
    return PodRow(
        name=f"default/pod-{row:06d}",
        uid=str(row),
        priority=0,
        profile="default-scheduler",
        workload=f"Deployment default/app-{row % 100}",
        amounts=1 + row % (len(_AMOUNTS) - 1),
        labels={},
    )


def questions(line: Timeline) -> dict[str, Callable[[State], Any]]:
    """The answers that are measured, by view."""
    totals, everything = Series(line), range(len(line.pods))
    last = line.pods[-1].name
    return {
        "overview": pages.overview,
        "curves": lambda _: pages.series(line, totals, by_time=True, points=400),
        "heat map, cpu by rack": lambda s: pages.heat(s, color="cpu", group_by="rack"),
        "heat map, fragmentation": lambda s: pages.heat(s, color="fragmentation", group_by=""),
        "heat map, pods that fit": lambda s: pages.heat(s, color=f"fits:{last}", group_by=""),
        "waiting": pages.waiting,
        "search by name": lambda s: [
            pages.pod_entry(s, row) for row in pod_rows(s, PodFilter(search=last))
        ],
        "50 pods": lambda s: [pages.pod_entry(s, row) for row in everything[-50:]],
        "one pod": lambda s: pages.pod_answer(s, last),
        "50 nodes": lambda s: [pages.node_row(s, row) for row in node_rows(s, NodeFilter())[:50]],
        "50 nodes by cpu": lambda s: [
            pages.node_row(s, row) for row in node_rows(s, NodeFilter(), "-cpu")[:50]
        ],
        "50 pods by name": lambda s: [
            pages.pod_entry(s, row) for row in pod_rows(s, PodFilter(), "name")[:50]
        ],
    }


@click.command()
@click.option("--nodes", "node_count", type=int, help="Default: 15000; with --live 1000")
@click.option("--pods", "pod_count", default=100_000, show_default=True)
@click.option("--live", "is_live", is_flag=True, help="Measure the page of a running scheduler")
@click.option("--rate", default=100, show_default=True, help="With --live: pods per second")
@click.option("--seconds", default=30, show_default=True, help="With --live: at the rate")
@click.option("--burst", default=2000, show_default=True, help="With --live: pods at once")
@click.option("--turns", default=3, show_default=True, help="With --live: turns with the page")
def main(node_count: int | None, pod_count: int, is_live: bool, **flags: int) -> None:
    """Measure each answer at the end of a run and in its middle, or the page of a scheduler."""
    if is_live:
        _measure_live(node_count or 1000, **flags)
    else:
        _measure_answers(node_count or 15_000, pod_count)


def _measure_live(nodes: int, *, rate: int, seconds: int, burst: int, turns: int) -> None:
    load = Load(nodes=nodes, rate=rate, seconds=seconds, burst=burst)
    table = Table("live page", "median", title=f"{nodes:,} nodes, {rate:,} pods per second")
    for row in rows_of(measured(load, turns)):
        table.add_row(*row)
    Console().print(table)


def _measure_answers(node_count: int, pod_count: int) -> None:
    line = timeline(node_count, pod_count)
    table = Table(
        "answer",
        "ms at the end",
        "ms in the middle",
        "kB",
        title=f"{node_count:,} nodes, {pod_count:,} pods",
    )
    states = [line.state(change) for change in (line.last_change, line.last_change // 2)]
    for name, view in questions(line).items():
        times: list[str] = []
        size = 0
        for state in states:
            start = process_time()
            size = len(pages.as_json(view(state)))
            times.append(f"{1000 * (process_time() - start):.1f}")
        table.add_row(name, *times, f"{size / 1000:.1f}")
    Console().print(table)
