"""ReuseSteps: where a cycle uses the result cache.

    look_up   before PreFilter: a ranking whose PreFilter and PreScore notes still hold answers
    answer    after PreFilter: a complete ranking answers; another one gives a part of the answer
    filter    the plugins that the ranking does not cover are called for the nodes that it leaves
    score     their scores are added to the ranking's totals
    learn     the cycle is over: rank the nodes for the next pod of this signature

`engine/reuse` says when a ranking is used and when it is dropped.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import final, overload

from bayplan.engine.cycle import NO_NODE_FITS, Cycle
from bayplan.engine.extenders.results import Extenders
from bayplan.engine.ranked_domain import DomainRows, RankedDomain, answers_for_domains
from bayplan.engine.ranking.evaluation_plan import (
    OTHER_PLUGINS,
    RankingInvalid,
    SingleNodeEvaluator,
)
from bayplan.engine.ranking.node_cells import CellAnswer, NodeCells, rules_for, state_for_cells
from bayplan.engine.ranking.node_feasibility import NodeFeasibility
from bayplan.engine.ranking.ranked_nodes import RankedNodes
from bayplan.engine.reuse.cache import ResultCache
from bayplan.engine.reuse.entry import CachedPreState, SignatureEntry
from bayplan.framework.arithmetic import highest
from bayplan.framework.cycle_state import CallFilter, CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.runtime import Framework
from bayplan.framework.scoring import PluginScores, ScoreCall, ScoreTable, total_scores
from bayplan.framework.status import Status, is_rejected, is_success
from bayplan.framework.timing import TimedObject, timed_point
from bayplan.framework.validation import failure_of
from bayplan.journal import NodeScore
from bayplan.ports import ExtenderVerb
from bayplan.queue.nominator import Nominator
from bayplan.state.columns import Int64s, Rows, all_true
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

#: Verbs that decide about nodes.
_ABOUT_NODES = (ExtenderVerb.FILTER, ExtenderVerb.PRIORITIZE)


@final
class ReuseSteps:
    """The steps of a cycle that use the result cache."""

    def __init__(
        self,
        nominator: Nominator,
        seed: int,
        extenders: Extenders,
        caches: Mapping[str, ResultCache],
    ) -> None:
        """``caches``: by profile; a profile without one evaluates every plugin."""
        self._nominator = nominator
        self._seed = seed
        self._extenders = extenders
        self._has_extenders = bool(extenders)
        self._caches = caches
        self.domain_rows = DomainRows()

    # ---- the steps ------------------------------------------------------------------------

    def look_up(self, cycle: Cycle) -> None:
        """Find the entry of the pod's signature. Answer, if PreFilter and PreScore would leave the
        same notes as last time."""
        cache = self._caches.get(cycle.framework.profile_name)
        if cache is None or cycle.extender_round.has_answers:
            return
        clock = cycle.framework.stopwatches["Filter"].now
        start = clock()
        pod, entry = cycle.pod, cache.entry_for(cycle.pod)
        entry.cycle_count += 1
        entry.pod_count += cycle.queued.attempts <= 1
        if not cache.is_on:
            return
        cycle.entry = entry
        if pod.nominated_node_name or pod.node_name or cache.is_check_due:
            return
        if cycle.within is None and cache.steps_aside(entry):
            cycle.entry = None
            cache.count(entry, is_hinted=False, seconds=clock() - start)
            return
        if entry.cells is not None:
            self._answer_from_cells(cycle, entry, entry.cells)
            if cycle.is_done:
                cache.count(entry, is_hinted=True, seconds=clock() - start)
                return
        pre_state = entry.pre_state
        if pre_state is None or not pre_state.fits(pod, cache.object_generation.now()):
            return
        ranking = pre_state.ranking_ref()
        if ranking is not None and not ranking.is_dropped and self.may_rank(cycle):
            self._repeat(cycle, entry, pre_state, ranking)
            if cycle.is_done:
                cache.count(entry, is_hinted=True, seconds=clock() - start)

    def answer(self, cycle: Cycle) -> None:
        """End the cycle with a complete ranking, or start it with a ranking that covers some
        plugins. If PreFilter narrowed the nodes, no ranking is used, because evaluating the few
        nodes is as fast."""
        entry = cycle.entry
        if entry is None:
            return
        cache = self._caches[cycle.framework.profile_name]
        if cycle.within is not None:
            self._answer_in_domain(cycle, entry, cache)
            return
        if cycle.node_names is not None:
            cycle.entry = None
            return
        cache.open_caches(entry)
        if cache.is_check_due:
            return
        clock = cycle.framework.stopwatches["Filter"].now
        start = clock()
        cycle.state.cached_results = entry.caches
        ranking = _ranking_of(cycle, entry, cache)
        if ranking is not None and self.may_rank(cycle):
            self._use(cycle, ranking, is_current=ranking.follow(), is_scored=False)
        is_answered = cycle.ranked_answer is not None
        if is_answered and cycle.is_done:
            self._keep_pre_state(cycle, entry, cache.object_generation.now())
        cache.count(entry, is_answered, clock() - start)

    def filter(self, cycle: Cycle, nodes: NodeView) -> FilterOutcome | None:
        """Call the plugins that the ranking does not cover for the nodes that it leaves. None:
        there is no ranking, and all plugins are to be called."""
        ranking = cycle.ranking
        if ranking is None:
            return None
        framework, state, pod = cycle.framework, cycle.state, cycle.pod
        call_of = framework.calls(state, pod).filter_of
        calls = [(end, name, call_of[name]) for end, name in ranking.plan.called_filters]
        count = len(ranking.plan.filters)
        return filter_uncached(
            framework, ranking.feasibility, count, calls, state=state, pod=pod, nodes=nodes
        )

    def score(self, cycle: Cycle, nodes: NodeView) -> ScoreTable | Status | None:
        """Call the Score plugins that the ranking does not cover for the feasible nodes, at least
        two. None: there is no ranking, and all plugins are to be called."""
        if cycle.ranking is None:
            return None
        cycle.ranking = ranking = self._scored(cycle, cycle.ranking)
        if ranking is None:
            return None
        framework, state, pod = cycle.framework, cycle.state, cycle.pod
        names = ranking.plan.called_scores
        calls = [call for call in framework.calls(state, pod).score if call.name in names]
        columns = score_uncached(framework, calls, state, pod, nodes=nodes)
        if isinstance(columns, Status):
            return columns
        return merged_table(ranking, columns, framework, nodes)

    def learn(self, cycle: Cycle) -> None:
        """Rank the nodes for the next pod of this signature."""
        entry = cycle.entry
        if entry is None:
            return
        ranking, cache = cycle.ranking, self._caches[cycle.framework.profile_name]
        if ranking is not None:
            cache.used(entry, ranking)
            if cycle.ranked_answer is None:
                self._make_cells(cycle, entry, ranking)
            return
        outcome, is_complete = cycle.outcome, cycle.status is None or is_rejected(cycle.status)
        if outcome is None or not is_complete or not self.may_rank(cycle):
            return
        if cycle.state.cached_results is None:
            cache.compare(entry, cycle.state, cycle.pod, outcome.nodes)
            self._compare_cells(cycle, entry, cache)
        else:
            cache.rank(entry, partial(_evaluator, cycle), cycle.table)

    def may_rank(self, cycle: Cycle) -> bool:
        """Whether the cycle looks at all nodes, and only this profile's plugins decide."""
        return not (
            self._nominator.node_of
            or (self._has_extenders and self._extenders.interested(cycle.pod, *_ABOUT_NODES))
            or not cycle.framework.is_plain_sum
            or 0 < cycle.framework.plugins.percentage_of_nodes_to_score < 100
        )

    # ---- cells ----------------------------------------------------------------------------

    def _answer_from_cells(self, cycle: Cycle, entry: SignatureEntry, cells: NodeCells) -> None:
        """End the cycle with the cells of an earlier pod of this template. If they do not answer,
        the cycle is as it was."""
        cache, pod = self._caches[cycle.framework.profile_name], cycle.pod
        generation = cache.object_generation.now_of_distinct_terms()
        if (
            cycle.within is not None
            or pod.group_key
            or not cells.fits(pod, generation)
            or not self.may_rank(cycle)
        ):
            return
        cycle.start_with(cells.state(), entry)
        answer = self._answer_of(cycle, entry, cells)
        if answer is not None:
            cycle.ranking, cycle.ranked_answer = cells.ranking, answer
            cycle.choice = answer.choose(self._seed, pod.uid, cycle.queued.attempts)
            return
        cycle.candidates = None
        cycle.start_with(CycleState(), None)

    def _answer_of(
        self, cycle: Cycle, entry: SignatureEntry, cells: NodeCells
    ) -> CellAnswer | None:
        """Bring the cells up to date. None: they are dropped, or fewer than two nodes are
        feasible."""
        ranking = cells.ranking
        try:
            if not ranking.follow():
                cycle.candidates = cycle.snapshot.nodes
                ranking.update(_evaluator(cycle))
                if ranking.is_behind:
                    ranking.score(_evaluator(cycle))
        except RankingInvalid as problem:
            self._drop(cycle, ranking, problem.reason)
            return None
        try:
            cells.update()
            return cells.answer()
        except RankingInvalid as problem:
            self._caches[cycle.framework.profile_name].drop_cells(entry, problem.reason)
            return None

    def _compare_cells(self, cycle: Cycle, entry: SignatureEntry, cache: ResultCache) -> None:
        """After an attempt without the cache: drop and report cells that answer otherwise."""
        cells, table = entry.cells, cycle.table
        generation = cache.object_generation.now_of_distinct_terms()
        if cells is None or table is None or not cells.fits(cycle.pod, generation):
            return
        answer = self._answer_of(cycle, entry, cells)
        expected = cycle.feasible_count, highest(table.totals)
        if answer is not None and (answer.feasible_count, answer.best_total()) != expected:
            cache.report_cells(entry, cells, cycle.pod)

    def _make_cells(self, cycle: Cycle, entry: SignatureEntry, ranking: RankedNodes) -> None:
        """Make cells for the next pod of this template, after a cycle that a ranking and array
        calls answered."""
        framework, state, pod, table = cycle.framework, cycle.state, cycle.pod, cycle.table
        if (
            table is None
            or cycle.choice is None
            or ranking.plan.is_complete
            or ranking.is_behind
            or cycle.within is not None
            or cycle.node_names is not None
            or pod.group_key
            or not framework.calls(state, pod).pre_state_per_template
            or not entry.wants_cells(pod)
        ):
            return
        cache = self._caches[framework.profile_name]
        entry.drop_cells()
        rules = rules_for(framework, ranking.plan, state, pod, nodes=cycle.snapshot.nodes)
        try:
            if rules is None:
                raise RankingInvalid(OTHER_PLUGINS)
            cells = NodeCells(
                ranking,
                rules,
                pod,
                state_for_cells(state, framework.plugins.instances()),
                score_order=[plugin.instance_name for plugin, _ in framework.plugins.score],
                object_generation=cache.object_generation.now_of_distinct_terms(),
            )
        except RankingInvalid:
            entry.refuse_cells()
        else:
            cache.add_cells(entry, cells)

    # ---- rankings -------------------------------------------------------------------------

    def _repeat(
        self, cycle: Cycle, entry: SignatureEntry, pre_state: CachedPreState, ranking: RankedNodes
    ) -> None:
        """Answer with the cached notes of PreFilter and PreScore. If the ranking does not answer,
        the cycle is as it was."""
        cycle.start_with(pre_state.state.clone(), entry)
        is_scored, cycle.candidates = pre_state.is_scored, cycle.snapshot.nodes
        self._use(cycle, ranking, is_current=ranking.follow(), is_scored=is_scored)
        if not cycle.is_done:
            cycle.candidates = None
            cycle.start_with(CycleState(), None)
        elif not is_scored and ranking.feasible_count > 1:
            entry.pre_state = None

    def _use(
        self, cycle: Cycle, ranking: RankedNodes, *, is_current: bool, is_scored: bool
    ) -> None:
        """End the cycle with a complete ranking, or start it with an incomplete one. Drops a
        ranking that cannot be brought up to date. ``is_scored``: the cycle has the notes of
        PreScore."""
        if not is_current:
            try:
                ranking.update(_evaluator(cycle))
            except RankingInvalid as problem:
                self._drop(cycle, ranking, problem.reason)
                return
        if cycle.within is not None:
            self._use_in_domain(cycle, ranking, cycle.within, is_scored=is_scored)
            return
        cycle.ranking = ranking
        if not ranking.plan.is_complete:
            return
        cycle.ranked_answer, feasible_count = ranking, ranking.feasible_count
        if feasible_count > 1:
            self._choose_best(cycle, ranking, is_scored=is_scored)
        elif feasible_count:
            cycle.choice = ranking.only()
        else:
            cycle.status = NO_NODE_FITS

    def _use_in_domain(
        self, cycle: Cycle, ranking: RankedNodes, names: frozenset[str], *, is_scored: bool
    ) -> None:
        """End the cycle with the part of a complete ranking that lies in a domain, unless a score
        or a note of PreScore may depend on which nodes are feasible. ``names``: of its nodes."""
        framework, state, pod = cycle.framework, cycle.state, cycle.pod
        calls = framework.calls(state, pod)
        if not (answers_for_domains(ranking) and calls.pre_state_per_template):
            return
        rows = self.domain_rows.of(names, ranking.table)
        domain = RankedDomain(ranking, rows)
        choice = status = None
        if domain.feasible_count > 1:
            if not is_scored:
                status = framework.run_pre_score(state, pod, _feasible_nodes(cycle, ranking))
            scored = self._scored(cycle, ranking) if is_success(status) else None
            if scored is None or not answers_for_domains(scored):
                return
            if scored is not ranking:
                domain = RankedDomain(scored, rows)
            choice = domain.choose(self._seed, pod.uid, cycle.queued.attempts)
        elif domain.feasible_count:
            choice = domain.only()
        else:
            cycle.status = NO_NODE_FITS
        cycle.choice, cycle.node_names = choice, names
        cycle.ranking, cycle.ranked_answer = domain.whole, domain

    def _answer_in_domain(self, cycle: Cycle, entry: SignatureEntry, cache: ResultCache) -> None:
        """End the cycle with the part of a ranking that lies in a domain. If there is no such
        ranking, or if PreFilter narrowed the nodes further, the nodes are evaluated, which is as
        fast."""
        ranking = None
        if not (cycle.narrowing or cache.is_check_due) and self.may_rank(cycle):
            cache.open_caches(entry)
            ranking = _ranking_of(cycle, entry, cache)
        if ranking is not None:
            narrow, cycle.candidates = cycle.candidates, cycle.snapshot.nodes
            cycle.state.cached_results = entry.caches
            self._use(cycle, ranking, is_current=ranking.follow(), is_scored=False)
            if cycle.ranked_answer is not None:
                self._keep_pre_state(cycle, entry, cache.object_generation.now())
                return
            cycle.candidates, cycle.state.cached_results = narrow, None
        cycle.entry = None

    def _choose_best(self, cycle: Cycle, ranking: RankedNodes, *, is_scored: bool) -> None:
        framework, state, pod = cycle.framework, cycle.state, cycle.pod
        if not is_scored:
            status = framework.run_pre_score(state, pod, _feasible_nodes(cycle, ranking))
            if not is_success(status):
                cycle.status = status
                return
        scored = self._scored(cycle, ranking)
        if scored is not None and scored.plan.is_complete:
            cycle.ranking = cycle.ranked_answer = scored
            cycle.choice = scored.choose(self._seed, pod.uid, cycle.queued.attempts)
        else:
            cycle.ranking, cycle.ranked_answer = scored, None

    def _scored(self, cycle: Cycle, ranking: RankedNodes) -> RankedNodes | None:
        """After PreScore: this ranking, or the one for the Score plugins that do not skip, with all
        totals; None: there is none."""
        current: RankedNodes | None = ranking
        if not ranking.plan.fits(cycle.state, is_scored=True):
            assert cycle.entry is not None
            current = cycle.entry.ranking_for(cycle.state, is_scored=True)
            if current is None:
                return None
        try:
            if current is not ranking:
                current.update(_evaluator(cycle))
            if current.is_behind or current.with_extremes:
                current.score(_evaluator(cycle))
        except RankingInvalid as problem:
            self._drop(cycle, current, problem.reason)
            return None
        return current

    def _drop(self, cycle: Cycle, ranking: RankedNodes, reason: str) -> None:
        assert cycle.entry is not None
        cycle.ranking = cycle.ranked_answer = None
        cache = self._caches[cycle.framework.profile_name]
        cache.drop_ranking(cycle.entry, ranking, reason)

    def _keep_pre_state(self, cycle: Cycle, entry: SignatureEntry, object_generation: int) -> None:
        state, pod, ranking, answer = cycle.state, cycle.pod, cycle.ranking, cycle.ranked_answer
        assert ranking is not None and answer is not None, "no complete ranking answered"
        if cycle.framework.calls(state, pod).pre_state_per_template:
            is_scored = answer.feasible_count > 1
            entry.pre_state = CachedPreState(
                pod, object_generation, ranking, state, is_scored=is_scored
            )


def _feasible_nodes(cycle: Cycle, ranking: RankedNodes) -> NodeView:
    assert cycle.candidates is not None
    return ranking.feasible_nodes(cycle.candidates)


def _ranking_of(cycle: Cycle, entry: SignatureEntry, cache: ResultCache) -> RankedNodes | None:
    """The ranking of the entry, or one that it shares, for the plugins that do not skip."""
    ranking = entry.ranking_for(cycle.state, is_scored=False)
    return ranking or cache.shared_ranking(entry, cycle.state.skip_filter_plugins)


def _evaluator(cycle: Cycle) -> SingleNodeEvaluator:
    """The evaluator of a cycle: one for each of its states and sets of candidates."""
    nodes, state, pod = cycle.candidates, cycle.state, cycle.pod
    assert nodes is not None and cycle.entry is not None
    evaluator = cycle.evaluator
    if evaluator is None or evaluator.state is not state or evaluator.nodes is not nodes:
        calls, counts = cycle.framework.calls(state, pod), cycle.entry.caches.counts
        evaluator = SingleNodeEvaluator(calls, state, pod, nodes, counts=counts)
        cycle.evaluator = evaluator
    return evaluator


# ---- a ranking and the plugins that it does not cover ----------------------------------------


@timed_point("Filter")
def filter_uncached(
    watched: TimedObject,
    feasibility: NodeFeasibility,
    cached_count: int,
    calls: Iterable[tuple[int, str, CallFilter]],
    *,
    state: CycleState,
    pod: PodInfo,
    nodes: NodeView,
) -> FilterOutcome:
    """All Filter plugins in the order of the profile, as long as nodes are left.

    ``feasibility``: the results of the cached plugins; ``cached_count``: how many these are;
    ``calls``: the others, each with the number of cached ones before it.
    """
    outcome, start = FilterOutcome(nodes, all_true(len(nodes))), 0
    for end, name, call in calls:
        feasibility.reject(outcome, start, end)
        if outcome.is_settled:
            return outcome
        outcome.evaluate(name, call, state, pod)
        if outcome.is_settled:
            return outcome
        start = end
    feasibility.reject(outcome, start, cached_count)
    return outcome


@timed_point("Score")
def score_uncached(
    watched: TimedObject,
    calls: Sequence[ScoreCall],
    state: CycleState,
    pod: PodInfo,
    *,
    nodes: NodeView,
) -> list[PluginScores] | Status:
    """The columns of these plugins alone."""
    columns: list[PluginScores] = []
    for call in calls:
        try:
            columns.append(call.column(state, pod, nodes))
        except BaseException as problem:  # noqa: BLE001
            return failure_of(call.name, "Score", problem)
    return columns


def merged_table(
    ranking: RankedNodes, columns: Sequence[PluginScores], framework: Framework, nodes: NodeView
) -> ScoreTable:
    """The scores of a ranking and of other plugins as one table. ``nodes``: the feasible ones;
    ``columns``: those of the plugins that the ranking does not cover."""
    totals = ranking.totals(nodes) + total_scores(columns, len(nodes))
    order = [plugin.instance_name for plugin, _ in framework.plugins.score]
    merged = MergedColumns(ranking, columns, order, nodes)
    return MergedTable(nodes, merged, totals, merged=merged)


class MergedTable(ScoreTable, kw_only=True):
    """Scores of a ranking and of plugins that it does not cover. A profile with extenders or a
    score graph has no such table."""

    #: The columns.
    merged: "MergedColumns"

    def lines(self, positions: Rows) -> tuple[NodeScore, ...]:
        """The scores of some nodes, for the journal. No cached column is computed."""
        return self.merged.lines(positions, self.totals)


@final
class MergedColumns(Sequence[PluginScores]):
    """All columns, in the order of the profile. The ranking's columns are computed when read."""

    def __init__(
        self,
        ranking: RankedNodes,
        columns: Sequence[PluginScores],
        order: Sequence[str],
        nodes: NodeView,
    ) -> None:
        self._ranking = ranking
        self._columns = columns
        self._order = order
        self._nodes = nodes

    def lines(self, positions: Rows, totals: Int64s) -> tuple[NodeScore, ...]:
        """The scores of some nodes, for the journal. ``totals``: of all nodes."""
        index = self._nodes.table.index
        cached = self._ranking.lines(positions if isinstance(index, slice) else index[positions])
        sums = totals[positions].tolist()
        if not self._columns:
            return tuple(
                NodeScore(line.node, total, line.plugins)
                for line, total in zip(cached, sums, strict=True)
            )
        names = [score.name for score in self._ranking.plan.scores]
        names += [column.name for column in self._columns]
        places = sorted(range(len(names)), key=lambda place: self._order.index(names[place]))
        called = [column.lines(positions) for column in self._columns]
        return tuple(
            NodeScore(
                line.node, total, tuple(map((*line.plugins, *called_lines).__getitem__, places))
            )
            for line, total, *called_lines in zip(cached, sums, *called, strict=True)
        )

    def __len__(self) -> int:
        return len(self._columns) + len(self._ranking.plan.scores)

    @overload
    def __getitem__(self, index: int) -> PluginScores: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PluginScores]: ...
    def __getitem__(self, index: int | slice) -> PluginScores | Sequence[PluginScores]:
        return self._all()[index]

    def __iter__(self) -> Iterator[PluginScores]:
        return iter(self._all())

    def _all(self) -> list[PluginScores]:
        columns = [*self._columns, *self._ranking.columns(self._nodes)]
        return sorted(columns, key=lambda column: self._order.index(column.name))
