"""TopologyScorer: a node gets the score of its rack, zone or other domain. Bayplan's own.

The score of a domain is the sum, mean, maximum or minimum of a source's scores of its nodes. The
sum favours large domains, the mean does not. ``over: feasible`` counts the nodes that can take the
pod; ``over: all`` counts every node, full nodes included: the right choice for filling up domains
that are nearly full.
"""

from collections.abc import Iterator
from typing import Literal, final

import numpy as np

from bayplan.api.selectors import is_label_key
from bayplan.framework.arithmetic import divide, highest, lowest
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PluginArgs, ScorePlugin
from bayplan.framework.score_sources import Over, Source, Stage
from bayplan.framework.types import MAX_NODE_SCORE
from bayplan.problems import shown
from bayplan.state.columns import Int32s, Int64s, NodeScores
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

_INT64 = np.iinfo(np.int64)


class TopologyScorerArgs(PluginArgs, frozen=True):
    score_from: Source
    #: A label; nodes with the same value of it are one domain.
    topology_key: str
    aggregate: Literal["sum", "mean", "max", "min"] = "sum"
    over: Over = "feasible"
    stage: Stage = "normalized"

    def problems(self) -> Iterator[tuple[str, str]]:
        if not is_label_key(self.topology_key):
            value = shown(self.topology_key)
            yield "topologyKey", f"{value}; wanted a label, as topology.kubernetes.io/zone"


@final
class TopologyScorer(ScorePlugin[TopologyScorerArgs]):
    """Nodes of the best domain get 100, nodes of the worst 0, and other nodes a score in
    proportion."""

    name = "TopologyScorer"
    scope = "cluster"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]; 0 for nodes without the label, which belong to no domain."""
        args: TopologyScorerArgs = self.args
        counted = nodes.all() if args.over == "all" else nodes
        ids = counted.labels.ids(args.topology_key)
        scores = state.scores(args.score_from, args.stage)
        worths = _domain_scores(ids[ids >= 0], scores[ids >= 0], args.aggregate)
        # Nodes without the label have the id -1, which indexes the last entry.
        return np.append(worths, 0)[nodes.labels.ids(args.topology_key)]


def _domain_scores(ids: Int32s, scores: NodeScores, aggregate: str) -> Int64s:
    """int64[ids]: 0..100 by domain; 0 for ids that no node has."""
    counts = np.bincount(ids)
    worths = _aggregated(ids, scores, aggregate, counts)
    is_there = counts > 0
    if not is_there.any():
        return worths
    least, most = lowest(worths[is_there]), highest(worths[is_there])
    if least == most:
        return np.where(is_there, MAX_NODE_SCORE, 0)
    spread = divide((worths - least) * MAX_NODE_SCORE, most - least)
    return np.where(is_there, spread, 0)


def _aggregated(ids: Int32s, scores: NodeScores, aggregate: str, counts: Int64s) -> Int64s:
    if aggregate in ("sum", "mean"):
        sums = np.zeros(len(counts), np.int64)
        np.add.at(sums, ids, scores)
        return sums if aggregate == "sum" else divide(sums, counts)
    is_max = aggregate == "max"
    extremes = np.full(len(counts), _INT64.min if is_max else _INT64.max)
    (np.maximum if is_max else np.minimum).at(extremes, ids, scores)
    return np.where(counts > 0, extremes, 0)
