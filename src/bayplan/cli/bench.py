"""`bayplan bench`: run files of scheduler_perf and report how fast pods were bound."""

import asyncio
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import click
import msgspec

from bayplan.answers.formats import OutputFormat
from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.console import progress, show
from bayplan.cli.epilogs import examples
from bayplan.cli.options import config_option, output_option, plugin_option, seed_option
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import refusals
from bayplan.cli.streams import EXIT_BAD_INPUT, EXIT_FAILED, fail, put, remark
from bayplan.clock import RealClock
from bayplan.perf.data_items import DataItems, data_items
from bayplan.perf.planning import Plan, RefusedWorkload, Selection, Setting, plan_all
from bayplan.perf.reading import ReadCase, read_files
from bayplan.perf.report import below_threshold, errors, listing, summary
from bayplan.perf.running import TIMEOUT_SECONDS, WorkloadOutcome, WorkloadRun
from bayplan.plugins.registry import Registry
from bayplan.profile.resolved_config import resolve
from bayplan.sim.input.errors import InputErrors


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """The command line, as click has read it."""

    paths: tuple[str, ...]
    names: tuple[str, ...]
    label_filter: str
    config_path: str | None
    plugins: tuple[str, ...]
    feature_gates: str
    kubernetes: str
    seed: int
    timeout: float
    is_list: bool
    output: OutputFormat
    out: str | None


@click.command(
    "bench",
    epilog=examples(
        "bayplan bench benchmarks/scenarios --name 500Nodes",
        "bayplan bench performance-config.yaml --label-filter performance --out results.json",
    ),
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="REGEX",
    help="Run only workloads whose TestCase/Workload matches; may be repeated",
)
@click.option(
    "--label-filter",
    default="",
    metavar="a,-b",
    help="Run only workloads with label a and without label b",
)
@config_option("Configuration to use instead of those that the files name")
@plugin_option()
@feature_gates_option("Feature gates; override those of the files; may be repeated")
@seed_option()
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=TIMEOUT_SECONDS,
    show_default=True,
    help="Longest wait for pods, in seconds",
)
@click.option(
    "--list",
    "is_list",
    is_flag=True,
    help="List the workloads, and why some cannot run, without running them",
)
@output_option("text", "json")
@click.option(
    "--out", metavar="FILE", help="File for the results, in scheduler_perf's format (DataItems)"
)
def bench_command(**values: Any) -> None:
    """Measure how fast pods are bound, with workloads of kube-scheduler's scheduler_perf.

    PATH is a file in the format of scheduler_perf, or a folder. In a folder, the command reads
    every performance-config.yaml below it, or, if there is none, every .yaml file in it. The
    cluster is embedded, and the clock is real.
    """
    options = _Options(**values)
    with refusals():
        registry = read_plugins(options.plugins)
        cases, plans = _planned(options, registry)
    if options.is_list:
        show([listing(plans, _labels(cases))])
        return
    runnable = [plan for plan in plans if isinstance(plan, Plan)]
    _remark_on_refused(plans)
    if runnable:
        _report(_run_all(runnable, registry, options), options)
    if len(runnable) < len(plans):
        sys.exit(EXIT_BAD_INPUT)


def _planned(
    options: _Options, registry: Registry
) -> tuple[list[ReadCase], list[Plan | RefusedWorkload]]:
    """Raises InputError and ConfigError."""
    errors = InputErrors()
    config = None
    if options.config_path is not None:
        config = read_config(
            options.config_path, options.feature_gates, kubernetes=options.kubernetes
        )
        resolve(config, registry)
    selection = Selection(_patterns(options.names), options.label_filter)
    cases = read_files(options.paths, errors)
    errors.raise_if_any()
    setting = Setting(registry, config, options.feature_gates)
    plans = plan_all(cases, selection, setting)
    if not plans:
        names = [f"{case.case.name}/{w.name}" for case in cases for w in case.case.workloads]
        shown = ", ".join(names[:_SHOWN_NAMES]) + (", …" if len(names) > _SHOWN_NAMES else "")
        fail(f"no workload matches --name and --label-filter; there are {len(names)}: {shown}")
    return cases, plans


_SHOWN_NAMES = 8


def _patterns(names: Sequence[str]) -> list[re.Pattern[str]]:
    patterns: list[re.Pattern[str]] = []
    for name in names:
        try:
            patterns.append(re.compile(name))
        except re.error as problem:
            fail(f"--name: found {name}, wanted a regular expression: {problem}")
    return patterns


def _labels(cases: Sequence[ReadCase]) -> dict[str, tuple[str, ...]]:
    return {
        f"{case.case.name}/{workload.name}": (*case.case.labels, *workload.labels)
        for case in cases
        for workload in case.case.workloads
    }


def _remark_on_refused(plans: Sequence[Plan | RefusedWorkload]) -> None:
    for plan in plans:
        if isinstance(plan, RefusedWorkload):
            for reason in plan.reasons:
                remark(f"{plan.name} cannot be run: {reason}")


def _run_all(plans: Sequence[Plan], registry: Registry, options: _Options) -> list[WorkloadOutcome]:
    outcomes: list[WorkloadOutcome] = []
    for plan in plans:
        outcomes.append(_run(plan, registry, options))
        # After an interruption, the file has the results so far.
        if options.out is not None:
            _write(_items(outcomes), options.out)
    return outcomes


def _run(plan: Plan, registry: Registry, options: _Options) -> WorkloadOutcome:
    with progress(plan.name), refusals():
        run = WorkloadRun(
            plan, registry, RealClock(), seed=options.seed, timeout_seconds=options.timeout
        )
        outcome = asyncio.run(run.play())
    if outcome.failure:
        remark(f"{outcome.name}: failed: {outcome.failure}")
    for line in (*errors(outcome), *below_threshold(outcome)):
        remark(line)
    return outcome


def _report(outcomes: Sequence[WorkloadOutcome], options: _Options) -> None:
    if options.output.name == "json":
        put(_json(_items(outcomes)))
    else:
        show(summary(outcomes))
    if any(outcome.has_failed for outcome in outcomes):
        sys.exit(EXIT_FAILED)


def _items(outcomes: Sequence[WorkloadOutcome]) -> DataItems:
    return data_items((one, outcome.threshold) for outcome in outcomes for one in outcome.measured)


def _write(items: DataItems, path: str) -> None:
    try:
        Path(path).write_bytes(_json(items))
    except OSError as problem:
        fail(f"{path}: cannot be written: {problem.strerror}")


def _json(items: DataItems) -> bytes:
    return msgspec.json.format(msgspec.json.encode(items), indent=2) + b"\n"
