"""The steps of a workload: actions, checked by playing them through once in advance.

An object that is patched or deleted must exist at that time; an object that is created must not. A
patched object must be as valid as a created one. Controllers are expanded when they appear, new
nodes get their daemon pods, and a deletion also deletes the objects that the object owns.

If controllers act in the whole run, the pods of later moments are unknown here. During the run,
controllers create the daemon pods of new nodes and the later pods of StatefulSets, and the objects
that a controller owns are deleted with it. The index holds the objects that the input names.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import final

from bayplan.adapters.embedded.api_validation import update_problems
from bayplan.adapters.embedded.json_merge import merge_patch, without_nulls
from bayplan.api.objects import DEPLOYMENT, JOB, NAMESPACE, NODE, STATEFUL_SET, ApiObject
from bayplan.objects.keys import Content, ObjectKey, key_of, kind_of, object_key
from bayplan.objects.object_store import ObjectStore
from bayplan.problems import Problem, nearest
from bayplan.sim.input.controller_kinds import CONTROLLERS, is_controller
from bayplan.sim.input.controller_pods import with_uid
from bayplan.sim.input.errors import InputErrors
from bayplan.sim.input.expansion import daemon_pods_for, daemon_pods_on, expand
from bayplan.sim.input.identities import Identities
from bayplan.sim.input.jobs import JobTally
from bayplan.sim.input.object_checks import ObjectChecks, ObjectIndex
from bayplan.sim.input.scenario import Action, ObjectName, name_of, read_operation
from bayplan.sim.input.workload import (
    ExpansionMode,
    Step,
    Verb,
    create_step,
    has_ended,
    is_pod,
)

#: The members of a patch or a deletion that only name the object.
_IDENTITY = ("apiVersion", "kind", "metadata")
_NAMES = ("name", "namespace")


@final
class StepSequence:
    """Turns objects and actions, in the order of their time, into steps."""

    def __init__(
        self,
        checks: ObjectChecks,
        errors: InputErrors,
        mode: ExpansionMode = ExpansionMode.ONCE,
        present: ObjectStore[ApiObject] | None = None,
    ) -> None:
        """``present``: objects that exist besides those of the input."""
        self._checks = checks
        self._errors = errors
        self._is_once = mode is ExpansionMode.ONCE
        self.index = ObjectIndex()
        self.identities = Identities(self.index, ObjectStore() if present is None else present)
        self._places: dict[ObjectKey, str] = {}
        #: Pods that controllers are expected to create later, by the controller's uid.
        self.followers: dict[str, tuple[Content, ...]] = {}
        #: Pods made for controllers by kind, and the uids of these controllers.
        self.made: Counter[str] = Counter()
        self.made_for: defaultdict[str, set[str]] = defaultdict(set)
        #: Controllers whose existing pods do not change although a patch changes their template.
        self.patched_controllers: list[ObjectKey] = []
        #: StatefulSets that create no further pods before one that is there runs.
        self.waiting_stateful_sets: list[ObjectKey] = []
        #: Objects that were read in another version before, with their places.
        self.other_versions: list[str] = []

    # ---- objects ----------------------------------------------------------------------------

    def add(self, content: Content, place: str) -> ObjectKey | None:
        """Add a checked object to the index, under its name and with a uid of its own. Returns its
        key; None if its name is taken.

        A taken name is an error, unless both are the same object, which was read from a cluster
        twice.
        """
        if not content["metadata"].get("name"):
            content = self.identities.with_name(content)
        key = key_of(content)
        if key in self.index.objects:
            uid = content["metadata"].get("uid")
            if not uid or self.identities.uid_in_input(key) != uid:
                self._errors.add(place, f"{key} is there already, from {self._places[key]}")
            elif _version(content) != _version(self.index[key]):
                self.other_versions.append(f"{key} of {place}")
            return None
        if content["metadata"].get("uid"):
            content = self.identities.with_own_uid(content)
        if key.kind in CONTROLLERS:
            content = with_uid(content)
        self.index.put(key, content)
        self._places[key] = place
        return key

    def pods_of(self, controller: Content, place: str) -> list[Content]:
        """The objects that come with a controller: the pods that it lacks, and their claims."""
        expansion = expand(controller, self.index, once=self._is_once)
        if expansion.followers:
            self.followers[controller["metadata"]["uid"]] = tuple(expansion.followers)
            if kind_of(controller) == STATEFUL_SET:
                self._made(expansion.followers, place)  # a scenario may name them
                if self._is_once:
                    self.waiting_stateful_sets.append(key_of(controller))
        kind = controller["kind"]
        pods = sum(map(is_pod, (*expansion.objects, *expansion.followers)))
        self.made[kind] += pods
        if pods:
            self.made_for[kind].add(controller["metadata"]["uid"])
        return self._made(expansion.objects, place)

    def with_ended_pods(self, controller: Content) -> Content:
        """The controller; a Job's status counts its pods that have ended, for they take no part in
        the run."""
        if kind_of(controller) != JOB:
            return controller
        pods = [one for one in self.index.owned_by(controller) if has_ended(one)]
        if self._is_once or not pods:
            return controller
        status = {**(controller.get("status") or {}), **JobTally.of(controller, pods).status()}
        return {**controller, "status": status}

    def daemons_on(self, node: Content, place: str) -> list[Content]:
        """The pods that the DaemonSets create for a new node."""
        pods = daemon_pods_for(node, self.index)
        self.made["DaemonSet"] += len(pods)
        owners = {pod["metadata"]["ownerReferences"][0]["uid"] for pod in pods}
        self.made_for["DaemonSet"] |= owners
        made = self._made(pods, place)
        if self._is_once:
            return made
        for pod in pods:
            uid = pod["metadata"]["ownerReferences"][0]["uid"]
            self.followers[uid] = (*self.followers.get(uid, ()), pod)
        return []

    def _made(self, objects: list[Content], place: str) -> list[Content]:
        for one in objects:
            key = key_of(one)
            self.index.put(key, one)
            self._places[key] = place
        return objects

    # ---- actions ----------------------------------------------------------------------------

    def steps(self, actions: Iterable[Action]) -> Iterator[Step]:
        """The steps of actions, which are in the order of their time."""
        for action in actions:
            try:
                if action.verb is Verb.CREATE:
                    yield from self._create(action)
                elif action.verb is Verb.PATCH:
                    yield from self._patch(action)
                elif action.verb is Verb.DELETE:
                    yield from self._delete(action)
                else:
                    yield from self._operation(action)
            except RecursionError:
                self._errors.add(action.place, "is nested too deeply")

    def _create(self, action: Action) -> Iterator[Step]:
        value = without_nulls(action.value)
        if not self._checks.accepts(value, action.place):
            return
        key = self.add(value, action.place)
        if key is None:
            return
        content = self.identities.with_references(key, self.index[key])
        self.index.replace(key, content)
        yield create_step(action.at_seconds, content)
        made: list[Content] = []
        if is_controller(content):
            made = self.pods_of(content, action.place)
        elif kind_of(content) == NODE:
            made = self.daemons_on(content, action.place)
        for one in made:
            yield create_step(action.at_seconds, one)

    def _patch(self, action: Action) -> Iterator[Step]:
        key = self._named(action)
        if key is None:
            return
        patch = _patch_of(action.value)
        old = self.index[key]
        new = merge_patch(old, patch)
        if not self._checks.accepts_patch(old, new, action.place):
            return
        self._errors.add_all(f"{action.place} ({key})", update_problems(key.kind, old, new))
        self.index.put(key, new)
        is_rolled_out = key.kind in (DEPLOYMENT, STATEFUL_SET) and not self._is_once
        is_changed = self._is_once or _template(old) != _template(new)
        if is_controller(new) and is_changed and not is_rolled_out:
            self.patched_controllers.append(key)
        yield Step(at_seconds=action.at_seconds, verb=Verb.PATCH, key=key, content=patch)
        if _is_being_deleted(new) and not _finalizers(new):
            yield from self._removal(key, action, is_gone=True)

    def _operation(self, action: Action) -> Iterator[Step]:
        """The steps of a kubectl verb on a node, a pod or the replicas of a controller."""
        operation = read_operation(action)
        if isinstance(operation, Problem):
            self._errors.add(action.place, operation)
            return
        key = self._key(operation.name, action.place)
        if key is None:
            return
        patch = operation.patch
        if patch:
            self.index.put(key, merge_patch(self.index[key], patch))
            if self._is_once and action.verb is Verb.SCALE:
                self.patched_controllers.append(key)
        if action.verb is Verb.EVICT and not self._stays(key):
            self._remove(key)
        content = operation.options if action.verb is Verb.DRAIN else patch
        yield Step(at_seconds=action.at_seconds, verb=action.verb, key=key, content=content)

    def _delete(self, action: Action) -> Iterator[Step]:
        key = self._named(action)
        if key is None:
            return
        if self._stays(key):
            yield Step(at_seconds=action.at_seconds, verb=Verb.DELETE, key=key)
        else:
            yield from self._removal(key, action)

    def _stays(self, key: ObjectKey) -> bool:
        """Whether an object that is deleted now stays until its finalizers are patched away."""
        content = self.index[key]
        if _finalizers(content):
            stamp = {"deletionTimestamp": "1970-01-01T00:00:00Z"}
            self.index.put(key, merge_patch(content, {"metadata": stamp}))
            return True
        return False

    def _removal(self, key: ObjectKey, action: Action, *, is_gone: bool = False) -> Iterator[Step]:
        """The steps that delete an object and the objects that it owns.

        ``is_gone``: the object goes by itself.
        """
        for one in self._with_owned(key):
            if one.kind == NAMESPACE:
                # The simulation deletes what is in it.
                for inside in [each for each in self.index.objects if each.namespace == one.name]:
                    self.index.remove(inside)
            if one.kind == NODE:
                # The daemon pods are deleted with the node. A new node of this name gets new ones.
                for pod in daemon_pods_on(self.index[one], self.index):
                    self.index.remove(pod)
            is_dependent = one != key and self._has_controller(one)
            if one == key or not self._stays(one):
                self._remove(one, is_final=one != key)
            if (is_dependent and not self._is_once) or (is_gone and one == key):
                continue  # deleted with the controller, or gone by itself
            yield Step(at_seconds=action.at_seconds, verb=Verb.DELETE, key=one)

    def _remove(self, key: ObjectKey, *, is_final: bool = False) -> None:
        """Remove an object from the index. A pod of a StatefulSet comes back under its name, unless
        the StatefulSet goes, too (``is_final``)."""
        if self._is_once or is_final or not self._has_controller(key, STATEFUL_SET):
            self.index.remove(key)

    def _has_controller(self, key: ObjectKey, *kinds: str) -> bool:
        """Whether a workload controller, of one of these kinds, owns an object."""
        owners = self.index[key]["metadata"].get("ownerReferences") or ()
        return any(kind_of(one) in (kinds or CONTROLLERS) for one in owners)

    def _with_owned(self, key: ObjectKey) -> list[ObjectKey]:
        """An object and the objects that it owns, as the garbage collector sees them."""
        keys = [key]
        for owner in keys:  # grows while it is walked
            owned = map(key_of, self.index.owned_by(self.index[owner]))
            keys += [one for one in owned if one not in keys]
        return keys

    # ---- naming an object -------------------------------------------------------------------

    def _named(self, action: Action) -> ObjectKey | None:
        """The object that a patch or a deletion means; None, with an error, if there is none."""
        named = name_of(action.value)
        if isinstance(named, Problem):
            self._errors.add(action.place, named)
            return None
        return self._key(named, action.place)

    def _key(self, named: ObjectName, place: str) -> ObjectKey | None:
        """The object of a name; None, with an error, if there is none or there are several."""
        api_version, kind, namespace, name = named
        if api_version:
            key = object_key(f"{api_version} {kind}", namespace, name)
            matches = [key] if key in self.index else []
        else:
            matches = self.index.named(kind, namespace, name)
        if len(matches) == 1:
            return matches[0]
        shown_key = object_key(f"{api_version} {kind}", namespace, name)
        if matches:
            groups = " or ".join(one.kind.partition(" ")[0] for one in matches)
            self._errors.add(place, f"{shown_key} could be of {groups}: say apiVersion")
        else:
            close = nearest(name, self.index.names(kind, namespace))
            hint = f"; did you mean {close}?" if close is not None and close != name else ""
            self._errors.add(place, f"{shown_key} is not there at that time{hint}")
        return None


def _is_being_deleted(content: Content) -> bool:
    return bool(content["metadata"].get("deletionTimestamp"))


def _finalizers(content: Content) -> object:
    return content["metadata"].get("finalizers")


def _template(controller: Content) -> object:
    return (controller.get("spec") or {}).get("template")


def _patch_of(value: Content) -> Content:
    """The changes: all members except those that name the object."""
    patch = {name: one for name, one in value.items() if name not in _IDENTITY}
    meta = value.get("metadata")
    if isinstance(meta, dict):
        changed = {name: one for name, one in meta.items() if name not in _NAMES}
        if changed:
            patch["metadata"] = changed
    return patch


def _version(content: Content) -> str | None:
    version: str | None = content["metadata"].get("resourceVersion")
    return version
