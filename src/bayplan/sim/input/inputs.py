"""From files to a workload: objects as kubectl prints them, scenarios, and traces as CSV.

All files are read to their end before anything is refused, so that all problems are reported
together. The objects of the workload are in the order of their creation: objects that are no pods,
then running pods, then pods to place, in the order of the files.

Virtual time begins on a fixed day. Time stamps of objects from a cluster are moved back together,
so that all objects are older than the simulation and keep their ages relative to one another:
preemption prefers pods that started last, and groups queue by age.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, final

from msgspec import Struct

from bayplan.adapters.embedded.admission.plugin_set import DEFAULT_PLUGINS, PluginSet
from bayplan.adapters.embedded.pod_gc_controller import PodGcTimes
from bayplan.answers.amounts import counted, pod_count
from bayplan.answers.names import in_natural_order, listed_names
from bayplan.api.objects import (
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    ApiObject,
)
from bayplan.clock import ManualClock, epoch_of, rfc3339
from bayplan.config.cluster_version import ReportedReleases
from bayplan.objects.keys import DEFAULT_NAMESPACE, key_of, kind_of
from bayplan.objects.object_store import ObjectStore
from bayplan.sim.input.adoption import adopt_pods
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.errors import InputError, InputErrors
from bayplan.sim.input.idle_controllers import notes_of_idle
from bayplan.sim.input.object_checks import (
    CONFIGURATION,
    LIMIT_RANGE_KIND,
    PRIORITY_CLASS_KIND,
    NotUnderstood,
    ObjectChecks,
    is_limit_range,
    priority_class_name,
)
from bayplan.sim.input.openb import CsvTable, read_table
from bayplan.sim.input.priority_classes import implied_classes, members, notes_of
from bayplan.sim.input.scenario import Action, read_scenario
from bayplan.sim.input.sources import (
    OWN_KINDS,
    SCENARIO,
    CsvText,
    InputSource,
    Part,
    own_kind,
    read_sources,
)
from bayplan.sim.input.storage_classes import missing_storage_classes
from bayplan.sim.input.timeline import StepSequence
from bayplan.sim.input.what_if import WhatIf, actions_of, decode_what_if
from bayplan.sim.input.workload import (
    Content,
    CreatedPods,
    ExpansionMode,
    Step,
    Verb,
    Workload,
    create_step,
    has_ended,
    is_pending_pod,
    is_pod,
)

# ---- snapshot times -------------------------------------------------------------------------


_STAMPS = (("metadata", "creationTimestamp"), ("status", "startTime"))


def seconds_in_the_future(contents: Iterable[Content]) -> float:
    """How far the newest time stamp lies after the start of virtual time."""
    return max(max(_times(contents), default=0.0) - ManualClock.EPOCH_SECONDS, 0.0)


def moved_back(content: Content, shift: float) -> Content:
    """The object with its time stamps some seconds earlier; below 0: later."""
    if not shift:
        return content
    for part, field in _STAMPS:
        seconds = epoch_of(members(content, part).get(field))
        if seconds is not None:
            content = {
                **content,
                part: {**content[part], field: rfc3339(max(seconds - shift, 0.0))},
            }
    return content


def _times(contents: Iterable[Content]) -> Iterable[float]:
    for content in contents:
        for part, field in _STAMPS:
            if part == "status" and part not in content:
                continue
            members = content[part]
            stamp = members.get(field) if isinstance(members, dict) else None
            seconds = epoch_of(stamp)
            if seconds is not None:
                yield seconds


# ---- inputs ---------------------------------------------------------------------------------


__all__ = ["ARRIVALS", "TRACE", "InputError", "load_inputs"]

#: All pods of a trace at once, in order; they are never removed.
ARRIVALS = "arrivals"
#: A trace's pods at the times of the trace.
TRACE = "trace"


class _InputObject(Struct, frozen=True):
    """An object and its place in the input."""

    content: Content
    place: str


def load_inputs(
    sources: Iterable[InputSource],
    *,
    time_mode: str = ARRIVALS,
    is_strict: bool = False,
    read_kinds: Collection[str] = (),
    expansion: ExpansionMode | None = None,
    admission: PluginSet | None = None,
    present: ObjectStore[ApiObject] | None = None,
    reads_all: bool = False,
) -> Workload:
    """The workload of files, folders, standard input ("-") and objects. Raises InputError.

    ``is_strict``: refuse kinds that nothing reads, and fields that a kind does not have; otherwise
    the notes of the workload name them. ``read_kinds``: kinds that plugins read. ``expansion``: how
    long controllers act, whatever the scenarios say. ``admission``: the admission plugins that run,
    whatever the scenarios say. ``present``: objects that exist besides those of the input: new
    names and uids differ from theirs. ``reads_all``: refuse what cannot be read, also if a server
    has stored it; otherwise it is left out.
    """
    assert time_mode in (ARRIVALS, TRACE), time_mode
    errors = InputErrors()
    parts = read_sources(sources, errors)
    if time_mode == TRACE and not any(isinstance(part, CsvText) for part in parts):
        errors.add("--time trace", "wanted a trace's pod list, a CSV with times; found none")
    loader = _Loader(
        errors,
        parts,
        NotUnderstood(read_kinds),
        expansion,
        admission=admission,
        present=present,
        reads_all=reads_all,
    )
    workload = loader.load(time_mode)
    if is_strict:
        loader.not_understood.refuse(errors)
    errors.remarks += loader.not_understood.versions()
    errors.raise_if_any()
    return workload


@final
class _Loader:
    """Reads the parts of one input."""

    def __init__(
        self,
        errors: InputErrors,
        parts: Sequence[Part | CsvText],
        not_understood: NotUnderstood,
        expansion: ExpansionMode | None,
        *,
        admission: PluginSet | None,
        present: ObjectStore[ApiObject] | None,
        reads_all: bool,
    ) -> None:
        self._errors = errors
        self._reads_all = reads_all
        self._present = present
        self.not_understood = not_understood
        self._parts = parts
        #: Documents of our own: scenarios and what-ifs.
        self._own = [
            part
            for part in parts
            if isinstance(part, Part)
            and isinstance(part.value, dict)
            and part.value.get("kind") in OWN_KINDS
            and own_kind(part.value)
        ]
        self._actions: list[Action] = []
        #: WhatIf documents, with their places.
        self._changes: list[tuple[WhatIf, str]] = []
        self._until_seconds: float | None = None
        self._pod_gc = PodGcTimes()
        self._option = expansion
        self._admission = admission
        self._kubernetes_version = ""
        self._expansion = ExpansionMode.CONTROLLERS
        self._recreate_after_seconds = 0.0
        self._objects: list[_InputObject] = []
        self._arrivals: list[tuple[float, _InputObject]] = []
        self._ended_pods: list[str] = []
        self._moved_back_seconds = 0.0
        self._notes: list[str] = []

    def load(self, time_mode: str) -> Workload:
        """The workload. Problems are collected in the errors."""
        self._read_own()
        names = self._priority_classes()
        implied = implied_classes(
            (part.value for part in self._parts if isinstance(part, Part)), names
        )
        checks = ObjectChecks(
            self._errors,
            names.union(each["metadata"]["name"] for each in implied),
            self.not_understood,
            has_limit_ranges=any(map(is_limit_range, self._of_kind(LIMIT_RANGE_KIND))),
            reads_all=self._reads_all,
        )
        own = {id(part) for part in self._own}
        for part in self._parts:
            if isinstance(part, CsvText):
                self._read_csv(part, time_mode)
            elif id(part) not in own:
                self._read_object(part, checks)
        timeline = StepSequence(checks, self._errors, self._expansion, self._present)
        initial = self._initial(timeline)
        for change, place in self._changes:
            self._actions += actions_of(change, timeline.index, place, self._errors)
        steps = list(timeline.steps(sorted(self._actions, key=lambda action: action.at_seconds)))
        steps += self._arrival_steps(timeline)
        steps.sort(key=lambda step: step.at_seconds)
        created = [step.content for step in steps if step.verb is Verb.CREATE]
        followers = [pod for pods in timeline.followers.values() for pod in pods]
        storage = missing_storage_classes((*initial, *created, *followers))
        return Workload(
            initial=(*_namespaces(timeline, steps), *implied, *storage.classes, *initial),
            steps=tuple(steps),
            until_seconds=self._until_seconds,
            followers=timeline.followers,
            ended_pods=tuple(self._ended_pods),
            pod_gc=self._pod_gc,
            expansion=self._expansion,
            recreate_after_seconds=self._recreate_after_seconds,
            admission=self._admission or DEFAULT_PLUGINS,
            reported=self._reported_releases(initial),
            ignored_kinds=dict(self.not_understood.ignored_kinds),
            created_pods=CreatedPods(
                pods=dict(timeline.made),
                controllers={kind: len(each) for kind, each in timeline.made_for.items()},
            ),
            unknown_workloads=tuple(self.not_understood.unknown_workloads),
            left_out=tuple(checks.stored.left_out.items()),
            moved_back_seconds=self._moved_back_seconds,
            missing_notes=self._missing_notes(initial, created),
            notes=(
                *self._errors.remarks,
                *self.not_understood.versions(),
                *self.not_understood.notes(),
                *checks.stored.notes(),
                *checks.mistakes.notes(),
                *self._notes,
                *timeline.identities.notes(),
                *_patch_notes(timeline, self._expansion),
                *_order_notes(timeline),
                *_version_notes(timeline),
                *_cron_job_notes(self.not_understood.ignored_kinds),
                *storage.notes,
                *notes_of(implied),
            ),
        )

    # ---- reading ----------------------------------------------------------------------------

    def _read_own(self) -> None:
        for part in self._own:
            if part.value["kind"] == SCENARIO:
                self._read_scenario(part)
            else:
                self._read_what_if(part)
        self._expansion = self._option or self._expansion

    def _reported_releases(self, initial: Iterable[Content]) -> ReportedReleases:
        """What a scenario says, or the kubelets of the nodes."""
        if self._kubernetes_version:
            return ReportedReleases((self._kubernetes_version,), "the capture says")
        nodes = (each for each in initial if each.get("kind") == "Node")
        releases = dict.fromkeys(filter(None, map(_kubelet_version, nodes)))
        return ReportedReleases(tuple(releases), "the newest kubelet is")

    def _read_scenario(self, part: Part) -> None:
        scenario = read_scenario(part, self._errors)
        self._actions += scenario.actions
        self._end_at(scenario.until_seconds)
        if scenario.pod_gc is not None:
            self._pod_gc = scenario.pod_gc
        if scenario.recreate_after_seconds is not None:
            self._recreate_after_seconds = scenario.recreate_after_seconds
        if self._admission is None:
            self._admission = scenario.admission
        self._kubernetes_version = scenario.kubernetes_version or self._kubernetes_version
        if scenario.expansion is not None:
            self._expansion = scenario.expansion

    def _read_what_if(self, part: Part) -> None:
        change, problems = decode_what_if(part.value)
        self._errors.add_all(part.place, problems)
        self._changes.append((change, part.place))
        self._end_at(change.until_seconds)

    def _end_at(self, until_seconds: float | None) -> None:
        """The latest end of all documents counts."""
        if until_seconds is not None:
            self._until_seconds = max(self._until_seconds or 0.0, until_seconds)

    def _priority_classes(self) -> set[str]:
        classes = self._of_kind(PRIORITY_CLASS_KIND)
        return {name for name in map(priority_class_name, classes) if name is not None}

    def _of_kind(self, bare_kind: str) -> list[Any]:
        """All objects of a kind, of any group, that there ever are, unchecked."""
        values = [part.value for part in self._parts if isinstance(part, Part)]
        values += [action.value for action in self._actions if action.verb is Verb.CREATE]
        values += [content for change, _ in self._changes for content in change.apply]
        return [one for one in values if isinstance(one, dict) and one.get("kind") == bare_kind]

    def _read_object(self, part: Part, checks: ObjectChecks) -> None:
        if part.is_from_folder and _is_configuration(part.value):
            self._notes.append(f"{part.place} was ignored: it configures a scheduler")
        elif checks.accepts(part.value, part.place):
            if "status" in part.value and has_ended(part.value):
                meta = part.value["metadata"]
                namespace = meta.get("namespace") or DEFAULT_NAMESPACE
                self._ended_pods.append(f"{namespace}/{meta.get('name', '')}")
            self._objects.append(_InputObject(part.value, part.place))

    def _read_csv(self, part: CsvText, time_mode: str) -> None:
        table: CsvTable = read_table(part.text, with_times=time_mode == TRACE)
        self._errors.add_all(part.place, table.problems)
        self._objects += [_InputObject(node, part.place) for node in table.nodes]
        if time_mode == TRACE:
            self._arrivals += [
                (p.at_seconds, _InputObject(p.content, part.place)) for p in table.pods
            ]
        else:
            self._objects += [_InputObject(pod.content, part.place) for pod in table.pods]

    def _missing_notes(
        self, initial: Iterable[Content], created: Iterable[Content]
    ) -> tuple[str, ...]:
        """See `Workload.missing_notes`. ``initial``: in the order of creation."""
        if self._present is not None:
            return ()
        # Pods to place say nothing here. Among the initial objects they are the last.
        there = [*takewhile(_is_no_pending_pod, initial), *filter(_is_no_pending_pod, created)]
        return (*_node_notes(there), *_volume_notes(there))

    # ---- putting together -------------------------------------------------------------------

    def _initial(self, timeline: StepSequence) -> list[Content]:
        """All objects at the beginning, in the order of their creation."""
        keys = [(timeline.add(one.content, one.place), one.place) for one in self._objects]
        timeline.identities.mend_all()
        self._notes += adopt_pods(timeline.index)
        own = [(key, timeline.index[key], place) for key, place in keys if key is not None]
        whole: list[Content] = []
        idle: list[Content] = []
        for key, content, place in own:
            if key.kind not in CONTROLLERS:
                whole.append(content)
                continue
            controller = timeline.with_ended_pods(content)
            made = timeline.pods_of(controller, place)
            whole += [controller, *made]
            if not made and not (content["spec"].get("paused") and _owns(timeline, content)):
                idle.append(controller)
        self._notes += notes_of_idle(idle)
        # Pods that have ended were in the index only so that their controllers could count them.
        there: list[Content] = []
        for content in whole:
            if "status" in content and has_ended(content):
                # A StatefulSet may have made another pod of this name.
                if timeline.index.objects.get(key_of(content)) is content:
                    timeline.index.remove(key_of(content))
            else:
                there.append(content)
        # Without methods of the dictionary, because each pod passes here.
        deleted = [one for one in there if "deletionTimestamp" in one["metadata"]]
        self._notes += _notes_of_gone([one for one in deleted if _is_gone(one)])
        shift = self._moved_back_seconds = seconds_in_the_future(there)
        if shift:
            there = [moved_back(one, shift) for one in there]
        return _in_order_of_creation(there)

    def _arrival_steps(self, timeline: StepSequence) -> list[Step]:
        """A trace's pods, counted from its first."""
        first = min((at for at, _ in self._arrivals), default=0.0)
        return [
            create_step(at - first, timeline.index[key])
            for at, one in self._arrivals
            if (key := timeline.add(one.content, one.place)) is not None
        ]


def _owns(timeline: StepSequence, controller: Content) -> bool:
    return bool(timeline.index.owned_by(controller))


def _in_order_of_creation(contents: Iterable[Content]) -> list[Content]:
    """Other kinds, then running pods, then pods to place."""
    others: list[Content] = []
    running: list[Content] = []
    pending: list[Content] = []
    for content in contents:
        if content["kind"] == "Pod" and is_pending_pod(content):
            pending.append(content)
        else:
            (running if is_pod(content) else others).append(content)
    return [*others, *running, *pending]


def _is_no_pending_pod(content: Content) -> bool:
    return not is_pending_pod(content)


def _is_gone(content: Content) -> bool:
    """Whether nothing keeps an object that is being deleted: no finalizer and no grace."""
    meta = content["metadata"]
    spec: Content = content.get("spec") or {}
    if not meta["deletionTimestamp"]:
        return False
    if meta.get("finalizers") or (kind_of(content) == NAMESPACE and spec.get("finalizers")):
        return False
    has_grace = is_pod(content) and spec.get("nodeName")
    return not has_grace or meta.get("deletionGracePeriodSeconds") == 0


def _notes_of_gone(gone: Sequence[Content]) -> list[str]:
    """A note for each kind."""
    keys = [key_of(content) for content in gone]
    notes: list[str] = []
    for kind in dict.fromkeys(key.kind for key in keys):
        first, *more = [key for key in keys if key.kind == kind]
        names = f"{first} and {len(more):,} more were" if more else f"{first} was"
        end = "nothing keeps them: they are gone" if more else "nothing keeps it: it is gone"
        notes.append(f"{names} being deleted in the input, and {end}")
    return notes


def _is_configuration(value: Any) -> bool:
    return isinstance(value, dict) and value.get("kind") == CONFIGURATION


def _namespaces(timeline: StepSequence, steps: Iterable[Step]) -> list[Content]:
    """Namespaces that objects are in and that the input lacks: a real cluster has them."""
    used = timeline.index.namespaces() | {step.key.namespace for step in steps}
    created = {one["metadata"]["name"] for one in timeline.index.of_kind(NAMESPACE)}
    created |= {step.key.name for step in steps if step.key.kind == NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in sorted(used - created - {""})
    ]


def _version_notes(timeline: StepSequence) -> Iterator[str]:
    """Two dumps of one cluster, made one after the other, may lie in one folder."""
    if others := timeline.other_versions:
        first, more = others[0], len(others) - 1
        names = f"{first} and {more:,} more are" if more else f"{first} is"
        yield f"{names} ignored: another version was read before, and the first one counts"


def _order_notes(timeline: StepSequence) -> Iterator[str]:
    for key in timeline.waiting_stateful_sets:
        yield (
            f"{key} creates its further pods one by one, each when the pod before it runs: "
            "they are left out (podManagementPolicy OrderedReady)"
        )


def _cron_job_notes(ignored_kinds: Mapping[str, int]) -> list[str]:
    """A CronJob is no workload controller of a simulation: it would create Jobs by the clock."""
    count = sum(count for kind, count in ignored_kinds.items() if kind.endswith(" CronJob"))
    if not count:
        return []
    named = "1 CronJob is" if count == 1 else f"{count} CronJobs are"
    return [f"{named} not expanded: put the Jobs that run meanwhile into the input"]


#: `kubectl get all` prints no nodes, and neither does a dump of namespaces.
_NO_NODE = (
    "no node was read: name a file with the nodes of the cluster, too; "
    "kubectl get nodes -o yaml prints them, bayplan capture writes all"
)


def _node_notes(created: Collection[Content]) -> Iterator[str]:
    names = {key_of(one).name for one in created if kind_of(one) == NODE}
    if not names:
        yield _NO_NODE
        return
    named = [_node_name(one) for one in created if is_pod(one)]
    lost = [name for name in named if name and name not in names]
    if not lost:
        return
    pods, nodes = f"{pod_count(len(lost))} {'is' if len(lost) == 1 else 'are'}", set(lost)
    where = f"on {counted(len(nodes), 'node')} that the input lacks"
    yield f"{pods} {where}, as if deleted: {listed_names(in_natural_order(nodes))}"


def _volume_notes(created: Collection[Content]) -> Iterator[str]:
    """`kubectl get all,pvc` prints no volumes, because they are in no namespace."""
    kinds = [(one, kind_of(one)) for one in created if not is_pod(one)]
    names = {key_of(one).name for one, kind in kinds if kind == PERSISTENT_VOLUME}
    claims = (one for one, kind in kinds if kind == PERSISTENT_VOLUME_CLAIM)
    named = {(one.get("spec") or {}).get("volumeName") or "" for one in claims}
    if lost := in_natural_order(named - names - {""}):
        yield (
            f"claims name {counted(len(lost), 'PersistentVolume')} that the input lacks, and pods "
            f"that use them cannot be placed: {listed_names(lost)}; kubectl get pv -o yaml"
        )


def _node_name(pod: Content) -> str:
    return (pod.get("spec") or {}).get("nodeName") or ""


def _patch_notes(timeline: StepSequence, mode: ExpansionMode) -> list[str]:
    """Notes for the reader about controllers whose templates are changed."""
    what = "is patched, but the pods created for it stay unchanged"
    if mode is ExpansionMode.CONTROLLERS:
        what = "has another template now, but its pods stay unchanged: only rollouts of "
        what += "Deployments and StatefulSets are simulated"
    return [f"{key} {what}" for key in dict.fromkeys(timeline.patched_controllers)]


def _kubelet_version(node: Content) -> str:
    version = members(members(node, "status"), "nodeInfo").get("kubeletVersion")
    return version if isinstance(version, str) else ""
