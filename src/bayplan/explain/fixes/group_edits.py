"""Edits for groups whose topology does not fit: smaller slices, a preferred domain in place of a
required one, no exclusive domain, and another group that moves out of the nearest domain.

A group moves if its controllers stop its pods until the waiting group is placed. Deleted pods would
come back at once, and their older group might be tried first. So a group can move only under two
conditions. All its pods belong to controllers that have a size and no other pods. And its pods fit
elsewhere after the waiting group is placed.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import structs

from bayplan.answers.amounts import pod_count
from bayplan.answers.names import in_natural_order
from bayplan.api.objects import JOB, POD
from bayplan.api.pod_groups import (
    EXCLUSIVE_TOPOLOGY,
    PREFERRED_TOPOLOGY,
    REQUIRED_TOPOLOGY,
    TOPOLOGY_SLICES,
    GroupKey,
    PodGroup,
    TopologySlice,
)
from bayplan.explain.diagnosis import NodeDiagnosis
from bayplan.explain.explanation import Change
from bayplan.explain.fixes.commands import optional, patch_command, scale_command
from bayplan.explain.fixes.edits import Harm, ObjectEdit
from bayplan.explain.fixes.owners import Owners
from bayplan.explain.fixes.workload_edits import SCALABLE
from bayplan.explain.levels import ComparedLevel
from bayplan.model.cluster_model import ClusterModel
from bayplan.objects.keys import ObjectKey
from bayplan.objects.workloads import pod_name
from bayplan.printable import printable
from bayplan.state.pods import PodInfo

#: The most groups that are moved in a trial.
_GROUPS_MAX: Final = 5
#: The most pods of a group that moves.
_MOVED_MAX: Final = 64


def group_edits(
    model: ClusterModel, owners: Owners, diagnosis: NodeDiagnosis, levels: Iterable[ComparedLevel]
) -> Iterator[ObjectEdit]:
    """Changes of the group's object, and groups that may move."""
    state = model.scheduler.pod_groups.of(diagnosis.attempt.pod)
    if state is None or state.group is None:
        return
    group = state.group
    yield from _smaller_slices(group)
    yield from _preferred(group)
    yield from _not_alone(group)
    keys = list(dict.fromkeys(key for level in levels for key in level.groups))[:_GROUPS_MAX]
    placed: dict[GroupKey, list[PodInfo]] = {key: [] for key in keys}
    for pod in model.scheduler.cache.pods():
        if pod.group_key is not None and pod.group_key in placed:
            placed[pod.group_key].append(pod)
    for key, pods in placed.items():
        is_only = sum(str(key) == str(each) for each in keys) == 1
        name = str(key) if is_only else f"{key} of {key.api_group}"
        yield from _moved(model, owners, diagnosis, name, pods=pods)


# ---- the group's object -------------------------------------------------------------------------


def _smaller_slices(group: PodGroup) -> Iterator[ObjectEdit]:
    """The largest smaller size of the innermost slices that fits."""
    if not group.slices:
        return
    *outer, last = group.slices
    sizes = [size for size in range(last.size - 1, 0, -1) if last.size % size == 0]
    for size in sizes:
        slices = [*outer, last._replace(size=size)]
        text = f"divide group {_shown(group)} by {last.key} into slices of {size}, not {last.size}"
        yield _annotated(group, {TOPOLOGY_SLICES: _written(slices)}, text, family="slices")
    if outer:
        text = f"do not divide group {_shown(group)} by {last.key}"
        yield _annotated(group, {TOPOLOGY_SLICES: _written(outer)}, text, family="slices")


def _written(slices: list[TopologySlice]) -> str:
    return ", ".join(f"{part.key}={part.size}" for part in slices)


def _preferred(group: PodGroup) -> Iterator[ObjectEdit]:
    """The required label as the first preferred one."""
    key = (group.metadata.annotations or {}).get(REQUIRED_TOPOLOGY, "")
    if not key or not group.required_topology:
        return
    preferred = [key, *(each for each in group.preferred_topologies if each != key)]
    changed = {REQUIRED_TOPOLOGY: None, PREFERRED_TOPOLOGY: ", ".join(preferred)}
    text = f"prefer one {key} for group {_shown(group)} instead of requiring it"
    yield _annotated(group, changed, text)


def _not_alone(group: PodGroup) -> Iterator[ObjectEdit]:
    if group.exclusive_topology:
        text = f"let group {_shown(group)} share its domains of {group.exclusive_topology}"
        yield _annotated(group, {EXCLUSIVE_TOPOLOGY: None}, text)


def _annotated(
    group: PodGroup, annotations: dict[str, str | None], text: str, *, family: str = ""
) -> ObjectEdit:
    """The group with other annotations. ``annotations``: the new values; None removes one."""
    present = group.metadata.annotations or {}
    operations: list[dict[str, Any]] = []
    for name, value in annotations.items():
        path = f"/metadata/annotations/{name.replace('/', '~1')}"
        if value is None:
            operations.append({"op": "remove", "path": path})
        else:
            operations.append(
                {"op": "replace" if name in present else "add", "path": path, "value": value}
            )
    patch = tuple(operations)
    key = ObjectKey(group.kind, group.key.namespace, group.key.name)
    change = Change(
        verb="patch", kind=key.kind, name=key.name, namespace=key.namespace, patch=patch
    )
    return ObjectEdit(
        printable(text),
        (change,),
        optional(lambda: patch_command(key, patch)),
        harm=Harm.RULE,
        family=family,
    )


def _shown(group: PodGroup) -> str:
    return str(group.key)


# ---- another group ------------------------------------------------------------------------------


def _moved(
    model: ClusterModel, owners: Owners, diagnosis: NodeDiagnosis, name: str, *, pods: list[PodInfo]
) -> Iterator[ObjectEdit]:
    """The edit that moves a group. ``name``, ``pods``: those of the group."""
    owner_keys = {owners.of(pod) for pod in pods}
    sizes = {owner: owners.size(owner) for owner in owner_keys if owner is not None}
    if len(pods) > _MOVED_MAX or None in owner_keys or not sizes.keys() <= _pure(owners, pods):
        return
    places = _elsewhere(model, diagnosis, pods)
    if not places:
        return
    back = [line for owner, size in sizes.items() for line in _resize(owner, size)[1]]
    nodes = ", ".join(in_natural_order(set(places)))
    again = f"; afterwards: {'; '.join(back)}" if back else ""
    yield ObjectEdit(
        printable(f"move group {name}: stop its {pod_count(len(pods))}, and start them again"),
        tuple(_resize(owner, 0)[0] for owner in sizes),
        tuple(line for owner in sizes for line in _resize(owner, 0)[1]),
        "workload",
        Harm.WORKLOAD,
        family=f"move {name}",
        note=printable(f"its pods then fit on {nodes}{again}"),
        needs_controllers=True,
    )


def _pure(owners: Owners, pods: list[PodInfo]) -> set[ObjectKey]:
    """The controllers of these pods that have a size, and no other pods."""
    names = {pod.key for pod in pods}
    pure: set[ObjectKey] = set()
    for owner in {owners.of(pod) for pod in pods}:
        if owner is None or owner.kind not in SCALABLE:
            continue
        own = owners.pods(owner)
        if all(pod_name(each) in names for each in own):
            pure.add(owner)
    return pure


def _resize(owner: ObjectKey, size: int) -> tuple[Change, tuple[str, ...]]:
    """The change of a controller to this number of pods, and the command for it."""
    field = "parallelism" if owner.kind == JOB else "replicas"
    patch = ({"op": "replace", "path": f"/spec/{field}", "value": size},)
    change = Change(
        verb="patch", kind=owner.kind, name=owner.name, namespace=owner.namespace, patch=patch
    )
    if owner.kind == JOB:
        return change, optional(lambda: patch_command(owner, patch))
    return change, optional(lambda: scale_command(owner, size))


def _elsewhere(model: ClusterModel, diagnosis: NodeDiagnosis, pods: list[PodInfo]) -> list[str]:
    """The nodes of the pods after the waiting group is placed without them. There are none if the
    group or some of the pods do not fit."""
    with model.trial():
        for pod in pods:
            model.remove(POD, pod.namespace, pod.name)
        if not model.place(diagnosis.attempt.pod.key).node:
            return []
        for pod in pods:
            spec = structs.replace(pod.pod.spec, node_name=None)
            status = structs.replace(
                pod.pod.status, phase="Pending", conditions=None, nominated_node_name=None
            )
            model.add(POD, structs.replace(pod.pod, spec=spec, status=status))
        for pod in pods:
            placed = model.pod(pod.key)
            if placed is not None and not placed.spec.node_name:
                model.place(pod.key)
        after = [model.pod(pod.key) for pod in pods]
        nodes = [(each.spec.node_name or "") for each in after if each is not None]
        return nodes if all(nodes) else []
