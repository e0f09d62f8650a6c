"""EvaluationPlan: the plugins that a ranking covers, and those that are called in every cycle.

A ranking covers the row-wise plugins that sign the pod. It evaluates them row by row, and caches
their results. All other plugins that have something to say about the pod are called in every cycle,
for the nodes that the ranking leaves.

A normalized score depends on the lowest and the highest raw score of all feasible nodes. While
these two extremes stay, the score of one row can be computed without the other rows: that is a
`WeightedScore`. Two events move an extreme: a row gets a raw score beyond it, or the last row that
has the extreme is no longer feasible. Then the totals of all rows are wrong, and the ranking is
dropped (`RankingInvalid`).
"""

from array import array
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple, final

import numpy as np
from msgspec import Struct

from bayplan.engine.ranking.row_cache import CachedFilterResults, CachedScores, RowCache, RowCounts
from bayplan.framework.arithmetic import normalized
from bayplan.framework.calls import Calls
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome, checked_verdict
from bayplan.framework.plugin import NormalizeScorePlugin
from bayplan.framework.profile import ProfilePlugins
from bayplan.framework.scoring import PluginScores, ScoreTable
from bayplan.framework.types import MAX_NODE_SCORE, Normalizer, Verdict
from bayplan.journal import PluginScore
from bayplan.ports import raise_interruption
from bayplan.state.columns import Rows, all_true
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo

#: Why a ranking was dropped: upstream's words for why it flushes its cached ranking.
NODES_CAME_OR_WENT = "node_missing"
TOO_MUCH_CHANGED = "expired"
OTHER_PLUGINS = "pod_incompatible"
EXTREME_MOVED = "normalize_error"
PLUGIN_FAILED = "rescore_error"

#: The number of raw scores for which journal lines are remembered.
_LINES_MAX = 1024


class RankingInvalid(Exception):
    """A ranking cannot be corrected row by row. The cached results that it came from stay valid."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@final
class WeightedScore:
    """The part of the totals that one plugin instance contributes."""

    __slots__ = (
        "_counts",
        "_high",
        "_low",
        "_raw",
        "_same",
        "cache",
        "lines",
        "name",
        "normalizer",
        "weight",
    )

    def __init__(self, name: str, weight: int, normalizer: Normalizer, cache: CachedScores) -> None:
        self.name = name
        self.weight = weight
        self.normalizer = normalizer
        self.cache = cache
        #: What every row adds to its total, if all raw scores are the same and are normalized.
        self._same: int | None = None
        #: By row, the raw score that counts among the extremes, if raw scores differ and are
        #: normalized.
        self._raw: array[int] | None = None
        self._low = self._high = 0
        #: How many rows have the lowest raw score, and how many have the highest.
        self._counts = [0, 0]
        #: By raw score, the journal's lines that `line_of` made; valid as long as the extremes.
        self.lines: dict[int, PluginScore] = {}

    def start(self, nodes: NodeView) -> None:
        """Take the extremes of the feasible nodes, at least one."""
        if self.normalizer is Normalizer.NONE:
            return
        if self.cache.same is not None:
            score = normalized(self.normalizer, np.array([self.cache.same])).item()
            self._same = _checked(score) * self.weight
        else:
            raw = self.cache.of(nodes.table.index, len(nodes))
            self._low, self._high = int(raw.min()), int(raw.max())
            self._counts = [int((raw == bound).sum()) for bound in (self._low, self._high)]
            by_row = np.zeros(len(self.cache.marks), np.int64)
            by_row[nodes.table.rows] = raw
            self._raw = array("q", by_row.tobytes())

    def add_row(self, row: int) -> int:
        """Returns what a row that became feasible adds to its total. Raises RankingInvalid."""
        if self._same is not None:
            if self.cache.same is None:
                raise RankingInvalid(EXTREME_MOVED)
            return self._same
        score = self.cache.of_row(row)
        if self.normalizer is Normalizer.NONE:
            return _checked(score) * self.weight
        if self._raw is None or not self._low <= score <= self._high or row >= len(self._raw):
            raise RankingInvalid(EXTREME_MOVED)
        self._raw[row] = score
        self._counts[0] += score == self._low
        self._counts[1] += score == self._high
        normal = _normalized_one(self.normalizer, score, self._low, self._high)
        return _checked(normal) * self.weight

    def remove_row(self, row: int) -> None:
        """Remove the score of a row that is no longer feasible, or no longer has this score."""
        if self._raw is not None:
            score = self._raw[row]
            self._counts[0] -= score == self._low
            self._counts[1] -= score == self._high

    def check(self) -> None:
        """Raises RankingInvalid if no row has one of the extremes any more."""
        if self.normalizer is Normalizer.NONE:
            return
        if self._raw is not None:
            is_current = all(self._counts)
        else:
            is_current = self._same is not None and self.cache.same is not None
        if not is_current:
            raise RankingInvalid(EXTREME_MOVED)

    def validate(self, rows: Rows) -> None:
        """``rows``: those with a total. Raises AssertionError where the counts of the extremes, or
        the raw scores that they come from, are wrong."""
        if self._raw is None:
            return
        raw = np.frombuffer(self._raw, np.int64)[rows]
        counts = [int((raw == bound).sum()) for bound in (self._low, self._high)]
        assert counts == self._counts, f"{self.name}: extremes {self._counts}, counted {counts}"
        assert not ((raw < self._low) | (raw > self._high)).any(), f"{self.name}: beyond extremes"

    def expected(self, row: int) -> int:
        """What the cached score of a row adds to its total, computed from scratch."""
        score = self.cache.of_row(row)
        if self.normalizer is Normalizer.NONE:
            return score * self.weight
        return self._normal(score) * self.weight

    def line_of(self, raw: int) -> PluginScore:
        """A raw score of a row with a total, for the journal; not in `lines` yet."""
        normal = raw if self.normalizer is Normalizer.NONE else self._normal(raw)
        if len(self.lines) >= _LINES_MAX:
            self.lines.clear()
        line = PluginScore(self.name, raw, normal, normal * self.weight)
        self.lines[raw] = line
        return line

    def _normal(self, score: int) -> int:
        bounds = (score, score) if self._raw is None else (self._low, self._high)
        return _normalized_one(self.normalizer, score, *bounds)

    @property
    def needs_no_extremes(self) -> bool:
        """Whether a score counts the same whichever nodes are feasible."""
        return self.normalizer is Normalizer.NONE or self.cache.same is not None

    @property
    def has_extremes(self) -> bool:
        return self._raw is not None

    @property
    def bytes_used(self) -> int:
        return 0 if self._raw is None else self._raw.itemsize * len(self._raw)


def _checked(score: int) -> int:
    """Check a score. Raises RankingInvalid if it is out of range; the full evaluation then names
    the plugin."""
    if not 0 <= score <= MAX_NODE_SCORE:
        raise RankingInvalid(PLUGIN_FAILED)
    return score


def _normalized_one(normalizer: Normalizer, score: int, low: int, high: int) -> int:
    """Returns what `normalized` makes of one score between these extremes."""
    return normalized(normalizer, np.array([score, low, high])).item(0)


class SkipSet(NamedTuple):
    """The plugins that skip a pod, as frozensets: with the signature, the key of a ranking."""

    filters: Set[str]
    #: The plugins that skip Score. None: PreScore did not run, because fewer than two nodes were
    #: feasible.
    scores: Set[str] | None


class EvaluationPlan(Struct, frozen=True):
    """For one signature and skip set: the cached plugins and those called in every cycle."""

    skip_set: SkipSet
    filters: Sequence[tuple[str, CachedFilterResults]]
    scores: Sequence[WeightedScore]
    #: The instances that look across nodes or do not sign, in order, as (how many of ``filters``
    #: come before it, instance).
    called_filters: Sequence[tuple[int, str]] = ()
    called_scores: Sequence[str] = ()

    def fits(self, state: CycleState, *, is_scored: bool) -> bool:
        """Whether an attempt calls these plugins. ``is_scored``: PreScore ran as well."""
        return state.skip_filter_plugins == self.skip_set.filters and (
            not is_scored or state.skip_score_plugins == self.skip_set.scores
        )

    def follows_amounts(self, facets: int) -> bool:
        """Whether all cached results that depend on these facets depend on a node's amounts alone,
        and scores count the same whichever nodes are feasible."""
        caches = [cache for cache in self.row_caches() if cache.facets & facets]
        normalizers = {s.normalizer for s in self.scores if s.cache.facets & facets}
        return all(cache.follows_amounts for cache in caches) and normalizers <= {Normalizer.NONE}

    def row_caches(self) -> Sequence[RowCache]:
        return [*(cache for _, cache in self.filters), *(score.cache for score in self.scores)]

    @property
    def is_complete(self) -> bool:
        """Whether the ranking covers every plugin that has something to say about the pod."""
        return not self.called_filters and not self.called_scores


@final
class Planner:
    """Makes the plans of one profile."""

    def __init__(self, plugins: ProfilePlugins) -> None:
        self._filters = [plugin.instance_name for plugin in plugins.filter]
        self._weights = {plugin.instance_name: weight for plugin, weight in plugins.score}
        #: By instance, how its scores are normalized. None: by a function of the plugin's own,
        #: which may look across nodes.
        self._normalizers: dict[str, Normalizer | None] = {
            plugin.instance_name: (
                None if isinstance(plugin, NormalizeScorePlugin) else plugin.normalizer
            )
            for plugin, _ in plugins.score
        }

    def plan_for(
        self,
        filter_caches: Mapping[str, CachedFilterResults],
        score_caches: Mapping[str, CachedScores],
        state: CycleState,
        scored: ScoreTable | None,
    ) -> EvaluationPlan | None:
        """The plan for the pod of a complete cycle; None if no plugin's results are cached."""
        filters = [n for n in self._filters if n not in state.skip_filter_plugins]
        cached_filters = [name for name in filters if name in filter_caches]
        # Fewer than two nodes are feasible, so no plugin scored, and none has to.
        scores = self._weights if scored is not None else ()
        scores = [n for n in scores if n not in state.skip_score_plugins]
        weighted = [w for name in scores if (w := self._weighted(name, score_caches.get(name)))]
        if len(cached_filters) != len(filters):
            # Filters that the ranking does not cover would move the extremes from one pod to the
            # next.
            weighted = [score for score in weighted if score.needs_no_extremes]
        if not (cached_filters or weighted):
            return None
        names = {score.name for score in weighted}
        skipped_scores = frozenset(state.skip_score_plugins) if scored is not None else None
        return EvaluationPlan(
            skip_set=SkipSet(frozenset(state.skip_filter_plugins), skipped_scores),
            filters=[(name, filter_caches[name]) for name in cached_filters],
            scores=weighted,
            called_filters=_called(filters, cached_filters),
            called_scores=[name for name in scores if name not in names],
        )

    def _weighted(self, name: str, cache: CachedScores | None) -> WeightedScore | None:
        normalizer = self._normalizers[name]
        if cache is None or normalizer is None:
            return None
        return WeightedScore(name, self._weights[name], normalizer, cache)


def _called(filters: Sequence[str], cached: Sequence[str]) -> Sequence[tuple[int, str]]:
    called: list[tuple[int, str]] = []
    cached_count = 0
    for name in filters:
        if name in cached:
            cached_count += 1
        else:
            called.append((cached_count, name))
    return called


@final
class SingleNodeEvaluator:
    """Calls plugins for single rows in one cycle. The plugins share one object of the node."""

    __slots__ = ("_counts", "_node", "_row", "calls", "nodes", "pod", "state")

    def __init__(
        self,
        calls: Calls,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeView,
        *,
        counts: Mapping[str, RowCounts],
    ) -> None:
        """``counts``: by instance."""
        self._counts = counts
        self.calls = calls
        self.state = state
        self.pod = pod
        self.nodes = nodes
        self._row = -1
        self._node: NodeInfo | None = None

    def node(self, row: int) -> NodeInfo:
        if self._node is None or row != self._row:
            self._row, self._node = row, self.nodes.info_of_row(row)
        return self._node

    def filter_row(self, name: str, row: int) -> Verdict:
        """Call an instance's Filter for a row. Raises RankingInvalid if it fails."""
        try:
            verdict = self.calls.filter_row[name](self.state, self.pod, self.node(row))
            return verdict if verdict == () else checked_verdict(verdict)
        except BaseException as problem:
            raise_interruption(problem)
            raise RankingInvalid(PLUGIN_FAILED) from problem

    def score_row(self, name: str, row: int) -> int:
        """Call an instance's Score for a row; returns the raw score. Raises RankingInvalid if it
        fails."""
        try:
            score = self.calls.score_row[name](self.state, self.pod, self.node(row))
        except BaseException as problem:
            raise_interruption(problem)
            raise RankingInvalid(PLUGIN_FAILED) from problem
        if type(score) is not int:
            raise RankingInvalid(PLUGIN_FAILED)
        return score

    def count(self, name: str) -> None:
        """Count one result that an instance was evaluated for, or that an equivalent node gave."""
        self._counts[name].evaluated += 1

    def filter_rows(self, name: str, rows: Rows) -> None:
        """Call an instance's Filter for many rows, and cache the results. Raises RankingInvalid if
        it fails."""
        assert self.state.cached_results is not None, "results are not cached"
        outcome = FilterOutcome(self.nodes.take_rows(lambda: rows), all_true(len(rows)))
        outcome.evaluate(name, self.calls.filter_of[name], self.state, self.pod)
        if outcome.error is not None:
            raise RankingInvalid(PLUGIN_FAILED)

    def score_rows(self, name: str, rows: Rows) -> PluginScores:
        """An instance's scores of many rows, through its row cache. Raises RankingInvalid if it
        fails."""
        nodes = self.nodes.take_rows(lambda: rows)
        try:
            return self.calls.scoring[name].column(self.state, self.pod, nodes)
        except BaseException as problem:
            raise_interruption(problem)
            raise RankingInvalid(PLUGIN_FAILED) from problem
