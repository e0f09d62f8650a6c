"""Likes: for pods that are alike, whose answers are kept and who must be asked each time."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import final

from bayplan.engine.kept_answers import KeptScores, KeptVerdicts, RowCounts
from bayplan.engine.shares import Share
from bayplan.framework.interface import CycleState, Normalizer, NormalizeScorePlugin
from bayplan.framework.profile import ProfilePlugins
from bayplan.framework.score_table import ScoreTable


@dataclass(frozen=True, slots=True)
class Like:
    """What is kept for one pod's like, of all that was not skipped, and who must be asked."""

    filters: Sequence[tuple[str, KeptVerdicts]]
    shares: Sequence[Share]
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

    def all_kept(self) -> Sequence[KeptVerdicts | KeptScores]:
        return [*(kept for _, kept in self.filters), *(share.kept for share in self.shares)]

    @property
    def is_whole(self) -> bool:
        """Whether nobody need be asked."""
        return not self.asked_filters and not self.asked_scores


@final
class Likes:
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
        verdicts: Mapping[str, KeptVerdicts],
        kept_scores: Mapping[str, KeptScores],
        state: CycleState,
        scored: ScoreTable | None,
        counts: Mapping[str, RowCounts],
    ) -> Like | None:
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
        return Like(
            filters=[(name, verdicts[name]) for name in kept_filters],
            shares=shares,
            skipped_filters=set(state.skip_filter_plugins),
            skipped_scores=set(state.skip_score_plugins) if scored is not None else None,
            counts=counts,
            asked_filters=_asked(filters, kept_filters),
            asked_scores=[name for name in scores if name not in shared],
        )

    def _share(self, name: str, kept: KeptScores | None) -> Share | None:
        normalizer = self._normalizers[name]
        if kept is None or normalizer is None:
            return None
        return Share(name, self._weights[name], normalizer, kept)


def _asked(filters: Sequence[str], kept: Sequence[str]) -> Sequence[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    before_count = 0
    for name in filters:
        if name in kept:
            before_count += 1
        else:
            found.append((before_count, name))
    return found
