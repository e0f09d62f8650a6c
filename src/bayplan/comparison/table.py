"""The results of a comparison: one row per run, and statistics over the rows.

A `Comparison` is a sequence of rows (dicts of plain values), which pandas, Polars and Arrow read as
a table: ``pandas.DataFrame(comparison)``, ``polars.DataFrame(comparison)``.

`About` names the inputs, configurations and versions, for the reader of the report.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from platform import python_version
from typing import Any, final, overload

from bayplan.comparison.statistics import PairedDifference, Summary, paired, summary
from bayplan.comparison.store import Run
from bayplan.sim.output.result import FailureResult

# ---- what is compared -----------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class ComparedConfiguration:
    name: str
    #: The file or document of the configuration.
    source: str
    #: None: the default configuration.
    text: str | None


@final
@dataclass(frozen=True, slots=True)
class About:
    """Inputs, configurations, plugins and versions."""

    #: Input's name → its paths.
    inputs: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    configurations: tuple[ComparedConfiguration, ...] = ()
    plugin_files: tuple[str, ...] = ()

    @property
    def versions(self) -> str:
        return f"Bayplan {version('bayplan')}, Python {python_version()}"

    def difference(self, baseline: str, name: str) -> list[str]:
        """Lines of a unified diff of two configurations; empty: the texts are equal."""
        texts = {one.name: one.text or "" for one in self.configurations}
        if baseline not in texts or name not in texts:
            return []
        one, other = texts[baseline].splitlines(), texts[name].splitlines()
        return list(difflib.unified_diff(one, other, baseline, name, lineterm=""))


# ---- the table ------------------------------------------------------------------------------


Row = dict[str, Any]

#: Measured in real time: it is never equal, so it is in no file of results.
SPEED = "decisions_per_second"
_NAMES = ("input", "configuration", "seed")


@final
class Comparison(Sequence[Row]):
    """Runs in the order of inputs, configurations, seeds."""

    def __init__(self, runs: Sequence[Run], baseline: str, about: About | None = None) -> None:
        """``about``: the inputs and configurations, for the report."""
        self.runs = tuple(runs)
        self.baseline = baseline
        self.about = about or About()

    # ---- rows -------------------------------------------------------------------------------

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self._row(run) for run in self.runs[index]]
        return self._row(self.runs[index])

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.configurations)}: {len(self)} runs)"

    def _row(self, run: Run) -> Row:
        """All rows have the same columns; None: the run has no such number."""
        names = {"input": run.input, "configuration": run.configuration, "seed": run.seed}
        return {**names, **{name: run.result.metrics.get(name) for name in self.metrics}}

    @property
    def columns(self) -> list[str]:
        return [*_NAMES, *self.metrics]

    # ---- names ------------------------------------------------------------------------------

    @property
    def inputs(self) -> list[str]:
        return list(dict.fromkeys(run.input for run in self.runs))

    @property
    def configurations(self) -> list[str]:
        return list(dict.fromkeys(run.configuration for run in self.runs))

    @property
    def metrics(self) -> list[str]:
        """The metrics of all runs, in the order in which they were measured. A metric that only
        some runs have is where the first of these runs has it."""
        ordered: list[str] = []
        for run in self.runs:
            place = 0
            for name in run.result.metrics:
                if name in ordered:
                    place = ordered.index(name) + 1
                else:
                    ordered.insert(place, name)
                    place += 1
        return ordered

    @property
    def failures(self) -> list[tuple[Run, FailureResult]]:
        """The failures by error, run by run."""
        return [(run, failure) for run in self.runs for failure in run.result.failures]

    # ---- numbers ----------------------------------------------------------------------------

    def by_seed(self, input_name: str, configuration: str, metric: str) -> dict[int, float]:
        """Seed → value. Seeds whose run has no such number are missing.

        A reason for rejection counts as 0 in a run in which it did not occur.
        """
        counted = metric.startswith("unschedulable: ")
        values: dict[int, float] = {}
        for run in self._runs_of(input_name, configuration):
            value = speed(run) if metric == SPEED else run.result.metrics.get(metric)
            if value is None and counted:
                value = 0.0
            if value is not None:
                values[run.seed] = value
        return values

    def summary(self, input_name: str, configuration: str, metric: str) -> Summary | None:
        values = list(self.by_seed(input_name, configuration, metric).values())
        return summary(values) if values else None

    def paired(self, input_name: str, configuration: str, metric: str) -> PairedDifference | None:
        """The differences of a configuration from the baseline."""
        ones = self.by_seed(input_name, configuration, metric)
        return paired(ones, self.by_seed(input_name, self.baseline, metric))

    def policies(self, input_name: str) -> Mapping[str, Mapping[str, Summary]]:
        """Configuration → metric → its statistics."""
        return {
            name: {
                metric: metric_summary
                for metric in (*self.metrics, SPEED)
                if (metric_summary := self.summary(input_name, name, metric)) is not None
            }
            for name in self.configurations
        }

    def _runs_of(self, input_name: str, configuration: str) -> Iterator[Run]:
        for run in self.runs:
            if run.input == input_name and run.configuration == configuration:
                yield run


def speed(run: Run) -> float | None:
    """Simulated decisions per second of real time."""
    seconds = run.result.wall_seconds
    return run.result.attempts / seconds if seconds > 0 else None
