"""A stand-in of a pod that records its reads: the fields that a plugin's result may depend on.

A `_RecordedPod` replaces a PodInfo. A read of a field records the path of the field in a manifest
("spec.tolerations"). A value that is compiled from several fields (the requests, the host ports)
has a name of its own. Such a value holds less than all of its sources. So a plugin that signs the
value may not read a source, but a plugin that signs all sources may read the value.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType
from typing import Any, Final, TypeVar, cast

from msgspec import Struct

from bayplan.api.objects import Affinity
from bayplan.state.pods import PodInfo, PodShape

T = TypeVar("T")

#: Compiled value → the paths of its sources.
SOURCES: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(sources)
    for names, sources in (
        (
            ("requests", "non_zero_milli_cpu", "non_zero_memory_bytes"),
            ("spec.containers", "spec.initContainers", "spec.overhead", "spec.resources"),
        ),
        (("claim_amounts",), ("status.nodeAllocatableResourceClaimStatuses",)),
        (("host_ports",), ("spec.containers", "spec.initContainers")),
        (("volumes",), ("spec.volumes",)),
        (("affinity",), ("spec.affinity.podAffinity", "metadata.namespace")),
        (("anti_affinity",), ("spec.affinity.podAntiAffinity", "metadata.namespace")),
        (("errors",), ("spec.affinity.podAffinity", "spec.affinity.podAntiAffinity")),
    )
    for name in names
}

#: Attribute of PodInfo or PodShape → its path in a manifest, where the two differ.
_PATHS: Final[Mapping[str, str]] = {
    "uid": "metadata.uid",
    "key": "metadata.name",
    "node_name": "spec.nodeName",
    "namespace": "metadata.namespace",
    "labels": "metadata.labels",
}


class NotedKeys(dict[str, str]):
    """A map of labels or annotations that records the keys that are read."""

    def __init__(self, content: Mapping[str, str], keys_read: set[str]) -> None:
        super().__init__(content)
        self._keys_read = keys_read

    def __getitem__(self, key: str) -> str:
        self._keys_read.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._keys_read.add(str(key))
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._keys_read.add(key)
        return super().get(key, default)


class Reads:
    """The recorded reads: paths, names of compiled values, and keys of labels and annotations."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        #: Path of a map → the keys that were read.
        self.keys: dict[str, set[str]] = {}

    def note(self, path: str, value: Any) -> Any:
        self.paths.add(path)
        if path not in ("metadata.labels", "metadata.annotations") or value is None:
            return value
        return NotedKeys(value, self.keys.setdefault(path, set()))

    def touches(self, path: str) -> bool:
        """Whether the field at ``path`` was read, or a field that contains it."""
        sources = {source for name in self.paths for source in SOURCES.get(name, ())}
        return any(path == read or path.startswith(f"{read}.") for read in (*self.paths, *sources))

    def beyond(self, covered: "Reads") -> list[str]:
        """The reads that ``covered`` does not cover, sorted."""
        return sorted(path for path in self.paths if not covered.covers(path))

    def covers(self, path: str) -> bool:
        if path in self.paths:
            return True
        sources = SOURCES.get(path)
        return sources is not None and sources <= self.paths


def recorded_pod(pod: PodInfo, reads: Reads) -> PodInfo:
    """A stand-in of the pod that adds each read to ``reads``."""
    return cast(PodInfo, _RecordedPod(pod, reads))


class _RecordingProxy(ABC):
    """A stand-in of an object. Properties and methods of the object's class run on the stand-in, so
    their reads are recorded, too."""

    __slots__ = ("__weakref__", "_reads", "_target")

    def __init__(self, target: Any, reads: Reads) -> None:
        self._target = target
        self._reads = reads

    def __getattr__(self, name: str) -> Any:
        attribute = _static(self._target.__class__, name)
        if isinstance(attribute, property) and attribute.fget is not None:
            return attribute.fget(self)
        if isinstance(attribute, FunctionType):
            return MethodType(attribute, self)
        return self._field(name, getattr(self._target, name))

    @abstractmethod
    def _field(self, name: str, value: Any) -> Any:
        """The value of a field or a stand-in of the value. Records the read."""

    def __repr__(self) -> str:
        return repr(self._target)


class _RecordedPod(_RecordingProxy):
    __slots__ = ()

    def _field(self, name: str, value: Any) -> Any:
        if name == "shape":
            return _RecordedShape(value, self._reads)
        if name in ("metadata", "status"):
            return _RecordedStruct(value, self._reads, name)
        return self._reads.note(_PATHS.get(name, name), value)


class _RecordedShape(_RecordingProxy):
    __slots__ = ()

    def once(self, key: Any, compute: Callable[[PodShape], T]) -> T:
        """``compute(shape)`` without a memo, so that the reads are recorded at every call."""
        return compute(cast(PodShape, self))

    def once_per_spec(self, key: Any, compute: Callable[[PodShape], T]) -> T:
        return self.once(key, compute)

    def _field(self, name: str, value: Any) -> Any:
        if name == "spec":
            return _RecordedStruct(value, self._reads, "spec")
        if name == "rules":  # of the cluster, not of the pod
            return value
        return self._reads.note(_PATHS.get(name, name), value)


class _RecordedStruct(_RecordingProxy):
    """A stand-in of metadata, spec, status or spec.affinity: each field is recorded by itself."""

    __slots__ = ("_path",)

    def __init__(self, target: Struct, reads: Reads, path: str) -> None:
        super().__init__(target, reads)
        self._path = path

    def _field(self, name: str, value: Any) -> Any:
        names = dict(
            zip(self._target.__struct_fields__, self._target.__struct_encode_fields__, strict=True)
        )
        path = f"{self._path}.{names.get(name, name)}"
        if isinstance(value, Affinity):
            return _RecordedStruct(value, self._reads, path)
        return self._reads.note(path, value)


def _static(owner: Any, name: str) -> Any:
    """The attribute as the class defines it: a property is not evaluated."""
    for base in owner.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None
