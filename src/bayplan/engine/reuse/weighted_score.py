"""Why a ranking is thrown away: upstream's words where it flushes its cache for the like of it.

Share: what one score plugin adds to the totals, row by row.

A normalised score follows from the extremes of all feasible nodes. As long as these stay, one row
can be scored by itself; a row that goes beyond them, or is the last that has one, ends that.
"""

from array import array
from typing import final

import numpy as np

from bayplan.engine.reuse.row_cache import CachedScores
from bayplan.framework.arithmetic import normalized
from bayplan.framework.types import MAX_NODE_SCORE, Normalizer
from bayplan.state.nodes import NodeView

# ---- out of date ----------------------------------------------------------------------------


NODES_CAME_OR_WENT = "node_missing"
TOO_MUCH_CHANGED = "expired"
OTHER_PLUGINS = "pod_incompatible"
EXTREME_MOVED = "normalize_error"
PLUGIN_FAILED = "rescore_error"


class RankingInvalid(Exception):
    """A ranking cannot be corrected row by row; the answers it was made from still hold."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


# ---- shares ---------------------------------------------------------------------------------


@final
class WeightedScore:
    """One instance's share of the totals."""

    __slots__ = (
        "_counts",
        "_high",
        "_low",
        "_raw",
        "_same",
        "kept",
        "name",
        "normalizer",
        "weight",
    )

    def __init__(self, name: str, weight: int, normalizer: Normalizer, kept: CachedScores) -> None:
        self.name = name
        self.weight = weight
        self.normalizer = normalizer
        self.kept = kept
        #: What all rows add to the totals, where their raw scores are one and the same.
        self._same: int | None = None
        #: Where they are not, and are normalised: by row, what counts among the extremes.
        self._raw: array[int] | None = None
        self._low = self._high = 0
        #: How many rows have the lowest and the highest raw score.
        self._counts = [0, 0]

    def begin(self, nodes: NodeView) -> None:
        """Take the extremes of the feasible nodes, at least one."""
        if self.normalizer is Normalizer.NONE:
            return
        if self.kept.same is not None:
            score = normalized(self.normalizer, np.array([self.kept.same])).item()
            self._same = _checked(score) * self.weight
        else:
            raw = self.kept.of(nodes)
            self._low, self._high = int(raw.min()), int(raw.max())
            self._counts = [int((raw == bound).sum()) for bound in (self._low, self._high)]
            by_row = np.zeros(len(self.kept.known), np.int64)
            by_row[nodes.rows] = raw
            self._raw = array("q", by_row.tobytes())

    def enter(self, row: int) -> int:
        """A row has become feasible: what it adds to its total. Raises OutOfDate."""
        if self._same is not None:
            if self.kept.same is None:
                raise RankingInvalid(EXTREME_MOVED)
            return self._same
        score = self.kept.of_row(row)
        if self.normalizer is Normalizer.NONE:
            return _checked(score) * self.weight
        if self._raw is None or not self._low <= score <= self._high or row >= len(self._raw):
            raise RankingInvalid(EXTREME_MOVED)
        self._raw[row] = score
        self._counts[0] += score == self._low
        self._counts[1] += score == self._high
        normal = _normalized_one(self.normalizer, score, self._low, self._high)
        return _checked(normal) * self.weight

    def leave(self, row: int) -> None:
        """A row is feasible no more, or not with this score."""
        if self._raw is not None:
            score = self._raw[row]
            self._counts[0] -= score == self._low
            self._counts[1] -= score == self._high

    def check(self) -> None:
        """Raises OutOfDate where no row has one of the extremes any more."""
        if self.normalizer is Normalizer.NONE:
            return
        if self._raw is not None:
            is_current = all(self._counts)
        else:
            is_current = self._same is not None and self.kept.same is not None
        if not is_current:
            raise RankingInvalid(EXTREME_MOVED)

    @property
    def needs_no_extremes(self) -> bool:
        """Whether a score counts the same whichever nodes are feasible."""
        return self.normalizer is Normalizer.NONE or self.kept.same is not None

    @property
    def has_extremes(self) -> bool:
        return self._raw is not None

    @property
    def bytes_used(self) -> int:
        return 0 if self._raw is None else self._raw.itemsize * len(self._raw)


def _checked(score: int) -> int:
    """Raises OutOfDate: whoever asks in full tells whose score is out of range."""
    if not 0 <= score <= MAX_NODE_SCORE:
        raise RankingInvalid(PLUGIN_FAILED)
    return score


def _normalized_one(normalizer: Normalizer, score: int, low: int, high: int) -> int:
    """What `normalized` gives one of the scores between these extremes."""
    return normalized(normalizer, np.array([score, low, high])).item(0)
