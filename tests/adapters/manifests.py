"""Small objects as plain values, for tests of the packages outside the engine."""

from typing import Any

Content = dict[str, Any]


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


def pod(name: str = "web", **spec: Any) -> Content:
    """A pod in namespace default; ``status`` and the fields of metadata are keywords."""
    meta: Content = {"name": name, "namespace": spec.pop("namespace", "default")}
    meta |= {field: spec.pop(field) for field in _METADATA & spec.keys()}
    status = spec.pop("status", None)
    content: Content = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container()], **spec},
    }
    return content if status is None else {**content, "status": status}


def container(cpu: str | int = "1", **fields: Any) -> Content:
    return {"name": "c", "image": "app", "resources": {"requests": {"cpu": cpu}}, **fields}


def node(name: str = "n1", **parts: Any) -> Content:
    """A node with room; ``labels``, ``spec`` and ``status`` are keywords."""
    meta: Content = {"name": name, "labels": parts.get("labels", {})}
    status = parts.get("status", {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "spec": parts.get("spec", {}),
        "status": status,
    }


def priority_class(name: str, value: int, **fields: Any) -> Content:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }


def pod_group(name: str = "g", minimum: int = 3, namespace: str = "default") -> Content:
    """An object of a kind that has no defaults and no validation."""
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minMember": minimum},
    }
