"""The objects of a cluster at one moment, with what could not be read of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, final

import msgspec
from msgspec import Struct

from bayplan.adapters.embedded.admission.plugin_set import DEFAULT_PLUGINS, PluginSet
from bayplan.api.objects import ApiObject
from bayplan.objects.keys import ObjectKey, key_of_metadata


class RunMoment(Struct, frozen=True, kw_only=True):
    """A moment of a run."""

    #: The folder of the run.
    run: str
    #: "start": before the first attempt; "end"; "interruption": the last decision of a run that was
    #: interrupted; "time": after all changes of that time.
    at: Literal["start", "end", "interruption", "time"]
    #: Virtual time.
    seconds: float

    def __str__(self) -> str:
        match self.at:
            case "start":
                return f"{self.run} at its start"
            case "end":
                return f"{self.run} at its end ({self.seconds:g} s)"
            case "interruption":
                return f"{self.run} at its last decision ({self.seconds:g} s; it was interrupted)"
            case "time":
                return f"{self.run} at {self.seconds:g} s"


# Without `repr`: an event loop that returns it would print all objects, for a second.
@final
@dataclass(frozen=True, slots=True, repr=False)
class ClusterObjects:
    """The objects that a scheduler reads, and that explanations change. Nothing here changes."""

    #: By kind, in the order in which a scheduler learns of them.
    by_kind: Mapping[str, tuple[ApiObject, ...]]
    #: The content of each object as the API server has it: plain values or JSON. Objects whose
    #: content nobody needs may be missing.
    contents: Mapping[ObjectKey, dict[str, Any] | bytes] = field(
        default_factory=lambda: MappingProxyType({})
    )
    #: Kinds that the API server does not have.
    absent: frozenset[str] = frozenset()
    #: Kinds that could not be read, and the server's reason: answers leave them out.
    unreadable: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    #: A name of the cluster, for messages.
    source: str = "the cluster"
    #: When the objects were read, in seconds since 1970; 0.0: at the start of virtual time.
    epoch_seconds: float = 0.0
    #: Objects with the template of a pod whose kind is not known: nothing else is known of them.
    unknown_workloads: tuple[ObjectKey, ...] = ()
    #: What the reader should know: what was made up, and how.
    notes: tuple[str, ...] = ()
    #: The admission plugins that the cluster's API server runs.
    admission: PluginSet = DEFAULT_PLUGINS
    #: Of a run: the moment that the objects are of; `source` names it, too.
    moment: RunMoment | None = None

    def __repr__(self) -> str:
        count = sum(map(len, self.by_kind.values()))
        return f"ClusterObjects({count} objects of {self.source})"

    def of(self, kind: str) -> tuple[ApiObject, ...]:
        return self.by_kind.get(kind, ())

    def content(self, key: ObjectKey) -> dict[str, Any] | None:
        """The content of an object as plain values, of its own; None: it is not there."""
        content = self.contents.get(key)
        if content is None:
            return None
        return msgspec.json.decode(
            content if isinstance(content, bytes) else msgspec.json.encode(content)
        )

    def __iter__(self) -> Iterator[tuple[ObjectKey, ApiObject]]:
        for kind, objects in self.by_kind.items():
            for each in objects:
                yield key_of_metadata(kind, each.metadata), each
