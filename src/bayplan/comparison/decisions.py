"""The decision of each attempt at a pod, and the differences between two runs."""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import NamedTuple, final

from msgspec import Struct

from bayplan.answers.csv_text import csv_text
from bayplan.journal import AttemptRecord, Record

_HEADER = ("pod", "attempt", "result", "node")


class DecisionKey(NamedTuple):
    """Identifies a decision."""

    pod: str
    attempt: int


class DecisionOutcome(Struct, frozen=True):
    """A decision."""

    result: str
    node: str


Decisions = Mapping[DecisionKey, DecisionOutcome]


class Difference(NamedTuple):
    """One decision of two runs; None: this run has no such attempt."""

    attempt: DecisionKey
    one: DecisionOutcome | None
    other: DecisionOutcome | None


@final
class DecisionSink:
    """A journal sink that collects decisions only."""

    def __init__(self) -> None:
        self.decisions: dict[DecisionKey, DecisionOutcome] = {}

    def write(self, record: Record) -> None:
        if isinstance(record, AttemptRecord):
            decided = DecisionOutcome(record.result, record.node)
            self.decisions[DecisionKey(record.pod, record.attempt)] = decided


def decisions_in(records: Iterable[Record]) -> Decisions:
    sink = DecisionSink()
    for record in records:
        sink.write(record)
    return sink.decisions


def differences(one: Decisions, other: Decisions) -> list[Difference]:
    """In the order of the first run; then decisions of the second run only."""
    only_other = [attempt for attempt in other if attempt not in one]
    return [
        Difference(attempt, one.get(attempt), other.get(attempt))
        for attempt in (*one, *only_other)
        if one.get(attempt) != other.get(attempt)
    ]


def to_csv(decisions: Decisions) -> bytes:
    rows = ((*attempt, one.result, one.node) for attempt, one in decisions.items())
    return csv_text(_HEADER, rows).encode()


def from_csv(content: bytes) -> Decisions:
    """Raises ValueError for content that `to_csv` did not write."""
    rows = csv.reader(io.StringIO(content.decode(), newline=""))
    if tuple(next(rows, ())) != _HEADER:
        raise ValueError(f"wanted the columns {','.join(_HEADER)}")
    return {
        DecisionKey(pod, int(number)): DecisionOutcome(result, node)
        for pod, number, result, node in rows
    }
