"""Each pod's fate, written down as the API server's objects change.

Pods that went before their end, and that no controller makes again.

There is no controller in a simulation: where a cluster would have another pod pending, there is
none here. These pods are counted, so that a reader does not take "5 of 5 placed" for a cluster that
is at rest. A pod is lost when it is preempted, deleted or evicted, when its node goes, or when it
fails. It is not lost when it succeeds, when the time that it was to run has passed, or when its
controller is deleted: a cluster would not make another one either.

What comes again is not counted: a pod of the name of the lost one, another pod of its controller
that the workload creates later, and a daemon pod on a node that is gone. A Job's next pod takes the
place of one that succeeded, and of no other.
"""

from collections import Counter, defaultdict
from collections.abc import Collection
from typing import Any, NamedTuple, final

from bayplan.adapters.embedded.object_names import ObjectKey, kind_of, object_key
from bayplan.adapters.embedded.object_store import Stored
from bayplan.api.objects import NODE, ObjectMeta, Pod, Workload, is_terminal
from bayplan.clock import ManualClock
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.daemon_pods import target_node
from bayplan.sim.input.workload import Content
from bayplan.sim.output.result import LostPods, PodResult

# ---- pod log --------------------------------------------------------------------------------


_REPLICA_SET = "ReplicaSet"
#: A ReplicaSet of a Deployment is called after the Deployment and this label.
TEMPLATE_HASH_LABEL = "pod-template-hash"


class _Entry:
    """What is known of one pod; the newest of those that had this name."""

    __slots__ = ("bound_at", "created_at", "deleted_at", "pod", "was_running")

    def __init__(self, pod: Pod, created_at: float) -> None:
        self.pod = pod
        self.created_at = created_at
        self.bound_at: float | None = None
        self.deleted_at: float | None = None
        self.was_running = bool(pod.spec.node_name)


@final
class PodLog:
    """An observer of the embedded API server."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        #: (namespace, name) of a ReplicaSet → its owner's "Kind/name".
        self._replica_set_owners: dict[tuple[str, str], str] = {}
        self._entries: dict[str, _Entry] = {}

    def observe(self, before: Stored | None, after: Stored | None) -> None:
        changed = after or before
        assert changed is not None
        if isinstance(changed.object, Workload):
            self._note_owner(changed.object)
        if not isinstance(changed.object, Pod):
            return
        name = f"{changed.key.namespace}/{changed.key.name}"
        now = self._clock.now_seconds
        if before is None:
            self._entries[name] = _Entry(changed.object, now)
            return
        entry = self._entries[name]
        if after is None:
            entry.deleted_at = now
            return
        if changed.object.spec.node_name and not entry.pod.spec.node_name:
            entry.bound_at = now
        entry.pod = changed.object

    def _note_owner(self, workload: Workload) -> None:
        owner, meta = _controller_of(workload.metadata), workload.metadata
        if owner is not None:
            self._replica_set_owners[meta.namespace or "", meta.name] = owner

    def _controller(self, pod: Pod) -> str | None:
        """The workload behind a pod: a Deployment, not its ReplicaSet."""
        meta = pod.metadata
        owner = _controller_of(meta)
        kind, _, name = (owner or "").partition("/")
        if kind != _REPLICA_SET:
            return owner
        deployment = self._replica_set_owners.get((meta.namespace or "", name))
        template_hash = (meta.labels or {}).get(TEMPLATE_HASH_LABEL, "")
        if deployment is None and template_hash and name.endswith(f"-{template_hash}"):
            # The ReplicaSet is not in the input; its name says which Deployment made it.
            deployment = f"Deployment/{name.removesuffix(f'-{template_hash}')}"
        return deployment or owner

    def names(self) -> list[str]:
        """All pods there were, sorted."""
        return sorted(self._entries)

    def pod(self, name: str) -> Pod:
        """The last version of a pod."""
        return self._entries[name].pod

    def was_running(self, name: str) -> bool:
        """Whether it had a node when it was created."""
        return self._entries[name].was_running

    def is_pending(self, name: str) -> bool:
        """Whether it is there, has no node, and has not failed without one."""
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
    """Whether the API server says that the pod waits for its scheduling gates to be removed."""
    return any(c.reason == "SchedulingGated" for c in pod.status.conditions or ())


def _controller_of(meta: ObjectMeta) -> str | None:
    """ "Kind/name" of the owner that controls it."""
    for owner in meta.owner_references or ():
        if owner.controller:
            return f"{owner.kind}/{owner.name}"
    return None


def message_of(pod: Pod) -> str | None:
    """Of the condition PodScheduled."""
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
    """Who makes a pod again."""

    key: ObjectKey
    uid: str
    #: The node that it made the pod for; "": any.
    node: str = ""


class _Lost(NamedTuple):
    """One pod that went before its end."""

    cause: str
    controller: _Controller | None


@final
class LossLog:
    """An observer of the embedded API server."""

    def __init__(self, follower_names: Collection[str]) -> None:
        """``follower_names``: "namespace/name" of the pods that come when others succeed."""
        self._follower_names = follower_names
        #: Lost pods that are not back yet, by "namespace/name".
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
        """A pod has run as long as it was to run: that it goes now is no loss."""
        self._ended_uids.add(uid)

    def observe(self, before: Stored | None, after: Stored | None) -> None:
        changed = after or before
        assert changed is not None
        if isinstance(changed.object, Pod):
            self._see_pod(before, after)
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

    def _see_pod(self, before: Stored | None, after: Stored | None) -> None:
        if before is None:
            assert after is not None
            self._come(after)
        elif not _is_over(before) and (after is None or _is_over(after)):
            self._go(before, after or before)

    def _come(self, stored: Stored) -> None:
        name, controller = _name(stored.key), _controller(stored.content)
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
        """By workload, in the order of their names; first of all those without a controller."""
        lost: dict[str, list[_Lost]] = defaultdict(list)
        for one in self._lost.values():
            if one.controller is None:
                lost[""].append(one)
            elif not one.controller.node or one.controller.node in self._nodes:
                lost[self._top(one.controller)].append(one)
        missing = self._missing_counts()
        results: list[LostPods] = []
        for workload in sorted(lost):
            # The workload may want fewer pods by now than it lost.
            causes = Counter(one.cause for one in lost[workload][: missing.get(workload)])
            if causes and workload not in self._deleted:
                results.append(LostPods(workload=workload, causes=dict(sorted(causes.items()))))
        return tuple(results)

    def _top(self, controller: _Controller) -> str:
        """What a person calls a workload: a ReplicaSet's Deployment, if that is known."""
        name, stored = str(controller.key), self._owners.get(controller.uid)
        while stored is not None and (reference := _controlled_by(stored.content)) is not None:
            kind = f"{reference.get('apiVersion')} {reference.get('kind')}"
            name = str(object_key(kind, stored.key.namespace, reference.get("name", "")))
            stored = self._owners.get(reference["uid"])
        return name

    def _missing_counts(self) -> dict[str, int]:
        """Workloads that say how many pods they want, and how many of these they lack."""
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
    """Whether its controller counts the pod no more."""
    meta = stored.content["metadata"]
    return bool(meta.get("deletionTimestamp")) or _phase(stored) in ("Succeeded", "Failed")


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
    # The kubelet makes a static pod's mirror for its own node, as a DaemonSet does.
    node = target_node(pod) if kind in (_DAEMON_SET, "Node") else None
    return _Controller(key, reference["uid"], node or "")
