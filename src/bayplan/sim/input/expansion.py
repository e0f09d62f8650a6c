"""The pods that the controllers of an input still lack, created as the real controllers would.

There is no controller in a simulation. When a Deployment, ReplicaSet, StatefulSet, DaemonSet or Job
appears, the pods that it lacks are created; the pods that it owns already count. Names look like
real ones, but they follow from the controller. A pod that is preempted or deleted later is not
created again (`lost_pods` counts such pods). A Job has as many pods as its parallelism; when one of
them succeeds, the next one is created.

Upstream: pkg/controller/{deployment,replicaset,statefulset,daemon,job}, indexed_job_utils.go.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import count, islice
from typing import NamedTuple

import msgspec

from bayplan.adapters.embedded.field_validation import (
    ObjectKey,
    key_of,
    kind_of,
    stable_suffix,
    stable_uid,
)
from bayplan.api.objects import NODE
from bayplan.sim.input.controller_kinds import (
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from bayplan.sim.input.daemon_pods import DaemonTemplate, daemon_pod, target_node
from bayplan.sim.input.object_checks import ObjectIndex
from bayplan.sim.input.workload import Content, has_ended

# ---- pod templates --------------------------------------------------------------------------


TEMPLATE_HASH_LENGTH = 10


def pod_from(
    controller: Content,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Content:
    """A pod that the controller owns; ``labels`` and ``annotations`` besides the template's."""
    template = controller["spec"]["template"]
    meta = template.get("metadata") or {}
    made: Content = {
        "name": name,
        "namespace": key_of(controller).namespace,
        "labels": {**(meta.get("labels") or {}), **(labels or {})},
        "ownerReferences": [reference(controller)],
    }
    noted = {**(meta.get("annotations") or {}), **(annotations or {})}
    if noted:
        made["annotations"] = noted
    if meta.get("finalizers"):
        made["finalizers"] = meta["finalizers"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": template["spec"]}


def reference(owner: Content) -> Content:
    """How an object says whose it is."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_active(content: Content) -> bool:
    """A pod that its controller counts: it has not ended, and is not on its way out."""
    if content["kind"] != "Pod" or content["metadata"].get("deletionTimestamp"):
        return False
    return not has_ended(content)


def template_hash(template: Content) -> str:
    """Ten letters that follow from a pod template."""
    encoded = msgspec.json.encode(template, order="deterministic").decode()
    return stable_suffix(encoded, length=TEMPLATE_HASH_LENGTH)


def labelled(template: Content, labels: Mapping[str, str]) -> Content:
    """A template with more labels."""
    meta = template.get("metadata") or {}
    return {**template, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **labels}}}


# ---- job pods -------------------------------------------------------------------------------


INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"


def job_pods(job: Content, owned: list[Content]) -> tuple[list[Content], list[Content]]:
    """(pods to create now, pods that replace pods that succeed).

    ``owned``: the existing objects of the Job, including pods that have ended.
    """
    spec = job["spec"]
    if spec.get("suspend") or _is_over(job):
        return [], []
    active = [pod for pod in owned if is_active(pod)]
    succeeded = _succeeded_count(job, owned)
    completions, parallelism = spec.get("completions"), spec.get("parallelism", 1)
    if completions is None:
        # Nobody knows how many it takes: once one has succeeded, no new one is begun.
        missing = 0 if succeeded else parallelism - len(active)
        return list(islice(_pods(job, owned), max(missing, 0))), []
    left = max(completions - succeeded - len(active), 0)
    pods = list(islice(_pods(job, owned), left))
    now = max(min(parallelism - len(active), left), 0)
    return pods[:now], pods[now:]


def _is_over(job: Content) -> bool:
    """Whether the Job is complete or has failed for good."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(
        one.get("type") in ("Complete", "Failed") and one.get("status") == "True"
        for one in conditions
    )


def _succeeded_count(job: Content, owned: list[Content]) -> int:
    """From the status of the Job, or from its pods: finished pods may already be deleted."""
    seen = sum(_phase(pod) == "Succeeded" for pod in owned)
    return max(seen, (job.get("status") or {}).get("succeeded") or 0)


def _phase(pod: Content) -> str | None:
    phase: str | None = (pod.get("status") or {}).get("phase")
    return phase


def _pods(job: Content, owned: list[Content]) -> Iterator[Content]:
    """New pods without end, each with a name of its own."""
    key = key_of(job)
    taken = {pod["metadata"]["name"] for pod in owned}
    uid = job["metadata"]["uid"]
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": key.name,
        "controller-uid": uid,
        "job-name": key.name,
    }
    if job["spec"].get("completionMode") == "Indexed":
        for index in _free_indexes(job, owned):
            own = {INDEX_ANNOTATION: str(index)}
            name = f"{key.name}-{index}-{stable_suffix(f'{key}/{index}')}"
            yield pod_from(job, name, labels={**labels, **own}, annotations=own)
        return
    for number in count():
        name = f"{key.name}-{stable_suffix(f'{key}/{number}')}"
        if name not in taken:
            yield pod_from(job, name, labels=labels)


def _free_indexes(job: Content, owned: list[Content]) -> Iterator[int]:
    """Indexes that no pod has or had with success, from the lowest."""
    done = set(_ranges((job.get("status") or {}).get("completedIndexes") or ""))
    for pod in owned:
        index = (pod["metadata"].get("annotations") or {}).get(INDEX_ANNOTATION, "")
        if index.isdecimal() and (is_active(pod) or _phase(pod) == "Succeeded"):
            done.add(int(index))
    yield from (i for i in range(job["spec"].get("completions") or 0) if i not in done)


def _ranges(text: str) -> Iterator[int]:
    """`1,3-5,7` as numbers; other text is ignored."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        last = last or first
        if first.isdecimal() and last.isdecimal():
            yield from range(int(first), min(int(last), 10**6) + 1)


# ---- expansion ------------------------------------------------------------------------------


TEMPLATE_HASH_LABEL = "pod-template-hash"
REVISION_HASH_LABEL = "controller-revision-hash"


class Expansion(NamedTuple):
    """Objects to create after a controller, in this order, and pods that follow when pods
    succeed."""

    objects: list[Content]
    followers: list[Content]


def with_uid(content: Content) -> Content:
    """A controller needs a uid before it is created: its pods refer to it."""
    meta = content["metadata"]
    if meta.get("uid"):
        return content
    return {**content, "metadata": {**meta, "uid": stable_uid(key_of(content), 0)}}


def expand(controller: Content, index: ObjectIndex) -> Expansion:
    """The objects that the controller lacks. The controller is valid, in the index, and has a
    uid."""
    if controller["metadata"].get("deletionTimestamp"):
        return Expansion([], [])
    if kind_of(controller) == JOB:
        return Expansion(*job_pods(controller, index.owned_by(controller)))
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
    replica_set = with_uid(_replica_set(deployment, pods))
    yield replica_set
    missing = deployment["spec"].get("replicas", 1) - len(pods)
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
    missing = controller["spec"].get("replicas", 1) - active
    names = _names(controller, index)
    for _ in range(missing):
        yield pod_from(controller, next(names))


def _names(controller: Content, index: ObjectIndex) -> Iterator[str]:
    """Names for pods of a controller that no pod had before, each ending in five letters."""
    key = key_of(controller)
    number = 0
    while True:
        name = f"{key.name}-{stable_suffix(f'{key}/{number}')}"
        if not index.was_named("Pod", key.namespace, name):
            yield name
        number += 1


def _stateful(controller: Content, index: ObjectIndex) -> Iterator[Content]:
    """One pod per ordinal, with its claims."""
    spec, key = controller["spec"], key_of(controller)
    start = (spec.get("ordinals") or {}).get("start") or 0
    revision = _revision(controller)
    for ordinal in range(start, start + spec.get("replicas", 1)):
        name = f"{key.name}-{ordinal}"
        if any(not has_ended(index[one]) for one in index.named("Pod", key.namespace, name)):
            continue
        claims = dict(_claims(controller, name))
        yield from (c for c in claims.values() if key_of(c) not in index)
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
    other_volumes = [
        one for one in pod["spec"].get("volumes") or () if one.get("name") not in claims
    ]
    return {**pod, "spec": {**pod["spec"], "volumes": volumes + other_volumes}}


def _daemons(controller: Content, index: ObjectIndex) -> Iterator[Content]:
    return iter(_daemon_pods(controller, index, index.of_kind(NODE)))


def _daemon_pods(controller: Content, index: ObjectIndex, nodes: list[Content]) -> list[Content]:
    """One pod for each of these nodes that it is meant for and that has none."""
    served = {target_node(pod) for pod in index.owned_by(controller) if is_active(pod)}
    names, revision = _names(controller, index), _revision(controller)
    template = DaemonTemplate(controller)
    made: list[Content] = []
    for node in nodes:
        if node["metadata"]["name"] not in served and template.is_meant_for(node):
            pod = pod_from(controller, next(names), labels=revision)
            made.append(daemon_pod(pod, node["metadata"]["name"]))
    return made


def _revision(controller: Content) -> Content:
    """The label for the template from which a pod was created."""
    return {REVISION_HASH_LABEL: template_hash(controller["spec"]["template"])}


_Lacking = Callable[[Content, ObjectIndex], Iterator[Content]]
_LACKING: Mapping[str, _Lacking] = {
    DEPLOYMENT: _deployment,
    REPLICA_SET: _replicas,
    REPLICATION_CONTROLLER: _replicas,
    STATEFUL_SET: _stateful,
    DAEMON_SET: _daemons,
}
