"""`bayplan simulate`: play a cluster and a workload under virtual time."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bayplan.cli.console import reader
from bayplan.cli.problems import read_config, refusals
from bayplan.journal import FileSink, Sink
from bayplan.plugins.registry import default_registry
from bayplan.sim.inputs import load_inputs
from bayplan.sim.report import summary
from bayplan.sim.result import SimulationResult
from bayplan.sim.run_folder import Manifest, RunFolder
from bayplan.sim.simulation import OnProgress, Simulation
from bayplan.sim.workload import Workload

#: The name of the default profile: without a configuration every pending pod is scheduled with it.
_DEFAULT_PROFILE = "default-scheduler"


@click.command("simulate")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option("--config", "config_path", metavar="FILE", help="KubeSchedulerConfiguration v1")
@click.option("--plugin", "plugins", multiple=True, metavar="FILE.py", help="further plugins")
@click.option("--feature-gates", default="", metavar="A=true,…", help="as kube-scheduler's")
@click.option("--seed", default=0, show_default=True, help="decides ties between nodes")
@click.option(
    "--time",
    "time_mode",
    type=click.Choice(("arrivals", "trace")),
    default="arrivals",
    show_default=True,
    help="traces: place in order and never remove, or replay the trace's times",
)
@click.option("--format", "output", type=click.Choice(("text", "json")), default="text")
@click.option("--out", metavar="DIR", help="keep summary, placements, journal and inputs here")
def simulate_command(
    paths: tuple[str, ...],
    config_path: str | None,
    plugins: tuple[str, ...],
    feature_gates: str,
    seed: int,
    time_mode: str,
    output: str,
    out: str | None,
) -> None:
    """Place the pods of PATH… on the nodes of PATH… and say what became of them.

    PATH: files or folders of Kubernetes objects as `kubectl get … -o yaml` prints them, scenario
    files, the openb trace's CSVs, or - for standard input.
    """
    with refusals():
        registry = default_registry(plugins)
        config = read_config(config_path, feature_gates)
        workload = load_inputs(paths, time_mode=time_mode)
        if config_path is None:
            workload = workload.for_scheduler(_DEFAULT_PROFILE)
        manifest = Manifest(
            seed=seed,
            config=config.text if config_path is not None else None,
            feature_gates=feature_gates,
            plugins=tuple(f"plugin-{i}-{Path(p).name}" for i, p in enumerate(plugins)),
        )
        with _kept(out, manifest, workload, [Path(p) for p in plugins]) as (sinks, folder):
            with _progress(workload.pod_count) as tell:
                simulation = Simulation(
                    workload, config, registry, seed=seed, sinks=sinks, on_progress=tell
                )
                result = simulation.run()
            if folder is not None:
                folder.finish(result)
        _print(result, output)


@contextmanager
def _kept(
    out: str | None, manifest: Manifest, workload: Workload, plugin_files: list[Path]
) -> Iterator[tuple[Sequence[Sink], RunFolder | None]]:
    """Where the journal goes: into the folder, if there is to be one."""
    if out is None:
        yield (), None
        return
    folder = RunFolder(Path(out))
    with folder.start(manifest, workload, plugin_files) as file:
        yield (FileSink(file),), folder


@contextmanager
def _progress(pod_count: int) -> Iterator[OnProgress | None]:
    """A bar on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty() or not pod_count:
        yield None
        return
    columns = (TextColumn("pods"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("pods", total=pod_count)
        yield lambda done, _total: progress.update(task, completed=done)


def _print(result: SimulationResult, output: str) -> None:
    if output == "json":
        sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
        sys.stdout.buffer.flush()
    else:
        reader().print(summary(result))
