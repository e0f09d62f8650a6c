"""Results of searches on many nodes, cached by row for pods with equal keys.

The victims on a node depend on the node, its pods, the pods nominated to the node and the
disruption budgets. So for a pod with the key of an earlier preemptor only the nodes that changed
since are searched, and of these only those that the dry run reaches. If many equal pods preempt one
after another, these are the nodes that the pods before were nominated to. See docs/decisions/0010.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import final

import numpy as np
import numpy.typing as npt

from bayplan.framework.handle import FilterKey
from bayplan.framework.preemption import Victims
from bayplan.plugins.default_preemption.budgets import Budgets
from bayplan.plugins.default_preemption.candidates import Batch, Costs
from bayplan.plugins.default_preemption.victims import SIDE_BY_SIDE_MIN, Places, Side, victims_at
from bayplan.state.cache import Snapshot
from bayplan.state.columns import Rows, is_any, places_of
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from bayplan.state.ranked_pods import RankedView

#: Keys in the cache.
ENTRIES_MAX = 8

_UNKNOWN, _NO_CANDIDATE, _CANDIDATE = 0, 1, 2

#: Searches these positions of all nodes; None: amounts do not decide.
SearchSide = Callable[[Rows], Side | None]


@final
class RotatedPositions:
    """Positions in their order from a start on, and then those before the start."""

    def __init__(self, positions: Rows, start: int) -> None:
        self._positions = positions
        self._start = start

    def __len__(self) -> int:
        return len(self._positions)

    def first(self, count: int) -> Rows:
        """The first so many, or all if there are fewer."""
        positions, start = self._positions, self._start
        end = start + count
        if end <= len(positions):
            return positions[start:end]
        before = min(end - len(positions), start)
        return np.concatenate((positions[start:], positions[:before]))

    def all(self) -> Rows:
        return self.first(len(self._positions))

    def any_order(self) -> Rows:
        """All positions, for readers to whom their order means nothing."""
        return self._positions


@final
class CachedSearch:
    """The cached results for pods of one filter_key and priority."""

    def __init__(self, filter_key: FilterKey, budgets: Budgets) -> None:
        self._facet_bits = filter_key.facet_bits
        self._objects = filter_key.objects
        self._budgets = budgets
        #: The generation of the change log and the turn of the pod ranks that the results include.
        self._generation: int = -1
        self._turn: int = -1
        #: Node name → the nominated pods that the results include.
        self._nominated: Mapping[str, Sequence[PodInfo]] = {}
        self._kinds: npt.NDArray[np.int8] = np.zeros(0, np.int8)
        #: Of candidates.
        self._costs = _no_costs()
        self._leaving: Places = np.zeros((0, 0), np.bool_)
        self._violating: Places = np.zeros((0, 0), np.bool_)

    def holds(self, filter_key: FilterKey, budgets: Budgets) -> bool:
        """Whether the results still hold, apart from rows that changed."""
        pairs = zip(self._objects, filter_key.objects, strict=True)
        return budgets is self._budgets and all(old is new for old, new in pairs)

    def catch_up(
        self,
        snapshot: Snapshot,
        nodes: NodeView,
        ranked: RankedView,
        nominated: Mapping[str, Sequence[PodInfo]],
    ) -> None:
        """Forget rows that changed. ``nodes``, ``ranked``: all nodes, and their pods.
        ``nominated``: node name → the nominated pods that have to fit there, too."""
        self._grow(_row_count(nodes))
        self._forget(snapshot.rows_since(self._generation, self._facet_bits))
        if ranked.turn != self._turn:
            self._forget(ranked.rows_since(self._turn))
        self._generation, self._turn = snapshot.generation, ranked.turn
        before, self._nominated = self._nominated, nominated
        if nominated != before:
            names = {*before, *nominated}
            others = [name for name in names if before.get(name) != nominated.get(name)]
            self._forget(_rows_of(nodes.table.index, nodes.positions(others)))

    def search(
        self,
        nodes: NodeView,
        ranked: RankedView,
        positions: RotatedPositions,
        candidate_count: int,
        *,
        side: SearchSide,
    ) -> Batch | None:
        """The first candidates among these positions, up to the required number, one of them
        without a violation. None: amounts do not decide. ``nodes``, ``ranked``: as `catch_up`."""
        index, count = nodes.table.index, len(positions)
        size = candidate_count + SIDE_BY_SIDE_MIN
        while True:
            window = positions.first(size)
            rows = _rows_of(index, window)
            kinds = self._kinds.take(rows)
            reached, is_enough = self._reached(rows, kinds, candidate_count)
            unknown = places_of(kinds == _UNKNOWN)
            if len(unknown) and (not is_enough or unknown[0] < reached[-1]):
                # Searching further nodes at the same time costs little; the dry run reaches them
                # sooner or later.
                every = positions.all()
                unknown = places_of(self._kinds[_rows_of(index, every)] == _UNKNOWN)
                chunk = every[unknown[: max(candidate_count, SIDE_BY_SIDE_MIN)]]
                result = side(chunk)
                if result is None:
                    return None
                candidates = _rows_of(index, result.batch.positions)
                self._put(_rows_of(index, chunk), candidates, result)
            elif is_enough or size >= count:
                reached_positions, reached_rows = window.take(reached), rows.take(reached)
                return self._batch(nodes, ranked, reached_positions, reached_rows)
            else:
                size *= 2

    def _reached(
        self, rows: Rows, kinds: npt.NDArray[np.int8], candidate_count: int
    ) -> tuple[Rows, bool]:
        """The places of the candidates that would be reached, one after another, if the unknown
        were none; and whether they are enough."""
        candidates = places_of(kinds == _CANDIDATE)
        if not len(candidates) or len(candidates) < candidate_count:
            return candidates, False
        if not len(self._budgets):
            # No candidate violates one.
            return candidates[: max(1, candidate_count)], True
        gentle = self._costs.pdb_violation_counts[rows[candidates]] == 0
        if not is_any(gentle):
            return candidates, False
        return candidates[: max(int(gentle.argmax()) + 1, candidate_count)], True

    def _batch(self, nodes: NodeView, ranked: RankedView, positions: Rows, rows: Rows) -> Batch:
        def victims(index: int) -> Victims:
            row = rows.item(index)
            violating = self._violating[row] if len(self._budgets) else None
            return victims_at(
                nodes, ranked, positions.item(index), self._leaving[row], violated=violating
            )

        return Batch(positions, self._costs.take(rows), victims)

    def _put(self, searched: Rows, candidates: Rows, result: Side) -> None:
        self._kinds[searched] = _NO_CANDIDATE
        self._kinds[candidates] = _CANDIDATE
        for column, costs in zip(self._costs.columns(), result.batch.costs.columns(), strict=True):
            column[candidates] = costs
        places = result.leaving.shape[1]
        self._leaving = _widened(self._leaving, len(self._kinds), places)
        self._leaving[candidates] = False
        self._leaving[candidates, :places] = result.leaving
        if len(self._budgets):
            self._violating = _widened(self._violating, len(self._kinds), places)
            self._violating[candidates] = False
            if result.violating is not None:
                self._violating[candidates, :places] = result.violating

    def _grow(self, row_count: int) -> None:
        more = row_count - len(self._kinds)
        if more > 0:
            self._kinds = np.pad(self._kinds, (0, more))
            self._costs = self._costs.changed(lambda column: np.pad(column, (0, more)))

    def _forget(self, rows: Rows) -> None:
        """Rows that the results do not cover are unknown in any case."""
        self._kinds[rows[rows < len(self._kinds)]] = _UNKNOWN


def _row_count(nodes: NodeView) -> int:
    """One more than the highest row of the table with a node."""
    index = nodes.table.index
    if isinstance(index, slice):
        return len(nodes)
    return index.item(-1) + 1 if len(index) else 0


def _rows_of(index: Rows | slice, positions: Rows) -> Rows:
    """``index``: of the nodes in the table."""
    return positions if isinstance(index, slice) else index[positions]


def _no_costs() -> Costs:
    none = np.zeros(0, np.int64)
    return Costs(none, none, none, none, np.zeros(0, np.float64))


def _widened(old: Places, rows: int, places: int) -> Places:
    more_rows, more_places = rows - old.shape[0], max(places - old.shape[1], 0)
    if not more_rows and not more_places:
        return old
    return np.pad(old, ((0, more_rows), (0, more_places)))


@final
class SearchCache:
    """The results of the most recently used keys."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, CachedSearch] = OrderedDict()

    def of(self, filter_key: FilterKey, priority: int, budgets: Budgets) -> CachedSearch:
        key = (filter_key.key, priority)
        search = self._entries.get(key)
        if search is None or not search.holds(filter_key, budgets):
            search = self._entries[key] = CachedSearch(filter_key, budgets)
        self._entries.move_to_end(key)
        if len(self._entries) > ENTRIES_MAX:
            self._entries.popitem(last=False)
        return search
