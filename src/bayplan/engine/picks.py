"""Picks: for one pod's like, every node's verdict and total, kept current row by row.

Where all plugins that have something to say about a pod are row-wise, a repeat placement needs no
pass over the nodes: the few rows that changed are judged again, by the plugins' one-row forms, and
move in the ranking. Normalised scores are corrected, not recomputed, until an extreme moves.
"""

from array import array
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from bayplan.engine.kept_answers import PASSES, UNKNOWN, KeptScores, KeptVerdicts, RowCounts
from bayplan.engine.out_of_date import (
    NODES_CAME_OR_WENT,
    OTHER_PLUGINS,
    PLUGIN_FAILED,
    TOO_MUCH_CHANGED,
    OutOfDate,
)
from bayplan.engine.ranking import Ranking
from bayplan.engine.selection import Choice
from bayplan.engine.shares import Share
from bayplan.engine.standing import FEASIBLE, NO_NODE, Standing
from bayplan.framework.arithmetic import normalized
from bayplan.framework.calls import Calls
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.interface import CycleState, Verdict
from bayplan.framework.score_table import PluginScores, ScoreTable, total_scores
from bayplan.rng import tie_index
from bayplan.state.change_log import Facet
from bayplan.state.columns import Int64s, Rows
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo

#: What a placed pod changes of its node.
_PLACED = int(Facet.REQUESTED | Facet.PODS)

#: More changes than this since the last time are judged faster as arrays.
CHANGES_MAX = 16


@dataclass(frozen=True, slots=True)
class Like:
    """What the picks of one pod's like are made of: all that was not skipped."""

    filters: Sequence[tuple[str, KeptVerdicts]]
    shares: Sequence[Share]
    skipped_filters: Set[str]
    #: None: PreScore was not asked, for fewer than two nodes were feasible.
    skipped_scores: Set[str] | None
    counts: Mapping[str, RowCounts]


@final
class Asking:
    """Who is asked what about single rows, in one attempt."""

    __slots__ = ("_counts", "_node", "_nodes", "_row", "calls", "pod", "state")

    def __init__(
        self,
        calls: Calls,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeView,
        counts: Mapping[str, RowCounts],
    ) -> None:
        """``counts``: by instance."""
        self._counts = counts
        self.calls = calls
        self.state = state
        self.pod = pod
        self._nodes = nodes
        self._row = -1
        self._node: NodeInfo | None = None

    def node(self, row: int) -> NodeInfo:
        """The same for all that ask about one row."""
        if self._node is None or row != self._row:
            self._row, self._node = row, self._nodes.info_of_row(row)
        return self._node

    def verdict(self, name: str, row: int) -> Verdict:
        """An instance's Filter. Raises OutOfDate where it fails."""
        self._count(name)
        try:
            return self.calls.filter_row[name](self.state, self.pod, self.node(row))
        except Exception as problem:
            raise OutOfDate(PLUGIN_FAILED) from problem

    def score(self, name: str, row: int) -> int:
        """An instance's raw score. Raises OutOfDate where it fails."""
        self._count(name)
        try:
            score = self.calls.score_row[name](self.state, self.pod, self.node(row))
        except Exception as problem:
            raise OutOfDate(PLUGIN_FAILED) from problem
        if type(score) is not int:
            raise OutOfDate(PLUGIN_FAILED)
        return score

    def _count(self, name: str) -> None:
        counts = self._counts[name]
        counts.asked += 1
        counts.kept -= 1


#: (place among the filters, instance, what is kept of it)
_Filters = Sequence[tuple[int, str, KeptVerdicts]]


class _Readers(NamedTuple):
    """Whose answers follow from some facets. The others need not even know of a change."""

    kept: Sequence[KeptVerdicts | KeptScores]
    filters: _Filters


@final
class Picks:
    """Every node's verdict and total for one pod's like."""

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
        self._facets = int(Facet.NODE)
        for kept in (*(k for _, k in like.filters), *(share.kept for share in like.shares)):
            self._facets |= kept.facets
        self.standing = Standing(like.filters, table.capacity)
        self.standing.read(outcome)
        #: Feasible rows whose totals nobody needed yet; and those of them of which only what
        #: follows from placed pods changed.
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
        self._filters = [(index, name, kept) for index, (name, kept) in enumerate(like.filters)]
        #: By the facets that changed.
        self._readers: dict[int, _Readers] = {}
        #: Nodes that were judged, and scored, without asking or by asking about one of them.
        self._judged_count = self._scored_count = 0
        self._ranking = self._rank(outcome, scored)
        #: Those whose extremes may move.
        self._with_extremes = [share for share in like.shares if share.has_extremes]
        self.generation = table.log.generation

    # ---- current --------------------------------------------------------------------------

    def refresh(self, asking: Asking) -> None:
        """Judge the rows that changed since the last time. Raises OutOfDate: the picks are then to
        be thrown away."""
        if asking.state.skip_filter_plugins != self.like.skipped_filters:
            raise OutOfDate(OTHER_PLUGINS)
        is_same_table = len(self.standing) == self._table.capacity
        if self._table.draw_order() is not self._order or not is_same_table:
            raise OutOfDate(NODES_CAME_OR_WENT)
        self._judged_count += self._table.node_count
        log = self._table.log
        if log.generation == self.generation:
            return
        changes = log.few_since(self.generation, CHANGES_MAX, self._facets)
        if changes is None:
            raise OutOfDate(TOO_MUCH_CHANGED)
        bits, rows = 0, set[int]()
        for row, changed in changes:
            bits |= changed
            rows.add(row)
        readers = self._readers.get(bits) or self._readers_of(bits)
        for kept in readers.kept:
            kept.keep_up(self.generation, changes)
        is_still = not bits & self._still_facets
        for row in rows:
            self._judge_anew(row, readers.filters, asking, is_still=is_still)
        self.generation = log.generation

    def _readers_of(self, bits: int) -> "_Readers":
        like = self.like
        all_kept = (*(k for _, k in like.filters), *(share.kept for share in like.shares))
        found = self._readers[bits] = _Readers(
            kept=[kept for kept in all_kept if kept.facets & bits],
            filters=[f for f in self._filters if f[2].facets & bits],
        )
        return found

    def _judge_anew(self, row: int, changed: "_Filters", asking: Asking, *, is_still: bool) -> None:
        """``changed``: who may judge a row otherwise than before. ``is_still``: nothing changed
        but what follows from placed pods."""
        before, now = self.standing.of_row(row), NO_NODE
        if self._table.nodes[row] is not None:
            now = self._verdict(row, changed if before == FEASIBLE else self._filters, asking)
        if before == now == FEASIBLE and is_still:
            self._move(row)
            return
        if before == FEASIBLE:
            self._drop(row)
        self.standing.set(row, now)
        if now == FEASIBLE:
            self._unscored.add(row)

    def _verdict(self, row: int, filters: "_Filters", asking: Asking) -> int:
        """The number of the first rejection of a row by these, or FEASIBLE."""
        for index, name, kept in filters:
            number = kept.ids.item(row)
            if number == UNKNOWN:
                number = kept.learn_one(row, asking.verdict(name, row))
            if number != PASSES:
                return self.standing.number(index, number)
        return FEASIBLE

    def score(self, asking: Asking) -> None:
        """Have totals of all feasible nodes, at least two. Raises as `refresh`."""
        like = self.like
        if asking.state.skip_score_plugins != like.skipped_scores:
            raise OutOfDate(OTHER_PLUGINS)
        self._scored_count += self.standing.feasible_count
        for row in self._moved:
            self._rank_row(row, self._still_totals[row], asking)
        for row in self._unscored:
            self._still_totals[row] = still = self._entered(row, self._still, asking)
            self._rank_row(row, still, asking)
        self._moved.clear()
        self._unscored.clear()
        # A row that only left may have been the last with an extreme, too.
        for share in self._with_extremes:
            share.check()

    def _rank_row(self, row: int, still_total: int, asking: Asking) -> None:
        self._totals[row] = total = still_total + self._entered(row, self._moving, asking)
        self._ranking.add(self._places.item(row), total)

    def _entered(self, row: int, shares: Sequence[Share], asking: Asking) -> int:
        """What these add to the total of a row that is to be ranked."""
        total = 0
        for share in shares:
            kept = share.kept
            if not kept.known.item(row):
                kept.learn_one(row, asking.score(share.name, row))
            total += share.enter(row)
        return total

    def _move(self, row: int) -> None:
        """A ranked row stays feasible, but may have another total."""
        if row in self._unscored or row in self._moved:
            return
        self._moved.add(row)
        self._ranking.remove(self._places.item(row), self._totals[row])
        for share in self._moving:
            share.leave(row)

    def _drop(self, row: int) -> None:
        """A feasible row is not ranked any more."""
        if row in self._unscored:
            self._unscored.discard(row)
            return
        self._move(row)
        self._moved.discard(row)
        for share in self._still:
            share.leave(row)

    def count_rows(self) -> None:
        """Add up what was not asked since the last time."""
        like, counts = self.like, self.like.counts
        for name, _ in like.filters:
            counts[name].kept += self._judged_count
        for share in like.shares:
            counts[share.name].kept += self._scored_count
        self._judged_count = self._scored_count = 0

    # ---- answers --------------------------------------------------------------------------

    @property
    def feasible_count(self) -> int:
        return self.standing.feasible_count

    def only(self) -> Choice:
        """The one feasible node."""
        row = next(iter(self._unscored or self._moved), None)
        if row is None:
            row = self._order.item(self._ranking.best()[0])
        return Choice(self._table.names[row])

    def choose(self, seed: int, pod_uid: str, attempt: int) -> Choice:
        """The node with the highest total; among equals the one that is drawn."""
        level = self._ranking.best()
        count = len(level)
        index = tie_index(seed, pod_uid, attempt, count) if count > 1 else 0
        name = self._table.names[self._order.item(level[index])]
        return Choice(name, count, index)

    def feasible_rows(self) -> Rows | None:
        """None: every row of the table."""
        if self.feasible_count == self._table.row_count:
            return None
        return self.standing.feasible_rows()

    def outcome(self, nodes: NodeView) -> FilterOutcome:
        """The same as arrays, over all nodes."""
        return self.standing.outcome(nodes)

    def score_table(self, nodes: NodeView) -> ScoreTable:
        """The same as arrays, over the feasible nodes."""
        columns: list[PluginScores] = []
        for share in self.like.shares:
            raw = share.kept.of(nodes)
            normal = normalized(share.normalizer, raw)
            columns.append(PluginScores(share.name, share.weight, raw, normal))
        return ScoreTable(nodes, columns, total_scores(columns, len(nodes)))

    @property
    def bytes_used(self) -> int:
        of_shares = sum(share.bytes_used for share in self.like.shares)
        return 18 * len(self.standing) + self._ranking.bytes_used + of_shares

    # ---- inside ---------------------------------------------------------------------------

    def _rank(self, outcome: FilterOutcome, scored: ScoreTable | None) -> Ranking:
        rows = outcome.nodes.rows[outcome.feasible]
        if scored is None:
            self._unscored.update(rows.tolist())
            return Ranking(np.zeros(0, np.int64), np.zeros(0, np.intp))
        for share in self.like.shares:
            share.begin(scored.nodes)
        np.frombuffer(self._totals, np.int64)[rows] = scored.totals
        moving = {share.name for share in self._moving}
        still = [column for column in scored.columns if column.name not in moving]
        np.frombuffer(self._still_totals, np.int64)[rows] = total_scores(still, len(rows))
        by_place = self._order[np.isin(self._order, rows, assume_unique=True)]
        totals: Int64s = np.frombuffer(self._totals, np.int64)[by_place]
        return Ranking(totals, self._places[by_place])
