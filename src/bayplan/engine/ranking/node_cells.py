"""NodeCells: plugins that count pods by topology domain, evaluated once per cell of nodes.

A ranking whose plan calls only such plugins is incomplete: one placed pod may change the result of
every node of a zone. `NodeCells` completes it for the pods of one template. A *cell* is a set of
nodes that agree in everything the `DomainRules` read: the domain of each label with few domains
(zones), and the counts of each label whose domains are single nodes (hosts). Per cell there is a
`ScoreIndex` over the totals of the row-wise plugins, which the ranking keeps current. A cycle:

1. The rows that changed are counted again. A row whose host counts changed moves to another cell. A
   count of a zone changes for all cells of the zone at once.
2. The rules give each cell a verdict and a score. Extremes are those of the feasible cells.
3. The best node is the best node of the cell with the highest sum. A draw among equal nodes covers
   all cells.

PreFilter and PreScore do not run, because the counts stand for their notes. So the cells serve pods
of one template until an object or a distinct affinity term comes or goes, or a plugin would begin
or cease to skip.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from bayplan.engine.ranking.evaluation_plan import (
    NODES_CAME_OR_WENT,
    OTHER_PLUGINS,
    TOO_MUCH_CHANGED,
    EvaluationPlan,
    RankingInvalid,
)
from bayplan.engine.ranking.node_feasibility import FEASIBLE, NodeFeasibility
from bayplan.engine.ranking.ranked_nodes import RankedNodes
from bayplan.engine.ranking.score_index import CellIndex, PlaceBlocks, ScoreIndex, as_array
from bayplan.engine.ranking.topology_counts import (
    LabelTopology,
    TopologyCount,
    pods_by_row,
    topologies_of,
    topology_count,
)
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.domain_rules import CellCounts, DomainPlugin, DomainRules
from bayplan.framework.filtering import Feasibility, FilterOutcome, RejectedNodes, RejectionEntry
from bayplan.framework.plugin import Plugin
from bayplan.framework.runtime import Framework
from bayplan.framework.scoring import Choice, PluginScores, ScoreTable, total_scores
from bayplan.framework.status import Rejection
from bayplan.journal import NodeScore, PluginScore, RejectionCount
from bayplan.rng import tie_index
from bayplan.state.columns import Floats, Int64s, Mask, NodeScores, Rows, is_any, places_of
from bayplan.state.domain_counts import NODES_BY_DOMAIN, PODS_BY_DOMAIN
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo, PodShape
from bayplan.state.resources import RowEquivalence

#: The number of cells above which cells take longer than arrays over all nodes.
CELLS_MAX = 512
#: The number of changes above which new cells take less time than to count the rows again.
RECOUNTS_MAX = 512
#: The number of sets of feasible cells that are remembered.
_SUBSETS_MAX = 64


#: The key of a cell: the domain, for each topology that has few domains; and the count, for each
#: count of hosts.
_CellKey = tuple[int, ...]
_InOrder = Callable[[tuple[PluginScore, ...]], tuple[PluginScore, ...]]


# ---- rules ------------------------------------------------------------------------------------


@final
class NamedRules(Struct, frozen=True):
    """The rules of one instance, and whether the cycle skipped the instance."""

    name: str
    weight: int
    rules: DomainRules
    filters: bool
    scores: bool


@final
class _CountedRules(Struct, frozen=True):
    """The rules of one instance with the counts that they read."""

    named: NamedRules
    counts: Sequence[TopologyCount]

    def check(self) -> None:
        """Raises RankingInvalid if the plugin would now skip and did not before, or if it skipped
        before and would not now."""
        totals = [count.total for count in self.counts]
        named = self.named
        is_same = named.rules.filters(totals) == named.filters
        if not is_same or named.rules.scores(totals) != named.scores:
            raise RankingInvalid(OTHER_PLUGINS)


@final
class _SomeCells:
    """The cells whose nodes are evaluated, with their keys. ``keys``: int64[columns, cells]."""

    __slots__ = ("_distinct", "_keys", "_subsets", "cells", "columns", "rejections")

    def __init__(self, cells: Rows, keys: npt.NDArray[np.int64]) -> None:
        self.cells = cells
        self._keys = keys
        self._subsets: dict[bytes, _SomeCells] = {}
        #: By instance, the rejections that follow from the keys alone.
        self.rejections: dict[str, Sequence[Rejection]] = {}
        #: By column, contiguous: int64[cells].
        self.columns: list[Int64s] = list(keys.take(cells, axis=1))
        self._distinct: dict[int, int] = {}

    def subset(self, mask: Mask) -> "_SomeCells":
        """Some of these cells. ``mask``: bool[cells]. The subset keeps its results for later
        cycles."""
        key = mask.tobytes()
        subset = self._subsets.get(key)
        if subset is None:
            if len(self._subsets) == _SUBSETS_MAX:
                self._subsets.clear()
            subset = self._subsets[key] = _SomeCells(self.cells[mask], self._keys)
        return subset

    def domain_count(self, column: int) -> int:
        count = self._distinct.get(column)
        if count is None:
            count = self._distinct[column] = len(set(self.columns[column].tolist()))
        return count


@final
class _Counts(CellCounts):
    """The counts that one instance's rules read of some cells."""

    __slots__ = ("_columns_of_keys", "_counts", "_node_count", "_some", "are_keys_enough")

    def __init__(
        self,
        counts: Sequence[TopologyCount],
        some: _SomeCells,
        node_count: int,
        columns_of_keys: Mapping[str, int],
    ) -> None:
        """``columns_of_keys``: topology keys with few domains → column."""
        self._counts = counts
        self._some = some
        self._node_count = node_count
        self._columns_of_keys = columns_of_keys
        #: Whether the rules have read only the keys of the cells so far.
        self.are_keys_enough = True

    def of_cells(self, index: int) -> Floats:
        count = self._counts[index]
        column = self._some.columns[count.column]
        if count.topology.has_few:
            self.are_keys_enough = False
            return count.by_domain.take(column)
        return column.astype(np.float64)

    def of_domains(self, index: int) -> Floats:
        self.are_keys_enough = False
        return self._counts[index].of_domains()

    @property
    def node_count(self) -> int:
        self.are_keys_enough = False
        return self._node_count

    def domain_count(self, topology_key: str) -> int:
        self.are_keys_enough = False
        column = self._columns_of_keys.get(topology_key)
        return self._node_count if column is None else self._some.domain_count(column)


# ---- cells ------------------------------------------------------------------------------------


@final
class NodeCells:
    """The cells of one ranking, for pods of one template."""

    def __init__(
        self,
        ranking: RankedNodes,
        named_rules: Sequence[NamedRules],
        pod: PodInfo,
        state: CycleState,
        *,
        score_order: Sequence[str],
        object_generation: int,
    ) -> None:
        """The cells are made right after a cycle that this ranking and these rules could answer.

        ``named_rules``: in the order of Filter. ``score_order``: names of all Score instances.
        ``state``: after PreScore, without the notes that the rules replace. ``object_generation``:
        `ObjectGeneration.now_of_distinct_terms`. Raises RankingInvalid where there are too many
        cells, or a node lacks a label.
        """
        self.ranking = ranking
        self._table = table = ranking.table
        self._shape = pod.shape
        self._owners = pod.metadata.owner_references
        self._object_generation = object_generation
        self._state = state
        self.generation = table.log.generation
        #: The number of pods that the cells answered for.
        self.answered_count = 0
        rows = table.draw_order()
        topologies = topologies_of(table, [named.rules for named in named_rules], rows)
        self._few = [topology for topology in topologies.values() if topology.has_few]
        self._columns_of_keys = {topology.key: at for at, topology in enumerate(self._few)}
        columns = [topology.domains[rows] for topology in self._few]
        self._rules = [self._counted(named, topologies, columns) for named in named_rules]
        self._filters = [each for each in self._rules if each.named.filters]
        self._scores = [each for each in self._rules if each.named.scores]
        self._counts = [count for each in self._rules for count in each.counts]
        self._host_counts = [count for count in self._counts if not count.topology.has_few]
        self._open_cells(columns, rows)
        self._filled: _SomeCells | None = None
        #: The places of the instances' lines in the journal: those of the ranking come first.
        names = [score.name for score in ranking.plan.scores]
        names += [each.named.name for each in self._scores]
        places = sorted(range(len(names)), key=lambda at: score_order.index(names[at]))
        # A getter of one place returns no tuple, but then there is nothing to order.
        self.in_order: _InOrder = (
            itemgetter(*places) if len(places) > 1 else tuple[PluginScore, ...]
        )
        self._score_order = score_order

    def _counted(
        self, named: NamedRules, topologies: Mapping[str, LabelTopology], columns: list[Rows]
    ) -> _CountedRules:
        """The counts of one instance. A count of hosts adds its column to ``columns``, [nodes in
        draw order] each."""
        rows, counts = self._table.draw_order(), list[TopologyCount]()
        for each in named.rules.counts:
            count = topology_count(self._table, each, topologies[each.topology_key], rows)
            if count.topology.has_few:
                count.column = self._columns_of_keys[each.topology_key]
            else:
                count.column = len(columns)
                columns.append(count.by_row[rows].astype(np.intp))
            counts.append(count)
        return _CountedRules(named, counts)

    def _open_cells(self, columns: Sequence[Rows], rows: Rows) -> None:
        """``columns``: [nodes in draw order] each."""
        table = self._table
        if columns:
            keys, cell_of_place = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
            cell_of_place = cell_of_place.reshape(-1)
        else:
            keys, cell_of_place = np.zeros((1, 0), np.int64), np.zeros(len(rows), np.int64)
        if len(keys) > CELLS_MAX // 2:
            raise RankingInvalid(TOO_MUCH_CHANGED)
        #: int64[columns, room for cells]
        self._keys = np.zeros((len(columns), CELLS_MAX), np.int64)
        self._keys[:, : len(keys)] = keys.T
        self._cell_of_key = {tuple(key): cell for cell, key in enumerate(keys.tolist())}
        self._index = CellIndex(array("i", cell_of_place.astype(np.int32).tobytes()))
        feasible = self.ranking.feasibility.of_rows(rows) == FEASIBLE
        totals = self.ranking.totals_of(rows)
        self._order, self._places = rows, table.draw_places()
        for cell in range(len(keys)):
            places = places_of(feasible & (cell_of_place == cell))
            self._index.open(totals[places], places)
        self.ranking.attach(self._index)

    def fits(self, pod: PodInfo, object_generation: int) -> bool:
        """Whether the rules are those of ``pod``, and PreFilter and PreScore would leave the same
        notes."""
        return (
            pod.shape is self._shape
            and object_generation == self._object_generation
            and pod.metadata.owner_references == self._owners
        )

    def state(self) -> CycleState:
        """A copy of the notes that the cycle may write to."""
        return self._state.clone()

    def rule_names(self) -> list[str]:
        """The instances whose rules are evaluated."""
        return [each.named.name for each in self._rules]

    # ---- up to date -----------------------------------------------------------------------

    def update(self) -> None:
        """Count the rows that changed since `generation`. All rows of the ranking have totals.
        Raises RankingInvalid: drop the cells."""
        log = self._table.log
        if log.generation == self.generation:
            return
        changes = log.few_since(self.generation, RECOUNTS_MAX, PODS_BY_DOMAIN)
        if changes is None:
            raise RankingInvalid(TOO_MUCH_CHANGED)
        for _, bits in changes:
            if bits & NODES_BY_DOMAIN:
                raise RankingInvalid(NODES_CAME_OR_WENT)
        for row in dict(changes):
            self._count_again(row)
        self.generation = log.generation

    def steps(self, shape: PodShape) -> Sequence[int]:
        """By count, how much it grows with one pod of the shape on a node."""
        return [self._table.count_step(count.count.pods, shape) for count in self._counts]

    def move(self, row: int, steps: Sequence[int]) -> None:
        """Follow a placement on a row, the next change after `generation`, which the ranking has
        followed. ``steps``: as `steps`. Raises as `update`."""
        self._count(row, steps)
        self.generation += 1

    def _count_again(self, row: int) -> None:
        self._count(row, [count.change_of(self._table, row) for count in self._counts])

    def _count(self, row: int, changes: Sequence[int]) -> None:
        """``changes``: by count."""
        moves = may_skip = False
        for count, change in zip(self._counts, changes, strict=True):
            if change and count.includes(row):
                had_none = not count.total
                count.add(row, change)
                may_skip |= had_none or not count.total
                moves |= not count.topology.has_few
        if moves:
            self._move(row)
        if may_skip:
            for each in self._rules:
                each.check()

    def _move(self, row: int) -> None:
        """Move a row to the cell of its present key."""
        key = self._key_of(row)
        cell = self._cell_of_key.get(key)
        if cell is None:
            cell = len(self._cell_of_key)
            if cell == CELLS_MAX:
                raise RankingInvalid(TOO_MUCH_CHANGED)
            self._cell_of_key[key] = cell
            self._keys[:, cell] = key
            self._index.open(np.zeros(0, np.int64), np.zeros(0, np.intp))
        place, index = self._places.item(row), self._index
        is_feasible = self.ranking.feasibility.numbers[row] == FEASIBLE
        total = self.ranking.total_of(row)
        if is_feasible:
            index.remove(place, total)
        index.cell_of_place[place] = cell
        if is_feasible:
            index.add(place, total)

    def _key_of(self, row: int) -> _CellKey:
        of_few = [topology.domains.item(row) for topology in self._few]
        return (*of_few, *[count.by_row.item(row) for count in self._host_counts])

    # ---- the answer -----------------------------------------------------------------------

    def answer(self) -> "CellAnswer | None":
        """Evaluate Filter and Score once per cell; None if fewer than two nodes are feasible.

        The cells are up to date. If this raises RankingInvalid, drop the cells."""
        index = self._index
        if self._filled is None or index.is_reshaped:
            index.is_reshaped = False
            self._filled = _SomeCells(places_of(as_array(index.sizes)), self._keys)
        filled = self._filled
        sizes: Int64s = as_array(index.sizes)[filled.cells]
        feasible, rejected = self._filter(filled, sizes)
        if feasible is not None:
            filled, sizes = filled.subset(feasible), sizes[feasible]
        node_count = int(np.add.reduce(sizes))
        if node_count < 2:
            return None
        columns: list[PluginScores] = []
        for each in self._scores:
            named, counts = each.named, self._counts_of(each, filled, node_count)
            raw = named.rules.raw_scores(counts)
            final = named.rules.normalized(raw)
            columns.append(PluginScores(named.name, named.weight, raw, final))
        added = total_scores(columns, len(sizes)) if columns else None
        self.answered_count += 1
        return CellAnswer(
            self, filled.cells, added, columns, rejected=rejected, node_count=node_count
        )

    def _filter(
        self, some: _SomeCells, sizes: Int64s
    ) -> tuple[Mask | None, list[tuple[RejectedNodes, Rows]]]:
        """The feasible cells as bool[cells], or None if all are feasible; and the rejections with
        their cells."""
        rejected: list[tuple[RejectedNodes, Rows]] = []
        feasible: Mask | None = None
        for each in self._filters:
            before = feasible
            for rejection in self._rejections(each, some):
                mask = np.asarray(rejection.positions, np.bool_)
                mask = mask if before is None else mask & before
                if is_any(mask):
                    feasible = ~mask if feasible is None else feasible & ~mask
                    node_count = int(np.add.reduce(sizes[mask]))
                    code, reasons = rejection.code, rejection.reasons
                    cells = some.cells[mask]
                    rejected.append(
                        (RejectedNodes(each.named.name, code, reasons, node_count), cells)
                    )
        return feasible, rejected

    def _rejections(self, each: _CountedRules, some: _SomeCells) -> Sequence[Rejection]:
        rejections = some.rejections.get(each.named.name)
        if rejections is None:
            counts = self._counts_of(each, some, 0)
            rejections = tuple(each.named.rules.rejections(counts))
            if counts.are_keys_enough:
                some.rejections[each.named.name] = rejections
        return rejections

    def _counts_of(self, each: _CountedRules, some: _SomeCells, node_count: int) -> _Counts:
        return _Counts(each.counts, some, node_count, self._columns_of_keys)

    def best_totals(self, cells: Rows) -> Int64s:
        """int64[cells]: the highest total that the ranking has in each cell."""
        return as_array(self._index.bests)[cells]

    @property
    def indexes(self) -> Sequence[ScoreIndex]:
        """The index of each cell, by cell."""
        return self._index.of_cell

    def name_of(self, place: int) -> str:
        """The name of the node at a place of the draw order."""
        return self._table.names[self._order.item(place)]

    def cells_of(self, rows: Rows) -> Rows:
        """intp[rows]: the cell of each row."""
        places = self._places[rows]
        return np.frombuffer(self._index.cell_of_place, np.int32)[places].astype(np.intp)

    def ordered(self, columns: Sequence[PluginScores]) -> list[PluginScores]:
        """In the order of the profile."""
        return sorted(columns, key=lambda column: self._score_order.index(column.name))

    def close(self) -> None:
        """Detach the cells: the ranking no longer keeps their index current."""
        self.ranking.attach(None)

    @property
    def bytes_used(self) -> int:
        of_counts = sum(count.by_row.nbytes for count in self._counts)
        return of_counts + self._index.bytes_used + self._keys.nbytes

    def validate(self) -> None:
        """Recompute counts and cells, if nothing changed since `generation`. Raises
        AssertionError."""
        if self.generation != self._table.log.generation or self.ranking.is_behind:
            return
        rows = self._table.draw_order()
        for count in self._counts:
            current = pods_by_row(self._table, count.count, count.included)[rows]
            assert (count.by_row[rows] == current).all(), f"{count.count}: pods by row"
            assert count.total == current.sum(), f"{count.count}: total"
            if count.topology.has_few:
                domains = count.topology.domains[rows]
                by_domain = np.bincount(domains, current, count.topology.domain_count)
                assert (count.by_domain == by_domain).all(), f"{count.count}: pods by domain"
        for row in rows.tolist():
            cell = self._index.cell_of_place[self._places.item(row)]
            assert self._cell_of_key.get(self._key_of(row)) == cell, f"row {row} is in cell {cell}"
        feasible = rows[self.ranking.feasibility.of_rows(rows) == FEASIBLE].tolist()
        self._index.validate(
            {self._places.item(row): self.ranking.total_of(row) for row in feasible}
        )


def rules_for(
    framework: Framework, plan: EvaluationPlan, state: CycleState, pod: PodInfo, *, nodes: NodeView
) -> list[NamedRules] | None:
    """The rules that complete a plan, after PreScore. None: some plugin of the plan that looks
    across nodes, or does not sign the pod, has no rules. ``nodes``: all nodes."""
    plugins, unconcerned = framework.plugins, framework.unconcerned(pod)
    filters = {plugin.instance_name for plugin in plugins.filter} - state.skip_filter_plugins
    weights = {plugin.instance_name: weight for plugin, weight in plugins.score}
    scorers = [plugin for plugin, _ in plugins.score]
    across = {
        plugin.instance_name: plugin
        for plugin in (*plugins.filter, *plugins.pre_filter, *plugins.pre_score, *scorers)
        if plugin.scope != "row" and plugin.instance_name not in unconcerned
    }
    # The rules reject only nodes that all other filters left.
    is_last = all(end == len(plan.filters) for end, _ in plan.called_filters)
    called = {name for _, name in plan.called_filters} | set(plan.called_scores)
    if not is_last or not called <= across.keys():
        return None
    named: list[NamedRules] = []
    for name, plugin in across.items():
        rules = plugin.domain_rules(pod, nodes) if isinstance(plugin, DomainPlugin) else None
        if rules is None:
            return None
        scores = name in weights and name not in state.skip_score_plugins
        named.append(NamedRules(name, weights.get(name, 0), rules, name in filters, scores))
    return named


def state_for_cells(state: CycleState, plugins: Iterable[Plugin]) -> CycleState:
    """A copy of the notes after PreScore, without those that rules replace."""
    copy = state.clone()
    for plugin in plugins:
        for key in plugin.domain_note_keys() if isinstance(plugin, DomainPlugin) else ():
            if key in copy:
                del copy[key]
    return copy


# ---- the answer of a cycle --------------------------------------------------------------------


@final
class CellAnswer:
    """A `CycleAnswer` that has verdicts and scores by cell."""

    __slots__ = ("_added", "_cells", "_columns", "_totals", "feasibility", "node_cells")

    def __init__(
        self,
        node_cells: NodeCells,
        cells: Rows,
        added: Int64s | None,
        columns: Sequence[PluginScores],
        *,
        rejected: Sequence[tuple[RejectedNodes, Rows]],
        node_count: int,
    ) -> None:
        """``cells``: the cells with feasible nodes, of which there are ``node_count``.
        ``columns``: the scores of the rules. ``added``: what these add to the total of each cell,
        int64[cells]; None if no rule scores. ``rejected``: the rejections with their cells."""
        self.node_cells = node_cells
        self._cells: list[int] = cells.tolist()
        self._added = added
        self._columns = columns
        totals = node_cells.best_totals(cells)
        #: The total of the best node of each cell. There are few cells, so lists are faster than
        #: arrays.
        self._totals: list[int] = (totals if added is None else totals + added).tolist()
        whole = node_cells.ranking.feasibility
        self.feasibility = CellFeasibility(whole, node_cells, rejected, node_count)

    @property
    def whole(self) -> RankedNodes:
        return self.node_cells.ranking

    @property
    def feasible_count(self) -> int:
        return self.feasibility.feasible_count

    @property
    def evaluated_count(self) -> int:
        return self.whole.evaluated_count

    def feasible_nodes(self, nodes: NodeView) -> NodeView:
        """All feasible nodes, whichever ``nodes`` are."""
        return nodes.take_rows(self._feasible_rows)

    def is_repeatable(self, equivalence: RowEquivalence) -> bool:
        return False

    def _feasible_rows(self) -> Rows:
        """The rows of the feasible nodes, ascending."""
        rows, nodes = self.whole.feasibility.feasible_rows(), self.node_cells
        return rows[np.isin(nodes.cells_of(rows), self._cells)]

    def choose(self, seed: int, pod_uid: str, attempt: int) -> Choice:
        """The node with the highest total; among equal ones, the one that is drawn."""
        indexes, best_total = self.node_cells.indexes, max(self._totals)
        best: list[array[int] | PlaceBlocks] = []
        for cell, total in zip(self._cells, self._totals, strict=True):
            if total == best_total:
                # This does what `ScoreIndex.best` does, without a call for each cell.
                index = indexes[cell]
                best.append(index.of_score[index.scores[-1]])
        count = sum(map(len, best))
        drawn = tie_index(seed, pod_uid, attempt, count) if count > 1 else 0
        return Choice(self.node_cells.name_of(nth_of(best, drawn)), count, drawn)

    def best_total(self) -> int:
        """The highest total."""
        return max(self._totals)

    def best_scores(self, count_max: int) -> tuple[NodeScore, ...]:
        """The scores of the best nodes, the best first, and equal ones in draw order."""
        best: list[tuple[int, int, int]] = []
        node_cells, totals, indexes = self.node_cells, self._totals, self.node_cells.indexes
        for at in sorted(range(len(totals)), key=totals.__getitem__, reverse=True):
            if len(best) == count_max and totals[at] < -best[-1][0]:
                break
            added = 0 if self._added is None else self._added.item(at)
            first = indexes[self._cells[at]].first_with_totals(count_max)
            best += [(-added - total, place, at) for total, place in first]
            best.sort()
            del best[count_max:]
        lines = node_cells.ranking.lines_at([place for _, place, _ in best])
        if not self._columns:
            return tuple(lines)
        # Most of the best nodes are in few cells.
        of_rules: dict[int, list[PluginScore]] = {}
        scores: list[NodeScore] = []
        for line, (negative, _, at) in zip(lines, best, strict=True):
            if at not in of_rules:
                of_rules[at] = [column.line(at) for column in self._columns]
            plugins = node_cells.in_order((*line.plugins, *of_rules[at]))
            scores.append(NodeScore(line.node, -negative, plugins))
        return tuple(scores)

    def score_table(self, nodes: NodeView) -> ScoreTable:
        """The scores of all plugins as arrays. ``nodes``: the feasible ones."""
        at = np.searchsorted(self._cells, self.node_cells.cells_of(nodes.table.rows))
        columns = [
            PluginScores(each.name, each.weight, _taken(each.raw, at), _taken(each.normalized, at))
            for each in self._columns
        ]
        columns = self.node_cells.ordered([*self.whole.columns(nodes), *columns])
        return ScoreTable(nodes, columns, total_scores(columns, len(nodes)))


def _taken(scores: NodeScores, at: Rows) -> NodeScores:
    return scores[at].astype(np.int64)


def nth_of(parts: "Sequence[array[int] | PlaceBlocks]", index: int) -> int:
    """The ``index``-th of the places of all parts together. Each part is ascending, and no place is
    in two parts."""
    if len(parts) == 1:
        return parts[0][index]
    arrays: list[array[int]] = []
    for part in parts:
        arrays += part.blocks if isinstance(part, PlaceBlocks) else (part,)
    low, count = min([part[0] for part in arrays]), sum(map(len, arrays))
    gap = (max([part[-1] for part in arrays]) + 1 - low) / count
    # The draw order is that of a hash, so the places are spread evenly: guess a place, correct the
    # guess once, and sort the few places between the guess and the result.
    guess = low + int(index * gap)
    guess += int((index - sum([bisect_right(part, guess) for part in arrays])) * gap)
    ends = [bisect_right(part, guess) for part in arrays]
    missing_count = index - sum(ends)
    before_count, after_count = max(-missing_count, 0), max(missing_count + 1, 0)
    between: list[int] = []
    for part, end in zip(arrays, ends, strict=True):
        between += part[max(end - before_count, 0) : end + after_count]
    between.sort()
    return between[missing_count]


@final
class CellFeasibility(Feasibility):
    """The feasibility of all nodes: the rejections of the ranking and those of the rules."""

    __slots__ = ("_feasible_count", "_node_cells", "_rejected", "_whole")

    def __init__(
        self,
        whole: NodeFeasibility,
        node_cells: NodeCells,
        rejected: Sequence[tuple[RejectedNodes, Rows]],
        feasible_count: int,
    ) -> None:
        self._whole = whole
        self._node_cells = node_cells
        self._rejected = rejected
        self._feasible_count = feasible_count

    @property
    def feasible_count(self) -> int:
        return self._feasible_count

    def for_journal(self) -> tuple[int, tuple[RejectionCount, ...]]:
        rejections = self.rejection_counts() if self._rejected else self._whole.for_journal()[1]
        return self._feasible_count, rejections

    def rejection_counts(self) -> tuple[RejectionCount, ...]:
        of_whole = self._whole.rejection_counts()
        if not self._rejected:
            return of_whole
        if not of_whole and len(self._rejected) == 1:
            plugin, code, reasons, node_count = self._rejected[0][0]
            if len(reasons) == 1:
                return (RejectionCount(plugin, str(code), reasons[0], nodes=node_count),)
        return super().rejection_counts()

    def rejected(self) -> Iterator[RejectedNodes]:
        yield from self._whole.rejected()
        for rejected, _ in self._rejected:
            yield rejected

    def outcome(self, nodes: NodeView) -> FilterOutcome:
        """The feasibility as arrays over all nodes."""
        outcome = self._whole.outcome(nodes)
        cells = self._node_cells.cells_of(nodes.table.rows)
        for rejected, of_cells in self._rejected:
            positions = places_of(outcome.feasible & np.isin(cells, of_cells))
            entry = RejectionEntry(rejected.plugin, rejected.code, rejected.reasons, positions)
            outcome.entries.append(entry)
            outcome.feasible[positions] = False
        return outcome
