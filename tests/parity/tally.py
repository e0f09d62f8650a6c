"""Counts of compared and different answers, by suite and field."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion

#: Texts of differences that are stored per field; all differences are counted.
EXAMPLES_MAX = 20
_SHOWN_LENGTH_MAX = 300


@dataclass(slots=True)
class FieldTally:
    """One field of one suite."""

    compared: int = 0
    different: int = 0
    #: Kind of intended deviation → number of answers that agree except for it.
    deviating: Counter[str] = field(default_factory=Counter[str])
    examples: list[str] = field(default_factory=list[str])

    def merge(self, other: "FieldTally") -> None:
        self.compared += other.compared
        self.different += other.different
        self.deviating.update(other.deviating)
        self.examples = (self.examples + other.examples)[:EXAMPLES_MAX]


class Tally:
    """Counts of one run; tallies of several processes are merged."""

    def __init__(self) -> None:
        self.fields: dict[tuple[str, str], FieldTally] = {}
        self.cases: Counter[str] = Counter()
        #: How the cycles with cached results used them: description → number of cycles.
        self.cached_counts: Counter[str] = Counter()
        #: Content that was not understood → the first place where it occurs.
        self.not_understood: dict[str, str] = {}

    @property
    def compared(self) -> int:
        return sum(each.compared for each in self.fields.values())

    @property
    def different(self) -> int:
        return sum(each.different for each in self.fields.values())

    def of(self, suite: str, name: str) -> FieldTally:
        return self.fields.setdefault((suite, name), FieldTally())

    def merge(self, other: "Tally") -> None:
        for key, each in other.fields.items():
            self.of(*key).merge(each)
        self.cases.update(other.cases)
        self.cached_counts.update(other.cached_counts)
        self.not_understood = other.not_understood | self.not_understood


@dataclass(frozen=True, slots=True)
class Sheet:
    """Records the comparisons of one subject, such as a pod of a case."""

    tally: Tally
    suite: str
    #: Case and pod, for the text of a difference.
    place: str
    #: The version whose answers were recorded.
    kubernetes: KubernetesVersion = NEWEST

    def at(self, place: str) -> "Sheet":
        return replace(self, place=f"{self.place} {place}")

    def compare(self, name: str, expected: Any, actual: Any, where: str = "") -> bool:
        """Compare one answer. Returns whether it equals the recorded one."""
        entry = self.tally.of(self.suite, name)
        entry.compared += 1
        if expected == actual:
            return True
        entry.different += 1
        if len(entry.examples) < EXAMPLES_MAX:
            at = f"{self.place} {where}".strip()
            entry.examples.append(f"{at}: recorded {_shown(expected)}, found {_shown(actual)}")
        return False

    def compare_entries(
        self,
        name: str,
        expected: Mapping[str, Any],
        actual: Mapping[str, Any],
        keys: Iterable[str],
        where: str = "",
    ) -> None:
        """Compare one answer per key of either side. A missing key counts as None."""
        for key in sorted({*keys, *expected, *actual}):
            self.compare(name, expected.get(key), actual.get(key), f"{where} {key}".strip())

    def deviates(self, name: str, kind: str) -> None:
        """Count an intended deviation."""
        entry = self.tally.of(self.suite, name)
        entry.compared += 1
        entry.deviating[kind] += 1

    def not_understood(self, what: str, *, is_answer: bool) -> None:
        """Record unknown content. An answer that cannot be compared counts as different."""
        self.tally.not_understood.setdefault(what, self.place)
        if is_answer:
            self.compare(what, "an answer", "no way to compare it")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_LENGTH_MAX else f"{text[:_SHOWN_LENGTH_MAX]}…"


def report(tally: Tally, examples_max: int) -> list[str]:
    """Lines to print; the last one has the totals."""
    lines: list[str] = []
    for suite in sorted({suite for suite, _ in tally.fields} | set(tally.cases)):
        lines.append(f"{suite}: {tally.cases[suite]} cases")
        for (_, name), entry in sorted(_of_suite(tally, suite)):
            lines.append(f"  {name:<34} {_counts(entry)}")
            lines += [f"      {example}" for example in entry.examples[:examples_max]]
    for what, place in sorted(tally.not_understood.items()):
        lines.append(f"not understood: {what} (first in {place})")
    if tally.cached_counts:
        cycles = ", ".join(f"{count} {what}" for what, count in sorted(tally.cached_counts.items()))
        lines.append(f"cycles with cached results: {cycles}")
    return [*lines, f"{tally.compared} answers compared, {tally.different} differ"]


def _of_suite(tally: Tally, suite: str) -> list[tuple[tuple[str, str], FieldTally]]:
    return [(key, entry) for key, entry in tally.fields.items() if key[0] == suite]


def _counts(entry: FieldTally) -> str:
    parts = [f"{entry.compared:>7} compared, {entry.different:>5} differ"]
    for kind, count in sorted(entry.deviating.items()):
        parts.append(f"{count} deviate on purpose ({kind})")
    return "; ".join(parts)
