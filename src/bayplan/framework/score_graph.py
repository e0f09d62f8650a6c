"""The score graph: score plugins that read the scores of other score plugins.

A profile without readers has no graph: its totals are weighted sums. Otherwise the order of
evaluation follows from the args and is fixed at start, sources first. Each source is evaluated once
per cycle, for all its readers. Readers get unweighted scores, and a plugin that is only a source
does not count in the total.

A reader may need a source's scores of the feasible nodes or of all nodes. If a row-wise source is
needed both ways, it is evaluated for all nodes, and the scores of the feasible nodes are taken from
the result. A source that looks across nodes is evaluated twice: the second time with every node
feasible, after a PreScore of its own on a copy of the CycleState.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import final

import numpy as np
from msgspec import Struct, field

from bayplan.framework.arithmetic import uniform, uniform_score
from bayplan.framework.calls import Calls
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Plugin
from bayplan.framework.profile import ProfilePlugins
from bayplan.framework.score_sources import (
    NO_SOURCES,
    Reads,
    SourceScores,
    StagedScores,
    reads_of,
)
from bayplan.framework.scoring import PluginScores, ScorerFailed, ScoreTable, total_scores
from bayplan.framework.status import Code, Status, is_skip, is_success
from bayplan.framework.validation import as_error, checked, failure_of
from bayplan.state.columns import NodeScores, read_only
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

#: (instance, whether it is evaluated for all nodes and not only for the feasible ones).
Question = tuple[str, bool]


class Scorer(Struct, frozen=True):
    """One instance in the graph."""

    plugin: Plugin
    weight: int
    reads: Reads

    @property
    def is_row_wise(self) -> bool:
        """Whether a node's score is independent of the other nodes of the view."""
        return self.plugin.scope == "row" and not self.reads.names


@final
class ScoreGraph:
    """Sources and readers of one profile. Made at start; holds no state of a cycle."""

    def __init__(self, plugins: ProfilePlugins) -> None:
        self.scorers: Mapping[str, Scorer] = {
            plugin.instance_name: Scorer(plugin, weight, reads_of(plugin.args))
            for plugin, weight in plugins.scoring()
        }
        self.added = tuple(plugin.instance_name for plugin, _ in plugins.score)
        #: The evaluations of every cycle, sources first.
        self.questions: Sequence[Question] = tuple(self._first(self.added))
        #: Tie-break key → the evaluations it needs, sources first.
        self.for_keys: Mapping[str, Sequence[Question]] = {
            name: tuple(self._first((name,)))
            for name in (plugin.instance_name for plugin in plugins.tie_break)
            if name in self.scorers
        }
        everything = {*self.questions, *(q for each in self.for_keys.values() for q in each)}
        #: Instances that are evaluated for all nodes.
        self.read_over_all = frozenset(name for name, is_wide in everything if is_wide)

    @property
    def is_needed(self) -> bool:
        """Whether the profile has a reader, or a tie-break key that scores."""
        return bool(self.for_keys) or any(s.reads.names for s in self.scorers.values())

    def edges(self) -> Iterator[tuple[str, str]]:
        """(source, reader) pairs."""
        for name, scorer in self.scorers.items():
            for source in scorer.reads.names:
                yield source, name

    def _first(self, names: Sequence[str]) -> dict[Question, None]:
        questions: dict[Question, None] = {}
        for name in names:
            self._visit((name, False), questions, ())
        return questions

    def _visit(
        self, question: Question, questions: dict[Question, None], path: tuple[str, ...]
    ) -> None:
        name, is_wide = question
        assert name not in path, f"a cycle of scores: {' → '.join((*path, name))}"
        scorer = self.scorers[name]
        for source in scorer.reads.names:
            self._visit((source, is_wide or scorer.reads.over_all), questions, (*path, name))
        questions[question] = None


def graph_of(plugins: ProfilePlugins) -> ScoreGraph | None:
    """The graph of a profile; None if its totals are plain sums."""
    graph = ScoreGraph(plugins)
    return graph if graph.is_needed else None


def graph_scores(
    graph: ScoreGraph, calls: Calls, state: CycleState, pod: PodInfo, *, nodes: NodeView
) -> ScoreTable | Status:
    """The scores of one cycle, or the Error of the plugin that failed."""
    run = ScoreRun(graph, calls, state, pod, nodes)
    try:
        return run.table()
    except ScorerFailed as failed:
        return failed.status


@final
class ScoreRun(Struct):
    """The scores of one cycle. Each question is evaluated once."""

    graph: ScoreGraph
    calls: Calls
    state: CycleState
    pod: PodInfo
    nodes: NodeView
    notes: list[str] = field(default_factory=list[str])
    _columns: dict[Question, PluginScores | None] = field(
        default_factory=dict[Question, PluginScores | None]
    )
    _cluster: "_WholeCluster | None" = None

    def table(self) -> ScoreTable:
        """The columns of the total. Raises ScorerFailed."""
        for question in self.graph.questions:
            self._ask(question)
        all_columns = [self._columns[name, False] for name in self.graph.added]
        columns = [column for column in all_columns if column is not None]
        return ScoreTable(self.nodes, columns, total_scores(columns, len(self.nodes)), reading=self)

    def column(self, name: str) -> PluginScores | None:
        """The column of a tie-break key, evaluated on demand; None if the key was skipped."""
        for question in self.graph.for_keys[name]:
            self._ask(question)
        return self._columns[name, False]

    def read(self) -> list[PluginScores]:
        """Columns over the feasible nodes that are outside the total."""
        added = self.graph.added
        other_columns = [
            c for (name, wide), c in self._columns.items() if not wide and name not in added
        ]
        return [column for column in other_columns if column is not None]

    # ---- one question ---------------------------------------------------------------------

    def _ask(self, question: Question) -> PluginScores | None:
        name, is_wide = question
        if is_wide and self._whole_cluster().is_feasible:
            question = name, False
        if question not in self._columns:
            scorer = self.graph.scorers[name]
            try:
                is_skipped = self._is_skipped(question, scorer)
                self._columns[question] = None if is_skipped else self._evaluated(question, scorer)
            except ScorerFailed:
                raise
            except BaseException as problem:
                raise ScorerFailed(failure_of(name, "Score", problem)) from problem
        return self._columns[question]

    def _is_skipped(self, question: Question, scorer: Scorer) -> bool:
        """Whether the plugin's PreScore skipped it, or all its sources were skipped."""
        name, is_wide = question
        if is_wide and scorer.plugin.scope == "cluster":
            if self._whole_cluster().skips(name):
                return True
        elif name in self.state.skip_score_plugins:
            return True
        sources = scorer.reads.names
        skipped = [s for s in sources if self._source(question, scorer, s) is None]
        if sources and len(skipped) == len(sources):
            self._note(f"{name} was skipped: so was all it reads, {', '.join(sources)}")
            return True
        for source in skipped:
            self._note(f"{name} read zeros in place of {source}, which was skipped")
        return False

    def _evaluated(self, question: Question, scorer: Scorer) -> PluginScores:
        name, is_wide = question
        cluster = self._whole_cluster() if is_wide else None
        state, nodes = self.state, self.nodes if cluster is None else cluster.nodes
        if cluster is not None and scorer.plugin.scope == "cluster":
            state = cluster.state
        call = self.calls.scoring[name]
        if not is_wide and scorer.is_row_wise and self._is_read_over_all(name):
            wide = self._ask((name, True))
            assert wide is not None, f"{name} is skipped for some nodes only"
            return call.finished(state, self.pod, self._whole_cluster().picked(wide.raw))
        state.sources = self._sources(question, scorer) if scorer.reads.names else NO_SOURCES
        try:
            return call.column(state, self.pod, nodes)
        finally:
            state.sources = NO_SOURCES

    def _is_read_over_all(self, name: str) -> bool:
        """Whether a reader needs its scores of all nodes, and some nodes are not feasible."""
        return name in self.graph.read_over_all and not self._whole_cluster().is_feasible

    # ---- sources --------------------------------------------------------------------------

    def _source(self, question: Question, scorer: Scorer, source: str) -> PluginScores | None:
        return self._ask((source, question[1] or scorer.reads.over_all))

    def _sources(self, question: Question, scorer: Scorer) -> SourceScores:
        """The scores for a reader; zeros for a source that was skipped."""
        is_wide = question[1] or scorer.reads.over_all
        nodes = self._whole_cluster().nodes if is_wide else self.nodes
        zeros = PluginScores("", 0, *[uniform(0, len(nodes))] * 2)
        columns = {name: self._source(question, scorer, name) for name in scorer.reads.names}
        return SourceScores(
            scorer.plugin.instance_name,
            nodes,
            {name: _both_stages(column or zeros) for name, column in columns.items()},
        )

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _whole_cluster(self) -> "_WholeCluster":
        if self._cluster is None:
            self._cluster = _WholeCluster(self)
        return self._cluster


def _both_stages(column: PluginScores) -> StagedScores:
    return {"normalized": read_only(column.normalized), "raw": read_only(column.raw)}


@final
class _WholeCluster:
    """All nodes, and the CycleState of plugins that look across all nodes."""

    def __init__(self, run: ScoreRun) -> None:
        self._run = run
        self.nodes = run.nodes.all()
        rows, feasible_rows = self.nodes.table.rows, run.nodes.table.rows
        #: Whether every node is feasible. Then no plugin is evaluated twice.
        self.is_feasible = np.array_equal(rows, feasible_rows)
        self._positions = np.searchsorted(rows, feasible_rows)
        self._state: CycleState | None = None
        self._skips: dict[str, bool] = {}

    @property
    def state(self) -> CycleState:
        """A copy of the CycleState, for the PreScore and Score of all nodes."""
        if self._state is None:
            self._state = self._run.state.clone()
        return self._state

    def picked(self, scores: NodeScores) -> NodeScores:
        """The scores of the feasible nodes, from the scores of all nodes."""
        score = uniform_score(scores)
        count = len(self._positions)
        return scores[self._positions] if score is None else uniform(score, count)

    def skips(self, name: str) -> bool:
        """Whether a plugin's PreScore of all nodes skips its Score."""
        if name not in self._skips:
            self._skips[name] = self._pre_scored(name)
        return self._skips[name]

    def _pre_scored(self, name: str) -> bool:
        run = self._run
        asks = [ask for other, ask in run.calls.pre_score if other == name]
        if not asks:
            return name in run.state.skip_score_plugins
        try:
            status = checked(asks[0](self.state, run.pod, self.nodes))
        except BaseException as problem:
            raise ScorerFailed(failure_of(name, "PreScore", problem, asks[0])) from problem
        if is_skip(status):
            return True
        if status is not None and not is_success(status):
            raise ScorerFailed(as_error(status, "PreScore", name, asks[0], allowed=(Code.SKIP,)))
        return False
