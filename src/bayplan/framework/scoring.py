"""One plugin's column of the score table: computed, checked, normalized, checked again.

The checks take the same time for any number of nodes, except the check of the range of scores.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bayplan.framework import single_node as scalar
from bayplan.framework.arithmetic import in_score_range, normalized
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import NormalizeScorePlugin, ScalarScorePlugin, ScorePlugin
from bayplan.framework.score_table import PluginScores
from bayplan.framework.status import Status
from bayplan.framework.types import MAX_NODE_SCORE, MIN_NODE_SCORE, Normalizer
from bayplan.framework.validation import RefusedAnswer, WrongAnswer
from bayplan.state.columns import NodeScores
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

Score = Callable[[CycleState, PodInfo, NodeView], NodeScores]
Normalize = Callable[[CycleState, PodInfo, NodeScores], NodeScores]


class ScorerFailed(Exception):
    """A plugin failed whose scores are needed; the status names the plugin."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class OutOfRange(RefusedAnswer):
    """A score is not in 0..100 after normalization. The message is upstream's."""

    def __init__(self, name: str, scores: NodeScores) -> None:
        wrong = scores[(scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)][0]
        super().__init__(
            f'plugin "{name}" returns an invalid score {wrong}, it should in the '
            f"range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
        )


@dataclass(frozen=True, slots=True)
class ScoreCall:
    """A score plugin's instance with its calls."""

    name: str
    weight: int
    score: Score
    #: None: the plugin does not normalize; its scores are in 0..100.
    normalize: Normalize | None

    def column(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> PluginScores:
        """The scores of the feasible nodes. Raises RefusedAnswer and the plugin's exceptions."""
        return self.finished(state, pod, self.raw(state, pod, nodes))

    def raw(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """The scores before normalization; raises as `column`."""
        scores = self.score(state, pod, nodes)
        check_form(scores, len(nodes))
        return scores

    def finished(self, state: CycleState, pod: PodInfo, raw: NodeScores) -> PluginScores:
        """The column for these raw scores; raises as `column`."""
        final = raw
        if self.normalize is not None:
            final = self.normalize(state, pod, raw)
            check_form(final, len(raw))
        if not in_score_range(final):
            raise OutOfRange(self.name, final)
        return PluginScores(self.name, self.weight, raw, final)


def score_of(plugin: ScorePlugin | ScalarScorePlugin) -> Score:
    """The plugin's Score as a function of a view of nodes."""
    if isinstance(plugin, ScorePlugin):
        return plugin.score
    return partial(scalar.score_nodes, plugin)


def normalize_of(plugin: ScorePlugin | ScalarScorePlugin) -> Normalize | None:
    """The plugin's own NormalizeScore, its named normalizer, or None."""
    if isinstance(plugin, NormalizeScorePlugin):
        return partial(_by_plugin, plugin)
    if plugin.normalizer is Normalizer.NONE:
        return None
    return partial(_by_name, plugin.normalizer)


def normalize_scores(
    plugin: ScorePlugin | ScalarScorePlugin, state: CycleState, pod: PodInfo, scores: NodeScores
) -> NodeScores:
    """A plugin's scores after its NormalizeScore, or unchanged without one.

    For a plugin that uses another plugin and needs its normalized scores.
    """
    normalize = normalize_of(plugin)
    return scores if normalize is None else normalize(state, pod, scores)


def _by_plugin(
    plugin: NormalizeScorePlugin, state: CycleState, pod: PodInfo, scores: NodeScores
) -> NodeScores:
    """The plugin gets a read-only view, because the score table still needs the raw scores."""
    shown = scores.view()
    shown.flags.writeable = False
    return plugin.normalize(state, pod, shown)


def _by_name(
    normalizer: Normalizer, state: CycleState, pod: PodInfo, scores: NodeScores
) -> NodeScores:
    return normalized(normalizer, scores)


def check_form(scores: Any, count: int) -> None:
    """Raises WrongAnswer unless ``scores`` is int64[count]."""
    dtype, shape = getattr(scores, "dtype", None), getattr(scores, "shape", None)
    if dtype != np.int64 or shape != (count,):
        form = f"{dtype}{shape}" if dtype is not None else type(scores).__name__
        raise WrongAnswer(form, f"int64({count},)")
