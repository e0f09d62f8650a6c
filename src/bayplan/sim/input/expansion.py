"""The pods that the controllers of an input still lack when they appear.

When a Deployment, ReplicaSet, StatefulSet, DaemonSet or Job appears, the pods that it lacks are
created; the pods that it owns already count. What happens to these pods later is the matter of
`bayplan.sim.world.workloads`, unless the input is expanded once: then a pod that is preempted or
deleted is not created again (`lost_pods` counts such pods).

Upstream: pkg/controller/{deployment,replicaset,statefulset,daemon,job}.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from bayplan.api.objects import (
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NODE,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from bayplan.objects.keys import ObjectKey, key_of, kind_of
from bayplan.objects.workloads import TEMPLATE_HASH_LABEL
from bayplan.sim.input.controller_pods import (
    DaemonTemplate,
    is_active,
    is_ordered,
    is_pending,
    is_running,
    labelled,
    ordinals,
    pod_for_node,
    pod_from,
    pod_names,
    reference,
    replica_count,
    stateful_pod,
    target_node,
    template_hash,
    with_uid,
)
from bayplan.sim.input.jobs import job_pods
from bayplan.sim.input.object_checks import ObjectIndex
from bayplan.sim.input.workload import Content, has_ended


class Expansion(NamedTuple):
    """What a controller creates."""

    #: Created right after the controller, in this order.
    objects: list[Content]
    #: Created later: when a pod of the Job succeeds, or when the pod before them runs.
    followers: list[Content]


def expand(controller: Content, index: ObjectIndex, *, once: bool = True) -> Expansion:
    """The objects that the controller lacks. The controller is valid, in the index, and has a
    uid.

    ``once``: no controller acts later, so that all pods of a StatefulSet are created at once,
    unless one of its pods is there and does not run: the controller waits for it.
    """
    if controller["metadata"].get("deletionTimestamp"):
        return Expansion([], [])
    if kind_of(controller) == JOB:
        return Expansion(*job_pods(controller, index.owned_by(controller)))
    if kind_of(controller) == STATEFUL_SET and is_ordered(controller):
        present = (_has_stateful_pod(controller, each, index) for each in ordinals(controller))
        if not once or not all(pod is None or is_running(pod) for pod in present):
            return _ordered(controller, index)
    return Expansion(list(_LACKING[kind_of(controller)](controller, index)), [])


def daemon_pods_for(node: Content, index: ObjectIndex) -> list[Content]:
    """The pods that DaemonSets create for a new node."""
    made: list[Content] = []
    for controller in index.of_kind(DAEMON_SET):
        if not controller["metadata"].get("deletionTimestamp"):
            made += _daemon_pods(controller, index, [node])
    return made


def daemon_pods_on(node: Content, index: ObjectIndex) -> list[ObjectKey]:
    """The daemon pods that are on a node, or meant for it."""
    name = node["metadata"]["name"]
    return [
        key_of(pod)
        for controller in index.of_kind(DAEMON_SET)
        for pod in index.owned_by(controller)
        if target_node(pod) == name
    ]


def _deployment(deployment: Content, index: ObjectIndex) -> Iterator[Content]:
    """The ReplicaSet of a Deployment and its pods; a ReplicaSet in the input is expanded itself."""
    if any(kind_of(one) == REPLICA_SET for one in index.owned_by(deployment)):
        return
    pods = _orphans(deployment, index)
    if deployment["spec"].get("paused") and not pods:
        return  # a paused Deployment makes no new ReplicaSet
    replica_set = with_uid(_replica_set(deployment, pods))
    yield replica_set
    missing = replica_count(deployment) - len(pods)
    names = _names(replica_set, index)
    for _ in range(missing):
        yield pod_from(replica_set, next(names))


def _orphans(deployment: Content, index: ObjectIndex) -> list[Content]:
    """Active pods whose ReplicaSet is not in the input, but must be this Deployment's."""
    key = key_of(deployment)
    pods: list[Content] = []
    for name in index.owner_names("ReplicaSet", key.namespace):
        ending = name.removeprefix(f"{key.name}-")
        if ending == name or index.named("ReplicaSet", key.namespace, name):
            continue
        bare: Content = {"metadata": {"name": name, "namespace": key.namespace}}
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", **bare}
        pods += [pod for pod in index.owned_by(owner) if _has_hash(pod, ending)]
    return pods


def _has_hash(pod: Content, ending: str) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return is_active(pod) and labels.get(TEMPLATE_HASH_LABEL) == ending


def replica_set_of(deployment: Content, replicas: int) -> Content:
    """The ReplicaSet that a Deployment creates for its template."""
    made = _replica_set(deployment, [])
    return {**made, "spec": {**made["spec"], "replicas": replicas}}


def _replica_set(deployment: Content, pods: list[Content]) -> Content:
    """The Deployment's ReplicaSet: the one most of its pods name as theirs, or a new one."""
    spec = deployment["spec"]
    owners = Counter(one["metadata"]["labels"][TEMPLATE_HASH_LABEL] for one in pods)
    ending = max(owners, key=owners.__getitem__) if owners else template_hash(spec["template"])
    template = labelled(spec["template"], {TEMPLATE_HASH_LABEL: ending})
    selector = spec.get("selector") or {}
    matched = {**(selector.get("matchLabels") or {}), TEMPLATE_HASH_LABEL: ending}
    meta = deployment["metadata"]
    name = f"{meta['name']}-{ending}"
    uids = [
        one["uid"]
        for pod in pods
        for one in pod["metadata"]["ownerReferences"]
        if one.get("name") == name and one.get("uid")
    ]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": key_of(deployment).namespace,
            "labels": template["metadata"]["labels"],
            "ownerReferences": [reference(deployment)],
            **({"uid": uids[0]} if uids else {}),
        },
        "spec": {
            "replicas": spec.get("replicas", 1),
            "selector": {**selector, "matchLabels": matched},
            "template": template,
        },
    }


def _replicas(controller: Content, index: ObjectIndex) -> Iterator[Content]:
    """Pods of a ReplicaSet or a ReplicationController."""
    active = sum(is_active(pod) for pod in index.owned_by(controller))
    missing = replica_count(controller) - active
    names = _names(controller, index)
    for _ in range(missing):
        yield pod_from(controller, next(names))


def _names(controller: Content, index: ObjectIndex) -> Iterator[str]:
    """Names that no pod of the input has, or once had."""
    namespace = key_of(controller).namespace
    return pod_names(controller, lambda name: index.was_named("Pod", namespace, name))


def _stateful(controller: Content, index: ObjectIndex) -> Iterator[Content]:
    """One pod per ordinal, with its claims."""
    for ordinal in ordinals(controller):
        there = _has_stateful_pod(controller, ordinal, index)
        if there is None:
            yield from _stateful_objects(controller, ordinal, index)
        elif is_pending(there):
            yield from _missing_claims(controller, ordinal, index)


def _ordered(controller: Content, index: ObjectIndex) -> Expansion:
    """The first pod that is missing, unless an earlier pod does not run yet; the others follow."""
    objects: list[Content] = []
    followers: list[Content] = []
    waits = False
    for ordinal in ordinals(controller):
        there = _has_stateful_pod(controller, ordinal, index)
        if there is not None:
            if is_pending(there) and not waits:
                objects += _missing_claims(controller, ordinal, index)
            waits = waits or not is_running(there)
        elif waits:
            followers += _stateful_objects(controller, ordinal, index)
        else:
            waits = True
            objects += _stateful_objects(controller, ordinal, index)
    return Expansion(objects, followers)


def _has_stateful_pod(controller: Content, ordinal: int, index: ObjectIndex) -> Content | None:
    """The pod of an ordinal, if there is one that has not ended."""
    key = key_of(controller)
    for one in index.named("Pod", key.namespace, f"{key.name}-{ordinal}"):
        if not has_ended(index[one]):
            return index[one]
    return None


def _stateful_objects(controller: Content, ordinal: int, index: ObjectIndex) -> list[Content]:
    _, pod = stateful_pod(controller, ordinal)
    return [*_missing_claims(controller, ordinal, index), pod]


def _missing_claims(controller: Content, ordinal: int, index: ObjectIndex) -> list[Content]:
    """The claims that the pod of an ordinal lacks: a pod that waits gets them, too."""
    claims, _ = stateful_pod(controller, ordinal)
    return [one for one in claims if key_of(one) not in index]


def _daemons(controller: Content, index: ObjectIndex) -> Iterator[Content]:
    return iter(_daemon_pods(controller, index, index.of_kind(NODE)))


def _daemon_pods(controller: Content, index: ObjectIndex, nodes: list[Content]) -> list[Content]:
    """One pod for each of these nodes that it is meant for and that has none."""
    served = {target_node(pod) for pod in index.owned_by(controller) if not has_ended(pod)}
    names = _names(controller, index)
    template = DaemonTemplate(controller)
    return [
        pod_for_node(controller, next(names), node["metadata"]["name"])
        for node in nodes
        if node["metadata"]["name"] not in served and template.is_meant_for(node)
    ]


_Lacking = Callable[[Content, ObjectIndex], Iterator[Content]]
_LACKING: Mapping[str, _Lacking] = {
    DEPLOYMENT: _deployment,
    REPLICA_SET: _replicas,
    REPLICATION_CONTROLLER: _replicas,
    STATEFUL_SET: _stateful,
    DAEMON_SET: _daemons,
}
