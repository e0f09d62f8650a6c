"""ComposedRack: a scorer that contains another scorer, and scores racks by its results.

Composition in code: the inner plugin is made with `handle.make`, its args stand inside this
plugin's own, and its PreFilter and PreScore run under this plugin's name. The same without code is
`TopologyScorer` with `scoreFrom` (examples/racks): there the inner plugin is configured once and
computed once, however many use it. Here it is computed again for each plugin that holds it.

    bayplan simulate examples/racks/scenario.yaml \\
        --plugin examples/composed_rack/composed_rack.py --config examples/composed_rack/config.yaml
"""

from typing import Any, final

import numpy as np

from bayplan import (
    MAX_NODE_SCORE,
    CycleState,
    NodeScores,
    NodeView,
    NormalizeScorePlugin,
    PluginArgs,
    PodInfo,
    ScorePlugin,
)


class ComposedRackArgs(PluginArgs, frozen=True):
    """The label with the rack, and the scorer of the nodes."""

    topology_key: str = "rack"
    plugin: str = "NodeResourcesFit"
    inner: dict[str, Any] = {}


@final
class ComposedRack(ScorePlugin[ComposedRackArgs], NormalizeScorePlugin):
    """The rack with the highest sum of the inner plugin's scores gets 100, the lowest 0."""

    name = "ComposedRack"
    scope = "cluster"

    def setup(self) -> None:
        self._inner: Any = self.handle.make(self.args.plugin, self.args.inner)

    def close(self) -> None:
        self._inner.close()

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: the sum of the node's rack; -1 without a rack."""
        scores = self._inner.score(state, pod, nodes)
        racks = nodes.labels.ids(self.args.topology_key)
        sums = np.zeros(len(nodes.labels.values(self.args.topology_key)) + 1, np.int64)
        np.add.at(sums, racks, scores)
        sums[-1] = -1  # where nodes without the label find themselves
        return sums[racks]

    def normalize(self, state: CycleState, pod: PodInfo, scores: NodeScores) -> NodeScores:
        """In place of the inner plugin's own."""
        sums = scores[scores >= 0]
        if not len(sums):
            return np.zeros(len(scores), np.int64)
        least, most = sums.min(), sums.max()
        if least == most:
            return np.where(scores >= 0, MAX_NODE_SCORE, 0)
        return np.where(scores >= 0, (scores - least) * MAX_NODE_SCORE // (most - least), 0)
