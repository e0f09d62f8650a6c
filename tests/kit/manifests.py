"""Small objects as plain values, as in a manifest.

pod("web", cpu="500m", labels={"app": "web"}, nodeName="n1")
node("n1", cpu=8, zone="a", labels={"pool": "x"})
api_object("apps/v1 Deployment", "web", spec={...})
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from bayplan.api.objects import ZONE_LABEL

Content = dict[str, Any]
#: A quantity as in a manifest: "500m", 2.
Amount = str | int
EMPTY: Mapping[str, Any] = MappingProxyType({})


_METADATA = {
    "annotations",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
    "labels",
    "ownerReferences",
    "resourceVersion",
    "uid",
}


def api_object(kind: str, name: str, namespace: str = "", **parts: Any) -> Content:
    """An object of any kind, such as "apps/v1 Deployment"."""
    version, _, kind_name = kind.rpartition(" ")
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind_name, "metadata": metadata, **parts}


def pod(
    name: str = "web", *, cpu: Amount = "1", requests: Mapping[str, Amount] = EMPTY, **spec: Any
) -> Content:
    """A pod in namespace default; ``status`` and the fields of metadata are keywords.

    ``requests``: what its container needs beside ``cpu``.
    """
    resources = {"requests": {"cpu": cpu, **requests}}
    parts: Content = {"spec": {"containers": [container(resources=resources)]}}
    if "status" in spec:
        parts["status"] = spec.pop("status")
    content = api_object("v1 Pod", name, spec.pop("namespace", "default"), **parts)
    content["metadata"] |= {field: spec.pop(field) for field in _METADATA & spec.keys()}
    content["spec"] |= spec
    return content


def container(cpu: Amount = "1", **fields: Any) -> Content:
    return {"name": "c", "image": "app", "resources": {"requests": {"cpu": cpu}}, **fields}


def node(
    name: str = "n1",
    *,
    cpu: Amount = "4",
    memory: Amount = "8Gi",
    pods: Amount = "110",
    zone: str = "",
    labels: Mapping[str, str] = EMPTY,
    taints: Sequence[Content] = (),
    **parts: Any,
) -> Content:
    """A node with room; ``spec`` and ``status`` replace what follows from the other keywords."""
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**({ZONE_LABEL: zone} if zone else {}), **labels}},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {"allocatable": allocatable},
        **parts,
    }


def priority_class(name: str, value: int, **fields: Any) -> Content:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }


def pod_group(name: str = "g", minimum: int = 3) -> Content:
    """An object of a kind that has no defaults and no validation."""
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": minimum},
    }
