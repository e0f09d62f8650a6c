"""Objects of a workload from which no pod came that could be judged, and why.

An answer about a workload says so: a Job that is suspended has no pods, and neither has an object
whose kind Bayplan does not know. The second may hide any number of pods, so an answer that all pods
fit would be wrong.
"""

from typing import final

from msgspec import Struct, field

from bayplan.api.objects import (
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from bayplan.objects.keys import Content, ObjectKey
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.jobs import end_of, other_manager
from bayplan.sim.input.object_checks import has_containers
from bayplan.sim.input.workload import has_ended

NO_FURTHER_PODS = "needs no further pods"
_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
_REPLICATED = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER)


@final
class UnjudgedWorkload(Struct, frozen=True, kw_only=True, rename="camel"):
    """An object without pods to judge."""

    #: As in "Job default/index".
    object: str
    message: str
    #: Whether the object has pods of which nothing is known.
    hides_pods: bool = field(default=False, name="hidesPods")


def why_no_pods(key: ObjectKey, content: Content) -> str:
    """Why a workload controller of a cluster needs no pod; "": nothing in its spec says so."""
    spec = content.get("spec") or {}
    if content.get("metadata", {}).get("deletionTimestamp"):
        return "is being deleted (metadata.deletionTimestamp)"
    if key.kind == JOB and spec.get("suspend"):
        labels = content.get("metadata", {}).get("labels") or {}
        queue = labels.get(_QUEUE_LABEL)
        until = f"Kueue admits it from queue {queue}" if queue else "it is resumed"
        return f"is suspended (spec.suspend): it has no pods until {until}"
    if key.kind == JOB and (end := end_of(content)) is not None:
        why = f" ({end['reason']})" if end.get("reason") else ""
        ends = "failed" if end["type"] in ("Failed", "FailureTarget") else "is complete"
        return f"{ends}{why}: it makes no more pods"
    if key.kind == JOB and (manager := other_manager(content)):
        return f"is left to {manager} (spec.managedBy): no pods are made for it here"
    if key.kind == DEPLOYMENT and spec.get("paused"):
        return "is paused (spec.paused): it makes no new ReplicaSet until it is resumed"
    if key.kind in _REPLICATED and spec.get("replicas") == 0:
        return "has spec.replicas 0, so it has no pods"
    if key.kind == JOB and 0 in (spec.get("completions"), spec.get("parallelism")):
        name = "completions" if spec.get("completions") == 0 else "parallelism"
        return f"has spec.{name} 0, so it has no pods"
    return ""


def unjudged(
    key: ObjectKey, content: Content, *, is_present: bool, is_read: bool
) -> UnjudgedWorkload | None:
    """Why no pod came from an object; None: it is a pod to judge, or no workload.

    ``is_present``: the cluster has it already. ``is_read``: whether Bayplan reads its kind.
    """
    if key.kind.endswith(" CronJob"):
        message = "creates Jobs by the clock: give the Job that it would create"
    elif not is_read and has_containers(content):
        message = f"is of a kind that Bayplan does not know ({key.kind}): give the pods that its "
        message += "controller creates"
        return UnjudgedWorkload(object=str(key), message=message, hides_pods=True)
    elif not is_read:
        message = f"is of a kind that Bayplan does not read ({key.kind})"
    elif key.kind == POD:
        message = _why_not_placed(content)
    elif key.kind not in CONTROLLERS:
        return None
    elif why := why_no_pods(key, content):
        message = why
    elif is_present:
        message = "is in the cluster already and lacks no pods"
    elif key.kind == DAEMON_SET:
        message = "is meant for no node of the cluster (node selector, affinity or taints)"
    else:
        message = NO_FURTHER_PODS
    return UnjudgedWorkload(object=str(key), message=message) if message else None


def _why_not_placed(pod: Content) -> str:
    """Why a pod is not to be placed; "": it is."""
    node = (pod.get("spec") or {}).get("nodeName")
    if node:
        return f"names its node (spec.nodeName): {node}"
    return "has ended" if has_ended(pod) else ""
