"""The pool of a node, as the labels of clouds and autoscalers name it, and the kind of a node.

A kind is what a node pool makes: the labels without the name of the node, the allocatable
resources, and the taints that say what the node is for.
"""

from bayplan.api.objects import HOSTNAME_LABEL, Node, Taint
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
    taints = [taint for taint in node.spec.taints or () if not is_broken(taint)]
    return repr((sorted((node.status.allocatable or {}).items()), sorted(labels.items()), taints))


def is_broken(taint: Taint) -> bool:
    """Whether the taint says that its node does not work, or is about to go."""
    return taint.key.startswith((_NODE_IS_BROKEN, *_NODE_LEAVES))
