"""Which node, among those that scored best; and which nodes are looked at when sampling.

Ties that the profile's tie-break keys leave: the k-th of the tied nodes in the order of (hash of
name, name), where k follows from seed, pod and attempt. Not from row numbers, nor from how the
scores were computed: live, embedded, reused and fresh runs draw alike.
"""

from typing import NamedTuple

import numpy as np

from bayplan import rng
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.scoring import ScoreTable
from bayplan.state.columns import Mask

#: With sampling at least this many feasible nodes are collected (upstream:
#: minFeasibleNodesToFind).
SAMPLED_NODES_MIN = 100


class Choice(NamedTuple):
    """The chosen node and what was equal to it."""

    node_name: str
    tied_count: int = 1
    #: The place of the chosen one among them, in the order of the draw.
    tied_index: int = 0


def choose(table: ScoreTable, seed: int, pod_uid: str, attempt: int) -> Choice:
    """The node with the highest total; among those that no tie-break key tells apart, the one
    that is drawn."""
    tied = table.best() if table.tied is None else table.tied
    count = int(np.count_nonzero(tied))
    if count == 1:
        return Choice(table.nodes.name(int(tied.argmax())))
    index = rng.tie_index(seed, pod_uid, attempt, count)
    return Choice(table.nodes.table.name_drawn(tied, count, index), count, index)


def sampled(outcome: FilterOutcome, percentage: int, start: int) -> tuple[Mask, int]:
    """(the feasible nodes that are kept, how many nodes were looked at until then).

    From a rotating start in the order of the draw, the first max(100, n x percentage / 100)
    feasible nodes of n candidates are kept. Upstream: numFeasibleNodesToFind.
    """
    count = len(outcome.nodes)
    wanted = max(SAMPLED_NODES_MIN, count * percentage // 100)
    if wanted >= count:
        return outcome.feasible, count
    order = np.roll(outcome.nodes.table.draw_order(), -(start % count))
    found = np.cumsum(outcome.feasible[order])
    if found[-1] <= wanted:
        return outcome.feasible, count
    looked_at = int(np.searchsorted(found, wanted)) + 1
    kept = np.zeros(count, np.bool_)
    kept[order[:looked_at]] = True
    return kept & outcome.feasible, looked_at
