"""The table that a benchmark prints."""

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.amounts import counted
from bayplan.answers.table import BLANK, Table, number_columns
from bayplan.perf.data_items import SAMPLES_MIN, Measurement
from bayplan.perf.planning import Plan, RefusedWorkload
from bayplan.perf.running import WorkloadOutcome

_WORKLOAD = "workload"
_COLUMNS = ("nodes", "pods", "used", "seconds", "pods/s")
_SAMPLED = {"Average": "average", "Perc50": "p50", "Perc90": "p90", "Perc99": "p99"}


def summary(outcomes: Iterable[WorkloadOutcome]) -> list[RenderableType]:
    """The results, and the meaning of the columns below them."""
    table = Table(_WORKLOAD, *number_columns(*_COLUMNS, *_SAMPLED.values()))
    for outcome in outcomes:
        for one in outcome.measured:
            table.add_row(*_row(outcome, one))
        if not outcome.measured:
            table.add_row(outcome.name, f"{outcome.nodes:,}", *[""] * (len(table.columns) - 2))
    return [table, BLANK, *(Text(line) for line in _LEGEND)]


_LEGEND = (
    "used: nodes the pods were bound to; seconds: with the creation of the pods;",
    "pods/s: between first and last binding;",
    f"average, p50 …: pods/s in samples of one second, from {SAMPLES_MIN} samples on",
)


def _row(outcome: WorkloadOutcome, one: Measurement) -> Iterator[str]:
    yield one.name
    yield f"{outcome.nodes:,}"
    yield f"{one.pods:,}"
    yield f"{one.nodes:,}"
    yield f"{one.seconds:.3f}"
    yield _rate(one.pods_per_second)
    sampled = one.sampled
    yield from (_rate(sampled.get(name)) for name in _SAMPLED)


def _rate(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


def listing(plans: Iterable[Plan | RefusedWorkload], labels: dict[str, tuple[str, ...]]) -> Table:
    """Workloads with their labels, and why some cannot be run here."""
    table = Table(_WORKLOAD, "labels", "cannot be run")
    for plan in plans:
        why = "; ".join(plan.reasons) if isinstance(plan, RefusedWorkload) else ""
        table.add_row(plan.name, ", ".join(labels.get(plan.name, ())), why)
    return table


def errors(outcome: WorkloadOutcome) -> Iterator[str]:
    """Failures by error while the workload ran."""
    if outcome.error_count:
        count = outcome.error_count
        yield f"{outcome.name}: {counted(count, 'attempt')} failed by an error"
    for plugin, count in sorted(outcome.plugin_failures.items()):
        yield f"{outcome.name}: {counted(count, 'failure')} of plugin {plugin}"


def below_threshold(outcome: WorkloadOutcome) -> Iterator[str]:
    """Results below upstream's thresholds, which are for upstream's own machines."""
    for one in outcome.measured:
        average = one.sampled.get("Average")
        if outcome.threshold and average is not None and average <= outcome.threshold:
            limit = f"the file's threshold is {outcome.threshold:g}"
            yield f"{one.name}: {average:,.0f} pods/s, {limit}"
