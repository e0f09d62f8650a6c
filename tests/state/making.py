"""Nodes and pods for the tests of state: keyword arguments with working defaults."""

from typing import Any

from bayplan.api.objects import (
    HOSTNAME_LABEL,
    NODE,
    POD,
    ZONE_LABEL,
    Node,
    decode,
)
from bayplan.state.pods import PodInfo, pod_info

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def node(
    name: str,
    *,
    zone: str | None = None,
    labels: dict[str, str] | None = None,
    allocatable: dict[str, Any] | None = None,
    images: dict[str, int] | None = None,
    **spec: Any,
) -> Node:
    """A node with its hostname label; further keywords stand in its spec."""
    found = {HOSTNAME_LABEL: name} | ({ZONE_LABEL: zone} if zone else {}) | (labels or {})
    offered = {"cpu": "8", "memory": "16Gi", "pods": "110"} | (allocatable or {})
    held = [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()]
    content = {
        "metadata": {"name": name, "labels": found},
        "spec": spec,
        "status": {"allocatable": offered, "images": held},
    }
    decoded = decode(NODE, content)
    assert isinstance(decoded, Node)
    return decoded


def pod(
    name: str = "pod",
    on: str | None = None,
    *,
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    requests: dict[str, Any] | None = None,
    ports: list[dict[str, Any]] | None = None,
    **rest: Any,
) -> PodInfo:
    """A pod, on node ``on``; further keywords stand in its spec.

    Except for ``terminating=True`` (it is being deleted), ``uid`` and ``status``.
    """
    deleted_at = "2026-01-01T00:00:00Z" if rest.pop("terminating", False) else None
    status = rest.pop("status", {})
    uid = rest.pop("uid", f"uid-{namespace}/{name}")
    container = {"name": "main", "resources": {"requests": requests or {}}, "ports": ports or []}
    content = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "labels": labels or {},
            "deletionTimestamp": deleted_at,
        },
        "spec": {"nodeName": on, "containers": [container], **rest},
        "status": status,
    }
    return pod_info(decode(POD, content))  # pyright: ignore[reportArgumentType]


def term(
    labels: dict[str, str] | None = None, *, key: str = HOSTNAME_LABEL, **rest: Any
) -> dict[str, Any]:
    """A pod affinity term; without ``labels`` it selects every pod."""
    selector = {"matchLabels": labels} if labels is not None else {}
    return {"labelSelector": selector, "topologyKey": key, **rest}


def weighted(weight: int, of: dict[str, Any]) -> dict[str, Any]:
    return {"weight": weight, "podAffinityTerm": of}
