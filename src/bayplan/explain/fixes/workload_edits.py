"""Make room: which pods of other workloads to remove from which node."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import final

from bayplan.adapters.embedded.field_validation import ObjectKey
from bayplan.api.objects import POD, REPLICA_SET, OwnerReference
from bayplan.api.pod_requests import PODS
from bayplan.explain.diagnosis import Diagnosis, pods_on
from bayplan.explain.explanation import Change
from bayplan.explain.fixes.edits import ObjectEdit, deletion_of
from bayplan.explain.fixes.resource_edits import lacking_on
from bayplan.framework.status import Code
from bayplan.model.cluster_model import ClusterModel
from bayplan.printable import printable
from bayplan.state.pods import PodInfo

#: Nodes that are tried, the nearest first; and pods that are removed from one of them at most.
_NODES_MAX = 5
_REMOVED_MAX = 12
#: Controllers whose size is a number that can be lowered.
_SCALABLE = {
    "Deployment": "deployment",
    "ReplicaSet": "replicaset",
    "StatefulSet": "statefulset",
    "ReplicationController": "replicationcontroller",
    "Job": "job",
}
_JOB = "Job"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def room_edits(model: ClusterModel, diagnosis: Diagnosis, pod: str) -> Iterator[ObjectEdit]:
    """Pods to remove from one node, as few as suffice there."""
    sizes = _Sizes(model)
    for node in _nearest_nodes(diagnosis):
        removable = [each for each in pods_on(model, node) if not _is_daemon(each)]
        lacking = lacking_on(diagnosis, node)
        chosen = _enough(model, pod, _in_order(removable, lacking), lacking)
        if chosen:
            yield _edit(model, chosen, sizes)
    if diagnosis.attempt.pod.group_key is not None:
        # Members of a group take room on several nodes.
        nodes = {n for n, s in diagnosis.rejected.items() if s.code is Code.UNSCHEDULABLE}
        listed = [each for node in sorted(nodes) for each in pods_on(model, node)]
        removable = [each for each in listed if not _is_daemon(each)]
        requests = dict(diagnosis.pod.requests)
        # The first removal may help: what the whole group lacks is not known.
        chosen = _enough(model, pod, _in_order(removable, requests), {})
        if chosen:
            yield _edit(model, chosen, sizes)


def _nearest_nodes(diagnosis: Diagnosis) -> list[str]:
    """Nodes where the removal of pods may help, those that lack the least first."""

    def shortage(node: str) -> float:
        requests = diagnosis.pod.requests
        lacking = lacking_on(diagnosis, node)
        return max(
            (lack / max(requests.get(name, 1), 1) for name, lack in lacking.items()), default=0.0
        )

    helped = [n for n, s in diagnosis.rejected.items() if s.code is Code.UNSCHEDULABLE]
    return sorted(helped, key=lambda node: (shortage(node), node))[:_NODES_MAX]


def _is_daemon(pod: PodInfo) -> bool:
    return any(owner.kind in ("DaemonSet", "Node") for owner in pod.metadata.owner_references or ())


def _in_order(pods: Sequence[PodInfo], lacking: dict[str, int]) -> list[PodInfo]:
    """The least important first; among equals those that free the most of what is lacking."""

    def freed(pod: PodInfo) -> float:
        return sum(min(_request(pod, name) / lack, 1.0) for name, lack in lacking.items())

    return sorted(pods, key=lambda pod: (pod.priority, -freed(pod), pod.key))


def _request(pod: PodInfo, resource: str) -> int:
    return 1 if resource == PODS else pod.requests.get(resource, 0)


def _enough(
    model: ClusterModel, pod: str, pods: Sequence[PodInfo], lacking: Mapping[str, int]
) -> list[PodInfo]:
    """The first pods whose removal gives the pod a node, without those that may stay.

    ``lacking``: what their node lacks. A removal that frees less is not tried.
    """

    def may_suffice(removed: Sequence[PodInfo]) -> bool:
        return all(
            sum(_request(each, resource) for each in removed) >= amount
            for resource, amount in lacking.items()
        )

    removed: list[PodInfo] = []
    with model.trial():
        for each in pods[:_REMOVED_MAX]:
            model.remove(POD, each.namespace, each.name)
            removed.append(each)
            if may_suffice(removed) and model.attempt(pod).fits:
                break
        else:
            return []
    for each in removed[:-1]:
        fewer = [other for other in removed if other is not each]
        if not may_suffice(fewer):
            continue
        with model.trial():
            for other in fewer:
                model.remove(POD, other.namespace, other.name)
            if model.attempt(pod).fits:
                removed = fewer
    return removed


def _edit(model: ClusterModel, pods: Sequence[PodInfo], sizes: "_Sizes") -> ObjectEdit:
    changes = [deletion_of(ObjectKey(POD, each.namespace, each.name)) for each in pods]
    names = ", ".join(printable(each.key) for each in pods)
    commands: list[str] = []
    scaled: Counter[tuple[str, str, str, str]] = Counter()
    for each in pods:
        quoted = f"{shlex.quote(each.name)} -n {shlex.quote(each.namespace)}"
        controller = controller_of(model, each)
        if controller is None or controller.kind not in _SCALABLE:
            commands.append(f"kubectl delete pod {quoted}")
            continue
        if controller.kind != _JOB:
            commands.append(f"kubectl annotate pod {quoted} {_DELETION_COST}=-1000 --overwrite")
        scaled[controller.api_version, controller.kind, each.namespace, controller.name] += 1
    nodes = ", ".join(printable(node) for node in sorted({each.node_name for each in pods}))
    steps = [f"remove {names} from {nodes}"]
    for owner, count in scaled.items():
        change, command, step = _scaling(owner, count, sizes)
        changes.append(change)
        commands.append(command)
        steps.append(step)
    return ObjectEdit("; ".join(steps), tuple(changes), tuple(commands), "workload")


def _scaling(
    owner: tuple[str, str, str, str], count: int, sizes: "_Sizes"
) -> tuple[Change, str, str]:
    """(change, command, step) that take ``count`` pods from a controller. ``owner``: apiVersion,
    kind, namespace, name."""
    version, kind, namespace, name = owner
    replicas = sizes.of(kind, namespace, name)
    target = max(replicas - count, 0)
    quoted = f"{_SCALABLE[kind]} {shlex.quote(name)} -n {shlex.quote(namespace)}"
    text = f"{kind} {printable(f'{namespace}/{name}')} from {replicas} to {target}"
    if kind == _JOB:
        field, step = "parallelism", f"lower the parallelism of {text}"
        command = f'kubectl patch {quoted} -p \'{{"spec":{{"parallelism":{target}}}}}\''
    else:
        field, step = "replicas", f"scale {text}"
        command = f"kubectl scale {quoted} --replicas={target}"
    patch = ({"op": "replace", "path": f"/spec/{field}", "value": target},)
    change = Change(
        verb="patch", kind=f"{version} {kind}", name=name, namespace=namespace, patch=patch
    )
    return change, command, step


def controller_of(model: ClusterModel, pod: PodInfo) -> OwnerReference | None:
    """The controller that decides how many such pods there are: of a ReplicaSet, its Deployment."""
    owner = next((each for each in pod.metadata.owner_references or () if each.controller), None)
    if owner is None or owner.kind != "ReplicaSet":
        return owner
    replica_set = model.get(REPLICA_SET, pod.namespace, owner.name)
    owners = replica_set.metadata.owner_references if replica_set is not None else None
    return next((each for each in owners or () if each.controller), owner)


@final
class _Sizes:
    """How many pods each controller has now. The pods are counted at the first question."""

    def __init__(self, model: ClusterModel) -> None:
        self._model = model

    def of(self, kind: str, namespace: str, name: str) -> int:
        return self._counts[kind, namespace, name]

    @cached_property
    def _counts(self) -> Counter[tuple[str, str, str]]:
        """(kind, namespace, name) → pods."""
        model = self._model
        first: dict[tuple[str, str, str], PodInfo] = {}
        owned: Counter[tuple[str, str, str]] = Counter()
        for pod in (*model.scheduler.cache.pods(), *model.pending()):
            for owner in pod.metadata.owner_references or ():
                if owner.controller:
                    key = (pod.shape.namespace, owner.kind, owner.name)
                    owned[key] += 1
                    first.setdefault(key, pod)
                    break
        counts: Counter[tuple[str, str, str]] = Counter()
        for key, count in owned.items():
            controller = controller_of(model, first[key])
            if controller is not None:
                counts[controller.kind, key[0], controller.name] += count
        return counts
