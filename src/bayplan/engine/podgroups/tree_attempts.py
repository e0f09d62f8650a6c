"""Attempts at trees of groups: as many groups as the tree needs in one pass, or none.

    popped → tree pass → the root fits     → the pods of groups that fit are placed together
                       → it does not fit   → the search for victims, the tree returns to the queue

A group whose parent does not fit, or was not tried, has the verdict of the parent. Pods of groups
that do not fit return to the queue, also if the rest of the tree is placed. Upstream:
schedule_one_podgroup.go (v1.37), podGroupCycle and what it calls.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import final

from msgspec import Struct
from msgspec.structs import replace

from bayplan.api.pod_groups import GroupKey
from bayplan.engine.core import GroupController
from bayplan.engine.failures import CLEAR_NOMINATION, Failure, FailureHandler, failure_by_error
from bayplan.engine.outbox import group_reference
from bayplan.engine.podgroups.placements import GroupPlacements
from bayplan.engine.podgroups.preemption import ANYWHERE, DomainToFree, PodGroupPreemptor
from bayplan.engine.podgroups.refusals import (
    NoPreemption,
    PreemptionPlan,
    failure_of_member,
    mismatch_in_tree,
    rejection,
    texts_of,
)
from bayplan.engine.podgroups.tree_pass import GroupResult, GroupVerdict, TreePass, TreeResults
from bayplan.engine.podgroups.trial import (
    GroupExtenderCalls,
    PlacedMember,
    TrialSetup,
    write_records,
)
from bayplan.framework.status import Code, Diagnosis, Status, is_rejected, shared_names
from bayplan.framework.types import QueuedPodInfo
from bayplan.queue.entry import QueuedPodGroupInfo
from bayplan.queue.nominator import Nominator
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.state.cache import Snapshot, Trial
from bayplan.state.pod_group_trees import GroupTree
from bayplan.state.pod_groups import GroupState

#: The plugin named for pods of groups that were not tried.
_GANGS = "GangScheduling"
#: Upstream's words.
_WAITS = 'waiting for composite pod group "{}" tree to meet quorum'


class _TreeToPlace(Struct, frozen=True):
    """A tree for which victims are searched; see `Preemptor`."""

    setup: TrialSetup
    tree: GroupTree
    members: Sequence[QueuedPodInfo]

    @property
    def is_upstream(self) -> bool:
        return True

    @property
    def is_plain(self) -> bool:
        return False

    def place(self, trial: Trial, only: str = "") -> tuple[Sequence[PlacedMember], str]:
        tree_pass = TreePass(self.setup, trial, self.tree, _by_group(self.members)).run()
        if tree_pass.verdict.fits:
            return tree_pass.placed, ""
        tree_pass.undo()
        return (), tree_pass.verdict.message

    def domains_to_free(self, snapshot: Snapshot, highest: int) -> Sequence[DomainToFree]:
        return (ANYWHERE,)

    def nodes_alone(self, snapshot: Snapshot, names: Set[str]) -> frozenset[str]:
        return frozenset()


class _Attempt(Struct, frozen=True):
    """An attempt at a tree."""

    lead: QueuedPodGroupInfo
    tree: GroupTree
    members: Sequence[QueuedPodInfo]
    started_seconds: float


@final
class TreeAttempts:
    """Runs attempts at trees of groups."""

    def __init__(
        self,
        setup: TrialSetup,
        queue: SchedulingQueue,
        nominator: Nominator,
        *,
        group_controller: GroupController,
        failures: FailureHandler,
        groups: GroupPlacements,
        preemptor: PodGroupPreemptor,
        ask: Callable[[QueuedPodGroupInfo, GroupExtenderCalls], None],
    ) -> None:
        """``ask``: calls the extenders whose answers were guessed."""
        self._setup = setup
        self._cluster = setup.cluster
        self._telemetry = setup.telemetry
        self._metrics = setup.telemetry.metrics
        self._clock = setup.telemetry.clock
        self._texts = texts_of(setup.gates.behaviour)
        self._groups_have_policies = setup.gates.enabled("PodGroupPreemptionPolicy")
        self._queue = queue
        self._nominator = nominator
        self._group_controller = group_controller
        self._failures = failures
        self._groups = groups
        self._preemptor = preemptor
        self._ask = ask

    def start(
        self,
        lead: QueuedPodGroupInfo,
        members: Sequence[QueuedPodInfo],
        questions: GroupExtenderCalls,
    ) -> None:
        """Make one attempt at a popped tree, or resume one that waited for answers."""
        trees, started_seconds = self._cluster.group_trees, self._clock.now()
        root = trees.get(lead.key)
        tree = None if root is None or trees.has_parent(lead.key) else trees.tree(root)
        leaves = {leaf.key for leaf in tree.leaves()} if tree is not None else set[GroupKey]()
        is_changed = any(queued.pod.group_key not in leaves for queued in members)
        if tree is None or is_changed or not tree.is_complete:
            # The tree changed while extenders were called or pods were bound.
            failure = rejection(_WAITS.format(lead.key.name))
            self._failures.handle_group(lead, members, started_seconds, failure)
            self._group_controller.changed_by(queued.pod for queued in members)
            return
        attempt = _Attempt(lead, tree, members, started_seconds)
        has_policies = self._groups_have_policies
        text = mismatch_in_tree(tree, members, self._texts, groups_have_policies=has_policies)
        if text:
            # The pods differ in a field that all must share.
            self._fail(attempt, text, self._texts.mismatch_reason)
        else:
            self._run(attempt, questions)

    def _fail(self, attempt: _Attempt, text: str, reason: str) -> None:
        """Fail the attempt with an error of the whole tree. ``reason``: for the status."""
        failure = failure_by_error(Status(Code.ERROR, (text,)), text)
        for leaf in attempt.tree.leaves():
            self._record(attempt, leaf, "error", text, reason=reason)
        self._return(attempt, failure, {each.pod.uid: failure for each in attempt.members}, "error")

    def _run(self, attempt: _Attempt, questions: GroupExtenderCalls) -> None:
        questions.begin_round()
        tree, members = attempt.tree, attempt.members
        setup = replace(self._setup, questions=questions)
        preemption: PreemptionPlan | NoPreemption | None = None
        uids = [queued.pod.uid for queued in members]
        with self._cluster.lend().trial() as trial, self._nominator.without(uids):
            tree_pass = TreePass(setup, trial, tree, _by_group(members)).run()
            verdict = tree_pass.verdict
            asks = questions.need_answers(fits=verdict.fits)
            placed = tree_pass.placed
            if verdict.fits and not asks:
                trial.commit()
            else:
                tree_pass.undo()
            if not verdict.fits and not verdict.is_error and not asks:
                preemption = self._preemptor.find(_TreeToPlace(self._setup, tree, members))
        self._cluster.take_back()
        if asks:
            self._ask(attempt.lead, questions)
            return
        took = self._clock.now() - attempt.started_seconds
        self._metrics.group_algorithm_duration.observe(took)
        results = tree_pass.results
        _complete(tree, results, results[tree.key].verdict)
        for result in results.values():
            write_records(
                self._telemetry.journal,
                result.placed,
                result.unplaced,
                fits=result.verdict.fits,
            )
        _blame(members, results, tree_pass.blamed)
        if verdict.fits:
            self._place(attempt, results, placed)
        else:
            self._refuse(attempt, results, preemption)

    # ---- the root fits --------------------------------------------------------------------

    def _place(
        self, attempt: _Attempt, results: TreeResults, placed: Sequence[PlacedMember]
    ) -> None:
        try:
            self._place_all(attempt, results, placed)
        except Exception:
            self._groups.take_back(placed)
            raise

    def _place_all(
        self, attempt: _Attempt, results: TreeResults, placed: Sequence[PlacedMember]
    ) -> None:
        own = self._failures_of(attempt, results, None)
        for leaf in attempt.tree.leaves():
            self._record_result(attempt, leaf, results[leaf.key])
        for one in placed:
            self._cluster.pod_groups.assume(one.pod)
            self._queue.done(one.pod.uid)
        for queued in attempt.members:
            failure = own.get(queued.pod.uid)
            if failure is not None:
                self._failures.handle(queued, attempt.started_seconds, failure)
        self._groups.place(attempt.lead, [(one.cycle, one.pod) for one in placed])
        self._group_controller.changed(attempt.tree.leaves())
        self._count(attempt, "scheduled")

    # ---- the root does not fit ------------------------------------------------------------

    def _refuse(
        self,
        attempt: _Attempt,
        results: TreeResults,
        preemption: PreemptionPlan | NoPreemption | None,
    ) -> None:
        own = self._failures_of(attempt, results, preemption)
        root = results[attempt.tree.key].verdict
        failure = _failure(root)
        for leaf in attempt.tree.leaves():
            self._record_result(attempt, leaf, results[leaf.key])
        if not isinstance(preemption, PreemptionPlan):
            self._return(attempt, failure, own, "error" if root.is_error else "unschedulable")
            return

        def end(problem: str) -> None:
            if problem:
                text = self._preemptor.give_up(attempt.members, problem)
                self._fail(attempt, text, "SchedulerError")
            else:
                self._return(attempt, failure, own, "waiting_on_preemption")
                self._preemptor.report_nominations(preemption)

        reference, started_seconds = group_reference(attempt.tree.group), attempt.started_seconds
        self._preemptor.evict(
            attempt.lead,
            attempt.members,
            started_seconds,
            reference,
            plan=preemption,
            then=end,
        )

    def _return(
        self, attempt: _Attempt, failure: Failure, own: Mapping[str, Failure], counted: str
    ) -> None:
        """Return the tree to the queue."""
        lead, members, started_seconds = attempt.lead, attempt.members, attempt.started_seconds
        self._failures.handle_group(lead, members, started_seconds, failure, own=own)
        self._group_controller.changed(attempt.tree.leaves())
        self._count(attempt, counted)

    # ---- failures of pods -----------------------------------------------------------------

    def _failures_of(
        self,
        attempt: _Attempt,
        results: TreeResults,
        preemption: PreemptionPlan | NoPreemption | None,
    ) -> dict[str, Failure]:
        """The failure of each pod that is not placed, by uid. The result of the search for victims
        is added to the verdicts."""
        untried = {key: _failure(result.verdict) for key, result in results.items()}
        if (
            not results[attempt.tree.key].verdict.fits
            and not results[attempt.tree.key].verdict.is_error
        ):
            about_victims = "" if preemption is None else preemption.upstream_text
            if about_victims or self._texts.keeps_empty:
                for result in results.values():
                    result.verdict.reasons.append(about_victims)
        is_being_made = preemption is not None and preemption.is_being_made
        all_placed = {one.pod.uid for each in results.values() for one in each.placed}
        all_unplaced = {
            one.queued.pod.uid: one for each in results.values() for one in each.unplaced
        }
        own: dict[str, Failure] = {}
        for queued in attempt.members:
            key = queued.pod.group_key
            assert key is not None, "the pods of a tree have groups"
            uid, verdict = queued.pod.uid, results[key].verdict
            unplaced = all_unplaced.get(uid)
            if uid in all_placed and verdict.fits:
                continue
            if unplaced is not None and not (verdict.is_error and is_rejected(unplaced.status)):
                failure = failure_of_member(unplaced)
            elif uid not in all_placed or verdict.is_error:
                failure = untried[key]
            elif is_being_made:
                failure = rejection(verdict.message)
            else:
                failure = rejection(f"{self._texts.prefix}{verdict.message}", CLEAR_NOMINATION)
            diagnosis = failure.diagnosis or _diagnosis(queued, failure)
            own[uid] = replace(failure, diagnosis=diagnosis)
        return own

    # ---- journal, status, metrics ---------------------------------------------------------

    def _record_result(self, attempt: _Attempt, leaf: GroupState, result: GroupResult) -> None:
        verdict = result.verdict
        outcome = "error" if verdict.is_error else "unschedulable"
        reason = "SchedulerError" if verdict.is_error else ""
        outcome = "placed" if verdict.fits else outcome
        message = "" if verdict.fits else verdict.message
        fitting = len(result.placed)
        self._record(attempt, leaf, outcome, message, reason=reason, fitting=fitting)

    def _record(
        self,
        attempt: _Attempt,
        leaf: GroupState,
        outcome: str,
        message: str,
        *,
        reason: str = "",
        fitting: int = 0,
    ) -> None:
        """Write the result for a group to the journal, and into the status of the group."""
        self._telemetry.record_group(
            leaf,
            outcome,
            attempt=attempt.lead.attempts,
            assigned=leaf.assigned_count,
            fitting=fitting,
            message=message,
        )
        self._group_controller.explain(leaf.key, message, failure_reason=reason)

    def _count(self, attempt: _Attempt, result: str) -> None:
        took = self._clock.now() - attempt.started_seconds
        self._metrics.group_attempt(result, attempt.lead.pod.scheduler_name, took)


def _by_group(members: Sequence[QueuedPodInfo]) -> dict[GroupKey, list[QueuedPodInfo]]:
    by_group: dict[GroupKey, list[QueuedPodInfo]] = {}
    for queued in members:
        assert queued.pod.group_key is not None, "the pods of a tree have groups"
        by_group.setdefault(queued.pod.group_key, []).append(queued)
    return by_group


def _complete(tree: GroupTree, results: TreeResults, parent: GroupVerdict) -> None:
    """Give the verdict of the parent to the groups that were not tried, and to those whose parent
    does not fit. Upstream: completeCompositePodGroupAlgorithmResultMap."""
    for child in tree.children:
        result = results.get(child.key)
        if result is None or (result.verdict.fits and not parent.fits):
            result = results[child.key] = GroupResult(parent)
        if isinstance(child, GroupTree):
            _complete(child, results, result.verdict)


def _failure(verdict: GroupVerdict) -> Failure:
    message = verdict.message
    if verdict.is_error:
        return failure_by_error(Status(Code.ERROR, (message,)), message)
    return rejection(message)


def _blame(members: Sequence[QueuedPodInfo], results: TreeResults, blamed: Set[str]) -> None:
    """Note the plugins that rejected each pod. An event that helps one pod may help the tree; none
    is noted if no plugin was asked about the pods that were tried, as without nodes."""
    diagnoses = {
        one.queued.pod.uid: one.diagnosis for result in results.values() for one in result.unplaced
    }
    names = shared_names(blamed or ({_GANGS} if not diagnoses else None))
    for queued in members:
        diagnosis = diagnoses.get(queued.pod.uid)
        queued.pending_plugins = shared_names(diagnosis and diagnosis.pending_plugins)
        own = shared_names(diagnosis and diagnosis.unschedulable_plugins)
        queued.unschedulable_plugins = own | names


def _diagnosis(queued: QueuedPodInfo, failure: Failure) -> Diagnosis | None:
    """The plugins that were noted for the pod. None: the pod had an error, after which it is
    retried."""
    if not is_rejected(failure.status):
        return None
    return Diagnosis(unschedulable_plugins=set(queued.unschedulable_plugins))
