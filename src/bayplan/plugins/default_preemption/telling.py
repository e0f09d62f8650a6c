"""Telling victims to go, and those that expected room that there is none: one pod at a time.

A victim that waits at Permit or is in PreBind goes back to the queue, and nothing of it is deleted.
Upstream: framework/preemption/executor.go, PreemptPod and clearNominatedNodeName.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from bayplan.api.objects import PodCondition
from bayplan.clock import rfc3339
from bayplan.framework.interface import Handle
from bayplan.ports import BindPort, NotFoundError, ObjectReference, PatchPodStatus
from bayplan.state.pods import PodInfo

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"
POD, POD_GROUP = "pod", "podgroup"
#: Begins what is said at the pod, or at members of a group; upstream's words.
PREFIX, GROUP_PREFIX = "preemption: ", "pod group preemption: "

_NORMAL, _PREEMPTED, _PREEMPTING = "Normal", "Preempted", "Preempting"


@dataclass(frozen=True, slots=True)
class Preemptor:
    """Whom room is made for: a pod, or the members of a group."""

    kind: str
    uid: str
    pods: Sequence[PodInfo]
    #: Where they are to go.
    node_names: Sequence[str]
    #: The group's object; None for a pod, whose reference upstream's events lack.
    reference: ObjectReference | None = None

    @property
    def priority(self) -> int:
        return min(pod.priority for pod in self.pods)

    @property
    def scheduler_name(self) -> str:
        return self.pods[0].scheduler_name

    @property
    def place(self) -> str:
        """What victims hear of where room is made. Upstream: Candidate.Name."""
        return "cluster" if self.kind == POD_GROUP else ", ".join(self.node_names)


@final
class Telling:
    """On behalf of one preemptor."""

    def __init__(self, handle: Handle, instance_name: str, preemptor: Preemptor) -> None:
        self._handle = handle
        self._instance_name = instance_name
        self._preemptor = preemptor

    def outranked(self) -> list[PodInfo]:
        """Pods of lower priority that expect room there, and whose status says so."""
        nominator, priority = self._handle.nominator, self._preemptor.priority
        return [
            pod
            for name in self._preemptor.node_names
            for pod in nominator.nominated_pods_for_node(name)
            if pod.priority < priority and pod.nominated_node_name
        ]

    async def evict(self, port: BindPort, victim: PodInfo) -> bool:
        """Tell a pod to go. True: it was not bound yet, and no deletion will be heard of. Raises
        ApiError, OutcomeUnknownError."""
        preemptor = self._preemptor
        note = f"Preempted by {preemptor.kind} {preemptor.uid} on node {preemptor.place}"
        in_memory = await self._preempt_in_memory(port, victim)
        if in_memory:
            note += " (in kube-scheduler memory)."
        else:
            try:
                await self._delete(port, victim)
            except NotFoundError:
                return False
        self._handle.emit(
            victim, _NORMAL, _PREEMPTED, _PREEMPTING, note, related=preemptor.reference
        )
        return in_memory

    async def _preempt_in_memory(self, port: BindPort, victim: PodInfo) -> bool:
        """End the wait or the binding of a pod that is not bound yet; it is tried again."""
        waiting = self._handle.waiting_pod(victim.uid)
        if waiting is not None:
            return waiting.preempt(self._instance_name, "preempted")
        in_pre_bind = self._handle.pods_in_pre_bind.get(victim.uid)
        if in_pre_bind is None or not in_pre_bind.cancel(f"preempted by {self._instance_name}"):
            return False
        # An attempt of the preemptor before that would find the same victim.
        await in_pre_bind.ended(port)
        return True

    async def _delete(self, port: BindPort, victim: PodInfo) -> None:
        """Say why first. Raises ApiError, OutcomeUnknownError."""
        condition = self._condition(victim)
        if condition is not None:
            patch = PatchPodStatus(victim.namespace, victim.name, victim.uid, condition)
            await port.patch_pod_status(patch)
        await port.delete_pod(victim.namespace, victim.name, victim.uid)

    def _condition(self, victim: PodInfo) -> PodCondition | None:
        """None: it says so already."""
        scheduler, kind = self._preemptor.scheduler_name, self._preemptor.kind
        message = f"{scheduler}: preempting to accommodate a higher priority {kind}"
        found = (c for c in victim.status.conditions or () if c.type == DISRUPTION_TARGET)
        old = next(found, PodCondition())
        if (old.status, old.reason, old.message) == ("True", PREEMPTION_BY_SCHEDULER, message):
            return None
        since = None if old.status == "True" else rfc3339(self._handle.epoch_seconds)
        return PodCondition(
            type=DISRUPTION_TARGET,
            status="True",
            reason=PREEMPTION_BY_SCHEDULER,
            message=message,
            last_transition_time=since,
            observed_generation=victim.metadata.generation,
        )


async def clear_nomination(port: BindPort, pod: PodInfo) -> None:
    """It looks for another place, sooner than when the victims are gone."""
    await port.patch_pod_status(PatchPodStatus(pod.namespace, pod.name, pod.uid, None, ""))


def is_preempted(pod: PodInfo) -> bool:
    """Whether a pod is on its way out because of a preemption."""
    if not pod.is_terminating:
        return False
    for condition in pod.status.conditions or ():
        if condition.type == DISRUPTION_TARGET:
            return condition.status == "True" and condition.reason == PREEMPTION_BY_SCHEDULER
    return False
