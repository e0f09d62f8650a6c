"""Validation of objects: the problems for which the API server refuses an object.

Only kinds that decide a placement are checked. Fields and kinds that no scheduler reads are
accepted, for objects that a cluster prints are full of them. If a field has a value of the wrong
type, the decoder reports it, and the object is not checked further.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast, final

from bayplan.adapters.embedded import device_validation as devices
from bayplan.adapters.embedded import field_validation as selectors
from bayplan.adapters.embedded import storage_validation as storage
from bayplan.adapters.embedded.decoding_problems import of_decoding
from bayplan.adapters.embedded.field_validation import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    LABEL_KEY,
    LABEL_VALUE,
    Content,
    is_dns_label,
    is_dns_subdomain,
    is_namespaced,
    kind_of,
)
from bayplan.adapters.embedded.pod_validation import choice, effect, pod_spec, quantities
from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from bayplan.api.objects import (
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    PRIORITY_CLASS,
    STORAGE_CLASS,
    DecodeError,
    Node,
    ObjectMeta,
    Pod,
    PodSpec,
    PriorityClass,
    decode,
)
from bayplan.api.selectors import is_label_key, is_label_value
from bayplan.problems import Problem, joined, wrong

#: Only the two system classes may have a higher value.
HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITY_CLASSES: Mapping[str, int] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")


def identity_problems(content: Any) -> list[Problem]:
    """Problems of the fields that every object must have: apiVersion, kind and a name."""
    if not isinstance(content, dict):
        return [wrong("", content, "an object with apiVersion, kind and metadata")]
    problems: list[Problem] = []
    members = cast(Content, content)
    for name, example in (("apiVersion", "v1"), ("kind", "Pod")):
        value = members.get(name)
        if not isinstance(value, str) or not value:
            problems.append(wrong(name, value, f"a name such as {example}"))
    meta = members.get("metadata")
    if not isinstance(meta, dict):
        return [*problems, wrong("metadata", meta, "a mapping with a name")]
    meta = cast(Content, meta)
    name = meta.get("name") or meta.get("generateName")
    if not isinstance(name, str):
        problems.append(wrong("metadata.name", name, "a name"))
    namespace = meta.get("namespace")
    if namespace is not None and not isinstance(namespace, str):
        problems.append(wrong("metadata.namespace", namespace, DNS_LABEL))
    return problems


def problems(content: Content) -> list[Problem]:
    """Everything that is wrong with an object that has no `identity_problems`."""
    return problems_of_kind(kind_of(content), content)


def problems_of_kind(kind: str, content: Content, before: Content | None = None) -> list[Problem]:
    """`problems` of an object of ``kind``.

    ``before``: the valid version that the object replaces. A pod's spec is not checked again if
    both versions share the spec.
    """
    try:
        decoded: Any = decode(kind, content)
    except DecodeError as failure:
        return [of_decoding(failure, content)]
    wrong_meta = list(_metadata(kind, decoded.metadata))
    if kind == RESOURCE_CLAIM_TEMPLATE:
        return [*wrong_meta, *devices.claim_template(content)]
    if kind == POD and before is not None and before.get("spec") is content.get("spec"):
        return wrong_meta
    check = _CHECKS.get(kind)
    return wrong_meta if check is None else [*wrong_meta, *check(decoded)]


def update_problems(kind: str, old: Content, new: Content) -> list[Problem]:
    """Changes that an update may not make: a pod's node is fixed, and no gate is added."""
    if kind != POD:
        return []
    before, after = old.get("spec") or {}, new.get("spec") or {}
    return [*_moved(before, after), *_new_gates(before, after)]


def _moved(before: Content, after: Content) -> Iterator[Problem]:
    if (after.get("nodeName") or "") != (before.get("nodeName") or ""):
        expected = f"{before.get('nodeName') or 'nothing'}: only a binding says where a pod goes"
        yield wrong("spec.nodeName", after.get("nodeName"), expected)


def _new_gates(before: Content, after: Content) -> Iterator[Problem]:
    names = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    for index, gate in enumerate(after.get("schedulingGates") or ()):
        if gate.get("name") not in names:
            expected = "one of its gates: none can be added after creation"
            yield wrong(f"spec.schedulingGates[{index}].name", gate.get("name"), expected)


# ---- metadata -------------------------------------------------------------------------------


def _metadata(kind: str, meta: ObjectMeta) -> Iterator[Problem]:
    yield from _name(kind, meta)
    if meta.namespace and not is_dns_label(meta.namespace) and is_namespaced(kind):
        yield wrong("metadata.namespace", meta.namespace, DNS_LABEL)
    yield from selectors.labels(meta.labels, "metadata.labels")
    for key in meta.annotations or {}:
        if not is_label_key(key.lower()):
            yield wrong("metadata.annotations", key, LABEL_KEY)


def _name(kind: str, meta: ObjectMeta) -> Iterator[Problem]:
    # A generated name begins with a prefix, which may end in '-'.
    name = meta.name or (meta.generate_name or "").rstrip("-")
    if not name:
        yield wrong("metadata.name", None, "a name")
    elif kind == NAMESPACE:
        if not is_dns_label(name):
            yield wrong("metadata.name", name, DNS_LABEL)
    elif kind in _CHECKS:
        if not is_dns_subdomain(name):
            yield wrong("metadata.name", name, DNS_SUBDOMAIN)
    elif name in (".", "..") or "/" in name or "%" in name:
        yield wrong("metadata.name", name, "a name without '/' and '%'")


# ---- kinds ----------------------------------------------------------------------------------


@final
class _PodCheck:
    """Checks pods, and remembers the last valid spec: equal specs often follow one another."""

    def __init__(self) -> None:
        self._valid: PodSpec | None = None

    def __call__(self, pod: Pod) -> Iterable[Problem]:
        if pod.spec == self._valid:
            return ()
        problems = list(pod_spec(pod.spec, "spec"))
        if not problems:
            self._valid = pod.spec
        return problems


def _node(node: Node) -> Iterator[Problem]:
    yield from quantities(node.status.capacity, "status.capacity")
    yield from quantities(node.status.allocatable, "status.allocatable")
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(node.spec.taints or ()):
        path = f"spec.taints[{index}]"
        yield from selectors.label_key(taint.key, joined(path, "key"))
        if not is_label_value(taint.value or ""):
            yield wrong(joined(path, "value"), taint.value, LABEL_VALUE)
        yield from effect(taint.effect, joined(path, "effect"))
        if (taint.key, taint.effect) in seen:
            yield wrong(path, taint.key, "each key once per effect")
        seen.add((taint.key, taint.effect))


def _priority_class(priority: PriorityClass) -> Iterator[Problem]:
    name = priority.metadata.name
    highest = SYSTEM_PRIORITY_CLASSES.get(name, HIGHEST_USER_PRIORITY)
    if not -(2**31) <= priority.value <= highest:
        yield wrong("value", priority.value, f"at most {highest}")
    yield from choice(priority.preemption_policy, "preemptionPolicy", _PREEMPTION_POLICIES)


def _namespace(_: Any) -> Iterator[Problem]:
    return iter(())


_CHECKS: Mapping[str, Callable[[Any], Iterable[Problem]]] = {
    POD: _PodCheck(),
    NODE: _node,
    NAMESPACE: _namespace,
    PRIORITY_CLASS: _priority_class,
    PERSISTENT_VOLUME: storage.volume,
    PERSISTENT_VOLUME_CLAIM: storage.volume_claim,
    STORAGE_CLASS: storage.storage_class,
    RESOURCE_CLAIM: devices.claim,
    DEVICE_CLASS: devices.device_class,
}
