"""Candidates: nodes, each with its victims, and the choice among them.

The compared costs are arrays with one value per candidate; the victims of a candidate are listed
only when they are read. Upstream: preemption.go, pickOneNodeForPreemption (v1.37).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from bayplan import rng
from bayplan.framework.preemption import Victims
from bayplan.state.columns import Floats, Int64s, Rows, is_any, places_of
from bayplan.state.nodes import NodeView
from bayplan.state.ranked_pods import started_seconds

#: Makes every priority count as more than nothing: upstream's MaxInt32 + 1.
PRIORITY_OFFSET = 2**31

#: The methods `min` and `max` take twice as long to call.
_lowest, _highest = np.minimum.reduce, np.maximum.reduce


class Costs(Struct):
    """The costs of evicting the victims of each candidate, in the order of comparison."""

    pdb_violation_counts: Int64s
    highest_priorities: Int64s
    priority_sums: Int64s
    victim_counts: Int64s
    #: When the first of the most important victims was started: the later, the better.
    starts: Floats

    def take(self, chosen: Rows) -> "Costs":
        # The method takes half as long to call as an index.
        return Costs(
            self.pdb_violation_counts.take(chosen),
            self.highest_priorities.take(chosen),
            self.priority_sums.take(chosen),
            self.victim_counts.take(chosen),
            self.starts.take(chosen),
        )

    def changed(self, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> "Costs":
        """With every column changed in the same way."""
        return Costs(*map(change, self.columns()))

    def columns(self) -> tuple[Int64s, Int64s, Int64s, Int64s, Floats]:
        return (
            self.pdb_violation_counts,
            self.highest_priorities,
            self.priority_sums,
            self.victim_counts,
            self.starts,
        )

    def cheapest(self) -> Rows:
        """The candidates that are equal to the best in every comparison, ascending; there is at
        least one candidate."""
        #: None: all.
        left: Rows | None = None
        *counted, starts = self.columns()
        for cost in counted:
            values = cost if left is None else cost.take(left)
            is_worse = values != _lowest(values)
            # Most candidates of one search have mostly equal costs.
            if is_any(is_worse):
                equals = places_of(~is_worse)
                left = equals if left is None else left.take(equals)
                if len(left) == 1:
                    return left
        values = starts if left is None else starts.take(left)
        equals = places_of(values == _highest(values))
        return equals if left is None else left.take(equals)


class Batch(Struct):
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
    parts_of_columns = zip(*(batch.costs.columns() for batch in batches), strict=True)
    columns: list[npt.NDArray[Any]] = [np.concatenate(parts) for parts in parts_of_columns]
    positions = np.concatenate([batch.positions for batch in batches])

    def victims(index: int) -> Victims:
        batch, inner = parts[index]
        return batch.victims(inner)

    return Batch(positions, Costs(*columns), victims)


def chosen(batch: Batch, nodes: NodeView, seed: int, pod_uid: str) -> int:
    """The index of the best one; equals are drawn."""
    best = batch.costs.cheapest()
    count = len(best)
    if count == 1:
        return best.item(0)
    index = rng.tie_index(seed, pod_uid, 0, count)
    return best.item(nodes.table.drawn_among(batch.positions[best], index))
