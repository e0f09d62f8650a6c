"""Standing: by row, whether a node is feasible, or which rejection of it came first.

Rejections that are the same, by the same plugin with the same verdict, have one number: nodes are
counted by it, which is all that a pod's message needs.
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import final

import numpy as np
import numpy.typing as npt

from bayplan.engine.kept_answers import KeptVerdicts
from bayplan.engine.out_of_date import TOO_MUCH_CHANGED, OutOfDate
from bayplan.framework.filtering import Entry, FilterOutcome
from bayplan.framework.rejected import Rejected, RejectedNodes
from bayplan.framework.status import Code, Codes, Status
from bayplan.state.columns import Rows, distinct
from bayplan.state.nodes import NodeView

NO_NODE = 0
FEASIBLE = 1
_NUMBER_MAX = 2**16 - 1

#: How a numbered rejection came about: (place among the filters, number of its verdict).
_Origin = tuple[int, int]
Filters = Sequence[tuple[str, KeptVerdicts]]


@final
class Standing(RejectedNodes):
    """Every row's number, and how many nodes have each."""

    def __init__(self, filters: Filters, capacity: int) -> None:
        self._filters = filters
        self._origins: dict[_Origin, int] = {}
        self._numbers = array("H", bytes(2 * capacity))
        self._counts = [0] * (FEASIBLE + 1)
        #: By row, with that of those who were not rejected, until one changes.
        self._codes: tuple[Code, Codes] | None = None

    def read(self, outcome: FilterOutcome) -> None:
        """Number the first rejections of all nodes. What others than these filters reject is
        feasible here. Raises OutOfDate: they are too many."""
        numbers, rows = self._as_array(), outcome.nodes.rows
        numbers[rows] = FEASIBLE
        self._counts[FEASIBLE] = len(rows)
        for index, (name, kept) in enumerate(self._filters):
            rejected = [e.positions for e in outcome.entries if e.plugin == name]
            if not rejected:
                continue
            some = rows[distinct(np.concatenate(rejected))]
            for verdict_number in distinct(kept.ids[some]).tolist():
                number = self.number(index, verdict_number)
                same = some[kept.ids[some] == verdict_number]
                numbers[same] = number
                self._counts[number] = len(same)
                self._counts[FEASIBLE] -= len(same)

    def number(self, index: int, verdict_number: int) -> int:
        """Of a rejection by the filter at ``index``. Raises OutOfDate: there are too many."""
        number = self._origins.get((index, verdict_number))
        if number is None:
            number = self._origins[(index, verdict_number)] = len(self._counts)
            self._counts.append(0)
            if number > _NUMBER_MAX:
                raise OutOfDate(TOO_MUCH_CHANGED)
        return number

    def of_row(self, row: int) -> int:
        return self._numbers[row]

    def set(self, row: int, number: int) -> None:
        self._codes = None
        self._counts[self._numbers[row]] -= 1
        self._counts[number] += 1
        self._numbers[row] = number

    @property
    def feasible_count(self) -> int:
        return self._counts[FEASIBLE]

    def feasible_rows(self) -> Rows:
        return np.flatnonzero(self._as_array() == FEASIBLE)

    def rejected(self) -> Iterator[Rejected]:
        for (index, verdict_number), number in sorted(self._origins.items()):
            if self._counts[number]:
                name, kept = self._filters[index]
                for code, reasons in kept.verdicts[verdict_number]:
                    yield Rejected(name, code, reasons, self._counts[number])

    def codes(self, nodes: NodeView, absent: Code) -> Codes:
        if self._codes is None or self._codes[0] is not absent:
            by_number = np.zeros(len(self._counts), np.uint8)
            for (index, verdict_number), number in self._origins.items():
                verdict = self._filters[index][1].verdicts[verdict_number]
                by_number[number] = max(code for code, _ in verdict)
            by_number[by_number == Code.SUCCESS] = absent
            self._codes = absent, by_number[self._as_array()]
        return self._codes[1][nodes.selection]

    def statuses_among(self, nodes: NodeView) -> dict[str, Status]:
        return self.outcome(nodes).statuses()

    def outcome(self, nodes: NodeView) -> FilterOutcome:
        """The same as arrays, over all nodes."""
        numbers = self._as_array()[nodes.selection]
        found = FilterOutcome(nodes, numbers == FEASIBLE)
        for (index, verdict_number), number in sorted(self._origins.items()):
            if self._counts[number]:
                name, kept = self._filters[index]
                positions = np.flatnonzero(numbers == number)
                for code, reasons in kept.verdicts[verdict_number]:
                    found.entries.append(Entry(name, code, reasons, positions))
        return found

    def reject(self, outcome: FilterOutcome, start: int, end: int) -> None:
        """Take the rejections by the filters from ``start`` to before ``end`` into an outcome over
        all nodes, of those that are still feasible there."""
        if not self._origins or start == end:
            return
        numbers = self._as_array()[outcome.nodes.selection]
        for (index, verdict_number), number in sorted(self._origins.items()):
            if start <= index < end and self._counts[number]:
                name, kept = self._filters[index]
                positions = np.flatnonzero((numbers == number) & outcome.feasible)
                for code, reasons in kept.verdicts[verdict_number] if len(positions) else ():
                    outcome.entries.append(Entry(name, code, reasons, positions))
                outcome.feasible[positions] = False

    def __len__(self) -> int:
        return len(self._numbers)

    def _as_array(self) -> "npt.NDArray[np.uint16]":
        """The same memory."""
        return np.frombuffer(self._numbers, np.uint16)
