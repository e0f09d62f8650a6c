"""Candidates: nodes, each with its victims, and the choice among them.

The compared costs are arrays with one value per candidate; the victims of a candidate are listed
only when they are read. Upstream: preemption.go, pickOneNodeForPreemption (v1.37).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from bayplan import rng
from bayplan.framework.preemption import Victims
from bayplan.state.columns import Floats, Int64s, Mask, Rows
from bayplan.state.nodes import NodeView
from bayplan.state.ranked_pods import started_seconds

#: Makes every priority count as more than nothing: upstream's MaxInt32 + 1.
PRIORITY_OFFSET = 2**31


@dataclass(slots=True)
class Costs:
    """The costs of evicting the victims of each candidate, in the order of comparison."""

    pdb_violation_counts: Int64s
    highest_priorities: Int64s
    priority_sums: Int64s
    victim_counts: Int64s
    #: When the first of the most important victims was started: the later, the better.
    starts: Floats

    def take(self, chosen: Rows | Mask) -> "Costs":
        return Costs(*(getattr(self, each.name)[chosen] for each in fields(self)))

    def cheapest(self) -> Mask:
        """bool[candidates]: the candidates that are equal to the best in every comparison."""
        best = np.ones(len(self.starts), np.bool_)
        for each in fields(self):
            cost: npt.NDArray[np.generic] = getattr(self, each.name)
            if each.name == "starts":
                cost = np.negative(cost)
            best &= cost == cost[best].min()
            if np.count_nonzero(best) == 1:
                break
        return best


@dataclass(slots=True)
class Batch:
    """Some candidates: their positions among all nodes, their costs, and their victims."""

    positions: Rows
    costs: Costs
    victims: Callable[[int], Victims]

    def __len__(self) -> int:
        return len(self.positions)

    def take(self, chosen: Rows) -> "Batch":
        victims = self.victims
        batch = Batch(self.positions[chosen], self.costs.take(chosen), victims)
        batch.victims = lambda index: victims(int(chosen[index]))
        return batch


def listed(candidates: Sequence[tuple[int, Victims]]) -> Batch:
    """Candidates with listed victims, by position."""
    all_victims = [victims for _, victims in candidates]
    pods = [victims.pods for victims in all_victims]
    tops = [max(pod.priority for pod in each) for each in pods]
    # An extender may return victims in any order: the first one counts, as upstream.
    firsts = [each[0].priority for each in pods]
    costs = Costs(
        np.array([each.pdb_violation_count for each in all_victims], np.int64),
        np.array(firsts, np.int64),
        np.array([sum(p.priority + PRIORITY_OFFSET for p in each) for each in pods], np.int64),
        np.array([len(each) for each in pods], np.int64),
        np.array(
            [
                min(started_seconds(p) for p in each if p.priority == top)
                for each, top in zip(pods, tops, strict=True)
            ],
            np.float64,
        ),
    )
    positions: Rows = np.array([position for position, _ in candidates], np.intp)
    return Batch(positions, costs, all_victims.__getitem__)


def joined(batches: Sequence[Batch]) -> Batch:
    """Several as one, in their order."""
    if len(batches) == 1:
        return batches[0]
    parts = [(batch, index) for batch in batches for index in range(len(batch))]
    columns = (
        np.concatenate([getattr(batch.costs, each.name) for batch in batches])
        for each in fields(Costs)
    )
    positions = np.concatenate([batch.positions for batch in batches])

    def victims(index: int) -> Victims:
        batch, inner = parts[index]
        return batch.victims(inner)

    return Batch(positions, Costs(*columns), victims)


def chosen(batch: Batch, nodes: NodeView, seed: int, pod_uid: str) -> int:
    """The index of the best one; equals are drawn."""
    best = batch.costs.cheapest()
    count = int(np.count_nonzero(best))
    if count == 1:
        return int(best.argmax())
    tied = np.zeros(len(nodes), np.bool_)
    tied[batch.positions[best]] = True
    drawn = nodes.table.name_drawn(tied, count, rng.tie_index(seed, pod_uid, 0, count))
    return int(np.flatnonzero(batch.positions == nodes.position(drawn))[0])
