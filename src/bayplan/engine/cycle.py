"""One pod's scheduling cycle: an explicit record, walked through named steps.

The record holds everything the steps found, so that a cycle can stop after a step with an effect
(an extender must be asked), be parked, and be taken up again with the answer. Then it is walked
anew from the beginning, with the answers there are already: a node nobody asked about stays out,
and one that filled up meanwhile is not chosen. Without such a step the cycle runs straight through.
Upstream: schedule_one.go, algorithm.go (v1.37).

    1 pre_filter   2 nominated node   3 filter   4 extenders' filter   5 extenders' scores
    6 pre_score and score   7 select   — then assume, reserve, permit (placements.py)
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from typing import final

import numpy as np

from bayplan.engine.exchange import Exchange
from bayplan.engine.extending import Answered, Extender, Extenders, Question
from bayplan.engine.known_pods import KnownPods
from bayplan.engine.out_of_date import OutOfDate
from bayplan.engine.picks import Asking, Picks
from bayplan.engine.reuse import Reuse
from bayplan.engine.selection import Choice, choose, sampled
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.interface import CycleState, PodNominator, PreFilterResult, QueuedPodInfo
from bayplan.framework.rejected import RejectedNodes
from bayplan.framework.runtime import Framework
from bayplan.framework.score_table import ScoreTable
from bayplan.framework.status import (
    EXTENDER_NAME,
    NO_NODES_AVAILABLE,
    Code,
    Diagnosis,
    FitError,
    NodeToStatus,
    Status,
    is_rejected,
    is_success,
    unresolvable,
    unschedulable,
)
from bayplan.framework.tie_break import break_ties
from bayplan.ports import ExtenderVerb
from bayplan.state.columns import NodeMask, all_true
from bayplan.state.nodes import LateNodeView, NodeView
from bayplan.state.snapshot import Snapshot

#: A group that is to stay together is tried in one domain at a time.
OUTSIDE_DOMAIN = "node(s) outside of the domain that the group was tried in"
#: Verbs that decide about nodes.
_ABOUT_NODES = (ExtenderVerb.FILTER, ExtenderVerb.PRIORITIZE)
_NOT_LOOKED_AT = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


@final
class Cycle:
    """Everything known about one attempt."""

    __slots__ = (
        "_outcome",
        "_table",
        "candidates",
        "choice",
        "exchange",
        "framework",
        "known",
        "narrowing",
        "node_names",
        "picks",
        "pod",
        "question",
        "queued",
        "snapshot",
        "started_seconds",
        "state",
        "status",
        "step",
        "within",
        "within_because",
    )

    def __init__(
        self,
        queued: QueuedPodInfo,
        framework: Framework,
        snapshot: Snapshot,
        started_seconds: float = 0.0,
    ) -> None:
        self.queued = queued
        self.pod = queued.pod
        self.framework = framework
        self.snapshot = snapshot
        self.started_seconds = started_seconds
        self.state = CycleState()
        self.step = 0
        #: Names of the only nodes that this attempt looks at; None: all.
        self.within: frozenset[str] | None = None
        #: Who is to blame that it is not all ("": nobody waits for an event), and why.
        self.within_because: tuple[str, str] = ("", OUTSIDE_DOMAIN)
        #: Nodes worth asking, and their names where PreFilter narrowed them.
        self.candidates: NodeView | None = None
        self.node_names: frozenset[str] | None = None
        self.narrowing: Set[str] = frozenset()
        #: What is known of the pod's like, and the ranking that this cycle is answered from.
        self.known: KnownPods | None = None
        self.picks: Picks | None = None
        self._outcome: FilterOutcome | None = None
        self._table: ScoreTable | None = None
        self.choice: Choice | None = None
        #: How a cycle without a node ended: a rejection of the pod as a whole, or an Error.
        self.status: Status | None = None
        #: What extenders are being asked, and what they were.
        self.question: Question | None = None
        self.exchange = Exchange()

    @property
    def outcome(self) -> FilterOutcome | None:
        """Who was rejected and why; None: no node was asked about."""
        if self._outcome is None and self.picks is not None:
            self._outcome = self.picks.outcome(self.snapshot.nodes)
        return self._outcome

    @outcome.setter
    def outcome(self, outcome: FilterOutcome | None) -> None:
        self._outcome = outcome

    @property
    def rejected(self) -> RejectedNodes | None:
        """The same, counted; None: no node was asked about."""
        picks = self.picks
        return self._outcome if self._outcome is not None or picks is None else picks.standing

    @property
    def table(self) -> ScoreTable | None:
        """The feasible nodes' scores; None where fewer than two were feasible."""
        picks = self.picks
        if self._table is None and picks is not None and picks.feasible_count > 1:
            self._table = picks.score_table(_feasible_nodes(self, picks))
        return self._table

    @table.setter
    def table(self, table: ScoreTable | None) -> None:
        self._table = table

    @property
    def is_done(self) -> bool:
        return self.choice is not None or self.status is not None

    def begin_anew(self, snapshot: Snapshot) -> None:
        """Back to the first step: anything may have changed meanwhile: nodes, nominations, objects
        that plugins look up. What extenders answered stays."""
        record_plugin_metrics = self.state.record_plugin_metrics
        self.snapshot, self.state = snapshot, CycleState()
        self.state.record_plugin_metrics = record_plugin_metrics
        self.step = 0
        self.outcome = self.node_names = self.known = self.picks = self.status = None
        self.exchange.begin_anew()

    @property
    def feasible_count(self) -> int:
        if self.picks is not None:
            return self.picks.feasible_count
        return int(np.count_nonzero(self.outcome.feasible)) if self.outcome is not None else 0

    @property
    def absent_count(self) -> int:
        """Nodes that no Filter was asked about, though others were."""
        asked = self._outcome
        return self.snapshot.node_count - len(asked.nodes) if asked is not None else 0

    @property
    def absent_status(self) -> Status:
        """Of the nodes that no Filter was asked about."""
        if self.rejected is None and self.status is not None:
            return self.status
        if self.node_names is None:
            return _NOT_LOOKED_AT
        if not self.narrowing:
            return unresolvable(self.within_because[1])
        listed = " ".join(sorted(self.narrowing))
        return unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}]")

    def fit_error(self) -> FitError:
        """Why no node was found."""
        diagnosis = Diagnosis(unschedulable_plugins=set(self.narrowing))
        rejected = self.rejected
        if rejected is None:
            assert self.status is not None
            diagnosis.pre_filter_msg = self.status.message
            diagnosis.add_plugin_status(self.status)
        else:
            diagnosis.unschedulable_plugins |= rejected.plugins()
            diagnosis.pending_plugins |= rejected.pending_plugins()
            diagnosis.counted = self._reason_counts(rejected)
        if self.exchange.statuses:
            diagnosis.unschedulable_plugins.add(EXTENDER_NAME)
        if self.within_because[0]:
            diagnosis.unschedulable_plugins.add(self.within_because[0])
        return FitError(self.pod.key, self.snapshot.node_count, diagnosis)

    def node_to_status(self) -> NodeToStatus:
        """Every node's status by name: for PostFilter, and whoever looks closely."""
        rejected, absent = self.rejected, self.absent_status
        if rejected is None:
            return NodeToStatus(absent=absent)
        statuses = rejected.node_to_status(self.snapshot.nodes, absent)
        for name, status in self.exchange.statuses.items():
            statuses.set(name, status)
        return statuses

    def _reason_counts(self, rejected: RejectedNodes) -> Counter[str]:
        counts = rejected.reason_counts()
        absent_count = self.absent_count
        if absent_count:
            for reason in self.absent_status.reasons:
                counts[reason] += absent_count
        for status in self.exchange.statuses.values():
            counts.update(status.reasons)
        return counts


class CycleRunner:
    """Walks cycles through their steps. Deterministic; knows nothing of queue and cache."""

    def __init__(
        self,
        nominator: PodNominator,
        seed: int,
        extenders: Iterable[Extender],
        reuse: Mapping[str, Reuse] | None = None,
    ) -> None:
        """``reuse``: by profile; none: every question is asked."""
        self._nominator = nominator
        self._reuse = reuse or {}
        self._seed = seed
        self._extenders = Extenders(extenders)
        #: Where the next sampled search starts in the order of the draw, per profile.
        self._next_start: dict[str, int] = {}
        self._steps: tuple[Callable[[Cycle], Question | None], ...] = (
            self._pre_filter,
            self._nominated_node,
            self._look_up,
            self._filter,
            self._ask_extenders,
            self._ask_scores,
            self._score,
            self._select,
        )

    def run(self, cycle: Cycle) -> Question | None:
        """Go on until the cycle is done (None) or something outside must be asked."""
        while cycle.choice is None and cycle.status is None:
            cycle.question = self._steps[cycle.step](cycle)
            if cycle.question is not None:
                return cycle.question
            cycle.step += 1
        self._learn(cycle)
        return None

    def resume(self, cycle: Cycle, snapshot: Snapshot, answered: Answered) -> Question | None:
        """Take a parked cycle up again with the answer to its question."""
        assert answered.question is cycle.question, f"{cycle.pod!r} waits for another answer"
        cycle.exchange.take(answered)
        cycle.begin_anew(snapshot)
        return self.run(cycle)

    # ---- steps ----------------------------------------------------------------------------

    def _pre_filter(self, cycle: Cycle) -> None:
        nodes = cycle.snapshot.nodes
        if not len(nodes):
            cycle.status = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (NO_NODES_AVAILABLE,))
            return
        run = cycle.framework.run_pre_filter
        result, status, cycle.narrowing = run(cycle.state, cycle.pod, nodes)
        if not is_success(status):
            cycle.status = status
            return
        cycle.node_names = result.node_names
        if cycle.within is not None:
            cycle.node_names = result.merge(PreFilterResult(cycle.within)).node_names
        cycle.candidates = _candidates(nodes, cycle.node_names)

    def _nominated_node(self, cycle: Cycle) -> Question | None:
        """A pod nominated to a node that still takes it goes there without looking further.

        Extenders are asked about that node alone. Upstream: evaluateNominatedNode.
        """
        name = cycle.pod.nominated_node_name
        if not name or cycle.exchange.is_nominated_node_out:
            return None
        assert cycle.candidates is not None
        position = cycle.candidates.position(name)
        if position is not None:
            question = self._try_nominated(cycle, name, position)
            if question is not None or cycle.choice is not None:
                return question
        # An Error here is not the end: the node is asked about again among all others.
        cycle.status = cycle.outcome = None
        cycle.exchange.give_up_nominated_node()
        return None

    def _try_nominated(self, cycle: Cycle, name: str, position: int) -> Question | None:
        assert cycle.candidates is not None
        framework = cycle.framework
        status = framework.filter_with_nominated(cycle.state, cycle.pod, cycle.snapshot, name)
        if not is_success(status):
            return None
        only = cycle.candidates.take([position])
        cycle.outcome = FilterOutcome(only, np.ones(1, np.bool_))
        question = self._ask_extenders(cycle)
        if question is None and cycle.status is None:
            cycle.choice = Choice(name)
        return question

    def _look_up(self, cycle: Cycle) -> None:
        """What is known of the pod's like. A narrowed choice of nodes is as soon asked about."""
        reuse = self._reuse.get(cycle.framework.profile_name)
        if reuse is None or cycle.node_names is not None or cycle.exchange.has_answers:
            return
        clock = cycle.framework.stopwatches["Filter"].now
        start = clock()
        known = reuse.known(cycle.pod)
        if not reuse.is_on:
            return
        cycle.known = known
        if reuse.is_shadow_turn:
            return
        cycle.state.kept = known
        if known.picks is not None and self._is_plain(cycle):
            self._answer(cycle, reuse, known.picks)
        if cycle.picks is None:
            known.catch_up()
        reuse.count(cycle.known, cycle.picks is not None, clock() - start)

    def _filter(self, cycle: Cycle) -> None:
        nodes = cycle.candidates
        assert nodes is not None
        if not len(nodes):
            # Those that PreFilter named do not exist; plugins need not cope with no nodes.
            cycle.outcome = FilterOutcome(nodes, np.zeros(0, np.bool_))
            return
        feasible, nominated = self._without_nominated(cycle, nodes)
        outcome = cycle.framework.run_filter(cycle.state, cycle.pod, nodes, feasible)
        cycle.outcome = outcome
        for name, position in nominated:
            if outcome.error is None:
                run = cycle.framework.filter_with_nominated
                status = run(cycle.state, cycle.pod, cycle.snapshot, name)
                outcome.settle(position, status)
        if outcome.error is not None:
            cycle.status = outcome.error
        elif not cycle.exchange.has_answers:
            self._sample(cycle, outcome)

    def _ask_extenders(self, cycle: Cycle) -> Question | None:
        assert cycle.outcome is not None
        return _taken(cycle, cycle.exchange.filter(self._extenders, cycle.pod, cycle.outcome))

    def _ask_scores(self, cycle: Cycle) -> Question | None:
        assert cycle.outcome is not None
        return _taken(cycle, cycle.exchange.prioritize(self._extenders, cycle.pod, cycle.outcome))

    def _score(self, cycle: Cycle) -> None:
        outcome, framework = cycle.outcome, cycle.framework
        assert outcome is not None
        nodes, feasible_count = outcome.nodes, int(np.count_nonzero(outcome.feasible))
        if feasible_count == 1:
            cycle.choice = Choice(nodes.name(int(np.argmax(outcome.feasible))))
            return
        if feasible_count < len(nodes):
            nodes = nodes.take(outcome.feasible)
        status = framework.run_pre_score(cycle.state, cycle.pod, nodes)
        if not is_success(status):
            cycle.status = status
            return
        scored = framework.run_score(cycle.state, cycle.pod, nodes)
        if isinstance(scored, Status):
            cycle.status = scored
            return
        cycle.exchange.add_scores(scored)
        cycle.table = scored

    def _select(self, cycle: Cycle) -> None:
        assert cycle.table is not None
        if not cycle.framework.is_plain_sum:
            keys = cycle.framework.calls(cycle.state, cycle.pod).tie_break
            cycle.status = break_ties(keys, cycle.state, cycle.pod, cycle.table)
            if cycle.status is not None:
                return
        queued = cycle.queued
        assert cycle.table is not None
        cycle.choice = choose(cycle.table, self._seed, queued.pod.uid, queued.attempts)

    # ---- reuse ----------------------------------------------------------------------------

    def _is_plain(self, cycle: Cycle) -> bool:
        """Whether all nodes are asked about, and nobody but this profile's plugins is asked."""
        return not (
            self._nominator.nominated_nodes()
            or (self._extenders and self._extenders.interested(cycle.pod, *_ABOUT_NODES))
            or not cycle.framework.is_plain_sum
            or 0 < cycle.framework.plugins.percentage_of_nodes_to_score < 100
        )

    def _answer(self, cycle: Cycle, reuse: Reuse, picks: Picks) -> None:
        """End the cycle from the ranking of the pod's like, unless that cannot be corrected."""
        nodes = cycle.candidates
        assert nodes is not None and cycle.known is not None
        try:
            calls = cycle.framework.calls(cycle.state, cycle.pod)
            asking = Asking(calls, cycle.state, cycle.pod, nodes, picks.like.counts)
            picks.refresh(asking)
            cycle.picks = picks
            if picks.feasible_count > 1:
                self._best_pick(cycle, picks, asking)
            elif picks.feasible_count:
                cycle.choice = picks.only()
            else:
                cycle.status = unschedulable()
        except OutOfDate as problem:
            cycle.picks = None
            reuse.drop_picks(cycle.known, problem.reason)

    def _best_pick(self, cycle: Cycle, picks: Picks, asking: Asking) -> None:
        framework, state, pod = cycle.framework, cycle.state, cycle.pod
        status = framework.run_pre_score(state, pod, _feasible_nodes(cycle, picks))
        if not is_success(status):
            cycle.status = status
            return
        picks.score(asking)
        cycle.choice = picks.choose(self._seed, pod.uid, cycle.queued.attempts)

    def _learn(self, cycle: Cycle) -> None:
        """Let the next of the pod's like profit."""
        known = cycle.known
        if known is None:
            return
        if cycle.picks is not None:
            known.generation = cycle.picks.generation
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

    def _without_nominated(
        self, cycle: Cycle, nodes: NodeView
    ) -> tuple[NodeMask, list[tuple[str, int]]]:
        """The mask to ask about, and the nodes to be asked one by one because of nominations."""
        feasible = all_true(len(nodes))
        nominated: list[tuple[str, int]] = []
        for name in self._nominator.nominated_nodes():
            if not cycle.framework.nominated_ahead(cycle.pod, name):
                continue
            position = nodes.position(name)
            if position is not None:
                feasible[position] = False
                nominated.append((name, position))
        return feasible, nominated

    def _sample(self, cycle: Cycle, outcome: FilterOutcome) -> None:
        """percentageOfNodesToScore: keep only the first feasible nodes from a rotating start."""
        percentage = cycle.framework.plugins.percentage_of_nodes_to_score
        if not 0 < percentage < 100:
            return
        profile = cycle.framework.profile_name
        start = self._next_start.get(profile, 0)
        outcome.feasible, looked_at = sampled(outcome, percentage, start)
        self._next_start[profile] = (start + looked_at) % cycle.snapshot.node_count


def _taken(cycle: Cycle, found: Question | Status | None) -> Question | None:
    """A question to stop with; a status ends the cycle."""
    if isinstance(found, Status):
        cycle.status = found
        return None
    return found


def _feasible_nodes(cycle: Cycle, picks: Picks) -> NodeView:
    nodes = cycle.candidates
    assert nodes is not None
    return LateNodeView(nodes, picks.feasible_rows)


def _candidates(nodes: NodeView, names: frozenset[str] | None) -> NodeView:
    return nodes if names is None else nodes.take(nodes.positions(list(names)))
