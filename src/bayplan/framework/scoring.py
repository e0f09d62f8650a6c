"""One plugin's column of the score table: asked, checked, normalised, checked again.

What is checked costs the same for any number of nodes, but for the range of the scores.
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
    """A plugin whose scores somebody waits for failed; the status names it."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class OutOfRange(RefusedAnswer):
    """A score is not in 0..100 after normalisation; in upstream's words."""

    def __init__(self, name: str, scores: NodeScores) -> None:
        wrong = scores[(scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)][0]
        super().__init__(
            f'plugin "{name}" returns an invalid score {wrong}, it should in the '
            f"range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
        )


@dataclass(frozen=True, slots=True)
class ScoreCall:
    """A score plugin's instance, ready to be asked."""

    name: str
    weight: int
    score: Score
    #: None: scores are in 0..100 as they are.
    normalize: Normalize | None

    def column(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> PluginScores:
        """Its scores of the feasible nodes. Raises RefusedAnswer, and what the plugin raises."""
        return self.finished(state, pod, self.raw(state, pod, nodes))

    def raw(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """Its scores as they are; raises as `column`."""
        scores = self.score(state, pod, nodes)
        check_form(scores, len(nodes))
        return scores

    def finished(self, state: CycleState, pod: PodInfo, raw: NodeScores) -> PluginScores:
        """Its column from the raw scores of all nodes at once; raises as `column`."""
        final = raw
        if self.normalize is not None:
            final = self.normalize(state, pod, raw)
            check_form(final, len(raw))
        if not in_score_range(final):
            raise OutOfRange(self.name, final)
        return PluginScores(self.name, self.weight, raw, final)


def score_of(plugin: ScorePlugin | ScalarScorePlugin) -> Score:
    """The plugin's Score, for many nodes at once."""
    if isinstance(plugin, ScorePlugin):
        return plugin.score
    return partial(scalar.score_nodes, plugin)


def normalize_of(plugin: ScorePlugin | ScalarScorePlugin) -> Normalize | None:
    """The plugin's own NormalizeScore, the named one, or none."""
    if isinstance(plugin, NormalizeScorePlugin):
        return partial(_by_plugin, plugin)
    if plugin.normalizer is Normalizer.NONE:
        return None
    return partial(_by_name, plugin.normalizer)


def normalize_scores(
    plugin: ScorePlugin | ScalarScorePlugin, state: CycleState, pod: PodInfo, scores: NodeScores
) -> NodeScores:
    """A plugin's scores after its own NormalizeScore; as they are where it has none.

    For a plugin that holds another one and wants its scores as they would count.
    """
    normalize = normalize_of(plugin)
    return scores if normalize is None else normalize(state, pod, scores)


def _by_plugin(
    plugin: NormalizeScorePlugin, state: CycleState, pod: PodInfo, scores: NodeScores
) -> NodeScores:
    """The raw scores are shown later, so they cannot be written to."""
    shown = scores.view()
    shown.flags.writeable = False
    return plugin.normalize(state, pod, shown)


def _by_name(
    normalizer: Normalizer, state: CycleState, pod: PodInfo, scores: NodeScores
) -> NodeScores:
    return normalized(normalizer, scores)


def check_form(scores: Any, count: int) -> None:
    """Raises WrongAnswer for what is no int64[count]."""
    dtype, shape = getattr(scores, "dtype", None), getattr(scores, "shape", None)
    if dtype != np.int64 or shape != (count,):
        form = f"{dtype}{shape}" if dtype is not None else type(scores).__name__
        raise WrongAnswer(form, f"int64({count},)")
