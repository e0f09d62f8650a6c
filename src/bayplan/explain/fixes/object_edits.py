"""Changes of other objects: uncordon, untaint or label a node, create what a pod refers to."""

import shlex
from collections.abc import Iterator
from typing import Any

from bayplan.adapters.embedded.field_validation import kind_of
from bayplan.api.device_objects import RESOURCE_CLAIM
from bayplan.api.objects import (
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    Node,
    Taint,
)
from bayplan.api.storage_objects import PersistentVolumeClaim, StorageClass
from bayplan.explain.diagnosis import Diagnosis
from bayplan.explain.explanation import Change
from bayplan.explain.fixes.edits import ObjectEdit, change_of, json_patch, plain
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
    yield from _missing_objects(model, diagnosis)
    yield from _uncordon(model, diagnosis)
    yield from _untaint(model, diagnosis)
    yield from _label(model, diagnosis)


def node_patch(node: Node, changed: dict[str, Any], text: str, command: str) -> ObjectEdit:
    name = node.metadata.name
    patch = json_patch(plain(node), changed)
    return ObjectEdit(text, (Change(verb="patch", kind=NODE, name=name, patch=patch),), (command,))


def _uncordon(model: ClusterModel, diagnosis: Diagnosis) -> Iterator[ObjectEdit]:
    cordoned = diagnosis.nodes_rejected_by(NodeUnschedulable.name)
    tainted = diagnosis.nodes_rejected_by(TaintToleration.name)
    nodes = [n for n in nodes_of(model, (*cordoned, *tainted)) if n.spec.unschedulable]
    for node in nodes[:_NODES_MAX]:
        changed = plain(node)
        changed["spec"].pop("unschedulable")
        taints = [t for t in changed["spec"].get("taints") or () if t["key"] != _UNSCHEDULABLE]
        changed["spec"]["taints"] = taints
        name = node.metadata.name
        yield node_patch(
            node,
            changed,
            f"uncordon node {printable(name)}",
            f"kubectl uncordon {shlex.quote(name)}",
        )


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
        name, text = node.metadata.name, ", ".join(map(taint_text, taints))
        removed = " ".join(shlex.quote(f"{taint.key}:{taint.effect}-") for taint in taints)
        yield node_patch(
            node,
            changed,
            f"remove the taint {text} from node {printable(name)}",
            f"kubectl taint nodes {shlex.quote(name)} {removed}",
        )


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
        name = node.metadata.name
        pairs = [f"{key}={value}" for key, value in sorted(missing.items())]
        quoted = " ".join(map(shlex.quote, pairs))
        yield node_patch(
            node,
            changed,
            f"label node {printable(name)} with {printable(', '.join(pairs))}",
            f"kubectl label nodes {shlex.quote(name)} {quoted} --overwrite",
        )


# ---- objects that a pod refers to ---------------------------------------------------------------


def _missing_objects(model: ClusterModel, diagnosis: Diagnosis) -> Iterator[ObjectEdit]:
    pod = diagnosis.pod
    for claim_key in dict.fromkeys(pod.claim_keys()):
        namespace, _, name = claim_key.partition("/")
        claim = model.get(PERSISTENT_VOLUME_CLAIM, namespace, name)
        if claim is None:
            yield from _missing_claim(model, namespace, name)
        elif isinstance(claim, PersistentVolumeClaim):
            yield from _missing_class(model, claim)
    for claim in pod.spec.resource_claims or ():
        name = claim.resource_claim_name
        if name and model.get(RESOURCE_CLAIM, pod.namespace, name) is None:
            yield from _device_claim(model, pod.namespace, name)
    yield from _missing_group(model, diagnosis)


def _creation(*contents: dict[str, Any]) -> ObjectEdit:
    changes = [change_of(kind_of(content), content) for content in contents]
    names = [
        f"{each.kind.rpartition(' ')[2]} {each.namespace}{'/' if each.namespace else ''}{each.name}"
        for each in changes
    ]
    text = printable(f"create the missing {' and the missing '.join(names)}")
    return ObjectEdit(text, tuple(changes), ("kubectl apply -f -",))


def _missing_claim(model: ClusterModel, namespace: str, name: str) -> Iterator[ObjectEdit]:
    """A claim of a class that binds when its pod has a node; of a new class if there is none."""
    classes = [each for each in model.objects(STORAGE_CLASS) if isinstance(each, StorageClass)]
    late = [each for each in classes if each.volume_binding_mode == _LATE]
    for each in late[:_NODES_MAX]:
        yield _creation(_claim(namespace, name, each.metadata.name))
    if not late:
        yield _creation(
            _storage_class(_NEW_CLASS, _provisioner(model)), _claim(namespace, name, _NEW_CLASS)
        )


def _claim(namespace: str, name: str, class_name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": class_name,
        },
    }


def _storage_class(name: str, provisioner: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": _LATE,
    }


def _provisioner(model: ClusterModel) -> str:
    """A provisioner that another class has."""
    classes = [each for each in model.objects(STORAGE_CLASS) if isinstance(each, StorageClass)]
    usable = [c.provisioner for c in classes if not c.provisioner.endswith("no-provisioner")]
    return min(usable, default="example.com/provisioner")


def _missing_class(model: ClusterModel, claim: PersistentVolumeClaim) -> Iterator[ObjectEdit]:
    name = claim.spec.storage_class_name
    if name and not claim.spec.volume_name and model.get(STORAGE_CLASS, "", name) is None:
        yield _creation(_storage_class(name, _provisioner(model)))


def _device_claim(model: ClusterModel, namespace: str, name: str) -> Iterator[ObjectEdit]:
    classes = sorted(
        each.metadata.name for key, each in model.all() if key.kind.endswith(" DeviceClass")
    )
    version = RESOURCE_CLAIM.partition(" ")[0]
    for device_class in classes[:_NODES_MAX]:
        content = {
            "apiVersion": version,
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "devices": {
                    "requests": [{"name": "device", "exactly": {"deviceClassName": device_class}}]
                }
            },
        }
        yield _creation(content)


def _missing_group(model: ClusterModel, diagnosis: Diagnosis) -> Iterator[ObjectEdit]:
    state = model.scheduler.pod_groups.of(diagnosis.attempt.pod)
    if state is None or state.group is not None:
        return
    kinds = [k for k in model.scheduler.group_kinds if k.startswith(f"{state.key.api_group}/")]
    if not kinds:
        return
    version, _, kind = kinds[-1].partition(" ")
    count = state.here_count
    spec: dict[str, Any] = {"minMember": count}
    if state.is_upstream or state.key.api_group == "scheduling.k8s.io":
        spec = {"schedulingPolicy": {"gang": {"minCount": count}}}
    content = {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": state.key.name, "namespace": state.key.namespace},
        "spec": spec,
    }
    yield _creation(content)
