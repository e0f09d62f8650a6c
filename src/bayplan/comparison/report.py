"""The report of a comparison on the terminal."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bayplan.comparison.decisions import Difference, Outcome
from bayplan.comparison.findings import Findings, conclusions, findings
from bayplan.comparison.statistics import CONFIDENCE, difference, figure, has_intervals, spread
from bayplan.comparison.store import Run
from bayplan.comparison.table import SPEED, Comparison
from bayplan.sim.output.report import BLANK
from bayplan.sim.output.report import new_table as new_table
from bayplan.sim.output.result import FailureResult

#: The most differing decisions that are shown; further ones are counted.
EXAMPLES_MAX = 10


def comparison_report(comparison: Comparison) -> Iterator[RenderableType]:
    """The conclusions, the differences, equal metrics, and the speed."""
    several = len(comparison.inputs) > 1
    for line in failure_lines(comparison):
        yield Text(line, style="bold")
    for input_name in comparison.inputs:
        if several:
            yield Text(f"input {input_name}", style="bold")
        if len(comparison.configurations) > 1:
            yield from _compared(comparison, input_name)
        else:
            yield _summaries(comparison, input_name, comparison.metrics)
            yield BLANK
    yield Text(_how_fast(comparison))
    if len(comparison.configurations) > 1 and not has_intervals():
        yield Text("confidence intervals need SciPy: pip install 'bayplan[compare]'")


def failure_lines(comparison: Comparison) -> Iterator[str]:
    """Failures by configuration and plugin: how many, and the first of them."""
    by_plugin: dict[tuple[str, str], list[tuple[Run, FailureResult]]] = {}
    for run, failure in comparison.failures:
        by_plugin.setdefault((run.configuration, failure.plugin), []).append((run, failure))
    for (configuration, plugin), pairs in by_plugin.items():
        count = sum(failure.count for _, failure in pairs)
        run_count = len({(run.input, run.seed) for run, _ in pairs})
        whose = f" of plugin {plugin}" if plugin else ""
        run, first = pairs[0]
        yield (
            f"{configuration}: {count:,} failure{'s' * (count != 1)}{whose} in {run_count:,} "
            f"run{'s' * (run_count != 1)}, first with seed {run.seed} at {first.example}: "
            f"{first.message}"
        )


def _compared(comparison: Comparison, input_name: str) -> Iterator[RenderableType]:
    for sentence in conclusions(comparison, input_name):
        yield Text(sentence, style="bold")
    yield BLANK
    metric_findings = findings(comparison, input_name)
    if metric_findings.differing:
        yield _differing(comparison, metric_findings, input_name)
        yield Text(_what_differences_are())
        yield BLANK
    if metric_findings.same:
        yield Text("the same in every pair of runs")
        yield _same(comparison, metric_findings, input_name)
        yield BLANK


def _what_differences_are() -> str:
    interval = f" [{CONFIDENCE:.0%} confidence interval]" if has_intervals() else ""
    return (
        f"mean ± deviation over seeds; difference seed by seed{interval}; "
        "a question mark: it may be chance"
    )


def _differing(comparison: Comparison, metric_findings: Findings, input_name: str) -> Table:
    """The baseline, and for each other configuration its mean and the difference."""
    other_names = [name for name in comparison.configurations if name != comparison.baseline]
    headings = [heading for name in other_names for heading in (name, "difference", "")]
    table = new_table("what differs", comparison.baseline, *headings, numbers=True)
    for metric, row in metric_findings.differing:
        cells = [spread(comparison.summary(input_name, comparison.baseline, metric))]
        for one in row:
            cells.append(spread(comparison.summary(input_name, one.configuration, metric)))
            is_same = one.paired is not None and one.paired.is_nothing
            cells += ["same", ""] if is_same else [difference(one.paired), one.text]
        table.add_row(metric, *cells)
    return table


def _same(comparison: Comparison, metric_findings: Findings, input_name: str) -> Table:
    table = new_table("metric", "mean ± deviation", numbers=True)
    for metric in metric_findings.same:
        table.add_row(metric, spread(comparison.summary(input_name, comparison.baseline, metric)))
    return table


def _summaries(comparison: Comparison, input_name: str, metrics: Sequence[str]) -> Table:
    names = comparison.configurations
    table = new_table("mean ± deviation", *names, numbers=True)
    for metric in (*metrics, SPEED):
        table.add_row(metric, *(spread(comparison.summary(input_name, n, metric)) for n in names))
    return table


def _how_fast(comparison: Comparison) -> str:
    attempts = sum(run.result.attempts for run in comparison.runs)
    seconds = sum(run.result.wall_seconds for run in comparison.runs)
    rate = attempts / seconds if seconds > 0 else 0.0
    return (
        f"{len(comparison)} run{'s' * (len(comparison) != 1)}, {attempts:,} simulated decisions, "
        f"{figure(round(rate))} per second in each process"
    )


# ---- two runs -------------------------------------------------------------------------------


def differences_report(
    differences: Sequence[Difference], names: tuple[str, str]
) -> Iterator[RenderableType]:
    """The number of differing decisions, and the first of them."""
    count = len(differences)
    yield Text(f"{count:,} differing decision{'s' * (count != 1)}")
    if not differences:
        return
    table = new_table("pod", "attempt", *names)
    for one in differences[:EXAMPLES_MAX]:
        attempt = one.attempt
        outcomes = (_outcome(one.one), _outcome(one.other))
        table.add_row(attempt.pod, str(attempt.attempt), *outcomes)
    yield table
    if count > EXAMPLES_MAX:
        yield Text(f"and {count - EXAMPLES_MAX:,} more")


def _outcome(outcome: Outcome | None) -> str:
    if outcome is None:
        return "not tried"
    return f"{outcome.result} {outcome.node}".rstrip()
