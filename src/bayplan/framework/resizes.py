"""Which events matter to a pod that runs and waits for a resize: those of its own node.

Upstream: the checks for deferred resizes in the hints of noderesources/fit.go (v1.37).
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
    """The same, and less of them for pods that wait for a resize: whoever is on another node, and
    what becomes of that, is no news to them. But they are to be tried again when they want more, or
    others on their node do: where there was room there may be none."""
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
    """Where it happened; the pod's own node where that cannot be said."""
    if isinstance(changed, PodInfo):
        return changed.node_name
    return changed.metadata.name if isinstance(changed, Node) else pod.node_name


def _after_growth(pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
    return QueueingHint.QUEUE if pod.has_deferred_resize else QueueingHint.QUEUE_SKIP
