"""BestFit: the node on which the least CPU and GPU is left over."""

from typing import final

import numpy as np

from bayplan import (
    Caching,
    CycleState,
    Facet,
    NodeScores,
    NodeView,
    Normalizer,
    PodInfo,
    ScorePlugin,
)
from gpu_sharing.asks import ask_of
from gpu_sharing.devices import FACETS
from gpu_sharing.room import CPU_MILLI_MAX, GPU_MILLI_MAX, room


@final
class BestFit(ScorePlugin):
    """100 x (1 - half the sum of what is left, in parts of the largest machine), min-max."""

    name = "BestFit"
    normalizer = Normalizer.MIN_MAX
    caching = Caching(facets=FACETS | Facet.REQUESTED)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        cpu_free, gpu_free = room(state, nodes)
        cpu_left = cpu_free - pod.requests.get("cpu", 0)
        gpu_left = gpu_free - ask_of(pod).total_milli
        left = cpu_left / CPU_MILLI_MAX + gpu_left / GPU_MILLI_MAX
        return (100 * (1 - left / 2)).astype(np.int64)
