"""Picks: for one pod's like, the nodes ranked by their totals.

Where all plugins that have something to say about a pod are row-wise, a repeat placement needs no
pass over the nodes: the few rows that changed move in the ranking, and the best stands first.
"""

from typing import final

import numpy as np

from bayplan.engine.ranking import Ranking
from bayplan.engine.row_totals import Like, RowTotals, as_array
from bayplan.engine.selection import Choice
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.score_table import ScoreTable, total_scores
from bayplan.rng import tie_index
from bayplan.state.columns import Int64s
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import NodeView


@final
class Picks(RowTotals):
    """Totals that are the whole answer, ranked."""

    def __init__(
        self, table: NodeTable, like: Like, outcome: FilterOutcome, scored: ScoreTable | None
    ) -> None:
        """As `RowTotals`; nobody must be asked besides."""
        assert like.is_whole
        super().__init__(table, like, outcome, scored)
        self._ranking = self._best_first = self._ranked(scored)

    def _ranked(self, scored: ScoreTable | None) -> Ranking:
        """Of the nodes that have totals."""
        if scored is None:
            return Ranking(np.zeros(0, np.int64), np.zeros(0, np.intp))
        rows = scored.nodes.rows
        by_place = self._order[np.isin(self._order, rows, assume_unique=True)]
        totals: Int64s = as_array(self._totals)[by_place]
        return Ranking(totals, self._places[by_place])

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
