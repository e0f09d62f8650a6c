"""SignatureEntry: what is cached for all pods that no row-wise plugin can tell apart.

Each row-wise plugin's results are cached under its own part of the signature, so entries whose
signatures differ in another plugin's part share the row cache.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import Any, final
from weakref import ref

from bayplan.engine.ranking.evaluation_plan import SkipSet
from bayplan.engine.ranking.node_cells import NodeCells
from bayplan.engine.ranking.ranked_nodes import CHANGES_MAX, RankedNodes
from bayplan.engine.ranking.row_cache import RowCaches, RowCounts
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.signing import PodSignature
from bayplan.objects.object_store import ObjectStore
from bayplan.state.change_log import ChangeLog, Facet
from bayplan.state.node_table import NodeTable
from bayplan.state.pods import PodInfo, PodShape

#: How many pods of one template in a row come before cells are made. Making cells takes as long as
#: they save for about 15 pods, so cells that served fewer than `_CELLS_PAY_FROM` pods are made less
#: often.
_CELLS_PATIENCE_MIN, _CELLS_PATIENCE_MAX = 8, 256
_CELLS_PAY_FROM = 32

#: The most rankings of one entry, each for another set of skipping plugins.
RANKINGS_MAX = 4


@final
class ObjectGeneration:
    """A counter of the changes outside of rows that PreFilter and PreScore depend on."""

    def __init__(self, table: NodeTable, objects: ObjectStore[Any]) -> None:
        self.terms = table.placed_terms
        self.objects = objects

    def now(self) -> int:
        """The counter. It grows when an object changes, and when a pod with affinity terms is added
        or deleted."""
        return self.objects.change_count + self.terms.change_count

    def now_of_distinct_terms(self) -> int:
        """The counter without the pods whose terms another placed pod has, too."""
        return self.objects.change_count + self.terms.distinct_change_count


@final
class CachedPreState:
    """The CycleState after PreFilter and PreScore of a cycle that a ranking answered.

    The plugins run for one pod of a template, and again only when something that their notes
    depend on changed: see `Caching.pre_state_per_template`.
    """

    __slots__ = ("is_scored", "object_generation", "owners", "ranking_ref", "shape", "state")

    def __init__(
        self,
        pod: PodInfo,
        object_generation: int,
        ranking: RankedNodes,
        state: CycleState,
        *,
        is_scored: bool,
    ) -> None:
        """``ranking``: the one of the entry, or one that it shares. ``is_scored``: whether PreScore
        ran as well."""
        self.shape = pod.shape
        #: All that the notes depend on besides the shape.
        self.owners = pod.metadata.owner_references
        self.object_generation = object_generation
        #: The state with the notes. A cycle takes a clone of it.
        self.state = state.clone()
        # The reference is weak, because a shared ranking ends with the entry that it belongs to.
        self.ranking_ref = ref(ranking)
        self.is_scored = is_scored

    def fits(self, pod: PodInfo, object_generation: int) -> bool:
        """Whether PreFilter and PreScore would leave the same notes for ``pod``."""
        return (
            pod.shape is self.shape
            and object_generation == self.object_generation
            and pod.metadata.owner_references == self.owners
        )

    @property
    def ranking(self) -> RankedNodes | None:
        """The ranking; None if it was dropped."""
        ranking = self.ranking_ref()
        return None if ranking is None or ranking.is_dropped else ranking


@final
class SharedRanking:
    """One complete ranking for all entries whose signatures differ only in the parts of plugins
    that skip."""

    __slots__ = ("_ranking_ref", "skipped")

    def __init__(self, skipped: Set[str]) -> None:
        """``skipped``: the plugins that PreFilter skips."""
        self.skipped = skipped
        self._ranking_ref: ref[RankedNodes] | None = None

    def share(self, ranking: RankedNodes) -> None:
        # The reference is weak, because the ranking ends with the entry that it belongs to.
        self._ranking_ref = ref(ranking)

    @property
    def ranking(self) -> RankedNodes | None:
        ranking = None if self._ranking_ref is None else self._ranking_ref()
        return None if ranking is None or ranking.is_dropped else ranking


@final
class SignatureEntry:
    """Cached results and rankings of one signature."""

    __slots__ = (
        "_cells_patience",
        "_log",
        "_shape",
        "_shape_count",
        "bytes_counted",
        "caches",
        "cells",
        "cycle_count",
        "evaluated_count",
        "example",
        "generation",
        "is_open",
        "is_vectorized",
        "pod_count",
        "pre_state",
        "rankings",
        "repeat_count",
        "sharing",
        "signature",
        "uncached",
    )

    def __init__(self, log: ChangeLog, signature: PodSignature, example: str) -> None:
        """``example``: one of the pods, "namespace/name"."""
        self._log = log
        self.signature = signature
        #: Empty until the cache opens them: see `ResultCache.open_caches`.
        self.caches = RowCaches({}, {})
        self.is_open = False
        self.example = example
        #: Instances that are evaluated on all nodes for each of these pods, and why; see
        #: `ResultCache.prevented_counts`.
        self.uncached: Sequence[tuple[str, str]] = ()
        #: Whether none of the plugins with a row cache is written node by node.
        self.is_vectorized = False
        #: The number of pods of this signature, and of attempts at them.
        self.pod_count = self.cycle_count = 0
        #: The generation at the last cycle that used this entry; -1: no cycle did.
        self.generation = -1
        #: How often pods came soon after one another, while caching does not pay.
        self.repeat_count = 0
        #: The number of rows that instances evaluated in cycles without the cache.
        self.evaluated_count = 0
        #: The rankings by skip set, the least recently used first.
        self.rankings: dict[SkipSet, RankedNodes] = {}
        #: The ranking that the entry shares with others, as of the last cycle.
        self.sharing: SharedRanking | None = None
        #: The notes that belong to one of the rankings, or to a ranking that the entry shares.
        self.pre_state: CachedPreState | None = None
        #: The cells of one of the rankings, for the pods of one template.
        self.cells: NodeCells | None = None
        #: The template of the last pods that cells could serve, how many they were, and how many
        #: there must be before cells are made.
        self._shape: PodShape | None = None
        self._shape_count = 0
        self._cells_patience = _CELLS_PATIENCE_MIN
        self.bytes_counted = 0

    def is_far_behind(self) -> bool:
        """Whether so many rows changed since the last use that evaluating them one by one is slow.

        Changes that no cached result depends on do not count: each binding changes the labels of a
        placed pod."""
        log = self._log
        if log.generation - self.generation <= CHANGES_MAX:
            return False
        facets = int(Facet.NODE)
        for cache in self.caches.all:
            facets |= cache.facets
        return log.few_since(self.generation, CHANGES_MAX, facets) is None

    def row_counts(self) -> Mapping[str, RowCounts]:
        """The rows that each instance was evaluated for, by instance, up to now."""
        counts: dict[str, RowCounts] = defaultdict(RowCounts)
        for name in (*self.caches.filters, *self.caches.scores):
            counts[name].add(RowCounts(self.evaluated_count, self.evaluated_count))
        for name, own in self.caches.counts.items():
            counts[name].add(own)
        for ranking in self.rankings.values():
            ranking.add_counts(counts)
        return counts

    # ---- rankings -------------------------------------------------------------------------

    def ranking_for(self, state: CycleState, *, is_scored: bool) -> RankedNodes | None:
        """The ranking for the plugins that this cycle does not skip. ``is_scored``: PreScore ran,
        and the cycle knows which Score plugins skip."""
        for key, ranking in reversed(self.rankings.items()):
            if ranking.plan.fits(state, is_scored=is_scored):
                self.rankings[key] = self.rankings.pop(key)
                return ranking
        return None

    def add_ranking(self, ranking: RankedNodes) -> bool:
        """Add a ranking. Returns whether another one was dropped for it."""
        previous = self.rankings.get(ranking.plan.skip_set)
        if previous is not None:
            self.drop_ranking(previous)
        self.rankings[ranking.plan.skip_set] = ranking
        if len(self.rankings) <= RANKINGS_MAX:
            return False
        self.drop_ranking(next(iter(self.rankings.values())))
        return True

    def drop_ranking(self, ranking: RankedNodes) -> None:
        """Drop one ranking. The row caches that it was made from stay."""
        ranking.add_counts(self.caches.counts)
        del self.rankings[ranking.plan.skip_set]
        ranking.is_dropped = True
        if self.cells is not None and self.cells.ranking is ranking:
            self.drop_cells()
        if self.pre_state is not None and self.pre_state.ranking is None:
            self.pre_state = None

    def drop_rankings(self) -> None:
        for ranking in list(self.rankings.values()):
            self.drop_ranking(ranking)

    # ---- cells ----------------------------------------------------------------------------

    def wants_cells(self, pod: PodInfo) -> bool:
        """Whether pods of this template come so often that cells are worth making. Called for each
        pod that cells could serve."""
        if pod.shape is not self._shape:
            self._shape, self._shape_count = pod.shape, 0
        self._shape_count += 1
        return self._shape_count > self._cells_patience

    def refuse_cells(self) -> None:
        """Try less often to make cells: as the cluster is now, these pods cannot have any."""
        self._shape_count = 0
        self._cells_patience = min(4 * self._cells_patience, _CELLS_PATIENCE_MAX)

    def drop_cells(self) -> None:
        """Drop the cells. Their ranking stays."""
        cells = self.cells
        if cells is not None:
            cells.close()
            self.cells, self._shape_count = None, 0
            if cells.answered_count < _CELLS_PAY_FROM:
                self._cells_patience = min(2 * self._cells_patience, _CELLS_PATIENCE_MAX)
            else:
                self._cells_patience = _CELLS_PATIENCE_MIN

    def validate(self) -> None:
        """Recompute all rankings from the row caches. Raises AssertionError where they differ."""
        assert self.generation <= self._log.generation, "an entry is ahead of the log"
        for cache in self.caches.all:
            assert cache.generation <= self._log.generation, "a row cache is ahead of the log"
        for skip_set, ranking in self.rankings.items():
            assert ranking.plan.skip_set == skip_set, "a ranking stands under another skip set"
            assert ranking.generation <= self._log.generation, "a ranking is ahead of the log"
            ranking.validate()
            assert not ranking.is_dropped, "a ranking is dropped, and in use"
        if self.cells is not None:
            assert self.cells.ranking in self.rankings.values(), "cells of a ranking that left"
            self.cells.validate()
        shared = None if self.pre_state is None else self.pre_state.ranking
        if shared is not None and shared not in self.rankings.values():
            shared.validate()
            foreign = [each for each in shared.plan.row_caches() if each not in self.caches.all]
            assert not foreign, "a shared ranking has results for other pods"
