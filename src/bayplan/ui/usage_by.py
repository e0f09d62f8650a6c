"""What pods request by namespace, by the value of a label, or by node pool.

The share of a namespace or of a label is that of what all nodes offer; the share of a pool is that
of what its nodes offer. A pod that waits has no node, so no pool.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from bayplan.answers.document import Value
from bayplan.answers.names import natural_key
from bayplan.api.pod_requests import PODS
from bayplan.history.columns import Rows
from bayplan.history.timeline import State, numbers
from bayplan.objects.pools import pool_of
from bayplan.ui.answers import Usage
from bayplan.ui.pages import usage_of
from bayplan.ui.tables import NoSuchObject, label_of, namespace_of, node_at, options, ordered

NAMESPACE, LABEL, POOL = "namespace", "label", "pool"
_STATES_MAX: Final = 2


class UsageRow(Value):
    #: The namespace, the pool, or the value of the label; "": the pods or nodes without it.
    name: str
    #: The number of pods on nodes, and of pods that wait.
    pods: int
    waiting: int
    #: The number of nodes of a pool.
    nodes: int
    #: What the pods on nodes request, and what the nodes offer.
    usage: tuple[Usage, ...]
    #: What the waiting pods request.
    waiting_requests: dict[str, int]


class UsagePage(Value):
    total: int
    offset: int
    rows: tuple[UsageRow, ...]
    #: The label keys of pods, those that usually name a team first.
    labels: tuple[str, ...]


def usage_rows(state: State, by: str, label: str, sort: str) -> Sequence[UsageRow]:
    """``sort``: name, pods, waiting, nodes or a resource; "": by name. Raises NoSuchObject."""
    rows = _grouped(state, by, label)
    resources = state.timeline.resources

    def key_of(column: str) -> Callable[[int], Any] | None:
        if column in ("waiting", "nodes", PODS):
            return lambda row: getattr(rows[row], column)
        if column not in resources:
            return None
        return lambda row: next((u.used for u in rows[row].usage if u.resource == column), 0)

    return [rows[row] for row in ordered(list(range(len(rows))), sort, key_of)]


class _Group(NamedTuple):
    """Names of groups, one for each row of amounts."""

    names: Sequence[str]
    amounts: Rows

    def sums(self, index: Mapping[str, int]) -> tuple[Rows, Rows]:
        """How many rows each group has, and the sum of their amounts."""
        at = np.array([index[name] for name in self.names], np.int64)
        table = np.zeros((len(index), self.amounts.shape[1]), np.int64)
        np.add.at(table, at, self.amounts)
        return np.bincount(at, minlength=len(index)), table


@lru_cache(maxsize=_STATES_MAX)
def _grouped(state: State, by: str, label: str) -> Sequence[UsageRow]:
    line, name = state.timeline, _name_of_pod(state, by, label)
    placed, nodes = line.placements[state.placement_rows], _Group((), state.allocatable[:0])
    waiting = numbers(state.waiting[:0] if by == POOL else state.waiting)
    pods = _Group([name(row) for row in numbers(placed.pod)], line.amounts[placed.amounts])
    rows = np.array([line.pods[row].amounts for row in waiting], np.int64)
    pending = _Group([name(row) for row in waiting], line.amounts[rows])
    if by == POOL:
        pools = [pool_of(node_at(state, row)) for row in numbers(state.there)]
        nodes = _Group(pools, state.allocatable[state.there])
    listed = sorted({*pods.names, *pending.names, *nodes.names}, key=natural_key)
    index = {name: row for row, name in enumerate(listed)}
    (pod_counts, used), (waiting_counts, wanted) = pods.sums(index), pending.sums(index)
    node_counts, offered = nodes.sums(index)
    if by != POOL:
        offered = np.tile(state.allocatable.sum(0), (len(index), 1))
    return [
        UsageRow(
            name=name,
            pods=int(pod_counts[row]),
            waiting=int(waiting_counts[row]),
            nodes=int(node_counts[row]),
            usage=usage_of(line, used[row], offered[row]),
            waiting_requests={
                one.resource: one.used
                for one in usage_of(line, wanted[row], offered[row])
                if one.used and one.resource != PODS
            },
        )
        for name, row in index.items()
    ]


def _name_of_pod(state: State, by: str, label: str) -> Callable[[int], str]:
    """The group of a pod. Raises NoSuchObject."""
    line = state.timeline
    if by == NAMESPACE:
        return lambda row: namespace_of(line, row)
    if by == LABEL:
        return lambda row: label_of(line, row, label)
    if by != POOL:
        raise NoSuchObject("grouping", by[:100])
    pools = {row: pool_of(node_at(state, row)) for row in numbers(state.there)}
    nodes = state.node_of_pod
    return lambda row: pools[int(nodes[row])]


@lru_cache(maxsize=_STATES_MAX)
def label_keys(state: State) -> tuple[str, ...]:
    """The label keys of the existing pods, those that usually name a team first."""
    pods = state.timeline.pods
    rows = numbers(np.flatnonzero(state.pods_there))
    keys = options({key for row in rows for key in pods[row].labels})
    return tuple(sorted(keys, key=lambda key: "team" not in key.lower()))
