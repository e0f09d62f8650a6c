"""An arrangement: nodes for all members of a group at once, found by a bounded search.

A pass places one member after another on the node that scores best, so an early member may take the
only node that a later one fits on. An arrangement looks at all members together. It knows what each
member requests, on which nodes it fits alone, what the nodes have free, and which members have to
share a domain. It does not know what else members do to one another: affinity, spreading, volumes,
devices. So an arrangement is a proposal. The caller places the members as proposed through all
plugins, and what a plugin rejects is no placement.

The members of a group are divided into slices, layer by layer. With the layers (48, block) and
(16, rack), members 1 to 48 share a block, members 49 to 96 share a block, and of these each 16
share a rack. A group that must stay in one domain is one slice of its own size. The last slice of a
layer may be smaller.

Equal members need no search, because numbers alone decide: it does not matter which of the equal
members a node takes. A node can take a number of members, a rack a number of slices, a block the
slices that its racks can take together, and so on.

Members of several kinds are a packing problem. A search assigns them one after another, each slice
to a domain and each member, the largest first, to a node, and goes back where a member has no node.
It is exact until it has made ``steps_max`` assignments; then it stops. Four rules keep the search
short. First, members and nodes are ordered by their amounts, and a unit of a resource weighs more
if the resource is scarcer for these members. Second, nodes of a domain that are equal in all that
counts are one choice. Third, a state that failed once is not entered again. Fourth, a state in
which some kind of members has too few places is not entered at all.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from bayplan.state.columns import Int64s, Mask, Rows

#: The number of assignments that a search may make before it stops.
STEPS_MAX: Final = 20_000
#: The assignments that a slice may take in one domain, for each member of the group; and by which
#: factor this bound grows if no domain was found. So a domain that is hard to fill does not use up
#: all steps.
_FIRST_SLICE_STEPS: Final = 4
_MORE_SLICE_STEPS: Final = 8
#: How often a member that requests nothing fits on a node.
_UNLIMITED: Final = 1 << 40

#: int64 [nodes, resources]
_Free = npt.NDArray[np.int64]


class MemberKind(NamedTuple):
    """Members with equal requests that fit alone on the same nodes."""

    #: int64 [resources]
    amounts: Int64s
    #: bool [nodes]
    feasible: Mask


class Layer(NamedTuple):
    """Members that share a domain, ``size`` at a time."""

    size: int
    #: int64 [nodes]: equal for the nodes of one domain; -1: the node is in none.
    domain_ids: Int64s


class ArrangementProblem(NamedTuple):
    """The members that are to be placed, and the nodes."""

    kinds: Sequence[MemberKind]
    #: The kind of each member, in the order of the members.
    members: Sequence[int]
    #: int64 [nodes, resources]: what is free.
    free: _Free
    #: The outermost first. The size of a layer is a multiple of the size of the next one.
    layers: Sequence[Layer] = ()
    #: Whether a slice goes to the domain with the fewest slices. If not, the slices go to as few
    #: domains as possible.
    is_balanced: bool = False


class Arrangement(Struct, frozen=True):
    """Nodes for each member."""

    #: Positions of nodes, by member: the nodes of its domain if all members are equal, else one
    #: node.
    nodes: Sequence[Rows]
    step_count: int = 0


class NoArrangement(Struct, frozen=True):
    """No nodes were found for all members."""

    #: Whether it is proven that there are no such nodes. If not, the search stopped before its end.
    is_proven: bool
    step_count: int = 0
    #: By layer, how many of its slices would fit if the layers around it did not count. Empty for
    #: members of several kinds, which have no such number.
    fitting_counts: tuple[int, ...] = ()


def arrange(problem: ArrangementProblem, steps_max: int = STEPS_MAX) -> Arrangement | NoArrangement:
    """Nodes for all members. Equal problems have equal answers."""
    if len(set(problem.members)) == 1:
        return _Counts(problem).arranged()
    return _Search(problem, steps_max).arranged()


def _place_counts(kind: MemberKind, free: _Free) -> Int64s:
    """int64 [nodes]: how many members of a kind each node can take."""
    requested = kind.amounts > 0
    if not requested.any():
        return np.where(kind.feasible, _UNLIMITED, 0)
    counts = (free[:, requested] // kind.amounts[requested]).min(axis=1)
    return np.where(kind.feasible, np.maximum(counts, 0), 0)


def _domains(layer: Layer, nodes: Rows) -> list[tuple[int, Rows]]:
    """The domains of a layer among some nodes, with their nodes, in the order of their ids."""
    nodes = nodes[layer.domain_ids[nodes] >= 0]
    if not nodes.size:
        return []
    ids = layer.domain_ids[nodes]
    order = np.argsort(ids, kind="stable")
    present, starts = np.unique(ids[order], return_index=True)
    return list(zip(present.tolist(), np.split(nodes[order], starts[1:]), strict=True))


# ---- equal members -------------------------------------------------------------------------


@final
class _Counts:
    """The arrangement of equal members, for which the numbers of free places decide."""

    def __init__(self, problem: ArrangementProblem) -> None:
        kind, self._member_count = problem.kinds[problem.members[0]], len(problem.members)
        self._problem = problem
        #: int64 [nodes]: free places.
        self._places = np.minimum(_place_counts(kind, problem.free), self._member_count)

    def arranged(self) -> Arrangement | NoArrangement:
        nodes, layers = np.flatnonzero(self._places), self._problem.layers
        fitting_counts = tuple(
            self._slice_count(nodes, layers[place:]) for place in range(len(layers))
        )
        runs = self._divide(nodes, layers, self._member_count)
        if runs is None:
            return NoArrangement(self._is_proven(fitting_counts), fitting_counts=fitting_counts)
        return Arrangement([nodes for nodes, count in runs for _ in range(count)])

    def _is_proven(self, fitting_counts: Sequence[int]) -> bool:
        """Whether the counts prove that the members do not fit. They do not prove it if the last
        slice is smaller, because it may have taken the place of a whole one."""
        count, layers = self._member_count, self._problem.layers
        if all(count % layer.size == 0 for layer in layers):
            return True
        pairs = zip(fitting_counts, layers, strict=True)
        return any(fitting_count < count // layer.size for fitting_count, layer in pairs)

    def _divide(
        self, nodes: Rows, layers: Sequence[Layer], member_count: int
    ) -> list[tuple[Rows, int]] | None:
        """Take places for the members. Returns runs of members with their nodes, in order. None:
        there are too few places."""
        if not layers:
            if int(self._places[nodes].sum()) < member_count:
                return None
            self._take(nodes, member_count)
            return [(nodes, member_count)]
        layer, inner = layers[0], layers[1:]
        domains = [domain for _, domain in _domains(layer, nodes)]
        counts = [self._slices_in(domain, layers) for domain in domains]
        taken = [0] * len(domains)
        whole_count, remainder = divmod(member_count, layer.size)
        runs: list[tuple[Rows, int]] = []
        for left_count in range(whole_count, 0, -1):
            place = self._choice(counts, taken, left_count)
            if place is None:
                return None
            taken[place] += 1
            run = self._divide(domains[place], inner, layer.size)
            assert run is not None, "the count says that the domain can take one slice more"
            runs += run
            counts[place] = self._slices_in(domains[place], layers)
        if remainder:
            last = self._last(domains, inner, remainder)
            if last is None:
                return None
            runs += last
        return runs

    def _last(
        self, domains: Sequence[Rows], inner: Sequence[Layer], member_count: int
    ) -> list[tuple[Rows, int]] | None:
        """Place a smaller last slice in the domain with the fewest free places that suffice."""
        for domain in sorted(domains, key=lambda nodes: int(self._places[nodes].sum())):
            before = self._places[domain]
            run = self._divide(domain, inner, member_count)
            if run is not None:
                return run
            self._places[domain] = before
        return None

    def _slice_count(self, nodes: Rows, layers: Sequence[Layer]) -> int:
        """How many slices of the first layer the nodes can take."""
        return sum(self._slices_in(domain, layers) for _, domain in _domains(layers[0], nodes))

    def _slices_in(self, domain: Rows, layers: Sequence[Layer]) -> int:
        """How many slices of the first layer one domain of it can take."""
        layer, inner = layers[0], layers[1:]
        if not inner:
            return int(self._places[domain].sum()) // layer.size
        return self._slice_count(domain, inner) * inner[0].size // layer.size

    def _choice(self, counts: Sequence[int], taken: Sequence[int], left_count: int) -> int | None:
        """The domain for the next slice. ``counts``: slices that fit; ``left_count``: slices that
        are left."""
        possible = [place for place, count in enumerate(counts) if count]
        if not possible:
            return None
        if self._problem.is_balanced:
            return min(possible, key=lambda place: (taken[place], -counts[place]))
        begun = [place for place in possible if taken[place]]
        sufficient = [place for place in begun or possible if counts[place] >= left_count]
        if sufficient:
            return min(sufficient, key=lambda place: counts[place])
        return max(begun or possible, key=lambda place: counts[place])

    def _take(self, nodes: Rows, member_count: int) -> None:
        places = self._places[nodes]
        before = np.cumsum(places) - places
        self._places[nodes] = places - np.clip(member_count - before, 0, places)


# ---- members of several kinds --------------------------------------------------------------


class _Class(NamedTuple):
    """What counts about a node: its domains, the kinds that fit on it alone, and what is free."""

    domains: tuple[int, ...]
    kinds: tuple[int, ...]
    free: tuple[int, ...]


class _Choice(NamedTuple):
    """One part of an arrangement: the domain of a slice, or the nodes of its members."""

    #: The slice's layer; the number of layers: the nodes of the members.
    layer: int
    #: The members of the slice: from ``first`` to before ``end``.
    first: int
    end: int
    #: int64 [kinds]: the members of each kind in this part; and in this part and all parts after
    #: it.
    kind_counts: Int64s
    left_counts: Int64s


def suffices_alone(problem: ArrangementProblem) -> Mask:
    """bool [nodes]: whether the domain of the outermost layer that a node is in may suffice. It has
    to take all members of each kind if the kind were alone, and to have as much free as all of them
    request."""
    ids = problem.layers[0].domain_ids
    domains, inverse = np.unique(ids, return_inverse=True)
    member_counts = np.bincount(problem.members, minlength=len(problem.kinds))
    suffices = domains >= 0
    totals = np.zeros((len(domains), problem.free.shape[1]), np.int64)
    np.add.at(totals, inverse, problem.free.clip(min=0))
    amounts = np.array([kind.amounts for kind in problem.kinds])
    suffices &= (totals >= (amounts * member_counts[:, None]).sum(axis=0)).all(axis=1)
    for kind, count in enumerate(member_counts.tolist()):
        of_domain = np.zeros(len(domains), np.int64)
        np.add.at(
            of_domain, inverse, np.minimum(_place_counts(problem.kinds[kind], problem.free), count)
        )
        suffices &= of_domain >= count
    return suffices[inverse]


@final
class _Classes:
    """The classes of nodes, and how many nodes each class has. A node that takes a member becomes
    one of another class."""

    def __init__(self, problem: ArrangementProblem) -> None:
        kinds, layers, free = problem.kinds, problem.layers, problem.free
        places = np.array([_place_counts(kind, free) for kind in kinds])
        #: The positions of the nodes that count. Some member fits on such a node, and if all
        #: members have to share a domain, each kind has enough places in the domain of the node.
        self.nodes = np.flatnonzero(places.any(axis=0))
        if layers and layers[0].size >= len(problem.members):
            self.nodes = self.nodes[suffices_alone(problem)[self.nodes]]
        parts = [each.domain_ids[self.nodes] for each in layers]
        parts += [kind.feasible[self.nodes].astype(np.int64) for kind in kinds]
        table = np.column_stack([*parts, free[self.nodes]]).astype(np.int64)
        rows, node_classes, counts = np.unique(
            table, axis=0, return_inverse=True, return_counts=True
        )
        #: By node: the index of its class at the beginning.
        self.node_classes: list[int] = node_classes.ravel().tolist()
        self._layer_count, self._kind_count = len(layers), len(kinds)
        self._all: list[_Class] = []
        self._indexes: dict[_Class, int] = {}
        capacity = len(rows) + len(problem.members)
        self._table = np.zeros((capacity, table.shape[1]), np.int64)
        self._counts = np.zeros(capacity, np.int64)
        #: A number that is equal for nodes that differ in their domains only.
        self._contents = np.zeros(capacity, np.int64)
        self._hashes: list[int] = []
        #: A number that is equal for equal states.
        self.state = 0
        for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
            self._add(self._of_row(row), row)
            self._counts[len(self._all) - 1] = count
            self.state += count * self._hashes[-1]

    def __len__(self) -> int:
        return len(self._all)

    @property
    def counts(self) -> Int64s:
        """int64 [classes]: the nodes of each class."""
        return self._counts[: len(self._all)]

    @property
    def free(self) -> _Free:
        """int64 [classes, resources]"""
        return self._table[: len(self._all), self._layer_count + self._kind_count :]

    @property
    def contents(self) -> Int64s:
        """int64 [classes]: equal for classes that differ in their domains only."""
        return self._contents[: len(self._all)]

    def domains(self, layer: int) -> Int64s:
        """int64 [classes]"""
        return self._table[: len(self._all), layer]

    def feasible(self, kind: int) -> Mask:
        """bool [classes]: whether a kind fits alone."""
        return self._table[: len(self._all), self._layer_count + kind] > 0

    def take(self, index: int, amounts: Sequence[int]) -> int:
        """Let a node of a class take a member. Returns the index of the class that the node then
        has."""
        one = self._all[index]
        free = tuple(has - takes for has, takes in zip(one.free, amounts, strict=True))
        after = one._replace(free=free)
        target = self._indexes.get(after)
        if target is None:
            target = self._add(after, [*after.domains, *after.kinds, *after.free])
        self.move(index, target)
        return target

    def move(self, source: int, target: int) -> None:
        """Move a node from one class to another."""
        self._counts[source] -= 1
        self._counts[target] += 1
        self.state += self._hashes[target] - self._hashes[source]

    def _of_row(self, row: Sequence[int]) -> _Class:
        first, second = self._layer_count, self._layer_count + self._kind_count
        return _Class(tuple(row[:first]), tuple(row[first:second]), tuple(row[second:]))

    def _add(self, one: _Class, row: Sequence[int]) -> int:
        index = self._indexes[one] = len(self._all)
        self._all.append(one)
        if index >= len(self._counts):
            self._counts, self._contents, self._table = (
                np.concatenate([each, np.zeros_like(each)])
                for each in (self._counts, self._contents, self._table)
            )
        self._table[index] = row
        self._contents[index] = hash(one[1:])
        self._hashes.append(hash(one))
        return index


@final
class _StepsAreOverError(Exception):
    """The search has made as many assignments as are allowed."""


@final
class _Search:
    """A search with a stack of parts. The part that assigns the members of a slice has a stack of
    its own."""

    def __init__(self, problem: ArrangementProblem, steps_max: int) -> None:
        self._problem = problem
        self._steps_left = self._steps_max = steps_max
        self._layer_count = len(problem.layers)
        self._amounts = np.array([kind.amounts for kind in problem.kinds], np.int64)
        self._total = np.maximum(problem.free.clip(min=0).sum(axis=0), 1)
        self._choices = self._order(0, 0, len(problem.members))
        self._classes = _Classes(problem)
        #: The domain of the current slice of each layer.
        self._current = [-1] * self._layer_count
        #: Domain → its slices, by layer.
        self._slices: list[dict[int, int]] = [{} for _ in range(self._layer_count)]
        #: (member's kind, class before, class after) of all members that have a node.
        self._moves: list[tuple[int, int, int]] = []
        self._failed: set[tuple[int, int, tuple[int, ...]]] = set()
        #: The assignments that a slice may take in a domain before another domain is tried; and
        #: whether a slice needed more.
        self._slice_steps_max = 0
        self._is_cut = False

    def _order(self, layer: int, first: int, end: int) -> list[_Choice]:
        """The parts for the members from ``first`` to before ``end``. For each slice, its domain
        comes first, then what is in the slice."""
        if layer == self._layer_count:
            return [self._choice(layer, first, end)]
        size, parts = self._problem.layers[layer].size, list[_Choice]()
        for begin in range(first, end, size):
            after = min(begin + size, end)
            parts += [self._choice(layer, begin, after), *self._order(layer + 1, begin, after)]
        return parts

    def _choice(self, layer: int, first: int, end: int) -> _Choice:
        kind_count = len(self._problem.kinds)
        members = np.asarray(self._problem.members)
        own = np.bincount(members[first:end], minlength=kind_count)
        left = np.bincount(members[first:], minlength=kind_count)
        return _Choice(layer, first, end, own, left)

    def arranged(self) -> Arrangement | NoArrangement:
        self._slice_steps_max = _FIRST_SLICE_STEPS * len(self._problem.members)
        try:
            while not self._run():
                if not self._is_cut:
                    step_count = self._steps_max - self._steps_left
                    return NoArrangement(is_proven=True, step_count=step_count)
                self._slice_steps_max *= _MORE_SLICE_STEPS
                self._failed.clear()
        except _StepsAreOverError:
            return NoArrangement(is_proven=False, step_count=self._steps_max)
        return Arrangement(self._nodes(), self._steps_max - self._steps_left)

    def _run(self) -> bool:
        """Choose for all parts, and make the moves. Returns whether each part has a choice."""
        ways: list[Iterator[None]] = []
        self._is_cut = False
        while len(ways) < len(self._choices):
            choice = self._choices[len(ways)]
            key = len(ways), self._classes.state, tuple(self._current[: choice.layer])
            is_open = key not in self._failed and self._may_suffice(choice.left_counts)
            if is_open:
                ways.append(self._ways(choice, key))
            while ways and next(ways[-1], self) is self:
                ways.pop()
            if not ways:
                return False
        return True

    def _ways(self, choice: _Choice, key: tuple[int, int, tuple[int, ...]]) -> Iterator[None]:
        """Choose one way after another. Each choice is undone before the next one is made."""
        is_domain = choice.layer < self._layer_count
        yield from self._domain_ways(choice) if is_domain else self._member_ways(choice)
        self._failed.add(key)

    def _step(self) -> None:
        if not self._steps_left:
            raise _StepsAreOverError
        self._steps_left -= 1

    def _may_suffice(self, left_counts: Int64s) -> bool:
        """Whether each kind would have enough places for its remaining members if it were alone."""
        every = np.arange(len(self._classes))
        return self._suffices(every, left_counts)

    def _suffices(self, local: Rows, left_counts: Int64s) -> bool:
        """Whether the nodes of some classes may suffice: for each kind as if it were alone, and
        what is free there for all kinds together."""
        counts, free = self._classes.counts[local], self._classes.free[local]
        for kind, left_count in enumerate(left_counts.tolist()):
            if left_count:
                places = self._places(kind, local, left_count)
                if int((places * counts).sum()) < left_count:
                    return False
        left = (self._amounts * left_counts[:, None]).sum(axis=0)
        return bool(((free.clip(min=0) * counts[:, None]).sum(axis=0) >= left).all())

    def _places(self, kind: int, local: Rows, count_max: int) -> Int64s:
        """int64 [classes]: how many members of a kind a node of each class can take."""
        alone = MemberKind(self._amounts[kind], self._classes.feasible(kind)[local])
        return np.minimum(_place_counts(alone, self._classes.free[local]), count_max)

    def _within(self, layer_count: int) -> Rows:
        """The classes with nodes in the current domains of the first layers."""
        mask = self._classes.counts > 0
        for layer in range(layer_count):
            mask &= self._classes.domains(layer) == self._current[layer]
        return np.flatnonzero(mask)

    # ---- slices to domains ----------------------------------------------------------------

    def _domain_ways(self, choice: _Choice) -> Iterator[None]:
        layer, slices = choice.layer, self._slices[choice.layer]
        for domain in self._domains(choice):
            self._step()
            self._current[layer] = domain
            slices[domain] = slices.get(domain, 0) + 1
            yield
            slices[domain] -= 1

    def _domains(self, choice: _Choice) -> Sequence[int]:
        """The domains for a slice, in the order in which they are tried. If slices are packed,
        domains with slices come first, then those with the least free. If slices are balanced, the
        domains with the fewest slices come first, then those with the most free. Of the untouched
        domains of the innermost layer with equal content, only one is tried."""
        classes, layer = self._classes, choice.layer
        possible = self._within(layer)
        possible = possible[classes.domains(layer)[possible] >= 0]
        domains, inverse = np.unique(classes.domains(layer)[possible], return_inverse=True)
        counts = classes.counts[possible]

        def total(values: npt.NDArray[np.int64]) -> Int64s:
            """int64 [domains]: the sum of a value of each node."""
            sums = np.zeros(len(domains), np.int64)
            np.add.at(sums, inverse, values * counts)
            return sums

        suffices = np.ones(len(domains), np.bool_)
        for kind, count in enumerate(choice.kind_counts.tolist()):
            if count:
                suffices &= total(self._places(kind, possible, count)) >= count
        shares = (classes.free[possible].clip(min=0) / self._total).sum(axis=1)
        free = np.bincount(inverse, shares * counts, minlength=len(domains)).tolist()
        contents: list[int] = total(classes.contents[possible]).tolist()
        ordered: list[tuple[int, float, int]] = []
        untouched: set[int] = set()
        for place in np.flatnonzero(suffices).tolist():
            domain = int(domains[place])
            slice_count = self._slices[layer].get(domain, 0)
            if layer == self._layer_count - 1 and not slice_count:
                if contents[place] in untouched:
                    continue
                untouched.add(contents[place])
            if self._problem.is_balanced:
                ordered.append((slice_count, -free[place], domain))
            else:
                ordered.append((-min(slice_count, 1), free[place], domain))
        return [domain for _, _, domain in sorted(ordered)]

    # ---- members to nodes -----------------------------------------------------------------

    def _member_ways(self, choice: _Choice) -> Iterator[None]:
        """Assign nodes within the current domains to the members of a slice, in every way that
        leaves different nodes behind."""
        local = self._within(self._layer_count)
        weights = self._weights(local, choice.kind_counts)
        sizes = (self._amounts * weights).sum(axis=1)
        by_size = sorted(range(len(sizes)), key=lambda kind: (-sizes[kind], kind))
        kinds = [kind for kind in by_size for _ in range(int(choice.kind_counts[kind]))]
        failed: set[tuple[int, int]] = set()
        candidates: list[Iterator[int]] = []
        first = len(self._moves)
        left_counts = choice.kind_counts.copy()
        steps_left = self._slice_steps_max
        while True:
            depth = len(self._moves) - first
            key = depth, self._classes.state
            if len(candidates) == depth:
                is_open = key not in failed and self._suffices(local, left_counts)
                if is_open and depth == len(kinds):
                    yield
                nodes = is_open and depth < len(kinds)
                ordered = self._nodes_for(kinds[depth], local, weights) if nodes else ()
                candidates.append(iter(ordered))
            candidate = next(candidates[depth], None)
            if candidate is not None and steps_left:
                self._step()
                steps_left -= 1
                local = self._place(kinds[depth], candidate, local)
                left_counts[kinds[depth]] -= 1
                continue
            self._is_cut |= candidate is not None
            candidates.pop()
            failed.add(key)
            if not depth:
                return
            kind, source, target = self._moves.pop()
            self._classes.move(target, source)
            left_counts[kind] += 1

    def _weights(self, local: Rows, kind_counts: Int64s) -> npt.NDArray[np.float64]:
        """float64 [resources]: how scarce a unit of each resource is among some nodes, for the
        members of a slice."""
        classes = self._classes
        free = (classes.free[local].clip(min=0) * classes.counts[local][:, None]).sum(axis=0)
        total = np.maximum(free, 1)
        wanted = (self._amounts * kind_counts[:, None]).sum(axis=0)
        return (wanted / total) ** 2 / total

    def _nodes_for(self, kind: int, local: Rows, weights: npt.NDArray[np.float64]) -> Sequence[int]:
        """The classes for a member: the node with the least left of what is scarce comes first, so
        that large places stay whole."""
        classes = self._classes
        possible = local[(classes.counts[local] > 0) & classes.feasible(kind)[local]]
        left = classes.free[possible] - self._amounts[kind]
        fits = ((left >= 0) | (self._amounts[kind] == 0)).all(axis=1)
        order = np.argsort((left[fits] * weights).sum(axis=1), kind="stable")
        return possible[fits][order].tolist()

    def _place(self, kind: int, candidate: int, local: Rows) -> Rows:
        """Place a member on a node of a class. Returns the classes of the domain after that."""
        known_count = len(self._classes)
        target = self._classes.take(candidate, self._amounts[kind].tolist())
        self._moves.append((kind, candidate, target))
        is_new = target >= known_count or not (local == target).any()
        return np.append(local, target) if is_new else local

    # ---- the result -----------------------------------------------------------------------

    def _nodes(self) -> list[Rows]:
        """The moves as nodes by member. The first node of a class takes the first member of the
        kind in the slice."""
        nodes_by_class: dict[int, list[int]] = {}
        classes = self._classes
        for node, index in zip(classes.nodes.tolist(), classes.node_classes, strict=True):
            nodes_by_class.setdefault(index, []).append(node)
        nodes: list[Rows] = [np.empty(0, np.intp)] * len(self._problem.members)
        moves = iter(self._moves)
        for choice in self._choices:
            if choice.layer < self._layer_count:
                continue
            members: dict[int, list[int]] = {}
            for member in range(choice.first, choice.end):
                members.setdefault(self._problem.members[member], []).append(member)
            for _ in range(choice.first, choice.end):
                kind, source, target = next(moves)
                node = nodes_by_class[source].pop(0)
                nodes_by_class.setdefault(target, []).append(node)
                nodes[members[kind].pop(0)] = np.array([node], np.intp)
        return nodes
