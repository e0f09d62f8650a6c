"""SchedulingGates: a pod waits until the last of its spec.schedulingGates is taken away.

Upstream: plugins/schedulinggates. The condition SchedulingGated is written by the API server.
"""

from collections.abc import Sequence
from typing import Any, final

from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.framework.plugin import EnqueueExtensions, PreEnqueuePlugin
from bayplan.framework.status import Status, unresolvable
from bayplan.state.pods import PodInfo, PodShape

WAITING = "waiting for scheduling gates: [{}]"


@final
class SchedulingGates(PreEnqueuePlugin, EnqueueExtensions):
    """Prevents pods with scheduling gates from entering activeQ."""

    name = "SchedulingGates"

    def concerns(self, shape: PodShape) -> bool:
        return bool(shape.spec.scheduling_gates)

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        return unresolvable(WAITING.format(" ".join(gate.name for gate in gates)))

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        eliminated = ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        event = ClusterEvent(EventResource.TARGET_POD, eliminated)
        return [ClusterEventWithHint(event, _after_gates_eliminated)]


def _after_gates_eliminated(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """The event itself means that the pod has no gates any more."""
    return QueueingHint.QUEUE
