"""A score table of which one part was known, and the other part asked.

Only the totals are computed; the known part's columns are when somebody looks.
"""

from collections.abc import Iterator, Sequence
from typing import final, overload

from bayplan.engine.row_totals import RowTotals
from bayplan.framework.runtime import Framework
from bayplan.framework.score_table import PluginScores, ScoreTable, total_scores
from bayplan.state.nodes import NodeView


def table_of(
    known: RowTotals, asked: Sequence[PluginScores], framework: Framework, nodes: NodeView
) -> ScoreTable:
    """``nodes``: the feasible ones; ``asked``: the columns of those whose scores are not kept."""
    totals = known.totals(nodes) + total_scores(asked, len(nodes))
    order = [plugin.instance_name for plugin, _ in framework.plugins.score]
    return ScoreTable(nodes, _Columns(known, asked, order, nodes), totals)


@final
class _Columns(Sequence[PluginScores]):
    """All columns, in the order of the profile."""

    def __init__(
        self,
        known: RowTotals,
        asked: Sequence[PluginScores],
        order: Sequence[str],
        nodes: NodeView,
    ) -> None:
        self._known = known
        self._asked = asked
        self._order = order
        self._nodes = nodes

    def __len__(self) -> int:
        return len(self._asked) + len(self._known.like.shares)

    @overload
    def __getitem__(self, index: int) -> PluginScores: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PluginScores]: ...
    def __getitem__(self, index: int | slice) -> PluginScores | Sequence[PluginScores]:
        return self._all()[index]

    def __iter__(self) -> Iterator[PluginScores]:
        return iter(self._all())

    def _all(self) -> list[PluginScores]:
        columns = [*self._asked, *self._known.columns(self._nodes)]
        return sorted(columns, key=lambda column: self._order.index(column.name))
