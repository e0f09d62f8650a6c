"""NodeTable: nodes as rows of columns, with everything that is counted per node.

A node keeps its row from add to delete; a freed row is used again. A row may hold pods without a
node, because the node was deleted or has not been seen yet. Such a row is not alive, and a node
that appears under the name gets the row with its pods. Every change is written to the change log.

`DrawOrder` is the tie-break order of the nodes: by (hash of name, name). It does not depend on row
numbers, so that live, embedded and fresh runs draw the same nodes. The order stays sorted, because
sorting thousands of names after each change of a node would cost more than a scheduling cycle.
`ClaimUsers` counts per node the pods that use a claim.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from bayplan.api.objects import Node, Taint, namespaced_name
from bayplan.api.pod_requests import Amounts, amounts
from bayplan.rng import stable_hash
from bayplan.state.change_log import ALL_FACETS, ALL_ROWS, ChangeLog, Facet
from bayplan.state.columns import (
    INITIAL_CAPACITY,
    Column,
    Floats,
    Mask,
    Rows,
    Vocabulary,
    places_of,
)
from bayplan.state.domain_counts import NODES_BY_DOMAIN, DomainTables, PodSet, SelectorCounts
from bayplan.state.host_ports import HostPortIndex
from bayplan.state.images import ImageIndex
from bayplan.state.labels import LabelColumn, LabelColumns
from bayplan.state.placed_terms import PlacedTerm, PlacedTerms
from bayplan.state.pods import PodInfo, PodShape
from bayplan.state.ranked_pods import RankedPods
from bayplan.state.resources import Resources

# ---- draw order -----------------------------------------------------------------------------


#: If fewer than one node in 16 is marked, sorting the places of the marked nodes is faster than a
#: scan of the order; measured with 500 to 15,000 nodes.
_SPARSE = 16
#: How many nodes of the order are scanned at once.
_BLOCK = 2048
#: Up to so many new nodes are inserted one by one; more are sorted in.
_INSERTED_MAX = 64


class DrawOrder:
    """Rows of nodes, ordered by (hash of name, name)."""

    def __init__(self) -> None:
        self._keys: list[tuple[int, str]] = []
        self._rows: list[int] = []
        #: Keys and rows of the nodes that are not in the order yet.
        self._added_keys: list[tuple[int, str]] = []
        self._added_rows: list[int] = []
        self._array: Rows | None = None
        #: By row: its place in the order; undefined for rows without a node.
        self._places: Rows | None = None

    def add(self, name: str, row: int) -> None:
        self._added_keys.append((stable_hash(name), name))
        self._added_rows.append(row)
        self._array = self._places = None

    def remove(self, name: str) -> None:
        self._insert_added()
        key = (stable_hash(name), name)
        place = bisect_left(self._keys, key)
        assert self._keys[place : place + 1] == [key], f"node {name} is not in the draw"
        del self._keys[place], self._rows[place]
        self._array = self._places = None

    def _insert_added(self) -> None:
        """Insert the nodes that were added since the order was last read.

        An insertion moves all later nodes. So many nodes are sorted in at once.
        """
        keys, rows = self._added_keys, self._added_rows
        self._added_keys, self._added_rows = [], []
        if len(keys) > _INSERTED_MAX:
            keys, rows = self._keys + keys, self._rows + rows
            places = _ascending(keys)
            self._keys = [keys[place] for place in places]
            self._rows = [rows[place] for place in places]
            return
        for key, row in zip(keys, rows, strict=True):
            place = bisect_left(self._keys, key)
            self._keys.insert(place, key)
            self._rows.insert(place, row)

    def rows(self) -> Rows:
        """intp[nodes], read-only."""
        if self._array is None:
            self._insert_added()
            self._array = np.array(self._rows, np.intp)
            self._array.flags.writeable = False
        return self._array

    def places(self) -> Rows:
        """intp[rows]: the place of each row in the order; undefined for rows without a node."""
        if self._places is None:
            order = self.rows()
            self._places = np.zeros(int(order.max()) + 1 if len(order) else 0, np.intp)
            self._places[order] = np.arange(len(order))
        return self._places

    def nth(self, marked: Mask, count: int, index: int) -> int:
        """The row of the index-th of ``count`` marked ones; ``marked``: bool[all rows]."""
        order = self.rows()
        if count == len(order):
            return order.item(index)
        if count * _SPARSE >= len(order):
            return self._nth_of_many(order, marked, index)
        places = self.places().take(places_of(marked))
        places.sort()
        return order.item(places.item(index))

    def first(self, marked: Mask, count_max: int) -> list[int]:
        """The first marked rows, at most so many; ``marked``: bool[all rows]."""
        order, rows = self.rows(), list[int]()
        if int(np.count_nonzero(marked)) * _SPARSE < len(order):
            places = self.places().take(places_of(marked))
            places.sort()
            return order.take(places[:count_max]).tolist()
        for start in range(0, len(order), _BLOCK):
            block = order[start : start + _BLOCK]
            rows += block[marked.take(block)][: count_max - len(rows)].tolist()
            if len(rows) == count_max:
                break
        return rows

    @staticmethod
    def _nth_of_many(order: Rows, marked: Mask, index: int) -> int:
        """Scans the order up to the row, on average half of it."""
        for start in range(0, len(order), _BLOCK):
            block = order[start : start + _BLOCK]
            marked_count = marked.take(block)
            count = int(np.count_nonzero(marked_count))
            if index < count:
                return block.item(places_of(marked_count).item(index))
            index -= count
        raise IndexError("fewer rows are marked than were counted")


def _ascending(keys: Sequence[tuple[int, str]]) -> list[int]:
    """The places of the keys in ascending order. The hashes alone are sorted, unless two of them
    are equal."""
    hashes = np.array([key[0] for key in keys], np.uint64)
    places = hashes.argsort()
    in_order = hashes.take(places)
    if np.any(in_order[1:] == in_order[:-1]):
        return sorted(range(len(keys)), key=keys.__getitem__)
    return places.tolist()


# ---- claim users ----------------------------------------------------------------------------


class ClaimUsers:
    """Claim ("namespace/name") → the rows of its users, and how many volumes name the claim."""

    def __init__(self) -> None:
        #: Row → pods there that use the claim, claims made for one pod included.
        self._rows: dict[str, Counter[int]] = {}
        #: Volumes that name the claim.
        self._named: Counter[str] = Counter()

    def add(self, row: int, pod: PodInfo) -> None:
        for key in pod.claim_keys():
            self._rows.setdefault(key, Counter())[row] += 1
        self._named.update(named_claims(pod))

    def remove(self, row: int, pod: PodInfo) -> None:
        for key in pod.claim_keys():
            rows = self._rows[key]
            rows[row] -= 1
            if not rows[row]:
                del rows[row]
            if not rows:
                del self._rows[key]
        for key in named_claims(pod):
            self._named[key] -= 1
            if not self._named[key]:
                del self._named[key]

    def named_count(self, key: str) -> int:
        """How many volumes of placed pods, assumed ones included, name a claim."""
        return self._named[key]

    def rows(self, key: str) -> list[int]:
        """The rows of pods that use a claim, ascending."""
        return sorted(self._rows.get(key, ()))


def named_claims(pod: PodInfo) -> list[str]:
    """The claims of the pod's volumes, one for each volume."""
    names = pod.shape.volumes.claim_names()
    return [namespaced_name(pod.namespace, name) for name in names]


# ---- node table -----------------------------------------------------------------------------


Taints = tuple[Taint, ...]

#: The facets that every placement changes; ports and volumes of a pod change further ones.
# Plain integers: arithmetic with flags is slow.
_PODS = int(Facet.PODS)
_PLACED = int(Facet.REQUESTED | Facet.PODS)
_PORTS, _VOLUMES = int(Facet.PORTS), int(Facet.VOLUMES)

#: If more rows than this hold an image, a change of the image is logged as one change of all rows.
_ROWS_NOTED_MAX = 256


class DerivedColumn(Struct):
    """A column computed from rows, and computed again for changed rows only."""

    column: Column
    facets: Facet
    generation: int


class NodeTable:
    """All nodes. Only the cache writes; all others read through a NodeView."""

    def __init__(self, capacity: int = INITIAL_CAPACITY) -> None:
        #: How many rows fit before all columns grow.
        self.capacity = capacity
        self.row_of: dict[str, int] = {}
        self.row_count = 0  # rows ever used: all columns are meaningful below it
        self._free_rows: list[int] = []
        self.names: list[str] = []
        self.nodes: list[Node | None] = []
        self.labels: list[dict[str, str] | None] = []
        self.pods: list[dict[str, PodInfo]] = []
        self.node_count = 0
        self._alive_rows: Rows | None = None
        self._draw_order = DrawOrder()

        self.alive = Column(capacity, np.bool_, False)
        self.unschedulable = Column(capacity, np.bool_, False)
        self.unschedulable_count = 0
        self.taint_set_ids = Column(capacity, np.int32)
        self.taint_sets: Vocabulary[Taints] = Vocabulary()
        self.taint_sets.intern(())
        self.resources = Resources(capacity)
        self.pod_counts = self.resources.pod_counts
        self._derived: dict[Hashable, DerivedColumn] = {}

        self.label_columns = LabelColumns()
        #: By label key, as of a generation.
        self._names_by_value: dict[str, Mapping[str, frozenset[str]]] = {}
        self._names_generation = -1
        self.images = ImageIndex()
        self.ports = HostPortIndex()
        self.claim_users = ClaimUsers()
        self.selector_counts = SelectorCounts(capacity)
        self.placed_terms = PlacedTerms(capacity)
        self.domain_tables = DomainTables()
        self.ranked_pods = RankedPods(self.pods)
        self._row_generations = Column(capacity, np.int64)
        self.log = ChangeLog(self._row_generations)

    # ---- nodes ----------------------------------------------------------------------------

    def add_node(self, node: Node) -> int:
        """Give a node a new row, or the row of pods that were placed on its name. Raises
        QuantityError before anything changes."""
        offered = amounts(node.status.allocatable)
        row = self._row_for(node.metadata.name)
        assert self.nodes[row] is None, f"node {node.metadata.name} is already there"
        self.nodes[row] = node
        self.alive.values[row] = True
        self.node_count += 1
        self._alive_rows = None
        self._draw_order.add(node.metadata.name, row)
        self._write(row, node, offered)
        self.images.set_names(row, node)
        self._note_node(row)
        return row

    def update_node(self, node: Node) -> Facet:
        """Replace a node by a newer version. Returns the facets that changed. Raises QuantityError
        before anything changes."""
        row = self.row_of[node.metadata.name]
        old = self.nodes[row]
        assert old is not None, f"node {node.metadata.name} is not there"
        facets = changed_facets(old, node)
        offered = amounts(node.status.allocatable) if facets else {}
        self.nodes[row] = node
        if facets:
            self._write(row, node, offered)
            self.log.note(row, facets)
        if facets & Facet.IMAGES:
            _note_holders(self.log, self.images.set_row(row, node) - {row})
        return facets

    def remove_node(self, name: str) -> None:
        """Remove a node. Its row stays while it holds pods."""
        row = self.row_of[name]
        assert self.nodes[row] is not None, f"node {name} is not there"
        self.nodes[row] = None
        self.alive.values[row] = False
        self.node_count -= 1
        self._alive_rows = None
        self._draw_order.remove(name)
        self._write(row, None, {})
        self.images.set_names(row, None)
        self._note_node(row)
        self._free_if_empty(row)

    def _note_node(self, row: int) -> None:
        self.log.note(row, ALL_FACETS)
        if len(self.images):
            # The score of a node with an image depends on the share of nodes that have the image.
            self.log.note(ALL_ROWS, Facet.IMAGES)

    def _row_for(self, name: str) -> int:
        row = self.row_of.get(name)
        if row is None:
            row = self._free_rows.pop() if self._free_rows else self._new_row()
            self.row_of[name] = row
            self.names[row] = name
        return row

    def _new_row(self) -> int:
        row = self.row_count
        if row == self.capacity:
            self._grow(2 * self.capacity)
        self.row_count += 1
        self.names.append("")
        self.nodes.append(None)
        self.labels.append(None)
        self.pods.append({})
        return row

    def _free_if_empty(self, row: int) -> None:
        if self.nodes[row] is None and not self.pods[row]:
            del self.row_of[self.names[row]]
            self.names[row] = ""
            self._free_rows.append(row)

    def _write(self, row: int, node: Node | None, offered: Amounts) -> None:
        """Write the node's columns; empty values for None. ``offered``: its allocatable amounts."""
        self.labels[row] = labels = (node.metadata.labels or {}) if node is not None else None
        self.label_columns.set_row(row, labels)
        self.resources.set_allocatable(row, offered)
        unschedulable = node is not None and bool(node.spec.unschedulable)
        self.unschedulable_count += int(unschedulable) - int(self.unschedulable.values[row])
        self.unschedulable.values[row] = unschedulable
        taints = (node.spec.taints or ()) if node is not None else ()
        self.taint_set_ids.values[row] = self.taint_sets.intern(tuple(taints))

    # ---- pods -----------------------------------------------------------------------------

    def assign(self, pod: PodInfo) -> int:
        """Count a pod on its node, which need not exist. Returns the row."""
        row = self.row_of.get(pod.node_name)
        if row is None:
            row = self._row_for(pod.node_name)
        pods = self.pods[row]
        assert pod.uid not in pods, f"{pod!r} is already counted on {pod.node_name}"
        pods[pod.uid] = pod
        self.resources.count(row, pod.shape, 1)
        self.selector_counts.add(row, pod)
        facets = _PLACED
        if pod.shape.host_ports:
            facets |= _PORTS
            for port in pod.shape.host_ports:
                self.ports.add(row, port)
        if pod.shape.takes_amounts_and_ports:
            self.log.note(row, facets)
            return row
        if pod.shape.has_affinity:
            self.placed_terms.add(row, pod)
        if pod.shape.volumes.has_any:
            facets |= _VOLUMES
            self.claim_users.add(row, pod)
        self.log.note(row, facets)
        return row

    def assign_many(self, pods: Sequence[PodInfo]) -> None:
        """As `assign` for each pod. Amounts are added to many rows at once."""
        rows: list[int] = []
        shapes: list[PodShape] = []
        #: The rows of pods without host ports and with them. Each pod is one change.
        by_ports: tuple[list[int], list[int]] = ([], [])
        for pod in pods:
            shape = pod.shape
            has_terms = not shape.takes_amounts_and_ports
            if has_terms and shape.volumes.has_any:
                self.assign(pod)
                continue
            row = self.row_of.get(pod.node_name)
            if row is None:
                row = self._row_for(pod.node_name)
            on_row = self.pods[row]
            assert pod.uid not in on_row, f"{pod!r} is already counted on {pod.node_name}"
            on_row[pod.uid] = pod
            self.selector_counts.add(row, pod)
            if has_terms:
                self.placed_terms.add(row, pod)
            for port in shape.host_ports:
                self.ports.add(row, port)
            by_ports[bool(shape.host_ports)].append(row)
            rows.append(row)
            shapes.append(shape)
        self.resources.count_many(np.array(rows, np.intp), shapes)
        for changed, facets in zip(by_ports, (_PLACED, _PLACED | _PORTS), strict=True):
            self.log.note_many(np.array(changed, np.intp), facets)

    def unassign(self, pod: PodInfo) -> None:
        """The exact opposite of `assign`."""
        row = self.row_of.get(pod.node_name, -1)
        assert row >= 0 and pod.uid in self.pods[row], f"{pod!r} is not on node {pod.node_name!r}"
        del self.pods[row][pod.uid]
        self.resources.count(row, pod.shape, -1)
        self.selector_counts.remove(row, pod)
        if pod.shape.has_affinity:
            self.placed_terms.remove(row, pod)
        facets = _PLACED
        if pod.shape.host_ports:
            facets |= _PORTS
            for port in pod.shape.host_ports:
                self.ports.remove(row, port)
        if pod.shape.volumes.has_any:
            facets |= _VOLUMES
            self.claim_users.remove(row, pod)
        self.log.note(row, facets)
        self._free_if_empty(row)

    def relabel(self, old: PodInfo, new: PodInfo) -> None:
        """Replace a counted pod by a version that differs in its labels alone."""
        row = self.row_of[new.node_name]
        self.pods[row][new.uid] = new
        self.selector_counts.remove(row, old)
        self.selector_counts.add(row, new)
        self.log.note(row, _PODS)

    # ---- what views are made of -----------------------------------------------------------

    def alive_rows(self) -> Rows | None:
        """Rows that hold a node, ascending; None where that is every row."""
        if self.node_count == self.row_count:
            return None
        if self._alive_rows is None:
            self._alive_rows = np.flatnonzero(self.alive.values[: self.row_count])
            self._alive_rows.flags.writeable = False
        return self._alive_rows

    def draw_order(self) -> Rows:
        """Alive rows in the order in which ties are drawn: by (hash of name, name)."""
        return self._draw_order.rows()

    def draw_places(self) -> Rows:
        """intp[rows]: the place of each row in that order; undefined for rows without a node."""
        return self._draw_order.places()

    def nth_drawn(self, marked: Mask, count: int, index: int) -> int:
        """The index-th row in that order of ``count`` marked ones; ``marked``: bool[all rows]."""
        return self._draw_order.nth(marked, count, index)

    def first_drawn(self, marked: Mask, count_max: int) -> list[int]:
        """The first marked rows in that order, at most so many; ``marked``: bool[all rows]."""
        return self._draw_order.first(marked, count_max)

    def label_column(self, key: str) -> LabelColumn:
        columns = self.label_columns
        return columns.columns.get(key) or columns.of(key, self.labels, self.capacity)

    def names_by_value(self, key: str) -> Mapping[str, frozenset[str]]:
        """Value of a label → the names of all nodes with it; see NodeLabels.names_by_value."""
        if self.log.is_changed_since(self._names_generation, NODES_BY_DOMAIN):
            self._names_by_value.clear()
        self._names_generation = self.log.generation
        by_value = self._names_by_value.get(key)
        if by_value is None:
            lists: dict[str, list[str]] = defaultdict(list)
            for name, labels in zip(self.names, self.labels, strict=True):
                if labels and key in labels:
                    lists[labels[key]].append(name)
            by_value = {value: frozenset(lists[value]) for value in sorted(lists)}
            if by_value:
                self._names_by_value[key] = by_value
        return by_value

    def pods_by_domain(self, pods: PodSet | PlacedTerm | None, key: str) -> Floats | None:
        """Pods of all nodes by the value of a label; None: the nodes. See DomainTables."""
        labels = self.label_column(key)
        if pods is None:
            facets = NODES_BY_DOMAIN
            return self.domain_tables.of((pods, key), self.log, self.alive, labels, facets=facets)
        return self.domain_tables.of((pods, key), self.log, self.pod_column(pods), labels)

    def pod_column(self, pods: PodSet | PlacedTerm) -> Column:
        """int32[rows]: how many of these pods each row has. Good until the next column is read."""
        if isinstance(pods, PlacedTerm):
            return self.placed_terms.pods(pods)
        return self.selector_counts.counter(pods).column

    def count_step(self, pods: PodSet | PlacedTerm, shape: PodShape) -> int:
        """How much a row's value in the column of these pods grows with one pod of the shape that
        is not being deleted."""
        if isinstance(pods, PlacedTerm):
            return self.placed_terms.count_step(pods, shape)
        return pods.matches(shape.namespace, shape.labels, terminating=False)

    def derived(
        self,
        key: Hashable,
        facets: Facet,
        dtype: npt.DTypeLike,
        compute: Callable[[Rows], npt.NDArray[Any]],
    ) -> Column:
        """A column that depends on ``facets`` of each row, up to date; see NodeView.derived."""
        column = self._derived.get(key)
        if column is None:
            column = self._derived[key] = DerivedColumn(Column(self.capacity, dtype), facets, -1)
        if column.generation < self.log.generation:
            if column.generation < 0:
                rows: Rows = np.arange(self.row_count)
            else:
                rows = self.log.rows_since(column.generation, column.facets)
            # A row without a node has no values; all its facets change when a node is added.
            rows = rows[self.alive.values[rows]]
            if len(rows):
                column.column.values[rows] = compute(rows)
            column.generation = self.log.generation
        return column.column

    def generation_of(self, row: int) -> int:
        return int(self._row_generations.values[row])

    def _grow(self, capacity: int) -> None:
        self.capacity = capacity
        columns = [
            self.alive,
            self.unschedulable,
            self.taint_set_ids,
            self._row_generations,
            *(derived.column for derived in self._derived.values()),
        ]
        for column in columns:
            column.grow(capacity)
        self.resources.grow(capacity)
        self.label_columns.grow(capacity)
        self.selector_counts.grow(capacity)
        self.placed_terms.grow(capacity)


def _note_holders(log: ChangeLog, rows: set[int]) -> None:
    """An image was added to or removed from a node: the scores of all its nodes change."""
    for row in sorted(rows) if len(rows) <= _ROWS_NOTED_MAX else (ALL_ROWS,):
        log.note(row, Facet.IMAGES)


def changed_facets(old: Node, new: Node) -> Facet:
    """The facets that differ between two versions of a node."""
    facets = Facet(0)
    if old.status.allocatable != new.status.allocatable:
        facets |= Facet.ALLOCATABLE
    if _map(old.metadata.labels) != _map(new.metadata.labels):
        facets |= Facet.LABELS
    if old.spec != new.spec:
        facets |= Facet.TAINTS
    if old.status.images != new.status.images:
        facets |= Facet.IMAGES
    if _map(old.metadata.annotations) != _map(new.metadata.annotations):
        facets |= Facet.ANNOTATIONS
    if old.status.conditions != new.status.conditions:
        facets |= Facet.CONDITIONS
    if old.declared != new.declared or old.status.declared_features != new.status.declared_features:
        facets |= Facet.DECLARED
    return facets


def _map(mapping: dict[str, str] | None) -> Mapping[str, str]:
    return mapping or {}
