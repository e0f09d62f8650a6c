"""Tie-break keys: further orders among the nodes with the highest total.

Keys are compared one after another and have no weights. The comparison ends when one node is left;
nodes that tie after the last key are drawn. A key is a score plugin, compared by its scores from 0
to 100, or a `TieBreakPlugin`, whose numbers are arbitrary and compared unchanged. Without a tie no
key is evaluated.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from msgspec import Struct

from bayplan.framework.arithmetic import highest
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Plugin
from bayplan.framework.scoring import ScorerFailed, ScoreTable, TieStep
from bayplan.framework.status import Status
from bayplan.framework.validation import check_scores, failure_of
from bayplan.state.columns import NodeScores, Rows
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo


class TieBreakPlugin(Plugin):
    """A tie-break key whose numbers may be outside of 0 to 100."""

    @abstractmethod
    def tie_break(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: the highest number wins; any number is allowed.

        ``nodes``: the nodes that tie so far, at least two.
        """


AskTieBreak = Callable[[CycleState, PodInfo, NodeView], NodeScores]
#: Returns the key of the nodes at these positions of the table; None: the key was skipped.
Values = Callable[[CycleState, PodInfo, ScoreTable, Rows], NodeScores | None]


class TieBreakCall(Struct, frozen=True):
    """One key with its call."""

    name: str
    values: Values

    def narrowed(self, state: CycleState, pod: PodInfo, table: ScoreTable, tied: Rows) -> Rows:
        """The tied nodes that this key prefers. Raises RefusedAnswer and the plugin's
        exceptions."""
        values = self.values(state, pod, table, tied)
        return tied if values is None else tied[values == highest(values)]


def break_ties(
    keys: Sequence[TieBreakCall], state: CycleState, pod: PodInfo, table: ScoreTable
) -> Status | None:
    """Compare the best nodes key by key, until one is left. An Error names the key that failed."""
    tied = table.best_positions()
    steps: list[TieStep] = []
    for key in keys:
        equal_count = len(tied)
        if equal_count == 1:
            break
        try:
            tied = key.narrowed(state, pod, table, tied)
        except ScorerFailed as failed:
            return failed.status
        except BaseException as problem:  # noqa: BLE001 - a plugin's failure is its pod's, not ours
            return failure_of(key.name, "TieBreak", problem)
        steps.append(TieStep(key.name, equal_count, len(tied)))
    table.tied = np.zeros(len(table.nodes), np.bool_)
    table.tied[tied] = True
    table.tie_steps = steps
    return None


def by_number(name: str, ask: AskTieBreak) -> TieBreakCall:
    """The key of a TieBreakPlugin, which is evaluated for the tied nodes only."""
    return TieBreakCall(name, partial(_numbers, ask))


def by_score(name: str) -> TieBreakCall:
    """The key of a score plugin: its scores, normalized over all feasible nodes."""
    return TieBreakCall(name, partial(_scores, name))


def _numbers(
    ask: AskTieBreak, state: CycleState, pod: PodInfo, table: ScoreTable, tied: Rows
) -> NodeScores:
    numbers = ask(state, pod, table.nodes.take(tied))
    check_scores(numbers, len(tied), ask)
    return numbers


def _scores(
    name: str, state: CycleState, pod: PodInfo, table: ScoreTable, tied: Rows
) -> NodeScores | None:
    assert table.reading is not None, f"{name} is a key, so there is a score graph"
    column = table.reading.column(name)
    return None if column is None else column.normalized[tied]
