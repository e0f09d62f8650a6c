"""WhatIf documents: changes of a cluster, for `bayplan whatif`, Python and scenario files.

    apiVersion: bayplan.dev/v1alpha1
    kind: WhatIf
    metadata: {name: replace-n7}
    spec:
      until: 10m                                   # left out: until nothing is left to happen
      add: [{count: 3, like: n9}]                  # new nodes, each as n9 is
      uncordon: [n5]
      apply: [whole objects, or the changed parts of objects that exist]
      scale: [{kind: Deployment, namespace: default, name: web, replicas: 20}]
      cordon: [n6]
      remove: [n8]                                 # the node is gone, and its pods with it
      drain: [n7]                                  # the pods are evicted, as budgets allow

The changes happen at one moment, in this order: capacity comes before the pods that need it, and
nodes go last. A document is only read here; the timeline says what the changes mean.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Annotated, Any, dataclass_transform, final

import msgspec
from msgspec import Meta, Struct, field

from bayplan import durations
from bayplan.adapters.embedded.json_merge import difference
from bayplan.adapters.embedded.kubectl_apply import applied
from bayplan.api.device_objects import RESOURCE_SLICE
from bayplan.api.objects import CSI_NODE, DAEMON_SET, HOSTNAME_LABEL, NODE, POD
from bayplan.config.decoding import decode
from bayplan.durations import DurationError, parse_duration
from bayplan.objects.keys import DEFAULT_NAMESPACE, key_of, object_key
from bayplan.objects.pools import is_broken, names_of_copies, objects_of_copy
from bayplan.objects.workloads import (
    WORKLOAD_SPELLINGS,
    controller_reference,
    spelling_without_group,
)
from bayplan.problems import BadInputError, Problem, suggestion, wrong
from bayplan.sim.input.controller_kinds import SCALED_KINDS
from bayplan.sim.input.controller_pods import daemon_copy
from bayplan.sim.input.errors import InputErrors
from bayplan.sim.input.object_checks import ObjectIndex
from bayplan.sim.input.scenario import Action
from bayplan.sim.input.sources import OWN_API_VERSION, WHAT_IF
from bayplan.sim.input.workload import Content, Verb

#: More new nodes than the largest clusters have are a typing error.
NODES_MAX = 100_000
_REPLICAS_MAX = 1_000_000

#: The spellings of the workloads that have replicas.
_SCALED = {word: kind for word, kind in WORKLOAD_SPELLINGS.items() if kind in SCALED_KINDS}
_SCALE = re.compile(r"(?P<kind>[A-Za-z][A-Za-z0-9.]*)/(?P<name>[^/=]+)=(?P<replicas>\d{1,7})")
_SCALE_EXPECTED = "KIND/NAME=REPLICAS, as in deploy/web=20"


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The base of all parts of the document."""


@final
class NewNodes(_Part):
    """Nodes to add: copies of a node, without its pods and its conditions."""

    #: The name of a node that exists.
    template: str = field(name="like")
    count: Annotated[int, Meta(ge=1, le=NODES_MAX)] = 1

    def names(self, is_taken: Callable[[str], bool]) -> Iterator[str]:
        """The names of the new nodes. ``is_taken``: whether a node has the name."""
        return islice(names_of_copies(self.template, is_taken), self.count)


@final
class Scaling(_Part):
    """A workload and the number of its replicas."""

    kind: str
    name: str
    replicas: Annotated[int, Meta(ge=0, le=_REPLICAS_MAX)]
    namespace: str = DEFAULT_NAMESPACE


@final
class WhatIf(_Part):
    """Changes of a cluster, which happen at one moment. See the module for their order."""

    until: str | float | None = None
    add: tuple[NewNodes, ...] = ()
    uncordon: tuple[str, ...] = ()
    apply: tuple[dict[str, Any], ...] = ()
    scale: tuple[Scaling, ...] = ()
    cordon: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()

    @property
    def until_seconds(self) -> float | None:
        """When to stop; None: when nothing is left to happen."""
        return None if self.until is None else parse_duration(self.until)

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        changes = (self.add, self.uncordon, self.apply, self.scale)
        return not any((*changes, self.cordon, self.remove, self.drain))

    def joined_with(self, other: "WhatIf") -> "WhatIf":
        """All changes of both."""
        return WhatIf(
            until=other.until if self.until is None else self.until,
            add=(*self.add, *other.add),
            uncordon=(*self.uncordon, *other.uncordon),
            apply=(*self.apply, *other.apply),
            scale=(*self.scale, *other.scale),
            cordon=(*self.cordon, *other.cordon),
            remove=(*self.remove, *other.remove),
            drain=(*self.drain, *other.drain),
        )

    def document(self) -> dict[str, Any]:
        """The document as plain values."""
        spec = msgspec.to_builtins(self)
        defaults: dict[str, Any] = msgspec.to_builtins(WhatIf())
        changed = {name: value for name, value in spec.items() if value != defaults[name]}
        return {"apiVersion": OWN_API_VERSION, "kind": WHAT_IF, "spec": changed}


class _Metadata(_Part):
    name: str = ""


class _Document(_Part):
    spec: WhatIf
    api_version: str = OWN_API_VERSION
    kind: str = WHAT_IF
    metadata: _Metadata = _Metadata()


def decode_what_if(value: dict[str, Any]) -> tuple[WhatIf, list[Problem]]:
    """The changes of a document, without its wrong parts, and its problems."""
    document, problems = decode(value, _Document, "")
    if document is None:
        return WhatIf(), problems
    if document.api_version != OWN_API_VERSION:
        problems.append(wrong("apiVersion", document.api_version, OWN_API_VERSION))
    spec = document.spec
    try:
        _ = spec.until_seconds
    except DurationError:
        problems.append(wrong("spec.until", spec.until, durations.DESCRIPTION))
        spec = msgspec.structs.replace(spec, until=None)
    for index, scaling in enumerate(spec.scale):
        if scaling.kind not in SCALED_KINDS:
            path, expected = f"spec.scale[{index}].kind", "a kind that has replicas"
            problems.append(wrong(path, scaling.kind, expected, SCALED_KINDS))
    return spec, problems


def parse_scaling(text: str, namespace: str = DEFAULT_NAMESPACE) -> Scaling:
    """A scaling from the command line, as in "deploy/web=20". Raises BadInputError."""
    match = _SCALE.fullmatch(text)
    kind = None if match is None else _SCALED.get(spelling_without_group(match["kind"]))
    if match is None or kind is None:
        hint = suggestion(match["kind"], _SCALED) if match is not None else ""
        problem = str(wrong("--scale", text, _SCALE_EXPECTED))
        raise BadInputError(problem + (f"; {hint}" if hint else ""))
    return Scaling(
        kind=kind, name=match["name"], replicas=int(match["replicas"]), namespace=namespace
    )


def what_if_schema() -> dict[str, Any]:
    """The schema of the document (JSON Schema, draft 2020-12)."""
    (whole,), parts = msgspec.json.schema_components([_Document], ref_template="#/$defs/{name}")
    root = parts["_Document"]
    root["title"] = WHAT_IF
    root["required"] = ["apiVersion", "kind", "spec"]
    root["properties"] |= {"apiVersion": {"const": OWN_API_VERSION}, "kind": {"const": WHAT_IF}}
    parts["Scaling"]["properties"]["kind"] = {"enum": list(SCALED_KINDS)}
    schema = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": schema, "title": WHAT_IF, **whole, "$defs": parts}


# ---- in scenario files ---------------------------------------------------------------------


def actions_of(
    change: WhatIf, index: ObjectIndex, place: str, errors: InputErrors
) -> Iterator[Action]:
    """The changes as actions at 0 s, in their order. ``index``: the objects at the beginning."""
    taken = set(index.names("Node", ""))
    for number, new in enumerate(change.add):
        template = object_key(NODE, "", new.template)
        if template in index:
            yield from _additions(new, taken, index, place)
        else:
            names = index.names("Node", "")
            errors.add(place, wrong(f"spec.add[{number}].like", new.template, "a node", names))
    yield from _of_nodes(Verb.UNCORDON, change.uncordon, place)
    for content in change.apply:
        present = index.objects.get(key_of(content)) if _is_object(content) else None
        if present is None:
            yield Action(0.0, Verb.CREATE, content, place)
            continue
        named = {name: content[name] for name in ("apiVersion", "kind")}
        patch = difference(present, applied(present, content))
        patch["metadata"] = {**patch.get("metadata", {}), **_identity(content)}
        yield Action(0.0, Verb.PATCH, {**patch, **named}, place)
    for one in change.scale:
        yield Action(0.0, Verb.SCALE, msgspec.to_builtins(one), place)
    yield from _of_nodes(Verb.CORDON, change.cordon, place)
    for name in change.remove:
        yield from _removal(name, index, place)
    yield from _of_nodes(Verb.DRAIN, change.drain, place)


def _removal(name: str, index: ObjectIndex, place: str) -> Iterator[Action]:
    """The node goes at once: no finalizer keeps it."""
    node = index.objects.get(object_key(NODE, "", name), {"metadata": {}})
    if node["metadata"].get("finalizers"):
        meta = {"name": name, "finalizers": None}
        yield Action(0.0, Verb.PATCH, {"apiVersion": "v1", "kind": "Node", "metadata": meta}, place)
        if node["metadata"].get("deletionTimestamp"):
            return  # gone without its finalizers
    yield Action(0.0, Verb.DELETE, {"kind": "Node", "name": name}, place)


def _of_nodes(verb: Verb, names: Sequence[str], place: str) -> Iterator[Action]:
    options: Content = {}
    if verb is Verb.DRAIN:
        options = {"ignoreDaemonsets": True, "deleteEmptyDirData": True}
    for name in names:
        yield Action(0.0, verb, {"name": name, **options}, place)


def _identity(content: Content) -> Content:
    meta = content["metadata"]
    return {name: meta[name] for name in ("name", "namespace") if name in meta}


def _is_object(content: Content) -> bool:
    return isinstance(content.get("metadata"), dict) and bool(content.get("kind"))


def _additions(new: NewNodes, taken: set[str], index: ObjectIndex, place: str) -> Iterator[Action]:
    """New nodes, with their CSINode objects and devices. ``taken``: the names of all nodes.

    The driver creates the pods of the DaemonSets. Those of DaemonSets that are not there are copied
    from the template; until they were tried, too, the new node is cordoned.
    """
    template = index[object_key(NODE, "", new.template)]
    own = [*index.of_kind(CSI_NODE), *index.of_kind(RESOURCE_SLICE)]
    daemons = [pod for pod in index.of_kind(POD) if _is_of_absent(pod, new.template, index)]
    for name in new.names(taken.__contains__):
        taken.add(name)
        node = _copy(template, name)
        if daemons:
            node["spec"] |= {"unschedulable": True}
        copies = (daemon_copy(pod, name) for pod in daemons)
        for content in (*objects_of_copy(own, new.template, name), node, *copies):
            yield Action(0.0, Verb.CREATE, content, place)
        if daemons:
            yield from _of_nodes(Verb.UNCORDON, (name,), place)


def _copy(template: Content, name: str) -> Content:
    """A ready node that offers the same as the template."""
    labels = dict(template["metadata"].get("labels") or {})
    if HOSTNAME_LABEL in labels:
        labels[HOSTNAME_LABEL] = name
    spec = dict(template.get("spec") or {})
    spec.pop("unschedulable", None)
    taints = [
        taint for taint in spec.pop("taints", None) or () if not is_broken(str(taint.get("key")))
    ]
    status = template.get("status") or {}
    return {
        **template,
        "metadata": {"name": name, "labels": labels},
        "spec": {**spec, "taints": taints} if taints else spec,
        "status": {key: one for key, one in status.items() if key != "conditions"},
    }


def _is_of_absent(pod: Content, node: str, index: ObjectIndex) -> bool:
    """Whether a pod is on a node and belongs to a DaemonSet that is not there."""
    owner = controller_reference(pod)
    if (pod.get("spec") or {}).get("nodeName") != node or owner is None:
        return False
    if owner.get("kind") != "DaemonSet":
        return False
    return object_key(DAEMON_SET, key_of(pod).namespace, owner["name"]) not in index
