"""Scenario documents: what happens in a cluster, and when.

    apiVersion: bayplan.dev/v1alpha1
    kind: Scenario
    spec:
      until: 60s                                     # left out: until nothing is left to happen
      podGC: {quarantine: 40s, period: 20s}          # left out: pods go with their node, at once
      recreateAfter: 5s                              # left out: pods come back at once
      expansion: once                                # left out: controllers, in the whole run
      admission: {enable: [ExtendedResourceToleration], disable: [LimitRanger]}
      kubernetesVersion: v1.36.3                     # left out: that of the newest kubelet
      events:
      - at: 0s                                       # 1m30s, 250ms, or seconds without a unit
        create: [whole objects]
        patch: [apiVersion, kind, metadata and, as a JSON merge patch, what changes]
        delete: [{kind: Pod, namespace: default, name: web}]
        evict: [{namespace: default, name: web}]     # a pod, unless its budget refuses
        scale: [{kind: Deployment, namespace: default, name: web, replicas: 5}]
        cordon: [{name: n1}]
        uncordon: [{name: n1}]
        drain: [{name: n1, ignoreDaemonsets: true, deleteEmptyDirData: true, force: true}]

Actions of one moment happen in the order in which they are written. This module only reads a
document into actions; `timeline` applies them to the objects.

Drain, cordon, uncordon, scale and evict are kubectl's verbs: each entry names an object and may
have options. `read_operation` reads such an entry; `timeline` checks whether the object exists.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from bayplan import durations
from bayplan.adapters.embedded.admission.plugin_set import PluginSet, plugin_set
from bayplan.adapters.embedded.field_validation import one_of
from bayplan.adapters.embedded.pod_gc_controller import PodGcTimes
from bayplan.durations import DurationError, parse_duration
from bayplan.objects.keys import DEFAULT_NAMESPACE, Content
from bayplan.problems import BadInputError, Problem, joined, wrong
from bayplan.sim.input.controller_kinds import PODS_MAX
from bayplan.sim.input.errors import InputErrors
from bayplan.sim.input.sources import OWN_API_VERSION, Part
from bayplan.sim.input.workload import DrainOptions, ExpansionMode, Verb

_TOP = ("apiVersion", "kind", "metadata", "spec")
_SPEC = ("until", "podGC", "recreateAfter", "expansion", "admission", "kubernetesVersion", "events")
_ADMISSION = ("enable", "disable")
_MODES = tuple(mode.value for mode in ExpansionMode)
_POD_GC = ("quarantine", "period")
_VERBS = tuple(verb.value for verb in Verb)
_EVENT = ("at", *_VERBS)


class Action(NamedTuple):
    """One entry of the list of a verb, not decoded yet, and its place."""

    at_seconds: float
    verb: Verb
    value: Any
    place: str


class Scenario(NamedTuple):
    """The content of one document."""

    until_seconds: float | None
    actions: list[Action]
    #: When pods of missing nodes are collected; None: not in the document.
    pod_gc: PodGcTimes | None = None
    #: The delay until controllers replace pods that go; None: not in the document.
    recreate_after_seconds: float | None = None
    #: How long controllers act; None: not in the document.
    expansion: ExpansionMode | None = None
    #: The admission plugins of the API server; None: not in the document.
    admission: PluginSet | None = None
    #: The release of the cluster; "": not in the document.
    kubernetes_version: str = ""


def read_scenario(part: Part, errors: InputErrors) -> Scenario:
    """The document's actions in the order in which they are written."""
    reader = _Reader(part, errors)
    return reader.read()


class _Reader:
    """Reads one document and collects its problems."""

    def __init__(self, part: Part, errors: InputErrors) -> None:
        self._part = part
        self._errors = errors

    def read(self) -> Scenario:
        value = self._part.value
        if value.get("apiVersion") != OWN_API_VERSION:
            self._complain(wrong("apiVersion", value.get("apiVersion"), OWN_API_VERSION))
        self._only(value, "", _TOP)
        spec = value.get("spec")
        if not isinstance(spec, dict):
            self._complain(wrong("spec", spec, "a mapping with events"))
            return Scenario(None, [])
        self._only(spec, "spec", _SPEC)
        until = None
        if spec.get("until") is not None:
            until = self._duration(spec["until"], "spec.until")
        pod_gc = None
        if spec.get("podGC") is not None:
            pod_gc = self._pod_gc(spec["podGC"])
        recreate_after = None
        if spec.get("recreateAfter") is not None:
            recreate_after = self._duration(spec["recreateAfter"], "spec.recreateAfter")
        return Scenario(
            until,
            list(self._events(spec.get("events"))),
            pod_gc,
            recreate_after,
            self._expansion(spec.get("expansion")),
            self._admission(spec.get("admission")),
            self._kubernetes_version(spec.get("kubernetesVersion")),
        )

    def _kubernetes_version(self, value: Any) -> str:
        """What the captured API server reports. A server that was built without a version reports
        none that is a release (v0.0.0-master+…): the answers say so, as beside the server."""
        if value is None or isinstance(value, str):
            return value or ""
        self._complain(wrong("spec.kubernetesVersion", value, "a release such as v1.36.3"))
        return ""

    def _admission(self, value: Any) -> PluginSet | None:
        if value is None:
            return None
        path = "spec.admission"
        if not isinstance(value, dict):
            self._complain(wrong(path, value, f"a mapping of {' and '.join(_ADMISSION)}"))
            return None
        self._only(value, path, _ADMISSION)
        names = [self._items(value.get(name), joined(path, name)) for name in _ADMISSION]
        try:
            return plugin_set(*([str(each) for each in listed] for listed in names))
        except BadInputError as problem:
            self._complain(Problem(path, str(problem)))
            return None

    def _expansion(self, value: Any) -> ExpansionMode | None:
        if value is None:
            return None
        if value not in _MODES:
            self._complain(wrong("spec.expansion", value, one_of(_MODES), _MODES))
            return None
        return ExpansionMode(value)

    def _pod_gc(self, value: Any) -> PodGcTimes | None:
        if not isinstance(value, dict):
            self._complain(wrong("spec.podGC", value, f"a mapping of {', '.join(_POD_GC)}"))
            return None
        self._only(value, "spec.podGC", _POD_GC)
        times = [self._duration(value.get(name, 0), f"spec.podGC.{name}") or 0 for name in _POD_GC]
        return PodGcTimes(*times)

    def _events(self, events: Any) -> Iterator[Action]:
        for index, event in enumerate(self._items(events, "spec.events")):
            path = f"spec.events[{index}]"
            if not isinstance(event, dict):
                self._complain(wrong(path, event, f"a mapping of {', '.join(_EVENT)}"))
                continue
            self._only(event, path, _EVENT)
            at = self._duration(event.get("at"), joined(path, "at"))
            # The verbs of one event are applied in the order in which they are written.
            for name, items in event.items():
                if name in _VERBS:
                    yield from self._actions(at, Verb(name), items, joined(path, name))

    def _actions(self, at: float | None, verb: Verb, items: Any, path: str) -> Iterator[Action]:
        for index, item in enumerate(self._items(items, path)):
            place = f"{self._part.place}: {path}[{index}]"
            yield Action(at or 0.0, verb, item, place)

    def _items(self, value: Any, path: str) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, list):
            self._complain(wrong(path, value, "a list"))
            return []
        return value

    def _duration(self, value: Any, path: str) -> float | None:
        try:
            return parse_duration(value)
        except DurationError:
            self._complain(wrong(path, value, durations.DESCRIPTION))
            return None

    def _only(self, mapping: dict[str, Any], path: str, names: tuple[str, ...]) -> None:
        for name in mapping:
            if name not in names:
                self._complain(wrong(path, str(name), one_of(names), names))

    def _complain(self, problem: Problem) -> None:
        self._errors.add(self._part.place, problem)


# ---- entries of kubectl's verbs -------------------------------------------------------------


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
