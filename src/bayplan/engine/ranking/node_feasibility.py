"""NodeFeasibility: by row, whether the cached filters accept a node, and otherwise the reason.

Equal rejections by the same plugin share one number. A row has the number of its first rejection,
and nodes are counted by number, so the message of a pod that fits nowhere costs a few look-ups
however many nodes there are.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import final

import numpy as np
import numpy.typing as npt

from bayplan.engine.ranking.evaluation_plan import (
    TOO_MUCH_CHANGED,
    RankingInvalid,
    SingleNodeEvaluator,
)
from bayplan.engine.ranking.row_cache import PASSES, UNKNOWN, CachedFilterResults
from bayplan.framework.filtering import (
    Feasibility,
    FilterOutcome,
    RejectedNodes,
    RejectionEntry,
    RejectionSummary,
)
from bayplan.framework.status import Code, Codes
from bayplan.journal import RejectionCount
from bayplan.state.columns import Rows, distinct, places_of
from bayplan.state.nodes import NodeView

NO_NODE = 0
FEASIBLE = 1
_NUMBER_MAX = 2**16 - 1


@final
class NodeFeasibility(Feasibility):
    """By row: FEASIBLE, NO_NODE, or the number of its first rejection."""

    def __init__(self, filters: Sequence[tuple[str, CachedFilterResults]], capacity: int) -> None:
        self._filters = filters
        #: The number of a rejection by (place among the filters, number of the verdict).
        self._numbers_by_origin: dict[tuple[int, int], int] = {}
        #: The same pairs by number. The first numbers are not those of rejections.
        self._origins = [(-1, UNKNOWN)] * (FEASIBLE + 1)
        #: Only this class writes.
        self.numbers = array("H", bytes(2 * capacity))
        #: Number → nodes; only this class writes.
        self.counts = [0] * (FEASIBLE + 1)
        #: The codes by row, with the code of rows that are not rejected. They are valid until a row
        #: gets another number.
        self._codes: tuple[Code, Codes] | None = None
        #: The results of `rejection_counts` and `summary`. They are valid until a row gets another
        #: number.
        self._rejection_counts: tuple[RejectionCount, ...] | None = None
        #: By number, what `_keys_of` returned.
        self._keys: dict[int, Sequence[tuple[str, str, str]]] = {}
        self._summary: RejectionSummary | None = None

    def read(self, rows: Rows, evaluator: SingleNodeEvaluator) -> None:
        """Take the cached results of all nodes; results that are missing are evaluated as arrays.

        Raises RankingInvalid if a plugin fails, or if there are too many different rejections.
        """
        numbers = self._as_array()
        numbers[rows] = FEASIBLE
        self.counts[FEASIBLE] = len(rows)
        left = rows
        for index, (name, cache) in enumerate(self._filters):
            marks = cache.marks[left]
            unknown = places_of(marks == UNKNOWN)
            if len(unknown):
                evaluator.filter_rows(name, left[unknown])
                marks = cache.marks[left]
            is_rejected = marks != PASSES
            if not is_rejected.any():
                continue
            for verdict_number in distinct(marks[is_rejected]).tolist():
                number = self.number(index, verdict_number)
                same = left[marks == verdict_number]
                numbers[same] = number
                self.counts[number] += len(same)
                self.counts[FEASIBLE] -= len(same)
            left = left[~is_rejected]

    def number(self, index: int, verdict_number: int) -> int:
        """The number of a rejection by the filter at ``index``. Raises RankingInvalid if there are
        too many different rejections."""
        number = self._numbers_by_origin.get((index, verdict_number))
        if number is None:
            number = self._numbers_by_origin[(index, verdict_number)] = len(self.counts)
            self._origins.append((index, verdict_number))
            self.counts.append(0)
            if number > _NUMBER_MAX:
                raise RankingInvalid(TOO_MUCH_CHANGED)
        return number

    def filter_of(self, number: int) -> int:
        """The place of the rejecting filter."""
        return self._origins[number][0]

    def of_rows(self, rows: Rows) -> "npt.NDArray[np.uint16]":
        """uint16[rows]: a copy of the numbers of some rows."""
        return self._as_array()[rows]

    def set(self, row: int, number: int) -> None:
        if number == self.numbers[row]:
            return
        self._codes = self._rejection_counts = self._summary = None
        self.counts[self.numbers[row]] -= 1
        self.counts[number] += 1
        self.numbers[row] = number

    @property
    def feasible_count(self) -> int:
        return self.counts[FEASIBLE]

    def feasible_rows(self) -> Rows:
        return np.flatnonzero(self._as_array() == FEASIBLE)

    def rejected(self) -> Iterator[RejectedNodes]:
        return self.rejections(dict(enumerate(self.counts)))

    def rejection_counts(self) -> tuple[RejectionCount, ...]:
        if self._rejection_counts is None:
            # This returns what the method of Feasibility returns. That method takes much longer,
            # and in a cluster that fills up each pod needs new counts.
            counts: dict[tuple[str, str, str], int] = {}
            for number in range(FEASIBLE + 1, len(self.counts)):
                nodes = self.counts[number]
                if nodes:
                    for key in self._keys.get(number) or self._keys_of(number):
                        counts[key] = counts.get(key, 0) + nodes
            if len(counts) == 1:
                # The usual case takes half as long.
                ((key, nodes),) = counts.items()
                self._rejection_counts = (RejectionCount(*key, nodes=nodes),)
            else:
                self._rejection_counts = tuple(
                    [RejectionCount(*key, nodes=counts[key]) for key in sorted(counts)]
                )
        return self._rejection_counts

    def _keys_of(self, number: int) -> Sequence[tuple[str, str, str]]:
        """(plugin, code, reason) of each line of the journal about a rejection."""
        index, verdict_number = self._origins[number]
        name, cache = self._filters[index]
        keys = self._keys[number] = [
            (name, str(code), reason)
            for code, reasons in cache.verdicts[verdict_number]
            for reason in reasons
        ]
        return keys

    def for_journal(self) -> tuple[int, tuple[RejectionCount, ...]]:
        rejections = self._rejection_counts
        if rejections is None:
            rejections = self.rejection_counts()
        return self.counts[FEASIBLE], rejections

    def summary(self) -> RejectionSummary:
        if self._summary is None:
            self._summary = super().summary()
        return self._summary

    def rejections(self, counts: Mapping[int, int]) -> Iterator[RejectedNodes]:
        """``counts``: number → nodes."""
        for (index, verdict_number), number in sorted(self._numbers_by_origin.items()):
            count = counts.get(number, 0)
            if count:
                name, cache = self._filters[index]
                for code, reasons in cache.verdicts[verdict_number]:
                    yield RejectedNodes(name, code, reasons, count)

    def codes(self, nodes: NodeView, absent: Code) -> Codes:
        if self._codes is None or self._codes[0] is not absent:
            by_number = np.zeros(len(self.counts), np.uint8)
            for (index, verdict_number), number in self._numbers_by_origin.items():
                verdict = self._filters[index][1].verdicts[verdict_number]
                by_number[number] = max(code for code, _ in verdict)
            by_number[by_number == Code.SUCCESS] = absent
            self._codes = absent, by_number[self._as_array()]
        return self._codes[1][nodes.table.index]

    def outcome(self, nodes: NodeView) -> FilterOutcome:
        """The rejections as arrays over all nodes."""
        outcome = FilterOutcome(nodes, self._as_array()[nodes.table.index] != NO_NODE)
        self.reject(outcome, 0, len(self._filters))
        return outcome

    def reject(self, outcome: FilterOutcome, start: int, end: int) -> None:
        """Add the rejections by the filters from ``start`` to before ``end`` to an outcome over all
        nodes, of the nodes that are still feasible there."""
        if not self._numbers_by_origin or start == end:
            return
        numbers = self._as_array()[outcome.nodes.table.index]
        for (index, verdict_number), number in sorted(self._numbers_by_origin.items()):
            if start <= index < end and self.counts[number]:
                name, cache = self._filters[index]
                positions = np.flatnonzero((numbers == number) & outcome.feasible)
                for code, reasons in cache.verdicts[verdict_number] if len(positions) else ():
                    outcome.entries.append(RejectionEntry(name, code, reasons, positions))
                outcome.feasible[positions] = False

    def validate(self, rows: Rows, unchanged: Rows) -> None:
        """``rows``: of all nodes as of the ranking's generation; ``unchanged``: those that have not
        changed since. Raises AssertionError where a number is not what the caches say."""
        numbers = self._as_array()
        counts = np.bincount(numbers, minlength=len(self.counts)).tolist()
        assert counts[FEASIBLE:] == self.counts[FEASIBLE:], "nodes are counted wrongly"
        assert (np.flatnonzero(numbers != NO_NODE) == rows).all(), "not every node has a number"
        for row in unchanged.tolist():
            expected: int | None = FEASIBLE
            for index, (_, cache) in enumerate(self._filters):
                verdict_number = cache.marks.item(row)
                if verdict_number == UNKNOWN:
                    expected = None
                    break
                if verdict_number != PASSES:
                    expected = self._numbers_by_origin.get((index, verdict_number), -1)
                    break
            assert expected in (None, numbers[row]), f"row {row} is {numbers[row]}, not {expected}"

    def __len__(self) -> int:
        return len(self.numbers)

    def _as_array(self) -> "npt.NDArray[np.uint16]":
        """The numbers as an array over the same memory."""
        return np.frombuffer(self.numbers, np.uint16)
