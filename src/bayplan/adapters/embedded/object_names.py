"""Names of objects: keys, kinds, and names and uids that a run can repeat.

A real API server draws uids and the suffixes of generated names at random. Here both follow from
the object's key, so that the same input gives the same objects.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bayplan.rng import stable_hash

Content = dict[str, Any]
DEFAULT_NAMESPACE = "default"

#: The letters of generated suffixes: no vowels, so that they spell no words. Upstream: util/rand.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5

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


def kind_of(content: Mapping[str, Any]) -> str:
    """apiVersion and kind of a manifest as one text: "apps/v1 Deployment"."""
    return f"{content.get('apiVersion', '')} {content.get('kind', '')}"


def key_of(content: Mapping[str, Any]) -> ObjectKey:
    """The key of an object. The namespace defaults to "default" for namespaced kinds."""
    kind = kind_of(content)
    meta = content.get("metadata") or {}
    return object_key(kind, meta.get("namespace") or "", meta.get("name") or "")


def object_key(kind: str, namespace: str, name: str) -> ObjectKey:
    if not is_namespaced(kind):
        return ObjectKey(kind, "", name)
    return ObjectKey(kind, namespace or DEFAULT_NAMESPACE, name)


def is_namespaced(kind: str) -> bool:
    return kind.rpartition(" ")[2] not in CLUSTER_SCOPED


def stable_uid(key: ObjectKey, ordinal: int) -> str:
    """The uid of the ``ordinal``-th object that has had this key; looks like a UUID."""
    text = "/".join((*key, str(ordinal)))
    digits = f"{stable_hash(text):016x}{stable_hash('uid/' + text):016x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def stable_suffix(text: str, length: int = SUFFIX_LENGTH) -> str:
    """The suffix of a generated name; equal texts get equal suffixes."""
    number = stable_hash(text)
    letters: list[str] = []
    for _ in range(length):
        number, index = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[index])
    return "".join(letters)
