"""LabelScore: the score of a node is the number in one of its labels.

The smallest policy over columns: nodes share few distinct label values, so each value is parsed
once, and the scores of the nodes are looked up by id. Try it:

    bayplan simulate examples/label_score.scenario.yaml \\
        --plugin examples/label_score.py --config examples/label_score.config.yaml
"""

from collections.abc import Hashable
from typing import final

import numpy as np

from bayplan import (
    MAX_NODE_SCORE,
    Caching,
    CycleState,
    Facet,
    NodeScores,
    NodeView,
    PluginArgs,
    PodInfo,
    ScorePlugin,
    SignPlugin,
)


class LabelScoreArgs(PluginArgs, frozen=True):
    """The label with the score."""

    label: str = "s"


@final
class LabelScore(ScorePlugin[LabelScoreArgs], SignPlugin):
    """The label's value from 0 to 100 as it is; 0 where it is absent or no whole number."""

    name = "LabelScore"
    caching = Caching(facets=Facet.LABELS)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        values = nodes.labels.values(self.args.label)
        # Nodes without the label have the id -1, which indexes the last entry.
        table = np.array([*map(_score_of, values), 0], np.int64)
        return table[nodes.labels.ids(self.args.label)]

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """One signature for all pods: the score does not depend on the pod."""
        return ()


def _score_of(value: str) -> int:
    return min(int(value), MAX_NODE_SCORE) if value.isascii() and value.isdecimal() else 0
