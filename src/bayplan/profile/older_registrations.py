"""Registrations of the in-tree plugins in the form that older versions of kube-scheduler have.

Before 1.37, a plugin registered for Pod, and its hint was called for other pods and for the waiting
pod alike. So the registrations for AssignedPod and TargetPod become one for Pod, whose hint calls
the one that the change is for. And every plugin that registered for new nodes was called for
changed taints, too, because an event of a new node could be missed. Upstream: buildQueueingHintMap.
"""

from collections.abc import Sequence
from typing import Any, final

from bayplan.config.behaviour import Behaviour
from bayplan.framework.events import (
    UPDATE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    queue_if,
)
from bayplan.state.pods import PodInfo

Events = Sequence[ClusterEventWithHint]

_OF_PODS = (EventResource.ASSIGNED_POD, EventResource.UNSCHEDULED_POD, EventResource.TARGET_POD)


def registered_in(behaviour: Behaviour, events: Events) -> Events:
    """The registrations of a plugin, as it has them in a version."""
    of_pods = [each for each in events if each.event.resource in _OF_PODS]
    if behaviour.has_pod_resources or not of_pods:
        return events
    actions = _actions(of_pods)
    for_pods = ClusterEvent(EventResource.POD, actions)
    remaining = [each for each in events if each.event.resource not in _OF_PODS]
    return [ClusterEventWithHint(for_pods, _PodHint(of_pods).after_pod), *remaining]


def queued_in(behaviour: Behaviour, events: Events) -> Events:
    """The registrations that the queue of a version matches events with."""
    of_nodes = [each for each in events if each.event.resource == EventResource.NODE]
    actions = _actions(of_nodes)
    wants_nodes = bool(actions & ActionType.ADD)
    if not behaviour.taints_concern_everyone or not wants_nodes:
        return events
    if actions & ActionType.UPDATE_NODE_TAINT:
        return events
    taints = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
    return [*events, ClusterEventWithHint(taints)]


def _actions(events: Events) -> ActionType:
    actions = ActionType(0)
    for each in events:
        actions |= each.event.action
    return actions


@final
class _PodHint:
    """The hint of a registration for all pods."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def after_pod(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
        action = UPDATE
        if old is None or new is None:
            action = ActionType.ADD if old is None else ActionType.DELETE
        is_own = new is not None and old is not None and new.uid == pod.uid
        own = [each for each in self._of(action) if _is_own(each)]
        others = [each for each in self._of(action) if not _is_own(each)]
        answers = [_answer(each, pod, old, new) for each in (own or others if is_own else others)]
        return queue_if(QueueingHint.QUEUE in answers)

    def _of(self, action: ActionType) -> Events:
        return [each for each in self._events if each.event.action & action]


def _is_own(each: ClusterEventWithHint) -> bool:
    return each.event.resource == EventResource.TARGET_POD


def _answer(each: ClusterEventWithHint, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    return QueueingHint.QUEUE if each.hint is None else each.hint(pod, old, new)
