"""The cost of `bayplan run --ui` compared with `bayplan run`, with a real API server over HTTP.

    python -m benchmarks page [--nodes 1000] [--rate 100] [--seconds 15] [--burst 1000]
        [--turns 3] [--markdown benchmarks/RESULTS.md]

etcd and kube-apiserver come from KUBEBUILDER_ASSETS. Turns with and without the page follow one
another, each with its own process. With the page, a browser follows: at each tick it requests what
the overview requests. First pods arrive at a rate and leave after some seconds. Then the process is
stopped (SIGSTOP) while many pods are created, and continues: it binds them as fast as it can.

Processor time is that of the scheduler's process. The time to a node is the mean of
scheduler_pod_scheduling_sli_duration_seconds at the rate; the time of the burst ends with its last
binding.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from bayplan.adapters.live.client import ApiClient, ClientOptions, open_client
from benchmarks.live_page import FOLLOWER, Load
from benchmarks.machine import machine, markdown_table, put_between, today
from tests.live.binaries import PROGRAMS
from tests.live.control_plane import ControlPlane
from tests.live.kubelet import node
from tests.live.processes import SchedulerProcess, free_port
from tests.live.run_world import get, scheduler, small_pod, wait_until_logged

_STAY_SECONDS = 5.0
_SYNCED = "This replica leads"
_PARALLEL = 16
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PODS = "/api/v1/namespaces/default/pods"
_DURATION = "scheduler_pod_scheduling_sli_duration_seconds"
HEADINGS = ("", "without the page", "with the page", "ratio (median of the turns)")


@dataclass(frozen=True, kw_only=True)
class Turn:
    """Processor time and times of one process."""

    #: The share of one core, at the rate.
    share: float
    #: Seconds from the creation of a pod to its binding, at the rate.
    millis: float
    burst_cpu_seconds: float
    burst_seconds: float


def cpu_seconds(pid: int) -> float:
    """User and system time. Source: proc(5), /proc/PID/stat, fields 14 and 15."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


async def in_parallel(works: Iterable[Awaitable[Any]]) -> None:
    room = asyncio.Semaphore(_PARALLEL)

    async def one(work: Awaitable[Any]) -> None:
        async with room:
            await work

    await asyncio.gather(*map(one, works))


async def scheduling_seconds(metrics: str) -> tuple[float, float]:
    """Sum and count of the time from creation to binding."""
    _, text = await get(metrics)
    sums = {"sum": 0.0, "count": 0.0}
    for line in text.splitlines():
        for part in sums:
            if line.startswith(f"{_DURATION}_{part}"):
                sums[part] += float(line.rpartition(" ")[2])
    return sums["sum"], sums["count"]


async def until_bound(metrics: str, count: float) -> None:
    async with asyncio.timeout(120):
        while (await scheduling_seconds(metrics))[1] < count:
            await asyncio.sleep(0.2)


async def arrivals(client: ApiClient, profile: str, load: Load) -> None:
    """Create pods at the rate; each is deleted after some seconds."""
    start = time.monotonic()

    async def one(number: int) -> None:
        name = f"{profile}-{number}"
        await asyncio.sleep(max(start + number / load.rate - time.monotonic(), 0))
        await client.request("POST", _PODS, small_pod(name, profile))
        await asyncio.sleep(_STAY_SECONDS)
        await client.request("DELETE", f"{_PODS}/{name}", {"gracePeriodSeconds": 0})

    await asyncio.gather(*(one(number) for number in range(load.rate * load.seconds)))


async def turn(
    control_plane: ControlPlane, client: ApiClient, load: Load, profile: str, *, has_page: bool
) -> Turn:
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        # The process is stopped for some time, and must not lose its lease.
        durations = {"leaseDuration": "300s", "renewDeadline": "250s"}
        election = {"resourceName": profile, **durations}
        more = ("--ui",) if has_page else ()
        process = scheduler(
            control_plane, Path(folder), profile, port, more=more, leaderElection=election
        )
        follower: subprocess.Popen[bytes] | None = None
        try:
            await wait_until_logged(process, _SYNCED)
            if has_page:
                command = [sys.executable, "-c", FOLLOWER, f"http://127.0.0.1:{port}/ui/"]
                follower = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            await asyncio.sleep(2)
            return await _measured(process, client, load, profile, f"http://127.0.0.1:{port}")
        finally:
            if follower is not None:
                follower.kill()
                follower.wait()
            process.end()


async def _measured(
    process: SchedulerProcess, client: ApiClient, load: Load, profile: str, url: str
) -> Turn:
    metrics = f"{url}/metrics"
    start, cpu = time.monotonic(), cpu_seconds(process.pid)
    await arrivals(client, profile, load)
    share = (cpu_seconds(process.pid) - cpu) / (time.monotonic() - start)
    total, count = await scheduling_seconds(metrics)
    process.send(signal.SIGSTOP)
    names = [f"{profile}-burst-{number}" for number in range(load.burst)]
    try:
        await in_parallel(client.request("POST", _PODS, small_pod(n, profile)) for n in names)
        start, cpu = time.monotonic(), cpu_seconds(process.pid)
    finally:
        process.send(signal.SIGCONT)
    await until_bound(metrics, count + load.burst)
    burst_seconds = time.monotonic() - start
    await asyncio.sleep(2)
    burst_cpu_seconds = cpu_seconds(process.pid) - cpu
    background = {"gracePeriodSeconds": 0}
    await in_parallel(client.request("DELETE", f"{_PODS}/{n}", background) for n in names)
    return Turn(
        share=share,
        millis=1000 * total / count,
        burst_cpu_seconds=burst_cpu_seconds,
        burst_seconds=burst_seconds,
    )


async def measured(control_plane: ControlPlane, load: Load, turns: int) -> list[tuple[Turn, Turn]]:
    """Pairs of turns: without and with the page."""
    admin = control_plane.kubeconfig("admin")
    pairs: list[tuple[Turn, Turn]] = []
    async with open_client(admin, ClientOptions(qps=-1)) as client:
        nodes = [node(f"n{number}", cpu=64) for number in range(load.nodes)]
        await in_parallel(client.request("POST", "/api/v1/nodes", each) for each in nodes)
        for number in range(turns):
            without = await turn(control_plane, client, load, f"plain-{number}", has_page=False)
            paged = await turn(control_plane, client, load, f"page-{number}", has_page=True)
            pairs.append((without, paged))
    return pairs


def rows_of(pairs: Sequence[tuple[Turn, Turn]]) -> list[tuple[str, ...]]:
    def row(name: str, form: str, values: Sequence[tuple[float, float]]) -> tuple[str, ...]:
        ratio = median(with_page / without for without, with_page in values)
        sides = [format(median(side), form) for side in zip(*values, strict=True)]
        return name, *sides, f"{ratio:.3f}"

    return [
        row("processor time at the rate, of one core", ".1%", _both(pairs, "share")),
        row("time to a node at the rate, ms", ".1f", _both(pairs, "millis")),
        row("processor seconds of the burst", ".2f", _both(pairs, "burst_cpu_seconds")),
        row("seconds until the burst is bound", ".2f", _both(pairs, "burst_seconds")),
    ]


def _both(pairs: Sequence[tuple[Turn, Turn]], name: str) -> list[tuple[float, float]]:
    return [(getattr(one, name), getattr(other, name)) for one, other in pairs]


@click.command()
@click.option("--nodes", default=1000, show_default=True)
@click.option("--rate", default=100, show_default=True, help="Pods per second")
@click.option("--seconds", default=15, show_default=True, help="At the rate")
@click.option("--burst", default=1000, show_default=True, help="Pods at once")
@click.option("--turns", default=3, show_default=True, help="Turns with the page")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the table into this file")
def main(turns: int, markdown: Path | None, **loads: int) -> None:
    """Measure `bayplan run --ui` beside `bayplan run`."""
    load = Load(**loads)
    control_plane = ControlPlane(PROGRAMS.get())
    try:
        control_plane.start()
        rows = rows_of(asyncio.run(measured(control_plane, load, turns)))
    finally:
        control_plane.stop()
    table = Table(*HEADINGS, title=f"{load.nodes:,} nodes, {load.rate:,} pods per second")
    for each in rows:
        table.add_row(*each)
    Console().print(table)
    if markdown is not None:
        flags = f"--nodes {load.nodes} --rate {load.rate} --burst {load.burst} --turns {turns}"
        lines = [
            f"Measured {today()}: {machine()}. Load average {os.getloadavg()[0]:.0f}.",
            "",
            f"    python -m benchmarks page {flags}",
            "",
            *markdown_table(HEADINGS, rows),
        ]
        put_between(markdown, "page", lines)
