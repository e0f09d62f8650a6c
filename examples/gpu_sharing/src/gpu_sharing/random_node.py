"""RandomNode: any node, by the scheduler's seed: what other policies are measured against."""

from typing import final

import numpy as np

from bayplan import (
    Caching,
    CycleState,
    Facet,
    NodeScores,
    NodeView,
    NormalizeScorePlugin,
    PodInfo,
    ScorePlugin,
)
from gpu_sharing.chance import number

#: splitmix64: https://prng.di.unimi.it/splitmix64.c
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@final
class RandomNode(ScorePlugin, NormalizeScorePlugin):
    """100 for one node, 0 for the others. Numbers follow from seed, pod and node's name, so that
    a run repeats itself."""

    name = "RandomNode"
    caching = Caching(facets=Facet.NODE)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        drawn = number(f"{self.handle.seed}/{pod.uid}")
        names = nodes.derived("gpu-sharing.name-hash", Facet.NODE, np.uint64, _name_hashes)
        mixed = names + np.uint64(drawn)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
        return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1)).astype(np.int64)

    def normalize(self, state: CycleState, pod: PodInfo, scores: NodeScores) -> NodeScores:
        return np.where(scores == scores.max(initial=0), 100, 0)


def _name_hashes(nodes: NodeView) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    return np.array([number(name) for name in nodes.names()], np.uint64)
