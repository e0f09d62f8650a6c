"""Controllers that make no pods now, and why: a Job is suspended, a StatefulSet is being deleted.

What a reader would expect to see in a run, and does not, is a note. Old ReplicaSets without
replicas and Jobs that have ended are no surprise, so no note names them.
"""

from collections.abc import Iterable

from bayplan.api.objects import (
    DEPLOYMENT,
    JOB,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from bayplan.objects.keys import Content, ObjectKey, key_of
from bayplan.sim.input.jobs import end_of, other_manager

_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
REPLICATED = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER)


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
    if key.kind in REPLICATED and spec.get("replicas") == 0:
        return "has spec.replicas 0, so it has no pods"
    if key.kind == JOB and 0 in (spec.get("completions"), spec.get("parallelism")):
        name = "completions" if spec.get("completions") == 0 else "parallelism"
        return f"has spec.{name} 0, so it has no pods"
    return ""


def notes_of_idle(controllers: Iterable[Content]) -> list[str]:
    """Notes about controllers that hold their pods back; one for those of a kind and a reason."""
    groups: dict[tuple[str, str], list[ObjectKey]] = {}
    for content in controllers:
        key, spec = key_of(content), content["spec"]
        is_over = key.kind == JOB and end_of(content) is not None
        if is_over or 0 in (spec.get(name) for name in ("replicas", "completions", "parallelism")):
            continue
        why = why_no_pods(key, content)
        if why and content["metadata"].get("deletionTimestamp"):
            finalizers = content["metadata"].get("finalizers")
            if not finalizers:
                continue  # it is gone, as another note says
            names = ", ".join(finalizers)
            why = f"is being deleted and makes no more pods: a finalizer keeps it ({names})"
        if why:
            groups.setdefault((key.kind, why), []).append(key)
    return [
        f"{first}{f' (and {len(more):,} more)' if more else ''} {why}"
        for (_, why), (first, *more) in groups.items()
    ]
