"""SparedRows: how often instances were not asked about a node, added up when somebody looks."""

from typing import final

from bayplan.engine.kept_answers import RowCounts
from bayplan.engine.likes import Like


@final
class SparedRows:
    """Of one pod's like."""

    __slots__ = ("_like", "_placed", "followed_count", "judged_count", "scored_count")

    def __init__(self, like: Like, placed: int) -> None:
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
