"""Names, labels and selectors of objects: how they are made and validated.

A real API server draws uids and the suffixes of generated names at random. Here both follow from
the object's key, so that the same input makes the same objects. The rules for names, labels and
selectors are those of the API server. Upstream: apimachinery pkg/apis/meta/v1/validation and
pkg/apis/core/validation.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from bayplan.api.objects import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorTerm,
)
from bayplan.api.selectors import (
    DOES_NOT_EXIST,
    EXISTS,
    GREATER_THAN,
    IN,
    LESS_THAN,
    NODE_NAME_FIELD,
    NOT_IN,
    is_label_key,
    is_label_value,
)
from bayplan.problems import Problem, joined, wrong
from bayplan.rng import stable_digits, stable_hash

# ---- object names ---------------------------------------------------------------------------


Content = dict[str, Any]
DEFAULT_NAMESPACE = "default"

#: The letters of generated suffixes: no vowels, so that they spell no words. Upstream: util/rand.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
#: The characters of a generateName that a generated name begins with.
GENERATE_NAME_MAX = 63 - SUFFIX_LENGTH

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
    meta = content.get("metadata") or {}
    return object_key(kind_of(content), meta.get("namespace") or "", meta.get("name") or "")


def object_key(kind: str, namespace: str, name: str) -> ObjectKey:
    if kind.rpartition(" ")[2] in CLUSTER_SCOPED:
        return ObjectKey(kind, "", name)
    return ObjectKey(kind, namespace or DEFAULT_NAMESPACE, name)


def is_namespaced(kind: str) -> bool:
    return kind.rpartition(" ")[2] not in CLUSTER_SCOPED


def stable_uid(key: ObjectKey, ordinal: int) -> str:
    """The uid of the ``ordinal``-th object that has had this key; looks like a UUID."""
    digits = stable_digits(f"{key[0]}/{key[1]}/{key[2]}/{ordinal}")
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def generated_name(key: ObjectKey, prefix: str, number: int) -> str:
    """The name that a server makes of ``prefix``, the generateName of an object of this kind.

    ``number``: another number gives another name. Upstream: apiserver pkg/storage/names.
    """
    suffix = stable_suffix(f"{key.kind}/{key.namespace}/{prefix}/{number}")
    return prefix[:GENERATE_NAME_MAX] + suffix


def stable_suffix(text: str, length: int = SUFFIX_LENGTH) -> str:
    """The suffix of a generated name; equal texts get equal suffixes."""
    number = stable_hash(text)
    letters: list[str] = []
    for _ in range(length):
        number, index = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[index])
    return "".join(letters)


# ---- selector validation --------------------------------------------------------------------


LABEL_OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)
NODE_OPERATORS = (*LABEL_OPERATORS, GREATER_THAN, LESS_THAN)
FIELD_OPERATORS = (IN, NOT_IN)

LABEL_KEY = "a label key such as app or example.com/app"
LABEL_VALUE = "a label value: at most 63 letters, digits, '-', '_', '.', ending in none of the last"
DNS_SUBDOMAIN = "a DNS name: lower case letters, digits, '-' and '.', at most 253"
DNS_LABEL = "a DNS label: lower case letters, digits and '-', at most 63"

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def is_dns_subdomain(name: str) -> bool:
    return len(name) <= 253 and _DNS_SUBDOMAIN.fullmatch(name) is not None


def is_dns_label(name: str) -> bool:
    return len(name) <= 63 and _DNS_LABEL.fullmatch(name) is not None


def one_of(names: Iterable[str]) -> str:
    return "one of " + ", ".join(names)


# ---- labels ---------------------------------------------------------------------------------


def labels(labels: Mapping[str, str] | None, path: str) -> Iterator[Problem]:
    """Check labels, or the labels of a plain selector."""
    for key, value in (labels or {}).items():
        if not is_label_key(key):
            yield wrong(path, key, LABEL_KEY)
        if not is_label_value(value):
            yield wrong(joined(path, key), value, LABEL_VALUE)


def label_key(key: str | None, path: str) -> Iterator[Problem]:
    if not key or not is_label_key(key):
        yield wrong(path, key, LABEL_KEY)


# ---- selectors ------------------------------------------------------------------------------


def label_selector(selector: LabelSelector | None, path: str) -> Iterator[Problem]:
    if selector is None:
        return
    yield from labels(selector.match_labels, joined(path, "matchLabels"))
    for index, one in enumerate(selector.match_expressions or ()):
        where = f"{path}.matchExpressions[{index}]"
        yield from _requirement(one, LABEL_OPERATORS, where)
        yield from _label_values(one, where)


def node_selector(selector: NodeSelector | None, path: str) -> Iterator[Problem]:
    """Check the terms of a node selector; there must be at least one."""
    if selector is None:
        return
    where = joined(path, "nodeSelectorTerms")
    if not selector.node_selector_terms:
        yield wrong(where, None, "at least one term")
    for index, term in enumerate(selector.node_selector_terms or ()):
        yield from node_term(term, f"{where}[{index}]", checks_values=True)


def node_term(term: NodeSelectorTerm, path: str, *, checks_values: bool) -> Iterator[Problem]:
    """``checks_values``: whether values must be valid labels. Upstream does not check preferred
    terms."""
    for index, one in enumerate(term.match_expressions or ()):
        where = f"{path}.matchExpressions[{index}]"
        yield from _requirement(one, NODE_OPERATORS, where)
        if checks_values:
            yield from _label_values(one, where)
    for index, one in enumerate(term.match_fields or ()):
        yield from _field_requirement(one, f"{path}.matchFields[{index}]")


def _requirement(
    one: LabelSelectorRequirement, operators: tuple[str, ...], path: str
) -> Iterator[Problem]:
    yield from label_key(one.key, joined(path, "key"))
    count = len(one.values or ())
    if one.operator not in operators:
        yield wrong(joined(path, "operator"), one.operator, one_of(operators), operators)
    elif one.operator in (IN, NOT_IN) and not count:
        yield wrong(joined(path, "values"), None, f"at least one value for {one.operator}")
    elif one.operator in (EXISTS, DOES_NOT_EXIST) and count:
        yield wrong(joined(path, "values"), one.values, f"no values for {one.operator}")
    elif one.operator in (GREATER_THAN, LESS_THAN) and count != 1:
        expected = f"exactly one value for {one.operator}"
        yield wrong(joined(path, "values"), one.values or None, expected)


def _label_values(one: LabelSelectorRequirement, path: str) -> Iterator[Problem]:
    for index, value in enumerate(one.values or ()):
        if not is_label_value(value):
            yield wrong(f"{path}.values[{index}]", value, LABEL_VALUE)


def _field_requirement(one: LabelSelectorRequirement, path: str) -> Iterator[Problem]:
    if one.key != NODE_NAME_FIELD:
        yield wrong(joined(path, "key"), one.key, NODE_NAME_FIELD, (NODE_NAME_FIELD,))
    if one.operator not in FIELD_OPERATORS:
        expected = one_of(FIELD_OPERATORS)
        yield wrong(joined(path, "operator"), one.operator, expected, FIELD_OPERATORS)
    elif len(one.values or ()) != 1:
        expected = f"exactly one value for {one.operator}"
        yield wrong(joined(path, "values"), one.values or None, expected)
    elif not is_dns_subdomain((one.values or ("",))[0]):
        yield wrong(f"{path}.values[0]", (one.values or ("",))[0], "a node's name")
