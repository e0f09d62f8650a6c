"""NodeView and NodeInfo: what plugins see of the nodes.

A `NodeView` is a selection of nodes with read-only columns, lent for one cycle. Every accessor
answers [nodes]: one value per node of the view. What most plugins read stands on the view itself;
the other accessors are grouped (`nodes.labels.ids(key)`). `nodes.take(positions)` is again a view,
and a row-wise plugin gives the same answer through either. A `NodeInfo` is a read-only facade over
one row, with the names of upstream's NodeInfo, for plugins written node by node.

Old names of accessors are accepted for one release, with a DeprecationWarning.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter, call
from types import MappingProxyType
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from bayplan.api.declared_fields import DeclaredFields
from bayplan.api.objects import Node, Taint
from bayplan.api.pod_requests import CPU, MEMORY
from bayplan.api.read_only import EMPTY, ReadOnlyDict
from bayplan.state.change_log import Facet
from bayplan.state.columns import Int64s, Mask, Rows, as_positions
from bayplan.state.host_ports import HostPort
from bayplan.state.images import ImageState
from bayplan.state.node_accessors import (
    Loan,
    LoanEnded,
    NodeLabels,
    NodePods,
    NodeResources,
    NodeTaints,
    RowSelection,
    TableRows,
    selected_late,
)
from bayplan.state.node_table import NodeTable, named_claims
from bayplan.state.pods import PodInfo
from bayplan.state.rejections import Code, Rejection
from bayplan.state.resources import RowAmounts


@final
class NodeView:
    """Some nodes of the cluster, as arrays."""

    #: Free and used amounts of resources.
    resources: NodeResources
    #: Labels as ids of their values, and node selectors.
    labels: NodeLabels
    #: Taints, and spec.unschedulable.
    taints: NodeTaints
    #: Counts of placed pods, their affinity terms and host ports.
    pods: NodePods
    #: The rows of the node table, for code that stores values by row.
    table: TableRows

    _selection: RowSelection

    def __init__(
        self,
        table: NodeTable,
        loan: Loan,
        rows: Rows | None,
        late: Callable[[], RowSelection] | None = None,
    ) -> None:
        """``rows``: rows of the table; None: all rows, and each row holds a node. ``late``: makes
        the selection on first use; then ``rows`` is ignored."""
        if late is not None:
            self._late = late
        elif rows is None:
            size = table.row_count
            self._selection = RowSelection(table, loan, None, size, slice(size))
        else:
            self._selection = RowSelection(table, loan, rows, len(rows), rows)

    def __len__(self) -> int:
        return self._selection.size

    # ---- amounts --------------------------------------------------------------------------

    def allocatable(self, resource: str) -> Int64s:
        """int64[nodes]: CPU in millicores, everything else in whole units; 0 where unknown."""
        selection = self._selection
        return selection.lend(selection.table.resources.allocatable(resource))

    def requested(self, resource: str) -> Int64s:
        """int64[nodes]: what placed pods request, overhead and pod-level requests included."""
        selection = self._selection
        return selection.lend(selection.table.resources.requested(resource))

    # ---- rejections -----------------------------------------------------------------------

    def reject(
        self, nodes: Mask | Rows, *reasons: str, code: Code = Code.UNSCHEDULABLE
    ) -> Rejection:
        """A rejection of these nodes of this view: bool[nodes], or their positions.

        ``reasons``: short sentences without numbers, which the message counts.
        """
        return Rejection(nodes, code, reasons)

    # ---- selecting ------------------------------------------------------------------------

    def take(self, positions: Rows | Mask | Sequence[int]) -> "NodeView":
        """The nodes at these positions of this view, or where bool[nodes] is true."""
        chosen, selection = as_positions(positions), self._selection
        rows = chosen if selection.rows is None else selection.rows.take(chosen)
        return NodeView(selection.open(), selection.loan, rows)

    def take_rows(self, rows: Callable[[], Rows | None]) -> "NodeView":
        """The nodes on rows of the table, whatever this view selects; None: on all rows.

        ``rows`` is called on first use of the view, because many such views are never read.
        """
        table, loan = self._selection.table, self._selection.loan
        return NodeView(table, loan, None, partial(selected_late, table, loan, rows))

    def all(self) -> "NodeView":
        """All nodes of the cluster, whatever this view selects."""
        table = self._selection.open()
        return NodeView(table, self._selection.loan, table.alive_rows())

    def position(self, name: str) -> int | None:
        """The position of a node in this view; None if the view lacks the node."""
        return self._selection.position(name)

    def positions(self, names: Sequence[str]) -> Rows:
        """The positions of these nodes, ascending; names that the view lacks are ignored."""
        return self._selection.positions(names)

    # ---- names and single nodes -----------------------------------------------------------

    def name(self, position: int) -> str:
        return self._selection.open().names[self._row(position)]

    def names(self) -> list[str]:
        names, rows = self._selection.open().names, self._selection.rows
        return list(names) if rows is None else [names[row] for row in rows.tolist()]

    def info(self, position: int) -> "NodeInfo":
        return NodeInfo(self._selection.open(), self._selection.loan, self._row(position))

    def infos(self) -> Iterator["NodeInfo"]:
        selection = self._selection
        table, loan = selection.open(), selection.loan
        rows = range(selection.size) if selection.rows is None else selection.rows.tolist()
        for row in rows:
            yield NodeInfo(table, loan, row)

    def not_placed(self, pods_by_node: Sequence[Sequence[PodInfo]]) -> list[list[PodInfo]]:
        """Of the pods that a what-if adds to each of these nodes, those that are not there yet.

        In a trial of a pod group, members may already be on the node they are nominated to.
        """
        there, rows = self._selection.open().pods, self.table.rows.tolist()
        pairs = zip(rows, pods_by_node, strict=True)
        return [[pod for pod in pods if pod.uid not in there[row]] for row, pods in pairs]

    def info_of_row(self, row: int) -> "NodeInfo":
        """The node on a row of the table, whatever this view selects."""
        return NodeInfo(self._selection.open(), self._selection.loan, row)

    # ---- images, derived values -----------------------------------------------------------

    def image(self, name: str) -> ImageState | None:
        """The size of an image and the rows (not positions) of its nodes; see `TableRows.mask`.

        None: no node has the image.
        """
        return self._selection.open().images.find(name)

    def derived(
        self,
        key: Hashable,
        facets: Facet,
        dtype: npt.DTypeLike,
        compute: Callable[["NodeView"], npt.NDArray[Any]],
    ) -> npt.NDArray[Any]:
        """dtype[nodes]: values that depend only on these facets of each row, always up to date.

        ``compute`` is called with a view of the rows that changed since the last call, and returns
        [nodes of that view]. ``key`` names the column together with its parameters.
        """
        table, loan = self._selection.open(), self._selection.loan
        return self._selection.lend(
            table.derived(key, facets, dtype, lambda rows: compute(NodeView(table, loan, rows)))
        )

    # ---- inside ---------------------------------------------------------------------------

    def _row(self, position: int) -> int:
        rows = self._selection.rows
        return position if rows is None else int(rows[position])


# ---- parts of a view ----------------------------------------------------------------------------


@final
class _MadeOnce:
    """A part of a view, made from another attribute on first access and stored in the view.

    This is a non-data descriptor: reading a stored part calls no function.
    """

    def __init__(self, name: str, source: str, make: Callable[[Any], object]) -> None:
        self._name = name
        self._source = attrgetter(source)
        self._make = make

    def __get__(self, view: NodeView | None, owner: type[NodeView]) -> object:
        if view is None:
            return self
        part = self._make(self._source(view))
        setattr(view, self._name, part)
        return part


_SELECTION: Final = "_selection"
#: The groups by name.
GROUPS: Final[Mapping[str, type]] = {
    "resources": NodeResources,
    "labels": NodeLabels,
    "taints": NodeTaints,
    "pods": NodePods,
    "table": TableRows,
}

# ---- old names ----------------------------------------------------------------------------------

#: Old name of an accessor → what to write. Accepted for one release.
REPLACED: Final[Mapping[str, str]] = {
    "any_unschedulable": "taints.any_unschedulable()",
    "cluster_node_count": "table.node_count",
    "conflicting_ports": "pods.conflicting_ports",
    "draw_order": "table.draw_order",
    "holds_terms": "pods.any_affinity_terms",
    "label_ids": "labels.ids",
    "label_values": "labels.values",
    "lacks_label": "labels.any_missing",
    "mask_of_rows": "table.mask",
    "matching_pods": "pods.matching",
    "matching_term": "labels.matching_term",
    "name_drawn": "table.name_drawn",
    "node": "info(position).node",
    "non_zero_memory_bytes": 'resources.non_zero_requested("memory")',
    "non_zero_milli_cpu": 'resources.non_zero_requested("cpu")',
    "placed_terms": "pods.affinity_terms",
    "pod_counts": "pods.counts",
    "pods_by_domain": "pods.by_domain",
    "pods_with_affinity": "pods.with_affinity",
    "pods_with_required_anti_affinity": "pods.with_required_anti_affinity",
    "resource_names": "resources.names",
    "rows": "table.rows",
    "satisfying": "labels.matching",
    "selection": "table.index",
    "short": "resources.insufficient",
    "taint_set_ids": "taints.set_ids",
    "taint_sets": "taints.sets",
    "terms_about": "pods.affinity_terms_selecting",
    "unschedulable": "taints.unschedulable",
    "usage": "resources.usage",
}


def _node(view: NodeView, position: int) -> Node:
    return view.info(position).node


#: Old accessors whose replacement has other parameters or another result.
_ADAPTED: Final[Mapping[str, Callable[[NodeView], Any]]] = {
    "any_unschedulable": lambda view: view.taints.any_unschedulable(),
    "node": lambda view: partial(_node, view),
    "non_zero_memory_bytes": lambda view: partial(view.resources.non_zero_requested, MEMORY),
    "non_zero_milli_cpu": lambda view: partial(view.resources.non_zero_requested, CPU),
}


def read_replaced(view: NodeView, name: str) -> Any:
    """The value of an old accessor of a view, with a DeprecationWarning for the caller's caller."""
    warnings.warn(
        f"NodeView.{name} will not be there in the next release; write nodes.{REPLACED[name]}",
        DeprecationWarning,
        stacklevel=3,
    )
    read: Callable[[NodeView], Any] = _ADAPTED.get(name) or attrgetter(REPLACED[name])
    return read(view)


@final
class _ReplacedAccessor:
    """An old accessor."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, view: NodeView | None, owner: type[NodeView]) -> object:
        return self if view is None else read_replaced(view, self._name)


def _add_parts() -> None:
    setattr(NodeView, _SELECTION, _MadeOnce(_SELECTION, "_late", call))
    for name, group in GROUPS.items():
        setattr(NodeView, name, _MadeOnce(name, _SELECTION, group))
    for name in REPLACED:
        setattr(NodeView, name, _ReplacedAccessor(name))


_add_parts()

# ---- single nodes -------------------------------------------------------------------------------

_NO_AMOUNTS: dict[str, RowAmounts] = {}


class NodeInfo:
    """One node with its pods, read-only. Upstream: framework.NodeInfo."""

    __slots__ = ("_amounts", "_generation", "_loan", "_row", "_table")

    def __init__(self, table: NodeTable, loan: Loan, row: int) -> None:
        self._table = table
        self._loan = loan
        self._row = row
        #: Amounts that were read since the last change of the table. Several plugins read the same
        #: resource.
        self._amounts: dict[str, RowAmounts] = _NO_AMOUNTS
        self._generation = -1

    def _open(self) -> NodeTable:
        if self._loan.ended:
            raise LoanEnded("a NodeInfo is valid only within the cycle it was lent for")
        return self._table

    @property
    def name(self) -> str:
        return self._open().names[self._row]

    @property
    def node(self) -> Node:
        node = self._open().nodes[self._row]
        assert node is not None
        return node

    @property
    def labels(self) -> Mapping[str, str]:
        labels = self._open().labels[self._row]
        return MappingProxyType(labels) if labels else EMPTY

    def label_id(self, key: str) -> int:
        """The id of this label's value; -1 without the label. See `NodeLabels.ids`."""
        return int(self._open().label_column(key).ids.values[self._row])

    @property
    def annotations(self) -> Mapping[str, str]:
        annotations = self.node.metadata.annotations
        return MappingProxyType(annotations) if annotations else EMPTY

    @property
    def declared(self) -> DeclaredFields:
        """Path → value of the fields that plugins declare in `fields`."""
        return DeclaredFields("Node", self.name, self.node.declared)

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.node.spec.taints or ()

    @property
    def unschedulable(self) -> bool:
        return bool(self.node.spec.unschedulable)

    @property
    def pods(self) -> list[PodInfo]:
        """Placed pods, assumed ones included, in the order of their arrival."""
        return list(self._open().pods[self._row].values())

    def amounts(self, resource: str) -> RowAmounts:
        """The amounts of one resource: allocatable, requested and free."""
        table = self._table if not self._loan.ended else self._open()
        if self._generation != table.log.generation:
            self._generation, self._amounts = table.log.generation, {}
        amounts = self._amounts.get(resource)
        if amounts is None:
            amounts = self._amounts[resource] = table.resources.of_row(resource, self._row)
        return amounts

    @property
    def view(self) -> NodeView:
        """This node alone, as arrays."""
        return NodeView(self._open(), self._loan, np.array([self._row], np.intp))

    @property
    def requested(self) -> Mapping[str, int]:
        """Resource name → amount; cpu in millicores. Zero amounts are left out."""
        return ReadOnlyDict(self._open().resources.requested_on(self._row))

    @property
    def allocatable(self) -> Mapping[str, int]:
        return ReadOnlyDict(self._open().resources.allocatable_on(self._row))

    @property
    def non_zero_requested(self) -> Mapping[str, int]:
        resources = self._open().resources
        return {name: resources.scored(name).values.item(self._row) for name in (CPU, MEMORY)}

    @property
    def used_ports(self) -> frozenset[HostPort]:
        return self._open().ports.on_row(self._row)

    def is_port_taken(self, port: HostPort) -> bool:
        """Whether a host port is in use on the node, at an address that conflicts."""
        return self._open().ports.is_taken(self._row, port)

    @property
    def pvc_ref_counts(self) -> Mapping[str, int]:
        """Claim ("namespace/name") → number of volumes of the node's pods that name it."""
        return Counter(key for pod in self.pods for key in named_claims(pod))

    @property
    def image_states(self) -> Mapping[str, ImageState]:
        images = self._open().images
        states = {name: images.find(name) for name in sorted(images.on_row(self._row))}
        return {name: state for name, state in states.items() if state is not None}

    @property
    def generation(self) -> int:
        return self._open().generation_of(self._row)

    def __repr__(self) -> str:
        pods = ", ".join(p.key for p in self.pods)
        requested, allocatable = dict(self.requested), dict(self.allocatable)
        return f"NodeInfo({self.name}: pods [{pods}], {requested=}, {allocatable=})"
