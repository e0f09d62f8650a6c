"""Eviction of victims, beside the attempt or within it (KEP-4832).

With the gate SchedulerAsyncPreemption the scheduler goes on: pods that are nominated to the node
and have a lower priority lose their nomination; then all victims but the last are deleted side by
side; then the last one. Until then the preemptor stays out of the queue, because an earlier attempt
would search for victims again. Without the gate the attempt ends only when all victims are deleted.
If one deletion fails, the attempt has failed, and no pod loses its nomination.

A victim that waits at Permit or is in PreBind returns to the queue and is not deleted. Upstream:
framework/preemption/executor.go (v1.37), prepareCandidate, prepareCandidateAsync, PreemptPod.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import final

from msgspec import Struct

from bayplan import ports
from bayplan.api.objects import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER, Condition, PodStatus
from bayplan.clock import rfc3339
from bayplan.framework.handle import Handle
from bayplan.framework.preemption import Victims
from bayplan.framework.status import Code
from bayplan.state.pods import PodInfo

# ---- what the API and the log are sent ------------------------------------------------------


POD, POD_GROUP, COMPOSITE = "pod", "podgroup", "compositepodgroup"
#: The beginning of the message for a pod, or for members of a group; upstream's words.
PREFIX, GROUP_PREFIX = "preemption: ", "pod group preemption: "

_NORMAL, _PREEMPTED, _PREEMPTING = "Normal", "Preempted", "Preempting"


class Preemptor(Struct, frozen=True):
    """The preemptor: a pod, or the members of a group or of a tree of groups."""

    kind: str
    uid: str
    pods: Sequence[PodInfo]
    #: Where they are to go.
    node_names: Sequence[str]
    #: The group's object; None for a pod: upstream's events have no reference to it.
    reference: ports.ObjectReference | None = None

    @property
    def priority(self) -> int:
        return min(pod.priority for pod in self.pods)

    @property
    def scheduler_name(self) -> str:
        return self.pods[0].scheduler_name

    @property
    def place(self) -> str:
        """The place that messages to victims name. Upstream: Candidate.Name."""
        return ", ".join(self.node_names) if self.kind == POD else "cluster"


@final
class VictimWriter:
    """On behalf of one preemptor."""

    def __init__(self, handle: Handle, instance_name: str, preemptor: Preemptor) -> None:
        self._handle = handle
        self._instance_name = instance_name
        self._preemptor = preemptor
        scheduler, kind = preemptor.scheduler_name, preemptor.kind
        self._message = f"{scheduler}: preempting to accommodate a higher priority {kind}"
        self._note = f"Preempted by {kind} {preemptor.uid} on node {preemptor.place}"
        #: The newest condition, which mostly serves all victims.
        self._newest: Condition | None = None

    def outranked(self) -> list[PodInfo]:
        """Pods of lower priority that are nominated there, by their status, too."""
        nominated: list[PodInfo] = []
        for name in self._preemptor.node_names:
            nominated += self._handle.nominator.nominated_pods_for_node(name)
        if not nominated:
            return nominated
        priority = self._preemptor.priority
        return [pod for pod in nominated if pod.priority < priority and pod.nominated_node_name]

    async def evict(self, port: ports.BindPort, victim: PodInfo) -> bool:
        """Evict a pod. True: the pod was not bound yet, and no deletion follows. Raises ApiError,
        OutcomeUnknownError."""
        note = self._note
        in_memory = await self._preempt_in_memory(port, victim)
        if in_memory:
            note += " (in kube-scheduler memory)." * self._handle.behaviour.events_tell_of_memory
        else:
            try:
                await self._delete(port, victim)
            except ports.NotFoundError:
                return False
        self._handle.emit(
            victim, _NORMAL, _PREEMPTED, _PREEMPTING, note, related=self._preemptor.reference
        )
        return in_memory

    async def _preempt_in_memory(self, port: ports.BindPort, victim: PodInfo) -> bool:
        """End the wait or the binding of a pod that is not bound yet; it is tried again."""
        behaviour, waiting = self._handle.behaviour, self._handle.waiting_pod(victim.uid)
        if waiting is not None:
            if behaviour.waiting_victims_back_off:
                return waiting.preempt(self._instance_name, "preempted")
            waiting.reject(self._instance_name, "preempted")
            return True
        if not behaviour.bindings_of_victims_end:
            return False
        in_pre_bind = self._handle.pods_in_pre_bind.get(victim.uid)
        if in_pre_bind is None or not in_pre_bind.cancel(f"preempted by {self._instance_name}"):
            return False
        # An attempt of the preemptor before that would find the same victim.
        await in_pre_bind.ended(port)
        return True

    async def _delete(self, port: ports.BindPort, victim: PodInfo) -> None:
        """Write the condition, then delete the pod. Raises ApiError, OutcomeUnknownError."""
        condition = self._condition(victim)
        identity = victim.shape.namespace, victim.metadata.name, victim.uid
        if condition is not None:
            await port.patch_pod_status(ports.PatchPodStatus(*identity, condition))
        await port.delete_pod(*identity)

    def _condition(self, victim: PodInfo) -> Condition | None:
        """None: the status has this condition already."""
        old, message = disruption_target(victim.status), self._message
        if old is not None and old.status == "True":
            if (old.reason, old.message) == (PREEMPTION_BY_SCHEDULER, message):
                return None
            since = None
        else:
            since = rfc3339(self._handle.epoch_seconds)
        generation, newest = victim.metadata.generation, self._newest
        is_same = newest is not None and newest.last_transition_time == since
        if newest is not None and is_same and newest.observed_generation == generation:
            return newest
        newest = self._newest = Condition(
            type=DISRUPTION_TARGET,
            status="True",
            reason=PREEMPTION_BY_SCHEDULER,
            message=message,
            last_transition_time=since,
            observed_generation=generation,
        )
        return newest


async def clear_nomination(port: ports.BindPort, pod: PodInfo) -> None:
    """It looks for another place, sooner than when the victims are gone."""
    await port.patch_pod_status(ports.PatchPodStatus(pod.namespace, pod.name, pod.uid, None, ""))


def disruption_target(status: PodStatus) -> Condition | None:
    """The condition that announces an eviction."""
    for condition in status.conditions or ():
        if condition.type == DISRUPTION_TARGET:
            return condition
    return None


def is_preempted(pod: PodInfo) -> bool:
    """Whether a pod is on its way out because of a preemption."""
    condition = disruption_target(pod.status) if pod.is_terminating else None
    if condition is None:
        return False
    return condition.status == "True" and condition.reason == PREEMPTION_BY_SCHEDULER


# ---- eviction that an attempt waits for -----------------------------------------------------


@final
class AwaitedEviction:
    """framework.preemption.PendingEvictions for one preemptor."""

    def __init__(
        self, handle: Handle, instance_name: str, preemptor: Preemptor, victims: Sequence[PodInfo]
    ) -> None:
        self._handle = handle
        self._preemptor = preemptor
        self._writer = VictimWriter(handle, instance_name, preemptor)
        self._victims = victims
        self._began_seconds = handle.now_seconds
        #: Writes under way.
        self._left_count = 0
        self._problems: list[str] = []

    def start(self, ended: Callable[[str], None]) -> None:
        self._ended = ended
        writes = [(pod, self._writer.evict) for pod in self._victims]
        self._write(writes, self._evicted, self._problems)

    def _evicted(self) -> None:
        if self._problems:
            self._end()
            return
        # A failure here is noted, and does not fail the preemption.
        outranked = [(pod, _clear) for pod in self._writer.outranked()]
        self._write(outranked, self._end, [])

    def _end(self) -> None:
        result = "error" if self._problems else "success"
        seconds = self._handle.now_seconds - self._began_seconds
        duration = self._handle.metrics.preemption_execution_duration
        duration.observe(seconds, self._preemptor.kind, result)
        prefix = PREFIX
        if self._preemptor.kind != POD:
            prefix = GROUP_PREFIX
            attempts = self._handle.metrics.workload_preemption_attempts
            attempts.add(Code.ERROR if self._problems else Code.SUCCESS)
        self._ended(f"{prefix}{self._problems[0]}" if self._problems else "")

    def _write(
        self,
        writes: Sequence[tuple[PodInfo, Callable[[ports.BindPort, PodInfo], Awaitable[object]]]],
        then: Callable[[], None],
        problems: list[str],
    ) -> None:
        """All of these side by side; ``then``: called when the last one has ended."""
        self._left_count = len(writes)

        async def run(
            port: ports.BindPort,
            pod: PodInfo,
            write: Callable[[ports.BindPort, PodInfo], Awaitable[object]],
        ) -> None:
            try:
                await write(port, pod)
            except Exception as problem:
                problems.append(str(problem))
                raise
            finally:
                self._left_count -= 1
                if not self._left_count:
                    then()

        for pod, write in writes:
            self._handle.perform(pod.key, lambda port, pod=pod, write=write: run(port, pod, write))
        if not writes:
            then()


async def _clear(port: ports.BindPort, pod: PodInfo) -> None:
    await clear_nomination(port, pod)


# ---- eviction -------------------------------------------------------------------------------


@final
class RunningEvictions:
    """Those under way."""

    def __init__(self, handle: Handle, instance_name: str) -> None:
        self._handle = handle
        self._instance_name = instance_name
        #: By uid of the pod that room is made for.
        self.running: dict[str, _Eviction] = {}

    def is_running(self, uid: str) -> bool:
        """Whether evictions for the preemptor are under way. A pod that is turned away meanwhile is
        tried again when they have ended."""
        eviction = self.running.get(uid)
        if eviction is None:
            return False
        eviction.was_awaited = True
        return True

    def start(self, preemptor: Preemptor, victims: Victims) -> None:
        """Begin to make room."""
        going = self._going(preemptor, victims)
        if not going:
            return
        eviction = _Eviction(self._handle, self._instance_name, preemptor, going)
        for pod in preemptor.pods:
            self.running[pod.uid] = eviction
        eviction.ended = lambda: self._end(preemptor)
        eviction.start()

    def awaited(self, preemptor: Preemptor, victims: Victims) -> AwaitedEviction:
        """The evictions; they begin when the caller awaits them."""
        going = self._going(preemptor, victims)
        return AwaitedEviction(self._handle, self._instance_name, preemptor, going)

    def _going(self, preemptor: Preemptor, victims: Victims) -> list[PodInfo]:
        """The pods to evict."""
        if victims.pdb_violation_count:
            violations = self._handle.metrics.preemption_pdb_violations
            violations.add(preemptor.kind, count=victims.pdb_violation_count)
        if not self._handle.behaviour.terminating_victims_are_left:
            return list(victims.pods)
        return [pod for pod in victims.pods if not pod.is_terminating]

    def _end(self, preemptor: Preemptor) -> None:
        for pod in preemptor.pods:
            self.running.pop(pod.uid, None)


@final
class _Eviction:
    """Making room once."""

    def __init__(
        self,
        handle: Handle,
        instance_name: str,
        preemptor: Preemptor,
        victims: Sequence[PodInfo],
    ) -> None:
        self._handle = handle
        self._preemptor = preemptor
        self._writer = VictimWriter(handle, instance_name, preemptor)
        self._last = victims[-1]
        #: The victims before the last one that are not evicted yet.
        self._all_but_last = {pod.uid: pod for pod in victims[:-1]}
        self._began_seconds = handle.now_seconds
        self._has_failed = False
        #: Whether the preemptor was turned away because the evictions had not ended.
        self.was_awaited = False

    def ended(self) -> object:
        """Called when all is done, or given up."""

    def start(self) -> None:
        all_but_last = list(self._all_but_last.values())
        for pod in self._writer.outranked():
            self._handle.perform(pod.key, lambda port, pod=pod: clear_nomination(port, pod))
        for pod in all_but_last:
            self._handle.perform(pod.key, lambda port, pod=pod: self._evict_one(port, pod))
        if not all_but_last:
            self._handle.perform(self._last.key, self._evict_last)

    async def _evict_one(self, port: ports.BindPort, victim: PodInfo) -> None:
        try:
            await self._writer.evict(port, victim)
        except (ports.ApiError, ports.OutcomeUnknownError):
            self._has_failed = True
            raise
        finally:
            del self._all_but_last[victim.uid]
            if not self._all_but_last:
                self._all_but_last_are_done()

    def _all_but_last_are_done(self) -> None:
        """If one eviction has failed, the last victim stays, and the pod is tried again sooner."""
        if self._has_failed:
            self._end(activate=True)
        else:
            self._handle.perform(self._last.key, self._evict_last)

    async def _evict_last(self, port: ports.BindPort) -> None:
        activate = True
        try:
            in_memory = await self._writer.evict(port, self._last)
            activate = in_memory and self._handle.behaviour.memory_victims_activate
        except (ports.ApiError, ports.OutcomeUnknownError):
            self._has_failed = True
            raise
        finally:
            self._end(activate=activate)

    def _end(self, *, activate: bool) -> None:
        self.ended()
        result = "error" if self._has_failed else "success"
        metrics = self._handle.metrics
        metrics.preemption_goroutines_execution.add(result)
        seconds = self._handle.now_seconds - self._began_seconds
        metrics.preemption_goroutines_duration.observe(seconds, result)
        metrics.preemption_execution_duration.observe(seconds, self._preemptor.kind, result)
        if activate or self.was_awaited:
            self._handle.activate(self._preemptor.pods)
