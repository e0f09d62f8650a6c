"""Amounts of resources per node: what nodes offer, what placed pods ask for, what is left.

Each resource has a place, the same in every stack of columns, so that several resources are read as
one array [resources, nodes]. Amounts are int64. While those of a resource are small enough to be
exact in float64, they are kept in float64 as well: to convert a column costs as much as to divide
it, and every cycle divides several.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from bayplan.api.pod_requests import CPU, MEMORY, PODS, Amounts, is_counted
from bayplan.state.columns import Column, Mask, Rows, Scratch, Stack
from bayplan.state.pods import PodShape

#: Amounts below this are exact in float64, sums of some of them and 100 times as much, too.
EXACT_BELOW = 2**46

#: The place of what nobody ever offered or asked for: 0 everywhere.
_NOWHERE = 0
#: Combinations of resources whose places are remembered.
_SELECTIONS_MAX = 256
_TWO_63 = 2**63

#: int64 or float64 [resources, nodes].
AmountArray = npt.NDArray[Any]


@final
class Bundle:
    """Amounts of some resources, made ready to be added to those of all nodes at once."""

    __slots__ = ("amounts", "as_floats", "as_ints", "resources")

    def __init__(self, resources: Sequence[str], amounts: Sequence[int]) -> None:
        self.resources = tuple(resources)
        self.amounts = tuple(amounts)
        #: int64 [resources, 1]
        self.as_ints = np.array(self.amounts, np.int64).reshape(-1, 1)
        #: float64 [resources, 1]; None: float64 does not hold them.
        self.as_floats = None
        if max(self.amounts, default=0) < EXACT_BELOW:
            self.as_floats = self.as_ints.astype(np.float64)


class Usage(NamedTuple):
    """Some resources of some nodes: both arrays float64 where that is exact, else both int64."""

    #: To be written over: its memory is used again for the next.
    used: AmountArray
    #: Only to be read. 1 in place of 0, so that it can be divided by.
    allocatable: AmountArray
    #: bool[resources, nodes]: who offers any at all; None: all nodes do, of each resource.
    offered: Mask | None


class _Kind:
    """One kind of amount: a column per place, and its twin of floats."""

    __slots__ = ("floats", "ints")

    def __init__(self, capacity: int) -> None:
        self.ints = Stack(capacity, np.int64)
        self.floats = Stack(capacity, np.float64)

    def add(self) -> None:
        self.ints.add()
        self.floats.add()

    def grow(self, capacity: int) -> None:
        self.ints.grow(capacity)
        self.floats.grow(capacity)

    def set(self, place: int, row: int, amount: int) -> None:
        self.ints.columns[place].values[row] = amount
        self.floats.columns[place].values[row] = amount

    def change(self, place: int, row: int, step: int) -> int:
        """Add to one amount; returns it."""
        amount = _sum(self.ints.columns[place].values.item(row), step)
        self.set(place, row, amount)
        return amount


@dataclass(slots=True)
class _Selection:
    """Some resources, looked up: good until a resource comes, or a node comes, goes or changes."""

    #: For stacks: neighbours in their order are a slice, and so lent uncopied.
    places: slice | list[int]
    #: Whether their floats are exact.
    is_exact: bool
    #: Whether every node offers some of each.
    is_even: bool


@final
class Resources:
    """All amounts of all rows of the node table. Free is at any time what is said of it, and the
    twins are equal where they are read."""

    def __init__(self, capacity: int) -> None:
        self._places: dict[str, int] = {}
        self._allocatable = _Kind(capacity)
        #: By all placed pods, overhead and pod-level requests included.
        self._requested = _Kind(capacity)
        #: The same, but pods that ask for no cpu count as 100m there, for no memory as 200Mi.
        self._scored = _Kind(capacity)
        #: Allocatable less requested; of pods: allocatable less placed.
        self._free = Stack(capacity, np.int64)
        self.pod_counts = Column(capacity, np.int64)
        #: By place: how many rows offer any.
        self._offering_counts: list[int] = []
        #: By place: whether all amounts there ever were are exact in float64.
        self._is_exact: list[bool] = []
        self._selections: dict[tuple[str, ...], _Selection] = {}
        self._float_scratch = Scratch(np.float64)
        for resource in ("", PODS, CPU, MEMORY):
            self._place_of(resource)

    # ---- reading --------------------------------------------------------------------------

    # A resource that nobody offered or asked for so far is 0 everywhere.

    def allocatable(self, resource: str) -> Column:
        return self._allocatable.ints.columns[self._places.get(resource, _NOWHERE)]

    def requested(self, resource: str) -> Column:
        return self._requested.ints.columns[self._places.get(resource, _NOWHERE)]

    def scored(self, resource: str) -> Column:
        return self._scored.ints.columns[self._places.get(resource, _NOWHERE)]

    def free(self, resource: str) -> Column:
        return self._free.columns[self._places.get(resource, _NOWHERE)]

    def offered_names(self) -> list[str]:
        """Resources that some node offers, sorted."""
        return sorted(name for name, place in self._places.items() if self._offering_counts[place])

    def allocatable_on(self, row: int) -> dict[str, int]:
        """What a row has any of."""
        return self._on(row, self._allocatable)

    def requested_on(self, row: int) -> dict[str, int]:
        return self._on(row, self._requested)

    # ``rows`` are some or all of the ``node_count`` rows that hold nodes.

    def shortage(self, bundle: Bundle, rows: Rows | slice, node_count: int) -> Mask | None:
        """bool[resources, nodes]: of what less is free than a bundle's amount; None: nowhere."""
        places = self._selection(bundle.resources, node_count).places
        short = self._free.lend(places, rows) < bundle.as_ints
        return short if np.count_nonzero(short) else None

    def usage(self, bundle: Bundle, rows: Rows | slice, node_count: int, *, scored: bool) -> Usage:
        """What would be used of a bundle's resources if its amounts came on top.

        ``scored``: pods that ask for no cpu or no memory count as if they did.
        """
        selection = self._selection(bundle.resources, node_count)
        kind, places = self._scored if scored else self._requested, selection.places
        if selection.is_exact and bundle.as_floats is not None:
            used = kind.floats.lend(places, rows)
            used = np.add(used, bundle.as_floats, out=self._float_scratch.matrix(used.shape))
            allocatable = self._allocatable.floats.lend(places, rows)
        else:
            used = kind.ints.lend(places, rows) + bundle.as_ints
            allocatable = self._allocatable.ints.lend(places, rows)
        if selection.is_even or (offered := allocatable != 0).all():
            return Usage(used, allocatable, None)
        return Usage(used, np.maximum(allocatable, 1), offered)

    # ---- writing --------------------------------------------------------------------------

    def set_allocatable(self, row: int, amounts: Amounts) -> None:
        """What the node of a row offers, nothing where there is none; called for each that comes,
        goes or changes."""
        self._selections.clear()
        for name in amounts:
            if name == PODS or is_counted(name):
                self._place_of(name)
        for name, place in self._places.items():
            before = self._allocatable.ints.columns[place].values.item(row)
            amount = amounts.get(name, 0)
            if amount != before:
                self._offering_counts[place] += bool(amount) - bool(before)
                self._allocatable.set(place, row, amount)
                self._note_size(place, amount)
                self._change_free(place, row, amount - before)

    def count(self, row: int, shape: PodShape, step: int) -> None:
        """A pod comes to a row (step 1) or leaves it (-1)."""
        for name, requested, scored in shape.once("resources.amounts", _amounts):
            place = self._places[name] if name in self._places else self._place_of(name)
            self._note_size(place, self._scored.change(place, row, step * scored))
            if requested:
                self._note_size(place, self._requested.change(place, row, step * requested))
                self._change_free(place, row, -step * requested)
        self.pod_counts.values[row] += step
        self._change_free(self._places[PODS], row, -step)

    def grow(self, capacity: int) -> None:
        for kind in (self._allocatable, self._requested, self._scored):
            kind.grow(capacity)
        self._free.grow(capacity)
        self.pod_counts.grow(capacity)

    # ---- inside ---------------------------------------------------------------------------

    def _place_of(self, resource: str) -> int:
        place = self._places.get(resource)
        if place is None:
            place = self._places[resource] = len(self._is_exact)
            for kind in (self._allocatable, self._requested, self._scored):
                kind.add()
            self._free.add()
            self._offering_counts.append(0)
            self._is_exact.append(True)
            self._selections.clear()
        return place

    def _selection(self, resources: tuple[str, ...], node_count: int) -> _Selection:
        found = self._selections.get(resources)
        return self._select(resources, node_count) if found is None else found

    def _select(self, resources: tuple[str, ...], node_count: int) -> _Selection:
        places = [self._places.get(resource, _NOWHERE) for resource in resources]
        first = places[0] if places else 0
        neighbours = [*range(first, first + len(places))]
        found = _Selection(
            places=slice(first, first + len(places)) if places == neighbours else places,
            is_exact=all(self._is_exact[place] for place in places),
            is_even=all(self._offering_counts[place] == node_count for place in places),
        )
        if len(self._selections) >= _SELECTIONS_MAX:
            self._selections.clear()
        self._selections[resources] = found
        return found

    def _change_free(self, place: int, row: int, step: int) -> None:
        values = self._free.columns[place].values
        values[row] = _sum(values.item(row), step)

    def _note_size(self, place: int, amount: int) -> None:
        if amount >= EXACT_BELOW and self._is_exact[place]:
            self._is_exact[place] = False
            self._selections.clear()

    def _on(self, row: int, kind: _Kind) -> dict[str, int]:
        columns = kind.ints.columns
        found = {name: columns[place].values.item(row) for name, place in self._places.items()}
        return {name: amount for name, amount in found.items() if amount}


def _amounts(shape: PodShape) -> tuple[tuple[str, int, int], ...]:
    """(resource, requested, scored) of a pod."""
    requests = shape.requests
    scored = {CPU: shape.non_zero_milli_cpu, MEMORY: shape.non_zero_memory_bytes}
    names = dict.fromkeys((*scored, *requests))
    return tuple(
        (name, requests.get(name, 0), scored.get(name, requests.get(name, 0))) for name in names
    )


def _sum(one: int, other: int) -> int:
    """As Go adds int64. Plain integers: numpy's own take four times as long."""
    found = one + other
    return found if -_TWO_63 <= found < _TWO_63 else (found + _TWO_63) % (2 * _TWO_63) - _TWO_63
