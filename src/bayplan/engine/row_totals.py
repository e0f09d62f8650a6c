"""RowTotals: for one pod's like, what row-wise plugins say of every node, kept current row by row.

The few rows that changed are judged again, by the plugins' one-row forms, and get another total.
Normalised scores are corrected, not recomputed, until an extreme moves.
"""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayplan.engine.alike_nodes import AlikeNodes
from bayplan.engine.asking import Asking
from bayplan.engine.kept_answers import PASSES, UNKNOWN, KeptScores, KeptVerdicts
from bayplan.engine.likes import Like
from bayplan.engine.out_of_date import (
    NODES_CAME_OR_WENT,
    TOO_MUCH_CHANGED,
    OutOfDate,
)
from bayplan.engine.ranking import Ranking
from bayplan.engine.shares import Share
from bayplan.engine.spared_rows import SparedRows
from bayplan.engine.standing import FEASIBLE, NO_NODE, Standing
from bayplan.framework.arithmetic import normalized
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.score_table import PluginScores, ScoreTable, total_scores
from bayplan.state.change_log import Facet
from bayplan.state.columns import Int64s, Rows, distinct
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import NodeView

#: What a placed pod changes of its node.
_PLACED = int(Facet.REQUESTED | Facet.PODS)
#: And one with host ports: what nodes that are alike are alike in.
_TAKEN = _PLACED | int(Facet.PORTS)

#: More changes than this since the last time are judged faster as arrays,
CHANGES_MAX = 16
#: and where more rows changed than this, it is faster to ask about all.
ROWS_MAX = 128


#: (place among the filters, instance, what is kept of it)
_Filters = Sequence[tuple[int, str, KeptVerdicts]]


class _Readers(NamedTuple):
    """Whose answers follow from some facets. The others need not even know of a change."""

    kept: Sequence[KeptVerdicts | KeptScores]
    filters: _Filters


class RowTotals:
    """Every node's verdict, and the total of what row-wise plugins score it, for one pod's like."""

    def __init__(
        self, table: NodeTable, like: Like, outcome: FilterOutcome, scored: ScoreTable | None
    ) -> None:
        """From a complete answer. ``scored``: None where fewer than two nodes were feasible.

        Raises OutOfDate where it cannot be kept current row by row.
        """
        self._table = table
        self.like = like
        self._order = table.draw_order()
        self._places = table.draw_places()
        #: Who is best: of those that know all about a node.
        self._ranking: Ranking | None = None
        self._capacity = table.capacity
        self._facets = int(Facet.NODE)
        for kept in like.all_kept():
            self._facets |= kept.facets
        self.standing = Standing(like.filters, table.capacity)
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
        self._alike = AlikeNodes(table, like, _TAKEN)
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

    def refresh(self, asking: Asking) -> None:
        """Judge the rows that changed since the last time. Raises OutOfDate: this is then to be
        thrown away."""
        is_same_table = self._capacity == self._table.capacity
        if self._table.draw_order() is not self._order or not is_same_table:
            raise OutOfDate(NODES_CAME_OR_WENT)
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
                raise OutOfDate(TOO_MUCH_CHANGED)
            self._alike.forget()
            self._judge_many(rows, asking)
        self.generation = log.generation

    def _judge_few(self, changes: Sequence[tuple[int, int]], asking: Asking) -> None:
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

    def _verdict(self, row: int, filters: "_Filters", asking: Asking) -> int:
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

    def _judge_many(self, rows: Rows, asking: Asking) -> None:
        """The same as arrays: so many rows changed that this is faster."""
        if self.with_extremes:
            raise OutOfDate(TOO_MUCH_CHANGED)
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

    def score(self, asking: Asking) -> None:
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

    def _total_row(self, row: int, still_total: int, asking: Asking) -> None:
        moving = self._entered(row, self._moving, asking)
        self._alike.learn(row, FEASIBLE, moving)
        self._totals[row] = total = still_total + moving
        if self._ranking is not None:
            self._ranking.add(self._places.item(row), total)

    def _entered(self, row: int, shares: Sequence[Share], asking: Asking) -> int:
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

    def _score_many(self, asking: Asking) -> None:
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


def _rows_not_judged(like: Like, outcome: FilterOutcome) -> Rows | None:
    """Rows that some filters here were not asked about, for one that is not kept came first."""
    early = {name for before, name in like.asked_filters if before < len(like.filters)}
    rejected = [entry.positions for entry in outcome.entries if entry.plugin in early]
    return outcome.nodes.rows[distinct(np.concatenate(rejected))] if rejected else None


def _readers_of(like: Like, filters: _Filters, bits: int) -> _Readers:
    return _Readers(
        kept=[kept for kept in like.all_kept() if kept.facets & bits],
        filters=[each for each in filters if each[2].facets & bits],
    )


def as_array(totals: "array[int]") -> Int64s:
    """The same memory."""
    return np.frombuffer(totals, np.int64)
