"""Attempts: from a popped pod to an effect.

If the cycle of a pod chooses a node, `Placements` takes over. If it chooses none, PostFilter runs,
and then the failure handler. If it stops for the call of an extender, it waits until the answer
comes. A pod that has a node is tried for a resize and stays on its node.
Upstream: schedule_one.go.
"""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import final

from msgspec import structs

from bayplan.config.schema import PodGroupSettings
from bayplan.engine.attempt_record import CycleEnd, OnAttempt
from bayplan.engine.core import EngineCore, SerialExecutor
from bayplan.engine.cycle import Cycle
from bayplan.engine.extenders.results import AnsweredQuestion, Question
from bayplan.engine.extenders.round import ExtendersReview
from bayplan.engine.failures import CLEAR_NOMINATION, Failure, FailureHandler, failure_by_error
from bayplan.engine.pending_extender_calls import PendingExtenderCalls
from bayplan.engine.placements import PermitWaits, Placements
from bayplan.engine.podgroups.attempts import GroupAttempts
from bayplan.engine.podgroups.domains import domain_of_members
from bayplan.engine.podgroups.topology import Domains
from bayplan.engine.podgroups.trial import TrialSetup
from bayplan.engine.reservations import restrict_to_unreserved
from bayplan.engine.resizes import Resizes, waiting_for_kubelet
from bayplan.engine.runs import METRICS_SAMPLE, Runs
from bayplan.engine.schedule_one import CycleRunner
from bayplan.engine.sync_preemption import Step, SyncPreemptions
from bayplan.framework.preemption import EVICTING, REVIEW, PendingEvictions
from bayplan.framework.status import FitError, Status, is_rejected
from bayplan.framework.types import Nomination, QueuedPodInfo
from bayplan.journal import AttemptRecord
from bayplan.ports import ExtenderAnswer, ExtenderVerb
from bayplan.queue.entry import QueuedPodGroupInfo
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.state.pods import PodInfo


@final
class Attempts:
    """Runs attempts one at a time, and never waits."""

    def __init__(
        self,
        engine: EngineCore,
        group_settings: PodGroupSettings,
        on_attempt: OnAttempt | None = None,
    ) -> None:
        self._clock = engine.clock
        self._cluster = engine.cluster
        self._extenders = engine.extenders
        self._frameworks = engine.frameworks
        self._outbox = engine.outbox
        self._queue = engine.queue
        self._reservations = engine.reservations
        self._telemetry = engine.telemetry
        self._runner = CycleRunner(engine.nominator, engine.seed, engine.extenders, engine.reuse)
        #: Profile → where the next search of a sample starts.
        self.sampling_starts = self._runner.sampling_starts
        self._observe_seconds = engine.metrics.algorithm_duration.of()
        self._begins = engine.begins
        self._waiting_work = engine.executor.pending
        self.resizes = Resizes(
            engine.queue, engine.cluster.pods, engine.frameworks, is_on=engine.tries_resizes
        )
        self._failures = FailureHandler(
            engine.cluster,
            engine.queue,
            engine.nominator,
            engine.outbox,
            telemetry=engine.telemetry,
            resizes=self.resizes,
        )
        self._end = CycleEnd(engine.cluster, engine.telemetry, on_attempt)
        self.placements = _placements(engine, self._failures, self._end)
        self._boundary = self.placements.boundary
        #: The present runs of equal pods.
        self.runs = Runs(
            engine,
            self._runner,
            self.placements,
            self._end,
            observe_seconds=self._observe_seconds,
            no_node=self._no_node,
        )
        setup = _trial_setup(engine, self._runner, self._end, group_settings)
        self._domains = setup.domains
        self._parked = PendingExtenderCalls()
        self._evicting = _sync_preemptions(engine, self._failures, self._end, self._step)
        self._groups = GroupAttempts(
            setup,
            engine.queue,
            engine.outbox,
            engine.nominator,
            waiting=engine.waiting,
            group_controller=engine.group_controller,
            failures=self._failures,
            placements=self.placements,
            parked=self._parked,
            evicting=self._evicting,
            resizes=self.resizes,
        )

    @property
    def unfinished_count(self) -> int:
        """Pods at Permit, at an extender or in a binding cycle."""
        return len(self.placements) + len(self._parked) + len(self._evicting)

    # ---- the cycle ------------------------------------------------------------------------

    def start(self, pods: list[QueuedPodInfo], end_seconds: float = inf) -> None:
        """Make attempts at pods that were popped together, or at a group.

        Pods that the run does not come to return to the queue and leave the list: what ends it is a
        pod that needs a cycle, work that waits, and this time.
        """
        place, now = 0, self._clock.now()
        while place < len(pods):
            queued, count = pods[place], 0
            pod = queued.pod
            if self._begins is not None:
                self._begins(queued)
            if isinstance(queued, QueuedPodGroupInfo):
                self._groups.start(queued)
                return
            try:
                if pod.metadata.deletion_timestamp is not None:
                    self._skip_terminating(pod)
                elif pod.uid in self._cluster.cache.by_uid and not pod.node_name:
                    self._queue.done(pod.uid)
                else:
                    is_sampled = self.runs.draw() < METRICS_SAMPLE
                    count = self.runs.attempt(pods, place, now, is_sampled=is_sampled)
                    if not count:
                        self._queue.put_back(pods, place + 1)
                        self._begin(queued, now, is_sampled=is_sampled)
            except Exception as problem:  # noqa: BLE001 - see `AttemptBoundary`
                self._fail(pods, place, now, problem)
                return
            place += count or 1
            if place < len(pods):
                now = self._clock.now()
                if now >= end_seconds or self._waiting_work:
                    self._queue.put_back(pods, place)

    def _fail(
        self, pods: list[QueuedPodInfo], place: int, started_seconds: float, problem: Exception
    ) -> None:
        """An attempt at the pod at this place raised, maybe after a run had placed pods behind it.
        Those that have no effect yet fail with it."""
        end, placed = place + 1, self.placements.by_uid
        while end < len(pods) and pods[end].pod.uid in placed:
            end += 1
        self._queue.put_back(pods, end)
        self._boundary.fail_for_pods(pods[place:], started_seconds, problem)

    def _skip_terminating(self, pod: PodInfo) -> None:
        profile, note = pod.scheduler_name, f"skip schedule deleting pod: {pod.key}"
        self._outbox.emit(profile, pod, "Warning", "FailedScheduling", "Scheduling", note)
        self._queue.done(pod.uid)

    def resume(self, token: int, answer: ExtenderAnswer) -> None:
        """An extender answered. If no answer is missing, the cycle starts again. An unknown token
        is ignored."""
        complete = self._parked.answered(token, answer)
        if complete is None:
            return
        cycle, answered = complete
        if self._groups.answered(cycle, answered):
            return
        current = self._cluster.pods.get(cycle.pod.uid)
        if current is None or not self.resizes.needs_scheduling(current):
            self._queue.done(cycle.pod.uid)
            return
        self._boundary.run_for_pod(
            cycle.queued, cycle.started_seconds, self._resume, cycle, answered
        )

    def _begin(self, queued: QueuedPodInfo, started_seconds: float, *, is_sampled: bool) -> None:
        pod = queued.pod
        cycle = Cycle(
            queued, self._frameworks[pod.scheduler_name], self._cluster.lend(), started_seconds
        )
        if not pod.node_name:
            if pod.shape.group_key is not None:
                state = self._cluster.pod_groups.of(pod)
                cycle.within = domain_of_members(self._domains, cycle.snapshot, state)
            if self._reservations.is_active:
                restrict_to_unreserved(cycle, self._reservations)
        cycle.state.record_plugin_metrics = is_sampled
        self._go_on(cycle, self._runner.run(cycle))

    def _resume(self, cycle: Cycle, answered: AnsweredQuestion) -> None:
        for remark in answered.remarks():
            self._telemetry.note(cycle.pod.key, remark)
        self._go_on(cycle, self._runner.resume(cycle, self._cluster.lend(), answered))

    def _go_on(self, cycle: Cycle, question: Question | None) -> None:
        if question is not None:
            self._park(cycle, question)
        elif cycle.choice is not None:
            self._measure(cycle)
            if cycle.pod.node_name:
                status = waiting_for_kubelet(cycle.pod)
                self._end_failed(cycle, Failure(status, status.message))
            else:
                self.placements.place(cycle, cycle.choice.node_name)
                self.runs.follow(cycle)
        else:
            assert cycle.status is not None, "a cycle ends with a node or a status"
            self.runs.follow(cycle)
            self._no_node(cycle, cycle.status)

    def _park(self, cycle: Cycle, question: Question) -> None:
        self._cluster.take_back()
        self._outbox.effects += self._parked.park(cycle, question)

    def dry_run(self, queued: QueuedPodInfo) -> AttemptRecord | None:
        """The record of the attempt that would come next at a pod; None: extenders have to answer.

        PreFilter, Filter and Score run as in an attempt, with the cached results. No victims are
        looked for, and nothing is decided or written.
        """
        pod = queued.pod
        next_one = replace(queued, attempts=queued.attempts + 1)
        starts = dict(self.sampling_starts)
        try:
            cycle = Cycle(next_one, self._frameworks[pod.scheduler_name], self._cluster.lend())
            if self._runner.run(cycle) is not None:
                return None
            if cycle.choice is not None:
                return self._end.observe(cycle, "scheduled")
            assert cycle.status is not None, "a cycle ends with a node or a status"
            status, message = cycle.status, cycle.status.message
            if is_rejected(status) and cycle.snapshot.node_count:
                message = cycle.fit_error().message
            result = "unschedulable" if is_rejected(status) else "error"
            return self._end.observe(cycle, result, status, message)
        finally:
            self._cluster.take_back()
            self.sampling_starts.clear()
            self.sampling_starts.update(starts)

    # ---- no node was found ----------------------------------------------------------------

    def _no_node(self, cycle: Cycle, status: Status) -> None:
        failure = self._failure(cycle, status)
        if isinstance(failure, Question):
            cycle.question = failure
            self._park(cycle, failure)
            return
        if cycle.pod.node_name:
            # The pod counts on its node already: it takes no nomination.
            failure = structs.replace(failure, nomination=None)
        evicting: PendingEvictions | None = cycle.state.get(EVICTING)
        if evicting is not None:
            self._evicting.hold(cycle, status, failure, evicting)
            return
        self._measure(cycle)
        self._end_failed(cycle, failure)

    def _end_failed(self, cycle: Cycle, failure: Failure) -> None:
        status = failure.status
        result = "unschedulable" if is_rejected(status) else "error"
        self._end(cycle, result, status, failure.message, nomination=failure.nomination)
        self._failures.handle(cycle.queued, cycle.started_seconds, failure)

    def _step(self, cycle: Cycle, step: Callable[[], None]) -> None:
        """The end of an attempt that waited for evictions."""
        self._measure(cycle)
        self._boundary.run_for_pod(cycle.queued, cycle.started_seconds, step)

    def _failure(self, cycle: Cycle, status: Status) -> Failure | Question:
        if not is_rejected(status):
            return failure_by_error(status, status.message)
        if not cycle.snapshot.node_count:
            return Failure(status, status.message, None, CLEAR_NOMINATION)
        fit_error = cycle.fit_error()
        nomination = self._post_filter(cycle, fit_error)
        if isinstance(nomination, Question):
            return nomination
        return Failure(status, fit_error.message, fit_error.diagnosis, nomination)

    def _measure(self, cycle: Cycle) -> None:
        self._observe_seconds(self._clock.now() - cycle.started_seconds)

    def _post_filter(self, cycle: Cycle, fit_error: FitError) -> Nomination | Question | None:
        """Run PostFilter: the new nomination, or the call of an extender that PostFilter needs. The
        messages of the plugins end the message of the pod."""
        framework, pod = cycle.framework, cycle.pod
        if not framework.plugins.post_filter:
            return CLEAR_NOMINATION
        node_to_status = cycle.node_to_status()
        fit_error.diagnosis.node_to_status = node_to_status
        review = self._review(cycle) if self._extenders else None
        nomination, status = framework.run_post_filter(cycle.state, pod, node_to_status)
        if review is not None:
            if review.question is not None:
                return review.question
            for text in review.passed_over:
                self._telemetry.note(pod.key, f"went on without {text}")
        if status is not None:
            fit_error.diagnosis.post_filter_msg = status.message
        return nomination

    def _review(self, cycle: Cycle) -> ExtendersReview | None:
        """How extenders review the candidates of a preemption, which PostFilter finds in the state.
        None: no extender takes part for this pod."""
        extenders, state, nodes = self._extenders, cycle.state, cycle.snapshot.nodes
        if not extenders.interested(cycle.pod, ExtenderVerb.PREEMPT):
            return None
        review = state[REVIEW] = ExtendersReview(
            cycle.extender_round, extenders, cycle.pod, nodes, before=state.get(REVIEW)
        )
        return review


@final
class DryRuns:
    """Dry runs in one scheduler, between its attempts."""

    def __init__(
        self,
        queue: SchedulingQueue,
        executor: SerialExecutor,
        dry_run: Callable[[QueuedPodInfo], AttemptRecord | None],
    ) -> None:
        self._queue = queue
        self._executor = executor
        self._dry_run = dry_run

    def record_of(self, uid: str) -> AttemptRecord | None:
        """The record of the next attempt at a pod that waits, without its preemption. Nothing
        changes, and cached results are used.

        None: an extender has to be called. Raises KeyError for a pod that does not wait here, or
        that belongs to a group.
        """
        queued = self._queue.find(uid)
        if queued is None or queued.pod.group_key is not None:
            raise KeyError(uid)
        records: list[AttemptRecord | None] = []
        self._executor.run(queued.pod.key, lambda: records.append(self._dry_run(queued)))
        return records[0] if records else None


def _placements(engine: EngineCore, failures: FailureHandler, end: CycleEnd) -> Placements:
    return Placements(
        engine.cluster,
        engine.queue,
        engine.nominator,
        engine.outbox,
        telemetry=engine.telemetry,
        gates=engine.gates,
        extenders=engine.extenders,
        group_controller=engine.group_controller,
        permit_waits=PermitWaits(engine.waiting, engine.executor, engine.telemetry, engine.outbox),
        pods_in_pre_bind=engine.pods_in_pre_bind,
        failures=failures,
        end=end,
        begins=engine.begins,
    )


def _trial_setup(
    engine: EngineCore, runner: CycleRunner, end: CycleEnd, group_settings: PodGroupSettings
) -> TrialSetup:
    return TrialSetup(
        engine.cluster,
        engine.frameworks,
        engine.reservations,
        engine.telemetry,
        engine.gates,
        runner,
        end,
        Domains(),
        group_settings,
    )


def _sync_preemptions(
    engine: EngineCore, failures: FailureHandler, end: CycleEnd, step: Step
) -> SyncPreemptions:
    return SyncPreemptions(
        engine.cluster,
        engine.nominator,
        engine.executor,
        engine.outbox,
        telemetry=engine.telemetry,
        failures=failures,
        end=end,
        step=step,
    )
