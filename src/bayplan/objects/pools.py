"""The pool of a node, as the labels of clouds and autoscalers name it."""

from bayplan.api.objects import Node

#: Labels that name the pool of a node, the most specific ones first.
POOL_LABELS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
)


def pool_of(node: Node) -> str:
    """The pool of a node; "": no label names one."""
    labels = node.metadata.labels or {}
    return next((labels[key] for key in POOL_LABELS if key in labels), "")
