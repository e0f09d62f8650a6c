"""Recording: what a shadow saw, as input for `bayplan simulate`.

    DIR/recording/objects.yaml    the objects at the start, as the API server had them
    DIR/recording/scenario.yaml   creations, changes and deletions, with their times

Bindings of the schedulers that the shadow compares are left out: a simulation makes them. A pod of
another scheduler is created at the time of its binding, with its node.

A simulation has controllers of its own and deletes what belongs to a deleted object. Therefore some
things are recorded otherwise than they were, or not at all:
- ReplicaSets and the like have no replicas: their pods are recorded one by one.
- The deletion of an object also stands for the deletions of the objects that it owns. An object
  that owns pods or claims stays, unless it is a pod or a node.
- Changes of volumes and claims are left out, and so is the status of everything but nodes: binding
  controllers write them. Namespaces are not deleted.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TextIO, final

import msgspec

from bayplan.adapters.embedded.json_merge import difference
from bayplan.api.device_objects import RESOURCE_CLAIM
from bayplan.api.object_meta import ObjectMeta, OwnerReference
from bayplan.api.objects import (
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
)
from bayplan.objects.keys import Content, ObjectKey, key_of_metadata, without_last_applied
from bayplan.objects.object_store import ObjectStore
from bayplan.ports import EventType
from bayplan.sim.input.controller_kinds import CONTROLLERS, SCALED_KINDS
from bayplan.sim.input.sources import OWN_API_VERSION

FOLDER: Final = "recording"
OBJECTS: Final = "objects.yaml"
SCENARIO: Final = "scenario.yaml"
#: What the API server and its controllers add, and a simulation does not need.
_DROPPED = frozenset(
    (
        "managedFields",
        "resourceVersion",
        "generation",
        "selfLink",
        "finalizers",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    )
)
#: Binding controllers write these, in a simulation, too.
_UNCHANGED = frozenset((PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM))
#: The API server copies these from the node. Upstream: plugin/pkg/admission/podtopologylabels.
_LABELS_OF_BINDINGS = frozenset(("topology.kubernetes.io/zone", "topology.kubernetes.io/region"))
#: Kinds whose deletion also removes their dependents.
_TAKING_DEPENDENTS = frozenset((POD, NODE))


@final
class Recording:
    """Writes a recording while it happens. Only the owner may read the files."""

    def __init__(self, folder: Path, schedulers: Iterable[str]) -> None:
        """``folder``: is created, with ``recording`` in it; ``schedulers``: whose pods a
        simulation of the recording places. Raises OSError, FileExistsError for a recording."""
        self._folder = folder / FOLDER
        self._folder.mkdir(parents=True, exist_ok=True)
        self._schedulers = frozenset(schedulers)
        self._objects = _new_file(self._folder / OBJECTS)
        self._scenario = _new_file(self._folder / SCENARIO)
        self._scenario.write(f"apiVersion: {OWN_API_VERSION}\nkind: Scenario\nspec:\n  events:\n")
        #: The objects as the recording has them.
        self._present = ObjectStore[Content](_metadata)
        self._at_seconds = 0.0
        #: The number of creations, changes and deletions.
        self.step_count = 0
        #: Changes and deletions that are left out; see the module.
        self.left_out_count = 0

    @property
    def path(self) -> Path:
        """The folder to simulate."""
        return self._folder

    def begin(self, contents: Iterable[tuple[str, bytes]]) -> None:
        """Write the objects at the start. ``contents``: kind and JSON of each."""
        for kind, content in contents:
            recorded = _recorded(kind, content, keeps_times=True)
            if recorded is not None and self._is_visible(kind, recorded):
                self._present.put(_key(kind, recorded), recorded)
                self._objects.write(f"---\n{_text(recorded)}\n")
        self._objects.close()

    def add(self, event: EventType, kind: str, content: bytes, at_seconds: float) -> None:
        """Record a change. ``content``: JSON; for a deletion, metadata suffice. ``at_seconds``:
        since the start."""
        self._at_seconds = max(round(at_seconds, 3), self._at_seconds)
        recorded = _recorded(kind, content)
        if recorded is None:
            return
        key = _key(kind, recorded)
        present = self._present.get(key)
        uid = recorded["metadata"].get("uid")
        if event is EventType.DELETED:
            if present is not None:
                self._delete(key, present)
            return
        if present is not None and present["metadata"].get("uid") != uid:
            self._delete(key, present, is_replaced=True)
            present = None
        if not self._is_visible(kind, recorded):
            return
        if present is None:
            self._create(key, recorded)
        else:
            self._change(key, present, recorded)

    def close(self) -> None:
        """Close the files of the recording."""
        if not self.step_count:
            self._scenario.write("  - {at: 0s}\n")
        self._scenario.close()
        self._objects.close()

    # ---- steps ------------------------------------------------------------------------------

    def _is_visible(self, kind: str, content: Content) -> bool:
        """Whether the object is recorded now: a pod of another scheduler waits for its node."""
        if kind != POD:
            return True
        spec = content.get("spec") or {}
        return bool(spec.get("nodeName")) or spec.get("schedulerName") in self._schedulers

    def _create(self, key: ObjectKey, content: Content) -> None:
        self._present.put(key, content)
        if key.kind not in (NODE, *_UNCHANGED):
            content = {name: part for name, part in content.items() if name != "status"}
        self._step("create", content)

    def _change(self, key: ObjectKey, present: Content, content: Content) -> None:
        if key.kind in _UNCHANGED:
            self.left_out_count += 1
            return
        if key.kind == POD and not (present.get("spec") or {}).get("nodeName"):
            content = _without_binding(present, content)
        patch = difference(_compared(key.kind, present), _compared(key.kind, content))
        self._present.put(key, content)
        if patch:
            version, _, kind = key.kind.partition(" ")
            meta = {**patch.pop("metadata", {}), **_names(key)}
            self._step("patch", {"apiVersion": version, "kind": kind, "metadata": meta, **patch})

    def _delete(self, key: ObjectKey, present: Content, *, is_replaced: bool = False) -> None:
        owns = bool(self._present.owned_by(present["metadata"].get("uid") or ""))
        stays = key.kind == NAMESPACE or (owns and key.kind not in _TAKING_DEPENDENTS)
        if stays and not is_replaced:
            self.left_out_count += 1
            return
        self._forget(key)
        version, _, kind = key.kind.partition(" ")
        self._step("delete", {"apiVersion": version, "kind": kind, **_names(key)})

    def _forget(self, key: ObjectKey) -> None:
        """Drop an object and its dependents: a simulation deletes them together."""
        content = self._present.remove(key)
        if content is not None:
            for dependent in self._present.owned_by(content["metadata"].get("uid") or ""):
                self._forget(dependent)

    def _step(self, verb: str, content: Content) -> None:
        self.step_count += 1
        self._scenario.write(f"  - at: {self._at_seconds:.3f}s\n    {verb}: [{_text(content)}]\n")


def _compared(kind: str, content: Content) -> Content:
    """The parts of which changes are recorded."""
    meta = content["metadata"]
    parts = {name: part for name, part in content.items() if name not in ("metadata", "status")}
    parts["metadata"] = {name: meta[name] for name in ("labels", "annotations") if name in meta}
    if kind == NODE:
        status = content.get("status") or {}
        parts["status"] = {name: part for name, part in status.items() if name != "conditions"}
    return parts


def _without_binding(present: Content, content: Content) -> Content:
    """A pod without what its binding brings, because the simulation places it."""
    spec = {name: part for name, part in content["spec"].items() if name != "nodeName"}
    before = present["metadata"].get("labels") or {}
    labels = {
        name: value
        for name, value in (content["metadata"].get("labels") or {}).items()
        if name in before or name not in _LABELS_OF_BINDINGS
    }
    meta = {name: part for name, part in content["metadata"].items() if name != "labels"}
    if labels:
        meta["labels"] = labels
    return {**content, "metadata": meta, "spec": spec}


def _recorded(kind: str, content: bytes, *, keeps_times: bool = False) -> Content | None:
    """The object as it is recorded; None: a simulation would make objects of it."""
    version, _, name = kind.partition(" ")
    parts: Content = msgspec.json.decode(content)
    dropped = _DROPPED if keeps_times else {*_DROPPED, "creationTimestamp"}
    meta = {key: part for key, part in parts["metadata"].items() if key not in dropped}
    metadata = without_last_applied(meta)
    recorded = {**parts, "apiVersion": version, "kind": name, "metadata": metadata}
    if kind in CONTROLLERS:
        if name not in SCALED_KINDS:
            return None
        recorded["spec"] = {**(parts.get("spec") or {}), "replicas": 0}
    return recorded


def _metadata(content: Content) -> ObjectMeta:
    """What the store of the recording reads of an object."""
    meta = content["metadata"]
    owners = meta.get("ownerReferences") or ()
    return ObjectMeta(
        name=meta["name"],
        namespace=meta.get("namespace"),
        uid=meta.get("uid"),
        owner_references=tuple(OwnerReference(uid=each.get("uid") or "") for each in owners),
    )


def _key(kind: str, content: Content) -> ObjectKey:
    return key_of_metadata(kind, _metadata(content))


def _names(key: ObjectKey) -> dict[str, str]:
    return {"name": key.name, **({"namespace": key.namespace} if key.namespace else {})}


def _text(content: Content) -> str:
    """JSON on one line is YAML."""
    return msgspec.json.encode(content).decode()


def _new_file(path: Path) -> TextIO:
    """Raises FileExistsError, OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8")
