"""ClusterModel: a cluster in memory that answers "what would the scheduler do now?".

    model = ClusterModel(objects, config, registry)
    model.attempt("default/web-0").message        what kube-scheduler would write; leaves no trace
    model.place("default/web-0").node             the same, and the pod stays there
    with model.trial():                           changes and placements until the end of the block
        model.replace(NODE, node)
        model.attempt("default/web-0")

The model drives a real `Scheduler` with watch events, and performs the effects at once: there is no
API server, no event loop and no clock that runs. Pending pods are tried only when the caller names
them. Nominations of other pods count, as in kube-scheduler. An extender of the configuration is not
called: the scheduler gets an error in place of the answer, as from an extender that is down.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, TypeVar, cast, final

import msgspec

from bayplan import ports
from bayplan.adapters.embedded.json_merge import merge_patch
from bayplan.api.objects import NODE, POD, POD_SCHEDULED, ApiObject, Pod, decode
from bayplan.clock import ManualClock, epoch_of
from bayplan.config import SchedulerConfig
from bayplan.config.cluster_version import for_cluster
from bayplan.engine.attempt_record import OnAttempt
from bayplan.engine.binding import BindingOutcome, result_now
from bayplan.engine.cycle import Cycle
from bayplan.engine.podgroups.status import waiting_for
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.status import Code, Status
from bayplan.framework.types import QueuedPodInfo
from bayplan.history.entries import AttemptStart
from bayplan.journal import AttemptRecord, GroupRecord, Journal, MemorySink
from bayplan.model.picture import ClusterPicture
from bayplan.objects.keys import ObjectKey, key_of_metadata
from bayplan.objects.object_store import ObjectStore, Reversal
from bayplan.plugins.registry import Registry
from bayplan.profile.kinds_in_use import without_absent
from bayplan.state.pods import PodInfo

V = TypeVar("V")

#: Higher than the versions of an API server.
_VERSIONS_FROM = 1 << 62
_NOT_CALLED = "extenders are not called for a question"
_UNDONE = Status(Code.ERROR, ("the attempt is undone",))
#: As the API server writes it for a pod with scheduling gates. Upstream: pkg/registry/core/pod,
#: applySchedulingGatedCondition.
GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
#: More rounds of effects than one attempt ever needs: a loop without an end is a bug.
_ROUNDS_MAX = 10_000


@final
@dataclass(frozen=True, slots=True)
class Attempt:
    """What one attempt at a pod came to."""

    #: The pod as it was tried.
    pod: PodInfo
    #: scheduled, waiting (at Permit), unschedulable, error; gated: PreEnqueue rejects the pod.
    result: str
    #: The node that was chosen; "" for none.
    node: str = ""
    #: The sentence that kube-scheduler writes into the condition PodScheduled; "" with a node.
    message: str = ""
    #: Where preemption makes room for the pod; "" for nowhere.
    nominated_node: str = ""
    #: The pods that preemption evicts.
    victims: tuple[PodInfo, ...] = ()
    #: The journal's record; None: there was no attempt at this pod.
    record: AttemptRecord | None = None
    #: The journal's record of the attempt at the pod's group; None: the pod has no group.
    group: GroupRecord | None = None
    #: The record of the first pod of the attempt that no node admitted: of a pod that belongs to a
    #: group, the member for which all of them wait. None: no pod was rejected by the nodes.
    rejected: AttemptRecord | None = None
    #: For a gated pod: the PreEnqueue plugin, and what it says. Without a plugin: what its
    #: group says.
    gating_plugin: str = ""
    gating_message: str = ""
    #: Other pods of the same group that got a node: "namespace/name" → node.
    placed_members: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def reason(self) -> str:
        """Why there is no node: the message, or what the plugin says that holds the pod back."""
        return self.message or self.gating_message

    @property
    def fits(self) -> bool:
        """Whether the pod gets a node without an eviction."""
        return bool(self.node)


@dataclass(slots=True)
class _Trace:
    """The effects of one attempt."""

    bindings: list[ports.BindPod] = field(default_factory=list[ports.BindPod])
    messages: dict[str, str] = field(default_factory=dict[str, str])
    #: By uid.
    victims: list[str] = field(default_factory=list[str])
    nominations: dict[str, str] = field(default_factory=dict[str, str])


@final
class ClusterModel:
    """One cluster with one scheduler."""

    def __init__(
        self,
        source: ClusterPicture,
        config: SchedulerConfig,
        registry: Registry,
        *,
        seed: int = 0,
    ) -> None:
        """Starts the plugins and reads all objects. Raises ConfigError.

        For a model that is built while the list of pods arrives, ``source`` has all others; then
        come `read_pods` and `end_reading`.
        """
        config, self._version_note = for_cluster(config, source.reported)
        #: In the version of the cluster, unless the configuration names one.
        self.config = config
        start_seconds = max(source.epoch_seconds - ManualClock.EPOCH_SECONDS, 0.0)
        self._records = MemorySink()
        self._observer: OnAttempt | None = None
        config, without = without_absent(config, registry, lambda kind: kind not in source.absent)
        #: Plugins that are left out, because the API server lacks kinds that they need.
        self.left_out_plugins = tuple(map(str, without))
        self._scheduler = Scheduler(
            config,
            registry,
            ManualClock(start_seconds),
            seed=seed,
            journal=Journal([self._records]),
            on_attempt=self._observe,
            raise_bugs=True,
            absent_kinds=source.absent,
        )
        self.source = self._with_note(source.with_fields(self._scheduler.declared_fields))
        objects = self.source.objects
        #: The objects as they are now. To be looked at; only the model changes them.
        self.store = ObjectStore[ApiObject]()
        #: How many changes were made.
        self.version = 0
        #: The number of the present state of the objects, which a rollback restores; and how many
        #: there were.
        self._state = self._state_count = 0
        #: Function → the state that it was called for last, and what it returned.
        self._made: dict[Callable[[ClusterModel], Any], tuple[int, Any]] = {}
        kinds = (NODE, *self._scheduler.kinds, *self._scheduler.group_kinds)
        for kind in dict.fromkeys(kinds):
            for key, each in objects.items(kind):
                self._put(key, each)
        self.read_pods(objects.items(POD))
        for kind in objects.kinds():
            if kind not in kinds and kind != POD:
                # No plugin reads the kind: it is there for the questions.
                for key, each in objects.items(kind):
                    self.store.put(key, each)
        self._scheduler.take_effects()

    def _with_note(self, source: ClusterPicture) -> ClusterPicture:
        if not self._version_note:
            return source
        return replace(source, notes=(*source.notes, self._version_note))

    def read_pods(self, pods: Iterable[tuple[ObjectKey, ApiObject]]) -> None:
        """Further pods of the cluster as it was read."""
        added: list[Pod] = []
        for key, each in pods:
            pod = cast(Pod, without_decision(each))
            if key in self.store:
                self._scheduler.add_pods(added)
                self._put(key, pod)
                added = []
            else:
                self.store.put(key, pod)
                added.append(pod)
        self._scheduler.add_pods(added)

    def end_reading(self, source: ClusterPicture) -> None:
        """All objects, the pods of `read_pods` among them, were read."""
        self.source = self._with_note(source)
        self._scheduler.take_effects()

    def close(self) -> None:
        """Close the plugins."""
        self._scheduler.close()

    # ---- looking in -------------------------------------------------------------------------

    @property
    def scheduler(self) -> Scheduler:
        """To be looked at; only the model changes it."""
        return self._scheduler

    def get(self, kind: str, namespace: str, name: str) -> ApiObject | None:
        """An object as it is now."""
        return self.store.get(ObjectKey(kind, namespace, name))

    def objects(self, kind: str) -> Iterator[ApiObject]:
        """All objects of a kind as they are now."""
        return self.store.each(kind)

    def all(self) -> Iterator[tuple[ObjectKey, ApiObject]]:
        """All objects as they are now."""
        return iter(self.store)

    def pod(self, pod: str) -> Pod | None:
        """A pod as it is now. ``pod``: "namespace/name"."""
        return cast("Pod | None", self.store.get(_pod_key(pod)))

    def placed(self, pod: str) -> PodInfo | None:
        """A pod that has a node, as the scheduler counts it. ``pod``: "namespace/name"."""
        present = self.pod(pod)
        return None if present is None else self._scheduler.cache.pod(present.metadata.uid or "")

    def waiting(self, pod: str) -> PodInfo | None:
        """A pod that waits for an attempt. None: it does not, or it is gated."""
        present = self.pod(pod)
        uid = "" if present is None else present.metadata.uid or ""
        queued = self._scheduler.queue.find(uid)
        if queued is None or queued.gating_plugin or queued.pod.spec.scheduling_gates:
            return None
        return queued.pod

    def pending(self) -> list[PodInfo]:
        """The pods that wait for this scheduler, gated ones included, in the order of their
        names."""
        pods = self._scheduler.queue.pending_pods().values()
        return sorted((pod for group in pods for pod in group), key=lambda pod: pod.key)

    def in_queue_order(self) -> list[PodInfo]:
        """The pods that wait for this scheduler, in the order in which it would try them.

        The order is that of the QueueSort plugin, by default the priority and then the age. A
        scheduler that waits for room has tried each pod, so the age counts from the creation of the
        pod, as after a restart; pods of one second come in the order in which they were read.
        """
        queued = map(self._scheduler.queue.find, self.once(ClusterModel._queue_order))
        return [each.pod for each in queued if each is not None]

    def _queue_order(self) -> list[str]:
        """The uids of the pods that wait, in that order."""
        queued = (self._scheduler.queue.find(info.uid) for info in self.pending())
        ordered = sorted((each for each in queued if each is not None), key=self._queue_key)
        return [each.pod.uid for each in ordered]

    def _queue_key(self, queued: QueuedPodInfo) -> Any:
        created_seconds = epoch_of(queued.pod.metadata.creation_timestamp or "")
        age = replace(
            queued,
            timestamp_seconds=inf if created_seconds is None else created_seconds,
            sequence=self.store.arrival(key_of_metadata(POD, queued.pod.metadata)),
        )
        return self._scheduler.queue.sort_key(age)

    def once(self, make: Callable[["ClusterModel"], V]) -> V:
        """What a function makes of the objects as they are, and of nothing else.

        While the objects stay as they are, also from one question to the next, it is made once.
        """
        made = self._made.get(make)
        if made is None or made[0] != self._state:
            made = self._made[make] = (self._state, make(self))
        return made[1]

    # ---- questions --------------------------------------------------------------------------

    def attempt(self, pod: str, look: OnAttempt | None = None) -> Attempt:
        """One attempt at a pending pod, as if it were next. Everything stays as it was.

        Of a pod that belongs to a group, the attempt is the group's. ``pod``: "namespace/name".
        ``look`` is called with each cycle at its end, while its snapshot is lent. Raises KeyError
        for a pod that does not wait for this scheduler.
        """
        uid = self._pending_uid(pod)
        members = self._members(uid)
        trace = _Trace()
        attempt = self._try(uid, trace, _QuestionPort(self, trace), look)
        for binding in trace.bindings:
            self._scheduler.binding_finished(BindingOutcome(binding.pod.uid, _UNDONE))
        self._give_up_waits()
        self._renew(members)
        return attempt

    def place(self, pod: str, look: OnAttempt | None = None) -> Attempt:
        """Attempts at a pending pod; its placement stays, and that of its group.

        If preemption makes room, the victims are deleted and the pod is tried again. The result
        names the victims of all attempts. A pod that would wait at Permit stays pending. Raises
        KeyError as `attempt`.
        """
        uid = self._pending_uid(pod)
        members = self._members(uid)
        victims: list[PodInfo] = []
        while True:
            trace = _Trace()
            port = _WritingPort(self, trace)
            attempt = self._try(uid, trace, port, look)
            for binding in trace.bindings:
                self._bind(binding, port)
            self._give_up_waits()
            victims += attempt.victims
            if attempt.node or not attempt.victims:
                break
            for victim in attempt.victims:
                self.remove(POD, victim.namespace, victim.name)
            for member in members:
                if member in trace.nominations:
                    self._nominate(member, trace.nominations[member])
        self._renew(members)
        return replace(attempt, victims=tuple(victims))

    def continue_from(self, start: AttemptStart) -> None:
        """Have the next attempt at these pods be the one that a scheduler began: with its number,
        and with its place in the search of a sample."""
        self._scheduler.sampling_starts.update(start.sampling_starts)
        for uid, attempt in start.attempts.items():
            queued = self._scheduler.queue.find(uid)
            if queued is not None:
                queued.attempts = attempt - 1

    # ---- changes ----------------------------------------------------------------------------

    def add(self, kind: str, added: ApiObject) -> None:
        """Add an object. One without a uid gets one. Raises KeyError for a name that exists."""
        key = key_of_metadata(kind, added.metadata)
        if key in self.store:
            raise KeyError(f"{key} exists")
        self._put(key, self._versioned(added))

    def add_missing(self, objects: Iterable[tuple[str, ApiObject]]) -> None:
        """Add the objects, each with its kind, whose names do not exist."""
        for kind, each in objects:
            if key_of_metadata(kind, each.metadata) not in self.store:
                self.add(kind, each)

    def follow(self, kind: str, content: ApiObject, *, is_there: bool) -> None:
        """Make an object what it is, or was, in a cluster that the model follows."""
        key = key_of_metadata(kind, content.metadata)
        present = self.store.get(key)
        if present is not None and (not is_there or _is_another(present, content)):
            self.remove(*key)
            present = None
        if is_there:
            change = self.add if present is None else self.replace
            change(kind, content)

    def replace(self, kind: str, changed: ApiObject) -> None:
        """Replace an object by a newer version. Raises KeyError for a name that does not exist."""
        key = key_of_metadata(kind, changed.metadata)
        before = self.store.get(key)
        if before is None:
            raise KeyError(f"there is no {key}")
        self._put(key, self._versioned(changed, before))

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object at once. Raises KeyError for a name that does not exist."""
        key = ObjectKey(kind, namespace, name)
        removed = self.store.remove(key)
        if removed is None:
            raise KeyError(f"there is no {key}")
        self._count_state()
        self._tell(ports.EventType.DELETED, kind, removed)

    def decoded(self, kind: str, content: dict[str, Any]) -> ApiObject:
        """The object of a content, with the fields that plugins declare. Raises DecodeError."""
        return decode(kind, content, self._scheduler.declared_fields.get(kind, ()))

    @contextmanager
    def trial(self) -> Generator[None]:
        """Undo, at the end of the block, all changes and placements that were made in it."""
        mark, state = self.store.mark(), self._state
        try:
            yield
        finally:
            restored: set[str] = set()
            for reversal in self.store.rollback(mark, self._versioned):
                self._tell_reversal(reversal)
                if reversal.key.kind == POD and reversal.restored is not None:
                    restored.add(reversal.restored.metadata.uid or "")
            self._state = state
            self._renew(self._with_members(restored))

    # ---- attempts ---------------------------------------------------------------------------

    def _observe(self, cycle: Cycle) -> None:
        if self._observer is not None:
            self._observer(cycle)

    def _pending_uid(self, pod: str) -> str:
        key = _pod_key(pod)
        content = self.store.get(key)
        if content is None:
            raise KeyError(f"there is no {key}")
        uid = content.metadata.uid or ""
        if self._scheduler.queue.find(uid) is None:
            raise KeyError(f"{key} does not wait for this scheduler")
        return uid

    def _members(self, uid: str) -> list[str]:
        """The uids of the pod and, if it belongs to a group, of the members that wait with it, also
        those of other groups of its tree."""
        state = self._scheduler.pod_groups.of(self._queued(uid).pod)
        if state is None:
            return [uid]
        root = self._scheduler.group_trees.root_of(state.key)
        states = [state] if root is None else self._scheduler.group_trees.leaves(root.key)
        waiting = [pod.metadata.uid or "" for each in states for pod in each.pending()]
        return [each for each in waiting if self._scheduler.queue.find(each) is not None]

    def _with_members(self, uids: set[str]) -> list[str]:
        """The uids of pending members of the groups of these pods."""
        members: dict[str, None] = {}
        for uid in uids:
            queued = self._scheduler.queue.find(uid)
            if queued is not None and queued.pod.group_key is not None:
                members |= dict.fromkeys(self._members(uid))
        return list(members)

    def _queued(self, uid: str) -> QueuedPodInfo:
        queued = self._scheduler.queue.find(uid)
        assert queued is not None, f"no pod with uid {uid} waits"
        return queued

    def _try(self, uid: str, trace: _Trace, port: "_Port", look: OnAttempt | None) -> Attempt:
        pod = self._queued(uid).pod
        self._records.records.clear()
        self._observer = look
        try:
            if not self._scheduler.schedule_one(uid):
                return self._gated(pod)
            self._settle(trace, port)
        finally:
            self._observer = None
        record: AttemptRecord | None = None
        rejected: AttemptRecord | None = None
        group: GroupRecord | None = None
        # An attempt at a tree of groups has a record for each group.
        name = str(pod.group_key)
        for each in self._records.records:
            if isinstance(each, AttemptRecord):
                record = each if each.uid == uid else record
                if rejected is None and each.is_without_node:
                    rejected = each
            elif isinstance(each, GroupRecord) and each.attempt and each.group == name:
                group = each
        nodes = {binding.pod.uid: binding.node_name for binding in trace.bindings}
        result = record.result if record is not None else "unschedulable"
        node = nodes.get(uid, record.node if record is not None and result == "waiting" else "")
        if not node and result == "scheduled":
            result = group.result if group is not None else "unschedulable"
        in_record = record.message if record is not None and result != "waiting" else ""
        placed = {b.pod.key: b.node_name for b in trace.bindings if b.pod.uid != uid}
        victims = (self._scheduler.cache.pod(victim) for victim in trace.victims)
        return Attempt(
            pod,
            result,
            node,
            "" if node else trace.messages.get(uid, in_record),
            nominated_node=record.nominated_node if record is not None else "",
            victims=tuple(victim for victim in victims if victim is not None),
            record=record,
            group=group,
            rejected=rejected,
            placed_members=placed,
        )

    def _gated(self, pod: PodInfo) -> Attempt:
        queued, group = self._queued(pod.uid), self._scheduler.pod_groups.of(pod)
        # Of pods that other plugins hold back nothing is written into the condition.
        message = GATED_MESSAGE if pod.spec.scheduling_gates else ""
        held = queued.gating_message
        if not held and group is not None:
            held = group.message if group.is_complete else waiting_for(group)
        return Attempt(
            pod,
            "gated",
            message=message,
            gating_plugin=queued.gating_plugin,
            gating_message=held,
        )

    def _settle(self, trace: _Trace, port: "_Port") -> None:
        """Perform effects until there are none. Bindings are left to the caller."""
        for _ in range(_ROUNDS_MAX):
            effects = self._scheduler.take_effects()
            if not effects:
                return
            for effect in effects:
                self._perform(effect, trace, port)
        raise AssertionError("the effects of an attempt do not end")

    def _perform(self, effect: ports.Effect, trace: _Trace, port: "_Port") -> None:
        if isinstance(effect, ports.BindPod):
            trace.bindings.append(effect)
        elif isinstance(effect, ports.PatchPodStatus):
            condition = effect.condition
            if condition is not None and condition.type == POD_SCHEDULED:
                trace.messages[effect.uid] = condition.message or ""
            if effect.nominated_node_name is not None:
                trace.nominations[effect.uid] = effect.nominated_node_name
        elif isinstance(effect, ports.Perform):
            result_now(effect.run(port))
        elif isinstance(effect, ports.AskExtender):
            ask = self._scheduler.asks(port).get(effect.extender, _no_answer)
            answer = result_now(ask(effect)) or ports.ExtenderAnswer(error=_NOT_CALLED)
            self._scheduler.extender_answered(effect.token, answer)

    def _bind(self, binding: ports.BindPod, port: "_WritingPort") -> None:
        """Run a binding cycle, and report the pod as bound. A cycle that would wait (for a volume
        to be provisioned) counts as one that succeeds."""
        uid = binding.pod.uid
        outcome = result_now(binding.run(port, _Work, _no_answer))
        if outcome is None or outcome.status is None:
            outcome = BindingOutcome(uid, None)
        self._scheduler.binding_finished(outcome)
        self._settle(_Trace(), port)
        pod = self._pod_of(uid)
        if outcome.status is None and not pod.spec.node_name:
            spec = msgspec.structs.replace(pod.spec, node_name=binding.node_name)
            self.replace(POD, msgspec.structs.replace(pod, spec=spec))

    # ---- back to the state before -----------------------------------------------------------

    def _nominate(self, uid: str, node_name: str) -> None:
        pod = self._pod_of(uid)
        status = msgspec.structs.replace(pod.status, nominated_node_name=node_name or None)
        self.replace(POD, msgspec.structs.replace(pod, status=status))

    def _give_up_waits(self) -> None:
        for waiting in self._scheduler.waiting_pods():
            waiting.reject("", "the attempt is undone")
        self._drop_effects()

    def _renew(self, uids: Sequence[str]) -> None:
        """Make pending pods ones that were not tried yet, in the order in which they came."""
        pending = [pod for pod in map(self._pod_of, uids) if not pod.spec.node_name]
        pending.sort(key=lambda pod: self.store.arrival(key_of_metadata(POD, pod.metadata)))
        for pod in pending:
            self._tell(ports.EventType.DELETED, POD, pod)
        for pod in pending:
            self._tell(ports.EventType.ADDED, POD, pod)
        self._drop_effects()

    def _drop_effects(self) -> None:
        trace = _Trace()
        self._settle(trace, _QuestionPort(self, trace))

    def _tell_reversal(self, reversal: Reversal[ApiObject]) -> None:
        """Tell the scheduler of a change that was undone."""
        key, undone, restored = reversal
        if undone is not None and (restored is None or key.kind == POD):
            # A pod that has a node never becomes a pending one.
            self._tell(ports.EventType.DELETED, key.kind, undone)
            undone = None
        if restored is not None:
            event = ports.EventType.ADDED if undone is None else ports.EventType.MODIFIED
            self._tell(event, key.kind, restored)

    # ---- objects ----------------------------------------------------------------------------

    def _pod_of(self, uid: str) -> Pod:
        key = self.store.key_of_uid(uid)
        assert key is not None, f"no pod has uid {uid}"
        return cast(Pod, self.store.get(key))

    def _versioned(self, new: ApiObject, before: ApiObject | None = None) -> ApiObject:
        """The object with a uid, and with a version above all others: versions never go back."""
        self.version += 1
        uid = new.metadata.uid or (before.metadata.uid if before is not None else None)
        version = str(_VERSIONS_FROM + self.version)
        metadata = msgspec.structs.replace(
            new.metadata, uid=uid or f"model-{self.version}", resource_version=version
        )
        return msgspec.structs.replace(new, metadata=metadata)

    def _count_state(self) -> None:
        self._state_count += 1
        self._state = self._state_count

    def _put(self, key: ObjectKey, new: ApiObject) -> None:
        before = self.store.put(key, new)
        self._count_state()
        self._tell(
            ports.EventType.ADDED if before is None else ports.EventType.MODIFIED, key.kind, new
        )

    def _tell(self, event: ports.EventType, kind: str, content: ApiObject) -> None:
        version = content.metadata.resource_version or ""
        self._scheduler.handle(ports.WatchEvent(event, kind, content, version))


# ---- ports --------------------------------------------------------------------------------------


class _Port(ABC):
    """ports.BindPort of a model: writes end at once, and a sleep never ends."""

    def __init__(self, model: ClusterModel, trace: _Trace) -> None:
        self._model = model
        self._trace = trace

    async def bind(self, pod: PodInfo, node_name: str) -> None:  # noqa: B027 - not abstract
        """The model itself reports the pod as bound."""

    async def get_pod(self, namespace: str, name: str) -> Pod:
        return cast(Pod, await self.read(POD, namespace, name))

    async def read(self, kind: str, namespace: str, name: str) -> ApiObject:
        stored = self._model.get(kind, namespace, name)
        if stored is None:
            raise ports.NotFoundError(f"there is no {ObjectKey(kind, namespace, name)}")
        return stored

    @abstractmethod
    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> ApiObject: ...

    @abstractmethod
    async def create_object(self, kind: str, content: dict[str, Any]) -> ApiObject: ...

    @abstractmethod
    async def delete_object(self, kind: str, namespace: str, name: str, uid: str) -> None: ...

    async def patch_pod_status(self, patch: ports.PatchPodStatus) -> None:  # noqa: B027 - not abstract
        """Conditions of victims and nominations that end: no attempt reads them."""

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        self._trace.victims.append(uid)

    async def sleep(self, seconds: float) -> None:
        await _NEVER


@final
class _QuestionPort(_Port):
    """For attempts that are undone: every write is accepted, and nothing changes."""

    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> ApiObject:
        return await self.read(kind, namespace, name)

    async def create_object(self, kind: str, content: dict[str, Any]) -> ApiObject:
        return decode(kind, content)

    async def delete_object(self, kind: str, namespace: str, name: str, uid: str) -> None:
        await self.read(kind, namespace, name)


@final
class _WritingPort(_Port):
    """For placements that stay: a write changes the model."""

    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> ApiObject:
        old = await self.read(kind, namespace, name)
        content = merge_patch(msgspec.to_builtins(old), patch)
        self._model.replace(kind, decode(kind, content))
        return await self.read(kind, namespace, name)

    async def create_object(self, kind: str, content: dict[str, Any]) -> ApiObject:
        added = decode(kind, _named(content, self._model.version))
        self._model.add(kind, added)
        return await self.read(kind, added.metadata.namespace or "", added.metadata.name)

    async def delete_object(self, kind: str, namespace: str, name: str, uid: str) -> None:
        await self.read(kind, namespace, name)
        self._model.remove(kind, namespace, name)


def _named(content: dict[str, Any], version: int) -> dict[str, Any]:
    """The content with a name, where it has a prefix of one."""
    meta = content.get("metadata") or {}
    prefix = meta.get("generateName")
    if meta.get("name") or not prefix:
        return content
    return {**content, "metadata": {**meta, "name": f"{prefix}{version}"}}


# ---- coroutines without an event loop -----------------------------------------------------------


class _Never:
    """Awaited, it stops the coroutine for good."""

    def __await__(self) -> Generator[None, None, None]:
        yield


_NEVER = _Never()


@final
class _Work:
    """ports.Work that has ended, or that waits for good."""

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._coroutine = coroutine
        self._has_ended = False
        try:
            coroutine.send(None)
        except StopIteration:
            self._has_ended = True

    def cancel(self) -> None:
        self._coroutine.close()

    async def wait(self) -> None:
        if not self._has_ended:
            await _NEVER


async def _no_answer(effect: ports.AskExtender) -> ports.ExtenderAnswer:
    return ports.ExtenderAnswer(error=_NOT_CALLED)


# ---- objects ------------------------------------------------------------------------------------


def _pod_key(pod: str) -> ObjectKey:
    namespace, _, name = pod.partition("/")
    return ObjectKey(POD, namespace, name)


def _is_another(present: ApiObject, content: ApiObject) -> bool:
    """Whether an object cannot become this one. A pod that has a node never becomes a pending
    one."""
    uid = content.metadata.uid
    if uid and uid != present.metadata.uid:
        return True
    if not isinstance(present, Pod) or not isinstance(content, Pod):
        return False
    return bool(present.spec.node_name) and not content.spec.node_name


def without_decision(content: ApiObject) -> ApiObject:
    """A pending pod without the condition of its last attempt; any other object as it is.

    A scheduler does not write a condition that is there already.
    """
    if not isinstance(content, Pod) or content.spec.node_name or not content.status.conditions:
        return content
    conditions = tuple(c for c in content.status.conditions if c.type != POD_SCHEDULED)
    status = msgspec.structs.replace(content.status, conditions=conditions)
    return msgspec.structs.replace(content, status=status)
