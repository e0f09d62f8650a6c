"""The tables of nodes and pods: which rows they have, and in which order.

A question names filters and the column that sorts. A filter that it does not name lets all rows
pass; a column with a minus before it sorts from the largest value to the smallest one. Rows with
equal values stay in the order of names (nodes) or of creation (pods). States, amounts and attempts
are columns of a `State`, so a table of 15,000 nodes or 100,000 pods takes milliseconds; only names
and texts are compared one by one.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bayplan.answers.names import in_natural_order, natural_key
from bayplan.api.objects import Node
from bayplan.api.pod_requests import PODS
from bayplan.history.columns import Rows
from bayplan.history.timeline import PodState, State, Timeline, is_ready, numbers
from bayplan.objects.pools import pool_of

#: The most values that a filter offers, and the number of states for which they are remembered.
#: Each page of a table has them, and they are read from all nodes or pods.
_OPTIONS_MAX = 200
_STATES_MAX = 2
_DESCENDING = "-"
_NAME = "name"


class NoSuchObject(KeyError):
    """A question names a pod, node, group, resource or column that does not exist."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"no {kind} {name!r} in this run")
        self.text = f"no {kind} {name!r} in this run"


def state_name(state: int) -> str:
    """The word of the page for a `PodState`."""
    return PodState(state).name.lower().replace("_", " ")


def shares(used: Rows, allocatable: Rows) -> NDArray[np.float64]:
    """The requested shares; NaN where nothing is allocatable."""
    nothing = np.full(len(used), np.nan)
    return np.divide(used, allocatable, out=nothing, where=allocatable > 0)


def node_at(state: State, row: int) -> Node:
    """The present version of a node."""
    return state.timeline.nodes[int(state.node_version[row])]


# ---- nodes ----------------------------------------------------------------------------------

NODE_STATES: dict[str, Callable[[Node], bool]] = {
    "ready": is_ready,
    "not ready": lambda node: not is_ready(node),
    "cordoned": lambda node: bool(node.spec.unschedulable),
    "tainted": lambda node: bool(node.spec.taints),
}


class NodeFilter(Struct, frozen=True):
    """Which nodes a table has. A filter "" lets all nodes pass."""

    #: A part of the name.
    search: str = ""
    #: The state, one of `NODE_STATES`.
    state: str = ""
    pool: str = ""
    #: The key of a taint.
    taint: str = ""

    def admits(self, name: str, node: Node) -> bool:
        return (
            self.search.lower() in name.lower()
            and (not self.pool or pool_of(node) == self.pool)
            and (not self.taint or any(one.key == self.taint for one in node.spec.taints or ()))
            and (not self.state or NODE_STATES[self.state](node))
        )


def node_rows(state: State, of: NodeFilter, sort: str = "") -> Sequence[int]:
    """The rows of the existing nodes. ``sort``: name, pods, pool, state or a resource.

    Raises NoSuchObject: there is no such state or column.
    """
    if of.state and of.state not in NODE_STATES:
        raise NoSuchObject("state of nodes", of.state)
    names = state.timeline.node_names
    rows = [row for row in numbers(state.there) if of.admits(names[row], node_at(state, row))]
    rows.sort(key=lambda row: natural_key(names[row]))
    return ordered(rows, sort, lambda column: _node_key(state, column))


def _node_key(state: State, column: str) -> Callable[[int], Any] | None:
    if column == "pool":
        return lambda row: natural_key(pool_of(node_at(state, row)))
    if column == "state":
        return lambda row: _trouble(node_at(state, row))
    resources = state.timeline.resources
    if column not in resources:
        return None
    index = resources.index(column)
    used, allocatable = state.used[:, index], state.allocatable[:, index]
    # Nodes differ in how many pods they may have, but a reader counts pods, so pods are sorted by
    # number.
    values = used if column == PODS else np.nan_to_num(shares(used, allocatable), nan=-1.0)
    return values.__getitem__


def _trouble(node: Node) -> tuple[bool, bool, int]:
    """How much a node keeps pods away. Ready nodes without taints have the lowest value."""
    return not is_ready(node), bool(node.spec.unschedulable), len(node.spec.taints or ())


def node_states(state: State) -> dict[str, int]:
    """The number of existing nodes in each state."""
    nodes = [node_at(state, row) for row in numbers(state.there)]
    return {name: sum(map(is_so, nodes)) for name, is_so in NODE_STATES.items()}


@lru_cache(maxsize=_STATES_MAX)
def node_options(state: State) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The pools and the keys of taints of the existing nodes."""
    nodes = [node_at(state, row) for row in numbers(state.there)]
    pools = {pool_of(node) for node in nodes} - {""}
    taints = {taint.key for node in nodes for taint in node.spec.taints or ()}
    return options(pools), options(taints)


# ---- pods -----------------------------------------------------------------------------------

POD_STATES = tuple(state_name(one) for one in PodState if one is not PodState.ABSENT)


class PodFilter(Struct, frozen=True):
    """Which pods a table has. A filter "" or None lets all pods pass."""

    #: A part of the name.
    search: str = ""
    namespace: str = ""
    #: The workload, such as "Deployment default/web".
    workload: str = ""
    #: The label, as KEY=VALUE; without a value, pods without the label pass.
    label: str = ""
    #: The state, one of `POD_STATES`.
    state: str = ""
    node: str = ""
    #: The pool of the node; only pods on nodes pass.
    pool: str = ""
    group: str = ""
    #: The number of a cause; only pods that wait pass.
    cause: int | None = None


def pod_rows(state: State, of: PodFilter, sort: str = "") -> Sequence[int]:
    """The rows of the pods that have been created so far. ``sort``: name, workload, state, node,
    since, attempts or a resource; "": the order of creation.

    Raises NoSuchObject: there is no such node, group, state or column.
    """
    line = state.timeline
    rows = _pods_of(state, of)
    if of.state:
        if of.state not in POD_STATES:
            raise NoSuchObject("state of pods", of.state)
        rows = rows[state.pod_states[rows] == POD_STATES.index(of.state)]
    listed = numbers(rows)
    if of.pool:
        pools = {row: pool_of(node_at(state, row)) for row in numbers(state.there)}
        listed = [row for row in listed if pools.get(int(state.node_of_pod[row])) == of.pool]
    if of.namespace:
        listed = [row for row in listed if namespace_of(line, row) == of.namespace]
    if of.workload:
        listed = [row for row in listed if line.pods[row].workload == of.workload]
    if of.label:
        key, _, value = of.label.partition("=")
        listed = [row for row in listed if label_of(line, row, key) == value]
    if of.search:
        text = of.search.lower()
        listed = [row for row in listed if text in line.pods[row].name]
    return ordered(listed, sort, lambda column: _pod_key(state, column))


def _pods_of(state: State, of: PodFilter) -> Rows:
    """The pods of a node, of a cause or of a group, or all of them."""
    line = state.timeline
    if of.node:
        if of.node not in line.node_rows:
            raise NoSuchObject("node", of.node)
        return state.pods_on(line.node_rows[of.node])
    if of.cause is not None:
        return state.waiting[state.cause_of_pod[state.waiting] == of.cause]
    if of.group:
        number = group_number(line, of.group)
        return np.flatnonzero((line.lives.group == number) & state.pods_there)
    return np.arange(int((line.lives.created <= state.change).sum()))


def _pod_key(state: State, column: str) -> Callable[[int], Any] | None:
    line = state.timeline
    texts: dict[str, Callable[[int], str]] = {
        _NAME: lambda row: line.pods[row].name,
        "workload": lambda row: line.pods[row].workload,
        "node": lambda row: _node_name(state, row),
    }
    if column in texts:
        return lambda row: natural_key(texts[column](row))
    if column == "state":
        return state.pod_states.__getitem__
    if column == "since":
        return state.state_changes.__getitem__
    if column == "attempts":
        return state.attempt_counts.__getitem__
    if column not in line.resources:
        return None
    amounts = line.amounts[:, line.resources.index(column)]
    return lambda row: amounts[line.pods[row].amounts]


def _node_name(state: State, row: int) -> str:
    node = int(state.node_of_pod[row])
    return state.timeline.node_names[node] if node >= 0 else ""


def namespace_of(line: Timeline, row: int) -> str:
    """The namespace of a pod."""
    return line.pods[row].name.partition("/")[0]


def label_of(line: Timeline, row: int, key: str) -> str:
    """The value of a label of a pod; "": it has none."""
    return line.pods[row].labels.get(key, "")


@lru_cache(maxsize=_STATES_MAX)
def namespaces(state: State) -> tuple[str, ...]:
    """The namespaces of the pods that have been created so far."""
    created = int((state.timeline.lives.created <= state.change).sum())
    return options(namespace_of(state.timeline, row) for row in range(created))


def group_number(line: Timeline, name: str) -> int:
    """Raises NoSuchObject."""
    if name not in line.group_names:
        raise NoSuchObject("group", name)
    return list(line.group_names).index(name)


# ---- both -----------------------------------------------------------------------------------


def options(names: Iterable[str]) -> tuple[str, ...]:
    """The values that a filter offers."""
    return tuple(in_natural_order(set(names))[:_OPTIONS_MAX])


def ordered(
    rows: list[int], sort: str, key_of: Callable[[str], Callable[[int], Any] | None]
) -> Sequence[int]:
    """Rows by a column. Sorting keeps the order of equal rows, in both directions."""
    column = sort.removeprefix(_DESCENDING)
    is_descending = column != sort
    if not column or (column == _NAME and key_of(_NAME) is None):
        return rows[::-1] if is_descending else rows
    key = key_of(column)
    if key is None:
        raise NoSuchObject("column", column)
    return sorted(rows, key=key, reverse=is_descending)
