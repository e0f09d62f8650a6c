"""How well `bayplan compare` uses a Dask cluster of this machine, against one process.

    python -m benchmarks dask [--runs 200] [--pods 8000] [--nodes 200] [--workers 2]

The same runs, of one input with as many seeds, are made by one process and by the workers of a
local cluster, which are processes with one thread each. The efficiency is the time of one process
divided by the time of the workers and by their number. It says something about the cluster only
if the machine has a free processor for each worker. The share of work does not depend on what else
the machine does: the processor time of one process, divided by that of the workers, the scheduler
and the client together. Exit status 1: the results differ, or both figures are below 0.9.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import click
from distributed import Client, LocalCluster

from bayplan.comparison.comparing import run_matrix
from bayplan.comparison.executors import DASK, executor_for
from bayplan.comparison.experiment import ConfigurationSpec, ExperimentSpec, InputSpec
from bayplan.comparison.job import Job
from bayplan.comparison.outputs import results_csv
from bayplan.comparison.planning import plan
from bayplan.comparison.table import Comparison
from benchmarks.machine import machine, markdown_table, today

_EFFICIENCY_MIN = 0.9


class Measurement(NamedTuple):
    """What one executor needed, and the results."""

    seconds: float
    #: Of all processes that take part.
    cpu_seconds: float
    results: bytes


def _input(folder: Path, nodes: int, pods: int) -> Path:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "500"}
    requests = {"cpu": "100m", "memory": "100Mi"}
    container = {"name": "c", "image": "app", "resources": {"requests": requests}}
    items: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{i}"}, "status": status}
        for i in range(nodes)
        for status in ({"allocatable": amounts, "capacity": amounts},)
    ]
    items += [
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}
        for i in range(pods)
        for meta in ({"name": f"p{i}", "namespace": "default", "labels": {"app": f"a{i % 40}"}},)
    ]
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return file


def _jobs(file: Path, runs: int) -> tuple[Job, ...]:
    spec = ExperimentSpec(
        inputs=(InputSpec(paths=(str(file),)),),
        configurations=(ConfigurationSpec(name="default"),),
        seeds=f"0..{runs - 1}",
    )
    return tuple(plan(spec, "the benchmark").jobs)


def _results(jobs: tuple[Job, ...], executor: Executor, in_flight: int) -> bytes:
    count = 0

    def show(_run: object, _was_there: bool) -> None:
        nonlocal count
        count += 1
        if count % max(len(jobs) // 20, 1) == 0:
            print(f"{count} of {len(jobs)} runs", file=sys.stderr)

    runs = run_matrix(jobs, executor, in_flight, None, on_run=show)
    return results_csv(Comparison(runs, "default"))


def _here(jobs: tuple[Job, ...]) -> Measurement:
    start, cpu = perf_counter(), process_time()
    with executor_for(None, 1) as executor:
        results = _results(jobs, executor, 1)
    return Measurement(perf_counter() - start, process_time() - cpu, results)


@contextmanager
def _cluster(workers: int) -> Iterator[str]:
    """The address of the scheduler, which runs in this process."""
    options: dict[str, Any] = {"dashboard_address": None, "host": "127.0.0.1"}
    cluster: Any
    with LocalCluster(n_workers=workers, threads_per_worker=1, **options) as cluster:
        yield cluster.scheduler_address


def _on_workers(jobs: tuple[Job, ...], workers: int) -> Measurement:
    client: Any
    with _cluster(workers) as address, Client(address, set_as_default=False) as client:

        def cpu_seconds() -> float:
            return process_time() + sum(client.run(process_time).values())

        start, cpu = perf_counter(), cpu_seconds()
        with executor_for(DASK + address.removeprefix("tcp://"), 1) as executor:
            results = _results(jobs, executor, len(jobs))
        return Measurement(perf_counter() - start, cpu_seconds() - cpu, results)


@click.command(help=__doc__)
@click.option("--runs", default=200, show_default=True)
@click.option("--pods", default=8_000, show_default=True)
@click.option("--nodes", default=200, show_default=True)
@click.option("--workers", default=2, show_default=True)
def main(runs: int, pods: int, nodes: int, workers: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        jobs = _jobs(_input(Path(folder), nodes, pods), runs)
        here, there = _here(jobs), _on_workers(jobs, workers)
    efficiency = here.seconds / there.seconds / workers
    work = here.cpu_seconds / there.cpu_seconds
    figures = [
        ["one process", f"{here.seconds:.1f}", f"{here.cpu_seconds:.1f}", "", ""],
        [
            f"{workers} workers",
            f"{there.seconds:.1f}",
            f"{there.cpu_seconds:.1f}",
            f"{efficiency:.2f}",
            f"{work:.2f}",
        ],
    ]
    headings = [f"{runs} runs of {pods:,} pods", "s", "CPU s", "efficiency", "share of work"]
    print(f"Measured {today()}: {machine()}.\n")
    print("\n".join(markdown_table(headings, figures)))
    if here.results != there.results:
        sys.exit("the results of the workers are not those of one process")
    if max(efficiency, work) < _EFFICIENCY_MIN:
        sys.exit(f"the efficiency is below {_EFFICIENCY_MIN}")
