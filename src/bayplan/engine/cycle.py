"""One pod's scheduling cycle: an explicit record, walked through named steps.

The record holds everything the steps found, so that a cycle can stop after a step with an effect
(an extender must be asked), be parked, and be taken up again with the answer. When nodes changed
while it was parked, PreFilter and Filter run anew before the answer is applied: a node nobody asked
about stays out, and one that filled up meanwhile is not chosen. Without such a step the cycle runs
straight through. Upstream: schedule_one.go, algorithm.go (v1.37).

    1 pre_filter   2 nominated node   3 filter   4 extenders' filter
    5 pre_score and score   6 select   — then assume, reserve, permit (scheduler.py)
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from bayplan.engine.selection import Choice, choose, sampled
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.interface import CycleState, PodNominator, QueuedPodInfo
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
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from bayplan.state.snapshot import Snapshot


class Extender(Protocol):
    """A filter outside the process, as the engine knows it: whether to ask, not how."""

    @property
    def name(self) -> str: ...
    @property
    def ignorable(self) -> bool: ...
    def is_interested(self, pod: PodInfo) -> bool: ...


@dataclass(frozen=True, slots=True)
class ExtenderAnswer:
    """What came back: the nodes left, and why others are not. ``error``: nothing came back."""

    node_names: frozenset[str] = frozenset()
    failed: dict[str, str] = field(default_factory=dict[str, str])
    failed_and_unresolvable: dict[str, str] = field(default_factory=dict[str, str])
    error: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """The effect a cycle stops with: what to ask whom about which nodes."""

    extender: Extender
    node_names: tuple[str, ...]


@dataclass(slots=True)
class Cycle:
    """Everything known about one attempt."""

    queued: QueuedPodInfo
    framework: Framework
    snapshot: Snapshot
    state: CycleState = field(default_factory=CycleState)
    step: int = 0
    #: The cluster's generation that the answers below are true for.
    generation: int = 0
    #: Nodes worth asking, and their names where PreFilter narrowed them.
    candidates: NodeView | None = None
    node_names: frozenset[str] | None = None
    narrowing: set[str] = field(default_factory=set[str])
    outcome: FilterOutcome | None = None
    table: ScoreTable | None = None
    choice: Choice | None = None
    #: How a cycle without a node ended: a rejection of the pod as a whole, or an Error.
    status: Status | None = None
    #: Extenders still to be asked in this cycle, and what those before answered.
    waiting_extenders: list[Extender] = field(default_factory=list[Extender])
    answers: list[tuple[Extender, ExtenderAnswer]] = field(
        default_factory=list[tuple[Extender, ExtenderAnswer]]
    )
    extender_statuses: dict[str, Status] = field(default_factory=dict[str, Status])

    @property
    def pod(self) -> PodInfo:
        return self.queued.pod

    @property
    def is_done(self) -> bool:
        return self.choice is not None or self.status is not None

    @property
    def feasible_count(self) -> int:
        return int(np.count_nonzero(self.outcome.feasible)) if self.outcome is not None else 0

    def diagnosis(self) -> Diagnosis:
        """Why no node was found."""
        diagnosis = Diagnosis(unschedulable_plugins=set(self.narrowing))
        if self.outcome is None:
            assert self.status is not None
            diagnosis.node_to_status = NodeToStatus(absent=self.status)
            diagnosis.pre_filter_msg = self.status.message
            diagnosis.add_plugin_status(self.status)
            return diagnosis
        diagnosis.unschedulable_plugins |= self.outcome.plugins()
        diagnosis.pending_plugins |= self.outcome.pending_plugins()
        if self.extender_statuses:
            diagnosis.unschedulable_plugins.add(EXTENDER_NAME)
        diagnosis.counted = self._reason_counts(self.outcome)
        return diagnosis

    def node_to_status(self) -> NodeToStatus:
        """Every node's status by name: for PostFilter, and whoever looks closely."""
        if self.outcome is None:
            return NodeToStatus(absent=self.status)
        statuses = self.outcome.node_to_status(self._absent_status())
        for name, status in self.extender_statuses.items():
            statuses.set(name, status)
        return statuses

    def fit_error(self) -> FitError:
        return FitError(self.pod.key, self.snapshot.node_count, self.diagnosis())

    def _absent_status(self) -> Status:
        if self.node_names is None:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        listed = " ".join(sorted(self.narrowing))
        return unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}]")

    def _reason_counts(self, outcome: FilterOutcome) -> Counter[str]:
        counts = outcome.reason_counts()
        absent_count = self.snapshot.node_count - len(outcome.nodes)
        for reason in self._absent_status().reasons:
            if absent_count:
                counts[reason] += absent_count
        for status in self.extender_statuses.values():
            counts.update(status.reasons)
        return counts


class CycleRunner:
    """Walks cycles through their steps. Deterministic; knows nothing of queue and cache."""

    def __init__(self, nominator: PodNominator, seed: int, extenders: Sequence[Extender]) -> None:
        self._nominator = nominator
        self._seed = seed
        self._extenders = tuple(extenders)
        #: Where the next sampled search starts in the order of the draw, per profile.
        self._next_start: dict[str, int] = {}
        self._steps: tuple[Callable[[Cycle], Question | None], ...] = (
            self._pre_filter,
            self._nominated_node,
            self._filter,
            self._ask_extenders,
            self._score,
            self._select,
        )

    def run(self, cycle: Cycle) -> Question | None:
        """Go on until the cycle is done (None) or something outside must be asked."""
        while not cycle.is_done:
            question = self._steps[cycle.step](cycle)
            if question is not None:
                return question
            cycle.step += 1
        return None

    def resume(self, cycle: Cycle, snapshot: Snapshot, answer: ExtenderAnswer) -> Question | None:
        """Take a parked cycle up again with the answer to its question."""
        extender = cycle.waiting_extenders.pop(0)
        cycle.answers.append((extender, answer))
        changed = snapshot.generation != cycle.generation
        cycle.snapshot = snapshot
        if changed:
            self._refilter(cycle)
        else:
            assert cycle.outcome is not None
            cycle.candidates = _candidates(cycle)
            cycle.outcome.nodes = cycle.candidates
            self._apply(cycle, extender, answer)
        return self.run(cycle)

    # ---- steps ----------------------------------------------------------------------------

    def _pre_filter(self, cycle: Cycle) -> None:
        cycle.generation = cycle.snapshot.generation
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
        cycle.candidates = _candidates(cycle)

    def _nominated_node(self, cycle: Cycle) -> None:
        """A pod nominated to a node that still takes it goes there without looking further."""
        name = cycle.pod.nominated_node_name
        if not name:
            return
        assert cycle.candidates is not None
        position = cycle.candidates.position(name)
        if position is None:
            return
        framework = cycle.framework
        status = framework.filter_with_nominated(cycle.state, cycle.pod, cycle.snapshot, name)
        if not is_success(status) or self._interested(cycle):
            return
        only = cycle.candidates.take([position])
        cycle.outcome = FilterOutcome(only, np.ones(1, np.bool_))
        cycle.choice = Choice(name, evaluated_count=1)

    def _filter(self, cycle: Cycle) -> None:
        nodes = cycle.candidates
        assert nodes is not None
        feasible, nominated = self._without_nominated(cycle, nodes)
        outcome = cycle.framework.run_filter(cycle.state, cycle.pod, nodes, feasible)
        cycle.outcome = outcome
        for name, position in nominated:
            run = cycle.framework.filter_with_nominated
            status = run(cycle.state, cycle.pod, cycle.snapshot, name)
            if is_rejected(status):
                assert status is not None
                outcome.reject(position, status)
            elif is_success(status):
                outcome.feasible[position] = True
            else:
                outcome.error = status
        if outcome.error is not None:
            cycle.status = outcome.error
            return
        self._sample(cycle, outcome)
        cycle.waiting_extenders = self._interested(cycle)

    def _ask_extenders(self, cycle: Cycle) -> Question | None:
        outcome = cycle.outcome
        assert outcome is not None
        if not outcome.feasible.any():
            cycle.status = unschedulable()
            return None
        if not cycle.waiting_extenders:
            return None
        names = outcome.nodes.take(outcome.feasible).names()
        return Question(cycle.waiting_extenders[0], tuple(names))

    def _score(self, cycle: Cycle) -> None:
        outcome, framework = cycle.outcome, cycle.framework
        assert outcome is not None
        feasible_count = int(np.count_nonzero(outcome.feasible))
        evaluated_count = len(outcome.nodes)
        if feasible_count == 1:
            only = int(np.argmax(outcome.feasible))
            cycle.choice = Choice(outcome.nodes.name(only), evaluated_count=evaluated_count)
            return
        every = feasible_count == len(outcome.nodes)
        nodes = outcome.nodes if every else outcome.nodes.take(outcome.feasible)
        status = framework.run_pre_score(cycle.state, cycle.pod, nodes)
        if not is_success(status):
            cycle.status = status
            return
        scored = framework.run_score(cycle.state, cycle.pod, nodes)
        if isinstance(scored, Status):
            cycle.status = scored
        else:
            cycle.table = scored

    def _select(self, cycle: Cycle) -> None:
        assert cycle.table is not None and cycle.outcome is not None
        evaluated_count = len(cycle.outcome.nodes)
        queued = cycle.queued
        cycle.choice = choose(
            cycle.table, self._seed, queued.pod.uid, queued.attempts, evaluated_count
        )

    # ---- inside ---------------------------------------------------------------------------

    def _without_nominated(
        self, cycle: Cycle, nodes: NodeView
    ) -> tuple[np.ndarray, list[tuple[str, int]]]:
        """The mask to ask about, and the nodes to be asked one by one because of nominations."""
        feasible = np.ones(len(nodes), np.bool_)
        nominated: list[tuple[str, int]] = []
        for name in self._nominator.nominated_nodes():
            if not cycle.framework.nominated_ahead(cycle.pod, name):
                continue
            position = nodes.position(name)
            if position is not None:
                feasible[position] = False
                nominated.append((name, position))
        return feasible, nominated

    def _interested(self, cycle: Cycle) -> list[Extender]:
        return [e for e in self._extenders if e.is_interested(cycle.pod)]

    def _sample(self, cycle: Cycle, outcome: FilterOutcome) -> None:
        """percentageOfNodesToScore: keep only the first feasible nodes from a rotating start."""
        percentage = cycle.framework.plugins.percentage_of_nodes_to_score
        if not 0 < percentage < 100:
            return
        profile = cycle.framework.profile_name
        start = self._next_start.get(profile, 0)
        outcome.feasible, looked_at = sampled(outcome, percentage, start)
        total = max(cycle.snapshot.node_count, 1)
        self._next_start[profile] = (start + looked_at) % total

    def _refilter(self, cycle: Cycle) -> None:
        """Nodes changed while it was parked: ask the plugins anew, then apply all answers."""
        cycle.state = CycleState()
        cycle.extender_statuses.clear()
        asked = cycle.waiting_extenders
        for step in (self._pre_filter, self._filter):
            if not cycle.is_done:
                step(cycle)
        cycle.waiting_extenders = asked
        for extender, answer in cycle.answers:
            if not cycle.is_done:
                self._apply(cycle, extender, answer)

    def _apply(self, cycle: Cycle, extender: Extender, answer: ExtenderAnswer) -> None:
        """Take out what an extender's answer leaves out."""
        outcome = cycle.outcome
        assert outcome is not None
        if answer.error:
            if not extender.ignorable:
                reason = f"extender {extender.name}: {answer.error}"
                cycle.status = Status(Code.ERROR, (reason,))
            return
        kept = outcome.feasible.copy()
        for position in np.flatnonzero(outcome.feasible).tolist():
            name = outcome.nodes.name(position)
            if name in answer.node_names:
                continue
            kept[position] = False
            cycle.extender_statuses[name] = _extender_status(name, answer)
        outcome.feasible = kept


def _candidates(cycle: Cycle) -> NodeView:
    nodes = cycle.snapshot.nodes
    if cycle.node_names is None:
        return nodes
    return nodes.take(nodes.positions(sorted(cycle.node_names)))


def _extender_status(name: str, answer: ExtenderAnswer) -> Status:
    if name in answer.failed_and_unresolvable:
        reason = answer.failed_and_unresolvable[name]
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,), EXTENDER_NAME)
    reasons = (answer.failed[name],) if name in answer.failed else ()
    return Status(Code.UNSCHEDULABLE, reasons, EXTENDER_NAME)
