"""Picks: for one pod's like, every node's verdict and total, kept current row by row.

Where all plugins that have something to say about a pod are row-wise, a repeat placement needs no
pass over the nodes: the few rows that changed are judged again, by the plugins' one-row forms, and
move in the ranking. Normalised scores are corrected, not recomputed, until an extreme moves.
"""

from array import array
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt

from bayplan.engine.kept_answers import PASSES, UNKNOWN, KeptScores, KeptVerdicts, RowCounts
from bayplan.engine.ranking import Ranking
from bayplan.engine.selection import Choice
from bayplan.framework.arithmetic import normalized
from bayplan.framework.calls import Calls
from bayplan.framework.filtering import Entry, FilterOutcome
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, Normalizer, Verdict
from bayplan.framework.score_table import PluginScores, ScoreTable, total_scores
from bayplan.rng import tie_index
from bayplan.state.change_log import Facet
from bayplan.state.columns import Int64s, Rows
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo

#: More changes than this since the last time are judged faster as arrays.
CHANGES_MAX = 16

_NO_NODE = 0
_FEASIBLE = 1
_NUMBER_MAX = 2**16 - 1

#: How a numbered rejection came about: (place among the filters, number of its verdict).
_Origin = tuple[int, int]


#: Why picks were thrown away: upstream's words where it flushes its cache for the like of it.
NODES_CAME_OR_WENT = "node_missing"
TOO_MUCH_CHANGED = "expired"
OTHER_PLUGINS = "pod_incompatible"
EXTREME_MOVED = "normalize_error"
PLUGIN_FAILED = "rescore_error"


class OutOfDate(Exception):
    """These picks cannot be corrected row by row; the answers they were made from still hold."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@final
class Share:
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

    def __init__(self, name: str, weight: int, normalizer: Normalizer, kept: KeptScores) -> None:
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
                raise OutOfDate(EXTREME_MOVED)
            return self._same
        score = self.kept.of_row(row)
        if self.normalizer is Normalizer.NONE:
            return _checked(score) * self.weight
        if self._raw is None or not self._low <= score <= self._high or row >= len(self._raw):
            raise OutOfDate(EXTREME_MOVED)
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
        if self._raw is not None and not all(self._counts):
            raise OutOfDate(EXTREME_MOVED)

    @property
    def has_extremes(self) -> bool:
        return self._raw is not None

    @property
    def bytes_used(self) -> int:
        return 0 if self._raw is None else self._raw.itemsize * len(self._raw)


@dataclass(frozen=True, slots=True)
class Like:
    """What the picks of one pod's like are made of: all that was not skipped."""

    filters: Sequence[tuple[str, KeptVerdicts]]
    shares: Sequence[Share]
    skipped_filters: Set[str]
    #: None: PreScore was not asked, for fewer than two nodes were feasible.
    skipped_scores: Set[str] | None
    counts: Mapping[str, RowCounts]


@final
class Asking:
    """Who is asked what about single rows, in one attempt."""

    __slots__ = ("_node", "_nodes", "_row", "calls", "pod", "state")

    def __init__(self, calls: Calls, state: CycleState, pod: PodInfo, nodes: NodeView) -> None:
        self.calls = calls
        self.state = state
        self.pod = pod
        self._nodes = nodes
        self._row = -1
        self._node: NodeInfo | None = None

    def node(self, row: int) -> NodeInfo:
        """The same for all that ask about one row."""
        if self._node is None or row != self._row:
            self._row, self._node = row, self._nodes.info_of_row(row)
        return self._node


#: (place among the filters, instance, what is kept of it)
_Filters = Sequence[tuple[int, str, KeptVerdicts]]


class _Readers(NamedTuple):
    """Whose answers follow from some facets. The others need not even know of a change."""

    kept: Sequence[KeptVerdicts | KeptScores]
    filters: _Filters


@final
class Picks:
    """Every node's verdict and total for one pod's like."""

    def __init__(
        self, table: NodeTable, like: Like, outcome: FilterOutcome, scored: ScoreTable | None
    ) -> None:
        """From a complete answer. ``scored``: None where fewer than two nodes were feasible.

        Raises OutOfDate where it cannot be kept current row by row.
        """
        self._table = table
        self._like = like
        self._order = table.draw_order()
        self._places = table.draw_places()
        self._facets = int(Facet.NODE)
        for kept in (*(k for _, k in like.filters), *(share.kept for share in like.shares)):
            self._facets |= kept.facets
        self._origins: dict[_Origin, int] = {}
        self._first = array("H", bytes(2 * table.capacity))
        #: By number of the rejection; of _FEASIBLE: how many nodes are.
        self._counts = [0] * (_FEASIBLE + 1)
        #: Feasible rows whose totals nobody needed yet.
        self._unscored: set[int] = set()
        self._totals = array("q", bytes(8 * table.capacity))
        self._filters = [(index, name, kept) for index, (name, kept) in enumerate(like.filters)]
        #: By the facets that changed.
        self._readers: dict[int, _Readers] = {}
        #: How often this was looked at, and how many feasible nodes that made.
        self.repeat_count = self.scored_count = 0
        self._read(outcome)
        self._ranking = self._rank(outcome, scored)
        #: Those whose extremes may move.
        self._moving = [share for share in like.shares if share.has_extremes]
        self.generation = table.log.generation

    # ---- current --------------------------------------------------------------------------

    def refresh(self, asking: Asking) -> None:
        """Judge the rows that changed since the last time. Raises OutOfDate: the picks are then to
        be thrown away."""
        if asking.state.skip_filter_plugins != self._like.skipped_filters:
            raise OutOfDate(OTHER_PLUGINS)
        if self._table.draw_order() is not self._order:
            raise OutOfDate(NODES_CAME_OR_WENT)
        if self._table.capacity != len(self._first):
            # It grew for pods whose nodes are not known.
            raise OutOfDate(NODES_CAME_OR_WENT)
        self.repeat_count += 1
        log = self._table.log
        if log.generation == self.generation:
            return
        changes = log.few_since(self.generation, CHANGES_MAX)
        if changes is None:
            raise OutOfDate(TOO_MUCH_CHANGED)
        bits, rows = 0, set[int]()
        for row, changed in changes:
            bits |= changed
            if changed & self._facets:
                rows.add(row)
        readers = self._readers.get(bits) or self._readers_of(bits)
        for kept in readers.kept:
            kept.keep_up(self.generation, changes)
        for row in rows:
            self._judge_anew(row, readers.filters, asking)
        self.generation = log.generation

    def _readers_of(self, bits: int) -> "_Readers":
        like = self._like
        all_kept = (*(k for _, k in like.filters), *(share.kept for share in like.shares))
        found = self._readers[bits] = _Readers(
            kept=[kept for kept in all_kept if kept.facets & bits],
            filters=[f for f in self._filters if f[2].facets & bits],
        )
        return found

    def _judge_anew(self, row: int, changed: "_Filters", asking: Asking) -> None:
        """``changed``: who may judge a row otherwise than before."""
        before, now = self._first[row], _NO_NODE
        if before == _FEASIBLE:
            self._drop(row)
        if self._table.nodes[row] is not None:
            now = self._verdict(row, changed if before == _FEASIBLE else self._filters, asking)
        self._counts[before] -= 1
        self._counts[now] += 1
        self._first[row] = now
        if now == _FEASIBLE:
            self._unscored.add(row)

    def _verdict(self, row: int, filters: "_Filters", asking: Asking) -> int:
        """The number of the first rejection of a row by these, or _FEASIBLE."""
        for index, name, kept in filters:
            number = kept.ids.item(row)
            if number == UNKNOWN:
                number = kept.learn_one(row, self._asked_verdict(name, row, asking))
            if number != PASSES:
                return self._number(index, number)
        return _FEASIBLE

    def _asked_verdict(self, name: str, row: int, asking: Asking) -> Verdict:
        counts = self._like.counts[name]
        counts.asked += 1
        counts.kept -= 1
        try:
            return asking.calls.filter_row[name](asking.state, asking.pod, asking.node(row))
        except Exception as problem:
            raise OutOfDate(PLUGIN_FAILED) from problem

    def score(self, asking: Asking) -> None:
        """Have totals of all feasible nodes, at least two. Raises as `refresh`."""
        like = self._like
        if asking.state.skip_score_plugins != like.skipped_scores:
            raise OutOfDate(OTHER_PLUGINS)
        self.scored_count += self._counts[_FEASIBLE]
        if self._unscored:
            for row in self._unscored:
                self._rank_one(row, asking)
            self._unscored.clear()
            for share in self._moving:
                share.check()

    def _rank_one(self, row: int, asking: Asking) -> None:
        total = 0
        for share in self._like.shares:
            kept = share.kept
            if not kept.known.item(row):
                kept.learn_one(row, self._asked_score(share.name, row, asking))
            total += share.enter(row)
        self._totals[row] = total
        self._ranking.add(self._places.item(row), total)

    def _asked_score(self, name: str, row: int, asking: Asking) -> int:
        counts = self._like.counts[name]
        counts.asked += 1
        counts.kept -= 1
        try:
            score = asking.calls.score_row[name](asking.state, asking.pod, asking.node(row))
        except Exception as problem:
            raise OutOfDate(PLUGIN_FAILED) from problem
        if type(score) is not int:
            raise OutOfDate(PLUGIN_FAILED)
        return score

    def _drop(self, row: int) -> None:
        """A feasible row is not ranked any more."""
        if row in self._unscored:
            self._unscored.discard(row)
            return
        self._ranking.remove(self._places.item(row), self._totals[row])
        for share in self._moving:
            share.leave(row)

    def count_rows(self) -> None:
        """Add up what was not asked since the last time."""
        like, counts = self._like, self._like.counts
        for name, _ in like.filters:
            counts[name].kept += self.repeat_count * self._table.node_count
        for share in like.shares:
            counts[share.name].kept += self.scored_count
        self.repeat_count = self.scored_count = 0

    # ---- answers --------------------------------------------------------------------------

    @property
    def feasible_count(self) -> int:
        return self._counts[_FEASIBLE]

    def only(self) -> Choice:
        """The one feasible node."""
        row = next(iter(self._unscored), None)
        if row is None:
            row = self._order.item(self._ranking.best()[0])
        return Choice(self._table.names[row])

    def choose(self, seed: int, pod_uid: str, attempt: int) -> Choice:
        """The node with the highest total; among equals the one that is drawn."""
        level = self._ranking.best()
        count = len(level)
        index = tie_index(seed, pod_uid, attempt, count) if count > 1 else 0
        name = self._table.names[self._order.item(level[index])]
        return Choice(name, count, index)

    def feasible_rows(self) -> Rows | None:
        """None: every row of the table."""
        if self.feasible_count == self._table.row_count:
            return None
        return np.flatnonzero(self._numbers() == _FEASIBLE)

    def outcome(self, nodes: NodeView) -> FilterOutcome:
        """The same as arrays, over all nodes."""
        numbers = self._numbers()[nodes.selection]
        found = FilterOutcome(nodes, numbers == _FEASIBLE)
        for (index, verdict_number), number in sorted(self._origins.items()):
            if self._counts[number]:
                name, kept = self._like.filters[index]
                positions = np.flatnonzero(numbers == number)
                for code, reasons in kept.verdicts[verdict_number]:
                    found.entries.append(Entry(name, code, reasons, positions))
        return found

    def score_table(self, nodes: NodeView) -> ScoreTable:
        """The same as arrays, over the feasible nodes."""
        columns: list[PluginScores] = []
        for share in self._like.shares:
            raw = share.kept.of(nodes)
            normal = normalized(share.normalizer, raw)
            columns.append(PluginScores(share.name, share.weight, raw, normal))
        return ScoreTable(nodes, columns, total_scores(columns, len(nodes)))

    @property
    def bytes_used(self) -> int:
        of_shares = sum(share.bytes_used for share in self._like.shares)
        return 10 * len(self._first) + self._ranking.bytes_used + of_shares

    # ---- inside ---------------------------------------------------------------------------

    def _read(self, outcome: FilterOutcome) -> None:
        """Number the first rejections of all nodes."""
        numbers, rows = self._numbers(), outcome.nodes.rows
        numbers[rows[outcome.feasible]] = _FEASIBLE
        self._counts[_FEASIBLE] = int(np.count_nonzero(outcome.feasible))
        for index, (name, kept) in enumerate(self._like.filters):
            rejected = [e.positions for e in outcome.entries if e.plugin == name]
            if not rejected:
                continue
            some = rows[np.unique(np.concatenate(rejected))]
            for verdict_number in np.unique(kept.ids[some]).tolist():
                number = self._number(index, verdict_number)
                same = some[kept.ids[some] == verdict_number]
                numbers[same] = number
                self._counts[number] = len(same)

    def _rank(self, outcome: FilterOutcome, scored: ScoreTable | None) -> Ranking:
        rows = outcome.nodes.rows[outcome.feasible]
        if scored is None:
            self._unscored.update(rows.tolist())
            return Ranking(np.zeros(0, np.int64), np.zeros(0, np.intp))
        for share in self._like.shares:
            share.begin(scored.nodes)
        np.frombuffer(self._totals, np.int64)[rows] = scored.totals
        by_place = self._order[np.isin(self._order, rows, assume_unique=True)]
        totals: Int64s = np.frombuffer(self._totals, np.int64)[by_place]
        return Ranking(totals, self._places[by_place])

    def _number(self, index: int, verdict_number: int) -> int:
        number = self._origins.get((index, verdict_number))
        if number is None:
            number = self._origins[(index, verdict_number)] = len(self._counts)
            self._counts.append(0)
            if number > _NUMBER_MAX:
                raise OutOfDate(TOO_MUCH_CHANGED)
        return number

    def _numbers(self) -> "npt.NDArray[np.uint16]":
        return np.frombuffer(self._first, np.uint16)


def _checked(score: int) -> int:
    """Raises OutOfDate: whoever asks in full tells whose score is out of range."""
    if not 0 <= score <= MAX_NODE_SCORE:
        raise OutOfDate(PLUGIN_FAILED)
    return score


def _normalized_one(normalizer: Normalizer, score: int, low: int, high: int) -> int:
    """What `normalized` gives one of the scores between these extremes."""
    return normalized(normalizer, np.array([score, low, high])).item(0)
