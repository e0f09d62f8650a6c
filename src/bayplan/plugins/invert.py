"""Invert: the opposite of another plugin's scores. Ours."""

from typing import final

from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, PluginArgs, ScorePlugin
from bayplan.framework.score_sources import Source, Stage
from bayplan.state.columns import NodeScores
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo


class InvertArgs(PluginArgs, frozen=True):
    score_from: Source
    stage: Stage = "normalized"


@final
class Invert(ScorePlugin):
    """100 - score: the worst node becomes the best."""

    name = "Invert"
    args_type = InvertArgs

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        return MAX_NODE_SCORE - state.scores(self.args.score_from, self.args.stage)
