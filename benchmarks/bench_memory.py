"""Peak memory of a scheduler of a large cluster, and of kube-scheduler with the same cluster.

    python -m benchmarks memory [--sizes 5000x100000,50000x500000]
        [--kube-scheduler BINARY] [--markdown benchmarks/RESULTS.md]

Each size runs in its own process: the scheduler gets nodes and placed pods one by one, as from a
watch, and then a thousand pods are placed. The operating system reports the peak.
kube-scheduler is measured at the first size: it watches an API server of this process with the same
objects, and is stopped when it has bound the same thousand pods. It is the whole program and reads
JSON, while a real API server sends protobuf. Bayplan's side is the engine with decoded objects. So
the difference is an upper bound.
"""

import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter

import click
from rich.console import Console
from rich.table import Table

from benchmarks.engine_run import loaded
from benchmarks.machine import machine, markdown_table, put_between, today
from benchmarks.placed_api import PlacedApi
from benchmarks.shapes import Shape

PENDING = 1000
MIB = 2**20
#: Bytes per unit of the operating system.
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
HEADINGS = ("who", "nodes", "placed pods", "seconds", "peak MiB", "bytes per pod")
KUBECONFIG = """{{apiVersion: v1, kind: Config, current-context: c,
clusters: [{{name: c, cluster: {{server: "{url}"}}}}],
contexts: [{{name: c, context: {{cluster: c, user: u}}}}], users: [{{name: u, user: {{}}}}]}}
"""


@dataclass(frozen=True, slots=True)
class Peak:
    who: str
    nodes: int
    pods: int
    seconds: float
    peak_bytes: int

    def cells(self) -> tuple[str, ...]:
        per_pod = f"{self.peak_bytes / self.pods:,.0f}"
        sizes = (f"{self.nodes:,}", f"{self.pods:,}")
        return (self.who, *sizes, f"{self.seconds:.0f}", f"{self.peak_bytes / MIB:,.0f}", per_pod)


def shape_of(size: str) -> Shape:
    nodes, pods = (int(part) for part in size.split("x"))
    return Shape("memory", nodes, "default", PENDING, init_pods=pods)


def measure_here(size: str) -> None:
    """Measure in this process. Prints seconds and peak in bytes."""
    start, shape = perf_counter(), shape_of(size)
    scheduler = loaded(shape)
    for _ in islice(iter(scheduler.schedule_one, False), PENDING):
        scheduler.take_effects()
    placed = len(scheduler.cache.pods())
    assert placed == shape.init_pods + PENDING, "some pods have no node"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT
    click.echo(f"{perf_counter() - start:.1f} {peak}")


def ours(size: str) -> Peak:
    command = [sys.executable, "-m", "benchmarks", "memory", "--here", size]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, peak = done.stdout.split()
    shape = shape_of(size)
    return Peak("Bayplan", shape.nodes, shape.init_pods, float(seconds), int(peak))


def peers(size: str, binary: Path, limit_seconds: float) -> Peak:
    """Measure kube-scheduler. Raises TimeoutError."""
    shape = shape_of(size)
    with PlacedApi(shape) as api, tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(url=api.url), encoding="utf-8")
        command = [str(binary), f"--kubeconfig={kubeconfig}", "--leader-elect=false"]
        command += ["--secure-port=0", "--kube-api-qps=5000", "--kube-api-burst=5000"]
        start = perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        is_done = api.is_done.wait(limit_seconds)
        seconds = perf_counter() - start
        child.kill()
        _, _, usage = os.wait4(child.pid, 0)
        child.returncode = 0
    if not is_done:
        raise TimeoutError(f"{binary} did not bind {PENDING} pods within {limit_seconds:g} s")
    return Peak(binary.name, shape.nodes, shape.init_pods, seconds, usage.ru_maxrss * RSS_UNIT)


@click.command(help=__doc__)
@click.option("--sizes", default="5000x100000,50000x500000", help="NODESxPODS, …")
@click.option("--kube-scheduler", "binary", type=click.Path(path_type=Path, exists=True))
@click.option("--limit", default=600.0, help="seconds that kube-scheduler may take")
@click.option("--markdown", type=click.Path(path_type=Path, exists=True))
@click.option("--here", help="measure one size in this process")
def main(
    sizes: str, binary: Path | None, limit: float, markdown: Path | None, here: str | None
) -> None:
    if here is not None:
        measure_here(here)
        return
    cluster_sizes = sizes.split(",")
    peaks = [ours(size) for size in cluster_sizes]
    if binary is not None:
        peaks.insert(1, peers(cluster_sizes[0], binary, limit))
    table = Table(*HEADINGS)
    for peak in peaks:
        table.add_row(*peak.cells())
    Console().print(table)
    if markdown is not None:
        text = [f"Measured {today()}: {machine()}.", ""]
        text += ["    python -m benchmarks memory --kube-scheduler BINARY", ""]
        put_between(
            markdown,
            "memory",
            [*text, *markdown_table(HEADINGS, [peak.cells() for peak in peaks])],
        )
