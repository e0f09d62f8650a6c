"""RankedNodes: all nodes by feasibility and total score, for one signature and one skip set.

The theory. A row-wise plugin answers for a node from two things alone: the part of the pod that the
plugin signs, and the row of the node. All pods of one signature agree in the first. So what the
plugins answered for the last such pod is still right for every row that has not changed since, and
the change log (`state/change_log.py`) names the rows that have. The *skip set* is part of the key
because PreFilter and PreScore may tell plugins to skip a pod.

What is kept, by row: the number of the verdict (`NodeFeasibility`), the total score, and the sum of
those scores that no placed pod changes. By total: the places of the rows in the draw order
(`ScoreIndex`), so that the best node, and the k-th of the nodes that tie, are a look-up away.

How it stays true. `update` evaluates the Filter plugins of the rows that changed, with the
single-row forms of the plugins, and notes which feasible rows need another total. `score` gives
them one. `follow` is the short way for the usual change: the last pod of this signature was placed
on the best node, and that node now equals one that was evaluated before (`NodeEquivalence`), so no
plugin is called at all. A normalized score is corrected, not recomputed, as long as the extremes of
the raw scores stay (`WeightedScore`).

What would break it: a plugin that reads what it does not sign, or a facet of the row that it does
not name. One attempt in a thousand therefore calls all plugins and compares
(`ResultCache.compare`), and `validate` recomputes everything. What cannot be corrected row by row
(nodes came or went, too many rows changed, an extreme moved) raises RankingInvalid, and the ranking
is dropped.

A ranking is *complete* if it covers every plugin that has something to say about the pod. A
complete ranking is the answer of the cycle (`CycleAnswer`). An incomplete one is the cached part of
an answer: the plugins that it does not cover are called in every cycle, for the nodes that it
leaves.
"""

from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple, final

import numpy as np

from bayplan.engine.ranking.evaluation_plan import (
    NODES_CAME_OR_WENT,
    TOO_MUCH_CHANGED,
    EvaluationPlan,
    RankingInvalid,
    SingleNodeEvaluator,
    WeightedScore,
)
from bayplan.engine.ranking.node_equivalence import (
    PLACED_FACETS,
    TAKEN_FACETS,
    NodeEquivalence,
)
from bayplan.engine.ranking.node_feasibility import FEASIBLE, NO_NODE, NodeFeasibility
from bayplan.engine.ranking.row_cache import (
    PASSES,
    UNKNOWN,
    CachedFilterResults,
    RowCache,
    RowCounts,
)
from bayplan.engine.ranking.score_index import ScoreIndex, TotalIndex, as_array
from bayplan.framework.arithmetic import normalized
from bayplan.framework.scoring import Choice, PluginScores, ScoreTable, total_scores
from bayplan.framework.signing import PodSignature
from bayplan.journal import NodeScore, PluginScore
from bayplan.rng import tie_index
from bayplan.state.change_log import Facet
from bayplan.state.columns import Int64s, Rows, places_of
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import NodeView
from bayplan.state.resources import RowEquivalence

#: The number of changed rows up to which they are evaluated one by one. With more changes,
#: evaluating the unknown rows as arrays and ranking all nodes again is faster (measured with 5,000
#: and with 30,000 nodes).
CHANGES_MAX = 16

#: The number of feasible nodes from which on they get scores.
SCORED_MIN: Final = 2

#: The number of rows for which journal lines are remembered.
_LINES_MAX = 64

#: (place among the filters, instance, its cache)
_Filters = Sequence[tuple[int, str, CachedFilterResults]]


class _AffectedParts(NamedTuple):
    """The row caches and filters whose results depend on some facets."""

    caches: Sequence[RowCache]
    filters: _Filters


@final
class RankedNodes:
    """All nodes for one signature and one skip set: verdict, total score and order."""

    def __init__(
        self,
        table: NodeTable,
        plan: EvaluationPlan,
        evaluator: SingleNodeEvaluator,
        scored: ScoreTable | None,
        *,
        owner: PodSignature,
    ) -> None:
        """The ranking is made from the row caches, after a cycle that evaluated the plugins.

        ``scored``: the scores of that cycle; None if fewer than two nodes were feasible. Raises
        RankingInvalid if the nodes cannot be ranked.
        """
        self.table = table
        self.plan = plan
        self._order = table.draw_order()
        self._places = table.draw_places()
        self._capacity = table.capacity
        self._facets = int(Facet.NODE)
        for cache in plan.row_caches():
            self._facets |= cache.facets
        #: Feasible rows without a total; and rows of which only the scores that a placed pod
        #: changes are missing.
        self._unscored: set[int] = set()
        self._moved: set[int] = set()
        self._totals = array("q", bytes(8 * table.capacity))
        #: By place, the journal's lines of the best nodes, until the row gets another total.
        self._lines: dict[int, NodeScore] = {}
        #: A placed pod changes only some scores. The other scores hardly ever change, so their sum
        #: is stored.
        self._placed_scores = [s for s in plan.scores if s.cache.facets & PLACED_FACETS]
        self._other_scores = [s for s in plan.scores if not s.cache.facets & PLACED_FACETS]
        self._other_totals = array("q", bytes(8 * table.capacity))
        self._other_facets = int(Facet.NODE)
        for score in self._other_scores:
            self._other_facets |= score.cache.facets
        self._equivalence = NodeEquivalence(table, plan)
        #: Whether what a placed pod changes follows from the amounts of its node alone.
        self.depends_on_amounts = self._equivalence.is_used
        self._filters = [(index, name, cache) for index, (name, cache) in enumerate(plan.filters)]
        #: The places of the filters that read what a placed pod changes.
        self._taken = {at for at, _, cache in self._filters if cache.facets & TAKEN_FACETS}
        #: By the facets that changed.
        self._affected: dict[int, _AffectedParts] = {}
        #: The rows that filters and scores had to answer for, and the rows that equivalence
        #: renewed; see `add_counts`.
        self._filtered_count = self._scored_count = self._renewed_count = 0
        self.feasibility = NodeFeasibility(plan.filters, table.capacity)
        self.feasibility.read(places_of(table.alive.values), evaluator)
        self._start(evaluator, scored)
        self._index = self._indexed(scored) if plan.is_complete else None
        #: The index that follows each change of a total; see `attach`.
        self._follower: TotalIndex | None = self._index
        #: Whether the cache entry that owns this ranking dropped it. No entry uses it from then on.
        self.is_dropped = False
        #: The signature of the entry that owns this ranking.
        self.owner = owner
        #: The scores whose extremes may move.
        self.with_extremes = [score for score in plan.scores if score.has_extremes]
        self._placed_extremes = [score for score in self._placed_scores if score.has_extremes]
        self._other_extremes = [score for score in self._other_scores if score.has_extremes]
        self.generation = table.log.generation

    def _start(self, evaluator: SingleNodeEvaluator, scored: ScoreTable | None) -> None:
        """Take the totals of the nodes that were scored, and evaluate the other feasible ones."""
        feasible = self.feasibility.feasible_rows()
        if scored is None:
            self._unscored.update(feasible.tolist())
            return
        for score in self.plan.scores:
            score.start(scored.nodes)
        rows, by_name = scored.nodes.table.rows, {column.name: column for column in scored.columns}
        self._set_totals(rows, by_name)
        if len(rows) < len(feasible):
            # A plugin whose results are not cached rejected these nodes.
            rows = np.setdiff1d(feasible, rows, assume_unique=True)
            names = [score.name for score in self.plan.scores]
            self._set_totals(rows, {name: evaluator.score_rows(name, rows) for name in names})
            for score in self.plan.scores:
                score.check()

    def _set_totals(self, rows: Rows, columns: dict[str, PluginScores]) -> None:
        other_totals = total_scores(
            [columns[score.name] for score in self._other_scores], len(rows)
        )
        placed = total_scores([columns[score.name] for score in self._placed_scores], len(rows))
        as_array(self._other_totals)[rows] = other_totals
        as_array(self._totals)[rows] = other_totals + placed

    def _indexed(self, scored: ScoreTable | None) -> ScoreIndex:
        if scored is None:
            return ScoreIndex(np.zeros(0, np.int64), np.zeros(0, np.intp))
        by_place = self._order[np.isin(self._order, scored.nodes.table.rows, assume_unique=True)]
        totals: Int64s = as_array(self._totals)[by_place]
        return ScoreIndex(totals, self._places[by_place])

    # ---- up to date -----------------------------------------------------------------------

    def follow(self) -> bool:
        """Bring the ranking up to date in the two usual cases, without calling a plugin.

        Either nothing changed since `generation` that the ranking depends on, or one pod was placed
        on a feasible node, which is now equivalent to a node that was evaluated before. False: call
        `update`."""
        log, since = self.table.log, self.generation
        if self._moved or self._unscored:
            return False
        if log.generation == since + 1:
            row, bits = log.newest
        else:
            changes: list[tuple[int, int]] | None = []
            if log.generation > since:
                changes = log.few_since(since, 1, self._facets)
            if changes is None or not self._is_same_table:
                return False
            if not changes:
                if self.with_extremes:  # They are checked where totals are needed; see `score`.
                    return False
                self._skip_to(log.generation)
                self._filtered_count += self.table.node_count
                return True
            [(row, bits)] = changes
            self._skip_to(log.generation - 1)
        if (
            not bits & ~TAKEN_FACETS
            and row < self._capacity
            and self.feasibility.numbers[row] == FEASIBLE
        ):
            number = self.table.resources.equivalence.numbers[row]
            if self.move(row, number) >= 0:
                return True
        if self.generation != since:
            self._skip_to(since)
        return False

    def _skip_to(self, generation: int) -> None:
        """Take another generation for the present one: the ranking does not depend on what is
        between the two."""
        self._equivalence.skip(self.generation, generation)
        self.generation = generation

    def move(self, row: int, number: int) -> int:
        """Follow a placement on a feasible row, which is the next change after `generation`.
        ``number``: the class of the row after the placement. Returns the number of feasible nodes
        that are left; -1: `update` has to follow the placement, for example if the node is full now
        and scores have extremes."""
        generation = self.generation + 1
        equivalent = self._equivalence.renew(
            row, number, generation, may_be_rejected=not self.with_extremes
        )
        if equivalent is None:
            return -1
        now, placed = equivalent
        place, before = self._places.item(row), self._totals[row]
        self._lines.pop(place, None)
        if now == FEASIBLE:
            self._totals[row] = total = self._other_totals[row] + placed
            if self._follower is not None:
                self._follower.move(place, before, total)
        else:
            # No score has extremes, so nothing depends on the scores of the row but its total.
            if self._follower is not None:
                self._follower.remove(place, before)
            self.feasibility.set(row, now)
        self._filtered_count += self.table.node_count
        self._renewed_count += 1
        self.generation = generation
        return self.feasibility.counts[FEASIBLE]

    def count_repeats(self, count: int) -> None:
        """So many equal pods take the answer of the last `follow` or `update`, too."""
        self._filtered_count += count * self.table.node_count

    def uncount(self) -> None:
        """Do not count the last `follow` or `update`, because it gave no answer, and another one
        comes for the same pod."""
        self._filtered_count -= self.table.node_count

    @property
    def _is_same_table(self) -> bool:
        table = self.table
        return table.draw_order() is self._order and table.capacity == self._capacity

    @property
    def is_behind(self) -> bool:
        """Whether some feasible rows have no total yet."""
        return bool(self._moved or self._unscored)

    def update(self, evaluator: SingleNodeEvaluator) -> None:
        """Evaluate the filters for the rows that changed since `generation`.

        If this raises RankingInvalid, drop the ranking."""
        if not self._is_same_table:
            raise RankingInvalid(NODES_CAME_OR_WENT)
        log = self.table.log
        self._filtered_count += self.table.node_count
        if log.generation == self.generation:
            return
        changes = log.few_since(self.generation, CHANGES_MAX, self._facets)
        if changes is None:
            raise RankingInvalid(TOO_MUCH_CHANGED)
        self._filter_changed(changes, evaluator)
        self.generation = log.generation

    def _filter_changed(
        self, changes: Sequence[tuple[int, int]], evaluator: SingleNodeEvaluator
    ) -> None:
        """Evaluate the filters of changed rows. ``changes``: (row, facets)."""
        bits, rows = 0, set[int]()
        for row, changed in changes:
            bits |= changed
            rows.add(row)
        affected = self._affected.get(bits)
        if affected is None:
            affected = self._affected[bits] = _AffectedParts(
                caches=[cache for cache in self.plan.row_caches() if cache.facets & bits],
                filters=[each for each in self._filters if each[2].facets & bits],
            )
        for cache in affected.caches:
            cache.forget_changed(self.generation, changes)
        is_only_placed, is_taken = not bits & self._other_facets, not bits & ~TAKEN_FACETS
        for row in rows:
            before, now = self.feasibility.numbers[row], NO_NODE
            if is_taken and self._is_rejected_as_before(row, before):
                self._renewed_count += 1
                continue
            if self.table.nodes[row] is not None:
                filters = affected.filters if before == FEASIBLE else self._filters
                now = self._first_rejection(row, filters, evaluator)
            if is_taken and now > FEASIBLE and self.feasibility.filter_of(now) in self._taken:
                self._equivalence.learn(row, now, 0)
            self._set_number(row, before, now, is_only_placed=is_only_placed)

    def _is_rejected_as_before(self, row: int, before: int) -> bool:
        """Whether a row whose amounts and ports changed keeps the number of its rejection.

        No filter in front of the rejecting one rejects the row: those that read what changed let an
        equivalent node through, and the others let this row through before the change."""
        return before > FEASIBLE and self._equivalence.find(row) == (before, 0)

    def _first_rejection(self, row: int, filters: _Filters, evaluator: SingleNodeEvaluator) -> int:
        """The number of the first rejection of a row by these filters, or FEASIBLE."""
        for index, name, cache in filters:
            verdict_number: int | None = cache.marks.item(row)
            if verdict_number == UNKNOWN:
                evaluator.count(name)
                verdict_number = cache.recall(row)
            if verdict_number is None:
                verdict_number = cache.learn_one(row, evaluator.filter_row(name, row))
            if verdict_number != PASSES:
                return self.feasibility.number(index, verdict_number)
        return FEASIBLE

    def _set_number(self, row: int, before: int, now: int, *, is_only_placed: bool) -> None:
        """Give a row its new verdict. ``is_only_placed``: nothing of the node changed but what a
        placed pod changes."""
        if before == now == FEASIBLE and is_only_placed:
            self._move(row)
            return
        if before == FEASIBLE:
            self._drop(row)
        self.feasibility.set(row, now)
        if now == FEASIBLE:
            self._unscored.add(row)

    def score(self, evaluator: SingleNodeEvaluator) -> None:
        """Give every feasible row a total. At least two rows must be feasible. Raises what `update`
        raises."""
        for row in self._moved:
            self._set_total(row, self._other_totals[row], evaluator)
        for row in self._unscored:
            self._other_totals[row] = other_total = self._sum_of(row, self._other_scores, evaluator)
            self._set_total(row, other_total, evaluator)
        self._moved.clear()
        self._unscored.clear()
        # The last row with an extreme may have left.
        for score in self.with_extremes:
            score.check()

    def _set_total(self, row: int, other_total: int, evaluator: SingleNodeEvaluator) -> None:
        placed = self._sum_of(row, self._placed_scores, evaluator)
        self._equivalence.learn(row, FEASIBLE, placed)
        self._totals[row] = total = other_total + placed
        if self._follower is not None:
            self._follower.add(self._places.item(row), total)

    def _sum_of(
        self, row: int, scores: Sequence[WeightedScore], evaluator: SingleNodeEvaluator
    ) -> int:
        total = 0
        for score in scores:
            cache = score.cache
            if not cache.marks.item(row):
                evaluator.count(score.name)
                if cache.recall(row) is None:
                    cache.learn_one(row, evaluator.score_row(score.name, row))
            total += score.add_row(row)
        return total

    def _move(self, row: int) -> None:
        """Remove the total of a row that stays feasible, because it may get another one."""
        if row in self._unscored or row in self._moved:
            return
        self._moved.add(row)
        place = self._places.item(row)
        if self._follower is not None:
            self._follower.remove(place, self._totals[row])
        self._lines.pop(place, None)
        for score in self._placed_extremes:
            score.remove_row(row)

    def _drop(self, row: int) -> None:
        """Remove the total of a row that is no longer feasible, or for which all scores change."""
        if row in self._unscored:
            self._unscored.discard(row)
            return
        self._move(row)
        self._moved.discard(row)
        for score in self._other_extremes:
            score.remove_row(row)

    # ---- the answer -----------------------------------------------------------------------

    @property
    def feasible_count(self) -> int:
        return self.feasibility.counts[FEASIBLE]

    @property
    def evaluated_count(self) -> int:
        return self.table.node_count

    def feasible_nodes(self, nodes: NodeView) -> NodeView:
        """All feasible nodes, whichever ``nodes`` are."""
        return nodes.take_rows(self._feasible_rows)

    def _feasible_rows(self) -> Rows | None:
        """The rows, ascending; None for every row of the table."""
        if self.feasible_count == self.table.row_count:
            return None
        return self.feasibility.feasible_rows()

    def only(self) -> Choice:
        """The one feasible node."""
        row = next(iter(self._unscored or self._moved), None)
        if row is None:
            assert self._index is not None, "the ranking is only a part of the answer"
            row = self._order.item(self._index.best()[0])
        return Choice(self.table.names[row])

    def choose(self, seed: int, pod_uid: str, attempt: int) -> Choice:
        """The node with the highest total; among equal ones, the one that is drawn."""
        self._scored_count += self.feasibility.counts[FEASIBLE]
        by_total = self._index
        assert by_total is not None, "the ranking is only a part of the answer"
        places = by_total.of_score[by_total.scores[-1]]
        count = len(places)
        index = tie_index(seed, pod_uid, attempt, count) if count > 1 else 0
        name = self.table.names[self._order.item(places[index])]
        return Choice(name, count, index)

    def best_total(self) -> int:
        """The highest total. All rows must have totals."""
        assert self._index is not None, "the ranking is only a part of the answer"
        return self._index.best_score

    def best_scores(self, count_max: int) -> tuple[NodeScore, ...]:
        """The scores of the best nodes, the best first, and equal ones in draw order. All rows must
        have totals."""
        assert self._index is not None, "the ranking is only a part of the answer"
        places = self._index.of_score[self._index.scores[-1]]
        if type(places) is array and len(places) >= count_max:
            places = places[:count_max]
        else:
            places = self._index.first(count_max)
        try:
            return tuple(map(self._lines.__getitem__, places))
        except KeyError:
            return tuple(self.lines_at(places))

    def lines(self, rows: Rows) -> list[NodeScore]:
        """The cached scores and their sums, of some rows with totals."""
        return self.lines_at(self._places[rows].tolist())

    def lines_at(self, places: Sequence[int]) -> list[NodeScore]:
        """The cached scores and their sums, of the nodes at places of the draw order."""
        lines = self._lines
        if len(lines) >= _LINES_MAX:
            lines.clear()
        for place in places:
            if place in lines:
                continue
            row, plugins = self._order.item(place), list[PluginScore]()
            for score in self.plan.scores:
                # This does what `CachedScores.of_row` does, without a call for each score of each
                # new line.
                cache = score.cache
                raw = cache.common if cache.scores is None else cache.scores.item(row)
                plugins.append(score.lines.get(raw) or score.line_of(raw))
            lines[place] = NodeScore(self.table.names[row], self._totals[row], tuple(plugins))
        return list(map(lines.__getitem__, places))

    def score_table(self, nodes: NodeView) -> ScoreTable:
        """The scores of a complete ranking as arrays. ``nodes``: the feasible ones."""
        columns = self.columns(nodes)
        return ScoreTable(nodes, columns, total_scores(columns, len(nodes)))

    def is_repeatable(self, equivalence: RowEquivalence) -> bool:
        """False, because `FailedPasses` repeats results of all nodes, and not by domain."""
        return False

    def after(self, row: int, number: int) -> tuple[int, int] | None:
        """What a feasible row will have if a placement moves it to this class: (number of its
        verdict, total). None: no node of the class was evaluated."""
        known = self._equivalence.of_class(number)
        return None if known is None else (known[0], self._other_totals[row] + known[1])

    def totals(self, nodes: NodeView) -> Int64s:
        """int64[nodes]: the sums of the cached scores of these feasible nodes. Callers must not
        write to it."""
        self._scored_count += self.feasible_count
        return as_array(self._totals)[nodes.table.index]

    def columns(self, nodes: NodeView) -> list[PluginScores]:
        """The cached scores of some nodes, plugin by plugin."""
        selection, count = nodes.table.index, len(nodes)
        columns: list[PluginScores] = []
        for score in self.plan.scores:
            raw = score.cache.of(selection, count)
            normal = normalized(score.normalizer, raw)
            columns.append(PluginScores(score.name, score.weight, raw, normal))
        return columns

    # ---- parts ----------------------------------------------------------------------------

    def attach(self, index: TotalIndex | None) -> None:
        """Let an index follow the changes of totals. ``index``: an index with the totals of all
        feasible rows; None detaches the present one. The ranking must be incomplete."""
        assert self._index is None and (index is None or not self.is_behind), "cannot follow"
        assert index is None or self._follower is None, "another index follows"
        self._follower = index

    def total_of(self, row: int) -> int:
        """The total of a feasible row that has one."""
        return self._totals[row]

    def totals_of(self, rows: Rows) -> Int64s:
        """int64[rows]: the totals of feasible rows, all of which have totals."""
        return as_array(self._totals)[rows]

    def places_left(self, rows: Rows) -> tuple[Int64s, Int64s]:
        """int64[rows], twice: what the further life of each feasible row depends on. The first is
        its class of equivalent nodes, the second the sum of the scores that no placed pod changes.

        If `depends_on_amounts`, two rows with equal pairs give equal answers to all further pods of
        this signature, until one of them changes otherwise."""
        classes = as_array(self.table.resources.equivalence.numbers)[rows]
        return classes, as_array(self._other_totals)[rows]

    def add_counts(self, counts: dict[str, RowCounts]) -> None:
        """Add the rows that the instances had to answer for. A row that was renewed by equivalence
        counts as evaluated."""
        needed = [(name, cache, self._filtered_count) for name, cache in self.plan.filters]
        needed += [(s.name, s.cache, self._scored_count) for s in self.plan.scores]
        for name, cache, count in needed:
            renewed = self._renewed_count if cache.facets & TAKEN_FACETS else 0
            counts[name].add(RowCounts(count, renewed))

    def validate(self) -> None:
        """Recompute everything from the row caches, for the rows that have not changed since
        `generation`. Raises AssertionError."""
        if not self._is_same_table:
            return
        rows_changed = self.table.log.rows_since(self.generation, int(self._facets))
        rows = np.sort(self._order)
        unchanged = np.setdiff1d(rows, rows_changed, assume_unique=True)
        self.feasibility.validate(rows, unchanged)
        missing = {*self._unscored, *self._moved}
        feasible = self.feasibility.feasible_rows()
        assert missing <= set(feasible.tolist()), "a row that is not feasible is to be scored"
        if self.plan.skip_set.scores is None:
            return
        scored = [row for row in feasible.tolist() if row not in missing]
        for score in self._other_scores:
            score.validate(np.array(sorted({*scored, *self._moved}), np.intp))
        for score in self._placed_scores:
            score.validate(np.array(scored, np.intp))
        for row in set(scored) & set(unchanged.tolist()):
            self._validate_total(row)
        if self._index is not None:
            totals: Int64s = as_array(self._totals)
            self._index.validate({self._places.item(row): totals.item(row) for row in scored})
        before, self._lines = self._lines, {}
        for place, line in before.items():
            row = self._order.item(place)
            if row in unchanged:
                assert [line] == self.lines_at([place]), f"row {row}: line {line}"
        self._lines = before

    def _validate_total(self, row: int) -> None:
        other_total = sum(score.expected(row) for score in self._other_scores)
        placed = sum(score.expected(row) for score in self._placed_scores)
        assert self._totals[row] == other_total + placed, f"row {row}: total {self._totals[row]}"
        assert self._other_totals[row] == other_total, (
            f"row {row}: others {self._other_totals[row]}"
        )
        equivalent = self._equivalence.find(row)
        assert equivalent in (None, (FEASIBLE, placed)), f"row {row}: equivalent {equivalent}"

    @property
    def bytes_used(self) -> int:
        of_scores = sum(score.bytes_used for score in self.plan.scores)
        of_index = 0 if self._index is None else self._index.bytes_used
        return 18 * self._capacity + of_scores + of_index
