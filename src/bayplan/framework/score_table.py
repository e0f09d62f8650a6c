"""The scores of one cycle: per plugin instance and feasible node, raw, normalized and weighted."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from bayplan.framework.arithmetic import highest, uniform_score
from bayplan.state.columns import Int64s, Mask, NodeScores, Rows, places_of
from bayplan.state.nodes import NodeView


@dataclass(slots=True)
class PluginScores:
    """One instance's column of the table, int64[nodes] each."""

    name: str
    weight: int
    raw: NodeScores
    normalized: NodeScores

    @property
    def weighted(self) -> NodeScores:
        return self.normalized * self.weight if self.weight != 1 else self.normalized


# Called at every attempt; `dict[str, NodeScores]` as a factory takes three times as long.
def _no_extender_scores() -> dict[str, NodeScores]:
    return {}


class Reading(Protocol):
    """Columns outside the total: of sources and tie-break keys. See score_graph."""

    @property
    def notes(self) -> Sequence[str]: ...
    def read(self) -> Sequence[PluginScores]: ...

    def column(self, name: str) -> PluginScores | None:
        """The column of a tie-break key; None if the key was skipped. Raises ScorerFailed."""
        ...


@dataclass(frozen=True, slots=True)
class TieStep:
    """One tie-break key that was compared: how many nodes tied before and after it."""

    key: str
    equal_count: int
    left_count: int


@dataclass(slots=True)
class ScoreTable:
    """All score plugins over the feasible nodes. ``totals``: int64[nodes]."""

    nodes: NodeView
    columns: Sequence[PluginScores]
    totals: Int64s
    #: Extender name → its weighted scores.
    extender_scores: dict[str, NodeScores] = field(default_factory=_no_extender_scores)
    #: bool[nodes]: the best nodes after all tie-break keys; None: no key was compared.
    tied: Mask | None = None
    tie_steps: Sequence[TieStep] = ()
    #: Set if the profile has a score graph or tie-break keys.
    reading: Reading | None = None

    @property
    def read(self) -> Sequence[PluginScores]:
        """Columns outside the total: of sources and tie-break keys."""
        return self.reading.read() if self.reading is not None else ()

    @property
    def notes(self) -> Sequence[str]:
        """Remarks on how sources were read, as sentences."""
        return self.reading.notes if self.reading is not None else ()

    def row(self, name: str) -> tuple[list[tuple[str, int]], int]:
        """(instance, weighted score) pairs of one node, and their total. Raises KeyError."""
        position = self.nodes.position(name)
        if position is None:
            raise KeyError(name)
        return self.row_at(position)

    def row_at(self, position: int) -> tuple[list[tuple[str, int]], int]:
        pairs = [(c.name, int(c.weighted[position])) for c in self.columns]
        pairs += [(name, int(scores[position])) for name, scores in self.extender_scores.items()]
        return pairs, int(self.totals[position])

    def best(self) -> Mask:
        """bool[nodes]: the nodes with the highest total."""
        return self.totals == highest(self.totals)

    def best_positions(self) -> Rows:
        """Positions of the highest total, ascending."""
        return places_of(self.best())


def total_scores(columns: Sequence[PluginScores], count: int) -> Int64s:
    """int64[count]: the weighted scores of all instances added up."""
    same = 0  # the sum of columns with one score for all nodes
    differing: list[NodeScores] = []
    for column in columns:
        score = uniform_score(column.normalized) if count else None
        if score is None:
            differing.append(column.weighted)
        else:
            same += score * column.weight
    if not differing:
        return np.full(count, same, np.int64)
    totals = differing[0] + same
    for scores in differing[1:]:
        totals += scores
    return totals
