"""`bayplan demo`: a first simulation, with the examples that the package carries."""

import shlex
import shutil
from pathlib import Path

import click
from rich.text import Text

from bayplan.api.objects import DEFAULT_SCHEDULER
from bayplan.cli.configuration import read_config
from bayplan.cli.console import show
from bayplan.cli.epilogs import examples
from bayplan.cli.problems import refusals
from bayplan.cli.streams import fail
from bayplan.example_files import examples_folder
from bayplan.plugins.registry import Registry
from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.output.result import SimulationResult
from bayplan.sim.simulation import Simulation

#: What tools leave in a checkout.
_NO_EXAMPLE = ("__pycache__", ".*", "*.egg-info", "build", "dist", "runs")

_FIRST_HINTS = (
    "This cluster is an example. Try next:",
    "",
    "    bayplan demo --write examples        # the files of this and of other examples",
    "    bayplan capture -o cluster.yaml      # the objects of your own cluster, as a file",
    "    bayplan simulate cluster.yaml        # place the pods that have no node",
    "    bayplan plugins new PreferQuietNodes # a scheduling policy of your own",
)


@click.command(
    "demo",
    epilog=examples(
        "bayplan demo                                          # simulate 12 nodes and 32 pods",
        "bayplan demo --write examples                         # and write the files, to edit them",
    ),
)
@click.option(
    "--write", "folder", metavar="DIR", help="Write all example files to this folder, too"
)
def demo_command(folder: str | None) -> None:
    """Simulate a small cluster that the package carries, and show what to try next.

    The command needs no cluster and no files. Without --write, it writes nothing.
    """
    try:
        source = examples_folder()
    except FileNotFoundError as problem:
        fail(str(problem))
    if folder is not None:
        target = Path(folder)
        _write(source, target)
        source = target
    with refusals():
        result = _simulated(source / "quickstart")
    hints = _FIRST_HINTS if folder is None else _file_hints(result, Path(folder))
    show([*result.parts(), Text(""), *map(Text, hints)])


def _simulated(inputs: Path) -> SimulationResult:
    workload = load_inputs([str(inputs)]).for_scheduler(DEFAULT_SCHEDULER)
    return Simulation(workload, read_config(None, ""), Registry(), seed=0).run()


def _write(source: Path, target: Path) -> None:
    """Never overwrites existing files."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        fail(f"--write {target}: exists already; name another folder")
    ignored = shutil.ignore_patterns(*_NO_EXAMPLE)
    try:
        shutil.copytree(source, target, ignore=ignored, dirs_exist_ok=True)
    except OSError as problem:
        fail(f"--write {target}: cannot be written: {problem.strerror or problem}")


# ---- what to try next ----------------------------------------------------------------------


def _file_hints(result: SimulationResult, folder: Path) -> list[str]:
    count = sum(path.is_file() for path in folder.rglob("*"))
    at = shlex.quote(str(folder))
    waiting = next(iter(result.unschedulable))
    cheap = f"{at}/prefer_cheap_nodes"
    return [
        f"{folder} has {count} files. Try next:",
        "",
        "Record the same simulation, and ask why a pod waits:",
        f"    bayplan simulate {at}/quickstart --out runs/a",
        f"    bayplan why {waiting} --run runs/a",
        "A policy in ten lines, which prefers cheap nodes:",
        f"    bayplan simulate {cheap}.scenario.yaml --plugin {cheap}.py \\",
        f"      --config {cheap}.config.yaml",
        "Jobs that run together or not at all:",
        f"    bayplan simulate {at}/gangs",
    ]
