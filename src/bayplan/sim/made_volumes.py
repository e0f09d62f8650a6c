"""What a provisioner would make: volumes for claims. And claims for the ephemeral volumes of pods.

Upstream: sig-storage-lib-external-provisioner (controller.go), pkg/controller/volume/ephemeral.
"""

from collections.abc import Iterable, Mapping

from bayplan.adapters.object_names import Content, key_of
from bayplan.api.csi_migration import BY_NAME
from bayplan.api.objects import StorageClass
from bayplan.api.storage_objects import NO_PROVISIONER
from bayplan.sim.pod_templates import reference
from bayplan.sim.workload import claim_templates

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def is_dynamic(storage_class: StorageClass) -> bool:
    """Whether volumes of a class are made when they are wanted."""
    return storage_class.provisioner not in ("", NO_PROVISIONER)


def driver_of(storage_class: StorageClass) -> str:
    """The CSI driver that makes a class's volumes, also where it took over from an old plugin."""
    plugin = BY_NAME.get(storage_class.provisioner)
    return storage_class.provisioner if plugin is None else plugin.driver


def made_volume(claim: Content, storage_class: StorageClass, terms: list[Content]) -> Content:
    """A volume for one claim; ``terms``: which nodes reach it, none for all."""
    name = f"pvc-{claim['metadata']['uid']}"
    spec = claim["spec"]
    made: Content = {
        "capacity": dict((spec.get("resources") or {}).get("requests") or {}),
        "accessModes": spec.get("accessModes") or [],
        "volumeMode": spec.get("volumeMode") or "Filesystem",
        "storageClassName": storage_class.metadata.name,
        "persistentVolumeReclaimPolicy": storage_class.reclaim_policy or "Delete",
        "csi": {"driver": driver_of(storage_class), "volumeHandle": name},
        "claimRef": claim_reference(claim),
    }
    if spec.get("volumeAttributesClassName"):
        made["volumeAttributesClassName"] = spec["volumeAttributesClassName"]
    if terms:
        made["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    annotations = {PROVISIONED_BY: storage_class.provisioner}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": annotations},
        "spec": made,
    }


def claim_reference(claim: Content) -> Content:
    """How a volume says whose it is."""
    meta = claim["metadata"]
    named = {field: meta[field] for field in ("namespace", "name", "uid")}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **named}


def allowed_terms(storage_class: StorageClass) -> list[Content]:
    """Where a class makes volumes, as terms of a node selector; none: anywhere."""
    return [
        {"matchExpressions": [_one_of(each.key, each.values or ()) for each in expressions]}
        for term in storage_class.allowed_topologies or ()
        if (expressions := term.match_label_expressions)
    ]


def allowed_keys(storage_class: StorageClass) -> list[str]:
    """The labels by which a class tells where it makes volumes."""
    terms = storage_class.allowed_topologies or ()
    keys = (each.key for term in terms for each in term.match_label_expressions or ())
    return list(dict.fromkeys(keys))


def node_terms(labels: Mapping[str, str], keys: Iterable[str]) -> list[Content]:
    """The nodes that are with one node by these labels; none: all."""
    found = [_one_of(key, (labels[key],)) for key in keys if key in labels]
    return [{"matchExpressions": found}] if found else []


def _one_of(key: str, values: Iterable[str]) -> Content:
    return {"key": key, "operator": "In", "values": list(values)}


# ---- ephemeral volumes ---------------------------------------------------------------------


def ephemeral_claims(pod: Content) -> list[Content]:
    """The claims that are made with a pod, and go with it."""
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                **_noted(template.get("metadata") or {}),
                "name": name,
                "namespace": key_of(pod).namespace,
                "ownerReferences": [reference(pod)],
            },
            "spec": template.get("spec") or {},
        }
        for name, template in claim_templates(pod)
    ]


def _noted(meta: Content) -> Content:
    return {field: meta[field] for field in ("labels", "annotations") if meta.get(field)}
