"""Checks of the objects of an input before the simulation: the rules of the API and our own.

The input is played through once before the simulation. `ObjectIndex` holds the objects that exist
meanwhile: by key, by kind without group, by owner. So a patch of an object that is never created,
or a second pod of one name, is reported with file and line, and the run does not fail midway.

Kinds that nothing reads and fields that a kind does not have are recorded, too. A server without
strict validation ignores a typing error in a field: the pod is placed as if the line were missing.
`--strict` refuses such fields. A mistake that many objects share is one line: its path, the number
of objects, and the first of them.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast, final

from bayplan import durations
from bayplan.adapters.embedded.admission.plugin import is_admitted, is_stored
from bayplan.adapters.embedded.api_defaults import in_stored_version
from bayplan.adapters.embedded.api_validation import (
    SYSTEM_PRIORITY_CLASSES,
    identity_problems,
    problems_of_kind,
    unreadable_problems,
)
from bayplan.adapters.embedded.field_validation import one_of
from bayplan.adapters.embedded.object_templates import TEMPLATES_MAX, template_key
from bayplan.answers.amounts import counted
from bayplan.api.admission_objects import LIMIT_RANGE
from bayplan.api.device_objects import RESOURCE_CLAIM_TEMPLATE
from bayplan.api.field_tables import unknown_fields
from bayplan.api.objects import POD, PRIORITY_CLASS, decoded_kinds
from bayplan.durations import DURATION_ANNOTATION, DurationError, parse_duration
from bayplan.objects.keys import ObjectKey, is_namespaced, key_of, kind_of
from bayplan.problems import Problem, joined, wrong
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.controller_validation import controller_problems, unreadable_controller
from bayplan.sim.input.errors import LINES_MAX, InputErrors
from bayplan.sim.input.foreign_files import has_action, template_message
from bayplan.sim.input.likely_mistakes import LikelyMistakes
from bayplan.sim.input.manifest_fields import manifest_problems
from bayplan.sim.input.sources import OWN_API_VERSION, OWN_KINDS
from bayplan.sim.input.stored_objects import StoredObjects
from bayplan.sim.input.workload import WHEN_DONE, WHEN_DONE_ANNOTATION, Content

# ---- object index ---------------------------------------------------------------------------


#: (namespace, kind without its group, name)
_Bare = tuple[str, str, str]


@final
class ObjectIndex:
    """Existing objects, in the order of their creation."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, Content] = {}
        self._by_bare_kind: dict[_Bare, dict[ObjectKey, None]] = defaultdict(dict)
        self._by_owner: dict[_Bare, dict[ObjectKey, None]] = defaultdict(dict)

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self.objects

    def put(self, key: ObjectKey, content: Content) -> None:
        """Add an object, or replace the object of this key."""
        if key in self.objects:
            self.remove(key)
        self.objects[key] = content
        bare = (key.namespace, key.kind.rpartition(" ")[2], key.name)
        self._by_bare_kind[bare][key] = None
        if "ownerReferences" in content["metadata"]:
            for owner in _owners(key, content):
                self._by_owner[owner][key] = None

    def replace(self, key: ObjectKey, content: Content) -> None:
        """Replace an object by one with the same owners. It stays in its place."""
        assert key in self.objects, key
        self.objects[key] = content

    def remove(self, key: ObjectKey) -> None:
        content = self.objects.pop(key, None)
        if content is None:
            return
        del self._by_bare_kind[_bare(key)][key]
        for owner in _owners(key, content):
            del self._by_owner[owner][key]

    def __getitem__(self, key: ObjectKey) -> Content:
        return self.objects[key]

    def of_kind(self, kind: str) -> list[Content]:
        return [content for key, content in self.objects.items() if key.kind == kind]

    def namespaces(self) -> set[str]:
        """The namespaces of the objects."""
        return {key.namespace for key in self.objects if key.namespace}

    def named(self, bare_kind: str, namespace: str, name: str) -> list[ObjectKey]:
        """Objects of a kind without group; several if groups share the name of the kind."""
        place = namespace if is_namespaced(bare_kind) else ""
        return list(self._by_bare_kind.get((place, bare_kind, name), ()))

    def was_named(self, bare_kind: str, namespace: str, name: str) -> bool:
        """Whether an object of a kind has, or once had, this name."""
        place = namespace if is_namespaced(bare_kind) else ""
        return (place, bare_kind, name) in self._by_bare_kind

    def names(self, bare_kind: str, namespace: str) -> list[str]:
        """The names of the objects of a kind."""
        place = namespace if is_namespaced(bare_kind) else ""
        return [
            name
            for (there, kind, name), keys in self._by_bare_kind.items()
            if there == place and kind == bare_kind and keys
        ]

    def owner_names(self, bare_kind: str, namespace: str) -> list[str]:
        """The names of owners of a kind, whether they exist or not."""
        return [
            name
            for (there, kind, name), owned in self._by_owner.items()
            if there == namespace and kind == bare_kind and owned
        ]

    def owned_by(self, owner: Content) -> list[Content]:
        """The objects that name ``owner`` as an owner; the uids must match if both sides have
        one."""
        key = key_of(owner)
        uid = owner["metadata"].get("uid")
        objects = [self.objects[one] for one in self._by_owner.get(_bare(key), ())]
        return [content for content in objects if _names(content, key, uid)]


def _bare(key: ObjectKey) -> _Bare:
    return key.namespace, key.kind.rpartition(" ")[2], key.name


def _owners(key: ObjectKey, content: Content) -> list[_Bare]:
    references = content["metadata"].get("ownerReferences") or ()
    return [(key.namespace, one.get("kind", ""), one.get("name", "")) for one in references]


def _names(content: Content, owner: ObjectKey, uid: str | None) -> bool:
    for one in content["metadata"].get("ownerReferences") or ():
        if (one.get("kind"), one.get("name")) == (owner.kind.rpartition(" ")[2], owner.name):
            return not uid or not one.get("uid") or one["uid"] == uid
    return False


# ---- kinds and fields that nothing reads ----------------------------------------------------


#: The kinds that a simulation reads with any plugins.
READ_KINDS = frozenset((*decoded_kinds(), *CONTROLLERS, RESOURCE_CLAIM_TEMPLATE))


def read_version(kind: str) -> str | None:
    """The kind that is read in place of a kind of Kubernetes with another version or group.

    `extensions/v1beta1 Deployment` gives `apps/v1 Deployment`, and `v1 node` gives `v1 Node`. None:
    no such kind is read, or the group is that of a custom resource. Our own documents are read in
    one version, too.
    """
    version, _, bare = kind.rpartition(" ")
    own = next((each for each in OWN_KINDS if each.casefold() == bare.casefold()), None)
    if own is not None:
        return f"{OWN_API_VERSION} {own}"
    group = version.rpartition("/")[0]
    if "." in group and not group.endswith(".k8s.io"):
        return None
    named = bare.casefold()
    kinds = sorted(each for each in READ_KINDS if each.rpartition(" ")[2].casefold() == named)
    of_group = [each for each in kinds if each.partition("/")[0] == group]
    return next(iter((*of_group, *kinds)), None)


class _Mistake:
    """A field that a kind does not have."""

    def __init__(self, first: str, hint: str) -> None:
        self.first = first
        self.hint = hint
        self.objects: set[ObjectKey] = set()


#: Pod templates of known operators are nested less deeply.
_DEPTH_MAX = 16
#: A dump may have any number of objects of kinds that nothing reads.
_UNKNOWN_MAX = 10_000


def has_containers(value: Any, depth: int = 0) -> bool:
    """Whether the template of a pod is somewhere in a value."""
    if depth > _DEPTH_MAX:
        return False
    if isinstance(value, Mapping):
        containers = value.get("containers")
        if isinstance(containers, list) and any(isinstance(each, Mapping) for each in containers):
            return True
        return any(has_containers(each, depth + 1) for each in value.values())
    return isinstance(value, list) and any(has_containers(each, depth + 1) for each in value)


def _short(kind: str) -> str:
    """ "ConfigMap"; with its group where a kind that is read has the same name, as kubectl has it:
    "Job.batch.volcano.sh"."""
    version, _, name = kind.rpartition(" ")
    is_taken = any(each.rpartition(" ")[2] == name for each in READ_KINDS)
    return f"{name}.{version.rpartition('/')[0]}" if is_taken else name


#: Kinds whose content the fixes read. Nothing else does, so `--strict` refuses them.
AUTOSCALERS = (
    "autoscaling/v2 HorizontalPodAutoscaler",
    "autoscaling/v1 HorizontalPodAutoscaler",
    "autoscaling/v2beta2 HorizontalPodAutoscaler",
    "keda.sh/v1alpha1 ScaledObject",
)
#: The most kinds that the note about unread kinds names.
_NAMED_KINDS_MAX = 4


@final
class NotUnderstood:
    """Collects unread kinds and unknown fields while an input is read."""

    def __init__(self, read_kinds: Collection[str] = ()) -> None:
        """``read_kinds``: the kinds that plugins read."""
        self._read_kinds = READ_KINDS.union(read_kinds)
        #: Kind as "batch/v1 CronJob" → its objects.
        self.ignored_kinds: Counter[str] = Counter()
        #: (kind, the kind as which it is read) → its objects.
        self._converted: Counter[tuple[str, str]] = Counter()
        #: Those of them with the template of a pod: workloads of a kind that is not known.
        self.unknown_workloads: list[ObjectKey] = []
        self._first: dict[str, str] = {}
        #: By kind and path.
        self._mistakes: dict[tuple[str, str], _Mistake] = {}

    def see(self, key: ObjectKey, content: Content, place: str) -> bool:
        """Returns whether the kind is read and has all fields of the object.

        ``place``: the file and the document of the object.
        """
        kind = key.kind
        if kind not in self._read_kinds:
            stored = kind_of(in_stored_version(content))
            if stored not in READ_KINDS:
                self.ignored_kinds[kind] += 1
                self._note_workload(key, content)
                self._first.setdefault(kind, f"{place} ({key})")
                return False
            self._converted[kind, stored] += 1
        unknown = unknown_fields(kind, content)
        for path, hint in unknown:
            mistake = self._mistakes.setdefault((kind, path), _Mistake(f"{place} ({key})", hint))
            mistake.objects.add(key)
        return not unknown

    def _note_workload(self, key: ObjectKey, content: Content) -> None:
        if len(self.unknown_workloads) < _UNKNOWN_MAX and has_containers(content):
            self.unknown_workloads.append(key)

    def refuse(self, errors: InputErrors) -> None:
        """Report all of them as errors."""
        for kind, count in self._kinds():
            more = f" and {count - 1:,} more" if count > 1 else ""
            expected = "a kind that a simulation or a plugin reads"
            errors.add(f"{self._first[kind]}{more}", f"found kind {kind}, wanted {expected}")
        for place, problem in self._fields():
            errors.add(place, problem)

    def versions(self) -> list[str]:
        """Notes about kinds that are read in another version than that of the input."""
        notes = [
            f"{count:,} {kind}: read as {stored}"
            for (kind, stored), count in sorted(self._converted.items())
        ]
        for kind, count in self._kinds():
            read = read_version(kind)
            if read is not None:
                has_name = read.rpartition(" ")[2] == kind.rpartition(" ")[2]
                what = "apiVersion" if has_name else "kind"
                notes.append(f"{count:,} {kind}: ignored, {read} is read; change the {what}")
        return notes

    def notes(self) -> list[str]:
        """Notes for the reader, besides `versions`."""
        notes: list[str] = []
        unread = [
            (_short(kind), count)
            for kind, count in self._kinds()
            if read_version(kind) is None and kind not in AUTOSCALERS
        ]
        if unread:
            listed = ", ".join(f"{count:,} {kind}" for kind, count in unread[:_NAMED_KINDS_MAX])
            further = len(unread) - _NAMED_KINDS_MAX
            more = f" and {counted(further, 'more kind')}" if further > 0 else ""
            notes.append(f"not read: {listed}{more}")
        lines = [f"{place}: {problem}" for place, problem in self._fields()]
        notes += lines[:LINES_MAX]
        if len(lines) > LINES_MAX:
            notes.append(f"and {len(lines) - LINES_MAX:,} more fields that no kind has")
        return notes

    def _kinds(self) -> list[tuple[str, int]]:
        return sorted(self.ignored_kinds.items(), key=lambda one: (-one[1], one[0]))

    def _fields(self) -> Iterator[tuple[str, str]]:
        """(place, problem)"""
        for (kind, path), mistake in self._mistakes.items():
            short, count = kind.rpartition(" ")[2], len(mistake.objects)
            more = f" and {count - 1:,} more" if count > 1 else ""
            hint = f"; {mistake.hint}" if mistake.hint else ""
            yield f"{mistake.first}{more}", f"{path} is not a field of {short}{hint}"


# ---- object checks --------------------------------------------------------------------------


CONFIGURATION = "KubeSchedulerConfiguration"
#: A part of the paths of the resources of containers.
_RESOURCES = "].resources"
PRIORITY_CLASS_KIND = PRIORITY_CLASS.split()[1]
LIMIT_RANGE_KIND = LIMIT_RANGE.split()[1]


@final
class ObjectChecks:
    """Checks objects and collects their problems."""

    def __init__(
        self,
        errors: InputErrors,
        priority_classes: Collection[str],
        not_understood: NotUnderstood | None = None,
        *,
        has_limit_ranges: bool = False,
        reads_all: bool = False,
    ) -> None:
        """``priority_classes``: the names of all classes there ever are in the input.
        ``has_limit_ranges``: a new pod may get resources that it lacks, so that only the server can
        check its resources. ``reads_all``: an object that cannot be read is a problem, also if a
        server has stored it."""
        self._reads_all = reads_all
        self._has_limit_ranges = has_limit_ranges
        self._errors = errors
        self._not_understood = not_understood or NotUnderstood()
        self._priority_classes = (*sorted(priority_classes), *SYSTEM_PRIORITY_CLASSES)
        #: Templates of pods and nodes without problems and likely mistakes. A further object of one
        #: of them can only have problems in its annotations.
        self._accepted: set[bytes | None] = set()
        self.mistakes = LikelyMistakes()
        self.stored = StoredObjects()

    def accepts(self, value: Any, place: str) -> bool:
        """Whether a value is an object that can be created. If not, its problems are collected, or
        it is left out: a server has stored it, and it cannot be read."""
        template = template_key(value)
        if template in self._accepted and (
            "annotations" not in value["metadata"] or not any(_annotations(value, ""))
        ):
            return True
        if isinstance(value, dict) and value.get("kind") == CONFIGURATION:
            expected = "objects of a cluster; a scheduler's configuration is given with --config"
            self._errors.add(place, wrong("kind", CONFIGURATION, expected))
            return False
        problems = identity_problems(value)
        if problems:
            if _was_stored(value) and not self._reads_all:
                self.stored.leave_out(place, problems, None, value)
            else:
                self._refuse(place, problems)
            return False
        content = cast(Content, value)
        key = key_of(content)
        named = f"{place} ({key})"
        problems = self._problems(key.kind, content)
        # Annotations of ours are no server's matter.
        refused = [*_own_annotations(key.kind, content)] if _was_stored(content) else problems
        if refused:
            self._refuse(named, refused)
            return False
        unreadable = _unreadable(key.kind, content) if problems else []
        if unreadable and self._reads_all:
            self._refuse(named, unreadable)
            return False
        if unreadable:
            self.stored.leave_out(named, unreadable, key, content)
            return False
        self.stored.take(key.kind, named, problems)
        is_understood = self._not_understood.see(key, content, place)
        is_likely = not self.mistakes.see(key, content, place)
        if is_understood and is_likely and template is not None and not problems:
            if len(self._accepted) >= TEMPLATES_MAX:
                self._accepted.clear()
            self._accepted.add(template)
        return True

    def accepts_patch(self, old: Content, new: Content, place: str) -> bool:
        """Whether an object can be patched so. What was invalid before may stay invalid."""
        key = key_of(old)
        before = self._problems(key.kind, old)
        problems = [each for each in self._problems(key.kind, new) if each not in before]
        if problems:
            self._refuse(f"{place} ({key})", problems)
            return False
        self._not_understood.see(key, new, place)
        self.mistakes.see(key, new, place)
        return True

    def _refuse(self, place: str, problems: list[Problem]) -> None:
        if any(has_action(problem.actual) for problem in problems):
            problems = [Problem("", f"found {template_message(None)}")]
        self._errors.add_all(place, problems)

    def _problems(self, kind: str, content: Content) -> list[Problem]:
        try:
            is_new = not is_admitted(content)
            problems = problems_of_kind(kind, content, is_new=is_new)
            if kind == POD and is_new and self._has_limit_ranges:
                problems = [each for each in problems if _RESOURCES not in each.path]
            if kind in CONTROLLERS:
                problems += controller_problems(content, is_new=is_new)
            if problems:
                return problems
            if is_new:
                problems = list(manifest_problems(kind, content))
            return [*problems, *self._our_own(kind, content, is_new=is_new)]
        except RecursionError:
            return [_TOO_DEEP]

    def _our_own(self, kind: str, content: Content, *, is_new: bool) -> Iterator[Problem]:
        """Problems that the API server does not report: priority classes and annotations.

        The server refuses a new pod whose class does not exist. A pod that a cluster has stored has
        a priority, and only its class can tell it.
        """
        if kind == POD:
            spec = content.get("spec") or {}
            name = "" if is_new else spec.get("priorityClassName")
            if name and spec.get("priority") is None and name not in self._priority_classes:
                place, expected = "spec.priorityClassName", "a PriorityClass of the input"
                yield wrong(place, name, expected, self._priority_classes)
            yield from _annotations(content, "")
        elif kind in CONTROLLERS:
            yield from _annotations(content["spec"]["template"], "spec.template")


_TOO_DEEP = Problem("", "is nested too deeply")


def _was_stored(value: Any) -> bool:
    """Whether a value, which may lack a kind or a name, was stored by a server."""
    meta = value.get("metadata") if isinstance(value, dict) else None
    return isinstance(meta, dict) and is_stored(cast(Content, value))


def _unreadable(kind: str, content: Content) -> list[Problem]:
    """Why an object that a server has stored cannot be read."""
    try:
        problems = unreadable_problems(kind, content)
        if not problems and kind in CONTROLLERS:
            problems = unreadable_controller(content)
        return problems
    except RecursionError:
        return [_TOO_DEEP]


def _own_annotations(kind: str, content: Content) -> Iterator[Problem]:
    """Problems of our annotations in an object that may have any values."""
    spec = content.get("spec")
    template = spec.get("template") if kind in CONTROLLERS and isinstance(spec, dict) else None
    for pod, path in ((content if kind == POD else None, ""), (template, "spec.template")):
        meta = pod.get("metadata") if isinstance(pod, dict) else None
        annotations = meta.get("annotations") if isinstance(meta, dict) else None
        if isinstance(pod, dict) and isinstance(annotations, dict):
            yield from _annotations(cast(Content, pod), path)


def _annotations(pod: Content, path: str) -> Iterator[Problem]:
    """Problems of the annotations of a pod, or of a pod template at ``path``."""
    annotations: dict[str, str] = (pod.get("metadata") or {}).get("annotations") or {}
    path = joined(path, "metadata.annotations")
    duration = annotations.get(DURATION_ANNOTATION)
    if duration is not None:
        try:
            parse_duration(duration)
        except DurationError:
            yield wrong(joined(path, DURATION_ANNOTATION), duration, durations.DESCRIPTION)
    then = annotations.get(WHEN_DONE_ANNOTATION)
    if then is not None and then not in WHEN_DONE:
        yield wrong(joined(path, WHEN_DONE_ANNOTATION), then, one_of(WHEN_DONE), WHEN_DONE)


def is_limit_range(value: Any) -> bool:
    """Whether a value of the input is a LimitRange."""
    if not isinstance(value, dict) or value.get("kind") != LIMIT_RANGE_KIND:
        return False
    return kind_of(cast(Content, value)) == LIMIT_RANGE


def priority_class_name(value: Any) -> str | None:
    """The name of a PriorityClass in the input; None: the value is no PriorityClass."""
    if not isinstance(value, dict) or value.get("kind") != PRIORITY_CLASS_KIND:
        return None
    content = cast(Content, value)
    if kind_of(content) != PRIORITY_CLASS:
        return None
    meta = content.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    return name if isinstance(name, str) else None
