"""Likes: for pods that are alike, whose answers are kept and who must be asked each time.

AlikeNodes: for one pod's like, what became of feasible nodes that took a pod.

A node that is now like one that took a pod before has the same verdict and the same scores, as far
as these follow from its amounts: nobody need be asked. See state.alike_rows.

SparedRows: how often instances were not asked about a node, added up when somebody looks.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import final

from bayplan.engine.reuse.row_cache import ALIKE_MAX, CachedFilterResults, CachedScores, RowCounts
from bayplan.engine.reuse.weighted_score import WeightedScore
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import NormalizeScorePlugin
from bayplan.framework.profile import ProfilePlugins
from bayplan.framework.score_table import ScoreTable
from bayplan.framework.types import Normalizer
from bayplan.state.node_table import NodeTable

# ---- likes ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """What is kept for one pod's like, of all that was not skipped, and who must be asked."""

    filters: Sequence[tuple[str, CachedFilterResults]]
    shares: Sequence[WeightedScore]
    skipped_filters: Set[str]
    #: None: PreScore was not asked, for fewer than two nodes were feasible.
    skipped_scores: Set[str] | None
    counts: Mapping[str, RowCounts]
    #: Instances that look across nodes or do not sign, in order; (how many of ``filters`` come
    #: before it, instance).
    asked_filters: Sequence[tuple[int, str]] = ()
    asked_scores: Sequence[str] = ()

    def suits(self, state: CycleState, *, scored: bool) -> bool:
        """Whether an attempt asks these plugins. ``scored``: PreScore has said, too, who is
        skipped."""
        return state.skip_filter_plugins == self.skipped_filters and (
            not scored or state.skip_score_plugins == self.skipped_scores
        )

    def follows_amounts(self, facets: int) -> bool:
        """Whether all that is kept and follows from these facets follows from a node's amounts
        alone, and counts the same whichever nodes are feasible."""
        shares = [share for share in self.shares if share.kept.facets & facets]
        kept = [kept for _, kept in self.filters if kept.facets & facets]
        return all(each.by_amounts for each in (*kept, *(share.kept for share in shares))) and all(
            share.normalizer is Normalizer.NONE for share in shares
        )

    def all_kept(self) -> Sequence[CachedFilterResults | CachedScores]:
        return [*(kept for _, kept in self.filters), *(share.kept for share in self.shares)]

    @property
    def is_whole(self) -> bool:
        """Whether nobody need be asked."""
        return not self.asked_filters and not self.asked_scores


@final
class EvaluationPlans:
    """Sorts out one profile's plugins."""

    def __init__(self, plugins: ProfilePlugins) -> None:
        self._filters = [plugin.instance_name for plugin in plugins.filter]
        self._weights = {plugin.instance_name: weight for plugin, weight in plugins.score}
        #: None: a function of the plugin's own, which may look across nodes.
        self._normalizers: dict[str, Normalizer | None] = {
            plugin.instance_name: (
                None if isinstance(plugin, NormalizeScorePlugin) else plugin.normalizer
            )
            for plugin, _ in plugins.score
        }

    def of(
        self,
        verdicts: Mapping[str, CachedFilterResults],
        kept_scores: Mapping[str, CachedScores],
        state: CycleState,
        scored: ScoreTable | None,
        counts: Mapping[str, RowCounts],
    ) -> EvaluationPlan | None:
        """From a complete answer. None: nobody's answers are kept."""
        filters = [n for n in self._filters if n not in state.skip_filter_plugins]
        kept_filters = [name for name in filters if name in verdicts]
        # Fewer than two nodes are feasible: nobody was asked to score, and nobody need be.
        scores = self._weights if scored is not None else ()
        scores = [n for n in scores if n not in state.skip_score_plugins]
        shares = [share for name in scores if (share := self._share(name, kept_scores.get(name)))]
        if (len(kept_filters), len(shares)) != (len(filters), len(scores)):
            # Whoever filters besides moves the extremes from one pod to the next.
            shares = [share for share in shares if share.needs_no_extremes]
        if not (kept_filters or shares):
            return None
        shared = {share.name for share in shares}
        return EvaluationPlan(
            filters=[(name, verdicts[name]) for name in kept_filters],
            shares=shares,
            skipped_filters=set(state.skip_filter_plugins),
            skipped_scores=set(state.skip_score_plugins) if scored is not None else None,
            counts=counts,
            asked_filters=_asked(filters, kept_filters),
            asked_scores=[name for name in scores if name not in shared],
        )

    def _share(self, name: str, kept: CachedScores | None) -> WeightedScore | None:
        normalizer = self._normalizers[name]
        if kept is None or normalizer is None:
            return None
        return WeightedScore(name, self._weights[name], normalizer, kept)


def _asked(filters: Sequence[str], kept: Sequence[str]) -> Sequence[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    before_count = 0
    for name in filters:
        if name in kept:
            before_count += 1
        else:
            found.append((before_count, name))
    return found


# ---- alike nodes ----------------------------------------------------------------------------


@final
class NodeEquivalence:
    """By the number of rows that are alike."""

    __slots__ = ("_alike", "_kept", "_log", "_of_number", "is_used")

    def __init__(self, table: NodeTable, like: EvaluationPlan, placed: int) -> None:
        """``placed``: the facets that a placed pod changes, and alike nodes are alike in."""
        self._alike = table.resources.alike
        self._log = table.log
        self._kept = [kept for kept in like.all_kept() if kept.facets & placed]
        self.is_used = like.follows_amounts(placed)
        #: (number of its standing, what the shares that changed come to)
        self._of_number: dict[int, tuple[int, int]] = {}

    def learn(self, row: int, standing: int, total: int) -> None:
        """What became of a row. ``total``: of the shares that changed; of a feasible one."""
        if self.is_used:
            if len(self._of_number) >= ALIKE_MAX:
                self._of_number.clear()
            self._of_number[self._alike.of_row(row)] = standing, total

    def find(self, row: int) -> tuple[int, int] | None:
        """The same of one that is now like this row; None: none was."""
        return self._of_number.get(self._alike.of_row(row))

    def renew(self, row: int, *, is_wanted: bool) -> bool:
        """What is kept of a row whose amounts alone changed, by the newest change. False: somebody
        must be asked. ``is_wanted``: the row is feasible."""
        number, since = self._alike.of_row(row), self._log.generation - 1
        for kept in self._kept:  # noqa: SIM110 - asked for every pod, and twice as fast
            if not kept.renew(since, row, number, is_wanted=is_wanted):
                return False
        return True

    def forget(self) -> None:
        """All rows may have changed."""
        self._of_number.clear()


# ---- spared rows ----------------------------------------------------------------------------


@final
class SparedRows:
    """Of one pod's like."""

    __slots__ = ("_like", "_placed", "followed_count", "judged_count", "scored_count")

    def __init__(self, like: EvaluationPlan, placed: int) -> None:
        """``placed``: the facets that a placed pod changes, and alike nodes are alike in."""
        self._like = like
        self._placed = placed
        #: Nodes that were judged, and scored, without asking or by asking about one of them.
        self.judged_count = self.scored_count = 0
        #: Nodes that took a pod and were found to be like others.
        self.followed_count = 0

    def add_up(self) -> None:
        """Add what came since the last time to the instances' counts."""
        counts = self._like.counts
        for name, kept in self._like.filters:
            self._add(counts[name], self.judged_count, kept.facets)
        for share in self._like.shares:
            self._add(counts[share.name], self.scored_count, share.kept.facets)
        self.judged_count = self.scored_count = self.followed_count = 0

    def _add(self, counts: RowCounts, looked_up: int, facets: int) -> None:
        # A row that was judged anew counts as asked, though what one like it was answered did.
        anew = self.followed_count if facets & self._placed else 0
        counts.kept += looked_up - anew
        counts.asked += anew
