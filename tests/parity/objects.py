"""Objects of recorded cases, read as the recorder reads them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.api import objects
from bayplan.api.pod_requests import NEWEST_POD_RULES, PodRules
from bayplan.framework.cluster_rules import pod_rules
from bayplan.objects.keys import DEFAULT_NAMESPACE
from bayplan.plugins.node_declared_features import NodeDeclaredFeatures
from bayplan.state.pods import PodInfo, pod_info
from bayplan.testing.clusters import SampleCluster
from tests.parity.tally import Sheet

Json = dict[str, Any]

#: Lists of a case's cluster, by the kind of their objects.
KINDS: Mapping[str, str] = {
    "namespaces": objects.NAMESPACE,
    "services": objects.SERVICE,
    "replicationControllers": objects.REPLICATION_CONTROLLER,
    "replicaSets": objects.REPLICA_SET,
    "statefulSets": objects.STATEFUL_SET,
    "persistentVolumes": "v1 PersistentVolume",
    "persistentVolumeClaims": "v1 PersistentVolumeClaim",
    "storageClasses": "storage.k8s.io/v1 StorageClass",
    "csiNodes": "storage.k8s.io/v1 CSINode",
    "csiDrivers": "storage.k8s.io/v1 CSIDriver",
    "csiStorageCapacities": "storage.k8s.io/v1 CSIStorageCapacity",
    "volumeAttachments": "storage.k8s.io/v1 VolumeAttachment",
    "podDisruptionBudgets": "policy/v1 PodDisruptionBudget",
    "resourceSlices": "resource.k8s.io/v1 ResourceSlice",
    "resourceClaims": "resource.k8s.io/v1 ResourceClaim",
    "deviceClasses": "resource.k8s.io/v1 DeviceClass",
    "deviceTaintRules": "resource.k8s.io/v1 DeviceTaintRule",
}
#: The paths of nodes that plugins declare.
_DECLARED = tuple(path.removeprefix("Node.") for path in NodeDeclaredFeatures.fields)
_OTHER_LISTS = frozenset(("nodes", "pods", "nominatedPods"))
_NAMESPACED = frozenset(
    (
        objects.POD,
        objects.SERVICE,
        objects.REPLICATION_CONTROLLER,
        objects.REPLICA_SET,
        objects.STATEFUL_SET,
        KINDS["persistentVolumeClaims"],
        KINDS["csiStorageCapacities"],
        KINDS["podDisruptionBudgets"],
        KINDS["resourceClaims"],
    )
)


def read_object(kind: str, content: Json, version: str = "") -> Any:
    """Decode an object with the defaults that the recorder sets. Raises DecodeError."""
    metadata = dict(content.get("metadata") or {})
    if kind in _NAMESPACED:
        metadata.setdefault("namespace", DEFAULT_NAMESPACE)
    name = kind.rpartition(" ")[2].lower()
    uid = f"uid-{name}-{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    metadata.setdefault("uid", uid)
    if version:
        metadata.setdefault("resourceVersion", version)
    filled = {**content, "metadata": metadata}
    if kind == objects.POD:
        spec = dict(content.get("spec") or {})
        spec.setdefault("schedulerName", objects.DEFAULT_SCHEDULER)
        filled["spec"] = spec
    return objects.decode(kind, filled, _DECLARED if kind == objects.NODE else ())


def read_pod(content: Json, rules: PodRules = NEWEST_POD_RULES, version: str = "") -> PodInfo:
    """Raises DecodeError, QuantityError."""
    return pod_info(read_object(objects.POD, content, version), rules=rules)


def cluster_objects(content: Json, sheet: Sheet, version: str = "") -> list[tuple[str, Any]]:
    """(kind, object) of everything but pods, nodes first, in the order of the file."""
    for name in sorted(set(content) - set(KINDS) - _OTHER_LISTS):
        sheet.not_understood(f"cluster.{name}", is_answer=False)
    pairs = [
        (objects.NODE, read_object(objects.NODE, each, version))
        for each in content.get("nodes") or ()
    ]
    for name, kind in KINDS.items():
        pairs += [(kind, read_object(kind, each, version)) for each in content.get(name) or ()]
    return pairs


def cluster_pods(content: Json, name: str = "pods", version: str = "") -> list[objects.Pod]:
    """Pods of one of the cluster's lists without terminated pods, which no cache contains."""
    pods = [read_object(objects.POD, each, version) for each in content.get(name) or ()]
    return [pod for pod in pods if not objects.is_terminal(pod)]


def load(cluster: SampleCluster, content: Json, sheet: Sheet) -> None:
    """Fill a cluster from a case."""
    for kind, node in cluster_objects(content, sheet):
        if isinstance(node, objects.Node):
            cluster.add(node)
        else:
            cluster.objects(kind).put(node)
    rules = pod_rules(cluster.gates)
    cluster.add(*(pod_info(pod, rules=rules) for pod in cluster_pods(content)))
    for pod in cluster_pods(content, "nominatedPods"):
        cluster.nominator.add_nominated_pod(pod_info(pod, rules=rules))


def started(pod: PodInfo, index: int, node_name: str) -> PodInfo:
    """A pending pod as the recorder assumes it: on its node, with its own start time."""
    status = pod.status
    if status.start_time is None:
        minutes, seconds = divmod(index, 60)
        start_time = f"2026-06-01T00:{minutes:02}:{seconds:02}Z"
        status = msgspec.structs.replace(status, start_time=start_time)
    return msgspec.structs.replace(pod, status=status, node_name=node_name)
