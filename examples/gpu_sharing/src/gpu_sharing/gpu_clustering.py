"""GpuClustering: pods of one sort on nodes of their own, the fuller the better.

A sort is: those that share a device, those with one whole device, with two, and so on.
"""

from typing import final

import numpy as np

from bayplan import Caching, CycleState, NodeScores, NodeView, PodInfo, ScorePlugin
from gpu_sharing.asks import ask_of
from gpu_sharing.devices import FACETS, shown, tag_bit
from gpu_sharing.room import GPU_MILLI_MAX, gpu_free_milli


@final
class GpuClustering(ScorePlugin):
    """75 with pods of its sort only, 50 where others are, too, 25 on an empty node, 0 among others
    only; and up to 25 for how little is free."""

    name = "GpuClustering"
    caching = Caching(facets=FACETS)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        ask = ask_of(pod)
        if not ask.count:
            return np.zeros(len(nodes), np.int64)
        tags, own = shown(state).tags(nodes), tag_bit(ask)
        company = np.select([tags == 0, tags == own, (tags & own) != 0], [25, 75, 50], 0)
        used = np.maximum(GPU_MILLI_MAX - gpu_free_milli(state, nodes), 0)
        return company + 25 * used // GPU_MILLI_MAX
