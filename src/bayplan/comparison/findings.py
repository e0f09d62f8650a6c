"""Which metrics differ between configurations, how surely, and for better or worse.

A difference is clear when its confidence interval excludes zero. Without an interval (one seed, or
no SciPy) nothing is clear.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from bayplan.comparison.metrics.catalogue import HIGHER, metric_note
from bayplan.comparison.statistics import PairedDifference, signed
from bayplan.comparison.table import Comparison

BETTER = "better"
WORSE = "worse"
DIFFERENT = "different"
#: The most metrics that a sentence names.
_NAMED_MAX = 3


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One metric of one configuration, compared with the baseline."""

    metric: str
    configuration: str
    paired: PairedDifference | None
    #: The baseline's mean; None: it has no such number.
    baseline_mean: float | None

    @property
    def is_clear(self) -> bool:
        """Whether the confidence interval of the difference excludes zero."""
        if self.paired is None or self.paired.low is None or self.paired.high is None:
            return False
        return self.paired.low > 0 or self.paired.high < 0

    @property
    def verdict(self) -> str:
        """BETTER, WORSE, or DIFFERENT if neither direction is better."""
        better = metric_note(self.metric).better
        if not better or self.paired is None:
            return DIFFERENT
        is_higher = self.paired.mean > 0
        return BETTER if is_higher is (better == HIGHER) else WORSE

    @property
    def text(self) -> str:
        """The verdict, with a question mark if it is not clear."""
        return self.verdict if self.is_clear else f"{self.verdict}?"

    @property
    def size(self) -> float:
        """The difference relative to the baseline's mean."""
        if self.paired is None:
            return 0.0
        return abs(self.paired.mean) / (abs(self.baseline_mean or 0.0) or 1.0)


@final
@dataclass(frozen=True, slots=True)
class Findings:
    """The metrics of one input."""

    #: Metrics that differ in some pair: clear differences first, then the largest. Each has one
    #: finding per configuration that is not the baseline.
    differing: tuple[tuple[str, tuple[Finding, ...]], ...]
    #: Metrics that are the same in every pair.
    same: tuple[str, ...]


def findings(comparison: Comparison, input_name: str) -> Findings:
    """The differences from the baseline; none with a single configuration."""
    other_names = [name for name in comparison.configurations if name != comparison.baseline]
    differing: list[tuple[str, tuple[Finding, ...]]] = []
    same: list[str] = []
    for metric in comparison.metrics:
        baseline = comparison.summary(input_name, comparison.baseline, metric)
        row = tuple(
            Finding(
                metric,
                name,
                comparison.paired(input_name, name, metric),
                None if baseline is None else baseline.mean,
            )
            for name in other_names
        )
        if all(one.paired is not None and one.paired.is_nothing for one in row):
            same.append(metric)
        else:
            differing.append((metric, row))
    differing.sort(key=lambda pair: _rank(pair[1]))
    return Findings(tuple(differing), tuple(same))


def _rank(row: Sequence[Finding]) -> tuple[bool, bool, float]:
    clear = any(one.is_clear for one in row)
    judged = any(one.verdict != DIFFERENT for one in row)
    return not clear, not judged, -max(one.size for one in row)


def conclusions(comparison: Comparison, input_name: str) -> Iterator[str]:
    """One sentence per configuration that is compared with the baseline."""
    all_findings = findings(comparison, input_name)
    for name in comparison.configurations:
        if name != comparison.baseline:
            own = [
                one for _, row in all_findings.differing for one in row if one.configuration == name
            ]
            yield _conclusion(name, comparison.baseline, own, len(all_findings.same))


def _conclusion(name: str, baseline: str, differing: Sequence[Finding], same_count: int) -> str:
    real = [one for one in differing if one.paired is None or not one.paired.is_nothing]
    same_count += len(differing) - len(real)
    head = f"{name} against {baseline}"
    if not real:
        return f"{head}: no metric differs ({same_count:,} compared)."
    parts = [
        f"{verdict}{' in' if verdict != DIFFERENT else ':'} {_named(chosen)}"
        for verdict in (BETTER, WORSE, DIFFERENT)
        if (chosen := [one for one in real if one.is_clear and one.verdict == verdict])
    ]
    unclear = [one for one in real if not one.is_clear]
    if unclear:
        parts.append(f"not sure: {_named(unclear)}")
    same = "1 metric is" if same_count == 1 else f"{same_count:,} metrics are"
    return f"{head}: {'; '.join(parts)}. {same} the same."


def _named(chosen: Sequence[Finding]) -> str:
    """The metrics, each with its mean difference."""
    named = ", ".join(
        one.metric if one.paired is None else f"{one.metric} ({signed(one.paired.mean)})"
        for one in chosen[:_NAMED_MAX]
    )
    further_count = len(chosen) - _NAMED_MAX
    return f"{named} and {further_count:,} more" if further_count > 0 else named
