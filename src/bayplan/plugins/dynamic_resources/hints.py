"""Which changes make a pod that was rejected for its claims worth another attempt."""

from collections.abc import Sequence
from typing import Any

from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE, ResourceClaim
from bayplan.framework.events import (
    UPDATE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.framework.status import Status
from bayplan.plugins.dynamic_resources.claims import ClaimLookup, claims_of
from bayplan.state.pods import PodInfo

_NODE_ACTIONS = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE


def events(claims: ClaimLookup) -> Sequence[ClusterEventWithHint]:
    """What pods with claims wait for. Hints look claims up as they are after the change."""

    def after_claim(
        pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim | None
    ) -> QueueingHint:
        return _after_claim(pod, old, new, claims)

    def after_own_update(pod: PodInfo, old: Any, new: PodInfo) -> QueueingHint:
        """Its claims were made: the controller says so in the pod's status."""
        found = claims_of(new, claims)
        return QueueingHint.QUEUE_SKIP if isinstance(found, Status) else QueueingHint.QUEUE

    claim_changed = ClusterEvent(RESOURCE_CLAIM, ActionType.ADD | UPDATE | ActionType.DELETE)
    own_claims = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    return [
        ClusterEventWithHint(ClusterEvent(EventResource.NODE, _NODE_ACTIONS)),
        ClusterEventWithHint(claim_changed, after_claim),
        ClusterEventWithHint(ClusterEvent(EventResource.TARGET_POD, own_claims), after_own_update),
        ClusterEventWithHint(ClusterEvent(DEVICE_CLASS, ActionType.ADD | UPDATE)),
        ClusterEventWithHint(ClusterEvent(RESOURCE_SLICE, ActionType.ADD | UPDATE)),
    ]


def _after_claim(
    pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim | None, claims: ClaimLookup
) -> QueueingHint:
    if new is None:
        was_allocated = old is not None and old.allocation is not None
        return QueueingHint.QUEUE if was_allocated else QueueingHint.QUEUE_SKIP
    own = claims_of(pod, claims)
    if isinstance(own, Status):
        return QueueingHint.QUEUE_SKIP
    if old is not None and old.allocation is not None and new.allocation is None:
        return QueueingHint.QUEUE  # its devices are free, for whomever
    is_own = any(claim.uid == new.uid for claim in own)
    if not is_own or (old is not None and old.status == new.status):
        return QueueingHint.QUEUE_SKIP
    return QueueingHint.QUEUE
