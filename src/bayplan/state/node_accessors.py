"""The accessors of a NodeView, in groups: resources, labels, taints, pods, table.

A view and its groups share one `RowSelection`: the rows of the node table that the view selects,
and the loan that ends with the cycle. Each accessor checks the loan and answers for the nodes of
the view, in their order. Axes: [nodes] is one value per node of the view. Arrays are read-only.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from bayplan.api.objects import Taint
from bayplan.api.selectors import NodeTerm, Requirement
from bayplan.state.columns import Column, Floats, Int32s, Int64s, Mask, Rows
from bayplan.state.domain_counts import PodSet
from bayplan.state.host_ports import HostPort
from bayplan.state.node_table import NodeTable
from bayplan.state.placed_terms import PlacedTerm, TermKind, TermsAbout
from bayplan.state.pods import PodShape
from bayplan.state.resources import Bundle, Usage

#: In a view of at most this many nodes, positions are looked up one by one.
_FEW_NODES = 16


class LoanEnded(RuntimeError):
    """A view was used after the cycle it was lent for."""


class Loan(Struct, eq=False):
    """The loan of the node table for one cycle: views may be read until it ends."""

    number: int
    ended: bool = False


class RowSelection(Struct, eq=False):
    """The rows of the node table that a view selects. Internal: plugins read the groups."""

    table: NodeTable
    loan: Loan
    #: None: all rows of the table, and each row holds a node; columns are lent without a copy.
    rows: Rows | None
    #: The number of selected rows.
    size: int
    #: Indexes an array by row.
    index: Rows | slice

    def open(self) -> NodeTable:
        """The table. Raises LoanEnded."""
        if self.loan.ended:
            raise LoanEnded("a view of the nodes is valid only within the cycle it was lent for")
        return self.table

    def lend(self, column: Column) -> npt.NDArray[Any]:
        """[nodes], read-only: a view of the column, or a copy of the selected rows.

        Raises LoanEnded. Reading the column from the table needs no check of its own.
        """
        if self.loan.ended:
            self.open()
        if self.rows is None:
            return column.lent[: self.size]
        values = column.values.take(self.rows)
        values.flags.writeable = False
        return values

    def mask_of_rows(self, rows: Sequence[int] | Rows) -> Mask:
        """bool[nodes]: true for nodes on these rows of the table."""
        marked = np.zeros(self.open().row_count, np.bool_)
        marked[rows] = True
        return marked if self.rows is None else marked[self.rows]

    def position(self, name: str) -> int | None:
        """The position of a node; None if the selection lacks the node."""
        row = self.open().row_of.get(name)
        if row is None or self.table.nodes[row] is None:
            return None
        if self.rows is None:
            return row
        positions = np.flatnonzero(self.rows == row)
        return int(positions[0]) if len(positions) else None

    def positions(self, names: Sequence[str]) -> Rows:
        """The positions of these nodes, ascending; names that the selection lacks are ignored."""
        table = self.open()
        rows = {table.row_of[n] for n in names if n in table.row_of}
        if self.rows is None:
            return np.array(sorted(r for r in rows if table.nodes[r] is not None), np.intp)
        if len(self.rows) <= _FEW_NODES:
            positions = [place for place, row in enumerate(self.rows.tolist()) if row in rows]
            return np.array(positions, np.intp)
        return np.flatnonzero(np.isin(self.rows, list(rows)))


def selected_late(table: NodeTable, loan: Loan, rows: Callable[[], Rows | None]) -> RowSelection:
    """The selection of the rows that ``rows`` returns now; None: of all rows."""
    chosen = rows()
    if chosen is None:
        return RowSelection(table, loan, None, table.row_count, slice(table.row_count))
    return RowSelection(table, loan, chosen, len(chosen), chosen)


class _Group(Struct, eq=False):
    """A group, made once per view. It is a Struct because the constructor runs no Python code."""

    _selection: RowSelection


@final
class NodeResources(_Group):
    """Amounts of resources. `NodeView.allocatable` and `NodeView.requested` are the main ones."""

    def insufficient(self, resource: str, amount: int) -> Mask | None:
        """bool[nodes]: nodes with less than this amount left; None: no node.

        Left is allocatable minus requested. Of the resource "pods": allowed minus placed pods.
        """
        selection = self._selection
        table = selection.table
        if selection.loan.ended:  # called for each pod that does not fit: saves a call
            selection.open()
        are_all = selection.rows is None or selection.rows is table.alive_rows()
        return table.resources.short(resource, amount, selection.index, are_all=are_all)

    def usage(self, bundle: Bundle, *, scored: bool) -> Usage:
        """The used amounts of a bundle's resources, plus the amounts of the bundle.

        ``scored``: pods without a CPU request count as 100m, without a memory request as 200Mi.
        """
        selection = self._selection
        table = selection.open()
        return table.resources.usage(bundle, selection.index, table.node_count, scored=scored)

    def non_zero_requested(self, resource: str) -> Int64s:
        """int64[nodes]: as `NodeView.requested`, but pods without a CPU request count as 100m, and
        pods without a memory request as 200Mi. Upstream: NodeInfo.NonZeroRequested."""
        return self._selection.lend(self._selection.table.resources.scored(resource))

    def names(self) -> list[str]:
        """Resources that some node of the cluster offers, sorted."""
        return self._selection.open().resources.offered_names()


@final
class NodeLabels(_Group):
    """Labels of nodes, as ids of their values, and node selectors."""

    def ids(self, key: str) -> Int32s:
        """int32[nodes]: an id for each value of this label, -1 where absent; see `values`."""
        return self._selection.lend(self._selection.table.label_column(key).ids)

    def values(self, key: str) -> Sequence[str]:
        """Id → value for `ids`; may contain values that no node has any more."""
        return self._selection.open().label_column(key).values.values

    def names_by_value(self, key: str) -> Mapping[str, frozenset[str]]:
        """Value of this label → the names of its nodes; the values are sorted. The same object
        until a node or a label of a node changes, if the view has all nodes of the cluster."""
        selection = self._selection
        everywhere = selection.open().names_by_value(key)
        if selection.size == selection.table.node_count:
            return everywhere
        assert selection.rows is not None, "all rows are the rows of all nodes"
        here = frozenset(map(selection.table.names.__getitem__, selection.rows.tolist()))
        return {value: names & here for value, names in everywhere.items() if names & here}

    def any_missing(self, key: str) -> bool:
        """Whether some node of the cluster has no such label."""
        table = self._selection.open()
        return table.label_column(key).holder_count < table.node_count

    def matching(self, requirement: Requirement) -> Mask:
        """bool[nodes]: nodes whose labels satisfy one requirement."""
        column = self._selection.table.label_column(requirement.key)
        return column.matching(self._selection.lend(column.ids), requirement)

    def matching_term(self, term: NodeTerm) -> Mask:
        """bool[nodes]: nodes that a node selector term matches, by labels and by name.

        An empty or malformed term matches no node.
        """
        if term.error is not None or term.is_empty:
            return np.zeros(self._selection.size, np.bool_)
        matching: Mask | None = None
        for requirement in term.labels:
            mask = self.matching(requirement)
            matching = mask if matching is None else matching & mask
        for requirement in term.fields:
            mask = self._named(requirement)
            matching = mask if matching is None else matching & mask
        assert matching is not None
        return matching

    def _named(self, requirement: Requirement) -> Mask:
        """bool[nodes]: nodes whose name satisfies a field condition: In or NotIn with one name."""
        mask = np.zeros(self._selection.size, np.bool_)
        mask[self._selection.positions(requirement.values)] = True
        return mask if requirement.operator == "In" else ~mask


@final
class NodeTaints(_Group):
    """Taints, and spec.unschedulable."""

    def set_ids(self) -> Int32s:
        """int32[nodes]: an id for each distinct list of taints; see `sets`. Id 0: no taint."""
        return self._selection.lend(self._selection.table.taint_set_ids)

    def sets(self) -> Sequence[tuple[Taint, ...]]:
        """Id → taints for `set_ids`."""
        return self._selection.open().taint_sets.values

    def unschedulable(self) -> Mask:
        """bool[nodes]: spec.unschedulable."""
        return self._selection.lend(self._selection.table.unschedulable)

    def any_unschedulable(self) -> bool:
        """Whether any node of the cluster is unschedulable."""
        return self._selection.open().unschedulable_count > 0


@final
class NodePods(_Group):
    """Placed pods, assumed pods included: counts, affinity terms, host ports."""

    def counts(self) -> Int64s:
        """int64[nodes]: the number of placed pods."""
        return self._selection.lend(self._selection.table.resources.pod_counts)

    def matching(self, pods: PodSet) -> Int32s:
        """int32[nodes]: the number of placed pods that belong to the set."""
        return self._selection.lend(self._selection.table.selector_counts.counter(pods).column)

    def by_domain(self, pods: PodSet | PlacedTerm | None, key: str) -> Floats | None:
        """float64[values + 1]: pods of the set, or with the term, by the value of a label; with
        None, the nodes themselves.

        By label id, over all nodes of the cluster. The last place is for nodes without the label,
        and is 0. The caller may write to the array. None: no domain has a pod.
        """
        return self._selection.open().pods_by_domain(pods, key)

    def affinity_terms(self, kind: TermKind) -> list[PlacedTerm]:
        """Distinct affinity terms of placed pods; see `by_domain`."""
        return self._selection.open().placed_terms.of(kind)

    def affinity_terms_selecting(self, kind: TermKind, shape: PodShape) -> TermsAbout:
        """The terms of placed pods that select pods of this shape; indexed and cached."""
        return self._selection.open().placed_terms.about(kind, shape)

    def any_affinity_terms(self, kinds: Iterable[TermKind]) -> bool:
        """Whether a placed pod has a term of one of these kinds."""
        return self._selection.open().placed_terms.holds(kinds)

    def with_affinity(self) -> Int32s:
        """int32[nodes]: pods with any affinity or anti-affinity term.

        Upstream: NodeInfo.PodsWithAffinity.
        """
        return self._selection.lend(self._selection.table.placed_terms.with_affinity)

    def with_required_anti_affinity(self) -> Int32s:
        """int32[nodes]: pods with a required anti-affinity term.

        Upstream: NodeInfo.PodsWithRequiredAntiAffinity.
        """
        terms = self._selection.table.placed_terms
        return self._selection.lend(terms.with_required_anti_affinity)

    def conflicting_ports(self, ports: Sequence[HostPort]) -> Mask:
        """bool[nodes]: nodes on which one of these host ports is in use."""
        index = self._selection.open().ports
        rows = [row for port in ports for row in index.conflicting_rows(port)]
        return self._selection.mask_of_rows(rows)


@final
class TableRows(_Group):
    """The rows of the node table behind the view, for code that stores values by row.

    A node has the same row from its add to its delete; a position is good for one view only.
    """

    @property
    def rows(self) -> Rows:
        """intp[nodes]: the row of each node."""
        selection = self._selection
        selection.open()
        rows = np.arange(selection.size) if selection.rows is None else selection.rows.view()
        rows.flags.writeable = False
        return rows

    @property
    def index(self) -> "Rows | slice":
        """Indexes an array by row: `array[nodes.table.index]` has its values for these nodes."""
        self._selection.open()
        return self._selection.index

    @property
    def node_count(self) -> int:
        """The number of nodes of the whole cluster."""
        return self._selection.open().node_count

    def mask(self, rows: Sequence[int] | Rows) -> Mask:
        """bool[nodes]: true for nodes on these rows of the table."""
        return self._selection.mask_of_rows(rows)

    def draw_order(self) -> Rows:
        """intp[nodes]: the positions in the order in which ties are drawn."""
        selection = self._selection
        order = selection.open().draw_order()
        if selection.rows is None:
            return order
        place = np.full(selection.table.row_count, -1, np.intp)
        place[selection.rows] = np.arange(selection.size)
        ordered = place[order]
        return ordered[ordered >= 0]

    def name_drawn(self, tied: Mask, count: int, index: int) -> str:
        """The index-th of ``count`` tied nodes in the draw order; ``tied``: bool[nodes]."""
        selection = self._selection
        table, marked = selection.open(), tied
        if selection.rows is not None:
            marked = np.zeros(table.row_count, np.bool_)
            marked[selection.rows[tied]] = True
        return table.names[table.nth_drawn(marked, count, index)]

    def drawn_among(self, positions: Rows, index: int) -> int:
        """The place in ``positions`` of the position that is the ``index``-th in the draw order."""
        selection = self._selection
        places = selection.open().draw_places()
        rows = positions if selection.rows is None else selection.rows[positions]
        return places.take(rows).argpartition(index).item(index)

    def first_drawn(self, marked: Mask, count_max: int) -> Rows:
        """Positions of the first marked nodes in the draw order, at most ``count_max``.
        ``marked``: bool[nodes]."""
        selection = self._selection
        table, selected = selection.open(), selection.rows
        if selected is None:
            return np.array(table.first_drawn(marked, count_max), np.intp)
        by_row = np.zeros(table.row_count, np.bool_)
        by_row[selected[marked]] = True
        rows = table.first_drawn(by_row, count_max)
        positions = selected.searchsorted(rows)
        if (selected.take(positions, mode="clip") != rows).any():
            # The rows of this view are not ascending.
            return np.array([np.flatnonzero(selected == row)[0] for row in rows], np.intp)
        return positions
