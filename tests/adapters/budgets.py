"""Disruption budgets and the pods that they protect, in a cluster in memory."""

from typing import Any

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET
from bayplan.api.objects import POD
from bayplan.clock import ManualClock
from bayplan.objects.keys import ObjectKey, object_key
from tests.kit import manifests

Json = dict[str, Any]
LABELS = {"app": "a"}


def budget(status: Json | None = None, **bounds: Any) -> Json:
    content: Json = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": LABELS}, **bounds},
    }
    return content if status is None else {**content, "status": status}


def protected_pod(name: str, *, node: str = "n1", owner: str = "", **status: Any) -> Json:
    content = manifests.pod(name, nodeName=node) if node else manifests.pod(name)
    content["metadata"]["labels"] = LABELS
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner}
        content["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    running = {"phase": "Running"} if node else {}
    return {**content, "status": {**running, **status}}


def cluster_of(*contents: Json) -> EmbeddedCluster:
    cluster = EmbeddedCluster(ManualClock())
    for content in contents:
        cluster.create(content)
    return cluster


def allowed(cluster: EmbeddedCluster) -> int:
    return status(cluster)["disruptionsAllowed"]


def status(cluster: EmbeddedCluster) -> Json:
    stored = cluster.get(object_key(POD_DISRUPTION_BUDGET, "default", "b"))
    assert stored is not None
    return stored.content["status"]


def pods(count: int, **options: Any) -> list[Json]:
    return [protected_pod(f"p{number}", **options) for number in range(count)]


def key(name: str) -> ObjectKey:
    return object_key(POD, "default", name)
