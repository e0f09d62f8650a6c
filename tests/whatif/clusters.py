"""Clusters and models from plain objects, for tests of questions."""

from typing import Any

from bayplan.adapters.embedded.api_features import NO_FEATURES
from bayplan.api.pod_groups import BUILT_IN_KINDS
from bayplan.config import SchedulerConfig
from bayplan.model.additions import Additions, read_additions
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.model.reading import objects_of_workload
from bayplan.plugins.registry import default_registry
from bayplan.sim.input.inputs import load_inputs
from bayplan.whatif.copies import Unit, single_unit
from tests.kit.manifests import Content, container, pod


def cluster_of(*objects: Content) -> ClusterPicture:
    return objects_of_workload(load_inputs(objects), "test", features=NO_FEATURES)


def model_of(cluster: ClusterPicture) -> ClusterModel:
    return ClusterModel(cluster, SchedulerConfig(), default_registry(()))


def unit_of(additions: Additions) -> Unit:
    return single_unit(additions, BUILT_IN_KINDS)


def additions_to(cluster: ClusterPicture, *objects: Content, are_shapes: bool = False) -> Additions:
    return read_additions(objects, cluster, are_shapes=are_shapes, features=NO_FEATURES)


def deployment(name: str, replicas: int, cpu: str = "1", **spec: Any) -> Content:
    """A Deployment whose pods request this much CPU. ``spec``: fields of the pods' spec."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container(cpu)], **spec},
            },
        },
    }


def owned_pod(
    name: str, on: str, cpu: str = "1", kind: str = "ReplicaSet", **fields: Any
) -> Content:
    """A running pod whose controller is named after the first part of its name."""
    workload = name.partition("-")[0]
    api_version = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    owner = {
        "apiVersion": api_version,
        "kind": kind,
        "name": workload,
        "uid": f"uid-{workload}",
        "controller": True,
    }
    options = {"labels": {"app": workload}, "containers": [container(cpu)], **fields}
    return pod(name, nodeName=on, ownerReferences=[owner], **options)


def budget(app: str, min_available: int) -> Content:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {
            "minAvailable": min_available,
            "selector": {"matchLabels": {"app": app}},
        },
    }
