"""The whole command `bayplan simulate` beside the engine alone, on one load and in one run.

    python -m benchmarks simulate [--shape basic-5000] [--rounds 3] [--markdown RESULTS.md]

The command is a process of its own: it reads the cluster and the pods from a file, places the pods
and prints its report. The engine alone places the same pods: from the queue's pop to the bind
effect. Both are measured in processor time, in turns, and the best round of each counts, because
other programs only add time, and the first round of the command also compiles its modules. Exit
status 1: the command failed, or a pod has no node.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

import click
import msgspec

from benchmarks import shapes
from benchmarks.bench_start import environment
from benchmarks.engine_run import discarded_log, loaded, settled_memory
from benchmarks.machine import machine, markdown_table, put_between, today
from benchmarks.shapes import SHAPES, Shape

HEADINGS = ("what", "nodes", "pods", "CPU seconds", "pods/s", "times the engine's")


def manifest(shape: Shape) -> bytes:
    """The nodes and the pods of a shape as one List."""
    typed = [("v1", "Node", content) for content in shapes.nodes(shape)]
    typed += [("v1", "Pod", content) for content in shapes.pods(shape)]
    items = [{"apiVersion": version, "kind": kind, **one} for version, kind, one in typed]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})


def command_seconds(path: Path, pods: int, env: dict[str, str]) -> float:
    """CPU seconds of the command. Exits if not every pod finds a node."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", "from bayplan.cli import main; main()"]
    done = subprocess.run(
        [*command, "simulate", str(path), "-o", "json"],
        check=False,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"bayplan simulate ended with status {done.returncode}")
    scheduled = msgspec.json.decode(done.stdout)["counts"]["scheduled"]
    if scheduled != pods:
        sys.exit(f"{scheduled:,} of {pods:,} pods were placed")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def engine_seconds(shape: Shape) -> float:
    """CPU seconds of the engine alone. Exits if not every pod finds a node."""
    scheduler, attempts = loaded(shape), 0
    with discarded_log(), settled_memory():
        start = process_time()
        while scheduler.schedule_one():
            attempts += len(scheduler.take_effects()) > 0
        seconds = process_time() - start
    if attempts != shape.pods:
        sys.exit(f"the engine placed {attempts:,} of {shape.pods:,} pods")
    return seconds


@click.command(help=__doc__)
@click.option("--shape", "name", default="basic-5000", show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--markdown", type=click.Path(path_type=Path))
def main(name: str, rounds: int, markdown: Path | None) -> None:
    [shape] = [one for one in SHAPES if one.name == name]
    commands: list[float] = []
    engines: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.json"
        path.write_bytes(manifest(shape))
        # The first round writes the bytecode, as pip does it.
        env = environment(str(Path(folder) / "bytecode"), without_bytecode=False)
        for _ in range(rounds):
            commands.append(command_seconds(path, shape.pods, env))
            engines.append(engine_seconds(shape))
    engine = min(engines)
    sides = (("bayplan simulate", min(commands)), ("engine alone", engine))
    rows = [
        (
            what,
            f"{shape.nodes:,}",
            f"{shape.pods:,}",
            f"{seconds:.2f}",
            f"{shape.pods / seconds:,.0f}",
            f"{seconds / engine:.1f}",
        )
        for what, seconds in sides
    ]
    table = markdown_table(HEADINGS, rows)
    print("\n".join(table))
    if markdown is not None:
        measured = f"Measured {today()}: {machine()}. Load average {os.getloadavg()[0]:.0f}."
        put_between(
            markdown,
            "simulate",
            [measured, "", "    python -m benchmarks simulate", "", *table],
        )
