"""GpuPacking: a GPU in use over a free GPU of a node in use over an empty node."""

from typing import final

import numpy as np

from bayplan import Caching, CycleState, NodeScores, NodeView, PodInfo, ScorePlugin
from gpu_sharing.asks import GPU, WHOLE_MILLI, ask_of
from gpu_sharing.devices import FACETS, shown

#: More than any device has.
_TAKEN = np.int16(2 * WHOLE_MILLI)


@final
class GpuPacking(ScorePlugin):
    """From 50 to 100 where devices in use suffice, the fuller the better; from 33 to 50 where free
    devices must be begun; below that for empty nodes, the smaller the better."""

    name = "GpuPacking"
    caching = Caching(facets=FACETS)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        ask = ask_of(pod)
        if not ask.count:
            return np.zeros(len(nodes), np.int64)
        free = shown(state).free(nodes)
        gpus = nodes.allocatable(GPU)
        # The devices that it would take: the least free ones that fit.
        taken = np.sort(np.where(free >= ask.milli, free, _TAKEN), axis=1)[:, : ask.count]
        begun = (taken == WHOLE_MILLI).sum(axis=1)
        tenths = (taken // 10).sum(axis=1, dtype=np.int64) // 10
        in_use = np.where(begun > 0, np.maximum(50 - begun, 33), np.maximum(100 - tenths, 50))
        is_empty = (free == WHOLE_MILLI).sum(axis=1) == gpus
        empty = np.clip(np.maximum(33 - gpus, gpus), 0, 100)
        return np.where(is_empty, empty, in_use).astype(np.int64)
