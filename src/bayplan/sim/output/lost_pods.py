"""The history of each pod, and the pods that were lost, from the changes of the API server's
objects.

A lost pod went before its end, and no controller creates it again: there are no controllers in a
simulation, so where a cluster would have another pending pod, there is none here. Lost pods are
counted, so that a reader does not take "5 of 5 placed" for a cluster at rest. A pod is lost when it
is preempted, deleted or evicted, when its node is deleted, or when it fails. It is not lost when it
succeeds, when its running time has passed, or when its controller is deleted: a cluster would not
create another pod either.

A pod is no longer lost when it is replaced: by a pod of the same name, or by another pod of its
controller that the workload creates later. A daemon pod on a deleted node is not lost. The next pod
of a Job replaces a pod that succeeded, and no lost one.
"""

from collections import Counter, defaultdict
from collections.abc import Collection
from typing import Any, NamedTuple, final

from bayplan.adapters.embedded.field_validation import ObjectKey, kind_of, object_key
from bayplan.adapters.embedded.object_store import Stored
from bayplan.api.objects import NODE, ObjectMeta, Pod, Workload, is_terminal
from bayplan.clock import ManualClock
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.controller_pods import target_node
from bayplan.sim.input.workload import Content
from bayplan.sim.output.result import LostPods, PodResult

# ---- pod log --------------------------------------------------------------------------------


_REPLICA_SET = "ReplicaSet"
#: The name of a ReplicaSet consists of the name of its Deployment and of this label.
TEMPLATE_HASH_LABEL = "pod-template-hash"


class _Entry:
    """The history of one pod: the newest pod of this name."""

    __slots__ = ("bound_at", "created_at", "deleted_at", "pod", "was_running")

    def __init__(self, pod: Pod, created_at: float) -> None:
        self.pod = pod
        self.created_at = created_at
        self.bound_at: float | None = None
        self.deleted_at: float | None = None
        self.was_running = bool(pod.spec.node_name)


@final
class PodLog:
    """An observer of the embedded API server: the history of each pod."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        #: (namespace, name) of a ReplicaSet → its owner's "Kind/name".
        self._replica_set_owners: dict[tuple[str, str], str] = {}
        self._entries: dict[str, _Entry] = {}

    def observe(self, before: Stored | None, after: Stored | None) -> None:
        changed = after or before
        assert changed is not None
        key, pod = changed.key, changed.object
        if not isinstance(pod, Pod):
            if isinstance(pod, Workload):
                self._note_owner(pod)
            return
        name = f"{key.namespace}/{key.name}"
        now = self._clock.now_seconds
        if before is None:
            self._entries[name] = _Entry(pod, now)
            return
        entry = self._entries[name]
        if after is None:
            entry.deleted_at = now
            return
        if pod.spec.node_name and not entry.pod.spec.node_name:
            entry.bound_at = now
        entry.pod = pod

    def _note_owner(self, workload: Workload) -> None:
        owner, meta = _controller_of(workload.metadata), workload.metadata
        if owner is not None:
            self._replica_set_owners[meta.namespace or "", meta.name] = owner

    def _controller(self, pod: Pod) -> str | None:
        """The workload of a pod: the Deployment, not its ReplicaSet."""
        meta = pod.metadata
        if not meta.owner_references:
            return None
        owner = _controller_of(meta)
        kind, _, name = (owner or "").partition("/")
        if kind != _REPLICA_SET:
            return owner
        deployment = self._replica_set_owners.get((meta.namespace or "", name))
        template_hash = (meta.labels or {}).get(TEMPLATE_HASH_LABEL, "")
        if deployment is None and template_hash and name.endswith(f"-{template_hash}"):
            # The ReplicaSet is not in the input. Its name contains the name of its Deployment.
            deployment = f"Deployment/{name.removesuffix(f'-{template_hash}')}"
        return deployment or owner

    def last_pods(self) -> dict[str, Pod]:
        """The last version of each pod of the run, by the sorted names."""
        return {name: self._entries[name].pod for name in sorted(self._entries)}

    def running_count(self) -> int:
        """The number of pods that had a node when they were created."""
        return sum([entry.was_running for entry in self._entries.values()])

    def is_pending(self, name: str) -> bool:
        """Whether the pod exists, has no node, and has not failed."""
        entry = self._entries[name]
        gone = entry.deleted_at is not None or is_terminal(entry.pod)
        return not gone and not entry.pod.spec.node_name

    def result(self, name: str, attempts: int) -> PodResult:
        entry = self._entries[name]
        status = entry.pod.status
        return PodResult(
            node=entry.pod.spec.node_name,
            created_at=entry.created_at,
            bound_at=entry.bound_at,
            deleted_at=entry.deleted_at,
            controller=self._controller(entry.pod),
            attempts=attempts,
            nominated_node=status.nominated_node_name or None,
            message=message_of(entry.pod),
        )


def is_gated_by_api(pod: Pod) -> bool:
    """Whether the API server reports that scheduling gates hold the pod back."""
    return any(c.reason == "SchedulingGated" for c in pod.status.conditions or ())


def _controller_of(meta: ObjectMeta) -> str | None:
    """ "Kind/name" of the owner that controls the object."""
    for owner in meta.owner_references or ():
        if owner.controller:
            return f"{owner.kind}/{owner.name}"
    return None


def message_of(pod: Pod) -> str | None:
    """The message of the condition PodScheduled."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled":
            return condition.message
    return None


# ---- lost pods ------------------------------------------------------------------------------


_DAEMON_SET = "DaemonSet"
#: The reason of the condition DisruptionTarget, and what happened to the pod.
_CAUSES = {
    "PreemptionByScheduler": "preempted",
    "DeletionByPodGC": "lost with a node",
    "EvictionByEvictionAPI": "evicted",
    "DeletionByTaintManager": "evicted",
    "DeletionByDeviceTaintManager": "evicted",
    "TerminationByKubelet": "evicted",
}
FAILED = "failed"
DELETED = "deleted"


class _Controller(NamedTuple):
    """The controller that would create a pod again."""

    key: ObjectKey
    uid: str
    #: The node for which the controller created the pod; "": any node.
    node: str = ""


class _Lost(NamedTuple):
    """A pod that went before its end."""

    cause: str
    controller: _Controller | None


@final
class LossLog:
    """An observer of the embedded API server: the lost pods."""

    def __init__(self, follower_names: Collection[str]) -> None:
        """``follower_names``: "namespace/name" of pods that are created when other pods succeed."""
        self._follower_names = follower_names
        #: Lost pods that are not replaced yet, by "namespace/name".
        self._lost: dict[str, _Lost] = {}
        #: Names of them, in order, by controller.
        self._by_controller: dict[_Controller, dict[str, None]] = defaultdict(dict)
        #: Controllers by uid, and those that were deleted.
        self._owners: dict[str, Stored] = {}
        self._deleted: set[str] = set()
        self._nodes: set[str] = set()
        #: Pods that are there and have not ended, by their controller's uid.
        self._active: Counter[str] = Counter()
        self._ended_uids: set[str] = set()

    def end(self, uid: str) -> None:
        """Note that the running time of a pod has passed: the pod is not lost when it goes."""
        self._ended_uids.add(uid)

    def observe(self, before: Stored | None, after: Stored | None) -> None:
        changed = after or before
        assert changed is not None
        if isinstance(changed.object, Pod):
            if before is None:
                self._come(changed)
            elif (
                after is not None
                and after.placed_pod is not None
                and not (after.object.metadata.deletion_timestamp)
            ):
                return  # it runs
            elif not _is_over(before) and (after is None or _is_over(after)):
                self._go(before, changed)
        elif changed.key.kind == NODE:
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

    def _come(self, stored: Stored) -> None:
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
        controller = self._lost.pop(name).controller
        if controller is not None:
            del self._by_controller[controller][name]

    def _go(self, before: Stored, last: Stored) -> None:
        name, controller = _name(last.key), _controller(before.content)
        if controller is not None:
            self._active[controller.uid] -= 1
        if last.content["metadata"]["uid"] in self._ended_uids or _phase(last) == "Succeeded":
            return
        self._lost[name] = _Lost(_cause(last), controller)
        if controller is not None:
            self._by_controller[controller][name] = None

    # ---- at the end -------------------------------------------------------------------------

    def lost(self) -> tuple[LostPods, ...]:
        """The lost pods by workload, sorted by name; pods without a controller come first."""
        lost: dict[str, list[_Lost]] = defaultdict(list)
        for one in self._lost.values():
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
            kind = f"{reference.get('apiVersion')} {reference.get('kind')}"
            name = str(object_key(kind, stored.key.namespace, reference.get("name", "")))
            stored = self._owners.get(reference["uid"])
        return name

    def _missing_counts(self) -> dict[str, int]:
        """For each workload with ``replicas``: how many of these pods are missing."""
        missing = {
            str(stored.key): max(replicas, 0)
            for stored in self._owners.values()
            if isinstance(replicas := (stored.content.get("spec") or {}).get("replicas"), int)
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


def _phase(stored: Stored) -> str:
    phase: str = (stored.content.get("status") or {}).get("phase") or ""
    return phase


def _is_over(stored: Stored) -> bool:
    """Whether the controller of the pod no longer counts it."""
    return not stored.is_visible or bool(stored.object.metadata.deletion_timestamp)


def _cause(stored: Stored) -> str:
    for condition in (stored.content.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            return _CAUSES.get(condition.get("reason", ""), DELETED)
    return FAILED if _phase(stored) == "Failed" else DELETED


def _controlled_by(content: Content) -> dict[str, Any] | None:
    owners = content["metadata"].get("ownerReferences") or ()
    return next((one for one in owners if one.get("controller") and one.get("uid")), None)


def _controller(pod: Content) -> _Controller | None:
    reference = _controlled_by(pod)
    if reference is None:
        return None
    kind, namespace = reference.get("kind", ""), pod["metadata"].get("namespace", "")
    key = object_key(f"{reference.get('apiVersion')} {kind}", namespace, reference.get("name", ""))
    # A kubelet creates the mirror of a static pod for its own node, as a DaemonSet does.
    node = target_node(pod) if kind in (_DAEMON_SET, "Node") else None
    return _Controller(key, reference["uid"], node or "")
