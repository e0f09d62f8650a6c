"""Normalize: another plugin's scores, stretched over 0 to 100. Ours.

Most scorers do so by themselves; this is for those that do not, and for raw scores.
"""

from typing import Literal, final

from bayplan.framework.arithmetic import normalized
from bayplan.framework.interface import (
    CycleState,
    Normalizer,
    NormalizeScorePlugin,
    PluginArgs,
    ScorePlugin,
)
from bayplan.framework.score_sources import Source, Stage
from bayplan.state.columns import NodeScores
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo


class NormalizeArgs(PluginArgs, frozen=True):
    score_from: Source
    #: max: the highest becomes 100, 0 stays 0. minMax: the lowest becomes 0, too.
    to: Literal["max", "minMax"] = "max"
    stage: Stage = "normalized"


@final
class Normalize(ScorePlugin, NormalizeScorePlugin):
    """The best of the feasible nodes gets 100; where all are equal, see `Normalizer`."""

    name = "Normalize"
    args_type = NormalizeArgs

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: the source's, until normalised."""
        return state.scores(self.args.score_from, self.args.stage)

    def normalize(self, state: CycleState, pod: PodInfo, scores: NodeScores) -> NodeScores:
        return normalized(Normalizer(self.args.to), scores)
