"""The history of each pod, why pods are gone, and the pods that were lost, from the changes of the
API server's objects.

A lost pod went before its end, and no controller creates it again: if the input is expanded once,
there is none where a cluster would have another pending pod. Lost pods are counted, so that a
reader does not take "5 of 5 placed" for a cluster at rest. A pod is lost when it is preempted,
deleted or evicted, when its node is deleted, or when it fails. It is not lost when it succeeds,
when its running time has passed, when its controller has too many pods, or when its controller is
deleted: a cluster would not create another pod either.

A pod is no longer lost when it is replaced: by a pod of the same name, or by another pod of its
controller that is created later. A daemon pod on a deleted node is not lost. The next pod of a Job
replaces a pod that succeeded, and no lost one. A pod of another controller whose running time has
passed is not lost, but it may be replaced.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple, final

from msgspec import Struct

from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api import objects
from bayplan.api.object_meta import controller_of
from bayplan.clock import ManualClock
from bayplan.objects.keys import ObjectKey, key_of_reference, kind_of
from bayplan.objects.workloads import controller_reference, deployment_of
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.controller_pods import target_node
from bayplan.sim.input.workload import Content
from bayplan.sim.output.pod_counts import PodEnd
from bayplan.sim.output.result import LostPods, PodResult

# ---- pod log --------------------------------------------------------------------------------


_REPLICA_SET = "ReplicaSet"


class _Entry(Struct):
    """The history of one pod."""

    pod: objects.Pod
    created_at: float
    bound_at: float | None = None
    deleted_at: float | None = None


@final
class PodLog:
    """An observer of the embedded API server: the history of each pod."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        #: (namespace, name) of a ReplicaSet → its owner's "Kind/name".
        self._replica_set_owners: dict[tuple[str, str], str] = {}
        #: The newest pod of each name.
        self._entries: dict[str, _Entry] = {}
        #: Earlier pods of names that were used again, the oldest first.
        self._earlier: dict[str, list[_Entry]] = defaultdict(list)

    def observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        changed = after or before
        assert changed is not None
        key, pod = changed.key, changed.object
        if not isinstance(pod, objects.Pod):
            if isinstance(pod, objects.Workload):
                self._note_owner(pod)
            return
        name = f"{key.namespace}/{key.name}"
        now = self._clock.now_seconds
        if before is None:
            if name in self._entries:
                self._earlier[name].append(self._entries[name])
            self._entries[name] = _Entry(pod, now)
            return
        entry = self._entries[name]
        if after is None:
            entry.deleted_at = now
            return
        if pod.spec.node_name and not entry.pod.spec.node_name:
            entry.bound_at = now
        entry.pod = pod

    def _note_owner(self, workload: objects.Workload) -> None:
        owner, meta = _controller_name(workload.metadata), workload.metadata
        if owner is not None:
            self._replica_set_owners[meta.namespace or "", meta.name] = owner

    def _controller(self, pod: objects.Pod) -> str | None:
        """The workload of a pod: the Deployment, not its ReplicaSet."""
        meta = pod.metadata
        owner = _controller_name(meta)
        kind, _, name = (owner or "").partition("/")
        if kind != _REPLICA_SET:
            return owner
        deployment = self._replica_set_owners.get((meta.namespace or "", name))
        # Without the ReplicaSet in the input, its name tells the Deployment.
        by_name = deployment_of(name, meta.labels)
        return deployment or (owner if by_name is None else f"Deployment/{by_name}")

    def last_results(self, attempts: Mapping[str, int]) -> dict[str, tuple[objects.Pod, PodResult]]:
        """The last version of each pod of the run, and what the API server's objects say of it, by
        the sorted names. ``attempts``: by uid."""
        return {
            name: (entry.pod, self._result(entry, attempts.get(entry.pod.metadata.uid or "", 0)))
            for name, entry in sorted(self._entries.items())
        }

    def earlier_results(
        self, attempts: Mapping[str, int]
    ) -> dict[str, list[tuple[objects.Pod, PodResult]]]:
        """The earlier pods of names that were used again, the oldest first. ``attempts``: by
        uid."""
        return {
            name: [
                (entry.pod, self._result(entry, attempts.get(entry.pod.metadata.uid or "", 0)))
                for entry in self._earlier[name]
            ]
            for name in sorted(self._earlier)
        }

    def _result(self, entry: _Entry, attempts: int) -> PodResult:
        status = entry.pod.status
        return PodResult(
            node=entry.pod.spec.node_name,
            created_at=entry.created_at,
            bound_at=entry.bound_at,
            deleted_at=entry.deleted_at,
            controller=(
                self._controller(entry.pod) if entry.pod.metadata.owner_references else None
            ),
            attempts=attempts,
            nominated_node=status.nominated_node_name or None,
            message=message_of(entry.pod),
        )


def is_gated_by_api(pod: objects.Pod) -> bool:
    """Whether the API server reports that scheduling gates hold the pod back."""
    return any(c.reason == "SchedulingGated" for c in pod.status.conditions or ())


def _controller_name(meta: objects.ObjectMeta) -> str | None:
    """ "Kind/name" of the owner that controls the object."""
    owner = controller_of(meta)
    return None if owner is None else f"{owner.kind}/{owner.name}"


def message_of(pod: objects.Pod) -> str | None:
    """The message of the condition PodScheduled."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled":
            return condition.message
    return None


# ---- lost pods ------------------------------------------------------------------------------


_DAEMON_SET = "DaemonSet"
#: The reason of the condition DisruptionTarget, and what happened to the pod.
_CAUSES = {
    "PreemptionByScheduler": PodEnd.PREEMPTED,
    "DeletionByPodGC": PodEnd.LOST_WITH_NODE,
    "EvictionByEvictionAPI": PodEnd.EVICTED,
    "DeletionByTaintManager": PodEnd.EVICTED,
    "DeletionByDeviceTaintManager": PodEnd.EVICTED,
    "TerminationByKubelet": PodEnd.EVICTED,
}


class _Controller(NamedTuple):
    """The controller that would create a pod again."""

    key: ObjectKey
    uid: str
    #: The node for which the controller created the pod; "": any node.
    node: str = ""


class _Lost(NamedTuple):
    """A pod that went and that another pod may replace."""

    uid: str
    cause: PodEnd
    controller: _Controller | None


@final
class LossLog:
    """An observer of the embedded API server: why pods are gone, and the lost pods."""

    def __init__(self, follower_names: Collection[str]) -> None:
        """``follower_names``: "namespace/name" of pods that are created when other pods succeed."""
        self._follower_names = follower_names
        #: Lost pods that are not replaced yet, by "namespace/name".
        self._lost: dict[str, _Lost] = {}
        #: Names of them, in order, by controller.
        self._by_controller: dict[_Controller, dict[str, None]] = defaultdict(dict)
        #: Controllers by uid, and those that were deleted.
        self._owners: dict[str, StoredObject] = {}
        self._deleted: set[str] = set()
        self._nodes: set[str] = set()
        #: Pods that are there and have not ended, by their controller's uid.
        self._active: Counter[str] = Counter()
        self._ended_uids: set[str] = set()
        #: By uid: why pods went before their end.
        self._causes: dict[str, PodEnd] = {}
        #: By uid: the pods that are gone and in whose place another pod came.
        self.replaced_uids: set[str] = set()

    def end(self, uid: str) -> None:
        """Note that the running time of a pod has passed: the pod is not lost when it goes."""
        self._ended_uids.add(uid)

    def observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        changed = after or before
        assert changed is not None
        if isinstance(changed.object, objects.Pod):
            if before is None:
                if self._lost or changed.object.metadata.owner_references:
                    self._come(changed)
            elif (
                after is not None
                and after.placed_pod is not None
                and not (after.object.metadata.deletion_timestamp)
            ):
                return  # it runs
            elif not _is_over(before) and (after is None or _is_over(after)):
                self._go(before, changed)
        elif changed.key.kind == objects.NODE:
            self._nodes.discard(changed.key.name)
            if after is not None:
                self._nodes.add(changed.key.name)
        else:
            uid = changed.content["metadata"].get("uid") or ""
            if after is None:
                self._deleted.add(str(changed.key))
                self._owners.pop(uid, None)
            elif kind_of(after.content) in CONTROLLERS:
                self._deleted.discard(str(changed.key))
                self._owners[uid] = after

    def _come(self, stored: StoredObject) -> None:
        has_owner = stored.object.metadata.owner_references
        name = f"{stored.key.namespace}/{stored.key.name}"
        controller = _controller(stored.content) if has_owner else None
        if controller is not None and not _is_over(stored):
            self._active[controller.uid] += 1
        if name in self._lost:
            self._forget(name)
        elif name not in self._follower_names:
            lost_names = None if controller is None else self._by_controller.get(controller)
            if lost_names:
                self._forget(next(iter(lost_names)))

    def _forget(self, name: str) -> None:
        """Another pod comes in place of a lost one."""
        uid, _, controller = self._lost.pop(name)
        self.replaced_uids.add(uid)
        if controller is not None:
            del self._by_controller[controller][name]

    def _go(self, before: StoredObject, last: StoredObject) -> None:
        name, controller = _name(last.key), _controller(before.content)
        if controller is not None:
            self._active[controller.uid] -= 1
        uid = last.content["metadata"]["uid"]
        if uid in self._ended_uids or _phase(last) == "Succeeded":
            if controller is None or controller.key.kind == objects.JOB:
                return
            cause = PodEnd.ENDED
        else:
            cause = self._causes[uid] = self._cause(last, controller)
        if cause is PodEnd.SCALED_DOWN:
            return
        self._lost[name] = _Lost(uid, cause, controller)
        if controller is not None:
            self._by_controller[controller][name] = None

    def _cause(self, last: StoredObject, controller: _Controller | None) -> PodEnd:
        """Why a pod goes before its end."""
        for condition in (last.content.get("status") or {}).get("conditions") or ():
            if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
                return _CAUSES.get(condition.get("reason", ""), PodEnd.DELETED)
        if _phase(last) == "Failed":
            return PodEnd.FAILED
        owner = None if controller is None else self._owners.get(controller.uid)
        replicas = None if owner is None else _replicas(owner)
        if owner is None or replicas is None:
            return PodEnd.DELETED
        has_enough = self._active[owner.content["metadata"]["uid"]] >= replicas
        return PodEnd.SCALED_DOWN if has_enough else PodEnd.DELETED

    # ---- at the end -------------------------------------------------------------------------

    def end_of(self, pod: objects.Pod, *, is_deleted: bool, is_ours: bool) -> PodEnd:
        """The state of a pod. ``pod``: its last version; ``is_ours``: whether a profile has its
        scheduler's name."""
        if not is_deleted and pod.status.phase not in objects.TERMINAL_PHASES:
            node = pod.spec.node_name
            if node:
                return PodEnd.PLACED if node in self._nodes else PodEnd.MISSING_NODE
            return PodEnd.WAITING if is_ours else PodEnd.OTHER_SCHEDULER
        uid = pod.metadata.uid or ""
        if uid in self._causes:
            return self._causes[uid]
        if uid in self._ended_uids or pod.status.phase == "Succeeded":
            return PodEnd.ENDED
        # It was being deleted, or had failed, when it was created.
        return PodEnd.FAILED if objects.is_terminal(pod) else PodEnd.DELETED

    def lost(self) -> tuple[LostPods, ...]:
        """The lost pods by workload, sorted by name; pods without a controller come first."""
        lost: dict[str, list[_Lost]] = defaultdict(list)
        for one in self._lost.values():
            if one.cause is PodEnd.ENDED:
                continue
            if one.controller is None:
                lost[""].append(one)
            elif not one.controller.node or one.controller.node in self._nodes:
                lost[self._top(one.controller)].append(one)
        missing = self._missing_counts()
        results: list[LostPods] = []
        for workload in sorted(lost):
            # The workload may have been scaled down since it lost the pods.
            causes = Counter(one.cause for one in lost[workload][: missing.get(workload)])
            if causes and workload not in self._deleted:
                results.append(LostPods(workload=workload, causes=dict(sorted(causes.items()))))
        return tuple(results)

    def _top(self, controller: _Controller) -> str:
        """The workload of a controller: the Deployment of a ReplicaSet, if it is in the input."""
        name, stored = str(controller.key), self._owners.get(controller.uid)
        while stored is not None and (reference := _controlled_by(stored.content)) is not None:
            name = str(key_of_reference(reference, stored.key.namespace))
            stored = self._owners.get(reference["uid"])
        return name

    def _missing_counts(self) -> dict[str, int]:
        """For each workload with ``replicas``: how many of these pods are missing."""
        missing = {
            str(stored.key): max(replicas, 0)
            for stored in self._owners.values()
            if (replicas := _replicas(stored)) is not None
        }
        for uid, count in self._active.items():
            stored = self._owners.get(uid)
            if stored is not None:
                top = self._top(_Controller(stored.key, uid))
                if top in missing:
                    missing[top] -= count
        return {workload: max(count, 0) for workload, count in missing.items()}


def _name(key: ObjectKey) -> str:
    return f"{key.namespace}/{key.name}"


def _phase(stored: StoredObject) -> str:
    phase: str = (stored.content.get("status") or {}).get("phase") or ""
    return phase


def _is_over(stored: StoredObject) -> bool:
    """Whether the controller of the pod no longer counts it."""
    return not stored.is_visible or bool(stored.object.metadata.deletion_timestamp)


def _replicas(owner: StoredObject) -> int | None:
    """How many pods a controller wants; None: it does not say."""
    replicas = (owner.content.get("spec") or {}).get("replicas")
    return replicas if isinstance(replicas, int) else None


def _controlled_by(content: Content) -> Content | None:
    owner = controller_reference(content)
    return owner if owner is not None and owner.get("uid") else None


def _controller(pod: Content) -> _Controller | None:
    reference = _controlled_by(pod)
    if reference is None:
        return None
    kind = reference.get("kind", "")
    key = key_of_reference(reference, pod["metadata"].get("namespace", ""))
    # A kubelet creates the mirror of a static pod for its own node, as a DaemonSet does.
    node = target_node(pod) if kind in (_DAEMON_SET, "Node") else None
    return _Controller(key, reference["uid"], node or "")
