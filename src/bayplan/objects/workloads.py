"""The workload of a pod, as its owner references and labels tell it."""

from collections.abc import Mapping

from bayplan.api.objects import Pod

#: The label that a Deployment gives the pods of a ReplicaSet, and the end of the ReplicaSet's name.
TEMPLATE_HASH_LABEL = "pod-template-hash"


def deployment_of(replica_set: str, labels: Mapping[str, str] | None) -> str | None:
    """The Deployment that made a ReplicaSet, by the names alone: the ReplicaSet's name is that of
    its Deployment and the template hash, which its pods have as a label. None: no Deployment."""
    template_hash = (labels or {}).get(TEMPLATE_HASH_LABEL)
    if not template_hash or not replica_set.endswith(f"-{template_hash}"):
        return None
    return replica_set.removesuffix(f"-{template_hash}")


def workload_of(pod: Pod) -> str:
    """The workload of a pod, as in "Deployment default/web"; without a controller, the pod."""
    meta = pod.metadata
    namespace = meta.namespace or ""
    for owner in meta.owner_references or ():
        if owner.controller:
            deployment = deployment_of(owner.name, meta.labels)
            if owner.kind == "ReplicaSet" and deployment is not None:
                return f"Deployment {namespace}/{deployment}"
            return f"{owner.kind} {namespace}/{owner.name}"
    return f"Pod {namespace}/{meta.name}"
