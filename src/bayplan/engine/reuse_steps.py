"""Filter and Score of some plugins, where what the others say is known.

A score table of which one part was known, and the other part asked.

Only the totals are computed; the known part's columns are when somebody looks.

Reusing: what a cycle takes from its pod's like, and leaves to the next of it.

A ranking answers the cycle by itself; totals of row-wise plugins are the known part of an answer
whose other part is asked: of plugins that look across nodes, or do not sign.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, final, overload

from bayplan.engine.cycle import Cycle
from bayplan.engine.extenders.results import Extenders
from bayplan.engine.reuse.cache import ResultCache
from bayplan.engine.reuse.entry import CachedPreState, SignatureEntry
from bayplan.engine.reuse.ranked_nodes import IncrementalScores, RankedNodes
from bayplan.engine.reuse.single_node import SingleNodeEvaluator
from bayplan.engine.reuse.weighted_score import RankingInvalid
from bayplan.framework.cycle_state import AskFilter, CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.handle import PodNominator
from bayplan.framework.runtime import Framework
from bayplan.framework.score_table import PluginScores, ScoreTable, total_scores
from bayplan.framework.scoring import ScoreCall
from bayplan.framework.status import Status, is_rejected, is_success, unschedulable
from bayplan.framework.timing import Watched, timed_point
from bayplan.framework.validation import failure_of
from bayplan.ports import ExtenderVerb
from bayplan.state.columns import all_true
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

# ---- rest -----------------------------------------------------------------------------------


class KnownRejections(Protocol):
    """What some Filter plugins, told by their places, say of all nodes."""

    def reject(self, outcome: FilterOutcome, start: int, end: int) -> None: ...


@timed_point("Filter")
def filter_rest(
    watched: Watched,
    known: tuple[KnownRejections, int],
    asked: Iterable[tuple[int, str, AskFilter]],
    about: tuple[CycleState, PodInfo, NodeView],
) -> FilterOutcome:
    """Take in what is known, and ask the others, in the order of the profile, as long as nodes are
    left. ``known``: and of how many plugins; ``asked``: how many of those come before each."""
    state, pod, nodes = about
    outcome = FilterOutcome(nodes, all_true(len(nodes)))
    (rejections, count), start = known, 0
    for end, name, ask in asked:
        rejections.reject(outcome, start, end)
        if outcome.is_settled:
            return outcome
        outcome.ask(name, ask, state, pod)
        if outcome.is_settled:
            return outcome
        start = end
    rejections.reject(outcome, start, count)
    return outcome


@timed_point("Score")
def score_rest(
    watched: Watched, calls: Sequence[ScoreCall], state: CycleState, pod: PodInfo, nodes: NodeView
) -> list[PluginScores] | Status:
    """The columns of these alone."""
    columns: list[PluginScores] = []
    for call in calls:
        try:
            columns.append(call.column(state, pod, nodes))
        except BaseException as problem:  # noqa: BLE001
            return failure_of(call.name, "Score", problem)
    return columns


# ---- known rest -----------------------------------------------------------------------------


def table_of(
    known: IncrementalScores, asked: Sequence[PluginScores], framework: Framework, nodes: NodeView
) -> ScoreTable:
    """``nodes``: the feasible ones; ``asked``: the columns of those whose scores are not kept."""
    totals = known.totals(nodes) + total_scores(asked, len(nodes))
    order = [plugin.instance_name for plugin, _ in framework.plugins.score]
    return ScoreTable(nodes, _Columns(known, asked, order, nodes), totals)


@final
class _Columns(Sequence[PluginScores]):
    """All columns, in the order of the profile."""

    def __init__(
        self,
        known: IncrementalScores,
        asked: Sequence[PluginScores],
        order: Sequence[str],
        nodes: NodeView,
    ) -> None:
        self._known = known
        self._asked = asked
        self._order = order
        self._nodes = nodes

    def __len__(self) -> int:
        return len(self._asked) + len(self._known.like.shares)

    @overload
    def __getitem__(self, index: int) -> PluginScores: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PluginScores]: ...
    def __getitem__(self, index: int | slice) -> PluginScores | Sequence[PluginScores]:
        return self._all()[index]

    def __iter__(self) -> Iterator[PluginScores]:
        return iter(self._all())

    def _all(self) -> list[PluginScores]:
        columns = [*self._asked, *self._known.columns(self._nodes)]
        return sorted(columns, key=lambda column: self._order.index(column.name))


# ---- reusing --------------------------------------------------------------------------------


#: Verbs that decide about nodes.
_ABOUT_NODES = (ExtenderVerb.FILTER, ExtenderVerb.PRIORITIZE)


@final
class ReuseSteps:
    """The steps of a cycle that have to do with reuse."""

    def __init__(
        self,
        nominator: PodNominator,
        seed: int,
        extenders: Extenders,
        reuse: Mapping[str, ResultCache],
    ) -> None:
        """``reuse``: by profile; none: nothing is known of any pod."""
        self._nominator = nominator
        self._seed = seed
        self._extenders = extenders
        self._reuse = reuse

    def look_up(self, cycle: Cycle) -> None:
        """What is known of the pod's like; the answer, where all that comes before it would be as
        the last time."""
        reuse = self._reuse.get(cycle.framework.profile_name)
        if reuse is None or cycle.extender_round.has_answers:
            return
        clock = cycle.framework.stopwatches["Filter"].now
        start = clock()
        known = reuse.known(cycle.pod)
        known.cycle_count += 1
        known.pod_count += cycle.queued.attempts <= 1
        if not reuse.is_on:
            return
        cycle.known = known
        pod = cycle.pod
        is_bound_to = pod.nominated_node_name or pod.node_name or cycle.within is not None
        if is_bound_to or reuse.is_shadow_turn:
            return
        if reuse.passes_over(known):
            cycle.known = None
            reuse.count(known, is_hinted=False, seconds=clock() - start)
            return
        prepared = known.prepared
        if prepared is None or not prepared.suits(pod, reuse.epoch.now(), known.picks):
            return
        if self._is_plain(cycle):
            self._repeat(cycle, known, prepared)
            if cycle.is_done:
                reuse.count(known, is_hinted=True, seconds=clock() - start)

    def answer(self, cycle: Cycle) -> None:
        """After PreFilter. A narrowed choice of nodes is as soon asked about."""
        known = cycle.known
        if known is None:
            return
        if cycle.node_names is not None:
            cycle.known = None
            return
        reuse = self._reuse[cycle.framework.profile_name]
        if reuse.is_shadow_turn:
            return
        clock = cycle.framework.stopwatches["Filter"].now
        start = clock()
        cycle.state.kept = known
        totals = known.take(cycle.state, scored=False)
        if totals is not None and self._is_plain(cycle):
            self._answer(cycle, totals)
        if cycle.picks is None and cycle.row_totals is None:
            known.catch_up()
        if cycle.picks is not None and cycle.is_done:
            self._prepare(cycle, cycle.picks, reuse.epoch.now())
        reuse.count(known, cycle.picks is not None, clock() - start)

    def filter(self, cycle: Cycle, nodes: NodeView) -> FilterOutcome | None:
        """Who is not kept is asked about the nodes that the others leave. None: nothing is known,
        and all must be asked."""
        known = cycle.row_totals
        if known is None:
            return None
        framework, state, pod, like = cycle.framework, cycle.state, cycle.pod, known.like
        ask = framework.calls(state, pod).filter_of
        asked = [(end, name, ask[name]) for end, name in like.asked_filters]
        return filter_rest(
            framework, (known.standing, len(like.filters)), asked, (state, pod, nodes)
        )

    def score(self, cycle: Cycle, nodes: NodeView) -> ScoreTable | Status | None:
        """The same for the scores of the feasible nodes, at least two."""
        known = cycle.row_totals
        if known is None:
            return None
        try:
            cycle.row_totals = known = self._scored(cycle, known)
        except RankingInvalid as problem:
            self._drop(cycle, problem.reason)
            return None
        if known is None:
            return None
        framework, state, pod = cycle.framework, cycle.state, cycle.pod
        names = known.like.asked_scores
        calls = [call for call in framework.calls(state, pod).score if call.name in names]
        asked = score_rest(framework, calls, state, pod, nodes)
        return asked if isinstance(asked, Status) else table_of(known, asked, framework, nodes)

    def learn(self, cycle: Cycle) -> None:
        """Let the next of the pod's like profit."""
        known = cycle.known
        if known is None:
            return
        current = cycle.row_totals if cycle.picks is None else cycle.picks
        if current is not None:
            known.generation = current.generation
            return
        outcome, is_complete = cycle.outcome, cycle.status is None or is_rejected(cycle.status)
        if outcome is None or not is_complete or not self._is_plain(cycle):
            return
        reuse = self._reuse[cycle.framework.profile_name]
        if cycle.state.kept is None:
            reuse.compare(known, (cycle.state, cycle.pod, outcome.nodes))
        else:
            reuse.learn(known, cycle.state, outcome, cycle.table)

    # ---- inside ---------------------------------------------------------------------------

    def _is_plain(self, cycle: Cycle) -> bool:
        """Whether all nodes are asked about, and nobody but this profile's plugins is asked."""
        return not (
            self._nominator.nominated_nodes()
            or (self._extenders and self._extenders.interested(cycle.pod, *_ABOUT_NODES))
            or not cycle.framework.is_plain_sum
            or 0 < cycle.framework.plugins.percentage_of_nodes_to_score < 100
        )

    def _scored(self, cycle: Cycle, totals: IncrementalScores) -> IncrementalScores | None:
        """After PreScore: those, or others that are for such an attempt; None: there are none.
        Raises OutOfDate."""
        if not totals.like.suits(cycle.state, scored=True):
            assert cycle.known is not None
            found = cycle.known.take(cycle.state, scored=True)
            if found is None:
                return None
            found.refresh(_asking(cycle, found))
            totals = found
        if totals.is_behind or totals.with_extremes:
            totals.score(_asking(cycle, totals))
        return totals

    def _drop(self, cycle: Cycle, reason: str) -> None:
        assert cycle.known is not None
        cycle.picks = cycle.row_totals = None
        self._reuse[cycle.framework.profile_name].drop_picks(cycle.known, reason)

    def _prepare(self, cycle: Cycle, picks: RankedNodes, epoch: int) -> None:
        """Let the next of the pod's like be spared what PreFilter and PreScore said."""
        state, pod, known = cycle.state, cycle.pod, cycle.known
        if known is not None and cycle.framework.calls(state, pod).prepares_alike:
            is_scored = picks.feasible_count > 1
            known.prepared = CachedPreState(pod, epoch, picks, state, is_scored=is_scored)

    def _repeat(self, cycle: Cycle, known: SignatureEntry, prepared: CachedPreState) -> None:
        """The answer, without asking PreFilter and, if it was asked the last time, PreScore. It
        may be none: then the cycle is as it was."""
        cycle.begin_as(prepared.state(), known)
        picks, queued = prepared.picks, cycle.queued
        if prepared.is_scored and picks.follow() and picks.feasible_count > 1:
            cycle.picks = picks
            cycle.choice = picks.choose(self._seed, queued.pod.uid, queued.attempts)
            return
        cycle.candidates = cycle.snapshot.nodes
        self._answer(cycle, picks, is_scored=prepared.is_scored)
        if not cycle.is_done:
            cycle.candidates = None
            cycle.begin_as(CycleState(), None)
        elif not prepared.is_scored and prepared.picks.feasible_count > 1:
            known.prepared = None

    def _answer(self, cycle: Cycle, known: IncrementalScores, *, is_scored: bool = False) -> None:
        """End the cycle from the ranking of the pod's like, or begin it with their totals; unless
        these cannot be corrected. ``is_scored``: what PreScore says is noted already."""
        try:
            if not known.follow():
                known.refresh(_asking(cycle, known))
            if not isinstance(known, RankedNodes):
                cycle.row_totals = known
                return
            cycle.picks = picks = known
            if picks.feasible_count > 1:
                self._best_pick(cycle, picks, is_scored=is_scored)
            elif picks.feasible_count:
                cycle.choice = picks.only()
            else:
                cycle.status = unschedulable()
        except RankingInvalid as problem:
            self._drop(cycle, problem.reason)

    def _best_pick(self, cycle: Cycle, picks: RankedNodes, *, is_scored: bool) -> None:
        framework, state, pod = cycle.framework, cycle.state, cycle.pod
        if not is_scored:
            status = framework.run_pre_score(state, pod, cycle.feasible_nodes(picks))
            if not is_success(status):
                cycle.status = status
                return
        found = self._scored(cycle, picks)
        if isinstance(found, RankedNodes):
            cycle.picks = found
            cycle.choice = found.choose(self._seed, pod.uid, cycle.queued.attempts)
        else:
            cycle.picks, cycle.row_totals = None, found


def _asking(cycle: Cycle, known: IncrementalScores) -> SingleNodeEvaluator:
    nodes, calls = cycle.candidates, cycle.framework.calls(cycle.state, cycle.pod)
    assert nodes is not None
    return SingleNodeEvaluator(calls, cycle.state, cycle.pod, nodes, known.like.counts)
