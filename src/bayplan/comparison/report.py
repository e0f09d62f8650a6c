"""The answers of `bayplan compare`: several configurations, or the decisions of two runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal, final

from msgspec.structs import asdict
from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.amounts import counted
from bayplan.answers.document import Answer, Rows, Value
from bayplan.answers.table import BLANK, Table, name_columns, number_columns
from bayplan.comparison.decisions import DecisionOutcome, Difference
from bayplan.comparison.findings import Finding, conclusions, findings
from bayplan.comparison.metrics.catalogue import metric_note
from bayplan.comparison.statistics import (
    CONFIDENCE,
    Summary,
    difference,
    figure,
    has_intervals,
    spread,
)
from bayplan.comparison.table import SPEED, Comparison
from bayplan.frames import DataFrame, frame

#: The most differing decisions that are shown; further ones are counted.
EXAMPLES_MAX = 10

# ---- several configurations -------------------------------------------------------------------


class MetricCell(Value, frozen=True, kw_only=True):
    """One metric of one configuration, compared with the baseline."""

    configuration: str
    #: Mean and deviation over the seeds.
    value: str
    #: The mean of the differences, with its confidence interval.
    difference: str
    #: better, worse; different: neither direction is better.
    verdict: str
    #: Whether the confidence interval excludes zero. Otherwise the difference may be chance.
    is_clear: bool
    #: Whether the metric is equal in every pair of runs.
    is_same: bool


class MetricRow(Value, frozen=True, kw_only=True):
    """One metric."""

    name: str
    meaning: str
    unit: str
    #: higher, lower; "": neither.
    better: str
    #: Mean and deviation of the baseline.
    baseline: str
    #: The cells of the other configurations, one each.
    cells: tuple[MetricCell, ...] = ()


class RunCounts(Value, frozen=True, kw_only=True):
    """One run."""

    configuration: str
    seed: int
    attempts: int
    failures: int
    #: What was measured; a number that the run does not have is missing.
    metrics: dict[str, float]


class InputComparison(Value, frozen=True, kw_only=True):
    """One input, over all configurations and seeds."""

    #: One sentence per configuration that is compared with the baseline.
    conclusions: tuple[str, ...]
    #: Metrics that differ: clear differences first, then the largest.
    differing: tuple[MetricRow, ...]
    #: Metrics that are equal in all runs; with a single configuration, all metrics.
    same: tuple[MetricRow, ...]
    runs: tuple[RunCounts, ...]
    #: With several inputs: configuration → metric → its statistics.
    policies: dict[str, dict[str, Summary]]


class RunFailure(Value, frozen=True, kw_only=True):
    """One kind of failures of one run."""

    input: str
    configuration: str
    seed: int
    plugin: str
    count: int
    example: str
    message: str


@final
class ComparisonAnswer(Answer, frozen=True, kw_only=True):
    """What several configurations do with the same pods and seeds."""

    kind: Literal["Comparison"] = "Comparison"
    field_of_list: ClassVar[str] = "failures"
    title: str
    baseline: str
    configurations: tuple[str, ...]
    #: Input's name → its metrics.
    inputs: dict[str, InputComparison]
    #: With one input: configuration → metric → its statistics.
    policies: dict[str, dict[str, Summary]]
    failures: tuple[RunFailure, ...] = ()
    #: How many decisions were simulated, and how fast.
    speed: str
    #: Whether differences have confidence intervals.
    has_intervals: bool

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        """The failures, the conclusions, the differences, equal metrics, and the speed."""
        parts: list[RenderableType] = []
        parts += [Text(line, style="bold") for line in failure_lines(self.failures)]
        for name, one in self.inputs.items():
            if len(self.inputs) > 1:
                parts.append(Text(f"input {name}", style="bold"))
            parts += [Text(sentence, style="bold") for sentence in one.conclusions]
            parts += [BLANK] if one.conclusions else []
            if one.differing:
                parts += [self._differing(one), Text(self._what_differences_are()), BLANK]
            if one.same and len(self.configurations) > 1:
                parts.append(Text("the same in every pair of runs"))
            if one.same:
                heading = "metric" if len(self.configurations) > 1 else self.baseline
                parts += [_same(one.same, heading), BLANK]
        parts.append(Text(self.speed))
        if len(self.configurations) > 1 and not self.has_intervals:
            need = "confidence intervals need SciPy: pip install 'bayplan[compare]'"
            parts.append(Text(need))
        return parts

    @property
    def table(self) -> DataFrame:
        """A DataFrame with a row for each run: input, configuration, seed, and its metrics."""
        runs = [(name, run) for name, one in self.inputs.items() for run in one.runs]
        metrics = dict.fromkeys(metric for _, run in runs for metric in run.metrics)
        columns = ("input", "configuration", "seed", *metrics)
        rows = (
            (name, run.configuration, run.seed, *(run.metrics.get(metric) for metric in metrics))
            for name, run in runs
        )
        return frame(columns, [dict(zip(columns, row, strict=True)) for row in rows])

    def rows(self) -> Rows:
        """One row for each metric of each configuration."""
        headings = ("metric", "input", "configuration", "mean", "deviation", "difference")
        return Rows((*headings, "verdict", "clear"), self._metrics())

    def _metrics(self) -> Iterator[tuple[object, ...]]:
        for name, one in self.inputs.items():
            policies = one.policies or self.policies
            cells = {(r.name, c.configuration): c for r in one.differing for c in r.cells}
            for row in (*one.differing, *one.same):
                for configuration in self.configurations:
                    summary = policies.get(configuration, {}).get(row.name)
                    numbers = (None, None) if summary is None else (summary.mean, summary.sd)
                    cell = cells.get((row.name, configuration))
                    verdict = ("", "", "") if cell is None else _verdict(cell)
                    yield (row.name, name, configuration, *numbers, *verdict)

    def _differing(self, one: InputComparison) -> Table:
        """The baseline, and for each other configuration its mean and the difference."""
        others = [name for name in self.configurations if name != self.baseline]
        headings = [heading for name in others for heading in (name, "difference", "")]
        table = Table("what differs", *number_columns(self.baseline, *headings))
        for row in one.differing:
            cells = [row.baseline]
            for cell in row.cells:
                unsure = "" if cell.is_clear else "?"
                verdict = ["same", ""] if cell.is_same else [cell.difference, cell.verdict + unsure]
                cells += [cell.value, *verdict]
            table.add_row(row.name, *cells)
        return table

    def _what_differences_are(self) -> str:
        interval = f" [{CONFIDENCE:.0%} confidence interval]" if self.has_intervals else ""
        return (
            f"mean ± deviation over seeds; difference seed by seed{interval}; "
            "a question mark: it may be chance"
        )


def _verdict(cell: MetricCell) -> tuple[object, ...]:
    return ("same", "", "") if cell.is_same else (cell.difference, cell.verdict, cell.is_clear)


def _same(metrics: Iterable[MetricRow], heading: str) -> Table:
    is_metric = heading == "metric"
    table = Table(
        heading if is_metric else "mean ± deviation",
        *number_columns("mean ± deviation" if is_metric else heading),
    )
    for row in metrics:
        table.add_row(row.name, row.baseline)
    return table


def failure_lines(failures: Sequence[RunFailure]) -> Iterator[str]:
    """Failures by configuration and plugin: how many, and the first of them."""
    by_plugin: dict[tuple[str, str], list[RunFailure]] = {}
    for failure in failures:
        by_plugin.setdefault((failure.configuration, failure.plugin), []).append(failure)
    for (configuration, plugin), own in by_plugin.items():
        count = sum(failure.count for failure in own)
        run_count = len({(failure.input, failure.seed) for failure in own})
        whose = f" of plugin {plugin}" if plugin else ""
        first = own[0]
        yield (
            f"{configuration}: {counted(count, 'failure')}{whose} in "
            f"{counted(run_count, 'run')}, first with seed {first.seed} at {first.example}: "
            f"{first.message}"
        )


def comparison_answer(comparison: Comparison, title: str) -> ComparisonAnswer:
    """The answer for all inputs."""
    inputs = comparison.inputs
    policies = {name: _policies(comparison, name) for name in inputs}
    is_single = len(inputs) == 1
    return ComparisonAnswer(
        title=title,
        baseline=comparison.baseline,
        configurations=tuple(comparison.configurations),
        inputs={
            name: _input_comparison(comparison, name, {} if is_single else policies[name])
            for name in inputs
        },
        policies=policies[inputs[0]] if is_single else {},
        failures=run_failures(comparison),
        speed=_speed(comparison),
        has_intervals=has_intervals(),
    )


def run_failures(comparison: Comparison) -> tuple[RunFailure, ...]:
    """The failures by error, run by run."""
    return tuple(
        RunFailure(input=run.input, configuration=run.configuration, seed=run.seed, **asdict(one))
        for run, one in comparison.failures
    )


def _policies(comparison: Comparison, input_name: str) -> dict[str, dict[str, Summary]]:
    policies: Mapping[str, Mapping[str, Summary]] = comparison.policies(input_name)
    return {name: dict(metrics) for name, metrics in policies.items()}


def _input_comparison(
    comparison: Comparison, input_name: str, policies: dict[str, dict[str, Summary]]
) -> InputComparison:
    def metric_row(name: str, row: Sequence[Finding] = ()) -> MetricRow:
        note = metric_note(name)
        return MetricRow(
            name=name,
            meaning=note.meaning,
            unit=note.unit,
            better=note.better,
            baseline=spread(comparison.summary(input_name, comparison.baseline, name)),
            cells=tuple(cell(one) for one in row),
        )

    def cell(one: Finding) -> MetricCell:
        return MetricCell(
            configuration=one.configuration,
            value=spread(comparison.summary(input_name, one.configuration, one.metric)),
            difference=difference(one.paired),
            verdict=one.verdict,
            is_clear=one.is_clear,
            is_same=one.paired is not None and one.paired.is_nothing,
        )

    is_single = len(comparison.configurations) == 1
    all_findings = findings(comparison, input_name)
    same = (*comparison.metrics, SPEED) if is_single else all_findings.same
    return InputComparison(
        conclusions=tuple(conclusions(comparison, input_name)),
        differing=()
        if is_single
        else tuple(metric_row(name, row) for name, row in all_findings.differing),
        same=tuple(map(metric_row, same)),
        runs=tuple(
            RunCounts(
                configuration=run.configuration,
                seed=run.seed,
                attempts=run.result.attempts,
                failures=len(run.result.failures),
                metrics=dict(run.result.metrics),
            )
            for run in comparison.runs
            if run.input == input_name
        ),
        policies=policies,
    )


def _speed(comparison: Comparison) -> str:
    attempts = sum(run.result.attempts for run in comparison.runs)
    seconds = sum(run.result.wall_seconds for run in comparison.runs)
    rate = attempts / seconds if seconds > 0 else 0.0
    return (
        f"{counted(len(comparison), 'run')}, {attempts:,} simulated decisions, "
        f"{figure(round(rate))} per second in each process"
    )


# ---- two runs -------------------------------------------------------------------------------


class DecisionDifference(Value, frozen=True, kw_only=True):
    """One attempt with different outcomes. null: the run has no such attempt."""

    pod: str
    attempt: int
    one: DecisionOutcome | None
    other: DecisionOutcome | None


@final
class RunDifferences(Answer, frozen=True, kw_only=True):
    """The decisions in which two runs differ."""

    kind: Literal["RunDifferences"] = "RunDifferences"
    field_of_list: ClassVar[str] = "differences"
    #: The folders of the runs.
    one: str
    other: str
    #: In the order of the first run; then decisions of the second run only.
    differences: tuple[DecisionDifference, ...]

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        """The number of differing decisions, and the first of them. ``is_wide``: all of them."""
        count = len(self.differences)
        parts: list[RenderableType] = [Text(counted(count, "differing decision"))]
        if not count:
            return parts
        shown = self.differences if is_wide else self.differences[:EXAMPLES_MAX]
        table = Table(*name_columns("pod"), *number_columns("attempt"), self.one, self.other)
        for each in shown:
            table.add_row(each.pod, str(each.attempt), _outcome(each.one), _outcome(each.other))
        parts.append(table)
        if count > len(shown):
            parts.append(Text(f"and {count - len(shown):,} more"))
        return parts

    def rows(self) -> Rows:
        """The differing decisions."""
        rows = ((d.pod, d.attempt, _outcome(d.one), _outcome(d.other)) for d in self.differences)
        return Rows(("pod", "attempt", self.one, self.other), rows)


def run_differences(differences: Sequence[Difference], names: tuple[str, str]) -> RunDifferences:
    """``names``: of the runs."""
    return RunDifferences(
        one=names[0],
        other=names[1],
        differences=tuple(
            DecisionDifference(
                pod=each.attempt.pod,
                attempt=each.attempt.attempt,
                one=each.one,
                other=each.other,
            )
            for each in differences
        ),
    )


def _outcome(outcome: DecisionOutcome | None) -> str:
    if outcome is None:
        return "not tried"
    return f"{outcome.result} {outcome.node}".rstrip()
