"""The pool of a node, as the labels of clouds and autoscalers name it, and the kind of a node.

A kind is what a node pool makes: the labels without the name of the node, the allocatable
resources, and the taints that say what the node is for.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import count

from bayplan.api.objects import HOSTNAME_LABEL, Node
from bayplan.objects.keys import Content
from bayplan.printable import printable

#: Labels that name the pool of a node, the most specific ones first.
POOL_LABELS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
)
#: Labels that name the type of a node.
_TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
#: Taints that say that a node does not work: nobody should tolerate them to get a place.
_NODE_IS_BROKEN = "node.kubernetes.io/"
#: Taints of nodes that are about to go, or that are not ready to take pods.
_NODE_LEAVES = (
    "karpenter.sh/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "node.cloudprovider.kubernetes.io/",
    "node.cilium.io/",
)


def pool_of(node: Node) -> str:
    """The pool of a node; "": no label names one."""
    return _first_label(node, POOL_LABELS)


def instance_type(node: Node) -> str:
    """The type of a node, as in "g5.12xlarge"; "": no label names one."""
    return _first_label(node, _TYPES)


def _first_label(node: Node, keys: tuple[str, ...]) -> str:
    labels = node.metadata.labels or {}
    return next((labels[key] for key in keys if key in labels), "")


def kind_text(node: Node) -> str:
    """The pool and the type of a node, as in "node pool gpu, g5.12xlarge"; "": no label names
    them."""
    pool = pool_of(node)
    parts = (f"node pool {pool}" if pool else "", instance_type(node))
    return printable(", ".join(filter(None, parts)))


def kind_key(node: Node) -> str:
    """A text that is equal for nodes of one kind."""
    labels = {k: v for k, v in (node.metadata.labels or {}).items() if k != HOSTNAME_LABEL}
    taints = [taint for taint in node.spec.taints or () if not is_broken(taint.key)]
    return repr((sorted((node.status.allocatable or {}).items()), sorted(labels.items()), taints))


def is_broken(taint_key: str) -> bool:
    """Whether a taint says that its node does not work, or is about to go: a new node of the same
    kind is without it."""
    return taint_key.startswith((_NODE_IS_BROKEN, *_NODE_LEAVES))


def names_of_copies(node: str, is_taken: Callable[[str], bool]) -> Iterator[str]:
    """Names for copies of a node, without end. ``is_taken``: whether a node has the name."""
    names = (f"{node}-new-{number}" for number in count(1))
    return (name for name in names if not is_taken(name))


def objects_of_copy(objects: Iterable[Content], node: str, name: str) -> Iterator[Content]:
    """What a copy of a node has for itself: the limits of its volumes and its devices.

    ``objects``: CSINodes and ResourceSlices. ``node``: the name of the node that is copied;
    ``name``: that of the copy. The copies of its pools of devices have other names, too.
    """
    for each in objects:
        bare = {"apiVersion": each["apiVersion"], "kind": each["kind"]}
        spec: Content = each.get("spec") or {}
        if each["kind"] == "CSINode" and each["metadata"]["name"] == node:
            yield {**bare, "metadata": {"name": name}, "spec": spec}
        elif each["kind"] == "ResourceSlice" and spec.get("nodeName") == node:
            pool: Content = spec.get("pool") or {}
            old = str(pool.get("name"))
            new = old.replace(node, name) if node in old else f"{name}-{old}"
            meta = {"name": f"{name}-{each['metadata']['name']}"}
            own = {**spec, "nodeName": name, "pool": {**pool, "name": new}}
            yield {**bare, "metadata": meta, "spec": own}
