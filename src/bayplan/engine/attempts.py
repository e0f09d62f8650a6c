"""Attempts: from a popped pod to an effect.

If the cycle of a pod chooses a node, `Placements` takes over. If it chooses none, or stops for the
call of an extender, `UnplacedPods` does. A pod that has a node is tried for a resize and stays on
its node.
Upstream: schedule_one.go.
"""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import final

from bayplan.engine.core import SerialExecutor
from bayplan.engine.cycle import Cycle
from bayplan.engine.extenders.results import AnsweredQuestion, Question
from bayplan.engine.failures import Failure
from bayplan.engine.outbox import Outbox
from bayplan.engine.placements import Placements
from bayplan.engine.podgroups.attempts import GroupAttempts
from bayplan.engine.podgroups.domains import domain_of_members
from bayplan.engine.podgroups.trial import TrialSetup
from bayplan.engine.reservations import restrict_to_unreserved
from bayplan.engine.resizes import Resizes, waiting_for_kubelet
from bayplan.engine.runs import METRICS_SAMPLE, Runs
from bayplan.engine.unplaced_pods import UnplacedPods
from bayplan.framework.status import is_rejected
from bayplan.framework.types import QueuedPodInfo
from bayplan.journal import AttemptRecord
from bayplan.ports import ExtenderAnswer
from bayplan.queue.entry import QueuedPodGroupInfo, is_waiting
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.state.pods import PodInfo


@final
class Attempts:
    """Runs attempts one at a time, and never waits."""

    def __init__(
        self,
        setup: TrialSetup,
        queue: SchedulingQueue,
        outbox: Outbox,
        executor: SerialExecutor,
        *,
        placements: Placements,
        unplaced: UnplacedPods,
        runs: Runs,
        groups: GroupAttempts,
        resizes: Resizes,
        begins: Callable[[QueuedPodInfo], None] | None,
    ) -> None:
        """``begins``: gets each pod, or group, when an attempt at it begins."""
        self._clock = setup.telemetry.clock
        self._cluster = setup.cluster
        self._frameworks = setup.frameworks
        self._outbox = outbox
        self._queue = queue
        self._reservations = setup.reservations
        self._telemetry = setup.telemetry
        self._runner = setup.runner
        self._end = setup.end
        self._domains = setup.domains
        #: Profile → where the next search of a sample starts.
        self.sampling_starts = setup.runner.sampling_starts
        self._begins = begins
        self._waiting_work = executor.pending
        self.resizes = resizes
        self.placements = placements
        self._boundary = placements.boundary
        #: The present runs of equal pods.
        self.runs = runs
        self._unplaced = unplaced
        self._observe_seconds = unplaced.observe_seconds
        self._groups = groups

    @property
    def unfinished_count(self) -> int:
        """Pods at Permit, at an extender, with victims, or in a binding cycle."""
        return len(self.placements) + len(self._unplaced)

    # ---- the cycle ------------------------------------------------------------------------

    def start(self, pods: list[QueuedPodInfo], end_seconds: float = inf) -> None:
        """Make attempts at pods that were popped together, or at a group.

        The run ends at a pod that needs a cycle, at work that waits, or at ``end_seconds``. The
        pods that it does not come to leave the list and return to the queue.
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
        """An attempt at the pod at this place raised an exception. A run may have placed pods
        behind it before: those that have no effect yet fail, too. If the pod waits in the queue
        again, the next one fails."""
        state_of, placed = self._queue.state_of, self.placements.by_uid
        while place + 1 < len(pods) and is_waiting(state_of(pods[place].pod.uid)):
            place += 1
        end = place + 1
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
        complete = self._unplaced.pending_calls.answered(token, answer)
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
            self._unplaced.call_extenders(cycle, question)
        elif cycle.choice is not None:
            self._observe_seconds(self._clock.now() - cycle.started_seconds)
            if cycle.pod.node_name:
                status = waiting_for_kubelet(cycle.pod)
                self._unplaced.fail(cycle, Failure(status, status.message))
            else:
                self.placements.place(cycle, cycle.choice.node_name)
                self.runs.follow(cycle)
        else:
            assert cycle.status is not None, "a cycle ends with a node or a status"
            self.runs.follow(cycle)
            self._unplaced.end(cycle, cycle.status)

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
