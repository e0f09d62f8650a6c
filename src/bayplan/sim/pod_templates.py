"""A pod from a controller's template: labels, owner, name."""

from collections.abc import Mapping

import msgspec

from bayplan.adapters.object_names import key_of, stable_suffix
from bayplan.sim.workload import Content, has_ended

TEMPLATE_HASH_LENGTH = 10


def pod_from(
    controller: Content,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Content:
    """A pod that the controller owns; ``labels`` and ``annotations`` besides the template's."""
    template = controller["spec"]["template"]
    meta = template.get("metadata") or {}
    made: Content = {
        "name": name,
        "namespace": key_of(controller).namespace,
        "labels": {**(meta.get("labels") or {}), **(labels or {})},
        "ownerReferences": [reference(controller)],
    }
    noted = {**(meta.get("annotations") or {}), **(annotations or {})}
    if noted:
        made["annotations"] = noted
    if meta.get("finalizers"):
        made["finalizers"] = meta["finalizers"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": template["spec"]}


def reference(owner: Content) -> Content:
    """How an object says whose it is."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_active(content: Content) -> bool:
    """A pod that its controller counts: it has not ended, and is not on its way out."""
    if content["kind"] != "Pod" or content["metadata"].get("deletionTimestamp"):
        return False
    return not has_ended(content)


def template_hash(template: Content) -> str:
    """Ten letters that follow from a pod template."""
    encoded = msgspec.json.encode(template, order="deterministic").decode()
    return stable_suffix(encoded, length=TEMPLATE_HASH_LENGTH)


def labelled(template: Content, labels: Mapping[str, str]) -> Content:
    """A template with more labels."""
    meta = template.get("metadata") or {}
    return {**template, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **labels}}}
