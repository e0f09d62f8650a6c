"""The verbs of a scenario that kubectl has: drain, cordon, uncordon, scale, evict.

Each entry names an object and may have options. This module reads an entry; `timeline` checks
whether the object exists.
"""

from typing import Any, NamedTuple, cast

from bayplan.adapters.embedded.field_validation import DEFAULT_NAMESPACE, Content, one_of
from bayplan.problems import Problem, wrong
from bayplan.sim.input.controller_kinds import PODS_MAX
from bayplan.sim.input.scenario import Action
from bayplan.sim.input.workload import DrainOptions, Verb


class ObjectName(NamedTuple):
    """The object that an entry names; apiVersion may be empty."""

    api_version: str
    kind: str
    namespace: str
    name: str


class Operation(NamedTuple):
    """One entry of one of these verbs."""

    name: ObjectName
    #: The changes of the object as a JSON merge patch; empty: no change.
    patch: Content
    #: The options of a drain, by the names of `DrainOptions` in a scenario.
    options: Content


#: The kinds with a number of replicas.
_SCALABLE = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
#: The kinds that each verb takes. If there is one kind only, the entry need not name it.
_KINDS = {
    Verb.DRAIN: ("Node",),
    Verb.CORDON: ("Node",),
    Verb.UNCORDON: ("Node",),
    Verb.EVICT: ("Pod",),
    Verb.SCALE: _SCALABLE,
}
_FLAGS = tuple(DrainOptions.__struct_encode_fields__)
_OPTIONS = {Verb.DRAIN: _FLAGS, Verb.SCALE: ("replicas",)}
_IDENTITY = ("apiVersion", "kind", "metadata", "namespace", "name")


def read_operation(action: Action) -> Operation | Problem:
    """The operation of an entry, or the problem of the entry."""
    verb, value, kinds = action.verb, action.value, _KINDS[action.verb]
    if isinstance(value, dict) and len(kinds) == 1:
        value = {"kind": kinds[0], **value}
    named = name_of(value)
    if isinstance(named, Problem):
        return named
    if named.kind not in kinds:
        expected = one_of(kinds) if len(kinds) > 1 else kinds[0]
        return wrong("kind", named.kind, expected, kinds)
    options = _OPTIONS.get(verb, ())
    valid = (*_IDENTITY, *options)
    for field in value:
        if field not in valid:
            return wrong("", str(field), one_of(valid), valid)
    if verb is Verb.SCALE:
        return _scale(named, value)
    for flag in options:
        if not isinstance(value.get(flag, False), bool):
            return wrong(flag, value[flag], "true or false")
    flags = {flag: value[flag] for flag in options if flag in value}
    patch = {} if verb is Verb.EVICT else {"spec": {"unschedulable": verb is not Verb.UNCORDON}}
    return Operation(named, patch, flags)


def _scale(named: ObjectName, value: Content) -> Operation | Problem:
    replicas = value.get("replicas")
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        return wrong("replicas", replicas, f"a number from 0 to {PODS_MAX}")
    if not 0 <= replicas <= PODS_MAX:
        return wrong("replicas", replicas, f"a number from 0 to {PODS_MAX}")
    return Operation(named, {"spec": {"replicas": replicas}}, {})


def name_of(value: Any) -> ObjectName | Problem:
    """The name in an entry: as in an object, or flat as in deletions."""
    if not isinstance(value, dict):
        return wrong("", value, "a mapping with kind and name")
    content = cast(Content, value)
    meta: Any = content.get("metadata")
    if not isinstance(meta, dict):
        meta = content
    names = {
        "apiVersion": content.get("apiVersion") or "",
        "kind": content.get("kind"),
        "namespace": meta.get("namespace") or DEFAULT_NAMESPACE,
        "name": meta.get("name"),
    }
    for field, one in names.items():
        if not isinstance(one, str) or (field in ("kind", "name") and not one):
            return wrong(field, one, "a name")
    return ObjectName(*cast("tuple[str, str, str, str]", tuple(names.values())))
