"""FGD, fragmentation gradient descent: the node where placing the pod fragments the least."""

from typing import final

import numpy as np

from bayplan import Caching, CycleState, Facet, NodeScores, NodeView, PodInfo, ScorePlugin
from gpu_sharing.asks import ask_of
from gpu_sharing.devices import FACETS, shown
from gpu_sharing.fragmentation import best_after, fragmentation, idle_on
from gpu_sharing.typical_pods import CONFIG_MAP, typical_pods

#: The change of fragmentation, in whole GPUs, that moves a score from 50 to 73.
_STEP_MILLI = 1000


@final
class FGD(ScorePlugin):
    """100 x sigmoid(fragmentation before - after), in whole GPUs.

    A node's score follows from its row and from what the pod asks for, so it is a derived column
    per ask: only nodes that changed since such a pod came last are computed anew.
    """

    name = "FGD"
    caching = Caching(facets=FACETS | Facet.REQUESTED | Facet.LABELS)
    kinds = (CONFIG_MAP,)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        typical, devices = typical_pods(self.handle), shown(state)
        ask, cpu_milli = ask_of(pod), pod.requests.get("cpu", 0)

        def compute(view: NodeView) -> NodeScores:
            idle = idle_on(view, devices, typical)
            gain = fragmentation(idle, typical) - best_after(idle, cpu_milli, ask, typical)
            return (100 / (1 + np.exp(-gain / _STEP_MILLI))).astype(np.int64)

        key = ("gpu-sharing.fgd", devices, typical, ask, cpu_milli)
        return nodes.derived(key, self.promises.facets, np.int64, compute)
