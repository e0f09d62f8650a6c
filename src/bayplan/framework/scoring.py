"""The score table of one cycle: per plugin instance and feasible node, raw, normalized, weighted.

The node with the highest total is chosen (`choose`).

A column is one plugin's scores: computed, checked, normalized, checked again. The checks take the
same time for any number of nodes, except the check of the range of scores.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from msgspec import Struct, field

from bayplan import rng
from bayplan.framework import filtering as scalar
from bayplan.framework.arithmetic import highest, in_score_range, normalized, uniform_score
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import NormalizeScorePlugin, ScalarScorePlugin, ScorePlugin
from bayplan.framework.status import Status
from bayplan.framework.types import MAX_NODE_SCORE, MIN_NODE_SCORE, Normalizer
from bayplan.framework.validation import RefusedAnswer, check_scores, place_of
from bayplan.journal import NodeScore, PluginScore
from bayplan.state.columns import Int64s, Mask, NodeScores, Rows, places_of
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

# ---- score table ----------------------------------------------------------------------------


class PluginScores(Struct):
    """One instance's column of the table, int64[nodes] each."""

    name: str
    weight: int
    raw: NodeScores
    normalized: NodeScores

    def lines(self, positions: Rows) -> list[PluginScore]:
        """The scores of some nodes, for the journal."""
        pairs = zip(self.raw[positions].tolist(), self.normalized[positions].tolist(), strict=True)
        name, weight = self.name, self.weight
        return [PluginScore(name, raw, final, final * weight) for raw, final in pairs]

    def line(self, position: int) -> PluginScore:
        """The score of one node, for the journal."""
        final: int = self.normalized.item(position)
        return PluginScore(self.name, self.raw.item(position), final, final * self.weight)

    @property
    def weighted(self) -> NodeScores:
        return self.normalized * self.weight if self.weight != 1 else self.normalized


# Called at every attempt; `dict[str, NodeScores]` as a factory takes three times as long.
def _no_extender_scores() -> dict[str, NodeScores]:
    return {}


class SourceColumns(Protocol):
    """Columns outside the total: of sources and tie-break keys. See score_graph."""

    @property
    def notes(self) -> Sequence[str]: ...
    def read(self) -> Sequence[PluginScores]: ...

    def column(self, name: str) -> PluginScores | None:
        """The column of a tie-break key; None if the key was skipped. Raises ScorerFailed."""
        ...


class TieStep(Struct, frozen=True):
    """One tie-break key that was compared: how many nodes tied before and after it."""

    key: str
    equal_count: int
    left_count: int


class ScoreTable(Struct):
    """All score plugins over the feasible nodes. ``totals``: int64[nodes]."""

    nodes: NodeView
    columns: Sequence[PluginScores]
    totals: Int64s
    #: Extender name → its weighted scores.
    extender_scores: dict[str, NodeScores] = field(default_factory=_no_extender_scores)
    #: bool[nodes]: the best nodes after all tie-break keys; None: no key was compared.
    tied: Mask | None = None
    tie_steps: Sequence[TieStep] = ()
    #: Set if the profile has a score graph or tie-break keys.
    reading: SourceColumns | None = None
    #: See `best`.
    _best: Mask | None = None

    @property
    def read(self) -> Sequence[PluginScores]:
        """Columns outside the total: of sources and tie-break keys."""
        return self.reading.read() if self.reading is not None else ()

    @property
    def notes(self) -> Sequence[str]:
        """Remarks on how sources were read, as sentences."""
        return self.reading.notes if self.reading is not None else ()

    def row(self, name: str) -> tuple[list[tuple[str, int]], int]:
        """(instance, weighted score) pairs of one node, and their total. Raises KeyError."""
        position = self.nodes.position(name)
        if position is None:
            raise KeyError(name)
        return self.row_at(position)

    def row_at(self, position: int) -> tuple[list[tuple[str, int]], int]:
        pairs = [(c.name, int(c.weighted[position])) for c in self.columns]
        pairs += [(name, int(scores[position])) for name, scores in self.extender_scores.items()]
        return pairs, int(self.totals[position])

    def best(self) -> Mask:
        """bool[nodes]: the nodes with the highest total. The totals do not change from then on."""
        best = self._best
        if best is None:
            best = self._best = self.totals == highest(self.totals)
        return best

    def best_positions(self) -> Rows:
        """Positions of the highest total, ascending."""
        return places_of(self.best())

    def line_at(self, position: int) -> NodeScore:
        """The scores of one node, for the journal."""
        (line,) = self.lines(np.array([position]))
        return line

    def lines(self, positions: Rows) -> tuple[NodeScore, ...]:
        """The scores of some nodes, for the journal."""
        lines = [column.lines(positions) for column in self.columns]
        for name, scores in self.extender_scores.items():
            lines.append(PluginScores(name, 1, scores, scores).lines(positions))
        read = [column.lines(positions) for column in self.read]
        none = [()] * len(positions)
        return tuple(
            map(
                NodeScore,
                self.nodes.take(positions).names(),
                self.totals[positions].tolist(),
                zip(*lines, strict=True) if lines else none,
                zip(*read, strict=True) if read else none,
            )
        )

    def best_lines(self, count_max: int) -> tuple[NodeScore, ...]:
        """The scores of the best nodes, best first: equals in the order of the draw, those that
        tie-break keys left before all others."""
        if self.tied is None:
            return self.lines(self._first_positions(count_max))
        left = self.nodes.table.first_drawn(self.tied, count_max)
        positions = self._first_positions(count_max)
        eliminated = positions[~self.tied[positions]]
        return self.lines(np.concatenate((left, eliminated))[:count_max])

    def _first_positions(self, count_max: int) -> Rows:
        """Positions of the best nodes by total, equals in the order of the draw."""
        totals, nodes = self.totals, self.nodes
        count = min(count_max, len(totals))
        best = nodes.table.first_drawn(self.best(), count)
        total = highest(totals)
        # One round for each distinct total. A partition takes many times as long where most are
        # equal.
        while len(best) < count:
            total = highest(totals[totals < total])
            equals = nodes.table.first_drawn(totals == total, count - len(best))
            best = np.concatenate((best, equals))
        return best


def total_scores(columns: Sequence[PluginScores], count: int) -> Int64s:
    """int64[count]: the weighted scores of all instances added up."""
    same = 0  # the sum of columns with one score for all nodes
    differing: list[NodeScores] = []
    for column in columns:
        score = uniform_score(column.normalized) if count else None
        if score is None:
            differing.append(column.weighted)
        else:
            same += score * column.weight
    if not differing:
        return np.full(count, same, np.int64)
    totals = differing[0] + same
    for scores in differing[1:]:
        totals += scores
    return totals


# ---- choice -------------------------------------------------------------------------------


class Choice(Struct, frozen=True):
    """The chosen node and the nodes that tied with it."""

    node_name: str
    tied_count: int = 1
    #: The place of the chosen node among the tied nodes, in the order of the draw.
    tied_index: int = 0


def choose(table: ScoreTable, seed: int, pod_uid: str, attempt: int) -> Choice:
    """The node with the highest total, or one of several nodes that tie.

    Among nodes that are equal in all tie-break keys, `choose` takes the k-th in the order of (hash
    of name, name). k depends on seed, pod and attempt only. It depends neither on row numbers nor
    on the way the scores were computed: live, embedded, reused and fresh runs draw the same node.
    """
    tied = table.best() if table.tied is None else table.tied
    count = int(np.count_nonzero(tied))
    if count == 1:
        return Choice(table.nodes.name(int(tied.argmax())))
    index = rng.tie_index(seed, pod_uid, attempt, count)
    return Choice(table.nodes.table.name_drawn(tied, count, index), count, index)


# ---- scoring --------------------------------------------------------------------------------


Score = Callable[[CycleState, PodInfo, NodeView], NodeScores]
Normalize = Callable[[CycleState, PodInfo, NodeScores], NodeScores]


class ScorerFailed(Exception):
    """A plugin failed, and its scores are needed. The status names the plugin."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class OutOfRange(RefusedAnswer):
    """A score is not in 0..100 after normalization. The message is upstream's, and the place of the
    method."""

    step = "applying score defaultWeights on Score plugins"

    def __init__(self, name: str, scores: NodeScores, method: Callable[..., Any]) -> None:
        wrong = scores[(scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)][0]
        super().__init__(
            f'plugin "{name}" returns an invalid score {wrong}, it should in the '
            f"range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing{place_of(method)}"
        )


class ScoreCall(Struct, frozen=True):
    """An instance of a score plugin with its calls."""

    name: str
    weight: int
    score: Score
    #: None: the plugin does not normalize; its scores are in 0..100.
    normalize: Normalize | None

    def column(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> PluginScores:
        """The scores of the feasible nodes. Raises RefusedAnswer and the plugin's exceptions."""
        return self.finished(state, pod, self.raw(state, pod, nodes))

    def raw(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """The scores before normalization; raises as `column`."""
        scores = self.score(state, pod, nodes)
        check_scores(scores, len(nodes), self.score)
        return scores

    def finished(self, state: CycleState, pod: PodInfo, raw: NodeScores) -> PluginScores:
        """The column for these raw scores; raises as `column`."""
        final = raw
        if self.normalize is not None:
            final = self.normalize(state, pod, raw)
            check_scores(final, len(raw), self.normalize)
        if not in_score_range(final):
            raise OutOfRange(self.name, final, self._last_method())
        return PluginScores(self.name, self.weight, raw, final)

    def _last_method(self) -> Callable[..., Any]:
        """The plugin's method that has the last word about its scores."""
        normalize = self.normalize
        return self.score if normalize is None or not place_of(normalize) else normalize


def score_of(plugin: ScorePlugin | ScalarScorePlugin) -> Score:
    """The plugin's Score as a function of a view of nodes."""
    if isinstance(plugin, ScorePlugin):
        return plugin.score
    return partial(scalar.score_nodes, plugin)


def normalize_of(plugin: ScorePlugin | ScalarScorePlugin) -> Normalize | None:
    """The plugin's own NormalizeScore, its named normalizer, or None."""
    if isinstance(plugin, NormalizeScorePlugin):
        return partial(_by_plugin, plugin)
    if plugin.normalizer is Normalizer.NONE:
        return None
    return partial(_by_name, plugin.normalizer)


def normalize_scores(
    plugin: ScorePlugin | ScalarScorePlugin, state: CycleState, pod: PodInfo, scores: NodeScores
) -> NodeScores:
    """A plugin's scores after its NormalizeScore, or unchanged without one.

    For a plugin that uses another plugin and needs its normalized scores.
    """
    normalize = normalize_of(plugin)
    return scores if normalize is None else normalize(state, pod, scores)


def _by_plugin(
    plugin: NormalizeScorePlugin, state: CycleState, pod: PodInfo, scores: NodeScores
) -> NodeScores:
    """The plugin gets a read-only view, because the score table still needs the raw scores."""
    shown = scores.view()
    shown.flags.writeable = False
    return plugin.normalize(state, pod, shown)


def _by_name(
    normalizer: Normalizer, state: CycleState, pod: PodInfo, scores: NodeScores
) -> NodeScores:
    return normalized(normalizer, scores)
