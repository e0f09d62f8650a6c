"""The failure handler: returns the pod of a failed attempt to the queue, and reports the failure.

The queue gets the pod with its rejecting plugins, and the nominator gets the nomination of
PostFilter. Then the API server gets an event and the condition PodScheduled=False with the message.
A pod that is bound meanwhile gets neither, because it runs (upstream marks it as unscheduled). A
pod that was tried for a resize gets neither, and returns to the queue. A pod that was deleted
meanwhile gets the event, if no other pod has its name. Upstream: schedule_one.go,
handleSchedulingFailure.
"""

from collections.abc import Mapping, Sequence
from typing import Final, final

from msgspec import Struct

from bayplan.api.objects import POD_SCHEDULED, Condition
from bayplan.clock import Clock, rfc3339
from bayplan.engine.outbox import Outbox
from bayplan.engine.resizes import Resizes
from bayplan.engine.telemetry import Telemetry
from bayplan.framework.status import Code, Diagnosis, Status, is_rejected, shared_names
from bayplan.framework.types import NominatingMode, Nomination, QueuedPodInfo
from bayplan.queue.entry import QueuedPodGroupInfo
from bayplan.queue.nominator import Nominator
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.state.cache import ClusterView
from bayplan.state.pods import PodInfo

_FALSE = "False"
_UNSCHEDULABLE = "Unschedulable"
_NO_CONDITION = Condition()

CLEAR_NOMINATION: Final = Nomination(NominatingMode.OVERRIDE, "")


class Failure(Struct, frozen=True):
    """The result of a failed attempt."""

    status: Status
    #: The message of the event and the condition.
    message: str
    #: The rejecting plugins. None: an error, so the pod is retried after backoff.
    diagnosis: Diagnosis | None = None
    #: The pod's new nomination. None: the nomination stays.
    nomination: Nomination | None = None
    #: Whether the retry has no delay.
    at_once: bool = False

    @property
    def is_rejected_by_plugins(self) -> bool:
        """Whether the pod waits for an event that may help one of the plugins that rejected it."""
        return self.diagnosis is not None and bool(self.diagnosis.unschedulable_plugins)


def failure_by_error(status: Status, message: str) -> Failure:
    """The failure of an attempt that an error ended: the pod loses its nomination, as upstream
    (schedule_one.go, clearNominatedNode)."""
    return Failure(status, message, None, CLEAR_NOMINATION)


@final
class FailureHandler:
    """Handles failed attempts."""

    def __init__(
        self,
        cluster: ClusterView,
        queue: SchedulingQueue,
        nominator: Nominator,
        outbox: Outbox,
        *,
        telemetry: Telemetry,
        resizes: Resizes,
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._nominator = nominator
        self._outbox = outbox
        self._clock = telemetry.clock
        self._metrics = telemetry.metrics
        self._resizes = resizes

    def handle(self, queued: QueuedPodInfo, started_seconds: float, failure: Failure) -> None:
        """``started_seconds``: the start of the attempt, in seconds of the clock."""
        status = failure.status
        seconds = self._clock.now() - started_seconds
        is_error = not is_rejected(status)
        result = "error" if is_error else "unschedulable"
        self._metrics.attempt(result, queued.pod.shape.scheduler_name, seconds)
        if is_error and status.code is Code.ERROR and status.plugin:
            self._metrics.plugin_failures.add(status.plugin)
        current = self._requeue(queued, failure)
        if current is not None and not current.node_name:
            self._write(current, failure)
        elif self._is_gone(queued.pod):
            self._emit(queued.pod, failure)

    def handle_equal(self, run: Sequence[QueuedPodInfo], seconds: float, failure: Failure) -> None:
        """Do the same for equal pods of a run, in their newest versions, that plugins rejected
        without a nomination. ``seconds``: how long each attempt took."""
        diagnosis = failure.diagnosis
        assert diagnosis is not None, "plugins rejected the pods"
        profile = run[0].pod.shape.scheduler_name
        self._metrics.attempt("unschedulable", profile, seconds, count=len(run))
        unschedulable = shared_names(diagnosis.unschedulable_plugins)
        pending = shared_names(diagnosis.pending_plugins)
        for queued in run:
            queued.unschedulable_plugins, queued.pending_plugins = unschedulable, pending
        self._queue.add_equal_unschedulable(run)
        message, node_name, before = failure.message, _nominated_node(failure), None
        condition: Condition | None = None
        for queued in run:
            pod = queued.pod
            now = pod.status.conditions, pod.metadata.generation
            if now != before:
                condition = unschedulable_condition(pod, _UNSCHEDULABLE, message, self._clock)
                before = now
            self._emit(pod, failure)
            self._outbox.patch_status(pod, condition, node_name)

    def handle_group(
        self,
        lead: QueuedPodGroupInfo,
        members: Sequence[QueuedPodInfo],
        started_seconds: float,
        failure: Failure,
        *,
        own: Mapping[str, Failure] | None = None,
    ) -> None:
        """Return all members to the queue as one entry. Each has its rejecting plugins already.

        ``own``: uid → the failure of a member, which is reported as for a pod without a group.
        Without ``own``, each member gets the group's message, if its condition changes.
        """
        rejected = is_rejected(failure.status)
        for queued in members:
            current = self._cluster.pods.get(queued.pod.uid)
            if current is None or current.node_name:
                self._resizes.end_attempt_of_member(queued.pod.uid)
                continue
            if not rejected:
                queued.unschedulable_plugins = queued.pending_plugins = shared_names()
            queued.pod = current
            lead.members[current.uid] = queued
        if not lead.members:
            return
        lead.pod = next(iter(lead.members.values())).pod
        self._queue.add_unschedulable(lead)
        seconds = self._clock.now() - started_seconds
        if own:
            for queued in list(lead.members.values()):
                each = own.get(queued.pod.uid, failure)
                self._metrics.attempt(_result(each), queued.pod.scheduler_name, seconds)
                self._nominator.add_nominated_pod(queued.pod, each.nomination)
                self._write(queued.pod, each)
            return
        self._metrics.attempt(_result(failure), lead.pod.scheduler_name, seconds)
        for queued in list(lead.members.values()):
            if failure.nomination is not None:
                self._nominator.add_nominated_pod(queued.pod, failure.nomination)
            self._report_member(queued.pod, failure)

    def _report_member(self, pod: PodInfo, failure: Failure) -> None:
        """Write the condition and the nomination if they change, and an event if the condition
        does."""
        condition = unschedulable_condition(pod, _reason(failure), failure.message, self._clock)
        self._outbox.patch_status(pod, condition, _nominated_node(failure))
        if condition is not None:
            self._emit(pod, failure)

    def _requeue(self, queued: QueuedPodInfo, failure: Failure) -> PodInfo | None:
        """Return the pod to the queue, and return its newest version. None: the pod is deleted, or
        it runs and stays as it is."""
        uid, diagnosis = queued.pod.uid, failure.diagnosis
        queued.unschedulable_plugins = shared_names(diagnosis and diagnosis.unschedulable_plugins)
        queued.pending_plugins = shared_names(diagnosis and diagnosis.pending_plugins)
        current = self._cluster.pods.get(uid)
        if current is None or not self._resizes.needs_scheduling(current):
            self._queue.done(uid)
            return None
        queued.pod = current
        self._queue.add_unschedulable(queued, at_once=failure.at_once)
        if not current.node_name:
            self._nominator.add_nominated_pod(current, failure.nomination)
        return current

    def _write(self, pod: PodInfo, failure: Failure) -> None:
        """Write an event for each attempt, and the condition and the nomination if they change."""
        self._emit(pod, failure)
        condition = unschedulable_condition(pod, _reason(failure), failure.message, self._clock)
        self._outbox.patch_status(pod, condition, _nominated_node(failure))

    def _emit(self, pod: PodInfo, failure: Failure) -> None:
        profile, note = pod.shape.scheduler_name, failure.message
        self._outbox.emit(profile, pod, "Warning", "FailedScheduling", "Scheduling", note)

    def _is_gone(self, pod: PodInfo) -> bool:
        """Whether the pod was deleted, and no other pod has its name."""
        pods = self._cluster.pods
        return pod.uid not in pods and all(other.key != pod.key for other in pods.values())


def _nominated_node(failure: Failure) -> str | None:
    """The node to write as the nomination; "" clears it. None: it stays."""
    nomination = failure.nomination
    if nomination is None or nomination.mode is not NominatingMode.OVERRIDE:
        return None
    return nomination.node_name


def _result(failure: Failure) -> str:
    return "unschedulable" if is_rejected(failure.status) else "error"


def _reason(failure: Failure) -> str:
    return _UNSCHEDULABLE if is_rejected(failure.status) else "SchedulerError"


def unschedulable_condition(
    pod: PodInfo, reason: str, message: str, clock: Clock
) -> Condition | None:
    """The condition PodScheduled=False to write. None: the pod has it already."""
    old = _NO_CONDITION
    for condition in pod.status.conditions or ():
        if condition.type == POD_SCHEDULED:
            old = condition
            break
    if (old.status, old.reason, old.message) == (_FALSE, reason, message):
        return None
    # The time of a condition changes only with its status. Otherwise no time is sent.
    since = None if old.status == _FALSE else rfc3339(clock.epoch_seconds())
    return Condition(
        type=POD_SCHEDULED,
        status=_FALSE,
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=pod.metadata.generation,
    )
