"""Controllers that were not read, inferred from their pods.

A dump of pods and nodes may have no ReplicaSets, but its pods have to come back when they are
evicted. So a simulation infers their controllers. A controller has as many replicas as it has pods,
and the template of its first pod. A claim that is named after a pod of a StatefulSet comes from a
template. No DaemonSet is inferred, because a pod does not show on which nodes its controller wants
pods. The pods of a controller of an unknown kind may differ, so each of them comes back as it was.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from bayplan.api.objects import (
    JOB,
    PERSISTENT_VOLUME_CLAIM,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from bayplan.objects.keys import Content, ObjectKey, key_of, key_of_reference, kind_of, object_key
from bayplan.objects.workloads import BOUND_TO_NODES, controller_reference, ordinal_of
from bayplan.sim.input.controller_kinds import is_controller
from bayplan.sim.input.controller_pods import is_active
from bayplan.sim.input.workload import is_pod

_KINDS = frozenset((REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET, JOB))


def implied_controllers(contents: Collection[Content]) -> list[Content]:
    """The controllers that pods name and that ``contents`` lacks."""
    present = {key_of(content) for content in contents}
    pods: dict[tuple[ObjectKey, str], list[Content]] = {}
    for content in contents:
        if is_pod(content) and is_active(content):
            controller = _controller(content)
            if controller is not None and controller[0] not in present:
                pods.setdefault(controller, []).append(content)
    claims = {key_of(each): each for each in contents if kind_of(each) == PERSISTENT_VOLUME_CLAIM}
    return [_outline(key, uid, own, claims) for (key, uid), own in pods.items()]


def _controller(pod: Content) -> tuple[ObjectKey, str] | None:
    """Key and uid of the controller of a pod; None: a workload cannot be made of it."""
    owner = controller_reference(pod)
    if owner is None or not owner.get("uid"):
        return None
    key = key_of_reference(owner, key_of(pod).namespace)
    return (key, owner["uid"]) if key.kind in _KINDS else None


def unknown_controllers(contents: Iterable[Content]) -> list[str]:
    """The controllers of pods whose kind is not simulated, such as "LeaderWorkerSet default/a"."""
    names: dict[str, None] = {}
    for content in filter(is_pod, contents):
        owner = controller_reference(content)
        if owner and not is_controller(owner) and owner.get("kind") not in BOUND_TO_NODES:
            names[f"{owner.get('kind')} {key_of(content).namespace}/{owner.get('name')}"] = None
    return list(names)


def _outline(
    key: ObjectKey, uid: str, pods: list[Content], claims: dict[ObjectKey, Content]
) -> Content:
    version, _, kind = key.kind.rpartition(" ")
    first = pods[0]
    labels = first["metadata"].get("labels") or {}
    spec = {name: part for name, part in first["spec"].items() if name != "nodeName"}
    own: Content = {"template": {"metadata": {"labels": labels}, "spec": spec}}
    if key.kind == JOB:
        own |= {"parallelism": len(pods), "completions": len(pods)}
    else:
        own |= {"replicas": len(pods), "selector": {"matchLabels": labels}}
    if key.kind == REPLICATION_CONTROLLER:
        own["selector"] = labels
    if key.kind == STATEFUL_SET:
        own["podManagementPolicy"] = "Parallel"
        numbers = (ordinal_of(key.name, key_of(pod).name) for pod in pods)
        own["ordinals"] = {"start": max(min(numbers), 0)}
        own["volumeClaimTemplates"] = list(_claim_templates(first, claims))
    meta = {"name": key.name, "namespace": key.namespace, "uid": uid}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": own}


def _claim_templates(pod: Content, claims: dict[ObjectKey, Content]) -> Iterator[Content]:
    """The templates of the claims that are named after the pod."""
    key = key_of(pod)
    for volume in pod["spec"].get("volumes") or ():
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName") or ""
        claim = claims.get(object_key(PERSISTENT_VOLUME_CLAIM, key.namespace, name))
        if claim is not None and name == f"{volume['name']}-{key.name}":
            spec = {k: v for k, v in (claim.get("spec") or {}).items() if k != "volumeName"}
            yield {"metadata": {"name": volume["name"]}, "spec": spec}


def notes_of(controllers: Iterable[Content], unknown: Sequence[str]) -> Iterator[str]:
    """The notes for the reader, if there are such controllers. ``unknown``: see
    `unknown_controllers`."""
    if unknown:
        more = f" and {len(unknown) - 1:,} more are" if len(unknown) > 1 else " is"
        yield (
            f"{unknown[0]}{more} of a kind that is not simulated: pods that go come back as they"
            " were"
        )
    names = [str(key_of(each)) for each in controllers]
    if names:
        more = f" and {len(names) - 1:,} more were" if len(names) > 1 else " was"
        yield (
            f"{names[0]}{more} not read: pods that go come back with the spec of those that it has"
        )
