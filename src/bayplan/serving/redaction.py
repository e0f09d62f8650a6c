"""Captured objects without what they are called and what they run.

Of each object only the fields that a scheduler reads are kept: that drops environment, commands,
mounts and whatever else a pod says. Annotations are dropped. Names are replaced by numbered ones,
the same everywhere in the file, also where a label, a selector or a node affinity repeats one;
images keep their equality and their size. What decides about placement stays, and is told.
"""

# pyright: standard
# (Plain values of any shape.)
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import msgspec

from bayplan.adapters.object_names import kind_of
from bayplan.api.objects import NAMESPACE, PRIORITY_CLASS, Unstructured, decode

Content = dict[str, Any]

KEPT = (
    "labels and selectors (keys and values, but for values that are names)",
    "taints, tolerations, affinities and spread constraints",
    "resource names and amounts, host ports, image sizes",
    "priorities, schedulerName, volume types and storage classes' provisioners",
    "uids, time stamps, and the kinds of owners",
)
#: Names that every cluster has say nothing.
_WELL_KNOWN_NAMESPACES = frozenset(("default", "kube-system", "kube-public", "kube-node-lease"))
_WELL_KNOWN_CLASSES = frozenset(("system-cluster-critical", "system-node-critical"))
#: What stands there is no object's name, whatever it looks like.
_NO_NAMES = frozenset(("key", "topologyKey", "matchLabelKeys", "operator", "schedulerName"))
#: A value that may be an amount is compared as a number somewhere.
_NUMBER = re.compile(r"[0-9.]*")


@dataclass(frozen=True, slots=True)
class Redacted:
    """What is left."""

    objects: list[Content]
    #: Kinds of which only their plugins know what must be hidden, with how many were left out.
    left_out: dict[str, int]


def redacted(objects: Iterable[Content]) -> Redacted:
    """Copies without names, environment and annotations."""
    known: list[Content] = []
    left_out: dict[str, int] = {}
    for content in objects:
        kind = kind_of(content)
        found = decode(kind, content)
        if isinstance(found, Unstructured):
            left_out[kind] = left_out.get(kind, 0) + 1
        else:
            version, _, name = kind.partition(" ")
            read: Content = msgspec.to_builtins(found)
            known.append({"apiVersion": version, "kind": name, **read})
    names = _Names()
    for content in known:
        names.learn(content)
    return Redacted([names.hidden(content) for content in known], left_out)


@final
class _Names:
    """Old name → new name, for the whole file."""

    def __init__(self) -> None:
        self._new: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def learn(self, content: Content) -> None:
        """Every name that an object has or refers to."""
        kind, meta, spec = content["kind"], content["metadata"], content.get("spec") or {}
        if not _is_well_known(kind_of(content), meta["name"]):
            self._name(kind, meta["name"])
        if meta.get("namespace") not in _WELL_KNOWN_NAMESPACES:
            self._name("Namespace", meta.get("namespace"))
        for owner in meta.get("ownerReferences") or ():
            self._name(owner.get("kind", "Owner"), owner.get("name"))
        self._name("Node", spec.get("nodeName"))
        for volume in spec.get("volumes") or () if kind == "Pod" else ():
            self._name("Volume", volume.get("name"))
            claim = volume.get("persistentVolumeClaim") or {}
            self._name("PersistentVolumeClaim", claim.get("claimName"))
        for image in _images(content):
            self._image(image)

    def _name(self, kind: str, name: str | None) -> None:
        if name and name not in self._new:
            self._new[name] = f"{kind.lower()}-{self._next(kind)}"

    def _image(self, image: str) -> None:
        """Upstream (ImageLocality) takes an image without a tag for its latest."""
        whole = _with_tag(image)
        new = self._new.setdefault(whole, f"image-{self._next('Image')}:latest")
        self._new.setdefault(image, new)

    def _next(self, kind: str) -> int:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return self._counts[kind]

    def hidden(self, content: Content) -> Content:
        """A copy with new names."""
        found = self._value(content)
        meta = found["metadata"]
        for key in ("annotations", "generateName", "finalizers"):
            meta.pop(key, None)
        spec = found.get("spec") or {}
        for part in ("containers", "initContainers"):
            for index, container in enumerate(spec.get(part) or (), 1):
                container["name"] = f"{part.removesuffix('s').lower()}-{index}"
        status = found.get("status") or {}
        for part in ("containerStatuses", "initContainerStatuses"):
            status.pop(part, None)
        for condition in status.get("conditions") or ():
            condition.pop("message", None)
        return found

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: part if key in _NO_NAMES else self._value(part) for key, part in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._value(part) for part in value]
        if isinstance(value, str) and not _NUMBER.fullmatch(value):
            return self._new.get(value, value)
        return value


def _is_well_known(kind: str, name: str) -> bool:
    if kind == NAMESPACE:
        return name in _WELL_KNOWN_NAMESPACES
    return kind == PRIORITY_CLASS and name in _WELL_KNOWN_CLASSES


def _images(content: Content) -> Iterable[str]:
    spec, status = content.get("spec") or {}, content.get("status") or {}
    for part in ("containers", "initContainers"):
        for container in spec.get(part) or () if content["kind"] == "Pod" else ():
            if container.get("image"):
                yield container["image"]
    for image in status.get("images") or () if content["kind"] == "Node" else ():
        yield from image.get("names") or ()


def _with_tag(image: str) -> str:
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"
