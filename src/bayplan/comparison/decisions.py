"""What was decided about each pod, attempt by attempt, and where two runs decided otherwise."""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import NamedTuple, final

from bayplan.journal import AttemptRecord, Record

_HEADER = ("pod", "attempt", "result", "node")


class Attempt(NamedTuple):
    """Which decision."""

    pod: str
    attempt: int


class Outcome(NamedTuple):
    """What was decided."""

    result: str
    node: str


Decisions = Mapping[Attempt, Outcome]


class Difference(NamedTuple):
    """One decision of two runs; None: only the other came to decide it."""

    attempt: Attempt
    one: Outcome | None
    other: Outcome | None


@final
class DecisionSink:
    """A journal sink that keeps decisions and nothing else."""

    def __init__(self) -> None:
        self.decisions: dict[Attempt, Outcome] = {}

    def write(self, record: Record) -> None:
        if isinstance(record, AttemptRecord):
            decided = Outcome(record.result, record.node)
            self.decisions[Attempt(record.pod, record.attempt)] = decided


def decisions_in(records: Iterable[Record]) -> Decisions:
    sink = DecisionSink()
    for record in records:
        sink.write(record)
    return sink.decisions


def differences(one: Decisions, other: Decisions) -> list[Difference]:
    """In the order in which the first run decided; then what only the other did."""
    only_other = [attempt for attempt in other if attempt not in one]
    return [
        Difference(attempt, one.get(attempt), other.get(attempt))
        for attempt in (*one, *only_other)
        if one.get(attempt) != other.get(attempt)
    ]


def to_csv(decisions: Decisions) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADER)
    writer.writerows((*attempt, *outcome) for attempt, outcome in decisions.items())
    return text.getvalue().encode()


def from_csv(content: bytes) -> Decisions:
    """Raises ValueError for anything else than what `to_csv` writes."""
    rows = csv.reader(io.StringIO(content.decode(), newline=""))
    if tuple(next(rows, ())) != _HEADER:
        raise ValueError(f"wanted the columns {','.join(_HEADER)}")
    return {Attempt(pod, int(number)): Outcome(result, node) for pod, number, result, node in rows}
