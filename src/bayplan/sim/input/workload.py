"""A workload: the objects at the beginning of a simulation and the later steps. Plain data.

A workload can be written as JSON and read back, so that a run can be repeated. Contents of objects
are shared and never changed.
"""

from collections.abc import Iterator
from enum import StrEnum
from itertools import chain
from typing import Any, final

import msgspec
from msgspec import Struct

from bayplan.adapters.embedded.admission.plugin_set import DEFAULT_PLUGINS, PluginSet
from bayplan.adapters.embedded.pod_gc_controller import PodGcTimes
from bayplan.answers.amounts import counted
from bayplan.api.objects import POD, TERMINAL_PHASES
from bayplan.config.cluster_version import NOTHING_REPORTED, ReportedReleases
from bayplan.objects.keys import ObjectKey, key_of

Content = dict[str, Any]

_POD_VERSION, _POD_KIND = POD.split()

#: The end of such a pod: "succeed" (the default) or "delete".
WHEN_DONE_ANNOTATION = "bayplan.dev/when-done"
WHEN_DONE = ("succeed", "delete")


class Verb(StrEnum):
    CREATE = "create"
    PATCH = "patch"
    DELETE = "delete"
    #: A patch of the number of replicas.
    SCALE = "scale"
    #: Patches of a node.
    CORDON = "cordon"
    UNCORDON = "uncordon"
    #: A deletion that a disruption budget may refuse.
    EVICT = "evict"
    #: A cordon, and evictions of the pods of the node; see `DrainOptions`.
    DRAIN = "drain"


class ExpansionMode(StrEnum):
    """How long the controllers of an input act."""

    #: In the whole run: a controller replaces a pod that goes.
    CONTROLLERS = "controllers"
    #: Only when they appear.
    ONCE = "once"


@final
class DrainOptions(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The flags of `kubectl drain`."""

    ignore_daemonsets: bool = False
    delete_empty_dir_data: bool = False
    force: bool = False


@final
class Step(Struct, frozen=True, kw_only=True):
    """One change of one object."""

    at_seconds: float
    verb: Verb
    key: ObjectKey
    #: The object to create, a JSON merge patch, or the options of a drain; else nothing.
    content: Content = {}


@final
class CreatedPods(Struct, frozen=True, kw_only=True):
    """The pods that are created for the controllers of an input: those that the controllers lack
    at first, and `Workload.followers`."""

    #: Kind of the controllers → pods, and → controllers with such pods.
    pods: dict[str, int] = {}
    controllers: dict[str, int] = {}

    def note(self, further_count: int = 0) -> str:
        """A line for the reader; "": the controllers lacked no pods. ``further_count``: pods that
        controllers created besides in a run; below 0: pods that they have not created yet."""
        kinds = sorted(kind for kind, count in self.pods.items() if count)
        total = sum(self.pods.values()) + further_count
        if not kinds:
            return ""
        count = f"{total:,} pods were" if total > 1 else f"{total or 'no'} pod was"
        head = f"{count} created for controllers"
        parts = [f"{self.pods[kind]:,} for {self._counted(kind)}" for kind in kinds]
        if further_count > 0:
            parts.append(f"{further_count:,} more during the run")
        elif further_count < 0:
            parts.append(f"{-further_count:,} of them not yet")
        return f"{head}: {', '.join(parts)}"

    def _counted(self, kind: str) -> str:
        count = self.controllers[kind]
        return counted(count, kind)


@final
class Workload(Struct, frozen=True, kw_only=True):
    """All inputs of a simulation."""

    #: Objects at 0 s, in the order of their creation: first what is no pod, then running pods,
    #: then pending ones.
    initial: tuple[Content, ...] = ()
    #: The later steps, by time; steps of one time are in the order of the files.
    steps: tuple[Step, ...] = ()
    #: When to stop; None: when nothing is left to happen.
    until_seconds: float | None = None
    #: Pods that controllers are expected to create later, by the uid of the controller. If the
    #: input is expanded once, each takes the place of a pod of its Job that succeeded.
    followers: dict[str, tuple[Content, ...]] = {}
    #: The pods of the input that had ended, as "namespace/name". They take no part.
    ended_pods: tuple[str, ...] = ()
    #: Kinds that nothing reads, and how many objects of them the input has.
    ignored_kinds: dict[str, int] = {}
    #: Those of these objects that have the template of a pod.
    unknown_workloads: tuple[ObjectKey, ...] = ()
    #: Objects that a server has stored and that cannot be read, and the reasons: they are left out.
    left_out: tuple[tuple[ObjectKey, str], ...] = ()
    #: When pods are collected whose node is gone: at once, unless the input says otherwise.
    pod_gc: PodGcTimes = PodGcTimes()
    #: Whether controllers act in the whole run.
    expansion: ExpansionMode = ExpansionMode.ONCE
    #: Whether pods that go come back as they were if the kind of their controller is not known.
    recreates_unknown: bool = False
    #: How late controllers learn about pods that go.
    recreate_after_seconds: float = 0.0
    #: The admission plugins of the API server.
    admission: PluginSet = DEFAULT_PLUGINS
    #: What the input says about the version of the cluster.
    reported: ReportedReleases = NOTHING_REPORTED
    #: The scheduler of pods that controllers create; "": as the template says.
    scheduler_name: str = ""
    created_pods: CreatedPods = CreatedPods()
    #: By how much all time stamps of the objects were moved back, so that none is in the future of
    #: virtual time.
    moved_back_seconds: float = 0.0
    #: Notes for the reader about objects that were added or changed; `all_notes` has all notes.
    notes: tuple[str, ...] = ()
    #: Notes about nodes and volumes that the input lacks: an input that is only a part of a cluster
    #: has none.
    missing_notes: tuple[str, ...] = ()

    def all_notes(self, further_count: int = 0) -> tuple[str, ...]:
        """All notes, with the one about pods of controllers. ``further_count``: see
        `CreatedPods.note`."""
        created = filter(None, (self.created_pods.note(further_count),))
        return (*created, *self.notes, *self.missing_notes)

    @property
    def follower_count(self) -> int:
        """The number of pods that controllers are expected to create later."""
        return sum(is_pod(one) for later in self.followers.values() for one in later)

    @property
    def pod_count(self) -> int:
        """The number of pods that are created in the whole run."""
        return sum([content.get("kind") == "Pod" for content in self.created()])

    def created(self) -> Iterator[Content]:
        """Each object that is created, at the beginning or later."""
        steps = [step.content for step in self.steps if step.verb is Verb.CREATE]
        return chain(self.initial, steps, *self.followers.values())

    def for_scheduler(self, name: str) -> "Workload":
        """The same workload, with all pods to place assigned to one scheduler."""
        return msgspec.structs.replace(
            self,
            initial=tuple([with_scheduler(content, name) for content in self.initial]),
            steps=tuple([_step_with_scheduler(step, name) for step in self.steps]),
            followers={
                uid: tuple(with_scheduler(pod, name) for pod in pods)
                for uid, pods in self.followers.items()
            },
            scheduler_name=name,
        )


def with_times(
    workload: Workload,
    *,
    quarantine: float | None = None,
    period: float | None = None,
    recreate_after: float | None = None,
    until: float | None = None,
) -> Workload:
    """The workload with other times, in seconds. None: the time is not changed.

    ``quarantine`` and ``period``: of pod garbage collection. ``until``: the end of the run, which a
    note tells the reader.
    """
    gc = workload.pod_gc
    if quarantine is not None:
        gc = gc._replace(quarantine_seconds=quarantine)
    if period is not None:
        gc = gc._replace(period_seconds=period)
    workload = msgspec.structs.replace(workload, pod_gc=gc)
    if recreate_after is not None:
        workload = msgspec.structs.replace(workload, recreate_after_seconds=recreate_after)
    if until is None:
        return workload
    note = f"the run ends at {until:g} s"
    later = sum([step.at_seconds > until for step in workload.steps])
    if later:
        note += f"; {counted(later, 'later step')} of the workload left out"
    notes = (*workload.notes, note)
    return msgspec.structs.replace(workload, until_seconds=until, notes=notes)


def with_scheduler(content: Content, scheduler_name: str) -> Content:
    """A pod to place, assigned to a scheduler; other objects as they are."""
    if not is_pending_pod(content):
        return content
    return {**content, "spec": {**(content.get("spec") or {}), "schedulerName": scheduler_name}}


def _step_with_scheduler(step: Step, scheduler_name: str) -> Step:
    content = step.content
    if step.verb is Verb.CREATE:
        content = with_scheduler(content, scheduler_name)
    return Step(at_seconds=step.at_seconds, verb=step.verb, key=step.key, content=content)


def create_step(at_seconds: float, content: Content) -> Step:
    return Step(at_seconds=at_seconds, verb=Verb.CREATE, key=key_of(content), content=content)


def is_pod(content: Content) -> bool:
    return content.get("kind") == _POD_KIND and content.get("apiVersion") == _POD_VERSION


def is_pending_pod(content: Content) -> bool:
    """A pod without a node."""
    # Without methods of the dictionary, because each pod of an input passes here several times.
    if "kind" not in content or content["kind"] != _POD_KIND:
        return False
    if "apiVersion" not in content or content["apiVersion"] != _POD_VERSION:
        return False
    spec: Content | None = content["spec"] if "spec" in content else None  # noqa: SIM401
    return not (spec and "nodeName" in spec and spec["nodeName"])


def has_ended(content: Content) -> bool:
    """Whether the object is a pod that succeeded or failed."""
    if content.get("kind") != _POD_KIND or content.get("apiVersion") != _POD_VERSION:
        return False
    return (content.get("status") or {}).get("phase") in TERMINAL_PHASES


def claim_templates(pod: Content) -> Iterator[tuple[str, Content]]:
    """(name of the claim, its template) for each ephemeral volume of a pod."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        template: Any = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template is not None:
            yield f"{pod['metadata']['name']}-{volume['name']}", template
