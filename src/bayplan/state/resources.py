"""Amounts of resources per node: what nodes offer, what placed pods request, what is free.

Each resource has a place, the same in every stack of columns, so that several resources are read as
one array [resources, nodes]. Amounts are int64. While all amounts of a resource are small enough to
be exact in float64, a float64 copy is stored as well: every cycle divides several columns, and the
conversion of a column costs as much as its division.

`RowEquivalence` numbers the rows so that rows with equal numbers offer the same amounts and hold
pods that use the same amounts and host ports.
"""

from array import array
from collections.abc import Hashable, Sequence
from itertools import count
from sys import intern
from typing import Any, NamedTuple, final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from bayplan.api.pod_requests import CPU, MEMORY, PODS, Amounts, is_counted
from bayplan.api.quantity import wrapped_int64
from bayplan.state.columns import Column, Int64s, Mask, Rows, Scratch, Stack, is_any
from bayplan.state.pods import PodShape

# ---- equivalent rows ------------------------------------------------------------------------


_NOTHING = 0

#: Maximum number of cached steps from one number to another.
_WAYS_MAX = 1 << 14


@final
class RowEquivalence:
    """Row → number. Rows with equal numbers offer the same amounts and hold pods that use
    the same.

    A pod that is added changes each number to one other number, and its removal changes the number
    back. So rows that were filled in the same order have equal numbers without a comparison of the
    rows. The converse does not hold: equal rows that were filled in different orders may have
    different numbers. A number is never used again after all its rows have left it.
    """

    __slots__ = ("_empty", "_next", "numbers", "ways")

    def __init__(self, capacity: int) -> None:
        #: Row → number. Initially no row offers any amount.
        self.numbers = array("q", [_NOTHING]) * capacity
        self._next = count(1)
        #: The amounts that a node without pods offers → number.
        self._empty: dict[Hashable, int] = {}
        #: (number, the amounts and host ports of a pod, whether the pod is added) → next number.
        self.ways: dict[tuple[int, Hashable, bool], int] = {}

    def grow(self, capacity: int) -> None:
        self.numbers.extend([_NOTHING] * (capacity - len(self.numbers)))

    def set_empty(self, row: int, offered: Hashable) -> None:
        """The row offers these amounts and holds no pod."""
        number = self._empty.get(offered)
        if number is None:
            self._forget_if_many()
            number = self._empty[offered] = next(self._next)
        self.numbers[row] = number

    def set_unique(self, row: int) -> None:
        """Give the row a number that no other row has."""
        self.numbers[row] = next(self._next)

    def change(self, row: int, used: Hashable, *, comes: bool) -> None:
        """A pod with these amounts and ports was added to the row (``comes``) or removed."""
        before = self.numbers[row]
        after = self.ways.get((before, used, comes))
        if after is None:
            self._forget_if_many()
            after = self.ways[before, used, comes] = next(self._next)
            self.ways[after, used, not comes] = before
        self.numbers[row] = after

    def of_rows(self, rows: Rows) -> Int64s:
        """int64[rows]: a copy of the numbers of some rows."""
        return np.frombuffer(self.numbers, np.int64)[rows]

    def has_one_number(self, rows: Rows) -> bool:
        """Whether all of these rows, at least one, have the same number."""
        numbers = self.of_rows(rows)
        return bool((numbers == numbers[0]).all())

    def _forget_if_many(self) -> None:
        if len(self.ways) + len(self._empty) > _WAYS_MAX:
            self.ways.clear()
            self._empty.clear()


# ---- resources ------------------------------------------------------------------------------


#: Amounts below this are exact in float64, and so are sums of a few of them and 100 times the sum.
EXACT_BELOW = 2**46

#: For fewer rows, a loop is faster than array operations.
_ROWS_AS_ARRAY_MIN = 8

#: Maximum number of combinations of resources whose places are cached.
_SELECTIONS_MAX = 256

#: (resource, requested, scored) of a pod.
PodAmounts = tuple[tuple[str, int, int], ...]

#: int64 or float64 [resources, nodes]; for a bundle with alternatives: [alternatives, resources,
#: nodes].
AmountArray = npt.NDArray[Any]


@final
class Bundle:
    """Amounts of some resources as arrays, to be added to the amounts of all nodes at once.

    Several alternatives are evaluated together: the results are [alternatives, resources, nodes].
    """

    __slots__ = ("amounts", "as_floats", "as_ints", "resources")

    def __init__(self, resources: Sequence[str], *alternatives: Sequence[int]) -> None:
        self.resources = tuple(resources)
        #: The amounts of the last alternative.
        self.amounts = tuple(alternatives[-1])
        amounts = np.array(alternatives, np.int64)[..., np.newaxis]
        #: int64 [resources, 1], or [alternatives, resources, 1].
        self.as_ints = amounts if len(alternatives) > 1 else amounts[0]
        #: The same as float64; None if float64 is not exact.
        self.as_floats = None
        if not (self.as_ints >= EXACT_BELOW).any():
            self.as_floats = self.as_ints.astype(np.float64)


class RowAmounts(msgspec.Struct, frozen=True, gc=False):
    """One resource of one node, as plain numbers; cpu in millicores."""

    allocatable: int
    #: The sum over placed pods, with overhead and pod-level requests.
    requested: int
    #: The same, but pods without a CPU request count as 100m, without a memory request as 200Mi.
    scored: int
    #: Allocatable minus requested; for the resource "pods": minus the number of placed pods.
    free: int


class Usage(NamedTuple):
    """Some resources of some nodes. Both arrays are float64 if that is exact, otherwise int64."""

    #: The caller may overwrite the array. The next `Usage` uses the same memory.
    used: AmountArray
    #: Read-only. 1 in place of 0, so that it can be a divisor.
    allocatable: AmountArray
    #: bool[resources, nodes]: whether a node offers the resource; None: every node offers each.
    offered: Mask | None
    #: Whether it is certain that no node would use more than its allocatable amount.
    is_within: bool


@final
class _Kinds:
    """The stacks. Each stack has a column for every resource, always at the same place."""

    def __init__(self, capacity: int) -> None:
        self.allocatable = Stack(capacity, np.int64)
        #: The sum over all placed pods, with overhead and pod-level requests.
        self.requested = Stack(capacity, np.int64)
        #: The same, but pods without a CPU request count as 100m, without a memory request as
        #: 200Mi.
        self.scored = Stack(capacity, np.int64)
        #: Allocatable minus requested; for the resource "pods": minus the number of placed pods.
        self.free = Stack(capacity, np.int64)
        self.allocatable_floats = Stack(capacity, np.float64)
        self.requested_floats = Stack(capacity, np.float64)
        self.scored_floats = Stack(capacity, np.float64)

    def all(self) -> tuple[Stack, ...]:
        ints = (self.allocatable, self.requested, self.scored, self.free)
        return (*ints, self.allocatable_floats, self.requested_floats, self.scored_floats)


@final
class _Resource:
    """The columns of one resource, for writing."""

    __slots__ = (
        "allocatable",
        "allocatable_floats",
        "free",
        "free_at_least",
        "is_exact",
        "offering_count",
        "place",
        "requested",
        "requested_floats",
        "scored",
        "scored_floats",
    )

    def __init__(self, place: int, kinds: _Kinds) -> None:
        self.place = place
        self.allocatable, self.requested, self.scored, self.free = (
            stack.add() for stack in (kinds.allocatable, kinds.requested, kinds.scored, kinds.free)
        )
        self.allocatable_floats = kinds.allocatable_floats.add()
        self.requested_floats = kinds.requested_floats.add()
        self.scored_floats = kinds.scored_floats.add()
        #: The number of rows that offer the resource.
        self.offering_count = 0
        #: Whether all amounts so far were exact in float64.
        self.is_exact = True
        #: A lower bound of the free amount of every node. It often decides without a read of the
        #: column.
        self.free_at_least = 0

    # These methods use Python integers: arithmetic with numpy integers takes four times as long.

    def offer(self, row: int, amount: int) -> None:
        """Set the allocatable amount of a row."""
        before = self.allocatable.values.item(row)
        if amount != before:
            self.offering_count += bool(amount) - bool(before)
            self._set(self.allocatable, self.allocatable_floats, row, amount)
        # A row may begin to hold a node without a change of the amount.
        self.take(row, before - amount)

    def count(self, row: int, requested: int, scored: int) -> None:
        """Add a pod's amounts to a row; negative amounts remove a pod."""
        if requested:
            amount = self.requested.values.item(row) + requested
            self._set(self.requested, self.requested_floats, row, amount)
            self.take(row, requested)
        amount = self.scored.values.item(row) + scored
        self._set(self.scored, self.scored_floats, row, amount)

    def count_many(self, rows: Rows, requested: int, scored: int) -> None:
        """As `count` for each of the rows, which may repeat."""
        if len(rows) < _ROWS_AS_ARRAY_MIN or not self._stays_exact(rows, requested, scored):
            for row in rows.tolist():
                self.count(row, requested, scored)
            return
        if requested:
            np.add.at(self.requested.values, rows, requested)
            self.requested_floats.values[rows] = self.requested.values[rows]
            self.take_many(rows, requested)
        np.add.at(self.scored.values, rows, scored)
        self.scored_floats.values[rows] = self.scored.values[rows]

    def _stays_exact(self, rows: Rows, requested: int, scored: int) -> bool:
        """Whether the sums certainly stay exact in float64 if a pod is added to each row."""
        sums = (self.requested.values[rows], self.scored.values[rows])
        largest = max(max(int(each.max()), -int(each.min())) for each in sums)
        return largest + len(rows) * max(abs(requested), abs(scored)) < EXACT_BELOW

    def take(self, row: int, amount: int) -> None:
        """Reduce the free amount."""
        values = self.free.values
        left = values.item(row) - amount
        values[row] = left = left if -EXACT_BELOW < left < EXACT_BELOW else wrapped_int64(left)
        if left < self.free_at_least:
            self.free_at_least = left

    def take_many(self, rows: Rows, amount: int) -> None:
        """As `take` for each of the rows, which may repeat."""
        free = self.free.values
        np.subtract.at(free, rows, amount)
        self.free_at_least = min(self.free_at_least, int(free[rows].min()))

    def short(self, amount: int, rows: Rows | slice, are_all: bool) -> Mask | None:
        """bool[rows]: rows with less than ``amount`` free; None: no row."""
        if amount <= self.free_at_least:
            return None
        free = self.free.lent[rows]
        short = free < amount
        if is_any(short):
            return short
        if are_all:
            self.free_at_least = free.item(free.argmin()) if len(free) else 0
        return None

    def _set(self, ints: Column, floats: Column, row: int, amount: int) -> None:
        if not -EXACT_BELOW < amount < EXACT_BELOW:
            self.is_exact = False
            amount = wrapped_int64(amount)
        ints.values[row] = amount
        floats.values[row] = amount


class _Selection(Struct):
    """The columns of some resources. Valid until a resource is added, or a node is added, removed
    or changed."""

    resources: list[_Resource]
    #: Index into a stack. A slice if the places are consecutive: then rows are lent without a copy.
    places: slice | list[int]
    #: Whether the float64 copies are exact.
    is_exact: bool
    #: Whether every node offers each of the resources.
    is_even: bool

    def holds(self, amounts: Sequence[int]) -> bool:
        """Whether every node certainly has these amounts free."""
        pairs = zip(amounts, self.resources, strict=True)
        return all(amount <= resource.free_at_least for amount, resource in pairs)


#: A shape, what its pods use (see `uses`), and (resource, requested, scored).
_Counted = tuple[PodShape | None, str, Sequence[tuple[_Resource, int, int]]]


@final
class Resources:
    """All amounts of all rows of the node table. Invariants: free is allocatable minus requested;
    float copies equal their integers where they are read."""

    def __init__(self, capacity: int) -> None:
        self._kinds = _Kinds(capacity)
        self._resources: dict[str, _Resource] = {}
        self._selections: dict[tuple[str, ...], _Selection] = {}
        self._scratch = Scratch(np.float64)
        self.equivalence = RowEquivalence(capacity)
        #: Whether all sums are exact. A sum that has wrapped does not return to its value when pods
        #: are removed.
        self._are_exact = True
        #: What the pod that was counted last uses, and its amounts: mostly the next pod is of the
        #: same template.
        self._last: _Counted = None, "", ()
        self._nothing = self._of("")
        self._pods = self._of(PODS)
        self.pod_counts = Column(capacity, np.int64)
        for resource in (CPU, MEMORY):
            self._of(resource)

    # ---- reading --------------------------------------------------------------------------

    # A resource that no node offers and no pod requests is 0 everywhere.

    def allocatable(self, resource: str) -> Column:
        return self._resources.get(resource, self._nothing).allocatable

    def requested(self, resource: str) -> Column:
        return self._resources.get(resource, self._nothing).requested

    def scored(self, resource: str) -> Column:
        return self._resources.get(resource, self._nothing).scored

    def free(self, resource: str) -> Column:
        return self._resources.get(resource, self._nothing).free

    def of_row(self, resource: str, row: int) -> RowAmounts:
        """All amounts of a resource on one row."""
        amounts = self._resources.get(resource, self._nothing)
        return RowAmounts(
            amounts.allocatable.values.item(row),
            amounts.requested.values.item(row),
            amounts.scored.values.item(row),
            amounts.free.values.item(row),
        )

    def offered_names(self) -> list[str]:
        """Resources that some node offers, sorted."""
        return sorted(name for name, amounts in self._resources.items() if amounts.offering_count)

    def allocatable_on(self, row: int) -> dict[str, int]:
        """The allocatable amounts of a row that are not 0."""
        amounts = {n: r.allocatable.values.item(row) for n, r in self._resources.items()}
        return {name: amount for name, amount in amounts.items() if amount}

    def requested_on(self, row: int) -> dict[str, int]:
        amounts = {n: r.requested.values.item(row) for n, r in self._resources.items()}
        return {name: amount for name, amount in amounts.items() if amount}

    def short(
        self, resource: str, amount: int, rows: Rows | slice, *, are_all: bool
    ) -> Mask | None:
        """bool[rows]: rows with less free than this amount; None: no row.

        ``are_all``: whether these are all rows that hold nodes.
        """
        return self._resources.get(resource, self._nothing).short(amount, rows, are_all)

    def usage(self, bundle: Bundle, rows: Rows | slice, node_count: int, *, scored: bool) -> Usage:
        """The used amounts of a bundle's resources, plus the amounts of the bundle.

        ``scored``: pods without a CPU request count as 100m, without a memory request as 200Mi.
        """
        kinds, selection = self._kinds, self._selection(bundle.resources, node_count)
        places = selection.places
        if selection.is_exact and bundle.as_floats is not None:
            used = (kinds.scored_floats if scored else kinds.requested_floats).lend(places, rows)
            shape = (*bundle.as_floats.shape[:-1], used.shape[-1])
            used = np.add(used, bundle.as_floats, out=self._scratch.matrix(shape))
            allocatable = kinds.allocatable_floats.lend(places, rows)
        else:
            used = (kinds.scored if scored else kinds.requested).lend(places, rows) + bundle.as_ints
            allocatable = kinds.allocatable.lend(places, rows)
        is_within = not scored and selection.holds(bundle.amounts)
        if selection.is_even or (offered := allocatable != 0).all():
            return Usage(used, allocatable, None, is_within)
        return Usage(used, np.maximum(allocatable, 1), offered, is_within)

    # ---- writing --------------------------------------------------------------------------

    def set_allocatable(self, row: int, amounts: Amounts) -> None:
        """Set the amounts that the node of a row offers; empty without a node. Called when a node
        is added, removed or changed."""
        for name in amounts:
            if name == PODS or is_counted(name):
                self._of(name)
        for name, resource in self._resources.items():
            resource.offer(row, amounts.get(name, 0))
        self._selections.clear()
        if self._are_exact and not self.pod_counts.values.item(row):
            self.equivalence.set_empty(row, frozenset(amounts.items()))
        else:
            self.equivalence.set_unique(row)

    def count(self, row: int, shape: PodShape, step: int) -> None:
        """Add a pod to a row (step 1), or remove it (-1)."""
        last, used, counted = self._last
        if shape.pin is not None:
            # The pods of a DaemonSet use the same amounts, and differ in the node that they name.
            shape = shape.pin.unpinned
        if shape is not last:
            amounts, used = shape.once_per_spec("resources.amounts", _amounts_and_uses)
            counted = [(self._of(name), requested, scored) for name, requested, scored in amounts]
            self._last = shape, used, counted
        for resource, requested, scored in counted:
            # As `_Resource.count`, without a call for each resource of each placement.
            taken, free = resource.requested.values, resource.free.values
            scores = resource.scored.values
            amount, left = taken.item(row) + step * requested, free.item(row) - step * requested
            total = scores.item(row) + step * scored
            if (
                -EXACT_BELOW < amount < EXACT_BELOW
                and -EXACT_BELOW < left < EXACT_BELOW
                and -EXACT_BELOW < total < EXACT_BELOW
            ):
                if requested:
                    taken[row] = resource.requested_floats.values[row] = amount
                    free[row] = left
                    if left < resource.free_at_least:
                        resource.free_at_least = left
                scores[row] = resource.scored_floats.values[row] = total
                continue
            resource.count(row, step * requested, step * scored)
            if not resource.is_exact:
                self._selections.clear()
                self._are_exact = False
        values = self._pods.free.values
        left = values.item(row) - step
        if left < self._pods.free_at_least or not -EXACT_BELOW < left < EXACT_BELOW:
            self._pods.take(row, step)
        else:
            values[row] = left
        self.pod_counts.values[row] += step
        if not self._are_exact:
            self.equivalence.set_unique(row)
            return
        numbers, comes = self.equivalence.numbers, step > 0
        after = self.equivalence.ways.get((numbers[row], used, comes))
        if after is None:
            self.equivalence.change(row, used, comes=comes)
        else:
            numbers[row] = after

    def count_many(self, rows: Rows, shapes: Sequence[PodShape]) -> None:
        """Add a pod of each shape to its row. As `count` for each; a row may repeat."""
        if not len(rows):
            return
        all_used: list[str] = []
        #: By the text of what pods use: their amounts, and their places in ``rows``.
        groups: dict[str, tuple[PodAmounts, list[int]]] = {}
        used, places = "", list[int]()
        last: PodShape | None = None
        for place, shape in enumerate(shapes):
            if shape.pin is not None:
                shape = shape.pin.unpinned
            if shape is not last:
                last = shape
                pod_amounts, used = shape.once_per_spec("resources.amounts", _amounts_and_uses)
                places = groups.setdefault(used, (pod_amounts, []))[1]
            all_used.append(used)
            places.append(place)
        for pod_amounts, places in groups.values():
            group_rows = rows[places]
            for name, requested, scored in pod_amounts:
                resource = self._resources.get(name) or self._of(name)
                resource.count_many(group_rows, requested, scored)
                if not resource.is_exact:
                    self._selections.clear()
                    self._are_exact = False
        self._pods.take_many(rows, 1)
        np.add.at(self.pod_counts.values, rows, 1)
        numbers, ways = self.equivalence.numbers, self.equivalence.ways
        row_list: list[int] = rows.tolist()
        for row, used in zip(row_list, all_used, strict=True):
            after = ways.get((numbers[row], used, True)) if self._are_exact else None
            if after is not None:
                numbers[row] = after
            elif self._are_exact:
                self.equivalence.change(row, used, comes=True)
            else:
                self.equivalence.set_unique(row)

    def grow(self, capacity: int) -> None:
        for stack in self._kinds.all():
            stack.grow(capacity)
        self.pod_counts.grow(capacity)
        self.equivalence.grow(capacity)

    # ---- inside ---------------------------------------------------------------------------

    def _of(self, name: str) -> _Resource:
        amounts = self._resources.get(name)
        if amounts is None:
            amounts = self._resources[name] = _Resource(len(self._resources), self._kinds)
            self._selections.clear()
        return amounts

    def _selection(self, names: tuple[str, ...], node_count: int) -> _Selection:
        selection = self._selections.get(names)
        return self._select(names, node_count) if selection is None else selection

    def _select(self, names: tuple[str, ...], node_count: int) -> _Selection:
        resources = [self._resources.get(name, self._nothing) for name in names]
        places = [resource.place for resource in resources]
        first = places[0] if places else 0
        neighbours = [*range(first, first + len(places))]
        selection = _Selection(
            resources,
            places=slice(first, first + len(places)) if places == neighbours else places,
            is_exact=all(resource.is_exact for resource in resources),
            is_even=all(resource.offering_count == node_count for resource in resources),
        )
        if len(self._selections) >= _SELECTIONS_MAX:
            self._selections.clear()
        self._selections[names] = selection
        return selection


def _amounts(shape: PodShape) -> PodAmounts:
    """(resource, requested, scored) of a pod."""
    requests = shape.requests
    scored = {CPU: shape.non_zero_milli_cpu, MEMORY: shape.non_zero_memory_bytes}
    names = dict.fromkeys((*scored, *requests))
    return tuple(
        (name, requests.get(name, 0), scored.get(name, requests.get(name, 0))) for name in names
    )


def uses(shape: PodShape) -> str:
    """A text that is equal for pods that use the same amounts and host ports of a node."""
    return shape.once_per_spec("resources.amounts", _amounts_and_uses)[1]


def _amounts_and_uses(shape: PodShape) -> tuple[PodAmounts, str]:
    pod_amounts = _amounts(shape)
    return pod_amounts, intern(repr((sorted(pod_amounts), shape.host_ports)))
