"""The failure handler: what becomes of a pod whose attempt failed.

Requeue first, then tell: the queue gets the pod back with the plugins to blame, the nominator what
PostFilter decided, the API an event and the condition PodScheduled=False with the whole sentence.
A pod that is bound after all is told nothing: it does run, whatever this attempt came to (upstream
marks it as unscheduled). Nor is one that was tried for a resize, but that one comes back. Of a pod
that was deleted meanwhile an event tells; where another pod has its name, nothing. Upstream:
schedule_one.go, handleSchedulingFailure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from bayplan.api.objects import PodCondition
from bayplan.clock import rfc3339
from bayplan.engine.core import EngineCore
from bayplan.engine.outbox import POD_SCHEDULED
from bayplan.engine.resizes import needs_scheduling
from bayplan.framework.queued_group import QueuedPodGroupInfo
from bayplan.framework.status import Code, Diagnosis, Status, is_rejected, shared_names
from bayplan.framework.types import NominatingMode, Nomination, QueuedPodInfo
from bayplan.state.pods import PodInfo

_FALSE = "False"
_NO_CONDITION = PodCondition()

CLEAR_NOMINATION: Final = Nomination(NominatingMode.OVERRIDE, "")


@dataclass(frozen=True, slots=True)
class Failure:
    """How an attempt failed."""

    status: Status
    #: The sentence for the event and the condition.
    message: str
    #: Whom to blame; None: nobody, so the pod is retried after backoff.
    diagnosis: Diagnosis | None = None
    #: What becomes of the pod's nomination; None: it stays.
    nomination: Nomination | None = None
    #: It is tried again without a delay.
    at_once: bool = False


@final
class FailureHandler:
    """Takes failed attempts back."""

    def __init__(self, engine: EngineCore) -> None:
        self._engine = engine

    def handle(self, queued: QueuedPodInfo, started_seconds: float, failure: Failure) -> None:
        """``started_seconds``: when the attempt began."""
        engine, status = self._engine, failure.status
        seconds = engine.clock.now() - started_seconds
        engine.metrics.attempt(_result(failure), queued.pod.scheduler_name, seconds)
        if status.code is Code.ERROR and status.plugin:
            engine.metrics.plugin_failures.add(status.plugin)
        current = self._requeue(queued, failure)
        if current is not None and not current.node_name:
            self._write(current, failure)
        elif self._is_gone(queued.pod):
            self._emit(queued.pod, failure)

    def handle_group(
        self,
        lead: QueuedPodGroupInfo,
        members: Sequence[QueuedPodInfo],
        started_seconds: float,
        failure: Failure,
        *,
        own: Mapping[str, Failure] | None = None,
    ) -> None:
        """All members come back, as one; each knows already whom to blame. ``own``: by uid, how
        the attempt failed for each, which is written as of a pod that is tried alone; without it
        the group's message is written where it is news."""
        engine, rejected = self._engine, is_rejected(failure.status)
        for queued in members:
            current = engine.cluster.pods.get(queued.pod.uid)
            if current is None or current.node_name:
                engine.queue.done(queued.pod.uid)
                continue
            if not rejected:
                queued.unschedulable_plugins = queued.pending_plugins = shared_names()
            queued.pod = current
            lead.members[current.uid] = queued
        if not lead.members:
            return
        lead.pod = next(iter(lead.members.values())).pod
        engine.queue.add_unschedulable(lead)
        seconds = engine.clock.now() - started_seconds
        if own:
            for queued in list(lead.members.values()):
                each = own.get(queued.pod.uid, failure)
                engine.metrics.attempt(_result(each), queued.pod.scheduler_name, seconds)
                engine.nominator.add_nominated_pod(queued.pod, each.nomination)
                self._write(queued.pod, each)
            return
        engine.metrics.attempt(_result(failure), lead.pod.scheduler_name, seconds)
        for queued in list(lead.members.values()):
            self._tell_member(queued.pod, _reason(failure), failure)

    def _tell_member(self, pod: PodInfo, reason: str, failure: Failure) -> None:
        condition = unschedulable_condition(self._engine, pod, reason, failure.message)
        if condition is not None:
            self._engine.outbox.patch_status(pod, condition, None)
            self._emit(pod, failure)

    def _requeue(self, queued: QueuedPodInfo, failure: Failure) -> PodInfo | None:
        """The pod as the API knows it now; None where it is gone, or runs and is done with."""
        engine, uid, diagnosis = self._engine, queued.pod.uid, failure.diagnosis
        queued.unschedulable_plugins = shared_names(diagnosis and diagnosis.unschedulable_plugins)
        queued.pending_plugins = shared_names(diagnosis and diagnosis.pending_plugins)
        current = engine.cluster.pods.get(uid)
        if current is None or not needs_scheduling(engine, current):
            engine.queue.done(uid)
            return None
        queued.pod = current
        engine.queue.add_unschedulable(queued, at_once=failure.at_once)
        if not current.node_name:
            engine.nominator.add_nominated_pod(current, failure.nomination)
        return current

    def _write(self, pod: PodInfo, failure: Failure) -> None:
        """An event of every attempt; the condition and the nomination where they change."""
        self._emit(pod, failure)
        nomination = failure.nomination
        nominated: str | None = None
        if nomination is not None and nomination.mode is NominatingMode.OVERRIDE:
            nominated = nomination.node_name
        condition = unschedulable_condition(self._engine, pod, _reason(failure), failure.message)
        self._engine.outbox.patch_status(pod, condition, nominated)

    def _emit(self, pod: PodInfo, failure: Failure) -> None:
        profile, note = pod.scheduler_name, failure.message
        self._engine.outbox.emit(profile, pod, "Warning", "FailedScheduling", "Scheduling", note)

    def _is_gone(self, pod: PodInfo) -> bool:
        """It was deleted, and no other pod has its name."""
        pods = self._engine.cluster.pods
        return pod.uid not in pods and all(other.key != pod.key for other in pods.values())


def _result(failure: Failure) -> str:
    return "unschedulable" if is_rejected(failure.status) else "error"


def _reason(failure: Failure) -> str:
    return "Unschedulable" if is_rejected(failure.status) else "SchedulerError"


def unschedulable_condition(
    engine: EngineCore, pod: PodInfo, reason: str, message: str
) -> PodCondition | None:
    """PodScheduled=False as it is to be written; None: it is there already."""
    old = _NO_CONDITION
    for condition in pod.status.conditions or ():
        if condition.type == POD_SCHEDULED:
            old = condition
            break
    if (old.status, old.reason, old.message) == (_FALSE, reason, message):
        return None
    # A condition keeps its time while its status stays: then none is sent.
    since = None if old.status == _FALSE else rfc3339(engine.clock.epoch_seconds())
    return PodCondition(
        type=POD_SCHEDULED,
        status=_FALSE,
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=pod.metadata.generation,
    )
