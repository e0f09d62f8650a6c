"""One pass over a group: members are tried one after another in a trial of the snapshot.

A member that finds a node is assumed and reserved in the trial, so later members see it. The pass
ends early when too few members are left for the quorum. `PodGroupTrial` says how many members fit
and why the first other member does not. The caller commits the trial or undoes it. Upstream:
algorithm_podgroup.go (v1.37).

A pass cannot wait for an extender, because the trial holds the snapshot. So an unanswered question
gets a guess: all nodes stay in, except those that the extender excluded for an equal member. If the
group seems to fit, the trial is undone, all guessed questions are asked at once, and the pass runs
again with the answers. A pass without a guess equals one that asks for each member.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple, final

from msgspec import Struct, field, structs

from bayplan.config.feature_gates import FeatureGates
from bayplan.config.schema import PodGroupSettings
from bayplan.engine.attempt_record import CycleEnd
from bayplan.engine.cycle import OUTSIDE_OF_PLACEMENT, Cycle
from bayplan.engine.extenders.results import AnsweredQuestion, Question
from bayplan.engine.podgroups.topology import DomainResults, Domains
from bayplan.engine.ranked_domain import RankedDomain, decides
from bayplan.engine.ranking.choices import choices
from bayplan.engine.ranking.ranked_nodes import SCORED_MIN, RankedNodes
from bayplan.engine.reservations import Reservations, restrict_to_unreserved
from bayplan.engine.schedule_one import CycleRunner
from bayplan.engine.telemetry import Telemetry
from bayplan.framework.runtime import Framework
from bayplan.framework.scoring import Choice
from bayplan.framework.status import Diagnosis, Status, is_rejected, is_success
from bayplan.framework.types import QueuedPodInfo
from bayplan.journal import AttemptRecord, Journal
from bayplan.ports import ExtenderAnswer, ExtenderVerb
from bayplan.state.cache import ClusterView, Trial
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo, PodShape
from bayplan.state.resources import uses

# ---- calls of extenders ---------------------------------------------------------------------


#: The number of rounds. Answers may lead to new questions; after so many rounds the guesses count
#: as answers.
_ROUNDS_MAX: Final = 20

#: (pod, verb, extenders, nodes)
_QuestionKey = tuple[str, ExtenderVerb, tuple[str, ...], tuple[str, ...]]


@final
class GroupExtenderCalls:
    """Questions of one attempt, with their answers."""

    def __init__(self) -> None:
        self._answers: dict[_QuestionKey, tuple[ExtenderAnswer, ...]] = {}
        #: (id of a pod's shape, extender) → nodes that the extender excluded.
        self._left_out: dict[tuple[int, str], set[str]] = defaultdict(set)
        self.round_count = 0
        #: The questions that were answered by a guess in this round.
        self.unanswered: dict[_QuestionKey, tuple[Cycle, Question]] = {}
        #: Whether a guess of this round excluded a node.
        self.has_doubts = False

    def begin_round(self) -> None:
        self.round_count += 1
        self.unanswered = {}
        self.has_doubts = False

    def need_answers(self, *, fits: bool) -> bool:
        """Whether the extenders have to be called. A group that does not fit although every guess
        left all nodes in needs no answers."""
        is_guessed = bool(self.unanswered) and self.round_count < _ROUNDS_MAX
        return is_guessed and (fits or self.has_doubts)

    def answered(self, cycle: Cycle, question: Question) -> AnsweredQuestion:
        """The answers to a question of a member's cycle. They may be guessed."""
        key = _key(cycle, question)
        answers = self._answers.get(key)
        if answers is not None:
            return AnsweredQuestion(question, answers)
        self.unanswered.setdefault(key, (cycle, question))
        guesses = tuple(self._guess(cycle, question, each.name) for each in question.extenders)
        return AnsweredQuestion(question, guesses)

    def take(self, cycle: Cycle, answered: AnsweredQuestion) -> None:
        """Store the answers to a question that was guessed."""
        question = answered.question
        self._answers[_key(cycle, question)] = answered.answers
        if question.verb is not ExtenderVerb.FILTER:
            return
        for extender, answer in zip(question.extenders, answered.answers, strict=True):
            if not answer.error:
                left_out = frozenset(question.node_names) - answer.node_names
                self._left_out[id(cycle.pod.shape), extender.name] |= left_out

    def _guess(self, cycle: Cycle, question: Question, extender: str) -> ExtenderAnswer:
        if question.verb is not ExtenderVerb.FILTER:
            return ExtenderAnswer()
        node_names = frozenset(question.node_names)
        left = node_names - self._left_out[id(cycle.pod.shape), extender]
        self.has_doubts |= left != node_names
        return ExtenderAnswer(node_names=left)


def _key(cycle: Cycle, question: Question) -> _QuestionKey:
    names = tuple(extender.name for extender in question.extenders)
    return cycle.pod.uid, question.verb, names, question.node_names


# ---- the trial ------------------------------------------------------------------------------


class PlacedMember(Struct):
    """A member that found a node."""

    cycle: Cycle
    #: The pod as it is on its node.
    pod: PodInfo
    #: The journal's record of its cycle; None: nobody reads the journal.
    record: AttemptRecord | None


class UnplacedMember(Struct):
    """A member that found no node."""

    queued: QueuedPodInfo
    status: Status
    message: str
    diagnosis: Diagnosis | None
    record: AttemptRecord | None
    #: The position of the member in the order of the pass, from 1.
    nth: int = 0


class FittingMember(NamedTuple):
    """A member that found a node in a pass."""

    uid: str
    record: AttemptRecord | None


class PassResult(Struct, frozen=True):
    """The result of a pass, as messages and records need it."""

    placed: Sequence[FittingMember]
    unplaced: Sequence[UnplacedMember]
    #: Filter plugins that rejected nodes for members that fit on other nodes.
    rejecting: Set[str]
    #: Plugins that rejected members in other domains, if no domain sufficed.
    elsewhere: Set[str]
    #: The value of the topology key that the nodes share; "": all nodes.
    domain: str
    #: How many domains were tried, under the gate TopologyAwareWorkloadScheduling; else None.
    placement_count: int | None
    #: Why no arrangement of the members was found; "": none was searched for.
    search_problem: str = ""
    #: Why no placement could be tried or chosen; None: placements could.
    status: Status | None = None

    @property
    def error(self) -> UnplacedMember | None:
        """The member whose attempt ended with an error. Then the pass decides nothing."""
        return next((one for one in self.unplaced if not is_rejected(one.status)), None)


class TrialSetup(Struct, frozen=True):
    """The parts of the engine that a pass uses."""

    cluster: ClusterView
    frameworks: Mapping[str, Framework]
    reservations: Reservations
    telemetry: Telemetry
    gates: FeatureGates
    runner: CycleRunner
    end: CycleEnd
    domains: Domains
    settings: PodGroupSettings = PodGroupSettings()
    results: DomainResults = field(default_factory=DomainResults)
    questions: GroupExtenderCalls = field(default_factory=GroupExtenderCalls)

    @property
    def has_placements(self) -> bool:
        """Whether domains are upstream's placements for groups of scheduling.k8s.io."""
        return self.gates.enabled("TopologyAwareWorkloadScheduling")

    def has_placements_for(self, state: GroupState) -> bool:
        """Whether plugins make and choose the placements of a group."""
        return state.is_upstream and self.has_placements


@final
class EqualMembers(Struct, frozen=True, eq=False):
    """Members that one ranking of all nodes answers for; see `equal_members`."""

    ranking: RankedNodes
    #: A cycle that the ranking answered, for each template. The cycle has the notes of the plugins.
    cycles: Mapping[PodShape, Cycle]


def serves_template(cycle: Cycle) -> bool:
    """Whether the ranking that answered a cycle decides alone about all pods of the template and
    the owners."""
    ranking, calls = cycle.ranking, cycle.framework.calls(cycle.state, cycle.pod)
    follows = calls.pre_state_per_template and not (calls.reserve or calls.unreserve)
    return ranking is not None and decides(ranking) and follows


@final
class PodGroupTrial:
    """One pass over the members in a trial, with its result."""

    def __init__(
        self,
        setup: TrialSetup,
        trial: Trial,
        within: frozenset[str] | None = None,
        *,
        within_by_uid: Mapping[str, frozenset[str]] | None = None,
        is_compared: bool = False,
        equal: EqualMembers | None = None,
    ) -> None:
        """``within``: the names of the nodes to evaluate; None: all nodes. ``within_by_uid``: the
        same for single members. ``is_compared``: the result is compared with those of other
        domains. ``equal``: the members, if it is known beforehand that they are equal."""
        self._cluster = setup.cluster
        self._frameworks = setup.frameworks
        self._reservations = setup.reservations
        self._telemetry = setup.telemetry
        self._runner = setup.runner
        self._end = setup.end
        self._questions = setup.questions
        self._trial = trial
        self._within = within
        self._within_by_uid = within_by_uid or {}
        self._is_compared = is_compared
        #: The ranking that answers for members; and a cycle that it answered, for each template.
        self._ranking: RankedNodes | None = None if equal is None else equal.ranking
        self._examples = {} if equal is None else dict(equal.cycles)
        is_restricted = bool(within_by_uid) or setup.reservations.is_active
        #: Whether nothing but the ranking may decide about members.
        self._is_free = not (is_restricted or setup.end.is_observed)
        self._is_placement = setup.has_placements
        self._shapes: set[int] = set()
        #: The notes of plugins that the members share.
        self.notes: dict[Hashable, Any] = {}
        self.placed: list[PlacedMember] = []
        #: The members that found nodes, as they are on their nodes; and the members for which a
        #: compared pass chose nodes without placing them.
        self.pods: list[PodInfo] = []
        #: Whether the members that found nodes have given them back.
        self.is_undone = False
        #: Why no placement could be tried or chosen; None: placements could.
        self.status: Status | None = None
        self.unplaced: list[UnplacedMember] = []
        #: Filter plugins that rejected nodes for members that fit on other nodes.
        self.rejecting: set[str] = set()
        #: The sum of the members' scores, if the pass is compared.
        self.total_score = 0
        #: The value of the topology key that the nodes share; "": all nodes.
        self.domain = ""
        #: How many domains were tried, under the gate TopologyAwareWorkloadScheduling; else None.
        self.placement_count: int | None = None
        #: Whether the result follows from what the nodes offer alone, without a draw. It is noted
        #: only if the pass is compared.
        self.is_repeatable = True
        #: Plugins that rejected members in other domains, if no domain sufficed.
        self.elsewhere: set[str] = set()
        #: Why no arrangement of the members was found; "": none was searched for.
        self.search_problem = ""
        #: The ranking of all nodes that answered for the first member, until a node is drawn for a
        #: member or another answer is needed.
        self.ranking: RankedNodes | None = None
        self._is_certain = True

    def result(self) -> PassResult:
        """The result of the pass up to now."""
        return PassResult(
            placed=[FittingMember(one.pod.uid, one.record) for one in self.placed],
            unplaced=self.unplaced,
            rejecting=self.rejecting,
            elsewhere=self.elsewhere,
            domain=self.domain,
            placement_count=self.placement_count,
            search_problem=self.search_problem,
            status=self.status,
        )

    @property
    def error(self) -> UnplacedMember | None:
        """The member whose attempt ended with an error. Then the pass decides nothing."""
        return next((one for one in self.unplaced if not is_rejected(one.status)), None)

    def without_placement(self, status: Status) -> "PodGroupTrial":
        """Undo a pass whose placement is not used, because an error or a rejection concerns more
        than one member."""
        self.undo()
        self.status, self.placed, self.unplaced = status, [], []
        self.elsewhere = {status.plugin}
        return self

    def fits(self, needed_count: int) -> bool:
        """Whether enough members found nodes, and in the domains that they need."""
        has_nodes = self.error is None and len(self.placed) >= needed_count
        return has_nodes and not self.search_problem

    def run(self, members: Sequence[QueuedPodInfo], needed_count: int) -> "PodGroupTrial":
        """Try the members in order, as long as ``needed_count`` of them may fit."""
        try:
            self._run(members, needed_count)
        except Exception:
            # The trial undoes its placements, but not the reservations of plugins.
            for placed in reversed(self.placed):
                self.unreserve(placed)
            raise
        return self

    def _run(self, members: Sequence[QueuedPodInfo], needed_count: int) -> None:
        count = len(members) if self._is_compared and self._compare_equal(members) else 0
        while count < len(members) and self.error is None:
            if len(self.placed) + len(members) - count < needed_count:
                break
            equal_count = self._place_equal(members, count) if self._examples else 0
            if not equal_count:
                self._try(members[count])
                if self.unplaced and not self.unplaced[-1].nth:
                    self.unplaced[-1].nth = count + 1
            count += equal_count or 1

    def blamed(self) -> set[str]:
        """Plugins that rejected members."""
        diagnoses = [one.diagnosis for one in self.unplaced if one.diagnosis is not None]
        rejecting_plugins = [
            each.unschedulable_plugins | each.pending_plugins for each in diagnoses
        ]
        return self.rejecting.union(*rejecting_plugins)

    def undo(self) -> None:
        """Undo all placements, the last member first, unless they are undone already."""
        if self.is_undone:
            return
        self.is_undone = True
        for placed in reversed(self.placed):
            self.unreserve(placed)
            self._trial.undo_last()

    def unreserve(self, placed: PlacedMember) -> None:
        """Run Unreserve for a member."""
        unreserve(self._telemetry, placed.cycle, placed.pod)

    # ---- one member -----------------------------------------------------------------------

    def _cycle(self, queued: QueuedPodInfo) -> Cycle:
        assert self._cluster.loan is not None
        framework = self._frameworks[queued.pod.scheduler_name]
        cycle = Cycle(queued, framework, self._cluster.loan, self._telemetry.clock.now())
        cycle.state.group_notes = self.notes
        cycle.within = self._within_by_uid.get(queued.pod.uid, self._within)
        if self._is_placement and queued.pod.shape.spec.scheduling_group is not None:
            cycle.restriction = OUTSIDE_OF_PLACEMENT
        return cycle

    def _try(self, queued: QueuedPodInfo) -> None:
        assert self._cluster.loan is not None
        cycle = self._cycle(queued)
        restrict_to_unreserved(cycle, self._reservations)
        question = self._runner.run(cycle)
        while question is not None:
            answered = self._questions.answered(cycle, question)
            question = self._runner.resume(cycle, self._cluster.loan, answered)
        self._note_ranking(cycle)
        self._note_example(cycle)
        if cycle.status is not None:
            self.unplaced.append(self._no_node(cycle, cycle.status))
        else:
            self._place(cycle)

    def _note_ranking(self, cycle: Cycle) -> None:
        ranking, choice = cycle.ranking, cycle.choice
        is_drawn = choice is not None and choice.tied_count > 1
        if is_drawn or ranking is None or cycle.ranked_answer is not ranking:
            self.ranking, self._is_certain = None, False
        elif self._is_certain and self.ranking is None:
            self.ranking = ranking

    def _place(self, cycle: Cycle) -> None:
        assert cycle.choice is not None
        node_name = cycle.choice.node_name
        # The record is made before the trial places the member.
        record = self._record(cycle, "scheduled")
        self._note_rejecting(cycle)
        if self._is_compared:
            self._compare(cycle)
        placed = self._trial.assume(cycle.pod_on(node_name), node_name)
        status = cycle.framework.run_reserve(cycle.state, placed, node_name)
        if is_success(status):
            self.placed.append(PlacedMember(cycle, placed, record))
            self.pods.append(placed)
            return
        assert status is not None
        unreserve(self._telemetry, cycle, placed)
        self._trial.undo_last()
        diagnosis = Diagnosis()
        diagnosis.add_plugin_status(status)
        if record is not None:
            result = "unschedulable" if is_rejected(status) else "error"
            record = structs.replace(
                record, result=result, message=status.message, plugin=status.plugin
            )
        unplaced = UnplacedMember(cycle.queued, status, status.message, diagnosis, record)
        self.unplaced.append(unplaced)

    def _compare(self, cycle: Cycle) -> None:
        self.total_score += _score_of(cycle)
        self._note_repeatable(cycle)

    def _note_repeatable(self, cycle: Cycle) -> None:
        if self.is_repeatable:
            equivalence, answer = self._cluster.cache.table.resources.equivalence, cycle.answer
            self.is_repeatable = answer is not None and answer.is_repeatable(equivalence)

    def _note_rejecting(self, cycle: Cycle) -> None:
        """Note the rejecting plugins, once for all members of one shape."""
        if id(cycle.pod.shape) not in self._shapes and cycle.feasibility is not None:
            self._shapes.add(id(cycle.pod.shape))
            self.rejecting |= cycle.feasibility.plugins()

    def _no_node(self, cycle: Cycle, status: Status) -> UnplacedMember:
        self._note_repeatable(cycle)
        if not is_rejected(status) or not cycle.snapshot.node_count:
            result = "unschedulable" if is_rejected(status) else "error"
            record = self._record(cycle, result, status, status.message)
            return UnplacedMember(cycle.queued, status, status.message, None, record)
        fit_error = cycle.fit_error()
        record = self._record(cycle, "unschedulable", status, fit_error.message)
        return UnplacedMember(cycle.queued, status, fit_error.message, fit_error.diagnosis, record)

    def _record(
        self, cycle: Cycle, result: str, status: Status | None = None, message: str = ""
    ) -> AttemptRecord | None:
        """The record of a member's attempt. None: nobody reads the journal, or the pass is only
        compared and will be undone."""
        if self._is_compared:
            self._end.show(cycle)
            return None
        return self._end.observe(cycle, result, status, message)

    # ---- equal members --------------------------------------------------------------------

    def are_of_tried_templates(self, members: Iterable[QueuedPodInfo]) -> bool:
        """Whether the ranking that answered for members that were tried answers for all these."""
        return all(self._example_of(queued) is not None for queued in members)

    def _example_of(self, queued: QueuedPodInfo) -> Cycle | None:
        """A cycle of a member of the same template and owners that the ranking answered."""
        pod = queued.pod
        example = self._examples.get(pod.shape)
        if example is None or pod.status.nominated_node_name:
            return None
        is_equal = example.pod.metadata.owner_references == pod.metadata.owner_references
        return example if is_equal else None

    def _note_example(self, cycle: Cycle) -> None:
        answer = cycle.ranked_answer
        ranking = answer.whole if isinstance(answer, RankedDomain) else answer
        if not (self._is_free and isinstance(ranking, RankedNodes)):
            return
        if ranking is cycle.ranking and serves_template(cycle):
            if ranking is not self._ranking:
                self._ranking, self._examples = ranking, {}
            self._examples[cycle.pod.shape] = cycle

    def _answer(self, ranking: RankedNodes | None) -> RankedNodes | RankedDomain | None:
        """The ranking's answer for the nodes of the pass as they are. None: a member needs a
        cycle."""
        if ranking is None or ranking.is_dropped or not ranking.follow():
            return None
        answer: RankedNodes | RankedDomain = ranking
        if self._within is not None:
            rows = self._runner.domain_rows.of(self._within, ranking.table)
            answer = RankedDomain(ranking, rows)
        if answer.feasible_count >= SCORED_MIN:
            return answer
        ranking.uncount()
        return None

    def _choices(
        self, answer: RankedNodes | RankedDomain, members: Sequence[QueuedPodInfo]
    ) -> Iterator[tuple[Cycle, QueuedPodInfo, Choice]]:
        """The choices for the first members, each with an example, as long as placements of equal
        members change only amounts. `choices` says when the caller counts a member."""
        used, examples = uses(members[0].pod.shape), list[Cycle]()

        def equal() -> Iterator[QueuedPodInfo]:
            for queued in members:
                shape = queued.pod.shape
                example = self._example_of(queued) if shape.takes_amounts_and_ports else None
                if example is None or uses(shape) != used:
                    return
                examples.append(example)
                yield queued

        made = choices(answer, self._runner.seed, equal(), used)
        for queued, choice in zip(members, made, strict=False):
            yield examples[-1], queued, choice

    def _compare_equal(self, members: Sequence[QueuedPodInfo]) -> bool:
        """Choose nodes for all members, and place none of them. False: the choices need
        placements."""
        answer = self._answer(self._ranking)
        if not isinstance(answer, RankedDomain):
            return False
        rejecting, pods, total_score = answer.feasibility.plugins(), list[PodInfo](), 0
        equivalence, is_repeatable = answer.table.resources.equivalence, True
        for _, queued, choice in self._choices(answer, members):
            total_score += answer.best_total()
            is_repeatable = is_repeatable and answer.is_repeatable(equivalence)
            pods.append(queued.pod.on_node(choice.node_name))
        if len(pods) < len(members):
            return False
        self.rejecting |= rejecting
        self.pods, self.total_score, self.is_repeatable = pods, total_score, is_repeatable
        return True

    def _place_equal(self, members: Sequence[QueuedPodInfo], start: int) -> int:
        """Place equal members from here on, without a cycle for each of them. Returns how many it
        placed; 0: the first one needs a cycle."""
        example, ranking = self._example_of(members[start]), self._ranking
        if example is None or ranking is None:
            return 0
        cache = self._runner.caches[example.framework.profile_name]
        owner = cache.owner_of(ranking)
        if owner is None:
            return 0
        run = members[start : start + cache.repeats_left(owner)]
        answer, count = self._answer(ranking) if run else None, 0
        for own, queued, choice in self._choices(answer, run) if answer is not None else ():
            cycle = self._cycle(queued)
            cycle.start_with(own.state.clone(), own.entry)
            cycle.entry, cycle.node_names = own.entry, self._within
            cycle.ranking, cycle.ranked_answer, cycle.choice = ranking, answer, choice
            cycle.framework.stopwatches["Sign"].idle()
            cache.observe_hinted(0.0)
            self._note_ranking(cycle)
            self._place(cycle)
            count += 1
            if answer is not ranking and not ranking.follow():
                break
        if count:
            cache.repeated(owner, ranking, run[:count])
        return count


def unreserve(telemetry: Telemetry, cycle: Cycle, pod: PodInfo) -> None:
    """Run Unreserve for a member on its node."""
    for failure in cycle.framework.run_unreserve(cycle.state, pod, pod.node_name):
        telemetry.plugin_failed(pod.key, failure.plugin, failure.message)


def write_records(
    journal: Journal,
    placed: Iterable[PlacedMember | FittingMember],
    unplaced: Iterable[UnplacedMember],
    *,
    fits: bool,
) -> None:
    """Write the record of each member. If the group does not fit, all are unschedulable."""
    outcome = "scheduled" if fits else "unschedulable"
    for one in placed:
        record = one.record
        if record is not None:
            is_final = record.result == outcome
            journal.write(record if is_final else structs.replace(record, result=outcome))
    for one in unplaced:
        if one.record is not None:
            journal.write(one.record)


def _score_of(cycle: Cycle) -> int:
    """The total score of the chosen node. A cycle does not score a single feasible node, but here
    its score decides between domains."""
    answer = cycle.answer
    if answer is not None and cycle.is_scored:
        return answer.best_total()
    if cycle.choice is not None:
        framework, state, pod = cycle.framework, cycle.state, cycle.pod
        assert cycle.candidates is not None
        node = cycle.candidates.take(cycle.candidates.positions([cycle.choice.node_name]))
        if is_success(framework.run_pre_score(state, pod, node)):
            scored = framework.run_score(state, pod, node)
            return 0 if isinstance(scored, Status) else int(scored.totals.max())
    return 0
