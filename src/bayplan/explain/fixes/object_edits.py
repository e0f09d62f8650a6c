"""Changes of other objects: uncordon, untaint or label a node, create what a pod refers to, let a
rollout replace old pods first."""

from collections.abc import Callable, Iterator
from typing import Any

from bayplan.api.objects import DEPLOYMENT, NODE, Node, Taint
from bayplan.explain.diagnosis import NodeDiagnosis
from bayplan.explain.fixes.commands import (
    label_command,
    optional,
    patch_command,
    taint_removal_command,
    uncordon_command,
)
from bayplan.explain.fixes.edits import Harm, ObjectEdit, json_patch, patch_of, plain
from bayplan.explain.fixes.missing_objects import missing_objects
from bayplan.explain.fixes.owners import Owners, manager_of, owner_text
from bayplan.explain.fixes.rule_edits import nodes_of
from bayplan.explain.fixes.taints import (
    CONTROL_PLANE_NOTE,
    is_of_control_plane,
    is_of_hardware,
    taint_text,
    untolerated,
)
from bayplan.model.cluster_model import ClusterModel
from bayplan.objects.keys import ObjectKey
from bayplan.objects.pools import is_broken
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.plugins.node_unschedulable import NodeUnschedulable
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.printable import printable
from bayplan.sim.world.workloads.deployment_plan import rollout_limits

#: The number of nodes that are tried for one kind of change.
_NODES_MAX = 4
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def object_edits(
    model: ClusterModel, owners: Owners, diagnosis: NodeDiagnosis
) -> Iterator[ObjectEdit]:
    yield from _replace_first(owners, diagnosis)
    yield from missing_objects(model, diagnosis)
    yield from _uncordon(model, diagnosis)
    yield from _untaint(model, diagnosis)
    yield from _label(model, diagnosis)


def _replace_first(owners: Owners, diagnosis: NodeDiagnosis) -> Iterator[ObjectEdit]:
    """The edit to maxSurge 0, because a rollout that adds new pods before it removes old ones needs
    room for both."""
    owner = owners.of(diagnosis.pod)
    content = None if owner is None else owners.content(owner)
    if owner is None or content is None or owner.kind != DEPLOYMENT:
        return
    parents = {owners.parent(pod.metadata, owner.namespace) for pod in owners.pods(owner)}
    strategy = content["spec"].get("strategy") or {}
    surge, unavailable = rollout_limits(content)
    if len(parents) < 2 or strategy.get("type") == "Recreate" or not surge:
        return
    rolling = {"maxSurge": 0, "maxUnavailable": max(unavailable, 1)}
    changed = {"type": "RollingUpdate", "rollingUpdate": rolling}
    patch = json_patch(content["spec"], {**content["spec"], "strategy": changed}, "/spec")
    name, manager = owner_text(owner), manager_of(content)
    limits = f"maxSurge: 0 and maxUnavailable: {rolling['maxUnavailable']}"
    yield ObjectEdit(
        f"set {limits} of {name}: its rollout removes an old pod before it adds a new one",
        (patch_of(owner, patch),),
        optional(lambda: patch_command(owner, patch)),
        changes_what="pod",
        harm=Harm.NONE,
        note=f"{manager} writes {name}: change it there, too" if manager else "",
        needs_controllers=True,
    )


def _node_edit(
    node: Node,
    changed: dict[str, Any],
    text: str,
    command: Callable[[], str],
    *,
    harm: Harm = Harm.OBJECT,
    note: str = "",
) -> ObjectEdit:
    patch = json_patch(plain(node), changed)
    change = patch_of(ObjectKey(NODE, "", node.metadata.name), patch)
    return ObjectEdit(text, (change,), optional(command), harm=harm, note=note)


def _uncordon(model: ClusterModel, diagnosis: NodeDiagnosis) -> Iterator[ObjectEdit]:
    cordoned = diagnosis.nodes_rejected_by(NodeUnschedulable.name)
    tainted = diagnosis.nodes_rejected_by(TaintToleration.name)
    nodes = [n for n in nodes_of(model, (*cordoned, *tainted)) if n.spec.unschedulable]
    for node in nodes[:_NODES_MAX]:
        changed = plain(node)
        changed["spec"].pop("unschedulable")
        taints = [t for t in changed["spec"].get("taints") or () if t["key"] != _UNSCHEDULABLE]
        changed["spec"]["taints"] = taints
        name = node.metadata.name
        text = f"uncordon node {printable(name)}"
        yield _node_edit(node, changed, text, lambda name=name: uncordon_command(name))


def _untaint(model: ClusterModel, diagnosis: NodeDiagnosis) -> Iterator[ObjectEdit]:
    tried: set[tuple[Taint, ...]] = set()
    for node in nodes_of(model, diagnosis.nodes_rejected_by(TaintToleration.name)):
        taints = untolerated(diagnosis.pod, node)
        keeps = any(is_broken(taint.key) or is_of_hardware(taint, node) for taint in taints)
        if not taints or keeps or taints in tried or len(tried) >= _NODES_MAX:
            continue
        tried.add(taints)
        changed = plain(node)
        keys = {(taint.key, taint.effect) for taint in taints}
        listed = changed["spec"]["taints"]
        changed["spec"]["taints"] = [t for t in listed if (t["key"], t["effect"]) not in keys]
        name, is_risky = node.metadata.name, any(map(is_of_control_plane, taints))
        removed = ", ".join(map(taint_text, taints))
        yield _node_edit(
            node,
            changed,
            f"remove the taint {removed} from node {printable(name)}",
            lambda name=name, keys=keys: taint_removal_command(name, sorted(keys)),
            harm=Harm.RISKY if is_risky else Harm.OBJECT,
            note=CONTROL_PLANE_NOTE if is_risky else "",
        )


def _says_what_the_node_is(label: str) -> bool:
    """Whether a label states a fact: a name, a place, a type. A person cannot choose its value."""
    domain = label.partition("/")[0]
    return domain == "kubernetes.io" or domain.endswith((".kubernetes.io", "karpenter.sh"))


def _label(model: ClusterModel, diagnosis: NodeDiagnosis) -> Iterator[ObjectEdit]:
    wanted = diagnosis.pod.spec.node_selector or {}
    if not wanted or any(map(_says_what_the_node_is, wanted)):
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
        pairs = printable(", ".join(f"{key}={value}" for key, value in sorted(missing.items())))
        yield _node_edit(
            node,
            changed,
            f"label node {printable(name)} with {pairs}",
            lambda name=name, missing=missing: label_command(name, missing),
        )
