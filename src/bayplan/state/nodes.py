"""NodeView and NodeInfo: what plugins see of the nodes.

A `NodeView` is a selection of rows with read-only columns, lent for one cycle; every accessor
answers [nodes]: one value per node of the view. `view.take(positions)` is again a view, and a
row-wise plugin gives the same answer through either. A `NodeInfo` is a read-only façade over one
row, with the names of upstream's NodeInfo, for plugins written node by node.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from bayplan.api.declared_fields import DeclaredFields
from bayplan.api.objects import Node, Taint
from bayplan.api.pod_requests import CPU, MEMORY
from bayplan.api.read_only import EMPTY, ReadOnlyDict
from bayplan.api.selectors import NodeTerm, Requirement
from bayplan.state.change_log import Facet
from bayplan.state.columns import Column, Floats, Int32s, Int64s, Mask, Rows, as_positions
from bayplan.state.domain_counts import PodSet
from bayplan.state.host_ports import HostPort
from bayplan.state.images import ImageState
from bayplan.state.node_table import NodeTable, named_claims
from bayplan.state.placed_terms import PlacedTerm, TermKind, TermsAbout
from bayplan.state.pods import PodInfo, PodShape
from bayplan.state.rejections import Code, Rejection
from bayplan.state.resources import Bundle, RowAmounts, Usage


class LoanEnded(RuntimeError):
    """A view was used after the cycle it was lent for."""


class Loan:
    """Says whether what was lent may still be read."""

    __slots__ = ("ended", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.ended = False


class NodeView:
    """Some nodes of the cluster, as arrays."""

    __slots__ = ("_loan", "_rows", "_selected", "_size", "_table")

    def __init__(self, table: NodeTable, loan: Loan, rows: Rows | None) -> None:
        self._table = table
        self._loan = loan
        #: None: all rows of the table, which are then all alive; columns are lent uncopied.
        self._rows = rows
        self._size = table.row_count if rows is None else len(rows)
        #: What the rows are of columns.
        self._selected = slice(self._size) if rows is None else rows

    def __len__(self) -> int:
        return self._size

    # ---- selecting ------------------------------------------------------------------------

    def take(self, positions: Rows | Mask | Sequence[int]) -> "NodeView":
        """The nodes at these positions of this view (or where a mask of it is true)."""
        chosen = as_positions(positions)
        rows = chosen if self._rows is None else self._rows.take(chosen)
        return NodeView(self._open(), self._loan, rows)

    def all(self) -> "NodeView":
        """All nodes of the cluster, whatever this view selects."""
        table = self._open()
        return NodeView(table, self._loan, table.alive_rows())

    @property
    def rows(self) -> Rows:
        """intp[nodes]: the row of each node; stable from a node's add to its delete."""
        self._open()
        rows = np.arange(self._size) if self._rows is None else self._rows.view()
        rows.flags.writeable = False
        return rows

    @property
    def selection(self) -> "Rows | slice":
        """What to index an array by row with, to have its values at these nodes."""
        self._open()
        return self._selected

    def position(self, name: str) -> int | None:
        """Where in this view a node stands."""
        row = self._open().row_of.get(name)
        if row is None or self._table.nodes[row] is None:
            return None
        if self._rows is None:
            return row
        found = np.flatnonzero(self._rows == row)
        return int(found[0]) if len(found) else None

    def positions(self, names: Sequence[str]) -> Rows:
        """Where these nodes stand in this view, ascending; names it does not hold are left out."""
        table = self._open()
        rows = {table.row_of[n] for n in names if n in table.row_of}
        if self._rows is None:
            return np.array(sorted(r for r in rows if table.nodes[r] is not None), np.intp)
        if len(self._rows) <= _FEW_NODES:
            found = [place for place, row in enumerate(self._rows.tolist()) if row in rows]
            return np.array(found, np.intp)
        return np.flatnonzero(np.isin(self._rows, list(rows)))

    def reject(
        self, nodes: Mask | Rows, *reasons: str, code: Code = Code.UNSCHEDULABLE
    ) -> Rejection:
        """A rejection of these nodes of this view: bool[nodes], or their positions.

        ``reasons``: short sentences without numbers, which the message counts.
        """
        return Rejection(nodes, code, reasons)

    def mask_of_rows(self, rows: Sequence[int] | Rows) -> Mask:
        """bool[nodes]: true for nodes on these rows of the table."""
        marked = np.zeros(self._open().row_count, np.bool_)
        marked[rows] = True
        return marked if self._rows is None else marked[self._rows]

    def draw_order(self) -> Rows:
        """The positions of this view in the order in which ties are drawn."""
        order = self._open().draw_order()
        if self._rows is None:
            return order
        place = np.full(self._table.row_count, -1, np.intp)
        place[self._rows] = np.arange(self._size)
        ordered = place[order]
        return ordered[ordered >= 0]

    def name_drawn(self, tied: Mask, count: int, index: int) -> str:
        """The index-th of ``count`` tied nodes, in that order; ``tied``: bool[nodes]."""
        table, marked = self._open(), tied
        if self._rows is not None:
            marked = np.zeros(table.row_count, np.bool_)
            marked[self._rows[tied]] = True
        return table.names[table.nth_drawn(marked, count, index)]

    # ---- names and objects ----------------------------------------------------------------

    def name(self, position: int) -> str:
        return self._open().names[self._row(position)]

    def names(self) -> list[str]:
        names = self._open().names
        return list(names) if self._rows is None else [names[r] for r in self._rows.tolist()]

    def info(self, position: int) -> "NodeInfo":
        return NodeInfo(self._open(), self._loan, self._row(position))

    def infos(self) -> Iterator["NodeInfo"]:
        table, loan = self._open(), self._loan
        rows = range(self._size) if self._rows is None else self._rows.tolist()
        for row in rows:
            yield NodeInfo(table, loan, row)

    def info_of_row(self, row: int) -> "NodeInfo":
        """The node on a row of the table, whatever this view selects."""
        return NodeInfo(self._open(), self._loan, row)

    def node(self, position: int) -> Node:
        node = self._open().nodes[self._row(position)]
        assert node is not None
        return node

    # ---- resources ------------------------------------------------------------------------

    def allocatable(self, resource: str) -> Int64s:
        """int64[nodes]: cpu in millicores, everything else in whole units; 0 where unknown."""
        return self._lend(self._open().resources.allocatable(resource))

    def requested(self, resource: str) -> Int64s:
        """int64[nodes]: what placed pods ask for, overhead and pod-level requests included."""
        return self._lend(self._open().resources.requested(resource))

    def short(self, resource: str, amount: int) -> Mask | None:
        """bool[nodes]: who has less left than this amount; None: nobody has.

        Left is allocatable less requested; of pods: less those placed.
        """
        table = self._open()
        are_all = self._rows is None or self._rows is table.alive_rows()
        return table.resources.short(resource, amount, self._selected, are_all=are_all)

    def usage(self, bundle: Bundle, *, scored: bool) -> Usage:
        """What would be used of a bundle's resources if its amounts came on top.

        ``scored``: pods that ask for no cpu count as 100m, for no memory as 200Mi.
        """
        table = self._open()
        return table.resources.usage(bundle, self._selected, table.node_count, scored=scored)

    def non_zero_milli_cpu(self) -> Int64s:
        """int64[nodes]: requested cpu where pods that ask for none count as 100m."""
        return self._lend(self._open().resources.scored(CPU))

    def non_zero_memory_bytes(self) -> Int64s:
        """int64[nodes]: requested memory where pods that ask for none count as 200Mi."""
        return self._lend(self._open().resources.scored(MEMORY))

    def pod_counts(self) -> Int64s:
        """int64[nodes]: how many pods are placed."""
        return self._lend(self._open().resources.pod_counts)

    def resource_names(self) -> list[str]:
        """Every resource that some node offers."""
        return self._open().resources.offered_names()

    # ---- labels, taints -------------------------------------------------------------------

    def label_ids(self, key: str) -> Int32s:
        """int32[nodes]: an id per value of this label, -1 where absent; see `label_values`."""
        return self._lend(self._open().label_column(key).ids)

    def label_values(self, key: str) -> Sequence[str]:
        """Id → value for `label_ids`; may hold values that no node has any more."""
        return self._open().label_column(key).values.values

    def lacks_label(self, key: str) -> bool:
        """Whether some node of the cluster has no such label: spares asking."""
        table = self._open()
        return table.label_column(key).holder_count < table.node_count

    def satisfying(self, requirement: Requirement) -> Mask:
        """bool[nodes]: whose labels satisfy one requirement."""
        column = self._open().label_column(requirement.key)
        return column.matching(self._lend(column.ids), requirement)

    def matching_term(self, term: NodeTerm) -> Mask:
        """bool[nodes]: whom one node selector term matches; an empty or broken one: nobody."""
        if term.error is not None or term.is_empty:
            return np.zeros(self._size, np.bool_)
        matching: Mask | None = None
        for requirement in term.labels:
            found = self.satisfying(requirement)
            matching = found if matching is None else matching & found
        for requirement in term.fields:
            found = self._named(requirement)
            matching = found if matching is None else matching & found
        assert matching is not None
        return matching

    def _named(self, requirement: Requirement) -> Mask:
        """Conditions on fields are In or NotIn of one name."""
        mask = np.zeros(self._size, np.bool_)
        mask[self.positions(requirement.values)] = True
        return mask if requirement.operator == "In" else ~mask

    def taint_set_ids(self) -> Int32s:
        """int32[nodes]: an id per distinct list of taints; see `taint_sets`. Id 0 is no taint."""
        return self._lend(self._open().taint_set_ids)

    def taint_sets(self) -> Sequence[tuple[Taint, ...]]:
        """Id → taints for `taint_set_ids`."""
        return self._open().taint_sets.values

    def unschedulable(self) -> Mask:
        """bool[nodes]: spec.unschedulable."""
        return self._lend(self._open().unschedulable)

    @property
    def any_unschedulable(self) -> bool:
        """Whether any node of the cluster is unschedulable: spares asking."""
        return self._open().unschedulable_count > 0

    # ---- pods -----------------------------------------------------------------------------

    def matching_pods(self, pods: PodSet) -> Int32s:
        """int32[nodes]: how many placed pods belong to the set."""
        return self._lend(self._open().selector_counts.counter(pods).column)

    def placed_terms(self, kind: TermKind) -> list[PlacedTerm]:
        """Distinct affinity terms of placed pods; see `pods_by_domain`."""
        return self._open().placed_terms.of(kind)

    def terms_about(self, kind: TermKind, shape: PodShape) -> TermsAbout:
        """Those of them that mean pods of this shape: found through an index, and remembered."""
        return self._open().placed_terms.about(kind, shape)

    def holds_terms(self, kinds: Iterable[TermKind]) -> bool:
        """Whether any placed pod has a term of one of these kinds: spares asking."""
        return self._open().placed_terms.holds(kinds)

    def pods_by_domain(self, pods: PodSet | PlacedTerm | None, key: str) -> Floats | None:
        """float64[values + 1]: pods of the set, or with the term, by the value of a label; None:
        the nodes themselves.

        By label id, over all nodes of the cluster whatever this view selects, to be written; the
        last place is for nodes without the label, and 0. None: no domain has any.
        """
        return self._open().pods_by_domain(pods, key)

    def pods_with_affinity(self) -> Int32s:
        """int32[nodes]: pods with any (anti-)affinity term."""
        return self._lend(self._open().placed_terms.with_affinity)

    def pods_with_required_anti_affinity(self) -> Int32s:
        """int32[nodes]: pods with a required anti-affinity term."""
        return self._lend(self._open().placed_terms.with_required_anti_affinity)

    # ---- ports, images --------------------------------------------------------------------

    def conflicting_ports(self, ports: Sequence[HostPort]) -> Mask:
        """bool[nodes]: where one of these host ports is taken."""
        index = self._open().ports
        return self.mask_of_rows([row for p in ports for row in index.conflicting_rows(p)])

    def image(self, name: str) -> ImageState | None:
        """An image some node holds: its size and its rows (not positions; see mask_of_rows)."""
        return self._open().images.find(name)

    @property
    def cluster_node_count(self) -> int:
        """Nodes of the whole cluster, whatever this view selects."""
        return self._open().node_count

    # ---- derived --------------------------------------------------------------------------

    def derived(
        self,
        key: Hashable,
        facets: Facet,
        dtype: npt.DTypeLike,
        compute: Callable[["NodeView"], npt.NDArray[Any]],
    ) -> npt.NDArray[Any]:
        """A value per node that follows from these facets of its row alone, kept current.

        ``compute`` is asked about a view of the rows that changed since the last time, and must
        answer [nodes of that view]. ``key`` names the column together with its parameters.
        """
        table, loan = self._open(), self._loan
        return self._lend(
            table.derived(key, facets, dtype, lambda rows: compute(NodeView(table, loan, rows)))
        )

    # ---- inside ---------------------------------------------------------------------------

    def _open(self) -> NodeTable:
        if self._loan.ended:
            raise LoanEnded("a view of the nodes is valid only within the cycle it was lent for")
        return self._table

    def _row(self, position: int) -> int:
        return position if self._rows is None else int(self._rows[position])

    def _lend(self, column: Column) -> npt.NDArray[Any]:
        if self._rows is None:
            return column.lent[: self._size]
        found = column.values.take(self._rows)
        found.flags.writeable = False
        return found


class LateNodeView(NodeView):
    """A view whose rows are found when somebody looks: most who are handed one do not."""

    __slots__ = ("_find",)

    def __init__(self, nodes: NodeView, find: Callable[[], "Rows | None"]) -> None:
        """``find``: the rows of the table; None: those of ``nodes``, which are all."""
        self._find = find
        self._table = nodes._table
        self._loan = nodes._loan

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there yet, and only for that."""
        if name not in ("_rows", "_selected", "_size"):
            raise AttributeError(name)
        rows = self._find()
        NodeView.__init__(self, self._table, self._loan, rows)
        return object.__getattribute__(self, name)


#: In a view of so many nodes they are found one by one.
_FEW_NODES = 16

_NO_AMOUNTS: dict[str, RowAmounts] = {}


class NodeInfo:
    """One node and what is on it, read-only. Upstream: framework.NodeInfo."""

    __slots__ = ("_amounts", "_generation", "_loan", "_row", "_table")

    def __init__(self, table: NodeTable, loan: Loan, row: int) -> None:
        self._table = table
        self._loan = loan
        self._row = row
        #: Looked up since the last change of the table: several plugins ask for the same.
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
        """The id of this label's value, -1 where absent; see NodeView.label_ids."""
        return int(self._open().label_column(key).ids.values[self._row])

    @property
    def annotations(self) -> Mapping[str, str]:
        annotations = self.node.metadata.annotations
        return MappingProxyType(annotations) if annotations else EMPTY

    @property
    def declared(self) -> DeclaredFields:
        """The further fields that plugins declare in `fields`."""
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
        """What it has of one resource, and what of that is taken."""
        table = self._table if not self._loan.ended else self._open()
        if self._generation != table.log.generation:
            self._generation, self._amounts = table.log.generation, {}
        found = self._amounts.get(resource)
        if found is None:
            found = self._amounts[resource] = table.resources.of_row(resource, self._row)
        return found

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
        """Whether a host port is in use here, at an address that conflicts."""
        return self._open().ports.is_taken(self._row, port)

    @property
    def pvc_ref_counts(self) -> Mapping[str, int]:
        """Claim ("namespace/name") → how many volumes of the pods here name it."""
        return Counter(key for pod in self.pods for key in named_claims(pod))

    @property
    def image_states(self) -> Mapping[str, ImageState]:
        images = self._open().images
        found = {name: images.find(name) for name in sorted(images.on_row(self._row))}
        return {name: state for name, state in found.items() if state is not None}

    @property
    def generation(self) -> int:
        return self._open().generation_of(self._row)

    def __repr__(self) -> str:
        pods = ", ".join(p.key for p in self.pods)
        requested, allocatable = dict(self.requested), dict(self.allocatable)
        return f"NodeInfo({self.name}: pods [{pods}], {requested=}, {allocatable=})"
