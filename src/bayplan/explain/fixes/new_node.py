"""Add a node: one of an existing kind or, if no kind suffices, one with what the pod needs.

For the kinds of nodes, see `objects.pools`. A kind of which an empty node cannot hold the pod is
not tried. Of the other kinds, the smallest comes first. A kind that does not exist yet is the last
resort.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from bayplan.answers.amounts import amount_text, short_text
from bayplan.answers.names import natural_key
from bayplan.api.device_objects import RESOURCE_SLICE, ResourceSlice
from bayplan.api.objects import CSI_NODE, HOSTNAME_LABEL, NODE, Node
from bayplan.api.pod_requests import PODS, amounts, is_extended
from bayplan.explain.diagnosis import NodeDiagnosis, class_behind_each
from bayplan.explain.explanation import Change
from bayplan.explain.fixes.edits import Content, Harm, ObjectEdit, change_of, plain
from bayplan.explain.fixes.node_labels import labels_to_add
from bayplan.explain.fixes.taints import harm_of_tolerating, untolerated
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.daemon_pods import requests_with_daemons
from bayplan.model.picture import with_kind
from bayplan.objects.keys import kind_of
from bayplan.objects.pools import (
    is_broken,
    kind_key,
    kind_text,
    names_of_copies,
    objects_of_copy,
)
from bayplan.printable import printable

_KINDS_MAX = 12
#: The most nodes that are added for one group or workload.
_COUNT_MAX = 8
_MANY_MAX = 100
_FAMILY = "new node"


def new_node_edits(
    model: ClusterModel, diagnosis: NodeDiagnosis, waiting_count: int = 1
) -> Iterator[ObjectEdit]:
    """Copies of each kind of node, and then larger nodes. ``waiting_count``: the number of pods
    that wait."""
    ordered = model.once(_kinds)
    usable = [node for node in ordered if _may_hold(model, node, diagnosis)][:_KINDS_MAX]
    counts = _counts(model, diagnosis, waiting_count)
    for number in counts:
        for node in usable:
            what = "one node" if number == 1 else f"{number} nodes"
            text = f"add {what} like {printable(node.metadata.name)}{_description(node)}"
            yield _copies(model, node, text, node_count=number)
    if usable and len(counts) == _COUNT_MAX:
        yield _as_many_as_needed(model, diagnosis, usable[0], waiting_count)
    bases = [node for node in ordered if _may_be_enlarged(node, ordered, diagnosis)]
    bases.sort(key=lambda node: bool(untolerated(diagnosis.pod, node)))
    larger = [(node, _larger(model, node, diagnosis)) for node in bases[:_KINDS_MAX]]
    for number in counts:
        for node, made in larger:
            if made is None:
                continue
            more, labels, parts = made
            what = "one node" if number == 1 else f"{number} nodes"
            text = f"add {what} like {node.metadata.name} with {', '.join(parts)}"
            manifest = _manifest(node, more, labels, with_taints=False)
            yield _copies(
                model,
                node,
                printable(text),
                node_count=number,
                manifest=manifest,
                harm=Harm.NEW_KIND,
            )


def _kinds(model: ClusterModel) -> list[Node]:
    """A node of each kind, the smallest first."""
    kinds: dict[str, Node] = {}
    for node in model.objects(NODE):
        if isinstance(node, Node):
            kinds.setdefault(kind_key(node), node)
    return sorted(kinds.values(), key=lambda node: (*_size(node), natural_key(node.metadata.name)))


def _as_many_as_needed(
    model: ClusterModel, diagnosis: NodeDiagnosis, node: Node, waiting_count: int
) -> ObjectEdit:
    """As many copies as all pods that wait need."""
    bare = _manifest(node, {}, {}, with_taints=False)
    requests = diagnosis.pod.requests
    needed = requests_with_daemons(model, bare, requests, node.metadata.name)
    offered = amounts(node.status.allocatable)
    shares = [
        (offered.get(name, 0) - needed[name] + amount) // amount
        for name, amount in requests.items()
        if amount
    ]
    per_node = max(min(shares, default=1), 1)
    number = min(-(-waiting_count // per_node), _MANY_MAX)
    text = f"add {number} nodes like {printable(node.metadata.name)}{_description(node)}"
    return _copies(model, node, text, node_count=number)


def _larger(
    model: ClusterModel, node: Node, diagnosis: NodeDiagnosis
) -> tuple[dict[str, str], dict[str, str], list[str]] | None:
    """What a node lacks for the pod, as (resources, labels, words for the reader); None: it lacks
    nothing."""
    offered = amounts(node.status.allocatable)
    bare = _manifest(node, {}, {}, with_taints=False)
    requests = diagnosis.pod.requests
    needed_amounts = requests_with_daemons(model, bare, requests, node.metadata.name)
    more = {
        name: amount_text(name, amount)
        for name, amount in needed_amounts.items()
        if amount > offered.get(name, 0)
    }
    needed = labels_to_add(model, diagnosis.pod, node.metadata.labels or {})
    if needed is None:
        return None
    parts = [f"{short_text(name, needed_amounts[name])} {name}" for name in sorted(more)]
    parts += [f"label {key}={value}" for key, value in sorted(needed.items())]
    parts += ["no taints"] if untolerated(diagnosis.pod, node) else []
    return (more, needed, parts) if parts else None


def _may_be_enlarged(node: Node, kinds: Sequence[Node], diagnosis: NodeDiagnosis) -> bool:
    """Whether a larger node of this kind may help. It has the devices that the pod requests, if any
    node has them, and it is not reserved for other pods by a taint."""
    offered = amounts(node.status.allocatable)
    for name in filter(is_extended, diagnosis.pod.requests):
        if not offered.get(name) and any(amounts(k.status.allocatable).get(name) for k in kinds):
            return False
    harms = [harm_of_tolerating(diagnosis.pod, node, t) for t in untolerated(diagnosis.pod, node)]
    return None not in harms and Harm.RISKY not in harms


def _may_hold(model: ClusterModel, node: Node, diagnosis: NodeDiagnosis) -> bool:
    """Whether an empty node of this kind has what the pod requests. Its devices may stand for an
    extended resource, which only the trial shows."""
    offered = amounts(node.status.allocatable)
    classes = model.once(class_behind_each)
    for name, amount in diagnosis.pod.requests.items():
        if amount > offered.get(name, 0) and name not in classes:
            return False
    return all(is_broken(taint.key) for taint in untolerated(diagnosis.pod, node))


def _description(node: Node) -> str:
    """The name of a node, with its pool and its type in brackets."""
    text = kind_text(node)
    return f" ({text})" if text else ""


def _counts(model: ClusterModel, diagnosis: NodeDiagnosis, waiting_count: int) -> range:
    """The numbers of nodes to add, up to one for each waiting pod, or for each member that is
    needed."""
    state = model.scheduler.pod_groups.of(diagnosis.attempt.pod)
    needed = waiting_count if state is None else max(state.min_member, waiting_count)
    return range(1, max(1, min(needed, _COUNT_MAX)) + 1)


def _size(node: Node) -> tuple[int, int, int]:
    """The sort key: nodes with the fewest kinds of resources come first, because a plain pod needs
    no node with devices."""
    offered = amounts(node.status.allocatable)
    return len(offered), offered.get("cpu", 0), offered.get("memory", 0)


def _copies(
    model: ClusterModel,
    node: Node,
    text: str,
    *,
    node_count: int = 1,
    manifest: dict[str, Any] | None = None,
    harm: Harm = Harm.NODE,
) -> ObjectEdit:
    """The edit that adds copies of a node. ``manifest``: the one of the new nodes; None: that of
    the node."""
    changes: list[Change] = []
    own = list(_own_objects(model, node.metadata.name))
    names = names_of_copies(node.metadata.name, lambda name: model.get(NODE, "", name) is not None)
    for name in islice(names, node_count):
        content = plain(_manifest(node, {}, {}) if manifest is None else manifest)
        content["metadata"]["name"] = content["metadata"]["labels"][HOSTNAME_LABEL] = name
        changes.append(change_of(NODE, content))
        copies = objects_of_copy(own, node.metadata.name, name)
        changes += [change_of(kind_of(copy), copy) for copy in copies]
    return ObjectEdit(
        text,
        tuple(changes),
        (),
        "node",
        harm,
        family=_FAMILY,
        copied_node=node.metadata.name,
    )


def _own_objects(model: ClusterModel, node: str) -> Iterator[Content]:
    """The CSINode and the ResourceSlices of a node."""
    csi_node = model.get(CSI_NODE, "", node)
    if csi_node is not None:
        yield with_kind(CSI_NODE, plain(csi_node))
    for each in model.objects(RESOURCE_SLICE):
        if isinstance(each, ResourceSlice) and each.spec.node_name == node:
            yield with_kind(RESOURCE_SLICE, plain(each))


def _manifest(
    node: Node, more: dict[str, str], labels: dict[str, str], *, with_taints: bool = True
) -> dict[str, Any]:
    content = plain(node)
    merged = {**(content["metadata"].get("labels") or {}), **labels}
    allocatable = {PODS: "110", **(content["status"].get("allocatable") or {}), **more}
    taints = [
        taint
        for taint in content["spec"].get("taints") or ()
        if with_taints and not is_broken(taint["key"])
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
