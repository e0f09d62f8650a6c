"""Queueing hints for running pods that wait for a deferred resize.

For such a pod only events on its own node matter. Upstream: the checks for deferred resizes in the
hints of noderesources/fit.go (v1.37).
"""

from collections.abc import Iterable
from typing import Any

from bayplan.api.objects import Node
from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    QueueingHintFn,
)
from bayplan.state.pods import PodInfo


def with_resizes(events: Iterable[ClusterEventWithHint]) -> list[ClusterEventWithHint]:
    """The events with narrower hints for pods that wait for a resize, and two further events.

    Events of other nodes do not queue such a pod. An increase of its own requests, or of the
    requests of other pods on its node, does: the node's free amounts may have changed.
    """
    narrowed = [
        event if event.hint is None else ClusterEventWithHint(event.event, _on_own_node(event.hint))
        for event in events
    ]
    grown = (EventResource.ASSIGNED_POD, EventResource.TARGET_POD)
    return narrowed + [
        ClusterEventWithHint(
            ClusterEvent(resource, ActionType.UPDATE_POD_SCALE_UP), _on_own_node(_after_growth)
        )
        for resource in grown
    ]


def _on_own_node(hint: QueueingHintFn) -> QueueingHintFn:
    def hint_on_own_node(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        changed = old if new is None else new
        if pod.has_deferred_resize and _node_name(pod, changed) != pod.node_name:
            return QueueingHint.QUEUE_SKIP
        return hint(pod, old, new)

    return hint_on_own_node


def _node_name(pod: PodInfo, changed: Any) -> str:
    """The node of an event; the pod's own node if the object has no node."""
    if isinstance(changed, PodInfo):
        return changed.node_name
    return changed.metadata.name if isinstance(changed, Node) else pod.node_name


def _after_growth(pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
    return QueueingHint.QUEUE if pod.has_deferred_resize else QueueingHint.QUEUE_SKIP
