"""Deferred resizes: attempts that make room for a running pod on its own node (KEP-1287).

The kubelet defers a resize for which its node has no room. The pod then waits in the queue like a
pod without a node, but alone, even if it belongs to a group. An attempt evaluates only the pod's
node, and may preempt other pods there. The pod is never placed: when there is room, the kubelet
resizes the pod and updates its status, which ends the wait. The scheduler writes no event and no
condition, because the kubelet decides. Upstream: eventhandlers.go and schedule_one.go (v1.37), gate
InPlacePodVerticalScalingSchedulerPreemption.
"""

from collections.abc import Sequence

from bayplan.engine.core import EngineCore
from bayplan.framework.events import ClusterEvent
from bayplan.framework.status import Code, Status
from bayplan.state.pods import PodInfo


def needs_scheduling(engine: EngineCore, pod: PodInfo) -> bool:
    """Whether a pod needs attempts: it has no node, or waits for a deferred resize."""
    return not pod.node_name or _is_tried(engine, pod)


def follow(
    engine: EngineCore,
    old: PodInfo | None,
    new: PodInfo | None,
    events: Sequence[ClusterEvent] = (),
) -> None:
    """Update the queue after a pod on a node was added, changed or deleted."""
    if not engine.tries_resizes:
        return
    was_tried = old is not None and _is_tried(engine, old)
    if new is not None and _is_tried(engine, new):
        if was_tried:
            engine.queue.update(old, new, events)
        else:
            engine.queue.add(new)
    elif old is not None and was_tried:
        engine.queue.delete(old)


def end_attempt_of_member(engine: EngineCore, uid: str) -> None:
    """End the attempt of a group's member that needs no node any more. If the member was bound
    during the attempt and waits for a deferred resize by now, it returns to the queue alone."""
    engine.queue.done(uid)
    follow(engine, None, engine.cluster.pods.get(uid))


def waiting_for_kubelet(pod: PodInfo) -> Status:
    """The end of an attempt that finds room.

    Upstream then tries to assume a pod that is on its node already, and fails with this message.
    The error names no plugin, so the pod is tried again after backoff or any event. The next
    attempt sees whether another pod took the room before the kubelet did.
    """
    return Status(Code.ERROR, (f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed",))


def _is_tried(engine: EngineCore, pod: PodInfo) -> bool:
    is_tried = engine.tries_resizes and pod.has_deferred_resize
    return is_tried and pod.scheduler_name in engine.frameworks
