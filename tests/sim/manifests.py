"""Controllers as plain values, for tests of inputs."""

from typing import Any

from tests.kit.manifests import Content, container


def controller(kind: str, name: str = "web", **spec: Any) -> Content:
    """A controller in namespace default; ``uid``, ``status`` and spec fields are keywords."""
    api_version = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    meta: Content = {"name": name, "namespace": "default"}
    for field in ("uid", "ownerReferences"):
        if field in spec:
            meta[field] = spec.pop(field)
    status = spec.pop("status", {})
    whole = {"template": template(), **spec}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": meta,
        "spec": whole,
        "status": status,
    }


def template(**fields: Any) -> Content:
    """A pod template with label app=web; ``labels``, ``annotations`` and spec are keywords."""
    meta = {"labels": fields.pop("labels", {"app": "web"})}
    if "annotations" in fields:
        meta["annotations"] = fields.pop("annotations")
    return {"metadata": meta, "spec": {"containers": [container()], **fields}}


def owned(content: Content, owner: Content, **reference: Any) -> Content:
    """The object with an owner reference."""
    meta = owner["metadata"]
    owner_reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
    }
    if "uid" in meta:
        owner_reference["uid"] = meta["uid"]
    owner_reference |= reference
    return {**content, "metadata": {**content["metadata"], "ownerReferences": [owner_reference]}}


def scenario(*events: Content, **spec: Any) -> Content:
    return {
        "apiVersion": "bayplan.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "s"},
        "spec": {"events": list(events), **spec},
    }
