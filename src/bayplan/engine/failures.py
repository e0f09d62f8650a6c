"""The failure handler: what becomes of a pod whose attempt failed.

Requeue first, then tell: the queue gets the pod back with the plugins to blame, the nominator what
PostFilter decided, the API an event and the condition PodScheduled=False with the whole sentence.
Upstream: schedule_one.go, handleSchedulingFailure.
"""

from typing import Final, final

from bayplan.api.objects import PodCondition
from bayplan.engine.engine_state import EngineState
from bayplan.framework.interface import NominatingMode, Nomination, QueuedPodInfo
from bayplan.framework.status import Diagnosis, Status, is_rejected
from bayplan.ports import PatchPodStatus
from bayplan.state.pods import PodInfo

CLEAR_NOMINATION: Final = Nomination(NominatingMode.OVERRIDE, "")


@final
class FailureHandler:
    """Takes failed attempts back."""

    def __init__(self, engine: EngineState) -> None:
        self._engine = engine

    def handle(
        self,
        queued: QueuedPodInfo,
        status: Status,
        message: str,
        diagnosis: Diagnosis | None,
        nomination: Nomination | None,
    ) -> None:
        """``diagnosis`` None: nobody is to blame, so the pod is retried after backoff."""
        rejected = is_rejected(status)
        result = "unschedulable" if rejected else "error"
        self._engine.metrics.attempt(result, queued.pod.scheduler_name)
        queued.unschedulable_plugins = set(diagnosis.unschedulable_plugins) if diagnosis else set()
        queued.pending_plugins = set(diagnosis.pending_plugins) if diagnosis else set()
        known = self._requeue(queued, nomination)
        if known is None:
            return
        profile = known.scheduler_name
        self._engine.emit(profile, known, "Warning", "FailedScheduling", "Scheduling", message)
        reason = "Unschedulable" if rejected else "SchedulerError"
        self._patch_status(known, reason, message, nomination)

    def _requeue(self, queued: QueuedPodInfo, nomination: Nomination | None) -> PodInfo | None:
        """The pod as the API knows it now; None where it is gone."""
        engine, uid = self._engine, queued.pod.uid
        known = engine.known.get(uid)
        if known is None or known.node_name:
            engine.queue.done(uid)
            return known
        queued.pod = known
        engine.queue.add_unschedulable(queued)
        engine.nominator.add_nominated_pod(known, nomination)
        return known

    def _patch_status(
        self, pod: PodInfo, reason: str, message: str, nomination: Nomination | None
    ) -> None:
        """Nothing is sent where nothing would change."""
        nominated: str | None = None
        if nomination is not None and nomination.mode is NominatingMode.OVERRIDE:
            nominated = nomination.node_name
        if nominated == pod.nominated_node_name:
            nominated = None
        condition = PodCondition(
            type="PodScheduled", status="False", reason=reason, message=message
        )
        if nominated is None and _has_condition(pod, condition):
            return
        self._engine.effects.append(
            PatchPodStatus(pod.namespace, pod.name, pod.uid, condition, nominated)
        )


def _has_condition(pod: PodInfo, wanted: PodCondition) -> bool:
    return any(
        (c.type, c.status, c.reason, c.message)
        == (wanted.type, wanted.status, wanted.reason, wanted.message)
        for c in pod.status.conditions or ()
    )
