"""The controller and the workload of a pod, as its owner references and labels tell them."""

from collections.abc import Mapping

from bayplan.api.object_meta import ObjectMeta, controller_of
from bayplan.api.objects import Pod
from bayplan.objects.keys import Content

#: The kubelet gives it to the pod that stands for a static pod of its node.
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
#: The pods with the lowest cost go first when a workload is scaled down.
DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"

#: The label that a Deployment gives the pods of a ReplicaSet, and the end of the ReplicaSet's name.
TEMPLATE_HASH_LABEL = "pod-template-hash"

_RC = "ReplicationController"
#: The spellings that kubectl takes for a workload → its kind, as owner references have it.
WORKLOAD_SPELLINGS = {
    **dict.fromkeys(("deployment", "deployments", "deploy"), "Deployment"),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), "ReplicaSet"),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), "StatefulSet"),
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), "DaemonSet"),
    **dict.fromkeys(("job", "jobs"), "Job"),
    **dict.fromkeys(("replicationcontroller", "replicationcontrollers", "rc"), _RC),
}
_GROUPS = ("apps", "batch", "k8s.io")


def spelling_without_group(word: str) -> str:
    """A kind as it is typed, in small letters and without its API group: `kubectl get -o name`
    prints "deployment.apps/web", and commands of fixes have this form, too."""
    bare, _, group = word.lower().partition(".")
    return bare if group.endswith(_GROUPS) else word.lower()


def deployment_of(replica_set: str, labels: Mapping[str, str] | None) -> str | None:
    """The Deployment that made a ReplicaSet, by the names alone: the ReplicaSet's name is that of
    its Deployment and the template hash, which its pods have as a label. None: no Deployment."""
    template_hash = (labels or {}).get(TEMPLATE_HASH_LABEL)
    if not template_hash or not replica_set.endswith(f"-{template_hash}"):
        return None
    return replica_set.removesuffix(f"-{template_hash}")


def ordinal_of(stateful_set: str, pod: str) -> int:
    """The ordinal in the name of a pod of a StatefulSet; -1: the name has none."""
    ending = pod.removeprefix(f"{stateful_set}-")
    return int(ending) if ending.isdecimal() else -1


def pod_name(pod: Pod) -> str:
    """The name of a pod in questions and answers: "namespace/name"."""
    return f"{pod.metadata.namespace or ''}/{pod.metadata.name}"


def workload_of(pod: Pod) -> str:
    """The workload of a pod, as in "Deployment default/web"; without a controller, the pod."""
    meta = pod.metadata
    namespace = meta.namespace or ""
    owner = controller_of(meta)
    if owner is None:
        return f"Pod {namespace}/{meta.name}"
    deployment = deployment_of(owner.name, meta.labels)
    if owner.kind == "ReplicaSet" and deployment is not None:
        return f"Deployment {namespace}/{deployment}"
    return f"{owner.kind} {namespace}/{owner.name}"


def controller_reference(content: Content) -> Content | None:
    """The owner that controls an object of plain values; see `controller_of`."""
    owners = content["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def controller_kind(meta: ObjectMeta) -> str:
    """The kind of an object's controller, as in "DaemonSet"; "": it has none."""
    controller = controller_of(meta)
    return "" if controller is None else controller.kind


def is_mirror(meta: ObjectMeta) -> bool:
    """Whether a pod stands for a static pod, which its kubelet runs."""
    return MIRROR_ANNOTATION in (meta.annotations or {})


#: The kinds of controllers, of any group, whose pods go with their nodes: the pod of a DaemonSet,
#: and the mirror of a static pod.
BOUND_TO_NODES = ("DaemonSet", "Node")


def is_bound_to_node(meta: ObjectMeta) -> bool:
    """Whether a pod goes with its node: that of a DaemonSet, or the mirror of a static pod."""
    return controller_kind(meta) in BOUND_TO_NODES
