"""explain_workload: why the pods of a workload wait, explained for one of them.

The waiting pods are placed in the order of the scheduler's queue, and the answer is about the first
one that gets no node. A workload without pods has a reason of its own: a Job is suspended, there
are no replicas, or Bayplan does not know the kind of the workload.
"""

from collections.abc import Iterator, Sequence
from typing import cast

from msgspec import structs

from bayplan.api.objects import POD, Pod, is_terminal
from bayplan.explain.explainer import explain_pod
from bayplan.explain.explanation import Explanation, WorkloadPods
from bayplan.explain.fixes.owners import Owners, owners_of
from bayplan.model.cluster_model import ClusterModel
from bayplan.objects.keys import DEFAULT_NAMESPACE, ObjectKey
from bayplan.objects.workloads import pod_name
from bayplan.problems import suggestion
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.idle_controllers import why_no_pods
from bayplan.state.pods import PodInfo

POD_GROUP = "podgroup"
#: The longest chain of owners: a Deployment owns a ReplicaSet, which owns a pod.
_OWNERS_MAX = 6


class NoSuchWorkloadError(Exception):
    """There is no workload of this name. The message is a line for a reader."""


def explain_workload(
    model: ClusterModel, kind: str, name: str, *, with_fixes: bool = True
) -> Explanation:
    """The explanation of a workload. ``kind``: the kind as owner references have it, in upper or
    lower case, or `POD_GROUP`; "": any kind. ``name``: "namespace/name". ``with_fixes``: see
    `explain_pod`. Raises NoSuchWorkloadError."""
    owners = owners_of(model)
    namespace, _, own = name.partition("/")
    present = (pod for pod in _present(model) if pod.metadata.namespace == namespace)
    if kind == POD_GROUP:
        pods = [pod for pod in present if _group_name(model, pod) == own]
    else:
        pods = [pod for pod in present if _owner(model, owners, pod, kind=kind, name=own)]
    if not pods:
        return _without_pods(model, owners, kind, name)
    waiting = [pod for pod in pods if not pod.spec.node_name]
    names = dict.fromkeys(pod_name(pod) for pod in waiting)
    in_order = [info for info in model.in_queue_order() if info.key in names]
    first = next(iter((*(info.key for info in in_order), *names, pod_name(pods[0]))))
    explanation = None
    with model.trial():
        fitting_count = _place(model, in_order)
        if fitting_count < len(in_order):
            first = in_order[fitting_count].key
            explanation = explain_pod(model, first, with_fixes=with_fixes)
    if explanation is None:
        explanation = explain_pod(model, first, with_fixes=with_fixes)
    if kind == POD_GROUP:
        return explanation  # This member has the counts of the group.
    counts = WorkloadPods(
        kind=_short(_owner(model, owners, pods[0], kind=kind, name=own), kind),
        name=name,
        pods=len(pods),
        placed=len(pods) - len(waiting),
        fitting=fitting_count,
    )
    return structs.replace(explanation, workload=counts)


def _place(model: ClusterModel, in_order: Sequence[PodInfo]) -> int:
    """Place the pods before the first one that gets no node. Returns how many were placed. The pods
    of a group have one answer, so none of them is placed."""
    for count, info in enumerate(in_order):
        if info.group_key is not None or not model.attempt(info.key).fits:
            return count
        model.place(info.key)
    return len(in_order)


def _present(model: ClusterModel) -> Iterator[Pod]:
    """The pods that have not ended."""
    for each in model.objects(POD):
        pod = cast(Pod, each)
        if not is_terminal(pod):
            yield pod


def _group_name(model: ClusterModel, pod: Pod) -> str:
    """The group of a pod; "": it has none."""
    uid = pod.metadata.uid or ""
    queued = model.scheduler.queue.find(uid)
    info = model.scheduler.cache.pod(uid) if queued is None else queued.pod
    return "" if info is None or info.group_key is None else info.group_key.name


def _owner(
    model: ClusterModel, owners: Owners, pod: Pod, *, kind: str, name: str
) -> ObjectKey | None:
    """The controller of this kind and name above a pod."""
    keys = _owner_keys(model, owners, pod)
    return next((key for key in keys if key.name == name and _is_kind(key, kind)), None)


def _short(key: ObjectKey | None, kind: str) -> str:
    """The kind as objects write it."""
    return kind if key is None else key.kind.rpartition(" ")[2]


def _owner_keys(model: ClusterModel, owners: Owners, pod: Pod) -> Iterator[ObjectKey]:
    """The controllers above a pod, as far as they are known."""
    namespace = pod.metadata.namespace or ""
    top, key = owners.of(pod), owners.parent(pod.metadata, namespace)
    if top is not None:
        yield top
    for _ in range(_OWNERS_MAX):
        if key is None:
            return
        yield key
        present = model.get(*key)
        key = None if present is None else owners.parent(present.metadata, namespace)


def _is_kind(key: ObjectKey, kind: str) -> bool:
    short = key.kind.rpartition(" ")[2].casefold()
    return kind.casefold() in ("", short, f"{short}s")


# ---- no pods --------------------------------------------------------------------------------


def _without_pods(model: ClusterModel, owners: Owners, kind: str, name: str) -> Explanation:
    """Why a workload has no pods. Raises NoSuchWorkloadError."""
    namespace, _, own = name.partition("/")
    for each in CONTROLLERS:
        key = ObjectKey(each, namespace, own)
        if not _is_kind(key, kind):
            continue
        refusal = model.source.refusal_of_workload(key)
        if model.get(*key) is not None:
            why = why_no_pods(key, owners.content(key) or {}) or refusal or "has no pods now"
            return _answer(model, key, why)
        if refusal:
            return _answer(model, key, refusal)
    unknown = [
        key
        for key in model.source.unknown_workloads
        # Nothing says whether the objects of an unknown kind are in namespaces.
        if key.name == own and key.namespace in (namespace, "")
    ]
    unknown.sort(key=lambda key: not _is_kind(key, kind))
    for key in unknown:
        why = f"is of a kind that Bayplan does not know ({key.kind}): ask about one of its pods"
        if key.kind.endswith(" CronJob"):
            why = "creates Jobs by the clock: ask about one of its Jobs, or one of their pods"
        return _answer(model, key, why)
    raise NoSuchWorkloadError(_no_such(model, kind, name))


def _answer(model: ClusterModel, key: ObjectKey, why: str) -> Explanation:
    short = key.kind.rpartition(" ")[2]
    name = f"{key.namespace or DEFAULT_NAMESPACE}/{key.name}"
    return Explanation(
        pod="",
        scheduler="",
        result="no-pods",
        source=model.source.source,
        message=f"{short} {name} {why}",
        workload=WorkloadPods(kind=short, name=name),
        remarks=model.source.notes,
    )


def _no_such(model: ClusterModel, kind: str, name: str) -> str:
    """The message that there is no such workload, with the name that may be meant."""
    items = (item for each in CONTROLLERS for item in model.store.items(each))
    keys = (key for key, _ in items if _is_kind(key, kind))
    names = {f"{key.namespace}/{key.name}" for key in keys}
    hint = suggestion(name, names)
    text = f"{model.source.source}: no pod belongs to {kind} {name}"
    return text + (f"; {hint}" if hint else "")
