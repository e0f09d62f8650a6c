"""DotProduct: the node whose free room points the least in the direction of what is asked."""

from typing import final

import numpy as np

from bayplan import Caching, CycleState, Facet, NodeScores, NodeView, PodInfo, ScorePlugin
from gpu_sharing.asks import ask_of
from gpu_sharing.devices import FACETS
from gpu_sharing.room import CPU_MILLI_MAX, GPU_MILLI_MAX, room


@final
class DotProduct(ScorePlugin):
    """100 x (1 - half of free . asked), both in parts of the largest machine."""

    name = "DotProduct"
    caching = Caching(facets=FACETS | Facet.REQUESTED)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        cpu_free, gpu_free = room(state, nodes)
        cpu = cpu_free / CPU_MILLI_MAX * (pod.requests.get("cpu", 0) / CPU_MILLI_MAX)
        gpu = gpu_free / GPU_MILLI_MAX * (ask_of(pod).total_milli / GPU_MILLI_MAX)
        return np.clip((100 * (1 - (cpu + gpu) / 2)).astype(np.int64), 0, 100)
