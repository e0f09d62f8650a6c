"""Deferred resizes: attempts that make room for a running pod on its own node (KEP-1287).

The kubelet defers a resize for which its node has no room. The pod then waits in the queue like a
pod without a node, but alone, even if it belongs to a group. An attempt evaluates only the pod's
node, and may preempt other pods there. The pod is never placed: when there is room, the kubelet
resizes the pod and updates its status, which ends the wait. The scheduler writes no event and no
condition, because the kubelet decides. Upstream: eventhandlers.go and schedule_one.go (v1.37), gate
InPlacePodVerticalScalingSchedulerPreemption.
"""

from collections.abc import Container, Mapping, Sequence
from typing import final

from bayplan.framework.events import ClusterEvent
from bayplan.framework.status import Code, Status
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.state.pods import PodInfo


@final
class Resizes:
    """Which pods on nodes wait in the queue for a resize."""

    def __init__(
        self,
        queue: SchedulingQueue,
        pods: Mapping[str, PodInfo],
        frameworks: Container[str],
        *,
        is_on: bool,
    ) -> None:
        """``pods``: the newest versions by uid; ``frameworks``: by profile; ``is_on``: whether pods
        with a deferred resize are tried."""
        self._queue = queue
        self._pods = pods
        self._frameworks = frameworks
        self.is_on = is_on

    def needs_scheduling(self, pod: PodInfo) -> bool:
        """Whether a pod needs attempts: it has no node, or waits for a deferred resize."""
        return not pod.node_name or self._is_tried(pod)

    def follow(
        self, old: PodInfo | None, new: PodInfo | None, events: Sequence[ClusterEvent] = ()
    ) -> None:
        """Update the queue after a pod on a node was added, changed or deleted."""
        if not self.is_on:
            return
        was_tried = old is not None and self._is_tried(old)
        if new is not None and self._is_tried(new):
            if was_tried:
                self._queue.update(old, new, events)
            else:
                self._queue.add(new)
        elif old is not None and was_tried:
            self._queue.delete(old)

    def end_attempt_of_member(self, uid: str) -> None:
        """End the attempt of a group's member that needs no node any more. If the member was bound
        during the attempt and waits for a deferred resize by now, it returns to the queue alone."""
        self._queue.done(uid)
        self.follow(None, self._pods.get(uid))

    def _is_tried(self, pod: PodInfo) -> bool:
        return self.is_on and pod.has_deferred_resize and pod.scheduler_name in self._frameworks


def waiting_for_kubelet(pod: PodInfo) -> Status:
    """The error that ends an attempt that finds room.

    Upstream then tries to assume a pod that is on its node already, and fails with this message.
    The error names no plugin, so the pod is tried again after backoff or any event. The next
    attempt sees whether another pod took the room before the kubelet did.
    """
    return Status(Code.ERROR, (f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed",))
