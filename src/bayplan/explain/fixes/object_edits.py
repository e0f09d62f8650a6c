"""Changes of other objects: uncordon, untaint or label a node, create what a pod refers to."""

import shlex
from collections.abc import Iterator
from typing import Any

from bayplan.api.objects import (
    NODE,
    Node,
    Taint,
)
from bayplan.explain.diagnosis import Diagnosis
from bayplan.explain.explanation import Change
from bayplan.explain.fixes.edits import ObjectEdit, json_patch, plain
from bayplan.explain.fixes.missing_objects import missing_objects
from bayplan.explain.fixes.rule_edits import nodes_of, taint_text, untolerated
from bayplan.model.cluster_model import ClusterModel
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.plugins.node_unschedulable import NodeUnschedulable
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.printable import printable

#: So many nodes are tried for one kind of change.
_NODES_MAX = 4
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_LATE = "WaitForFirstConsumer"
_NEW_CLASS = "on-demand"
_NODE_CONDITIONS = "node.kubernetes.io/"


def object_edits(model: ClusterModel, diagnosis: Diagnosis) -> Iterator[ObjectEdit]:
    yield from missing_objects(model, diagnosis)
    yield from _uncordon(model, diagnosis)
    yield from _untaint(model, diagnosis)
    yield from _label(model, diagnosis)


def _node_edit(
    node: Node, changed: dict[str, Any], texts: tuple[str, str], commands: tuple[str, str]
) -> ObjectEdit:
    """``texts``, ``commands``: what stands before and after the name of the node."""
    name = node.metadata.name
    patch = json_patch(plain(node), changed)
    return ObjectEdit(
        f"{texts[0]} {printable(name)}{texts[1]}",
        (Change(verb="patch", kind=NODE, name=name, patch=patch),),
        (f"{commands[0]} {shlex.quote(name)}{commands[1]}",),
    )


def _uncordon(model: ClusterModel, diagnosis: Diagnosis) -> Iterator[ObjectEdit]:
    cordoned = diagnosis.nodes_rejected_by(NodeUnschedulable.name)
    tainted = diagnosis.nodes_rejected_by(TaintToleration.name)
    nodes = [n for n in nodes_of(model, (*cordoned, *tainted)) if n.spec.unschedulable]
    for node in nodes[:_NODES_MAX]:
        changed = plain(node)
        changed["spec"].pop("unschedulable")
        taints = [t for t in changed["spec"].get("taints") or () if t["key"] != _UNSCHEDULABLE]
        changed["spec"]["taints"] = taints
        yield _node_edit(node, changed, ("uncordon node", ""), ("kubectl uncordon", ""))


def _untaint(model: ClusterModel, diagnosis: Diagnosis) -> Iterator[ObjectEdit]:
    tried: set[tuple[Taint, ...]] = set()
    for node in nodes_of(model, diagnosis.nodes_rejected_by(TaintToleration.name)):
        taints = untolerated(diagnosis.pod, node)
        is_broken = any(taint.key.startswith(_NODE_CONDITIONS) for taint in taints)
        if not taints or is_broken or taints in tried or len(tried) >= _NODES_MAX:
            continue
        tried.add(taints)
        changed = plain(node)
        keys = {(taint.key, taint.effect) for taint in taints}
        listed = changed["spec"]["taints"]
        changed["spec"]["taints"] = [t for t in listed if (t["key"], t["effect"]) not in keys]
        text = ", ".join(map(taint_text, taints))
        removed = " ".join(shlex.quote(f"{taint.key}:{taint.effect}-") for taint in taints)
        texts = f"remove the taint {text} from node", ""
        yield _node_edit(node, changed, texts, ("kubectl taint nodes", f" {removed}"))


def _label(model: ClusterModel, diagnosis: Diagnosis) -> Iterator[ObjectEdit]:
    wanted = diagnosis.pod.spec.node_selector or {}
    if not wanted:
        return
    nodes = nodes_of(model, diagnosis.nodes_rejected_by(NodeAffinity.name))
    nodes = [n for n in nodes if not n.spec.unschedulable and not untolerated(diagnosis.pod, n)]

    def missing_count(node: Node) -> int:
        labels = node.metadata.labels or {}
        return sum(labels.get(key) != value for key, value in wanted.items())

    for node in sorted(nodes, key=missing_count)[:_NODES_MAX]:
        changed = plain(node)
        labels = changed["metadata"].get("labels") or {}
        missing = {key: value for key, value in wanted.items() if labels.get(key) != value}
        if not missing:
            continue
        changed["metadata"]["labels"] = {**labels, **missing}
        pairs = [f"{key}={value}" for key, value in sorted(missing.items())]
        quoted = " ".join(map(shlex.quote, pairs))
        texts = "label node", f" with {printable(', '.join(pairs))}"
        yield _node_edit(node, changed, texts, ("kubectl label nodes", f" {quoted} --overwrite"))
