"""RuntimeClass: the class of a pod's runtime adds overhead, a node selector and tolerations.

Upstream: plugin/pkg/admission/runtimeclass, pkg/util/tolerations.
"""

from collections.abc import Mapping
from typing import cast, final

from bayplan.adapters.embedded.admission.plugin import AdmissionPlugin
from bayplan.adapters.embedded.api_errors import ForbiddenError
from bayplan.adapters.embedded.versioned_store import VersionedStore
from bayplan.api.admission_objects import RUNTIME_CLASS
from bayplan.api.objects import NO_EXECUTE, POD, ApiObject, Pod
from bayplan.api.quantity import Quantity, nanos
from bayplan.objects.keys import Content, ObjectKey

_REJECTED = "pod rejected: "
_MISMATCH = f"{_REJECTED}Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_WITHOUT_CLASS = f"{_REJECTED}Pod Overhead set without corresponding RuntimeClass defined Overhead"


@final
class RuntimeClassAdmission(AdmissionPlugin):
    """See the module."""

    name = "RuntimeClass"
    changed_kinds = (POD,)
    refused_kinds = (POD,)
    read_kinds = (RUNTIME_CLASS,)

    def __init__(self, store: VersionedStore) -> None:
        self._store = store

    def admit(self, key: ObjectKey, content: Content) -> Content:
        spec = content["spec"]
        name = spec.get("runtimeClassName")
        if name is None:
            return content
        runtime = self._store.get(ObjectKey(RUNTIME_CLASS, "", name))
        if runtime is None:
            raise ForbiddenError(key, f'{_REJECTED}RuntimeClass "{name}" not found')
        overhead = _overhead(runtime.content)
        if overhead is not None:
            if spec.get("overhead") and not _are_equal(spec["overhead"], overhead):
                raise ForbiddenError(key, _MISMATCH)
            spec = {**spec, "overhead": overhead}
        scheduling = runtime.content.get("scheduling")
        if scheduling is not None:
            spec = _scheduled(key, spec, scheduling)
        return {**content, "spec": spec}

    def validate(self, key: ObjectKey, content: Content, decoded: ApiObject) -> None:
        spec = cast(Pod, decoded).spec
        if spec.overhead is None and spec.runtime_class_name is None:
            return
        name = spec.runtime_class_name
        runtime = None if name is None else self._store.get(ObjectKey(RUNTIME_CLASS, "", name))
        overhead = None if runtime is None else _overhead(runtime.content)
        if overhead is None and spec.overhead is not None:
            raise ForbiddenError(key, _WITHOUT_CLASS)
        if overhead is not None and not _are_equal(spec.overhead or {}, overhead):
            raise ForbiddenError(key, _MISMATCH)


def _overhead(runtime: Content) -> Content | None:
    """The amounts that a class adds; None: the class has no overhead."""
    overhead = runtime.get("overhead")
    return None if overhead is None else overhead.get("podFixed") or {}


def _are_equal(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> bool:
    return {name: nanos(q) for name, q in one.items()} == {n: nanos(q) for n, q in other.items()}


def _scheduled(key: ObjectKey, spec: Content, scheduling: Content) -> Content:
    """The spec with the node selector and the tolerations of the class. Raises ForbiddenError."""
    selector = dict(spec.get("nodeSelector") or {})
    for label, value in sorted((scheduling.get("nodeSelector") or {}).items()):
        own = selector.get(label, value)
        if own != value:
            raise ForbiddenError(
                key,
                f"conflict: runtimeClass.scheduling.nodeSelector[{label}] = {value}; "
                f"pod.spec.nodeSelector[{label}] = {own}",
            )
        selector[label] = value
    merged = merged_tolerations(spec.get("tolerations") or [], scheduling.get("tolerations") or [])
    added = {"nodeSelector": selector} if selector else {}
    return {**spec, **added, "tolerations": merged}


def merged_tolerations(first: list[Content], second: list[Content]) -> list[Content]:
    """Both lists without tolerations that another one includes."""
    both = [*first, *second]
    merged: list[Content] = []
    for index, one in enumerate(both):
        later = (other for other in both[index + 1 :] if not _are_same(one, other))
        if any(_includes(other, one) for other in (*merged, *later)):
            continue
        merged.append(one)
    return merged


def _are_same(one: Content, other: Content) -> bool:
    return all(_part(one, name) == _part(other, name) for name in {*one, *other})


def _part(toleration: Content, name: str) -> object:
    """A field of a toleration; "" and an absent field are the same."""
    value = toleration.get(name)
    return None if value == "" else value


def _includes(wide: Content, narrow: Content) -> bool:
    """Whether a toleration tolerates all that another one tolerates."""
    if _are_same(wide, narrow):
        return True
    operator = wide.get("operator") or ""
    key = wide.get("key") or ""
    if (narrow.get("key") or "") != key and (key or operator != "Exists"):
        return False
    effect = wide.get("effect") or ""
    if effect and (narrow.get("effect") or "") != effect:
        return False
    if effect == NO_EXECUTE and wide.get("tolerationSeconds") is not None:
        seconds = narrow.get("tolerationSeconds")
        if seconds is None or seconds > wide["tolerationSeconds"]:
            return False
    if operator in ("", "Equal"):
        is_equal = (narrow.get("value") or "") == (wide.get("value") or "")
        return narrow.get("operator") == "Equal" and is_equal
    return operator == "Exists"
