"""LeastFreeGpu: the less GPU a node has left, the better. Meant as a key among equals."""

from typing import final

from bayplan import Caching, CycleState, NodeScores, NodeView, Normalizer, PodInfo, ScorePlugin
from gpu_sharing.devices import FACETS
from gpu_sharing.room import gpu_free_milli


@final
class LeastFreeGpu(ScorePlugin):
    """Free thousandths of all its devices together, fewest first."""

    name = "LeastFreeGpu"
    normalizer = Normalizer.MAX_REVERSED
    caching = Caching(facets=FACETS)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        return gpu_free_milli(state, nodes)
