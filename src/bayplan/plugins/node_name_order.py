"""NodeNameOrder: among equal nodes the one with the smallest name. Ours; a tie-break key.

Names are compared letter by letter, as kubectl sorts them: node-10 comes before node-9.
"""

from typing import final

import numpy as np

from bayplan.framework.interface import CycleState
from bayplan.framework.tie_break import TieBreakPlugin
from bayplan.state.change_log import Facet
from bayplan.state.columns import NodeScores
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo


@final
class NodeNameOrder(TieBreakPlugin):
    """Prefers the smallest name to all others."""

    name = "NodeNameOrder"
    scope = "cluster"
    facets = Facet(0)

    def tie_break(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: 1 for the smallest name, 0 for all others."""
        names = nodes.names()
        first = np.zeros(len(names), np.int64)
        first[min(range(len(names)), key=names.__getitem__)] = 1
        return first
