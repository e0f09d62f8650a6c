"""What a binding, a status patch and a failure make of a pod: new content from old, nothing else.

Upstream: pkg/registry/core/pod/storage (setPodNodeAndMetadata), api/v1/pod (UpdatePodCondition).
"""

from bayplan.adapters.object_names import Content
from bayplan.api.objects import PodCondition
from bayplan.ports import PatchPodStatus

POD_SCHEDULED = "PodScheduled"


def why_not_bindable(pod: Content) -> str | None:
    """What speaks against a binding, in upstream's words."""
    spec = pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        return "is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return "has non-empty .spec.schedulingGates"
    return None


def bound(pod: Content, node_name: str, stamp: str) -> Content:
    """The pod on its node. It runs at once: there is no kubelet to wait for."""
    status = {**pod["status"], "phase": "Running"}
    status.pop("nominatedNodeName", None)
    scheduled = {"type": POD_SCHEDULED, "status": "True"}
    status["conditions"] = _with_condition(status, scheduled, stamp)
    return {**pod, "spec": {**pod["spec"], "nodeName": node_name}, "status": status}


def failed(status: Content, condition: Content | None, stamp: str) -> Content:
    """A status of a pod that has failed, and the condition that says why."""
    status = {**status, "phase": "Failed"}
    if condition is not None:
        status["conditions"] = _with_condition(status, condition, stamp)
    return status


def patched(status: Content, patch: PatchPodStatus, stamp: str) -> Content:
    """A status with one condition and the nomination set anew."""
    status = dict(status)
    if patch.nominated_node_name is not None:
        status["nominatedNodeName"] = patch.nominated_node_name
        if not patch.nominated_node_name:
            del status["nominatedNodeName"]
    if patch.condition is not None:
        status["conditions"] = _with_condition(status, _plain(patch.condition), stamp)
    return status


def _plain(condition: PodCondition) -> Content:
    told = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": condition.observed_generation,
    }
    return {name: value for name, value in told.items() if value is not None}


def _with_condition(status: Content, condition: Content, stamp: str) -> list[Content]:
    """Conditions with one more, or anew; its time moves only when its status does."""
    conditions: list[Content] = list(status.get("conditions") or ())
    for index, old in enumerate(conditions):
        if old.get("type") == condition["type"]:
            same = old.get("status") == condition["status"]
            since = old.get("lastTransitionTime") if same else None
            conditions[index] = {**condition, "lastTransitionTime": since or stamp}
            return conditions
    return [*conditions, {**condition, "lastTransitionTime": stamp}]
