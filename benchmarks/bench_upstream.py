"""Run upstream's own scheduler_perf files, unchanged, each workload in its smallest size.

    python -m benchmarks upstream [--folder DIR] [--markdown docs/benchmarks.md]

DIR is test/integration/scheduler_perf of Kubernetes; without it, Go downloads the module once. The
smallest sizes are the workloads with the labels "integration-test" and "short", or the first one.
All other workloads are planned, which finds what cannot run. What is in `EXCEPTIONS` may not run.
Exit status 1: another workload cannot run or fails, or an exception can run.
"""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import click

from bayplan.clock import RealClock
from bayplan.perf.planning import Plan, RefusedWorkload, Selection, Setting, plan_all
from bayplan.perf.reading import ReadCase, read_files
from bayplan.perf.running import WorkloadRun
from bayplan.plugins.registry import Registry, default_registry
from bayplan.sim.input.errors import InputErrors
from benchmarks.machine import machine, markdown_table, put_between, today

#: Upstream runs these for each pull request.
SMALLEST = {"integration-test", "short"}
_MODULE = "k8s.io/kubernetes"
_PERF = "test/integration/scheduler_perf"
#: A Go module that requires Kubernetes in the version of the e2e specs.
_GO_MODULE = Path(__file__).parents[1] / "tests" / "e2e" / "programs" / "kubernetes"
_MARKS = "upstream"

#: Patterns of "TestCase/Workload" → why these do not run.
EXCEPTIONS = {
    "NodeDeclaredFeaturesEnabled/*": (
        "Upstream's Go code reads the parameter `numNodeDeclaredFeatures` and writes features into "
        "the nodes. No operation of the file does."
    ),
    "SchedulingBasic/*_NodeDeclaredFeaturesDisabled": (
        "The gate `NodeDeclaredFeatures` is locked in 1.37. Upstream emulates 1.36 for this one."
    ),
    "SchedulingWithResourceClaimTemplate/empty_[12]00nodes": (
        "The file has no value for the parameter `measurePods`, which an operation uses."
    ),
}
#: Test cases whose attempts fail by an error in kube-scheduler, too.
ERRORS = {
    "StarvationPodGroup": (
        "the pods have priority 1000 and their PodGroup has 0, which kube-scheduler refuses, too"
    ),
}


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one workload."""

    name: str
    #: Why it does not run; "" if it runs.
    exception: str = ""
    #: The deviation from the expected result; "" for none.
    problem: str = ""
    #: Whether it is one of the smallest workloads and was run.
    has_run: bool = False


@dataclass(frozen=True, slots=True)
class CaseResults:
    """The results of a test case."""

    folder: str
    workloads: list[Result]


def exception_of(name: str) -> str:
    """Why a workload does not run; "" if it should run. ``name``: "TestCase/Workload"."""
    reasons = (reason for pattern, reason in EXCEPTIONS.items() if fnmatchcase(name, pattern))
    return next(reasons, "")


def upstream_folder() -> Path:
    """The folder in Go's module cache. Exits with a message if Go cannot download it."""
    go = ["go", "mod", "download", _MODULE]
    listing = ["go", "list", "-m", "-f", "{{.Dir}}", _MODULE]
    try:
        subprocess.run(go, cwd=_GO_MODULE, check=True)
        done = subprocess.run(listing, cwd=_GO_MODULE, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        sys.exit(f"{_MODULE} cannot be downloaded: {problem}; give --folder {_PERF}")
    return Path(done.stdout.strip()) / _PERF


def cases_of(folder: Path) -> list[ReadCase]:
    """All test cases. Raises InputError."""
    errors = InputErrors()
    cases = read_files([str(folder)], errors)
    errors.raise_if_any()
    return cases


def smallest_of(case: ReadCase) -> set[str]:
    """The names of the smallest workloads; without labels, of the first one."""
    workloads = case.case.workloads
    labelled = [one for one in workloads if {*case.case.labels, *one.labels} >= SMALLEST]
    return {f"{case.case.name}/{one.name}" for one in labelled or workloads[:1]}


def failure_of(plan: Plan, registry: Registry) -> str:
    """Run a workload. Returns what failed; "" for nothing."""
    outcome = asyncio.run(WorkloadRun(plan, registry, RealClock()).play())
    has_errors = outcome.error_count and plan.name.partition("/")[0] not in ERRORS
    errors = [f"{outcome.error_count} attempts failed by an error"] if has_errors else []
    failures = [f"{count} failures of {name}" for name, count in outcome.plugin_failures.items()]
    return "; ".join(filter(None, [outcome.failure, *errors, *failures]))


def result_of(plan: Plan | RefusedWorkload, registry: Registry, *, runs: bool) -> Result:
    """Run a workload, or only check whether it can run."""
    exception = exception_of(plan.name)
    if isinstance(plan, RefusedWorkload):
        reasons = "; ".join(plan.reasons)
        return Result(plan.name, exception or reasons, "" if exception else reasons)
    if exception:
        return Result(plan.name, problem="it is listed as an exception, and can run")
    failure = ""
    if runs:
        click.echo(plan.name, err=True)
        failure = failure_of(plan, registry)
    return Result(plan.name, problem=failure, has_run=runs)


def results_of(case: ReadCase, folder: Path, registry: Registry) -> CaseResults:
    """Plan all workloads of a test case, and run the smallest ones."""
    smallest = smallest_of(case)
    return CaseResults(
        str(case.source.parent.relative_to(folder)),
        [
            result_of(plan, registry, runs=plan.name in smallest)
            for plan in plan_all([case], Selection(), Setting(registry))
        ],
    )


def lines_of(cases: Sequence[CaseResults], version: str) -> list[str]:
    """The workloads that ran, by folder, and the exceptions."""
    results = [one for case in cases for one in case.workloads]
    runnable = [one for one in results if not one.exception]
    lines = [
        (
            f"Run {today()} with the files of Kubernetes {version}: {machine()}. Of the "
            f"{len(results)} workloads in {len(cases)} test cases, {len(runnable)} can run."
        ),
        "",
        *markdown_table(
            ("folder", "test cases", "smallest workloads run", "workloads that can run", "of"),
            (
                _cells(folder, [one for one in cases if one.folder == folder])
                for folder in dict.fromkeys(case.folder for case in cases)
            ),
        ),
        "",
        "| workloads | count | why they do not run |",
        "| --- | ---: | --- |",
    ]
    for pattern, reason in EXCEPTIONS.items():
        count = sum(fnmatchcase(one.name, pattern) for one in results)
        lines.append(f"| `{pattern}` | {count} | {reason} |")
    errors = (f"In {name}, {reason}." for name, reason in ERRORS.items())
    return [*lines, "", *errors]


def _cells(folder: str, cases: Sequence[CaseResults]) -> list[str]:
    results = [one for case in cases for one in case.workloads]
    counts = (
        len(cases),
        sum(one.has_run for one in results),
        sum(not one.exception for one in results),
        len(results),
    )
    return [folder, *map(str, counts)]


@click.command()
@click.option("--folder", type=click.Path(path_type=Path), help=f"{_PERF} of Kubernetes")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the tables into this file")
@click.option("--only", default="", help="Only test cases with this text in their name")
def main(folder: Path | None, markdown: Path | None, only: str) -> None:
    """Run upstream's scheduler_perf files."""
    folder = upstream_folder() if folder is None else folder
    registry = default_registry(())
    cases = [
        results_of(case, folder, registry) for case in cases_of(folder) if only in case.case.name
    ]
    _, _, version = folder.parents[2].name.partition("@v")
    lines = lines_of(cases, version or "(version unknown)")
    click.echo("\n".join(lines))
    if markdown is not None:
        put_between(markdown, _MARKS, lines)
    problems = [
        f"{one.name}: {one.problem}" for case in cases for one in case.workloads if one.problem
    ]
    if problems:
        sys.exit("\n".join(["not as expected:", *problems]))
