"""WeightedScore: what one score plugin adds to the totals, row by row.

A normalized score depends on the lowest and highest raw score of all feasible nodes. While these
extremes stay, one row can be scored by itself. A row beyond the extremes, or the departure of the
last row that has one of them, invalidates the ranking.
"""

from array import array
from typing import final

import numpy as np

from bayplan.engine.reuse.row_cache import CachedScores
from bayplan.framework.arithmetic import normalized
from bayplan.framework.types import MAX_NODE_SCORE, Normalizer
from bayplan.journal import PluginScore
from bayplan.state.columns import Rows
from bayplan.state.nodes import NodeView

#: Why a ranking was dropped: upstream's words for why it flushes its cached ranking.
NODES_CAME_OR_WENT = "node_missing"
TOO_MUCH_CHANGED = "expired"
OTHER_PLUGINS = "pod_incompatible"
EXTREME_MOVED = "normalize_error"
PLUGIN_FAILED = "rescore_error"

#: Journal lines are remembered for at most so many raw scores.
_LINES_MAX = 1024


class RankingInvalid(Exception):
    """A ranking cannot be corrected row by row. The cached results that it came from stay valid."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@final
class WeightedScore:
    """One instance's part of the totals."""

    __slots__ = (
        "_counts",
        "_high",
        "_lines",
        "_low",
        "_raw",
        "_same",
        "cache",
        "name",
        "normalizer",
        "weight",
    )

    def __init__(self, name: str, weight: int, normalizer: Normalizer, cache: CachedScores) -> None:
        self.name = name
        self.weight = weight
        self.normalizer = normalizer
        self.cache = cache
        #: What every row adds, where all raw scores are the same and are normalized.
        self._same: int | None = None
        #: By row, the raw score that counts among the extremes, where raw scores differ and are
        #: normalized.
        self._raw: array[int] | None = None
        self._low = self._high = 0
        #: How many rows have the lowest and the highest raw score.
        self._counts = [0, 0]
        #: By raw score; valid as long as the extremes.
        self._lines: dict[int, PluginScore] = {}

    def start(self, nodes: NodeView) -> None:
        """Take the extremes of the feasible nodes, at least one."""
        if self.normalizer is Normalizer.NONE:
            return
        if self.cache.same is not None:
            score = normalized(self.normalizer, np.array([self.cache.same])).item()
            self._same = _checked(score) * self.weight
        else:
            raw = self.cache.of(nodes)
            self._low, self._high = int(raw.min()), int(raw.max())
            self._counts = [int((raw == bound).sum()) for bound in (self._low, self._high)]
            by_row = np.zeros(len(self.cache.cached), np.int64)
            by_row[nodes.table.rows] = raw
            self._raw = array("q", by_row.tobytes())

    def add_row(self, row: int) -> int:
        """A row became feasible: what it adds to its total. Raises RankingInvalid."""
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
        """A row is no longer feasible, or no longer has this score."""
        if self._raw is not None:
            score = self._raw[row]
            self._counts[0] -= score == self._low
            self._counts[1] -= score == self._high

    def check(self) -> None:
        """Raises RankingInvalid where no row has one of the extremes any more."""
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

    def line(self, row: int) -> PluginScore:
        """The cached score of a row with a total, for the journal."""
        raw = self.cache.of_row(row)
        return self._lines.get(raw) or self._line_of(raw)

    def lines(self, rows: Rows) -> list[PluginScore]:
        """The same for some rows."""
        if self.cache.same is not None:
            return [self.line(0)] * len(rows)
        lines, raws = self._lines, self.cache.of_rows(rows)
        if not lines.keys() >= set(raws):
            return [lines.get(raw) or self._line_of(raw) for raw in raws]
        return list(map(lines.__getitem__, raws))

    def _line_of(self, raw: int) -> PluginScore:
        normal = raw if self.normalizer is Normalizer.NONE else self._normal(raw)
        if len(self._lines) >= _LINES_MAX:
            self._lines.clear()
        line = PluginScore(self.name, raw, normal, normal * self.weight)
        self._lines[raw] = line
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
    """Raises RankingInvalid: the full evaluation names the plugin whose score is out of range."""
    if not 0 <= score <= MAX_NODE_SCORE:
        raise RankingInvalid(PLUGIN_FAILED)
    return score


def _normalized_one(normalizer: Normalizer, score: int, low: int, high: int) -> int:
    """What `normalized` gives one of the scores between these extremes."""
    return normalized(normalizer, np.array([score, low, high])).item(0)
