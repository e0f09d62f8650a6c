"""Standing: by row, whether a node is feasible, or which rejection of it came first.

Rejections that are the same, by the same plugin with the same verdict, have one number: nodes are
counted by it, which is all that a pod's message needs.

RowTotals: for one pod's like, what row-wise plugins say of every node, kept current row by row.

The few rows that changed are judged again, by the plugins' one-row forms, and get another total.
Normalised scores are corrected, not recomputed, until an extreme moves.

Picks: for one pod's like, the nodes ranked by their totals.

Where all plugins that have something to say about a pod are row-wise, a repeat placement needs no
pass over the nodes: the few rows that changed move in the ranking, and the best stands first.
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt

from bayplan.engine.reuse.evaluation_plan import EvaluationPlan, NodeEquivalence, SparedRows
from bayplan.engine.reuse.row_cache import PASSES, UNKNOWN, CachedFilterResults, CachedScores
from bayplan.engine.reuse.score_index import ScoreIndex
from bayplan.engine.reuse.single_node import SingleNodeEvaluator
from bayplan.engine.reuse.weighted_score import (
    NODES_CAME_OR_WENT,
    TOO_MUCH_CHANGED,
    RankingInvalid,
    WeightedScore,
)
from bayplan.engine.selection import Choice
from bayplan.framework.arithmetic import normalized
from bayplan.framework.filtering import Entry, FilterOutcome, Rejected, RejectedNodes
from bayplan.framework.score_table import PluginScores, ScoreTable, total_scores
from bayplan.framework.status import Code, Codes, Status
from bayplan.rng import tie_index
from bayplan.state.change_log import Facet
from bayplan.state.columns import Int64s, Rows, distinct
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import NodeView

# ---- standing -------------------------------------------------------------------------------


NO_NODE = 0
FEASIBLE = 1
_NUMBER_MAX = 2**16 - 1

#: How a numbered rejection came about: (place among the filters, number of its verdict).
_Origin = tuple[int, int]
Filters = Sequence[tuple[str, CachedFilterResults]]


@final
class NodeFeasibility(RejectedNodes):
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
                raise RankingInvalid(TOO_MUCH_CHANGED)
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


# ---- row totals -----------------------------------------------------------------------------


#: What a placed pod changes of its node.
_PLACED = int(Facet.REQUESTED | Facet.PODS)
#: And one with host ports: what nodes that are alike are alike in.
_TAKEN = _PLACED | int(Facet.PORTS)

#: More changes than this since the last time are judged faster as arrays,
CHANGES_MAX = 16
#: and where more rows changed than this, it is faster to ask about all.
ROWS_MAX = 128


#: (place among the filters, instance, what is kept of it)
_Filters = Sequence[tuple[int, str, CachedFilterResults]]


class _Readers(NamedTuple):
    """Whose answers follow from some facets. The others need not even know of a change."""

    kept: Sequence[CachedFilterResults | CachedScores]
    filters: _Filters


class IncrementalScores:
    """Every node's verdict, and the total of what row-wise plugins score it, for one pod's like."""

    def __init__(
        self,
        table: NodeTable,
        like: EvaluationPlan,
        outcome: FilterOutcome,
        scored: ScoreTable | None,
    ) -> None:
        """From a complete answer. ``scored``: None where fewer than two nodes were feasible.

        Raises OutOfDate where it cannot be kept current row by row.
        """
        self._table = table
        self.like = like
        self._order = table.draw_order()
        self._places = table.draw_places()
        #: Who is best: of those that know all about a node.
        self._ranking: ScoreIndex | None = None
        self._capacity = table.capacity
        self._facets = int(Facet.NODE)
        for kept in like.all_kept():
            self._facets |= kept.facets
        self.standing = NodeFeasibility(like.filters, table.capacity)
        self.standing.read(outcome)
        #: Feasible rows whose totals nobody needed yet; and others of which only what follows
        #: from placed pods changed.
        self._unscored: set[int] = set()
        self._moved: set[int] = set()
        self._totals = array("q", bytes(8 * table.capacity))
        #: What follows from placed pods changes with every placement, and the rest hardly ever:
        #: of that the sum is kept, too.
        self._moving = [share for share in like.shares if share.kept.facets & _PLACED]
        self._still = [share for share in like.shares if not share.kept.facets & _PLACED]
        self._still_totals = array("q", bytes(8 * table.capacity))
        self._still_facets = int(Facet.NODE)
        for share in self._still:
            self._still_facets |= share.kept.facets
        self._alike = NodeEquivalence(table, like, _TAKEN)
        self._filters = [(index, name, kept) for index, (name, kept) in enumerate(like.filters)]
        #: By the facets that changed.
        self._readers: dict[int, _Readers] = {}
        #: What nobody was asked about, to be added up.
        self.spared = SparedRows(like, _TAKEN)
        self._begin(outcome, scored)
        self._unjudged = _rows_not_judged(like, outcome)
        #: Those whose extremes may move.
        self.with_extremes = [share for share in like.shares if share.has_extremes]
        self.generation = table.log.generation

    def _begin(self, outcome: FilterOutcome, scored: ScoreTable | None) -> None:
        """Take the totals of the nodes that were scored; the other feasible ones have none yet."""
        if scored is None:
            self._unscored.update(self.standing.feasible_rows().tolist())
            return
        rows = outcome.nodes.rows[outcome.feasible]
        for share in self.like.shares:
            share.begin(scored.nodes)
        by_name = {column.name: column for column in scored.columns}
        still = total_scores([by_name[share.name] for share in self._still], len(rows))
        moving = total_scores([by_name[share.name] for share in self._moving], len(rows))
        as_array(self._still_totals)[rows] = still
        as_array(self._totals)[rows] = still + moving
        if len(rows) < self.feasible_count:
            others = np.setdiff1d(self.standing.feasible_rows(), rows, assume_unique=True)
            self._unscored.update(others.tolist())

    # ---- current --------------------------------------------------------------------------

    def follow(self) -> bool:
        """The usual: a pod was placed on a feasible node since, which is now like one that was
        seen before, and nothing else changed. False: this is to be refreshed."""
        log = self._table.log
        if log.generation != self.generation + 1 or self._unjudged is not None or self.is_behind:
            return False
        row, bits = log.newest()
        if bits & ~_TAKEN or row >= self._capacity or self.standing.of_row(row) != FEASIBLE:
            return False
        found = self._alike.find(row)
        if found is None:
            return False
        now, moving = found
        if (now != FEASIBLE and self.with_extremes) or not self._alike.renew(
            row, is_wanted=now == FEASIBLE
        ):
            return False
        if now == FEASIBLE:
            total = self._still_totals[row] + moving
            if self._ranking is not None:
                self._ranking.move(self._places.item(row), self._totals[row], total)
            self._totals[row] = total
        else:
            self._drop(row)
            self.standing.set(row, now)
        self.spared.judged_count += self._table.node_count
        self.spared.followed_count += 1
        self.generation = log.generation
        return True

    @property
    def is_behind(self) -> bool:
        """Whether some feasible rows have no total yet."""
        return bool(self._moved or self._unscored)

    def refresh(self, asking: SingleNodeEvaluator) -> None:
        """Judge the rows that changed since the last time. Raises OutOfDate: this is then to be
        thrown away."""
        is_same_table = self._capacity == self._table.capacity
        if self._table.draw_order() is not self._order or not is_same_table:
            raise RankingInvalid(NODES_CAME_OR_WENT)
        self.spared.judged_count += self._table.node_count
        if self._unjudged is not None:
            self._judge_many(self._unjudged, asking)
            self._unjudged = None
        log = self._table.log
        if log.generation == self.generation:
            return
        changes = log.few_since(self.generation, CHANGES_MAX, self._facets)
        if changes is not None:
            self._judge_few(changes, asking)
        else:
            rows = log.rows_since(self.generation, self._facets)
            if len(rows) > ROWS_MAX:
                raise RankingInvalid(TOO_MUCH_CHANGED)
            self._alike.forget()
            self._judge_many(rows, asking)
        self.generation = log.generation

    def _judge_few(self, changes: Sequence[tuple[int, int]], asking: SingleNodeEvaluator) -> None:
        """``changes``: (row, facets)."""
        bits, rows = 0, set[int]()
        for row, changed in changes:
            bits |= changed
            rows.add(row)
        readers = self._readers.get(bits)
        if readers is None:
            readers = self._readers[bits] = _readers_of(self.like, self._filters, bits)
        for kept in readers.kept:
            kept.keep_up(self.generation, changes)
        is_still = not bits & self._still_facets
        for row in rows:
            before, now = self.standing.of_row(row), NO_NODE
            if self._table.nodes[row] is not None:
                asked = readers.filters if before == FEASIBLE else self._filters
                now = self._verdict(row, asked, asking)
            if not bits & ~_TAKEN and before == FEASIBLE != now:
                self._alike.learn(row, now, 0)
            self._settle(row, before, now, is_still=is_still)

    def _verdict(self, row: int, filters: "_Filters", asking: SingleNodeEvaluator) -> int:
        """The number of the first rejection of a row by these, or FEASIBLE."""
        for index, name, kept in filters:
            number = kept.ids.item(row)
            if number == UNKNOWN:
                asking.count(name)
                number = kept.recall(row)
            if number is None:
                number = kept.learn_one(row, asking.verdict(name, row))
            if number != PASSES:
                return self.standing.number(index, number)
        return FEASIBLE

    def _judge_many(self, rows: Rows, asking: SingleNodeEvaluator) -> None:
        """The same as arrays: so many rows changed that this is faster."""
        if self.with_extremes:
            raise RankingInvalid(TOO_MUCH_CHANGED)
        for share in self.like.shares:
            share.kept.catch_up()
        numbers = np.full(self._table.capacity, FEASIBLE, np.int64)
        left = rows[self._table.alive.values[rows]]
        for index, name, kept in self._filters:
            asking.judge(name, left)
            ids = kept.ids[left]
            rejected = ids != PASSES
            for number in distinct(ids[rejected]).tolist():
                numbers[left[ids == number]] = self.standing.number(index, number)
            left = left[~rejected]
        for row, now in zip(rows.tolist(), numbers[rows].tolist(), strict=True):
            is_node = self._table.nodes[row] is not None
            self._settle(row, self.standing.of_row(row), now if is_node else NO_NODE)

    def _settle(self, row: int, before: int, now: int, *, is_still: bool = False) -> None:
        """A row was judged anew. ``is_still``: nothing changed but what follows from placed
        pods."""
        if before == now == FEASIBLE and is_still:
            self._move(row)
            return
        if before == FEASIBLE:
            self._drop(row)
        self.standing.set(row, now)
        if now == FEASIBLE:
            self._unscored.add(row)

    def score(self, asking: SingleNodeEvaluator) -> None:
        """Have totals of all feasible nodes, at least two. Raises as `refresh`."""
        if len(self._unscored) > CHANGES_MAX and not self.with_extremes:
            self._score_many(asking)
        for row in self._moved:
            self._total_row(row, self._still_totals[row], asking)
        for row in self._unscored:
            self._still_totals[row] = still = self._entered(row, self._still, asking)
            self._total_row(row, still, asking)
        self._moved.clear()
        self._unscored.clear()
        # A row that only left may have been the last with an extreme, too.
        for share in self.with_extremes:
            share.check()

    def _total_row(self, row: int, still_total: int, asking: SingleNodeEvaluator) -> None:
        moving = self._entered(row, self._moving, asking)
        self._alike.learn(row, FEASIBLE, moving)
        self._totals[row] = total = still_total + moving
        if self._ranking is not None:
            self._ranking.add(self._places.item(row), total)

    def _entered(
        self, row: int, shares: Sequence[WeightedScore], asking: SingleNodeEvaluator
    ) -> int:
        """What these add to the total of a row that is to have one."""
        total = 0
        for share in shares:
            kept = share.kept
            if not kept.known.item(row):
                asking.count(share.name)
                if kept.recall(row) is None:
                    kept.learn_one(row, asking.score(share.name, row))
            total += share.enter(row)
        return total

    def _score_many(self, asking: SingleNodeEvaluator) -> None:
        """The same as arrays, of all that have no total at all."""
        rows = np.array(sorted(self._unscored), np.intp)
        self._unscored.clear()
        still = total_scores([asking.column(share.name, rows) for share in self._still], len(rows))
        moving = [asking.column(share.name, rows) for share in self._moving]
        for share in self.like.shares:
            share.check()
        totals = still + total_scores(moving, len(rows))
        as_array(self._still_totals)[rows] = still
        as_array(self._totals)[rows] = totals
        if self._ranking is not None:
            for row, total in zip(rows.tolist(), totals.tolist(), strict=True):
                self._ranking.add(self._places.item(row), total)

    def _move(self, row: int) -> None:
        """A row with a total stays feasible, but may have another."""
        if row in self._unscored or row in self._moved:
            return
        self._moved.add(row)
        if self._ranking is not None:
            self._ranking.remove(self._places.item(row), self._totals[row])
        for share in self._moving:
            share.leave(row)

    def _drop(self, row: int) -> None:
        """A feasible row has no total any more."""
        if row in self._unscored:
            self._unscored.discard(row)
            return
        self._move(row)
        self._moved.discard(row)
        for share in self._still:
            share.leave(row)

    # ---- what is known --------------------------------------------------------------------

    @property
    def feasible_count(self) -> int:
        return self.standing.feasible_count

    def feasible_rows(self) -> Rows | None:
        """None: every row of the table."""
        if self.feasible_count == self._table.row_count:
            return None
        return self.standing.feasible_rows()

    def totals(self, nodes: NodeView) -> Int64s:
        """int64[nodes], not to be written: what the kept scores of these feasible nodes add up
        to."""
        self.spared.scored_count += self.standing.feasible_count
        return as_array(self._totals)[nodes.selection]

    def columns(self, nodes: NodeView) -> list[PluginScores]:
        """What the kept scores of some nodes come to, instance by instance."""
        columns: list[PluginScores] = []
        for share in self.like.shares:
            raw = share.kept.of(nodes)
            normal = normalized(share.normalizer, raw)
            columns.append(PluginScores(share.name, share.weight, raw, normal))
        return columns

    @property
    def bytes_used(self) -> int:
        of_shares = sum(share.bytes_used for share in self.like.shares)
        return 18 * len(self.standing) + of_shares


def _rows_not_judged(like: EvaluationPlan, outcome: FilterOutcome) -> Rows | None:
    """Rows that some filters here were not asked about, for one that is not kept came first."""
    early = {name for before, name in like.asked_filters if before < len(like.filters)}
    rejected = [entry.positions for entry in outcome.entries if entry.plugin in early]
    return outcome.nodes.rows[distinct(np.concatenate(rejected))] if rejected else None


def _readers_of(like: EvaluationPlan, filters: _Filters, bits: int) -> _Readers:
    return _Readers(
        kept=[kept for kept in like.all_kept() if kept.facets & bits],
        filters=[each for each in filters if each[2].facets & bits],
    )


def as_array(totals: "array[int]") -> Int64s:
    """The same memory."""
    return np.frombuffer(totals, np.int64)


# ---- picks ----------------------------------------------------------------------------------


@final
class RankedNodes(IncrementalScores):
    """Totals that are the whole answer, ranked."""

    def __init__(
        self,
        table: NodeTable,
        like: EvaluationPlan,
        outcome: FilterOutcome,
        scored: ScoreTable | None,
    ) -> None:
        """As `RowTotals`; nobody must be asked besides."""
        assert like.is_whole
        super().__init__(table, like, outcome, scored)
        self._ranking = self._best_first = self._ranked(scored)

    def _ranked(self, scored: ScoreTable | None) -> ScoreIndex:
        """Of the nodes that have totals."""
        if scored is None:
            return ScoreIndex(np.zeros(0, np.int64), np.zeros(0, np.intp))
        rows = scored.nodes.rows
        by_place = self._order[np.isin(self._order, rows, assume_unique=True)]
        totals: Int64s = as_array(self._totals)[by_place]
        return ScoreIndex(totals, self._places[by_place])

    def only(self) -> Choice:
        """The one feasible node."""
        row = next(iter(self._unscored or self._moved), None)
        if row is None:
            row = self._order.item(self._best_first.best()[0])
        return Choice(self._table.names[row])

    def choose(self, seed: int, pod_uid: str, attempt: int) -> Choice:
        """The node with the highest total; among equals the one that is drawn."""
        self.spared.scored_count += self.standing.feasible_count
        level = self._best_first.best()
        count = len(level)
        index = tie_index(seed, pod_uid, attempt, count) if count > 1 else 0
        name = self._table.names[self._order.item(level[index])]
        return Choice(name, count, index)

    def score_table(self, nodes: NodeView) -> ScoreTable:
        """The same as arrays, over the feasible nodes."""
        columns = self.columns(nodes)
        return ScoreTable(nodes, columns, total_scores(columns, len(nodes)))

    @property
    def bytes_used(self) -> int:
        return super().bytes_used + self._best_first.bytes_used
