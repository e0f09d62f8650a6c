"""Row caches: the results of one row-wise plugin for one signature part, by row.

A result is valid until its row changes in a facet that the plugin reads. Then the row cache forgets
the result, and the plugin is called again when a cycle needs it. Arrays have the narrowest type
that holds the results, because there may be thousands of signatures.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from typing import Any, Generic, TypeVar, final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from bayplan.framework.arithmetic import uniform, uniform_score
from bayplan.framework.cycle_state import CallFilter, CallScore, CycleState
from bayplan.framework.filtering import FilterOutcome, verdicts_of
from bayplan.framework.plugin import Plugin
from bayplan.framework.signing import PodSignature, facets_read
from bayplan.framework.status import Rejection
from bayplan.framework.types import Verdict
from bayplan.state.columns import Mask, NodeMask, NodeScores, Rows, all_true, is_any, places_of
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

#: Marks of rows: see `RowCache.marks`.
UNKNOWN = 0
CACHED = 1
PASSES = CACHED

#: The number of values that a byte can hold.
_NARROW_MAX = 255

#: The number of classes of equivalent nodes for which results are remembered.
EQUIVALENT_MAX = 1024


class RowCounts(Struct):
    """How many rows an instance had to answer for, and for how many of them it was called."""

    needed: int = 0
    evaluated: int = 0

    @property
    def cached(self) -> int:
        return self.needed - self.evaluated

    def add(self, other: "RowCounts") -> None:
        self.needed += other.needed
        self.evaluated += other.evaluated


class RowCache(ABC):
    """The rows whose result is cached, and the change up to which the results are valid."""

    __slots__ = (
        "_table",
        "bytes_counted",
        "entry_count",
        "facets",
        "generation",
        "marks",
        "of_equivalent",
    )

    def __init__(self, table: NodeTable, facets: int, follows_amounts: bool = False) -> None:
        """``follows_amounts``: equivalent nodes get the same result."""
        self._table = table
        #: uint8 or wider [rows]: UNKNOWN where no result is cached.
        self.marks: npt.NDArray[Any] = np.zeros(table.capacity, np.uint8)
        #: By class of equivalent nodes, the result of one of its rows.
        self.of_equivalent: dict[int, int] | None = {} if follows_amounts else None
        # A plain integer: arithmetic with flags is slow.
        self.facets = int(facets)
        self.generation = table.log.generation
        #: How many entries use this cache.
        self.entry_count = 0
        self.bytes_counted = 0

    @property
    def follows_amounts(self) -> bool:
        return self.of_equivalent is not None

    def recall(self, row: int) -> int | None:
        """Take the result of an equivalent node for the row, and return it. None: no result is
        cached."""
        if self.of_equivalent is None:
            return None
        result = self.of_equivalent.get(self._table.resources.equivalence.numbers[row])
        if result is not None:
            self.put(row, result)
        return result

    def _learn_equivalent(self, row: int, result: int) -> None:
        of_equivalent = self.of_equivalent
        if of_equivalent is not None:
            if len(of_equivalent) >= EQUIVALENT_MAX:
                of_equivalent.clear()
            of_equivalent[self._table.resources.equivalence.numbers[row]] = result

    def forget_changed(self, since: int, changes: Iterable[tuple[int, int]]) -> None:
        """Forget rows that changed. ``changes``: (row, facets) of all changes after ``since``."""
        if self.generation != since:
            self.catch_up()
            return
        for row, facets in changes:
            if facets & self.facets:
                self.marks[row] = UNKNOWN
        self.generation = self._table.log.generation

    def catch_up(self) -> None:
        """Forget rows that changed after `generation`."""
        log, since = self._table.log, self.generation
        self._grow(self._table.capacity)
        if since >= log.generation:
            return
        if log.is_changed_since(since, self.facets):
            if log.all_rows_generation > since:
                self._forget_equivalent()
            self.marks[log.rows_since(since, self.facets)] = UNKNOWN
        self.generation = log.generation

    def forget_all(self) -> None:
        """Forget all rows, because something changed that the change log does not record."""
        self._forget_equivalent()
        self.marks[:] = UNKNOWN

    def _forget_equivalent(self) -> None:
        if self.of_equivalent:
            self.of_equivalent.clear()

    def valid_now(self, rows: Rows) -> Mask:
        """bool[rows]: whether a result is cached and its row has not changed since. For checks."""
        valid = np.zeros(len(rows), np.bool_)
        has_room = rows < len(self.marks)
        valid[has_room] = self.marks[rows[has_room]] != UNKNOWN
        changed = self._table.log.rows_since(self.generation, self.facets)
        return valid & ~np.isin(rows, changed)

    @property
    def bytes_used(self) -> int:
        return self.marks.nbytes

    def _grow(self, capacity: int) -> None:
        self.marks = _grown(self.marks, capacity)

    @abstractmethod
    def put(self, row: int, result: int) -> None:
        """Cache the result of a row: the number of a verdict, or a score."""


@final
class CachedFilterResults(RowCache):
    """The cached results of a Filter. The mark of a row is the number of its verdict: PASSES, or
    the index of a rejection in `verdicts`."""

    __slots__ = ("_numbers", "verdicts")

    def __init__(self, table: NodeTable, facets: int, follows_amounts: bool = False) -> None:
        super().__init__(table, facets, follows_amounts)
        self.verdicts: list[Verdict] = [(), ()]
        self._numbers: dict[Verdict, int] = {(): PASSES}

    @property
    def may_reject(self) -> bool:
        """Whether any row was rejected so far."""
        return len(self.verdicts) > PASSES + 1

    def learn(self, rows: Rows, outcome: FilterOutcome) -> None:
        """Cache what the plugin answered for these rows."""
        self.marks[rows] = PASSES
        if len(outcome.entries) == 1 and outcome.entries[0].codes is None:
            entry = outcome.entries[0]
            number = self._number(((entry.code, entry.reasons),))
            self.marks[rows[entry.positions]] = number
            return
        for position, verdict in verdicts_of(outcome).items():
            self.learn_one(int(rows[position]), verdict)

    def number_of(self, verdict: Verdict) -> int:
        """The number of a verdict; -1 if no row has had it."""
        return self._numbers.get(verdict, -1)

    def learn_one(self, row: int, verdict: Verdict) -> int:
        """Cache what the plugin answered for one row. Returns the number of the verdict."""
        number = self._number(verdict)
        self.marks[row] = number
        self._learn_equivalent(row, number)
        return number

    def rejections(self, selection: Rows | slice, feasible: NodeMask) -> Sequence[Rejection]:
        """The rejections that the plugin would return for nodes whose results are cached."""
        if not self.may_reject:
            return ()
        numbers = self.marks[selection]
        counts = np.bincount(numbers[feasible], minlength=len(self.verdicts))
        return [
            Rejection(numbers == number, code, reasons)
            for number in np.flatnonzero(counts).tolist()
            for code, reasons in self.verdicts[number]
        ]

    def _number(self, verdict: Verdict) -> int:
        number = self._numbers.get(verdict)
        if number is None:
            number = self._numbers[verdict] = len(self.verdicts)
            self.verdicts.append(verdict)
            if number > np.iinfo(self.marks.dtype).max:
                self.marks = self.marks.astype(np.uint32)
        return number

    def put(self, row: int, result: int) -> None:
        self.marks[row] = result


@final
class CachedScores(RowCache):
    """The cached results of a Score: the raw score of each row. A score that all rows have is
    stored once."""

    __slots__ = ("common", "scores")

    def __init__(self, table: NodeTable, facets: int, follows_amounts: bool = False) -> None:
        super().__init__(table, facets, follows_amounts)
        #: uint8 or int64 [rows]; None: every cached row has the same score.
        self.scores: npt.NDArray[Any] | None = None
        #: The score that every cached row has, if ``scores`` is None; only this class writes.
        self.common = 0

    @property
    def bytes_used(self) -> int:
        return self.marks.nbytes + (0 if self.scores is None else self.scores.nbytes)

    def learn(self, rows: Rows, raw: NodeScores) -> None:
        """Cache what the plugin answered for these rows."""
        same = uniform_score(raw)
        if same is None:
            low, high = int(raw.min()), int(raw.max())
            same = low if low == high else None
        else:
            low = high = same
        if not self._is_all(same):
            self._room_for(low, high)[rows] = raw
        self.marks[rows] = CACHED

    def learn_one(self, row: int, score: int) -> None:
        self.put(row, score)
        self._learn_equivalent(row, score)

    def put(self, row: int, result: int) -> None:
        if self.scores is not None and 0 <= result <= _NARROW_MAX:
            self.scores[row] = result
        elif not self._is_all(result):
            self._room_for(result, result)[row] = result
        self.marks[row] = CACHED

    def of_row(self, row: int) -> int:
        return self.common if self.scores is None else self.scores.item(row)

    @property
    def same(self) -> int | None:
        """The score that every cached row has."""
        return self.common if self.scores is None else None

    def of(self, selection: Rows | slice, count: int) -> NodeScores:
        """int64[count]: the raw scores of a selection of rows whose scores are cached."""
        if self.scores is None:
            return uniform(self.common, count)
        return self.scores[selection].astype(np.int64)

    def _is_all(self, score: int | None) -> bool:
        """Whether this is the one score of all cached rows, or can be."""
        if self.scores is not None or score is None:
            return False
        if score != self.common and not self.marks.any():
            self.common = score
        return score == self.common

    def _room_for(self, low: int, high: int) -> npt.NDArray[Any]:
        is_narrow = low >= 0 and high <= _NARROW_MAX
        if self.scores is None:
            is_narrow = is_narrow and 0 <= self.common <= _NARROW_MAX
            dtype = np.uint8 if is_narrow else np.int64
            self.scores = np.full(len(self.marks), self.common, dtype)
        elif not is_narrow and self.scores.dtype == np.uint8:
            self.scores = self.scores.astype(np.int64)
        return self.scores

    def _grow(self, capacity: int) -> None:
        super()._grow(capacity)
        if self.scores is not None:
            self.scores = _grown(self.scores, capacity)


_C = TypeVar("_C", CachedFilterResults, CachedScores)


@final
class SharedCaches(Generic[_C]):
    """The row caches of a profile's Filter plugins, or of its Score plugins, by instance and part
    of the signature. Entries whose signatures have an equal part share the row cache."""

    def __init__(
        self, cache_type: type[_C], table: NodeTable, plugins: Mapping[str, Plugin]
    ) -> None:
        """``plugins``: by instance."""
        self.plugins = plugins
        self._cache_type = cache_type
        self._table = table
        #: By row-wise instance, the facets that results depend on; and the facets for pods that the
        #: plugin signs as ().
        self._facets = {
            name: (int(facets_read(plugin, None)), int(facets_read(plugin, ())))
            for name, plugin in plugins.items()
            if plugin.scope == "row"
        }
        self._caches: dict[tuple[str, Hashable], _C] = {}

    def __len__(self) -> int:
        return len(self._caches)

    def open(self, signature: PodSignature) -> dict[str, _C]:
        """The row caches of a new entry, by instance: one for each part of the signature that may
        be cached."""
        caches: dict[str, _C] = {}
        for name, facets in self._facets.items():
            part = signature.parts.get(name)
            if part is None:
                continue
            cache = self._caches.get((name, part))
            if cache is None:
                follows_amounts = self.plugins[name].promises.amounts_only
                cache = self._cache_type(self._table, facets[part == ()], follows_amounts)
                self._caches[name, part] = cache
            cache.entry_count += 1
            caches[name] = cache
        return caches

    def close(self, signature: PodSignature, caches: Mapping[str, _C]) -> int:
        """Drop the row caches of a dropped entry that no other entry uses. Returns their bytes."""
        dropped_bytes = 0
        for name, cache in caches.items():
            cache.entry_count -= 1
            if not cache.entry_count:
                del self._caches[name, signature.parts[name]]
                dropped_bytes += cache.bytes_counted
        return dropped_bytes

    def forget(
        self, names: Set[str], is_affected: Callable[[Plugin, Hashable], bool]
    ) -> list[RowCache]:
        """Forget the results of these instances for the parts that are affected."""
        forgotten: list[RowCache] = [
            cache
            for (name, part), cache in self._caches.items()
            if name in names and is_affected(self.plugins[name], part)
        ]
        for cache in forgotten:
            cache.forget_all()
        return forgotten


@final
class RowCaches:
    """The `CachedResults` of one signature: a row cache per plugin whose results are cached.

    Filter and Score run as always, but a plugin is called only for rows without a cached result.
    Plugins that look across nodes, or do not sign, are called for all nodes.
    """

    __slots__ = ("all", "counts", "filters", "scores")

    def __init__(
        self, filters: Mapping[str, CachedFilterResults], scores: Mapping[str, CachedScores]
    ) -> None:
        """The row caches, by instance."""
        self.filters = filters
        self.scores = scores
        self.all: Sequence[RowCache] = [*filters.values(), *scores.values()]
        #: The counts by instance, without the rows that rankings count; see
        #: `SignatureEntry.row_counts`.
        self.counts: dict[str, RowCounts] = defaultdict(RowCounts)

    def filter(
        self,
        name: str,
        call: CallFilter,
        state: CycleState,
        pod: PodInfo,
        *,
        nodes: NodeView,
        feasible: NodeMask,
    ) -> Iterable[Rejection]:
        cache, counts, count = self.filters.get(name), self.counts[name], len(feasible)
        counts.needed += count
        if cache is None:
            counts.evaluated += count
            return call(state, pod, nodes, feasible)
        cache.catch_up()
        selection = nodes.table.index
        unknown = (cache.marks[selection] == UNKNOWN) & feasible
        if is_any(unknown):
            positions = places_of(unknown)
            some = nodes if len(positions) == count else nodes.take(positions)
            outcome = FilterOutcome(some, all_true(len(positions)))
            outcome.add(name, call(state, pod, some, outcome.feasible))
            counts.evaluated += len(positions)
            if outcome.error is not None:
                # An invalid answer is not cached, and is reported as if there were no cache.
                return call(state, pod, nodes, feasible)
            cache.learn(_rows_at(selection, positions), outcome)
        return cache.rejections(selection, feasible)

    def score(
        self, name: str, call: CallScore, state: CycleState, pod: PodInfo, *, nodes: NodeView
    ) -> NodeScores:
        cache, counts, selection = self.scores.get(name), self.counts[name], nodes.table.index
        if cache is None:
            counts.needed += len(nodes)
            counts.evaluated += len(nodes)
            return call(state, pod, nodes)
        cache.catch_up()
        marks = cache.marks[selection]
        count = len(marks)
        counts.needed += count
        if not marks.all():
            positions = places_of(marks == UNKNOWN)
            some = nodes if len(positions) == count else nodes.take(positions)
            raw = call(state, pod, some)
            counts.evaluated += len(positions)
            if not _is_column(raw, len(positions)):
                return call(state, pod, nodes)
            cache.learn(_rows_at(selection, positions), raw)
        return cache.of(selection, count)


def _is_column(raw: Any, count: int) -> bool:
    return getattr(raw, "dtype", None) == np.int64 and getattr(raw, "shape", None) == (count,)


def _rows_at(selection: Rows | slice, positions: Rows) -> Rows:
    return positions if isinstance(selection, slice) else selection.take(positions)


def _grown(values: npt.NDArray[Any], capacity: int) -> npt.NDArray[Any]:
    if len(values) == capacity:
        return values
    grown = np.zeros(capacity, values.dtype)
    grown[: len(values)] = values
    return grown
