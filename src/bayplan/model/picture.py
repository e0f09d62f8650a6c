"""The objects of a cluster at one moment, with what could not be read of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, final

import msgspec
from msgspec import Struct

from bayplan.adapters.embedded.admission.plugin_set import DEFAULT_PLUGINS, PluginSet
from bayplan.adapters.embedded.json_merge import difference, merge_patch
from bayplan.api.objects import ApiObject, Node, Pod, Unstructured, at_path
from bayplan.config.cluster_version import NOTHING_REPORTED, ReportedReleases
from bayplan.objects.keys import Content, ObjectKey
from bayplan.objects.object_store import ObjectStore
from bayplan.objects.workloads import pod_name, workload_of


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


@final
@dataclass(frozen=True, slots=True)
class RefusedPod:
    """A pod that the API server refuses."""

    pod: Pod
    reason: str


# Without `repr`: an event loop that returns it would print all objects, for a second.
@final
@dataclass(frozen=True, slots=True, repr=False)
class ClusterPicture:
    """The objects that a scheduler reads, and that explanations change. Nothing here changes."""

    #: Of each kind in the order in which a scheduler learns of them.
    objects: ObjectStore[ApiObject]
    #: The content of each object as the API server has it: plain values or JSON. Objects whose
    #: content nobody needs may be missing.
    contents: Mapping[ObjectKey, Content | bytes] = field(
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
    #: By how much the time stamps of the objects were moved back; see `Workload`.
    moved_back_seconds: float = 0.0
    #: Objects with the template of a pod whose kind is not known: nothing else is known of them.
    unknown_workloads: tuple[ObjectKey, ...] = ()
    #: Objects of files that a server has stored and that cannot be read, and the reasons.
    left_out: tuple[tuple[ObjectKey, str], ...] = ()
    #: What the reader should know: what was made up, and how.
    notes: tuple[str, ...] = ()
    #: The pods of files that the API server refuses.
    refused_pods: tuple[RefusedPod, ...] = ()
    #: The pods of files that have ended, as "namespace/name". They are not among the objects.
    ended_pods: frozenset[str] = frozenset()
    #: The admission plugins that the cluster's API server runs.
    admission: PluginSet = DEFAULT_PLUGINS
    #: What says which version of Kubernetes the cluster runs.
    reported: ReportedReleases = NOTHING_REPORTED
    #: Of a run: the moment that the objects are of; `source` names it, too.
    moment: RunMoment | None = None

    def __repr__(self) -> str:
        return f"ClusterPicture({len(self.objects)} objects of {self.source})"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the reader of an answer about these objects should know."""
        return (*unreadable_remarks(self.unreadable), *self.notes)

    def of(self, kind: str) -> list[ApiObject]:
        return self.objects.all(kind)

    def refusal_of(self, name: str) -> str:
        """Why the API server refuses the pod "namespace/name"; "": it does not."""
        reasons = (one.reason for one in self.refused_pods if pod_name(one.pod) == name)
        return next(reasons, "")

    def refusal_of_workload(self, key: ObjectKey) -> str:
        """Why the API server refuses the pods of a workload; "": it does not."""
        workload = f"{key.kind.rpartition(' ')[2]} {key.namespace}/{key.name}"
        reasons = (one.reason for one in self.refused_pods if workload_of(one.pod) == workload)
        reason = next(reasons, "")
        return f"has no pods, the API server refuses them: {reason}" if reason else ""

    def why_left_out(self, bare_kind: str, name: str) -> str:
        """Why the object "namespace/name" of a kind without its group is not here, although the
        files have it; "": they do not have it."""
        for key, reason in self.left_out:
            if (key.kind.rpartition(" ")[2], f"{key.namespace}/{key.name}") == (bare_kind, name):
                return f"{self.source}: {key} is left out, for it cannot be read: {reason}"
        return ""

    def content(self, key: ObjectKey) -> Content | None:
        """The content of an object as plain values, of its own; None: it is not there."""
        content = self.contents.get(key)
        if content is None:
            return None
        return msgspec.json.decode(
            content if isinstance(content, bytes) else msgspec.json.encode(content)
        )

    def manifest(self, key: ObjectKey, present: ApiObject) -> Content | None:
        """The content of an object as it is now, with its kind; None: it was not read as a whole.

        ``present``: the object as it is now. What has changed since the picture was taken is
        changed in the content, too.
        """
        original, content = self.objects.get(key), self.content(key)
        if isinstance(present, Unstructured) and (content is None or present is not original):
            content = present.content
        elif content is not None and original is not None and present is not original:
            content = merge_patch(content, _changes(original, present))
        return None if content is None else with_kind(key.kind, content)

    def with_fields(self, declared: Mapping[str, tuple[str, ...]]) -> "ClusterPicture":
        """The picture with further fields in its pods and nodes, as far as their content is there.

        ``declared``: kind → paths, as `Scheduler.declared_fields`.
        """
        objects = self.objects.copy() if declared else self.objects
        for kind, paths in declared.items():
            for key, each in self.objects.items(kind):
                content = self.contents.get(key)
                if content is not None and isinstance(each, Pod | Node):
                    plain = msgspec.json.decode(content) if isinstance(content, bytes) else content
                    values = {path: at_path(plain, path) for path in paths}
                    objects.put(key, msgspec.structs.replace(each, declared=values))
        return replace(self, objects=objects)


def _changes(original: ApiObject, present: ApiObject) -> Content:
    """The merge patch from an object as it was read to the same object as it is now."""
    patch = difference(plain(original), plain(present))
    # A server writes these, and a model in its place.
    for name in ("resourceVersion", "uid"):
        patch.get("metadata", {}).pop(name, None)
    return patch


def unreadable_remarks(unreadable: Mapping[str, str]) -> list[str]:
    """A remark for each kind that could not be read. ``unreadable``: kind → the server's reason."""
    return [f"left out: {kind}: {reason}" for kind, reason in unreadable.items()]


def plain(read: ApiObject) -> Content:
    """The fields of an object that a scheduler reads, as in its content."""
    content: Content = msgspec.to_builtins(read)
    content.pop("declared", None)
    return content


def with_kind(kind: str, content: Content) -> Content:
    """A manifest: the items of a list do not name their kind."""
    version, _, name = kind.rpartition(" ")
    return {**content, "apiVersion": version, "kind": name}
