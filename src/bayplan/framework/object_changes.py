"""The cluster events of a change of a pod or a node.

Each event for which a plugin can register is one predicate of (old, new), in the order in which
upstream emits the events (framework/events.go and eventhandlers.go). Predicates compare as the API
machinery does: a missing map equals an empty map, "1" of cpu equals "1000m". An `EventVocabulary`
has the events of one version of kube-scheduler.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from bayplan.api.objects import Node, PodExtendedResourceClaimStatus, Quantities, Taint
from bayplan.api.quantity import parse
from bayplan.config.behaviour import NEWEST_BEHAVIOUR, Behaviour
from bayplan.framework.events import (
    EVENT_ASSIGNED_POD_ADD,
    EVENT_ASSIGNED_POD_DELETE,
    UPDATE,
    ActionType,
    ClusterEvent,
    EventResource,
)
from bayplan.state.pods import PodInfo

# ---- nodes ---------------------------------------------------------------------------------


def node_events(
    old: Node | None, new: Node | None, vocabulary: "EventVocabulary | None" = None
) -> list[ClusterEvent]:
    """The events of a change of a node; none if no plugin can register for the change.

    ``old`` is None for an added node, ``new`` for a deleted one. One event may occur twice: a node
    that becomes schedulable and also loses its taint causes UpdateNodeTaint two times.
    """
    if old is None:
        return [_node_event(ActionType.ADD)]
    if new is None:
        return [_node_event(ActionType.DELETE)]
    changes = (vocabulary or NEWEST_VOCABULARY).node_changes
    return [event for event, changed in changes if changed(old, new)]


def _became_schedulable(old: Node, new: Node) -> bool:
    return bool(old.spec.unschedulable) and not new.spec.unschedulable


def _allocatable_changed(old: Node, new: Node) -> bool:
    before, after = old.status.allocatable, new.status.allocatable
    return before != after and _exact(before) != _exact(after)


def _node_labels_changed(old: Node, new: Node) -> bool:
    return (old.metadata.labels or {}) != (new.metadata.labels or {})


def _taints_changed(old: Node, new: Node) -> bool:
    """Whether the list of taints differs, in order and content. timeAdded does not count, because
    no plugin reads it."""
    return _taints(old.spec.taints) != _taints(new.spec.taints)


def _conditions_changed(old: Node, new: Node) -> bool:
    """Whether the type or the status of a condition differs. A heartbeat is no change."""
    return _conditions(old) != _conditions(new)


def _annotations_changed(old: Node, new: Node) -> bool:
    return (old.metadata.annotations or {}) != (new.metadata.annotations or {})


def _preemption_policy_changed(old: Node, new: Node) -> bool:
    return _preemption_policy(old) != _preemption_policy(new)


def _declared_features_changed(old: Node, new: Node) -> bool:
    return (old.status.declared_features or ()) != (new.status.declared_features or ())


def _exact(quantities: Quantities | None) -> Mapping[str, object]:
    """The quantities as numbers that compare equal if the amounts are equal. Raises
    QuantityError."""
    return {name: parse(quantity) for name, quantity in (quantities or {}).items()}


def _taints(taints: Sequence[Taint] | None) -> list[tuple[str, str, str]]:
    return [(taint.key, taint.value or "", taint.effect) for taint in taints or ()]


def _conditions(node: Node) -> Mapping[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions or ()}


def _preemption_policy(node: Node) -> Sequence[str] | None:
    policy = node.spec.pod_preemption_policy
    return None if policy is None else policy.disable_resize_preemption or ()


def _node_event(action: ActionType) -> ClusterEvent:
    return ClusterEvent(EventResource.NODE, action)


_NodeChanges = Sequence[tuple[ClusterEvent, Callable[[Node, Node], bool]]]

_NODE_CHANGES: Final[_NodeChanges] = (
    (_node_event(ActionType.UPDATE_NODE_TAINT), _became_schedulable),
    (_node_event(ActionType.UPDATE_NODE_ALLOCATABLE), _allocatable_changed),
    (_node_event(ActionType.UPDATE_NODE_LABEL), _node_labels_changed),
    (_node_event(ActionType.UPDATE_NODE_TAINT), _taints_changed),
    (_node_event(ActionType.UPDATE_NODE_CONDITION), _conditions_changed),
    (_node_event(ActionType.UPDATE_NODE_ANNOTATION), _annotations_changed),
    (_node_event(ActionType.UPDATE_NODE_PREEMPTION_POLICY), _preemption_policy_changed),
    (_node_event(ActionType.UPDATE_NODE_DECLARED_FEATURE), _declared_features_changed),
)

# ---- pods ----------------------------------------------------------------------------------


def pod_events(
    old: PodInfo | None, new: PodInfo | None, vocabulary: "EventVocabulary | None" = None
) -> list[ClusterEvent]:
    """The events of a change of a pod, in the order in which upstream emits them.

    ``old`` is None for an added pod, ``new`` for a deleted one. A pod without a node causes events
    for no other pod. An update of such a pod is a TargetPod event, which only this pod gets. If
    such a pod loses its nomination, AssignedPod Delete is added: pods of the same or a lower
    priority, this pod included, may use the amounts that the nomination kept free.
    """
    known = vocabulary or NEWEST_VOCABULARY
    if old is not None and old.node_name:
        if new is None or not new.node_name:
            return [EVENT_ASSIGNED_POD_DELETE]
        return _pod_updates(old, new, known.assigned_updates)
    if new is not None and new.node_name:
        return [EVENT_ASSIGNED_POD_ADD]
    if old is None:
        return []
    events = [] if new is None else _pod_updates(old, new, known.own_updates)
    nominated = "" if new is None else new.nominated_node_name
    if old.nominated_node_name not in ("", nominated):
        events.append(EVENT_ASSIGNED_POD_DELETE)
    return events


_PodPredicates = Sequence[tuple[ClusterEvent, Callable[[PodInfo, PodInfo], bool]]]


class _PodUpdates(NamedTuple):
    """The updates of pods of one resource; made once, because pods change often."""

    special: _PodPredicates
    #: Those of them that pods of one shape can differ in.
    within_shape: _PodPredicates
    general: ClusterEvent


def _pod_updates(old: PodInfo, new: PodInfo, updates: _PodUpdates) -> list[ClusterEvent]:
    """One event for each special update, or one general update if no special update matches."""
    special = updates.within_shape if old.shape is new.shape else updates.special
    events = [event for event, changed in special if changed(old, new)]
    return events or [updates.general]


def _pod_labels_changed(old: PodInfo, new: PodInfo) -> bool:
    return old.labels != new.labels


def _scaled_down(old: PodInfo, new: PodInfo) -> bool:
    """Whether a request became smaller or was removed."""
    return old.shape is not new.shape and _any_higher(old.requests, new.requests)


def _scaled_up(old: PodInfo, new: PodInfo) -> bool:
    return _scaled_down(new, old)


def _any_higher(these: Mapping[str, int], those: Mapping[str, int]) -> bool:
    return any(name not in those or amount > those[name] for name, amount in these.items())


def _gates_eliminated(old: PodInfo, new: PodInfo) -> bool:
    return bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates


def _tolerations_changed(old: PodInfo, new: PodInfo) -> bool:
    """Whether the number of tolerations differs. The API server allows only additions, so equal
    numbers mean equal tolerations."""
    return len(old.shape.tolerations) != len(new.shape.tolerations)


def _generated_claims_changed(old: PodInfo, new: PodInfo) -> bool:
    before, after = old.status, new.status
    claims = before.resource_claim_statuses or (), after.resource_claim_statuses or ()
    extended = before.extended_resource_claim_status, after.extended_resource_claim_status
    return claims[0] != claims[1] or _extended(extended[0]) != _extended(extended[1])


def _extended(status: PodExtendedResourceClaimStatus | None) -> object:
    return status and (status.resource_claim_name, status.request_mappings or ())


_POD_CHANGES: Final[Sequence[tuple[ActionType, Callable[[PodInfo, PodInfo], bool]]]] = (
    (ActionType.UPDATE_POD_LABEL, _pod_labels_changed),
    (ActionType.UPDATE_POD_SCALE_DOWN, _scaled_down),
    (ActionType.UPDATE_POD_SCALE_UP, _scaled_up),
    (ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _gates_eliminated),
    (ActionType.UPDATE_POD_TOLERATION, _tolerations_changed),
    (ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, _generated_claims_changed),
)


def _updates_of(resource: EventResource, absent: Container[ActionType]) -> _PodUpdates:
    special = [
        (ClusterEvent(resource, action), changed)
        for action, changed in _POD_CHANGES
        if action not in absent
    ]
    within_shape = [pair for pair in special if pair[1] is _generated_claims_changed]
    return _PodUpdates(special, within_shape, ClusterEvent(resource, UPDATE))


# ---- versions ------------------------------------------------------------------------------


class EventVocabulary(NamedTuple):
    """The events of updates in one version."""

    node_changes: _NodeChanges
    assigned_updates: _PodUpdates
    own_updates: _PodUpdates


@cache
def event_vocabulary(behaviour: Behaviour, has_declared_features: bool) -> EventVocabulary:
    """``has_declared_features``: whether the gate NodeDeclaredFeatures is on."""
    absent: set[ActionType] = set()
    if not behaviour.has_scale_up:
        absent |= {ActionType.UPDATE_POD_SCALE_UP, ActionType.UPDATE_NODE_PREEMPTION_POLICY}
    if not has_declared_features:
        absent.add(ActionType.UPDATE_NODE_DECLARED_FEATURE)
    is_own = behaviour.has_pod_resources
    own = EventResource.TARGET_POD if is_own else EventResource.UNSCHEDULABLE_POD
    return EventVocabulary(
        [(event, changed) for event, changed in _NODE_CHANGES if event.action not in absent],
        _updates_of(EventResource.ASSIGNED_POD, absent),
        _updates_of(own, absent),
    )


NEWEST_VOCABULARY: Final = event_vocabulary(NEWEST_BEHAVIOUR, True)
