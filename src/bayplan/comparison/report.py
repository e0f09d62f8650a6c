"""What a person reads on the terminal after a comparison."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bayplan.comparison.decisions import Difference, Outcome
from bayplan.comparison.figures import difference, figure, spread
from bayplan.comparison.statistics import CONFIDENCE, has_intervals
from bayplan.comparison.store import Run
from bayplan.comparison.table import SPEED, Comparison
from bayplan.sim.result import FailureResult
from bayplan.sim.tables import BLANK
from bayplan.sim.tables import table as new_table

#: So many differing decisions are told; the others are counted.
EXAMPLES_MAX = 10


def told(comparison: Comparison) -> Iterator[RenderableType]:
    """Means, differences, and how fast it was."""
    several = len(comparison.inputs) > 1
    for line in failure_lines(comparison):
        yield Text(line, style="bold")
    for input_name in comparison.inputs:
        if several:
            yield Text(f"input {input_name}")
        yield _summaries(comparison, input_name)
        yield BLANK
        if len(comparison.configurations) > 1:
            yield Text(f"difference from {comparison.baseline}, seed by seed{_brackets()}")
            yield from _differences(comparison, input_name)
            yield BLANK
    yield Text(_how_fast(comparison))
    if len(comparison.configurations) > 1 and not has_intervals():
        yield Text("confidence intervals want SciPy: pip install 'bayplan[compare]'")


def failure_lines(comparison: Comparison) -> Iterator[str]:
    """What failed by an error, per configuration and plugin: how often, and where first."""
    found: dict[tuple[str, str], list[tuple[Run, FailureResult]]] = {}
    for run, failure in comparison.failures:
        found.setdefault((run.configuration, failure.plugin), []).append((run, failure))
    for (configuration, plugin), pairs in found.items():
        count = sum(failure.count for _, failure in pairs)
        run_count = len({(run.input, run.seed) for run, _ in pairs})
        whose = f" of plugin {plugin}" if plugin else ""
        run, first = pairs[0]
        yield (
            f"{configuration}: {count:,} failure{'s' * (count != 1)}{whose} in {run_count:,} "
            f"run{'s' * (run_count != 1)}, first with seed {run.seed} at {first.example}: "
            f"{first.message}"
        )


def _brackets() -> str:
    return f"; {CONFIDENCE:.0%} confidence intervals" if has_intervals() else ""


def _summaries(comparison: Comparison, input_name: str) -> Table:
    names = comparison.configurations
    table = new_table("mean ± deviation", *names, numbers=True)
    for metric in (*comparison.metrics, SPEED):
        found = [comparison.summary(input_name, name, metric) for name in names]
        table.add_row(metric, *map(spread, found))
    return table


def _differences(comparison: Comparison, input_name: str) -> Iterator[RenderableType]:
    """Metrics that differ in some pair, and the names of the others."""
    names = [name for name in comparison.configurations if name != comparison.baseline]
    table, alike = new_table("", *names, numbers=True), list[str]()
    for metric in comparison.metrics:
        found = [comparison.paired(input_name, name, metric) for name in names]
        if all(one is not None and one.is_nothing for one in found):
            alike.append(metric)
        else:
            table.add_row(metric, *map(difference, found))
    if table.row_count:
        yield table
    if alike:
        yield Text(f"no difference: {', '.join(alike)}")


def _how_fast(comparison: Comparison) -> str:
    attempts = sum(run.result.attempts for run in comparison.runs)
    seconds = sum(run.result.wall_seconds for run in comparison.runs)
    rate = attempts / seconds if seconds > 0 else 0.0
    return (
        f"{len(comparison)} runs, {attempts:,} simulated decisions, "
        f"{figure(round(rate))} per second in each process"
    )


# ---- two runs -------------------------------------------------------------------------------


def told_differences(
    found: Sequence[Difference], names: tuple[str, str]
) -> Iterator[RenderableType]:
    """How many decisions differ, and the first of them."""
    count = len(found)
    yield Text(f"{count:,} differing decision{'s' * (count != 1)}")
    if not found:
        return
    table = new_table("pod", "attempt", *names)
    for one in found[:EXAMPLES_MAX]:
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
