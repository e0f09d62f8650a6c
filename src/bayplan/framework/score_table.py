"""The scores of one cycle: per plugin instance and feasible node, raw, normalised, weighted."""

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


# Made at every attempt: to call dict[str, NodeScores] takes three times as long.
def _no_extender_scores() -> dict[str, NodeScores]:
    return {}


class Reading(Protocol):
    """What is computed besides the columns that are added up; see score_graph."""

    @property
    def notes(self) -> Sequence[str]: ...
    def read(self) -> Sequence[PluginScores]: ...

    def column(self, name: str) -> PluginScores | None:
        """A tie-break key's column; None: it was skipped. Raises ScorerFailed."""
        ...


@dataclass(frozen=True, slots=True)
class TieStep:
    """A tie-break key that was compared: how many nodes were equal, and how many it left."""

    key: str
    equal_count: int
    left_count: int


@dataclass(slots=True)
class ScoreTable:
    """All score plugins over the feasible nodes. ``totals``: int64[nodes]."""

    nodes: NodeView
    columns: Sequence[PluginScores]
    totals: Int64s
    #: Named contributions that no plugin made (extenders), already weighted.
    extender_scores: dict[str, NodeScores] = field(default_factory=_no_extender_scores)
    #: bool[nodes]: the best that tie-break keys left, and what each key left; None: no key was
    #: asked.
    tied: Mask | None = None
    tie_steps: Sequence[TieStep] = ()
    #: Where plugins read each other's scores, or are tie-break keys.
    reading: Reading | None = None

    @property
    def read(self) -> Sequence[PluginScores]:
        """Columns that are not added up: of sources and of keys."""
        return self.reading.read() if self.reading is not None else ()

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about how sources were read, in words."""
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
        """bool[nodes]: who has the highest total."""
        return self.totals == highest(self.totals)

    def best_positions(self) -> Rows:
        """Positions of the highest total, ascending."""
        return places_of(self.best())


def total_scores(columns: Sequence[PluginScores], count: int) -> Int64s:
    """int64[count]: the weighted scores of all instances added up."""
    same = 0  # for all nodes
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
