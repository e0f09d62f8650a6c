"""`bayplan compare`: run several configurations over the same pods and seeds."""

import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import click
from msgspec import structs

from bayplan.answers.formats import OutputFormat
from bayplan.cli.console import ProgressLines, progress, show_answer
from bayplan.cli.epilogs import examples
from bayplan.cli.options import WholeNumber, output_option, plugin_option
from bayplan.cli.pflag import feature_gates_option, kubernetes_option
from bayplan.cli.problems import refusals
from bayplan.cli.streams import EXIT_FAILED, fail, remark
from bayplan.comparison.comparing import OnRun, RunFailed, performed
from bayplan.comparison.decisions import Decisions, decisions_in, differences
from bayplan.comparison.executors import ExecutorError
from bayplan.comparison.experiment import (
    ConfigurationSpec,
    ExperimentSpec,
    InputSpec,
    is_experiment,
    read_experiment,
)
from bayplan.comparison.outputs import missing_packages, write_outputs
from bayplan.comparison.planning import Plan, plan
from bayplan.comparison.report import comparison_answer, run_differences
from bayplan.comparison.store import Run, decisions_of, is_compared_run
from bayplan.comparison.table import Comparison
from bayplan.lazy_loader import load
from bayplan.sim.input.errors import InputErrors
from bayplan.sim.output.run_folder import RunFolder, is_run
from bayplan.sim.simulation import OnProgress


@final
@dataclass(frozen=True, kw_only=True)
class _Options:
    """The command line, as click has read it."""

    paths: tuple[str, ...]
    configs: tuple[str, ...]
    plugins: tuple[str, ...]
    nodes: tuple[str, ...]
    pods: tuple[str, ...]
    feature_gates: str
    kubernetes: tuple[str, ...]
    seeds: str | None
    time_mode: str | None
    metrics: tuple[str, ...]
    baseline: str
    processes: int
    executor: str | None
    output: OutputFormat
    out: str | None
    strict: bool
    is_shown: bool


@click.command(
    "compare",
    epilog=examples(
        "bayplan compare cluster.yaml --config a.yaml --config b.yaml --seeds 0..9 --out runs/ab",
        "bayplan compare experiment.yaml --out runs/racks",
        "bayplan compare runs/before runs/after",
    ),
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="FILE",
    help="Configuration to compare; may be repeated",
)
@plugin_option()
@click.option(
    "--nodes", multiple=True, metavar="FILE", help="Nodes; replace the inputs of the experiment"
)
@click.option(
    "--pods", multiple=True, metavar="FILE", help="Pods; replace the inputs of the experiment"
)
@feature_gates_option(version=kubernetes_option(multiple=True))
@click.option("--seeds", metavar="0..9", help="Seeds to run each configuration with. Default: 0")
@click.option(
    "--time",
    "time_mode",
    type=click.Choice(("arrivals", "trace")),
    help="As for `bayplan simulate`",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Metric to measure; may be repeated. Default: all",
)
@click.option(
    "--baseline",
    default="",
    metavar="NAME",
    help="Configuration that the others are compared with. Default: the first",
)
@click.option(
    "--processes",
    type=WholeNumber(min=0),
    default=0,
    metavar="N",
    help="Number of processes. Default: one per processor",
)
@click.option("--executor", metavar="dask://HOST:PORT", help="Existing Dask cluster to run on")
@output_option()
@click.option(
    "--out",
    metavar="DIR",
    help="Folder for results, report and runs. Runs that are in it already are not repeated",
)
@click.option("--strict", is_flag=True, help="Refuse kinds and fields that nothing reads")
@click.option(
    "--ui", "is_shown", is_flag=True, help="Show the progress and the comparison in a browser"
)
def compare_command(**values: Any) -> None:
    """Run several configurations over the same pods and seeds, and report what differs.

    PATH is an experiment (kind: Experiment), or an input as for `bayplan simulate` with one
    --config per configuration. If the paths are two runs that `simulate --out` wrote, the command
    compares their decisions. The exit code is then 1 if decisions differ.
    """
    options = _Options(**values)
    folders = [Path(path) for path in options.paths]
    if all(is_run(path) or is_compared_run(path) for path in folders):
        if options.is_shown:
            _show_runs(folders, options.plugins)
        _compare_runs(folders, options.output)
        return
    with refusals():
        spec, source, title = _spec(options)
        with progress("reading"):
            planned = plan(spec, source, is_strict=options.strict)
    comparison = (_shown if options.is_shown else _reported)(planned, options, title)
    if any(failure.is_defect for _, failure in comparison.failures):
        sys.exit(EXIT_FAILED)


# ---- what is compared ----------------------------------------------------------------------


def _spec(options: _Options) -> tuple[ExperimentSpec, str, str]:
    """(experiment, source of the experiment, title). Raises InputError."""
    [first, *further] = options.paths
    if not further and is_experiment(first):
        return _from_file(first, options)
    errors = InputErrors()
    if not options.configs and len(options.kubernetes) < 2:
        errors.add("--config", "found none, wanted one or more, or an experiment file")
    if options.nodes or options.pods:
        errors.add("--nodes, --pods", "these options need an experiment file")
    errors.raise_if_any()
    spec = ExperimentSpec(
        inputs=(InputSpec(paths=options.paths),),
        configurations=tuple(_configurations(options)),
    )
    return _with_flags(spec, options), "command line", "Comparison"


def _configurations(options: _Options) -> Iterator[ConfigurationSpec]:
    """Each configuration, in each version of kube-scheduler that is named."""
    files: list[tuple[str, str | None]] = [*_named(options.configs)] or [("default", None)]
    versions = options.kubernetes or ("",)
    for name, path in files:
        for version in versions:
            whole_name = f"{name} {version}" if len(versions) > 1 else name
            if not options.configs:
                whole_name = version
            yield ConfigurationSpec(
                name=whole_name,
                file=path,
                feature_gates=options.feature_gates,
                kubernetes=version,
            )


def _named(paths: tuple[str, ...]) -> list[tuple[str, str]]:
    """Files by their stems, or by their paths if two files have the same stem."""
    stems = [Path(path).stem for path in paths]
    return [
        (stem if stems.count(stem) == 1 else path, path)
        for stem, path in zip(stems, paths, strict=True)
    ]


def _from_file(path: str, options: _Options) -> tuple[ExperimentSpec, str, str]:
    errors = InputErrors()
    document = read_experiment(path, errors)
    if options.configs:
        errors.add("--config", f"the configurations are in {path}")
    errors.raise_if_any()
    assert document is not None
    spec = document.spec
    if options.nodes or options.pods:
        command_line_input = InputSpec(paths=(*options.nodes, *options.pods))
        spec = structs.replace(spec, inputs=(command_line_input,))
    name = document.metadata.name or Path(path).stem
    return _with_flags(spec, options), path, f"Comparison: {name}"


def _with_flags(spec: ExperimentSpec, options: _Options) -> ExperimentSpec:
    """The command line overrides the file."""
    flags = {
        "seeds": options.seeds,
        "time": options.time_mode,
        "metrics": options.metrics,
        "baseline": options.baseline,
    }
    changed: dict[str, Any] = {name: value for name, value in flags.items() if value}
    plugins = (*spec.plugins, *options.plugins)
    return structs.replace(spec, plugins=plugins, **changed)


# ---- the page ------------------------------------------------------------------------------


def _shown(planned: Plan, options: _Options, title: str) -> Comparison:
    """Show the progress, then the comparison, until an interrupt."""
    with load("bayplan.cli.ui:page_of")(title, "The runs are under way.", "run") as (page, work):
        comparison = _reported(planned, options, title, work.update)
        page.show(load("bayplan.ui.work:ComparisonSubject")(comparison, title))
    return comparison


def _show_runs(folders: list[Path], plugins: tuple[str, ...]) -> None:
    """Two runs of `bayplan simulate`, side by side, until an interrupt."""
    if len(folders) != 2 or not all(is_run(folder) for folder in folders):
        fail("--ui: the page needs two runs that `bayplan simulate --out` wrote")
    subject, files = load("bayplan.ui.subjects:RunSubject"), [Path(plugin) for plugin in plugins]
    shown = [subject(RunFolder(folder, plugins=files), remark) for folder in folders]
    load("bayplan.cli.ui:serve")(shown, load("bayplan.ui.server:UiOptions")())


# ---- running -------------------------------------------------------------------------------


def _reported(
    planned: Plan, options: _Options, title: str, update: OnProgress | None = None
) -> Comparison:
    """``update``: gets the progress, too."""
    comparison = _performed(planned, options, update or _ignore)
    _print(comparison, options, title)
    return comparison


def _ignore(_done: int, _total: int) -> None: ...


def _performed(planned: Plan, options: _Options, update: OnProgress) -> Comparison:
    out = None if options.out is None else Path(options.out)
    done = itertools.count(1)
    there_count = 0
    update(0, len(planned.jobs))
    try:
        with refusals(), _bar(len(planned.jobs)) as show_run:

            def on_run(run: Run, was_there: bool) -> None:
                nonlocal there_count
                there_count += was_there
                show_run(run, was_there)
                update(next(done), len(planned.jobs))

            comparison = performed(
                planned, out, options.executor, on_run, processes=options.processes
            )
        if there_count:
            remark(f"{there_count:,} of {len(planned.jobs):,} runs existed already")
        return comparison
    except ExecutorError as problem:
        fail(str(problem))
    except RunFailed as problem:
        remark(f"a run failed: {problem}")
        sys.exit(EXIT_FAILED)
    except KeyboardInterrupt:
        if out is not None:
            remark(f"finished runs are in {out}; repeat the command to run the others")
        raise click.Abort from None


@contextmanager
def _bar(count: int) -> Iterator[OnRun]:
    """The progress of the runs: a bar on a terminal, otherwise a line from time to time."""
    done = itertools.count(1)
    if not sys.stderr.isatty():
        lines = ProgressLines("runs")
        yield lambda _run, _was_there: lines.update(next(done), count)
        return
    with progress("running", "runs") as update:
        yield lambda run, _: update(next(done), count, f"{run.configuration}, seed {run.seed}")


def _print(comparison: Comparison, options: _Options, title: str) -> None:
    if options.out is not None:
        with refusals():
            written = write_outputs(comparison, Path(options.out), title)
        remark(f"written to {options.out}: {', '.join(written)}")
        if missing := missing_packages():
            remark(missing)
    show_answer(comparison_answer(comparison, title), options.output)


# ---- two runs ------------------------------------------------------------------------------


def _compare_runs(folders: list[Path], output: OutputFormat) -> None:
    if len(folders) != 2:
        fail(f"runs: found {len(folders)}, wanted two, to compare their decisions")
    one, other = folders
    with refusals():
        differing = differences(_decisions(one), _decisions(other))
    show_answer(run_differences(differing, (str(one), str(other))), output)
    if differing:
        sys.exit(EXIT_FAILED)


def _decisions(folder: Path) -> Decisions:
    """The decisions of a run that `simulate` or `compare` wrote. Raises RunFolderError."""
    if is_compared_run(folder):
        return decisions_of(folder)
    return decisions_in(RunFolder(folder).journal())
