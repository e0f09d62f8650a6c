"""Add a node: one like an existing node, with more of what the pod needs if that is not enough."""

from collections.abc import Iterator
from copy import deepcopy
from itertools import count, islice
from typing import Any

from bayplan.api.device_objects import RESOURCE_SLICE
from bayplan.api.objects import CSI_NODE, HOSTNAME_LABEL, NODE, Node
from bayplan.api.pod_requests import PODS, amounts
from bayplan.explain.amounts import amount_text
from bayplan.explain.diagnosis import Diagnosis
from bayplan.explain.explanation import Change
from bayplan.explain.fixes.edits import ObjectEdit, change_of, plain
from bayplan.model.cluster_model import ClusterModel
from bayplan.printable import printable

_SHAPES_MAX = 8
#: Nodes that are added for one group.
_COUNT_MAX = 8
_CONDITION_TAINTS = "node.kubernetes.io/"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def new_node_edits(model: ClusterModel, diagnosis: Diagnosis) -> Iterator[ObjectEdit]:
    """A copy of each kind of node, the smallest first, and then larger ones."""
    shapes: dict[str, Node] = {}
    for node in model.objects(NODE):
        if isinstance(node, Node):
            shapes.setdefault(_shape(node), node)
    ordered = sorted(
        shapes.values(), key=lambda n: (bool(n.spec.taints), _size(n), n.metadata.name)
    )[:_SHAPES_MAX]
    for number in range(1, _count_max(model, diagnosis) + 1):
        for node in ordered:
            what = "one node" if number == 1 else f"{number} nodes"
            text = f"add {what} like {printable(node.metadata.name)}"
            yield _copies(model, node, text, node_count=number)
    labels = _needed_labels(diagnosis)
    for node in ordered:
        offered = amounts(node.status.allocatable)
        more = {
            name: amount_text(name, amount)
            for name, amount in diagnosis.pod.requests.items()
            if amount > offered.get(name, 0)
        }
        needed = {k: v for k, v in labels.items() if (node.metadata.labels or {}).get(k) != v}
        parts = [f"{value} {name}" for name, value in sorted(more.items())]
        parts += [f"label {key}={value}" for key, value in sorted(needed.items())]
        parts += ["no taints"] if node.spec.taints else []
        if parts:
            text = f"add one node like {node.metadata.name} with {', '.join(parts)}"
            manifest = _manifest(node, more, needed, with_taints=False)
            yield _copies(model, node, printable(text), manifest=manifest)


def _count_max(model: ClusterModel, diagnosis: Diagnosis) -> int:
    """One node for a pod; for a group up to one for each member that is needed."""
    state = model.scheduler.pod_groups.of(diagnosis.attempt.pod)
    return 1 if state is None else max(1, min(state.min_member, _COUNT_MAX))


def _shape(node: Node) -> str:
    labels = {k: v for k, v in (node.metadata.labels or {}).items() if k != HOSTNAME_LABEL}
    taints = [t for t in node.spec.taints or () if not t.key.startswith(_CONDITION_TAINTS)]
    return repr((sorted((node.status.allocatable or {}).items()), sorted(labels.items()), taints))


def _size(node: Node) -> tuple[int, int]:
    offered = amounts(node.status.allocatable)
    return offered.get("cpu", 0), offered.get("memory", 0)


def _needed_labels(diagnosis: Diagnosis) -> dict[str, str]:
    """Labels that the pod's selector and the first term of its affinity ask for."""
    spec = plain(diagnosis.pod.spec)
    labels = dict(spec.get("nodeSelector") or {})
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    for expression in terms[0].get("matchExpressions") or () if terms else ():
        if expression.get("operator") == "In" and expression.get("values"):
            labels[expression["key"]] = expression["values"][0]
        elif expression.get("operator") == "Exists":
            labels[expression["key"]] = "true"
    return labels


def _copies(
    model: ClusterModel,
    node: Node,
    text: str,
    *,
    node_count: int = 1,
    manifest: dict[str, Any] | None = None,
) -> ObjectEdit:
    """``manifest``: of the new nodes; None: as the node is."""
    changes: list[Change] = []
    for number in range(1, node_count + 1):
        name = _free_name(model, node.metadata.name, number)
        content = deepcopy(_manifest(node, {}, {}) if manifest is None else manifest)
        content["metadata"]["name"] = content["metadata"]["labels"][HOSTNAME_LABEL] = name
        changes.append(change_of(NODE, content))
        csi_node = model.get(CSI_NODE, "", node.metadata.name)
        if csi_node is not None:
            changes.append(change_of(CSI_NODE, _renamed(CSI_NODE, csi_node, name)))
        changes += _slices(model, node.metadata.name, name)
    return ObjectEdit(text, tuple(changes), (), "node", template=node.metadata.name)


def _slices(model: ClusterModel, node: str, name: str) -> Iterator[Change]:
    """The devices of a node, for its copy."""
    for each in model.objects(RESOURCE_SLICE):
        spec = plain(each)["spec"]
        if spec.get("nodeName") == node:
            spec = {**spec, "nodeName": name, "pool": {**spec.get("pool", {}), "name": name}}
            head = _renamed(RESOURCE_SLICE, each, f"{name}-{each.metadata.name}")
            yield change_of(RESOURCE_SLICE, {**head, "spec": spec})


def _manifest(
    node: Node, more: dict[str, str], labels: dict[str, str], *, with_taints: bool = True
) -> dict[str, Any]:
    content = plain(node)
    merged = {**(content["metadata"].get("labels") or {}), **labels}
    allocatable = {PODS: "110", **(content["status"].get("allocatable") or {}), **more}
    taints = [
        taint
        for taint in content["spec"].get("taints") or ()
        if with_taints and not taint["key"].startswith(_CONDITION_TAINTS)
    ]
    manifest: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "", "labels": merged},
        "spec": {"taints": taints} if taints else {},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }
    annotations = content["metadata"].get("annotations")
    if annotations:
        manifest["metadata"]["annotations"] = annotations
    return manifest


def _renamed(kind: str, content: Any, name: str) -> dict[str, Any]:
    version, _, short = kind.partition(" ")
    spec = plain(content).get("spec") or {}
    return {"apiVersion": version, "kind": short, "metadata": {"name": name}, "spec": spec}


def _free_name(model: ClusterModel, node: str, number: int) -> str:
    """The name of the ``number``-th copy."""
    taken = {each.metadata.name for each in model.objects(NODE)}
    names = (f"{node}-new{n}" for n in count(1))
    return next(islice((name for name in names if name not in taken), number - 1, None))
