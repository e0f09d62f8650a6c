"""Validation of objects: the problems for which the API server refuses an object.

Only kinds that decide a placement are checked. Fields and kinds that no scheduler reads are
accepted, for objects that a cluster prints are full of them. Fields that are present must be valid;
most missing fields are accepted, for objects in tests and scenarios contain only the fields that
matter there. If a field has a value of the wrong type, the decoder reports it (`of_decoding`), and
the object is not checked further.

Upstream, for devices: pkg/apis/resource/validation. The specs of pods are checked in
pod_validation.py, their resources in resource_validation.py, selectors in selector_validation.py.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast, final

from bayplan.adapters.embedded import field_validation, policy_validation
from bayplan.adapters.embedded import selector_validation as selectors
from bayplan.adapters.embedded.field_errors import (
    dns_subdomain,
    forbidden,
    invalid,
    key_path,
    qualified_name,
    required,
)
from bayplan.adapters.embedded.pod_validation import choice, effect, pod_spec
from bayplan.adapters.embedded.resource_validation import (
    quantities,
    unreadable,
    unreadable_resources,
)
from bayplan.api.admission_objects import (
    LIMIT_RANGE,
    RESOURCE_QUOTA,
    RUNTIME_CLASS,
)
from bayplan.api.amounts import canonical
from bayplan.api.device_objects import (
    ALL_DEVICES,
    DEVICE_CLASS,
    EXACT_COUNT,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from bayplan.api.device_selectors import CelError, compile_selector
from bayplan.api.objects import (
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    PREEMPTION_POLICIES,
    PRIORITY_CLASS,
    STORAGE_CLASS,
    DecodeError,
    Node,
    ObjectMeta,
    Pod,
    PodSpec,
    PriorityClass,
    Quantities,
    decode,
    decoded_kinds,
)
from bayplan.api.quantity import parse
from bayplan.api.selectors import is_label_key, is_label_value
from bayplan.api.storage_objects import (
    FILESYSTEM,
    READ_WRITE_ONCE_POD,
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.objects.keys import Content, is_namespaced, kind_of
from bayplan.problems import Problem, joined, not_a_text, shown, wrong

# ---- values of the wrong type ---------------------------------------------------------------


_MSGSPEC_PLACE = re.compile(r"(?P<said>.*?)(?: - at `(?P<path>[^`]*)`)?")
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<found>[^`]*)`")
_BOUND = re.compile(r"Expected `int` (?P<sign><=|>=) (?P<limit>-?\d+)")
_TYPE_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "a mapping",
    "str": "a string",
}
_TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    dict: "object",
    float: "float",
    int: "int",
    list: "array",
    str: "str",
}


def of_decoding(failure: DecodeError, content: Any) -> Problem:
    """A problem for a field of the wrong type, from the message of the decoder."""
    message = str(failure).partition(": ")[2]
    parts = _MSGSPEC_PLACE.fullmatch(message.replace("\n", " "))
    assert parts is not None
    path = (parts["path"] or "").rpartition("$")[2].removeprefix(".")
    expected = _EXPECTED.search(parts["said"])
    if expected is None and (bound := _BOUND.search(parts["said"])) is not None:
        path, value = _culprit(content, path, lambda each: not _fits(each))
        text = "a number" if isinstance(value, dict | list) or value is None else shown(value)
        return Problem(
            path, f"found {text}, wanted a whole number {bound['sign']} {bound['limit']}"
        )
    if expected is None:
        return Problem(path, parts["said"])
    types = [word for word in expected["wanted"].split(" | ") if word != "null"]
    path, value = _culprit(content, path, lambda each: _TYPE_NAMES.get(type(each)) not in types)
    if types == ["str"] and value is not None:
        return not_a_text(path, value)
    text = shown(value) if value is not None else _TYPE_WORDS.get(expected["found"], "nothing")
    expected_types = " or ".join(_TYPE_WORDS.get(word, word) for word in types)
    return Problem(path, f"found {text}, wanted {expected_types}")


def _fits(value: Any) -> bool:
    """Whether a number has 64 bits."""
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _culprit(content: Any, path: str, is_wrong: Callable[[Any], bool]) -> tuple[str, Any]:
    """(path, value) of the wrong field. For members of a mapping, the decoder does not name the
    key."""
    if not path.endswith("[...]"):
        return path, _value_at(content, path)
    path = path.removesuffix("[...]")
    members = _value_at(content, path)
    if isinstance(members, dict):
        for name, value in members.items():
            if is_wrong(value):
                return joined(path, str(name)), value
    return path, members


def _value_at(content: Any, path: str) -> Any:
    """The value at a decoder's path; None if the path cannot be followed."""
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        if isinstance(content, dict) and name in content:
            content = content[name]
        elif isinstance(content, list) and index and int(index) < len(content):
            content = content[int(index)]
        else:
            return None
    return content


# ---- claims of devices, their templates and classes -----------------------------------------


ALLOCATION_MODES = (EXACT_COUNT, ALL_DEVICES)


def _claim(claim: ResourceClaim) -> Iterator[Problem]:
    return _devices(claim.spec.devices, "spec.devices")


def _unreadable_template(content: Content) -> list[Problem]:
    """A template itself is not decoded; the spec of its claims is."""
    spec = content.get("spec")
    inner: Any = spec.get("spec", {}) if isinstance(spec, dict) else None
    if not isinstance(inner, dict):
        return [wrong("spec.spec", inner, "the spec of the claims that it makes")]
    claim: Content = {"metadata": {}, "spec": inner}
    try:
        decode(RESOURCE_CLAIM, claim)
    except DecodeError as failure:
        return [of_decoding(failure, claim).under("spec")]
    return []


def _claim_template(content: Content) -> Iterator[Problem]:
    unreadable = _unreadable_template(content)
    yield from unreadable
    if not unreadable:
        claim: Content = {"metadata": {}, "spec": content["spec"].get("spec", {})}
        for problem in _claim(cast(ResourceClaim, decode(RESOURCE_CLAIM, claim))):
            yield problem.under("spec")


def _device_class(device_class: DeviceClass) -> Iterator[Problem]:
    return _selectors(device_class.spec.selectors, "spec.selectors")


def _devices(devices: DeviceClaim, path: str) -> Iterator[Problem]:
    names: set[str] = set()
    for index, request in enumerate(devices.requests or ()):
        place = f"{path}.requests[{index}]"
        if request.name in names:
            yield wrong(joined(place, "name"), request.name, "each name once")
        names.add(request.name)
        names.update(f"{request.name}/{each.name}" for each in request.first_available or ())
        yield from _request(request, place)
    for index, constraint in enumerate(devices.constraints or ()):
        yield from _constraint(constraint, names, f"{path}.constraints[{index}]")


def _request(request: DeviceRequest, path: str) -> Iterator[Problem]:
    yield from _label(request.name, joined(path, "name"))
    if (request.exactly is None) == (not request.first_available):
        value = "both" if request.exactly is not None else None
        yield wrong(path, value, "one of exactly and firstAvailable")
    if request.exactly is not None:
        yield from _device_request(request.exactly, joined(path, "exactly"))
    for index, each in enumerate(request.first_available or ()):
        place = f"{path}.firstAvailable[{index}]"
        yield from _label(each.name, joined(place, "name"))
        yield from _device_request(each, place)


def _device_request(request: ExactDeviceRequest | DeviceSubRequest, path: str) -> Iterator[Problem]:
    name = request.device_class_name
    if not field_validation.is_dns_subdomain(name):
        yield wrong(joined(path, "deviceClassName"), name or None, field_validation.DNS_SUBDOMAIN)
    # An absent count means one device; the default is set later.
    mode = request.allocation_mode or None
    yield from choice(mode, joined(path, "allocationMode"), ALLOCATION_MODES)
    if request.count < 0 or (mode == EXACT_COUNT and not request.count):
        yield wrong(joined(path, "count"), request.count, "more than nothing")
    elif mode == ALL_DEVICES and request.count:
        yield wrong(
            joined(path, "count"), request.count, f"nothing beside allocationMode {ALL_DEVICES}"
        )
    yield from _selectors(request.selectors, joined(path, "selectors"))
    if request.capacity is not None:
        yield from quantities(request.capacity.requests, joined(path, "capacity.requests"))


def _selectors(selectors: Iterable[DeviceSelector] | None, path: str) -> Iterator[Problem]:
    for index, each in enumerate(selectors or ()):
        place = f"{path}[{index}].cel.expression"
        expression = each.cel.expression if each.cel is not None else ""
        compiled = compile_selector(expression) if expression else None
        if compiled is None:
            yield wrong(place, None, "an expression about a device")
        elif isinstance(compiled, CelError):
            why = str(compiled).splitlines()[0]
            yield wrong(place, expression, f"an expression about a device ({why})")


def _constraint(constraint: DeviceConstraint, names: set[str], path: str) -> Iterator[Problem]:
    field, name = "matchAttribute", constraint.match_attribute
    if name is None:
        field, name = "distinctAttribute", constraint.distinct_attribute
    if name is None:
        yield wrong(path, None, "one of matchAttribute and distinctAttribute")
    elif "/" not in (name or constraint.distinct_attribute or ""):
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        yield invalid(joined(path, field), name, detail)
    for index, name in enumerate(constraint.requests or ()):
        if name not in names:
            place = f"{path}.requests[{index}]"
            yield wrong(place, name, "the name of a request of the claim", sorted(names))


def _label(name: str, path: str) -> Iterator[Problem]:
    if not field_validation.is_dns_label(name):
        yield wrong(path, name or None, field_validation.DNS_LABEL)


# ---- volumes, claims and storage classes ----------------------------------------------------


ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", READ_WRITE_ONCE_POD)
VOLUME_MODES = ("Block", FILESYSTEM)
BINDING_MODES = ("Immediate", WAIT_FOR_FIRST_CONSUMER)


def claim_spec_problems(spec: Any, path: str) -> list[Problem]:
    """Problems of the spec of a claim that a controller makes, at ``path``."""
    content: Content = {"metadata": {}, "spec": spec}
    try:
        claim = cast(PersistentVolumeClaim, decode(PERSISTENT_VOLUME_CLAIM, content))
    except DecodeError as failure:
        problems = [of_decoding(failure, content)]
    else:
        problems = list(_volume_claim(claim))
    return [Problem(f"{path}{p.path.removeprefix('spec')}", p.actual, p.expected) for p in problems]


def _volume_claim(claim: PersistentVolumeClaim) -> Iterator[Problem]:
    spec = claim.spec
    yield from _access_modes(spec.access_modes)
    yield from selectors.label_selector(spec.selector, "spec.selector")
    yield from _storage(spec.resources.requests, "spec.resources.requests", "spec.resources")
    yield from _storage_name(spec.storage_class_name, "spec.storageClassName")
    yield from choice(spec.volume_mode, "spec.volumeMode", VOLUME_MODES)


def _volume(volume: PersistentVolume) -> Iterator[Problem]:
    spec = volume.spec
    yield from _access_modes(spec.access_modes)
    yield from _storage(spec.capacity, "spec.capacity", "spec.capacity")
    yield from _storage_name(spec.storage_class_name, "spec.storageClassName")
    yield from choice(spec.volume_mode, "spec.volumeMode", VOLUME_MODES)
    if spec.node_affinity is not None:
        path = "spec.nodeAffinity.required"
        yield from selectors.node_selector(spec.node_affinity.required, path)


def _storage_class(storage_class: StorageClass) -> Iterator[Problem]:
    if storage_class.provisioner:
        yield from qualified_name(storage_class.provisioner.lower(), "provisioner")
    yield from choice(storage_class.reclaim_policy, "reclaimPolicy", ("Delete", "Retain"))
    yield from choice(storage_class.volume_binding_mode, "volumeBindingMode", BINDING_MODES)
    for index, term in enumerate(storage_class.allowed_topologies or ()):
        for number, one in enumerate(term.match_label_expressions or ()):
            path = f"allowedTopologies[{index}].matchLabelExpressions[{number}]"
            if not one.values:
                yield required(f"{path}.values")
            yield from qualified_name(one.key, f"{path}.key")


def _access_modes(modes: tuple[str, ...] | None) -> Iterator[Problem]:
    for mode in modes or ():
        yield from choice(mode, "spec.accessModes", ACCESS_MODES)
    if len(modes or ()) > 1 and READ_WRITE_ONCE_POD in (modes or ()):
        detail = f"may not use {READ_WRITE_ONCE_POD} with other access modes"
        yield forbidden("spec.accessModes", detail)


def _storage(amounts: Quantities | None, path: str, place: str) -> Iterator[Problem]:
    """``place``: where upstream says that the amount of storage is."""
    problems = list(unreadable(amounts, path))
    yield from problems
    for name, amount in (amounts or {}).items() if not problems else ():
        if name == STORAGE and parse(amount) <= 0:
            yield invalid(key_path(place, name), canonical(amount), "must be greater than zero")


def _storage_name(name: str | None, path: str) -> Iterator[Problem]:
    if name:
        yield from dns_subdomain(name, path)


# ---- all kinds ------------------------------------------------------------------------------


#: Only the two system classes may have a higher value.
HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITY_CLASSES: Mapping[str, int] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_SYSTEM_PREFIX = "system-"


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
        problems.append(not_a_text("metadata.name", name, "a name"))
    namespace = meta.get("namespace")
    if namespace is not None and not isinstance(namespace, str):
        problems.append(not_a_text("metadata.namespace", namespace, field_validation.DNS_LABEL))
    return problems


def problems(content: Content) -> list[Problem]:
    """Everything that is wrong with an object that has no `identity_problems`."""
    return problems_of_kind(kind_of(content), content)


def unreadable_problems(kind: str, content: Content) -> list[Problem]:
    """Values of the wrong type, and quantities that are none: nothing can be said about such an
    object, whether a server has stored it or not."""
    try:
        decoded: Any = decode(kind, content)
    except DecodeError as failure:
        return [of_decoding(failure, content)]
    if kind == RESOURCE_CLAIM_TEMPLATE:
        return _unreadable_template(content)
    quantities = _UNREADABLE.get(kind)
    return [] if quantities is None else list(quantities(decoded))


def _unreadable_node(node: Node) -> Iterator[Problem]:
    yield from unreadable(node.status.capacity, "status.capacity")
    yield from unreadable(node.status.allocatable, "status.allocatable")


_UNREADABLE: Mapping[str, Callable[[Any], Iterator[Problem]]] = {
    POD: lambda pod: unreadable_resources(pod.spec, "spec"),
    NODE: _unreadable_node,
    LIMIT_RANGE: policy_validation.unreadable_limits,
    RESOURCE_QUOTA: lambda quota: unreadable(quota.spec.hard, "spec.hard"),
    RUNTIME_CLASS: policy_validation.unreadable_overhead,
    PERSISTENT_VOLUME: lambda volume: unreadable(volume.spec.capacity, "spec.capacity"),
    PERSISTENT_VOLUME_CLAIM: lambda claim: unreadable(
        claim.spec.resources.requests, "spec.resources.requests"
    ),
}


def problems_of_kind(
    kind: str, content: Content, before: Content | None = None, *, is_new: bool = True
) -> list[Problem]:
    """`problems` of an object of ``kind``.

    ``before``: the valid version that the object replaces. A pod's spec is not checked again if
    both versions share the spec. ``is_new``: False for an object that a server has stored before.
    """
    shares_spec = kind == POD and before is not None and before.get("spec") is content.get("spec")
    parts = content
    if shares_spec:
        parts = {name: part for name, part in content.items() if name != "spec"}
    try:
        decoded: Any = decode(kind, parts)
    except DecodeError as failure:
        return [of_decoding(failure, content)]
    wrong_meta = list(_metadata(kind, decoded.metadata))
    if kind == RESOURCE_CLAIM_TEMPLATE:
        return [*wrong_meta, *_claim_template(content)]
    if shares_spec:
        return wrong_meta
    if kind == POD:
        return [*wrong_meta, *_check_pod(decoded, is_new=is_new and before is None)]
    check = _CHECKS.get(kind)
    return wrong_meta if check is None else [*wrong_meta, *check(decoded)]


def problems_of_new_pod(pod: Pod, *, is_new: bool) -> list[Problem]:
    """Problems of a pod with all defaults; see `problems_of_kind`."""
    return [*_metadata(POD, pod.metadata), *_check_pod(pod, is_new=is_new)]


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
    yield from _finalizers(kind, meta.finalizers or ())
    if meta.namespace and not field_validation.is_dns_label(meta.namespace) and is_namespaced(kind):
        yield wrong("metadata.namespace", meta.namespace, field_validation.DNS_LABEL)
    yield from selectors.labels(meta.labels, "metadata.labels")
    for key in meta.annotations or {}:
        if not is_label_key(key.lower()):
            yield wrong("metadata.annotations", key, field_validation.LABEL_KEY)


def _name(kind: str, meta: ObjectMeta) -> Iterator[Problem]:
    # A generated name begins with a prefix, which may end in '-'.
    name = meta.name or (meta.generate_name or "").rstrip("-")
    if not name:
        yield wrong("metadata.name", None, "a name")
    elif kind == NAMESPACE:
        if not field_validation.is_dns_label(name):
            yield wrong("metadata.name", name, field_validation.DNS_LABEL)
    elif kind in _NAMED_BY_SUBDOMAINS:
        if not field_validation.is_dns_subdomain(name):
            yield wrong("metadata.name", name, field_validation.DNS_SUBDOMAIN)
    elif name in (".", "..") or "/" in name or "%" in name:
        yield wrong("metadata.name", name, "a name without '/' and '%'")


def _finalizers(kind: str, finalizers: tuple[str, ...]) -> Iterator[Problem]:
    """Upstream: ValidateFinalizers; pkg/apis/core/validation, ValidateFinalizerName."""
    for index, name in enumerate(finalizers):
        yield from qualified_name(name, "metadata.finalizers")
        is_known = kind in _NAMED_BY_SUBDOMAINS or kind.startswith(("apps/", "batch/"))
        if is_known and "/" not in name and name not in _FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{index}]", name, detail)


#: Finalizers without a domain.
_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
#: A budget may have any name, and so may kinds that nobody reads.
_NAMED_BY_SUBDOMAINS = decoded_kinds() - {POD_DISRUPTION_BUDGET} | {RESOURCE_CLAIM_TEMPLATE}


# ---- kinds ----------------------------------------------------------------------------------


@final
class _PodCheck:
    """Checks pods, and remembers the last valid spec: equal specs often follow one another."""

    def __init__(self) -> None:
        self._valid: tuple[PodSpec, bool] | None = None

    def __call__(self, pod: Pod, *, is_new: bool = True) -> Iterable[Problem]:
        if self._valid == (pod.spec, is_new) and not pod.spec.volumes:
            return ()
        name = pod.metadata.name
        problems = list(pod_spec(pod.spec, "spec", pod_name=name, is_new=is_new))
        if not problems:
            self._valid = (pod.spec, is_new)
        return problems


@final
class _NodeCheck:
    """Checks nodes, and remembers the last valid parts: equal nodes often follow one another."""

    def __init__(self) -> None:
        self._valid: tuple[object, ...] | None = None

    def __call__(self, node: Node) -> Iterable[Problem]:
        parts = (node.status.capacity, node.status.allocatable, node.spec.taints)
        if parts == self._valid:
            return ()
        problems = list(_node(node))
        if not problems:
            self._valid = parts
        return problems


def _node(node: Node) -> Iterator[Problem]:
    yield from quantities(node.status.capacity, "status.capacity")
    yield from quantities(node.status.allocatable, "status.allocatable")
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(node.spec.taints or ()):
        path = f"spec.taints[{index}]"
        yield from qualified_name(taint.key, joined(path, "key"))
        if not is_label_value(taint.value or ""):
            yield wrong(joined(path, "value"), taint.value, field_validation.LABEL_VALUE)
        yield from effect(taint.effect, joined(path, "effect"))
        if (taint.key, taint.effect) in seen:
            yield wrong(path, taint.key, "each key once per effect")
        seen.add((taint.key, taint.effect))


def _priority_class(priority: PriorityClass) -> Iterator[Problem]:
    name = priority.metadata.name
    if name.startswith(_SYSTEM_PREFIX) and name not in SYSTEM_PRIORITY_CLASSES:
        detail = f"priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system use"
        yield forbidden("metadata.name", f"{detail} only")
    highest = SYSTEM_PRIORITY_CLASSES.get(name, HIGHEST_USER_PRIORITY)
    if not -(2**31) <= priority.value <= highest:
        yield wrong("value", priority.value, f"at most {highest}")
    yield from choice(priority.preemption_policy, "preemptionPolicy", PREEMPTION_POLICIES)


def _namespace(_: Any) -> Iterator[Problem]:
    return iter(())


_check_pod = _PodCheck()
_CHECKS: Mapping[str, Callable[[Any], Iterable[Problem]]] = {
    POD: _check_pod,
    NODE: _NodeCheck(),
    NAMESPACE: _namespace,
    PRIORITY_CLASS: _priority_class,
    LIMIT_RANGE: policy_validation.limit_range,
    RESOURCE_QUOTA: policy_validation.resource_quota,
    RUNTIME_CLASS: policy_validation.runtime_class,
    POD_DISRUPTION_BUDGET: policy_validation.disruption_budget,
    PERSISTENT_VOLUME: _volume,
    PERSISTENT_VOLUME_CLAIM: _volume_claim,
    STORAGE_CLASS: _storage_class,
    RESOURCE_CLAIM: _claim,
    DEVICE_CLASS: _device_class,
}
