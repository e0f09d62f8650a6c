"""ObjectKey: the identity of one object by kind, namespace and name, and how it is made.

A manifest names its kind, and may leave out its namespace: `key_of` reads it. What an API server
returned has its namespace, and an item of a list does not name its kind: `key_of_metadata` reads
it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

from bayplan.api.object_meta import ObjectMeta, OwnerReference
from bayplan.api.objects import LAST_APPLIED_ANNOTATION

#: An object as plain values, as in a manifest.
Content = dict[str, Any]
DEFAULT_NAMESPACE = "default"

#: Kinds without a namespace; every kind that is not listed here has one.
CLUSTER_SCOPED = frozenset(
    (
        "APIService",
        "CSIDriver",
        "CSINode",
        "CertificateSigningRequest",
        "ClusterQueue",
        "ClusterRole",
        "ClusterRoleBinding",
        "ComponentStatus",
        "CustomResourceDefinition",
        "DeviceClass",
        "DeviceTaintRule",
        "FlowSchema",
        "IngressClass",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "PriorityLevelConfiguration",
        "ResourceFlavor",
        "ResourceSlice",
        "RuntimeClass",
        "StorageClass",
        "Topology",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "VolumeAttachment",
        "VolumeAttributesClass",
    )
)


class ObjectKey(NamedTuple):
    """Identifies one object: kind as "v1 Pod"; namespace "" for kinds without a namespace."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """`Pod default/web`, for messages."""
        short = self.kind.rpartition(" ")[2]
        return f"{short} {self.namespace}/{self.name}" if self.namespace else f"{short} {self.name}"


#: Makes a key of kind, namespace and name without a call of Python.
new_key: Callable[[tuple[str, str, str]], ObjectKey] = partial(tuple[str].__new__, ObjectKey)


def is_namespaced(kind: str) -> bool:
    return kind.rpartition(" ")[2] not in CLUSTER_SCOPED


def object_key(kind: str, namespace: str, name: str) -> ObjectKey:
    """The key of an object that somebody names. The namespace defaults to "default" for namespaced
    kinds, and means nothing for others."""
    if kind.rpartition(" ")[2] in CLUSTER_SCOPED:
        return ObjectKey(kind, "", name)
    return ObjectKey(kind, namespace or DEFAULT_NAMESPACE, name)


def kind_of(content: Mapping[str, Any]) -> str:
    """apiVersion and kind of a manifest as one text: "apps/v1 Deployment"."""
    return f"{content.get('apiVersion', '')} {content.get('kind', '')}"


def key_of(content: Mapping[str, Any]) -> ObjectKey:
    """The key of a manifest; see `object_key`."""
    # All in one function: each object of an input passes here several times.
    if "apiVersion" in content and "kind" in content:
        kind = f"{content['apiVersion']} {content['kind']}"
    else:
        kind = kind_of(content)
    meta: Mapping[str, Any] = (content["metadata"] if "metadata" in content else None) or {}  # noqa: SIM401
    name = meta.get("name") or ""
    if kind.rpartition(" ")[2] in CLUSTER_SCOPED:
        return new_key((kind, "", name))
    namespace = meta.get("namespace") or DEFAULT_NAMESPACE
    return new_key((kind, namespace, name))


def key_of_owner(owner: OwnerReference, namespace: str) -> ObjectKey:
    """The key of the owner of an object. ``namespace``: of the object."""
    return object_key(f"{owner.api_version} {owner.kind}", namespace, owner.name)


def key_of_reference(owner: Mapping[str, Any], namespace: str) -> ObjectKey:
    """As `key_of_owner`, of plain values."""
    return object_key(kind_of(owner), namespace, owner.get("name") or "")


def in_namespace(content: Any, namespace: str) -> Any:
    """The manifest of an object that names no namespace, with this one. Other values, and objects
    of kinds without a namespace, stay as they are."""
    if namespace == DEFAULT_NAMESPACE or not isinstance(content, dict):
        return content
    manifest = cast("Content", content)
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not is_namespaced(kind_of(manifest)):
        return manifest
    named = cast("Content", metadata)
    if named.get("namespace"):
        return manifest
    return {**manifest, "metadata": {**named, "namespace": namespace}}


def without_last_applied(metadata: Content) -> Content:
    """The metadata of a manifest without the annotation in which `kubectl apply` repeats the whole
    object."""
    annotations: Content = metadata.get("annotations") or {}
    if LAST_APPLIED_ANNOTATION not in annotations:
        return metadata
    others = {name: text for name, text in annotations.items() if name != LAST_APPLIED_ANNOTATION}
    return {**metadata, "annotations": others}


def key_of_metadata(kind: str, metadata: ObjectMeta) -> ObjectKey:
    """The key of an object that an API server returned."""
    return new_key((kind, metadata.namespace or "", metadata.name))
