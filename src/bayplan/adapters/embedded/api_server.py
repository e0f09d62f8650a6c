"""The rules of an API server over objects in memory: verbs, refusals, and the steps of a creation.

No call waits: the changes that a call causes happen during the call. Only a graceful deletion takes
time, through the ``later`` of the constructor. Pods need no kubelet: a bound pod runs, and it is
removed when its grace period has passed.

A binding is checked as upstream checks it (uid, deletion, node, gates). As upstream, the server
does not check whether the node exists. Sources: pkg/registry/core/pod/storage
(setPodNodeAndMetadata), api/v1/pod (UpdatePodCondition).

A new object gets the defaults of its type, the changes of the admission plugins and what follows
from them; then it is validated, and then plugins may refuse it. What admission has seen before
(`admission.is_admitted`) is stored as it is. What a server has stored (`admission.is_stored`) is
not validated: a server of another version, or with other feature gates, accepted it. Upstream:
apiserver, endpoints/handlers/create.go, registry/generic/registry/store.go.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import nan
from typing import Any, NamedTuple, cast, final

from msgspec import structs

from bayplan.adapters.embedded import api_errors
from bayplan.adapters.embedded.admission.chain import AdmissionChain
from bayplan.adapters.embedded.admission.plugin import is_admitted, is_stored
from bayplan.adapters.embedded.admission.plugin_set import DEFAULT_PLUGINS, PluginSet
from bayplan.adapters.embedded.admission.pod_topology_labels import with_labels
from bayplan.adapters.embedded.api_defaults import (
    defaulted,
    in_stored_version,
    prepared,
)
from bayplan.adapters.embedded.api_features import NO_FEATURES, ApiFeatures
from bayplan.adapters.embedded.api_validation import (
    identity_problems,
    problems_of_kind,
    problems_of_new_pod,
    unreadable_problems,
    update_problems,
)
from bayplan.adapters.embedded.field_validation import generated_name, stable_uid
from bayplan.adapters.embedded.json_merge import merge_patch
from bayplan.adapters.embedded.object_templates import ObjectTemplates
from bayplan.adapters.embedded.versioned_store import StoredObject, VersionedStore
from bayplan.api.objects import (
    HOSTNAME_LABEL,
    NAMESPACE,
    NODE,
    POD,
    POD_SCHEDULED,
    PRIORITY_CLASS,
    UNREACHABLE_TAINT,
    Condition,
    Node,
    Pod,
    PodStatus,
    decode,
    is_terminal,
)
from bayplan.clock import Clock, rfc3339
from bayplan.objects.keys import Content, ObjectKey, key_of, new_key, object_key
from bayplan.ports import ApiError, PatchPodStatus
from bayplan.problems import Problem

# ---- pod status -----------------------------------------------------------------------------


def why_not_bindable(pod: Content) -> str | None:
    """The reason why a pod cannot be bound, in upstream's words; None: it can be bound."""
    spec = pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        return "is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return "has non-empty .spec.schedulingGates"
    return None


def bound_status(status: Content, stamp: str) -> Content:
    """The status of a pod that was bound to its node and runs since then."""
    status = {**status, "phase": "Running"}
    status.pop("nominatedNodeName", None)
    scheduled = {"type": POD_SCHEDULED, "status": "True"}
    status["conditions"] = with_condition(status, scheduled, stamp)
    if not status.get("startTime"):
        status["startTime"] = stamp
    return status


class _BoundStatus(NamedTuple):
    """The status of a pod after a binding at one time, as plain values and decoded."""

    before: Content | None = None
    at_seconds: float = nan
    content: Content = {}
    decoded: PodStatus = PodStatus()


def failed(status: Content, condition: Content | None, stamp: str) -> Content:
    """The status of a pod that has failed, with the condition that says why."""
    status = {**status, "phase": "Failed"}
    if condition is not None:
        status["conditions"] = with_condition(status, condition, stamp)
    return status


def patched(status: Content, patch: PatchPodStatus, stamp: str) -> Content:
    """The status with the condition and the nomination of a patch."""
    status = dict(status)
    if patch.nominated_node_name is not None:
        status["nominatedNodeName"] = patch.nominated_node_name
        if not patch.nominated_node_name:
            del status["nominatedNodeName"]
    if patch.condition is not None:
        status["conditions"] = with_condition(status, _plain(patch.condition), stamp)
    return status


def _plain(condition: Condition) -> Content:
    members = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": condition.observed_generation,
    }
    return {name: value for name, value in members.items() if value is not None}


def with_condition(status: Content, condition: Content, stamp: str) -> list[Content]:
    """The conditions of a status with ``condition``. Its time changes only with its status."""
    conditions: list[Content] = list(status.get("conditions") or ())
    for index, old in enumerate(conditions):
        if old.get("type") == condition["type"]:
            same = old.get("status") == condition["status"]
            since = old.get("lastTransitionTime") if same else None
            conditions[index] = {**condition, "lastTransitionTime": since or stamp}
            return conditions
    return [*conditions, {**condition, "lastTransitionTime": stamp}]


# ---- api server -----------------------------------------------------------------------------


#: ``later(seconds, call)``: calls ``call`` after ``seconds``.
Later = Callable[[float, Callable[[], None]], object]

#: ``soon(call)``: calls ``call`` after the present change.
Soon = Callable[[Callable[[], None]], object]

#: How often the server tries to generate a name that no object has.
_NAME_TRIES_MAX = 8

#: Metadata that only the server writes.
_FIXED = frozenset(
    (
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "name",
        "namespace",
        "uid",
    )
)


@final
class ApiServer:
    """Create, update, patch, delete, bind. Each call raises ApiError if the server refuses it."""

    def __init__(
        self,
        clock: Clock,
        store: VersionedStore,
        later: Later,
        plugins: PluginSet = DEFAULT_PLUGINS,
        *,
        features: ApiFeatures = NO_FEATURES,
        charged_pods: Iterable[Pod] = (),
    ) -> None:
        """``plugins``: the admission plugins that run. ``charged_pods``: see
        `ResourceQuotaAdmission`."""
        self._clock = clock
        self._admission = AdmissionChain(
            plugins, store, clock, features=features, charged_pods=charged_pods
        )
        self._store = store
        self._later = later
        #: The number of objects that have had a name; each of them gets a uid of its own.
        self._made: dict[ObjectKey, int] = {}
        self._last_bound = _BoundStatus()
        self._templates = ObjectTemplates()
        store.observe(self._templates.forget, (PRIORITY_CLASS, *self._admission.read_kinds))
        #: Pods whose grace has not passed yet: by uid, when it will have passed.
        self.terminating: dict[str, float] = {}
        #: Pods whose grace has passed and that no kubelet ends, by uid.
        self._stranded: dict[str, ObjectKey] = {}
        store.observe(self._end_stranded, (NODE,))
        #: The last time stamp, and the time of the clock that it is for.
        self._stamp, self._stamp_seconds = "", nan

    # ---- create -----------------------------------------------------------------------------

    def create(self, content: Content) -> StoredObject:
        """Apply defaults, admission and validation. Returns the stored object.

        A uid, a creationTimestamp and a deletionTimestamp in the content stay: an object that was
        read from a cluster keeps its identity, and may be terminating.
        """
        template = self._templates.find(content)
        if template is None:
            stored = self._create(content)
            self._templates.learn(stored)
            return stored
        # Another object of a template. Its content has been found valid.
        own = content["metadata"]
        key = new_key((template.kind, template.namespace, own["name"]))
        made_count = self._made.get(key, 0)
        if made_count and self._store.get(key) is not None:
            raise api_errors.AlreadyExistsError(key)
        if not template.was_admitted:
            for plugin in self._admission.counting:
                plugin.validate(key, template.content, template.object)
        self._made[key] = made_count + 1
        # Without methods of the dictionary: most pods have none of these.
        uid = ("uid" in own and own["uid"]) or stable_uid(key, made_count)
        created_at = ("creationTimestamp" in own and own["creationTimestamp"]) or self.stamp()
        version = str(self._store.version + 1)
        members: Content = {
            "name": key.name,
            "uid": uid,
            "creationTimestamp": created_at,
            "resourceVersion": version,
        }
        annotations = own["annotations"] if "annotations" in own else None  # noqa: SIM401
        if annotations and template.annotations:
            annotations = {**annotations, **template.annotations}
        if annotations:
            members["annotations"] = annotations
        meta, labels = template.object.metadata, template.object.metadata.labels
        if template.names_itself:
            labels = members["labels"] = {**(labels or {}), HOSTNAME_LABEL: key.name}
        content = {**template.content, "metadata": {**template.content["metadata"], **members}}
        meta = structs.replace(
            meta,
            name=key.name,
            uid=uid,
            creation_timestamp=created_at,
            resource_version=version,
            annotations=annotations or meta.annotations,
            labels=labels,
        )
        decoded = structs.replace(template.object, metadata=meta)
        return self._store.put_versioned(key, content, decoded)

    def _create(self, content: Content) -> StoredObject:
        content = in_stored_version(content)
        nameless = identity_problems(content)
        if nameless:
            raise ApiError(400, "BadRequest", "; ".join(map(str, nameless)))
        key, content = self._named(content)
        if self._store.get(key) is not None:
            raise api_errors.AlreadyExistsError(key)
        was_admitted, was_stored = is_admitted(content), is_stored(content)
        if key.kind == POD or was_stored:
            _refuse(key, unreadable_problems(key.kind, content))
        else:
            _refuse(key, problems_of_kind(key.kind, content))
        content = defaulted(key.kind, content)
        content = self._admission.admit(key, content, was_admitted=was_admitted)
        content = prepared(key.kind, content)
        made_count = self._made.get(key, 0)
        own = content["metadata"]
        meta = {
            "creationTimestamp": self.stamp(),
            **own,
            "uid": own.get("uid") or stable_uid(key, made_count),
            "generation": 1,
            "resourceVersion": self._store.next_version,
        }
        content = {**content, "metadata": meta}
        if key.kind == POD and content["spec"].get("nodeName"):
            content = self._started(content)
        decoded = self._store.decoded(key, content)
        if isinstance(decoded, Pod) and not was_stored:
            _refuse(key, problems_of_new_pod(decoded, is_new=not was_admitted))
        if not was_admitted:
            self._admission.validate(key, content, decoded)
        self._made[key] = made_count + 1
        stored = self._store.put_versioned(key, content, decoded)
        if content["metadata"].get("deletionTimestamp"):
            self._end_gracefully(stored)
        return stored

    def create_unread(self, kind: str, content_at: Callable[[str], Content]) -> bool:
        """Create an object that is made when its kind is first read.

        ``content_at(stamp)``: returns a valid object with a name that no object ever had. False:
        the kind has readers, so the caller must call `create`.
        """
        return self._store.put_unread(kind, partial(self._read_at_last, content_at, self.stamp()))

    def _read_at_last(
        self, content_at: Callable[[str], Content], stamp: str
    ) -> tuple[ObjectKey, Content]:
        content = content_at(stamp)
        key = key_of(content)
        self._made[key] = 1
        identity = {"uid": stable_uid(key, 0), "creationTimestamp": stamp}
        meta = {**identity, **content["metadata"], "generation": 1}
        return key, {**content, "metadata": meta}

    def _named(self, content: Content) -> tuple[ObjectKey, Content]:
        """The object with its namespace and with its name, which may follow from generateName."""
        meta = dict(content.get("metadata") or {})
        key = key_of(content)
        prefix = meta.get("generateName")
        if not key.name and isinstance(prefix, str):
            meta["name"] = self._generated_name(key, prefix)
            key = key._replace(name=meta["name"])
        if key.namespace:
            meta["namespace"] = key.namespace
        return key, {**content, "metadata": meta}

    def _generated_name(self, key: ObjectKey, prefix: str) -> str:
        """A name for an object without one. If each try gives a name that is taken, the last name
        is returned. Upstream: createWithGenerateNameRetry."""
        name = ""
        for _ in range(_NAME_TRIES_MAX):
            made = self._made[key] = self._made.get(key, 0) + 1
            name = generated_name(key, prefix, made)
            if self._store.get(key._replace(name=name)) is None:
                break
        return name

    def stamp(self) -> str:
        """The present time as a time stamp."""
        now = self._clock.now()
        if now != self._stamp_seconds:
            self._stamp_seconds = now
            self._stamp = rfc3339(self._clock.epoch_seconds())
        return self._stamp

    def _started(self, pod: Content) -> Content:
        """A pod that comes with a node has begun to run, unless it has ended."""
        status = pod["status"]
        if status["phase"] == "Running" and not status.get("startTime"):
            return {**pod, "status": {**status, "startTime": self.stamp()}}
        return pod

    # ---- update -----------------------------------------------------------------------------

    def get(self, key: ObjectKey) -> StoredObject:
        stored = self._store.get(key)
        if stored is None:
            raise api_errors.no_such_object(key)
        return stored

    def was_created(self, key: ObjectKey) -> bool:
        """Whether an object has, or once had, this key."""
        return key in self._made

    def update(self, content: Content) -> StoredObject:
        """Replace an object. A resourceVersion in the content must be the newest one."""
        content = in_stored_version(content)
        return self._write(self.get(key_of(content)), content)

    def patch(self, key: ObjectKey, patch: Content) -> StoredObject:
        """Apply a JSON merge patch. A resourceVersion or uid in it must be the object's own."""
        old = self.get(key)
        return self._write(old, merge_patch(old.content, patch))

    def set_phase(self, key: ObjectKey, phase: str) -> StoredObject:
        """Set the phase of a pod, as a kubelet does."""
        return self.patch(key, {"status": {"phase": phase}})

    def _write(self, old: StoredObject, new: Content) -> StoredObject:
        new = {**new, "apiVersion": old.content["apiVersion"], "kind": old.content["kind"]}
        problems = problems_of_kind(old.key.kind, new, old.content)
        if problems:
            # What was stored may be invalid: an update is refused for what it makes invalid.
            before = problems_of_kind(old.key.kind, old.content, is_new=False)
            _refuse(old.key, [each for each in problems if each not in before])
        _expect_same(old, new.get("metadata") or {})
        # A patch shares the parts that it does not change. Their defaults are set.
        shares_spec = old.key.kind == POD and new.get("spec") is old.content["spec"]
        new = _with_identity_of(old.content, new if shares_spec else defaulted(old.key.kind, new))
        if _without_version(new) == _without_version(old.content):
            return old
        _refuse(old.key, update_problems(old.key.kind, old.content, new))
        stored = self._put_with_spec_of(old, new) if shares_spec else self._store.put(old.key, new)
        if new["metadata"].get("deletionTimestamp"):
            self._remove_if_free(stored)
        return stored

    # ---- pods -------------------------------------------------------------------------------

    def bind(self, key: ObjectKey, uid: str, node_name: str) -> StoredObject:
        """Bind a pod to a node, once. The pod runs at once."""
        old = self._store.get(key)
        if old is None:
            raise api_errors.no_such_object(key)
        content, pod = old.content, old.object
        if uid != content["metadata"]["uid"]:
            _expect_uid(old, uid)
        meta, spec = content["metadata"], content["spec"]
        if "nodeName" in spec or "schedulingGates" in spec or "deletionTimestamp" in meta:
            why_not = why_not_bindable(content)
            if why_not is not None:
                raise api_errors.not_bindable(key, why_not)
        assert isinstance(pod, Pod)
        # Pods of one template share their status if they are bound at one time.
        status = self._last_bound
        if status.before is not content["status"] or status.at_seconds != self._clock.now():
            status = self._last_bound = self._bound_status(content["status"])
        topology = self._admission.topology_labels
        labels = None if topology is None else topology.by_node.get(node_name)
        if labels is None:
            labels = pod.metadata.labels
        else:
            content = with_labels(content, labels)
            labels = content["metadata"]["labels"]
        version = str(self._store.version + 1)
        content = {
            **content,
            "metadata": {**content["metadata"], "resourceVersion": version},
            "spec": {**content["spec"], "nodeName": node_name},
            "status": status.content,
        }
        meta = structs.replace(pod.metadata, resource_version=version, labels=labels)
        spec = structs.replace(pod.spec, node_name=node_name)
        pod = structs.replace(pod, metadata=meta, spec=spec, status=status.decoded)
        return self._store.put_versioned(key, content, pod)

    def _bound_status(self, before: Content) -> "_BoundStatus":
        """The status of a pod on its node. The pod runs at once, for there is no kubelet."""
        after = bound_status(before, self.stamp())
        decoded = decode(POD, {"status": after})
        assert isinstance(decoded, Pod)
        return _BoundStatus(before, self._clock.now(), after, decoded.status)

    def patch_pod_status(self, patch: PatchPodStatus) -> StoredObject:
        """Set a condition and the nomination of a pod. A patch without effect is no change."""
        old = self.get(object_key(POD, patch.namespace, patch.name))
        _expect_uid(old, patch.uid)
        stamp = self.stamp()
        status = patched(old.content["status"], patch, stamp)
        if status == old.content["status"]:
            return old
        return self._put_with_spec_of(old, {**old.content, "status": status})

    def _put_with_spec_of(self, old: StoredObject, content: Content) -> StoredObject:
        """Replace a pod by one with the same spec, which is not decoded again."""
        meta = {**content["metadata"], "resourceVersion": self._store.next_version}
        decoded = decode(POD, {"metadata": meta, "status": content.get("status") or {}})
        assert isinstance(decoded, Pod)
        assert isinstance(old.object, Pod)
        decoded = structs.replace(decoded, spec=old.object.spec)
        return self._store.put_versioned(old.key, {**content, "metadata": meta}, decoded)

    # ---- delete -----------------------------------------------------------------------------

    def delete(self, key: ObjectKey, uid: str = "", *, is_forced: bool = False) -> None:
        """Remove an object after its grace period and its finalizers. A second call changes
        nothing.

        ``is_forced``: delete without grace, and end a grace period that has begun.
        """
        old = self.get(key)
        _expect_uid(old, uid)
        if old.content["metadata"].get("deletionTimestamp"):
            if is_forced:
                self.terminating.pop(old.content["metadata"]["uid"], None)
                self._stranded.pop(old.content["metadata"]["uid"], None)
                self._remove_if_free(old)
            return
        grace = 0 if is_forced else _grace_seconds(old)
        if not grace and not old.content["metadata"].get("finalizers"):
            self._store.remove(key)
            return
        stamp = rfc3339(self._clock.epoch_seconds() + grace)
        meta = {**old.content["metadata"], "deletionTimestamp": stamp}
        if key.kind == POD:
            meta["deletionGracePeriodSeconds"] = grace
        self._end_gracefully(self._store.put(key, {**old.content, "metadata": meta}))

    def forget_oldest(self, kind: str) -> None:
        """Remove the oldest object of a kind whose names are never used again."""
        if self._store.remove_oldest_unread(kind):
            return
        oldest = self._store.oldest(kind)
        self._store.remove(oldest.key)
        del self._made[oldest.key]

    def _end_gracefully(self, stored: StoredObject) -> None:
        """Begin to terminate an object."""
        grace = _grace_seconds(stored)
        if not grace:
            if "deletionGracePeriodSeconds" not in stored.content["metadata"]:
                self._note_if_stranded(stored)
            self._remove_if_free(stored)
            return
        uid = stored.content["metadata"]["uid"]
        self.terminating[uid] = self._clock.now() + grace
        self._later(grace, lambda: self._grace_has_passed(stored.key, uid))

    def _grace_has_passed(self, key: ObjectKey, uid: str) -> None:
        self.terminating.pop(uid, None)
        stored = self._store.get(key)
        if stored is not None and stored.content["metadata"]["uid"] == uid:
            self._note_if_stranded(stored)
            self._remove_if_free(stored)

    def _note_if_stranded(self, stored: StoredObject) -> None:
        """No kubelet ends a pod on a node that is unreachable."""
        if self.unreachable_node(stored):
            self._stranded[stored.content["metadata"]["uid"]] = stored.key

    def _remove_if_free(self, stored: StoredObject) -> None:
        """Remove a terminating object if its grace period has passed, a kubelet has ended the pod,
        and it has no finalizers."""
        uid: str = stored.content["metadata"]["uid"]
        is_held = uid in self.terminating or uid in self._stranded
        if not is_held and not finalizers_of(stored):
            self._store.remove(stored.key)

    def unreachable_node(self, stored: StoredObject) -> str:
        """The node of a pod whose kubelet does not answer: it ends no pod. "": there is none."""
        pod = stored.placed_pod
        name = None if pod is None else pod.spec.node_name
        node = self._store.get(ObjectKey(NODE, "", name)) if name else None
        return (name or "") if node is not None and is_unreachable(cast(Node, node.object)) else ""

    def _end_stranded(self, before: StoredObject | None, after: StoredObject | None) -> None:
        """A node has changed: its kubelet may answer now."""
        for uid, key in list(self._stranded.items()):
            stored = self._store.get(key)
            if stored is None or not self.unreachable_node(stored):
                del self._stranded[uid]
                if stored is not None:
                    self._remove_if_free(stored)


def _refuse(key: ObjectKey, problems: Sequence[Problem]) -> None:
    """Raises InvalidError if there are problems."""
    if problems:
        raise api_errors.InvalidError(key, api_errors.aggregated(map(_text, problems)))


def _text(problem: Problem) -> str:
    """A problem without our suggestion."""
    return str(Problem(problem.path, problem.actual))


def finalizers_of(stored: StoredObject) -> list[str]:
    """What keeps an object that is being deleted. A namespace has finalizers in its spec, too."""
    content = stored.content
    own: list[str] = list(content["metadata"].get("finalizers") or ())
    if stored.key.kind == NAMESPACE:
        own += (content.get("spec") or {}).get("finalizers") or ()
    return own


def is_unreachable(node: Node) -> bool:
    """Whether the kubelet of a node does not answer."""
    if any(taint.key == UNREACHABLE_TAINT for taint in node.spec.taints or ()):
        return True
    conditions = node.status.conditions or ()
    return any(one.type == "Ready" and one.status == "Unknown" for one in conditions)


def _grace_seconds(stored: StoredObject) -> int:
    """The grace period of an object. Only a pod that runs on a node has one.

    A pod that was terminating when it was read from a cluster has its own.
    """
    pod = stored.object
    if not isinstance(pod, Pod) or not pod.spec.node_name or is_terminal(pod):
        return 0
    own: Any = stored.content["metadata"].get("deletionGracePeriodSeconds")
    if isinstance(own, int):
        return max(own, 0)
    return pod.spec.termination_grace_period_seconds or 0


def _expect_same(stored: StoredObject, meta: Content) -> None:
    """Raises ConflictError if a write names another version or uid."""
    version = meta.get("resourceVersion")
    if version and version != str(stored.version):
        raise api_errors.modified(stored.key)
    _expect_uid(stored, meta.get("uid") or "")


def _expect_uid(stored: StoredObject, uid: str) -> None:
    own = stored.content["metadata"]["uid"]
    if uid and uid != own:
        raise api_errors.other_uid(stored.key, uid, own)


def _with_identity_of(old: Content, new: Content) -> Content:
    """``new`` with the fields that no write changes. The generation grows if the spec differs."""
    was = old["metadata"]
    members = (new.get("metadata") or {}).items()
    meta = {name: value for name, value in members if name not in _FIXED}
    meta |= {name: value for name, value in was.items() if name in _FIXED}
    if new.get("spec") != old.get("spec"):
        meta["generation"] = was.get("generation", 1) + 1
    # A write without a status does not remove the status.
    status = {"status": old["status"]} if "status" in old else {}
    return {**status, **new, "metadata": meta}


def _without_version(content: Content) -> Content:
    meta = {key: value for key, value in content["metadata"].items() if key != "resourceVersion"}
    return {**content, "metadata": meta}
