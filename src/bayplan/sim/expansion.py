"""The pods that controllers in an input still lack, made as the real controllers would.

There is no controller in a simulation. What a Deployment, ReplicaSet, StatefulSet, DaemonSet or Job
lacks is made when the object comes: what it owns already counts. Names look like the real ones,
but follow from what they name. A pod that is preempted or deleted later is not made anew
(`lost_pods` counts them); a Job's next pod comes when one of them succeeds.

Upstream: pkg/controller/{deployment,replicaset,statefulset,daemon,job}.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from bayplan.adapters.object_names import ObjectKey, key_of, kind_of, stable_suffix, stable_uid
from bayplan.api.objects import NODE
from bayplan.sim.controller_kinds import (
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from bayplan.sim.daemon_pods import DaemonTemplate, daemon_pod, target_node
from bayplan.sim.job_pods import job_pods
from bayplan.sim.known_objects import KnownObjects
from bayplan.sim.pod_templates import is_active, labelled, pod_from, reference, template_hash
from bayplan.sim.workload import Content, has_ended

TEMPLATE_HASH_LABEL = "pod-template-hash"
REVISION_HASH_LABEL = "controller-revision-hash"


class Expansion(NamedTuple):
    """What to create after a controller, in this order, and what follows when pods succeed."""

    objects: list[Content]
    followers: list[Content]


def with_uid(content: Content) -> Content:
    """A controller needs a uid before it is created: its pods refer to it."""
    meta = content["metadata"]
    if meta.get("uid"):
        return content
    return {**content, "metadata": {**meta, "uid": stable_uid(key_of(content), 0)}}


def expand(controller: Content, known: KnownObjects) -> Expansion:
    """What the controller lacks. The controller is valid, known, and has a uid."""
    if controller["metadata"].get("deletionTimestamp"):
        return Expansion([], [])
    if kind_of(controller) == JOB:
        return Expansion(*job_pods(controller, known.owned_by(controller)))
    return Expansion(list(_LACKING[kind_of(controller)](controller, known)), [])


def daemon_pods_for(node: Content, known: KnownObjects) -> list[Content]:
    """What DaemonSets put on a node that has come."""
    made: list[Content] = []
    for controller in known.of_kind(DAEMON_SET):
        if not controller["metadata"].get("deletionTimestamp"):
            made += _daemon_pods(controller, known, [node])
    return made


def daemon_pods_on(node: Content, known: KnownObjects) -> list[ObjectKey]:
    """The daemon pods that are on a node, or meant for it."""
    name = node["metadata"]["name"]
    return [
        key_of(pod)
        for controller in known.of_kind(DAEMON_SET)
        for pod in known.owned_by(controller)
        if target_node(pod) == name
    ]


def _deployment(deployment: Content, known: KnownObjects) -> Iterator[Content]:
    """Its ReplicaSet and that one's pods; where it has one already, that one is asked itself."""
    if any(kind_of(one) == REPLICA_SET for one in known.owned_by(deployment)):
        return
    pods = _orphans(deployment, known)
    replica_set = with_uid(_replica_set(deployment, pods))
    yield replica_set
    missing = deployment["spec"].get("replicas", 1) - len(pods)
    names = _names(replica_set, known)
    for _ in range(missing):
        yield pod_from(replica_set, next(names))


def _orphans(deployment: Content, known: KnownObjects) -> list[Content]:
    """Active pods whose ReplicaSet is not in the input, but must be this Deployment's."""
    key = key_of(deployment)
    found: list[Content] = []
    for name in known.owner_names("ReplicaSet", key.namespace):
        ending = name.removeprefix(f"{key.name}-")
        if ending == name or known.named("ReplicaSet", key.namespace, name):
            continue
        bare: Content = {"metadata": {"name": name, "namespace": key.namespace}}
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", **bare}
        found += [pod for pod in known.owned_by(owner) if _has_hash(pod, ending)]
    return found


def _has_hash(pod: Content, ending: str) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return is_active(pod) and labels.get(TEMPLATE_HASH_LABEL) == ending


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


def _replicas(controller: Content, known: KnownObjects) -> Iterator[Content]:
    """Pods of a ReplicaSet or a ReplicationController."""
    active = sum(is_active(pod) for pod in known.owned_by(controller))
    missing = controller["spec"].get("replicas", 1) - active
    names = _names(controller, known)
    for _ in range(missing):
        yield pod_from(controller, next(names))


def _names(controller: Content, known: KnownObjects) -> Iterator[str]:
    """Names for pods of a controller that no pod had before, each ending in five letters."""
    key = key_of(controller)
    number = 0
    while True:
        name = f"{key.name}-{stable_suffix(f'{key}/{number}')}"
        if not known.was_named("Pod", key.namespace, name):
            yield name
        number += 1


def _stateful(controller: Content, known: KnownObjects) -> Iterator[Content]:
    """One pod per ordinal, with its claims."""
    spec, key = controller["spec"], key_of(controller)
    start = (spec.get("ordinals") or {}).get("start") or 0
    revision = _revision(controller)
    for ordinal in range(start, start + spec.get("replicas", 1)):
        name = f"{key.name}-{ordinal}"
        if any(not has_ended(known[one]) for one in known.named("Pod", key.namespace, name)):
            continue
        claims = dict(_claims(controller, name))
        yield from (c for c in claims.values() if key_of(c) not in known)
        labels = {
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(ordinal),
            **revision,
        }
        pod = pod_from(controller, name, labels=labels)
        yield _with_claims(pod, claims) if claims else pod


def _claims(controller: Content, pod_name: str) -> Iterator[tuple[str, Content]]:
    """(volume's name, claim) for each of the controller's claim templates."""
    for template in controller["spec"].get("volumeClaimTemplates") or ():
        meta = template.get("metadata") or {}
        claimed = {"name": f"{meta.get('name')}-{pod_name}"}
        claimed["namespace"] = key_of(controller).namespace
        kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        yield meta.get("name", ""), {**template, **kind, "metadata": {**meta, **claimed}}


def _with_claims(pod: Content, claims: Mapping[str, Content]) -> Content:
    volumes: list[Content] = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
        for name, claim in claims.items()
    ]
    others = [one for one in pod["spec"].get("volumes") or () if one.get("name") not in claims]
    return {**pod, "spec": {**pod["spec"], "volumes": volumes + others}}


def _daemons(controller: Content, known: KnownObjects) -> Iterator[Content]:
    return iter(_daemon_pods(controller, known, known.of_kind(NODE)))


def _daemon_pods(controller: Content, known: KnownObjects, nodes: list[Content]) -> list[Content]:
    """One pod for each of these nodes that it is meant for and that has none."""
    served = {target_node(pod) for pod in known.owned_by(controller) if is_active(pod)}
    names, revision = _names(controller, known), _revision(controller)
    template = DaemonTemplate(controller)
    made: list[Content] = []
    for node in nodes:
        if node["metadata"]["name"] not in served and template.is_meant_for(node):
            pod = pod_from(controller, next(names), labels=revision)
            made.append(daemon_pod(pod, node["metadata"]["name"]))
    return made


def _revision(controller: Content) -> Content:
    """The label that tells which template a pod was made from."""
    return {REVISION_HASH_LABEL: template_hash(controller["spec"]["template"])}


_Lacking = Callable[[Content, KnownObjects], Iterator[Content]]
_LACKING: Mapping[str, _Lacking] = {
    DEPLOYMENT: _deployment,
    REPLICA_SET: _replicas,
    REPLICATION_CONTROLLER: _replicas,
    STATEFUL_SET: _stateful,
    DAEMON_SET: _daemons,
}
