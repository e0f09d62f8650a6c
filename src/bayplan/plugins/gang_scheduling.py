"""GangScheduling: members of a scheduling.k8s.io PodGroup wait until enough of them are there.

Afterwards the engine's group cycle places the members together. Upstream: plugins/gangscheduling.
"""

from collections.abc import Sequence
from typing import Any, final

from bayplan.api.pod_groups import UPSTREAM_GROUP
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import (
    UPDATE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.framework.plugin import EnqueueExtensions, PermitPlugin, PreEnqueuePlugin
from bayplan.framework.status import Code, Status, unresolvable
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo, PodShape

#: The kind of gangs in Kubernetes 1.35.
_WORKLOAD = "scheduling.k8s.io/v1alpha1 Workload"

# Upstream's words, letter for letter.
NO_GROUP = 'waiting for pods\'s pod group "{}" to appear in scheduling queue'
TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"
TOO_FEW_PLACED = "waiting for minCount pods from a gang to be scheduled"

#: How long a member waits at Permit, in seconds. Upstream: permitTimeoutDuration.
_PERMIT_TIMEOUT_SECONDS = 300.0


@final
class GangScheduling(PreEnqueuePlugin, PermitPlugin, EnqueueExtensions):
    """Holds back pods whose group lacks its object or members.

    Permit, which 1.38 does not have, holds members while fewer than the minimum have a node. The
    engine's group cycle places the minimum before Permit, so that members wait there only if they
    are placed one by one.
    """

    name = "GangScheduling"

    def concerns(self, shape: PodShape) -> bool:
        return shape.spec.scheduling_group is not None

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        state = self._group(pod)
        if state is None:
            return None
        if state.group is None:
            return unresolvable(NO_GROUP.format(state.key.name))
        return None if state.is_complete else unresolvable(TOO_FEW)

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        members = self._group(pod)
        if members is None or members.assigned_count >= members.min_member:
            return None, 0.0
        return Status(Code.WAIT, (TOO_FEW_PLACED,)), _PERMIT_TIMEOUT_SECONDS

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        behaviour = self.handle.behaviour
        gangs = EventResource.POD_GROUP if behaviour.gangs_are_pod_groups else _WORKLOAD
        events = [
            (EventResource.UNSCHEDULED_POD, ActionType.ADD, _of_its_group),
            (EventResource.ASSIGNED_POD, ActionType.ADD, _of_its_group),
            (gangs, ActionType.ADD, _its_group),
        ]
        if behaviour.changed_groups_are_events:
            events.append((gangs, UPDATE, _its_group))
        return [
            ClusterEventWithHint(ClusterEvent(resource, action), hint)
            for resource, action, hint in events
        ]

    def _group(self, pod: PodInfo) -> GroupState | None:
        """The pod's group, if its kind is Kubernetes' own."""
        key = pod.group_key
        if key is None or key.api_group != UPSTREAM_GROUP:
            return None
        return self.handle.pod_groups.of(pod)


def _of_its_group(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """Another member was created or bound."""
    is_member = isinstance(new, PodInfo) and new.group_key == pod.group_key
    return QueueingHint.QUEUE if is_member else QueueingHint.QUEUE_SKIP


def _its_group(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """The group's object was added or changed."""
    key = pod.group_key
    meta = new.metadata
    is_its = key is not None and (key.namespace, key.name) == (meta.namespace, meta.name)
    return QueueingHint.QUEUE if is_its else QueueingHint.QUEUE_SKIP
