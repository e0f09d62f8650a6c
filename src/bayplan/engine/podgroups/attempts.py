"""Attempts at groups: one pass tries all members, and then all of them are placed, or none.

    popped → trial → enough fit  → committed, Permit, bound together
                   → too few fit → everything put back, the group returns to the queue as one

Members beyond the minimum that do not fit return to the queue one by one, because their group runs.
If a Permit plugin returns Wait for a member, the whole group keeps its reservations and waits until
all members are allowed. If one member is rejected or times out, the group gives everything back. A
member whose binding fails later is retried alone.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, final

from msgspec import Struct
from msgspec.structs import replace

from bayplan.engine.attempt_record import CycleEnd
from bayplan.engine.core import GroupController
from bayplan.engine.cycle import Cycle
from bayplan.engine.exclusive_domains import domain_nodes
from bayplan.engine.extenders.results import AnsweredQuestion
from bayplan.engine.failures import Failure, FailureHandler, failure_by_error
from bayplan.engine.outbox import Outbox, group_reference
from bayplan.engine.placements import Placements
from bayplan.engine.podgroups.backfill import DepartureOrder, find_reservation
from bayplan.engine.podgroups.controller import missing_resources
from bayplan.engine.podgroups.domains import best_pass, why_nowhere
from bayplan.engine.podgroups.equal_members import FailedPasses
from bayplan.engine.podgroups.placements import GroupPlacements
from bayplan.engine.podgroups.preemption import PREFIX, PodGroupPreemptor, PodGroupToPlace
from bayplan.engine.podgroups.refusals import (
    NoPreemption,
    PreemptionPlan,
    Refusal,
    by_error,
    failure_of_member,
    mismatch,
    of_upstream,
    texts_of,
    topology_problem,
    without_placement,
)
from bayplan.engine.podgroups.status import (
    no_domain,
    reserved_for,
    short_of_resources,
    too_few_fit,
    waiting_for,
)
from bayplan.engine.podgroups.tree_attempts import TreeAttempts
from bayplan.engine.podgroups.trial import (
    GroupExtenderCalls,
    PassResult,
    PodGroupTrial,
    TrialSetup,
    UnplacedMember,
    write_records,
)
from bayplan.engine.resizes import Resizes
from bayplan.engine.sync_preemption import SyncPreemptions
from bayplan.engine.unplaced_pods import PendingExtenderCalls
from bayplan.engine.waiting import WaitingPods
from bayplan.framework.status import (
    Code,
    Diagnosis,
    Status,
    is_rejected,
    shared_names,
    unschedulable,
)
from bayplan.framework.types import QueuedPodInfo
from bayplan.queue.entry import QueuedPodGroupInfo
from bayplan.queue.nominator import Nominator
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.state.cache import Trial
from bayplan.state.pod_groups import GroupState


class _PendingGroup(Struct, eq=False):
    """A group that waits for the answers of extenders."""

    lead: QueuedPodGroupInfo
    questions: GroupExtenderCalls
    missing_count: int


class _RefusedAttempt(Struct, frozen=True):
    """An attempt that places no member. It is not recorded yet."""

    lead: QueuedPodGroupInfo
    members: Sequence[QueuedPodInfo]
    state: GroupState
    result: PassResult
    started_seconds: float


class _TrialOutcome(Struct, frozen=True):
    """The result of a pass that ran while the cluster was lent."""

    result: PassResult
    #: The pass whose placements are committed; None: the group does not fit.
    committed: PodGroupTrial | None = None
    #: Whether extenders have to be called before anything is decided.
    asks: bool = False
    #: Resources of minResources that are missing.
    short: Sequence[str] = ()
    #: Why no node satisfies the required topology; "": some do.
    nowhere: str = ""
    #: The notes that the members shared in the pass; None: an earlier pass has this result.
    notes: Mapping[Hashable, Any] | None = None


@final
class GroupAttempts:
    """Runs attempts at groups."""

    def __init__(
        self,
        setup: TrialSetup,
        queue: SchedulingQueue,
        outbox: Outbox,
        nominator: Nominator,
        *,
        waiting: WaitingPods,
        group_controller: GroupController,
        failures: FailureHandler,
        placements: Placements,
        pending_calls: PendingExtenderCalls,
        evicting: SyncPreemptions,
        resizes: Resizes,
    ) -> None:
        self._setup = setup
        self._resizes = resizes
        self._pending_calls = pending_calls
        #: The groups that wait for answers, by the cycles of members that stopped for a question.
        self._asking: dict[Cycle, _PendingGroup] = {}
        self._clock = setup.telemetry.clock
        self._cluster = setup.cluster
        self._frameworks = setup.frameworks
        self._group_controller = group_controller
        self._metrics = setup.telemetry.metrics
        self._nominator = nominator
        self._outbox = outbox
        self._queue = queue
        self._reservations = setup.reservations
        self._telemetry = setup.telemetry
        self._failures = failures
        self._placements = placements
        self._preemptor = PodGroupPreemptor(setup, nominator, outbox, evicting, guard=self._guard)
        self._groups_have_policies = setup.gates.enabled("PodGroupPreemptionPolicy")
        self._groups = GroupPlacements(
            setup.cluster,
            queue,
            outbox,
            setup.telemetry,
            waiting=waiting,
            group_controller=group_controller,
            failures=failures,
            placements=placements,
        )
        self._trees = TreeAttempts(
            setup,
            queue,
            nominator,
            group_controller=group_controller,
            failures=failures,
            groups=self._groups,
            preemptor=self._preemptor,
            ask=self._ask,
        )
        self._failed_passes = FailedPasses(setup)
        self._texts = texts_of(setup.gates.behaviour)

    def start(self, lead: QueuedPodGroupInfo, questions: GroupExtenderCalls | None = None) -> None:
        """Make one attempt at a popped group, or resume an attempt that waited for answers."""
        members = self._waiting(lead)
        if lead.key.is_composite and members:
            calls = questions or GroupExtenderCalls()
            attempt = partial(self._trees.start, lead, members, calls)
            self._guard(lead, members, self._clock.now(), attempt)
            return
        state = self._cluster.pod_groups.get(lead.key)
        if not members or state is None:
            for queued in members:
                self._queue.done(queued.pod.uid)
            return
        started_seconds = self._clock.now()
        if not state.is_complete:
            # Members were deleted while the extenders were called.
            failure = Failure(unschedulable(), waiting_for(state), Diagnosis())
            self._failures.handle_group(lead, members, started_seconds, failure)
            self._group_controller.changed([state])
            return
        has_policies = self._groups_have_policies
        text = mismatch(state, members, self._texts, groups_have_policies=has_policies)
        text = text or topology_problem(state)
        if text:
            self._mismatched(lead, members, state, started_seconds, text=text)
            return
        attempt = partial(self._attempt, lead, members, state, questions or GroupExtenderCalls())
        self._guard(lead, members, started_seconds, attempt)

    def _mismatched(
        self,
        lead: QueuedPodGroupInfo,
        members: Sequence[QueuedPodInfo],
        state: GroupState,
        started_seconds: float,
        *,
        text: str,
    ) -> None:
        """Fail the attempt, because the members differ in a field that all must share."""
        refusal = self._error(state, members, text)
        self._telemetry.record_group(state, "error", attempt=lead.attempts, message=text)
        self._group_controller.explain(state.key, text, failure_reason=self._texts.mismatch_reason)
        self._failures.handle_group(
            lead, members, started_seconds, refusal.failure, own=refusal.members
        )
        self._count(lead, "error", started_seconds)

    def _guard(
        self,
        lead: QueuedPodGroupInfo,
        members: Sequence[QueuedPodInfo],
        started_seconds: float,
        step: Callable[[], None],
    ) -> None:
        """Run a step of an attempt at a group; see `AttemptBoundary`."""

        def fail(failure: Failure) -> None:
            self._failures.handle_group(lead, members, started_seconds, failure)
            self._count(lead, "error", started_seconds)

        self._placements.boundary.run(f"group {lead.key}", members, step, fail)

    def _waiting(self, lead: QueuedPodGroupInfo) -> list[QueuedPodInfo]:
        """The members that still need a node. Removes all others from the queue."""
        pods, placed, members = self._cluster.pods, self._cluster.cache.pod, list[QueuedPodInfo]()
        for queued in list(lead.members.values()):
            pod = queued.pod
            uid = pod.uid
            if uid in pods and not pod.is_terminating and placed(uid) is None:
                members.append(queued)
            else:
                self._resizes.end_attempt_of_member(uid)
        return members

    def answered(self, cycle: Cycle, answered: AnsweredQuestion) -> bool:
        """Take the answers about a member. False: the cycle belongs to no group."""
        asking = self._asking.pop(cycle, None)
        if asking is None:
            return False
        for remark in answered.remarks():
            self._telemetry.note(cycle.pod.key, remark)
        asking.questions.take(cycle, answered)
        asking.missing_count -= 1
        if not asking.missing_count:
            self.start(asking.lead, asking.questions)
        return True

    def _ask(self, lead: QueuedPodGroupInfo, questions: GroupExtenderCalls) -> None:
        """Call the extenders whose answers were guessed. The group reserves nothing meanwhile."""
        open_questions = list(questions.unanswered.values())
        asking = _PendingGroup(lead, questions, len(open_questions))
        for cycle, question in open_questions:
            self._asking[cycle] = asking
            self._outbox.effects += self._pending_calls.add(cycle, question)

    def _attempt(
        self,
        lead: QueuedPodGroupInfo,
        members: Sequence[QueuedPodInfo],
        state: GroupState,
        questions: GroupExtenderCalls,
    ) -> None:
        questions.begin_round()
        started_seconds = self._clock.now()
        needed_count = max(1, state.min_member - state.assigned_count)
        snapshot = self._cluster.lend()
        preemption: PreemptionPlan | NoPreemption | None = None
        uids = [queued.pod.uid for queued in members]
        with snapshot.trial() as trial, self._nominator.without(uids):
            repeated = self._failed_passes.find(members, state, needed_count)
            if repeated is not None:
                tried = _TrialOutcome(repeated)
            else:
                tried = self._try(trial, members, state, needed_count, questions=questions)
            result, is_refused = tried.result, tried.committed is None and not tried.asks
            may_preempt = result.error is None and not tried.nowhere
            if result.status is not None:
                may_preempt = result.status.code is Code.UNSCHEDULABLE
            if is_refused and may_preempt:
                group = PodGroupToPlace(self._setup, members, state, needed_count)
                preemption = self._preemptor.find(group, tried.notes)
                is_final = isinstance(preemption, PreemptionPlan) or bool(tried.nowhere)
                if not tried.short and not is_final:
                    self._reserve(lead, members, state, trial)
            if is_refused:
                self._failed_passes.stay()
        self._cluster.take_back()
        if tried.asks:
            self._ask(lead, questions)
            return
        journal = self._telemetry.journal
        write_records(journal, result.placed, result.unplaced, fits=not is_refused)
        self._metrics.group_algorithm_duration.observe(self._clock.now() - started_seconds)
        if tried.committed is not None:
            self._record(lead, state, "placed", result)
            self._place(lead, members, state, tried.committed)
            self._count(lead, "scheduled", started_seconds)
        else:
            failure = self._refusal(state, result, tried.short, tried.nowhere)
            failure = _with_preemption(failure, preemption)
            self._blame(members, result, is_short=bool(tried.short))
            refusal = Refusal(failure)
            if result.status is not None:
                refusal = without_placement(failure, result.status, members, preemption)
            elif state.is_upstream and not tried.nowhere and result.unplaced:
                refusal = of_upstream(
                    failure, result, state, members, preemption=preemption, texts=self._texts
                )
            refused = _RefusedAttempt(lead, members, state, result, started_seconds)
            if isinstance(preemption, PreemptionPlan):
                self._preempt(refused, refusal, preemption)
            else:
                self._refuse(refused, refusal)

    def _try(
        self,
        trial: Trial,
        members: Sequence[QueuedPodInfo],
        state: GroupState,
        needed_count: int,
        *,
        questions: GroupExtenderCalls,
    ) -> _TrialOutcome:
        """Run a pass. Commit it if enough members fit; otherwise undo it."""
        snapshot = self._cluster.loan
        assert snapshot is not None
        setup = replace(self._setup, questions=questions)
        group_trial = best_pass(setup, trial, members, state, needed_count=needed_count)
        has_error = group_trial.error is not None
        short = [] if has_error else missing_resources(state, snapshot, group_trial)
        nowhere = _why_nowhere(group_trial, setup, state)
        fits = group_trial.fits(needed_count) and not short
        asks = questions.need_answers(fits=fits)
        if fits and not asks:
            trial.commit()
            return _TrialOutcome(group_trial.result(), committed=group_trial)
        group_trial.undo()
        if not asks:
            self._failed_passes.learn(group_trial, members, state, needed_count)
        result, notes = group_trial.result(), group_trial.notes
        return _TrialOutcome(result, asks=asks, short=short, nowhere=nowhere, notes=notes)

    def _count(self, lead: QueuedPodGroupInfo, result: str, started_seconds: float) -> None:
        took = self._clock.now() - started_seconds
        self._metrics.group_attempt(result, lead.pod.scheduler_name, took)

    def _record(
        self,
        lead: QueuedPodGroupInfo,
        state: GroupState,
        outcome: str,
        result: PassResult,
        *,
        refusal: Refusal | None = None,
    ) -> None:
        """Write the result of the attempt to the journal, and into the status of the group."""
        message = "" if refusal is None else refusal.failure.message
        condition_message = "" if refusal is None else refusal.condition_message
        self._telemetry.record_group(
            state,
            outcome,
            attempt=lead.attempts,
            assigned=state.assigned_count,
            fitting=len(result.placed),
            domain=result.domain,
            message=message,
        )
        failure_reason = "SchedulerError" if outcome == "error" else ""
        self._group_controller.explain(
            state.key, message, condition_message, failure_reason=failure_reason
        )

    # ---- enough fit -----------------------------------------------------------------------

    def _place(
        self,
        lead: QueuedPodGroupInfo,
        members: Sequence[QueuedPodInfo],
        state: GroupState,
        group_trial: PodGroupTrial,
    ) -> None:
        try:
            self._place_all(lead, members, state, group_trial)
        except Exception:
            self._groups.take_back(group_trial.placed)
            raise

    def _place_all(
        self,
        lead: QueuedPodGroupInfo,
        members: Sequence[QueuedPodInfo],
        state: GroupState,
        group_trial: PodGroupTrial,
    ) -> None:
        started_seconds = self._clock.now()
        for placed in group_trial.placed:
            self._cluster.pod_groups.assume(placed.pod)
            self._queue.done(placed.pod.uid)
        tried = {one.queued.pod.uid: one for one in group_trial.unplaced}
        for queued in members:
            unplaced = tried.get(queued.pod.uid)
            if unplaced is not None:
                self._failures.handle(queued, started_seconds, failure_of_member(unplaced))
        self._groups.place(lead, [(f.cycle, f.pod) for f in group_trial.placed])
        self._group_controller.changed([state])

    def _reserve(
        self,
        lead: QueuedPodGroupInfo,
        members: Sequence[QueuedPodInfo],
        state: GroupState,
        trial: Trial,
    ) -> None:
        """Reserve nodes for the group, if it has waited long enough."""
        reservations = self._reservations
        assert self._cluster.loan is not None
        first_seconds = lead.initial_attempt_seconds
        if not reservations.may_reserve(state.key, first_seconds, self._cluster.loan):
            return
        needed_count = max(1, state.min_member - state.assigned_count)
        unobserved = CycleEnd(self._cluster, self._telemetry, None)
        unseen = replace(self._setup, end=unobserved, questions=GroupExtenderCalls())

        def place() -> PodGroupTrial | None:
            group_trial = best_pass(unseen, trial, members, state, needed_count=needed_count)
            if group_trial.fits(needed_count):
                return group_trial
            group_trial.undo()
            return None

        departures = DepartureOrder(trial, self._cluster.cache.pods(), state.key, self._clock)
        priority = max(queued.pod.priority for queued in members)
        reservations.current = find_reservation(
            state.key,
            priority,
            place,
            departures,
            widen=partial(domain_nodes, self._cluster.loan.nodes, state),
        )
        departures.depart(0)
        if reservations.current is not None:
            message = reserved_for(state, reservations.current, self._clock.now())
            self._telemetry.record_group(state, "reserved", message=message)

    # ---- too few fit ----------------------------------------------------------------------

    def _refuse(self, refused: _RefusedAttempt, refusal: Refusal, counted: str = "") -> None:
        """Return the group to the queue. ``counted``: the result for the metric, if it differs."""
        lead, began_seconds = refused.lead, refused.started_seconds
        outcome = "unschedulable" if is_rejected(refusal.failure.status) else "error"
        self._record(lead, refused.state, outcome, refused.result, refusal=refusal)
        members, own = refused.members, refusal.members
        self._failures.handle_group(lead, members, began_seconds, refusal.failure, own=own)
        self._count(lead, counted or outcome, began_seconds)

    def _preempt(self, refused: _RefusedAttempt, refusal: Refusal, plan: PreemptionPlan) -> None:
        """Evict the victims, and return the group to the queue."""
        group = refused.state.group
        assert group is not None, "no attempt is made at a group without an object"
        lead, members, state = refused.lead, refused.members, refused.state

        def end(problem: str) -> None:
            if problem:
                text = self._preemptor.give_up(members, problem)
                self._refuse(refused, self._error(state, members, text))
            else:
                self._refuse(refused, refusal, "waiting_on_preemption")
                self._preemptor.report_nominations(plan)

        reference = group_reference(group)
        started_seconds = refused.started_seconds
        self._preemptor.evict(lead, members, started_seconds, reference, plan=plan, then=end)

    @staticmethod
    def _error(state: GroupState, members: Sequence[QueuedPodInfo], text: str) -> Refusal:
        failure = failure_by_error(Status(Code.ERROR, (text,)), text)
        return by_error(failure, members) if state.is_upstream else Refusal(failure)

    def _refusal(
        self, state: GroupState, result: PassResult, short: Sequence[str], nowhere: str
    ) -> Failure:
        """The failure of the group, the same for all members."""
        if nowhere:
            return Failure(unschedulable(), no_domain(state, nowhere), Diagnosis())
        if result.status is not None:
            return failure_by_error(result.status, no_domain(state, result.status.message))
        if result.error is not None:
            error = result.error
            return failure_by_error(error.status, self._sentence(state, result, error))
        if short:
            return Failure(unschedulable(), short_of_resources(state, short), Diagnosis())
        if not result.unplaced:
            # Members placed one by one would have nodes, but not those that their slices need.
            return Failure(unschedulable(), no_domain(state, result.search_problem), Diagnosis())
        first = result.unplaced[0]
        return Failure(unschedulable(), self._sentence(state, result, first), Diagnosis())

    @staticmethod
    def _sentence(state: GroupState, result: PassResult, first: UnplacedMember) -> str:
        """A sentence that says how many members fit before the first one that does not, and why
        that one does not."""
        before = state.assigned_count
        fit_count = before + len(result.placed)
        sentence = too_few_fit(
            state, fit_count, before + first.nth, first.queued.pod.key, why=first.message
        )
        return f"{sentence} {result.search_problem}".rstrip()

    def _blame(
        self, members: Sequence[QueuedPodInfo], result: PassResult, *, is_short: bool
    ) -> None:
        """Note the plugins that rejected each member. An event that helps one member may help the
        group."""
        diagnoses = {one.queued.pod.uid: one.diagnosis for one in result.unplaced}
        placed = {one.uid for one in result.placed} if result.error is None else frozenset[str]()
        none, rejecting = shared_names(), shared_names(result.rejecting)
        further = frozenset(result.elsewhere)
        for queued in members:
            diagnosis = diagnoses.get(queued.pod.uid)
            names = queued.pending_plugins = none
            if diagnosis is not None:
                names = shared_names(diagnosis.unschedulable_plugins)
                queued.pending_plugins = shared_names(diagnosis.pending_plugins)
            elif queued.pod.uid in placed:
                names = rejecting
            queued.unschedulable_plugins = names | further if further else names
            if is_short:
                framework = self._frameworks[queued.pod.scheduler_name]
                filters = framework.plugins.filter
                queued.unschedulable_plugins |= {plugin.instance_name for plugin in filters}


def _why_nowhere(group_trial: PodGroupTrial, setup: TrialSetup, state: GroupState) -> str:
    """Why there is no node for the group to try; "" if there is one."""
    snapshot, status = setup.cluster.loan, group_trial.status
    assert snapshot is not None
    if group_trial.placed or not (status is None or is_rejected(status)):
        return ""
    if status is None and group_trial.placement_count is not None:
        return ""
    why = why_nowhere(setup.domains, snapshot, state)
    return why if status is None else why or status.message


def _with_preemption(failure: Failure, preemption: PreemptionPlan | NoPreemption | None) -> Failure:
    """Append the result of the preemption to the message."""
    if preemption is None or not preemption.text:
        return failure
    message = f"{failure.message}{PREFIX}{preemption.text}"
    return Failure(failure.status, message, failure.diagnosis, failure.nomination)
