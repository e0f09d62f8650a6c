"""Deferred resizes: pods that run, tried for more room where they are (KEP-1287).

The kubelet puts a resize off for which its node has no room. Such a pod waits in the queue like one
without a node, but by itself even where it belongs to a group. Its attempts ask about its own node,
and make room there by preemption. It is never placed: once there is room the kubelet resizes it and
tells so, which ends its wait. Nothing is written about it, for nobody but the kubelet decides.
Upstream: eventhandlers.go and schedule_one.go (v1.37), gate
InPlacePodVerticalScalingSchedulerPreemption.
"""

from collections.abc import Sequence

from bayplan.engine.core import EngineCore
from bayplan.framework.events import ClusterEvent
from bayplan.framework.status import Code, Status
from bayplan.state.pods import PodInfo


def needs_scheduling(engine: EngineCore, pod: PodInfo) -> bool:
    """Whether a pod is to be tried: it has no node, or waits for a resize."""
    return not pod.node_name or _is_tried(engine, pod)


def follow(
    engine: EngineCore,
    old: PodInfo | None,
    new: PodInfo | None,
    events: Sequence[ClusterEvent] = (),
) -> None:
    """A pod on a node came, changed or went: keep the queue in step."""
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


def waiting_for_kubelet(pod: PodInfo) -> Status:
    """The end of an attempt that finds room, in upstream's words: it tries to assume a pod that
    counts on its node already. So no plugin is to blame: the pod is tried again after a backoff, or
    whatever happens, and finds out if the room is taken before the kubelet took it."""
    return Status(Code.ERROR, (f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed",))


def _is_tried(engine: EngineCore, pod: PodInfo) -> bool:
    is_tried = engine.tries_resizes and pod.has_deferred_resize
    return is_tried and pod.scheduler_name in engine.frameworks
