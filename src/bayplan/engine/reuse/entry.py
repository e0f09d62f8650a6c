"""SignatureEntry: what is cached for all pods that no row-wise plugin can tell apart.

Each row-wise plugin's results are cached under its own part of the signature, so entries whose
signatures differ in another plugin's part share the row cache. Filter and Score run as always, but
for cached rows the plugin is not called. Plugins that look across nodes, or do not sign, are called
for all nodes.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import numpy as np

from bayplan.engine.reuse.evaluation_plan import SkipSet
from bayplan.engine.reuse.ranked_nodes import RankedNodes
from bayplan.engine.reuse.row_cache import (
    UNKNOWN,
    CachedFilterResults,
    CachedScores,
    RowCache,
    RowCounts,
)
from bayplan.framework.cycle_state import CallFilter, CallScore, CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.status import Rejection
from bayplan.state.change_log import ChangeLog
from bayplan.state.cluster_objects import ClusterObjects
from bayplan.state.columns import NodeMask, NodeScores, Rows, all_true, is_any, places_of
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

#: Rankings that one entry has at most, each for another set of skipping plugins.
RANKINGS_MAX = 4


@final
class ObjectGeneration:
    """Counts the changes, other than those of rows, that PreFilter and PreScore depend on."""

    def __init__(self, table: NodeTable, objects: ClusterObjects) -> None:
        self._terms = table.placed_terms
        self._objects = objects

    def now(self) -> int:
        """Another number after an object changed, or a pod with affinity terms came or went."""
        return self._objects.change_count + self._terms.change_count


@final
class CachedPreState:
    """The CycleState after PreFilter and PreScore of a cycle that a ranking answered.

    The plugins run for one pod of a template, and again only when something that their notes
    depend on changed: see `Caching.pre_state_per_template`.
    """

    __slots__ = ("_object_generation", "_owners", "_shape", "_state", "is_scored", "ranking")

    def __init__(
        self,
        pod: PodInfo,
        object_generation: int,
        ranking: RankedNodes,
        state: CycleState,
        *,
        is_scored: bool,
    ) -> None:
        """``is_scored``: PreScore ran as well."""
        self._shape = pod.shape
        self._owners = pod.metadata.owner_references
        self._object_generation = object_generation
        self._state = state.clone()
        self.ranking = ranking
        self.is_scored = is_scored

    def fits(self, pod: PodInfo, object_generation: int) -> bool:
        """Whether PreFilter and PreScore would leave the same notes for ``pod``."""
        return (
            pod.shape is self._shape
            and object_generation == self._object_generation
            and pod.metadata.owner_references == self._owners
        )

    def state(self) -> CycleState:
        """A copy that the cycle may write to."""
        return self._state.clone()


@final
class SignatureEntry:
    """The `CachedResults` of one signature."""

    __slots__ = (
        "_counts",
        "_log",
        "bytes_counted",
        "cycle_count",
        "example",
        "filter_caches",
        "generation",
        "is_vectorized",
        "pod_count",
        "pre_state",
        "rankings",
        "row_caches",
        "score_caches",
        "uncached",
    )

    def __init__(
        self,
        log: ChangeLog,
        filter_caches: Mapping[str, CachedFilterResults],
        score_caches: Mapping[str, CachedScores],
        example: str,
    ) -> None:
        """By instance. ``example``: one of the pods, "namespace/name"."""
        self._log = log
        self.filter_caches = filter_caches
        self.score_caches = score_caches
        self.row_caches: Sequence[RowCache] = [*filter_caches.values(), *score_caches.values()]
        self.example = example
        #: Instances that are evaluated on all nodes for each of these pods, and why; see
        #: `ResultCache.prevented_counts`.
        self.uncached: Sequence[tuple[str, str]] = ()
        #: Whether none of the plugins with a row cache is written node by node.
        self.is_vectorized = False
        #: Pods of this signature, and attempts at them.
        self.pod_count = self.cycle_count = 0
        #: By instance, without the rows that `rankings` count; see `row_counts`.
        self._counts: dict[str, RowCounts] = defaultdict(RowCounts)
        #: Of the last cycle that used this entry; -1: none did.
        self.generation = -1
        #: The one used last stands last.
        self.rankings: dict[SkipSet, RankedNodes] = {}
        #: Belongs to one of the rankings.
        self.pre_state: CachedPreState | None = None
        self.bytes_counted = 0

    @property
    def counts(self) -> Mapping[str, RowCounts]:
        """Where evaluations are counted."""
        return self._counts

    def row_counts(self) -> Mapping[str, RowCounts]:
        """By instance, up to now."""
        counts: dict[str, RowCounts] = defaultdict(RowCounts)
        for name, own in self._counts.items():
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
        """Whether another ranking had to leave for it."""
        previous = self.rankings.get(ranking.plan.skip_set)
        if previous is not None:
            self.drop_ranking(previous)
        self.rankings[ranking.plan.skip_set] = ranking
        if len(self.rankings) <= RANKINGS_MAX:
            return False
        self.drop_ranking(next(iter(self.rankings.values())))
        return True

    def drop_ranking(self, ranking: RankedNodes) -> None:
        """The row caches that it came from stay."""
        ranking.add_counts(self._counts)
        del self.rankings[ranking.plan.skip_set]
        if self.pre_state is not None and self.pre_state.ranking is ranking:
            self.pre_state = None

    def drop_rankings(self) -> None:
        for ranking in list(self.rankings.values()):
            self.drop_ranking(ranking)

    # ---- row caches -----------------------------------------------------------------------

    def catch_up(self) -> None:
        """Forget results that are no longer valid. The log is read once, and once more for each row
        cache whose rows changed."""
        since, log = self.generation, self._log
        if since < 0 or since == log.generation:
            return
        facets = log.facets_since(since)
        for cache in self.row_caches:
            cache.skip_to_now(since, facets)

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
        cache, counts = self.filter_caches.get(name), self._counts[name]
        counts.needed += len(nodes)
        if cache is None:
            counts.evaluated += len(nodes)
            return call(state, pod, nodes, feasible)
        cache.catch_up()
        unknown = _unknown(cache, nodes, feasible)
        if unknown is None:
            return cache.rejections(nodes, feasible)
        some = nodes if len(unknown) == len(nodes) else nodes.take(unknown)
        outcome = FilterOutcome(some, all_true(len(some)))
        outcome.add(name, call(state, pod, some, outcome.feasible))
        counts.evaluated += len(some)
        if outcome.error is not None:
            # An invalid answer is not cached, and is reported as if there were no cache.
            return call(state, pod, nodes, feasible)
        cache.learn(_rows_at(nodes, unknown), outcome)
        return cache.rejections(nodes, feasible)

    def score(
        self, name: str, call: CallScore, state: CycleState, pod: PodInfo, *, nodes: NodeView
    ) -> NodeScores:
        cache, counts = self.score_caches.get(name), self._counts[name]
        counts.needed += len(nodes)
        if cache is None:
            counts.evaluated += len(nodes)
            return call(state, pod, nodes)
        cache.catch_up()
        is_cached = cache.cached[nodes.table.index]
        if not is_cached.all():
            unknown = places_of(~is_cached)
            some = nodes if len(unknown) == len(nodes) else nodes.take(unknown)
            raw = call(state, pod, some)
            counts.evaluated += len(some)
            if not _is_column(raw, len(some)):
                return call(state, pod, nodes)
            cache.learn(_rows_at(nodes, unknown), raw)
        return cache.of(nodes)

    def validate(self) -> None:
        """Recompute all rankings from the row caches. Raises AssertionError where they differ."""
        assert self.generation <= self._log.generation, "an entry is ahead of the log"
        for cache in self.row_caches:
            assert cache.generation <= self._log.generation, "a row cache is ahead of the log"
        for skip_set, ranking in self.rankings.items():
            assert ranking.plan.skip_set == skip_set, "a ranking stands under another skip set"
            assert ranking.generation <= self._log.generation, "a ranking is ahead of the log"
            ranking.validate()
        rankings = [id(ranking) for ranking in self.rankings.values()]
        assert self.pre_state is None or id(self.pre_state.ranking) in rankings


def _unknown(cache: CachedFilterResults, nodes: NodeView, feasible: NodeMask) -> Rows | None:
    """Positions of feasible nodes without a cached result; None: there are none."""
    unknown = cache.ids[nodes.table.index] == UNKNOWN
    if not is_any(unknown):
        return None
    unknown &= feasible
    return places_of(unknown) if is_any(unknown) else None


def _is_column(raw: Any, count: int) -> bool:
    return getattr(raw, "dtype", None) == np.int64 and getattr(raw, "shape", None) == (count,)


def _rows_at(nodes: NodeView, positions: Rows) -> Rows:
    rows = nodes.table.index
    return positions if isinstance(rows, slice) else rows.take(positions)
