"""Pods that went before their end, and that no controller makes again.

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

from bayplan.adapters.object_names import ObjectKey, kind_of, object_key
from bayplan.adapters.object_store import Stored
from bayplan.api.objects import NODE, Pod
from bayplan.sim.controller_kinds import CONTROLLERS
from bayplan.sim.daemon_pods import target_node
from bayplan.sim.result import LostPods
from bayplan.sim.workload import Content

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
            others = None if controller is None else self._by_controller.get(controller)
            if others:
                self._forget(next(iter(others)))

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
        found: list[LostPods] = []
        for workload in sorted(lost):
            # The workload may want fewer pods by now than it lost.
            causes = Counter(one.cause for one in lost[workload][: missing.get(workload)])
            if causes and workload not in self._deleted:
                found.append(LostPods(workload=workload, causes=dict(sorted(causes.items()))))
        return tuple(found)

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
        wanted = {
            str(stored.key): max(replicas, 0)
            for stored in self._owners.values()
            if isinstance(replicas := (stored.content.get("spec") or {}).get("replicas"), int)
        }
        for uid, count in self._active.items():
            stored = self._owners.get(uid)
            if stored is not None:
                top = self._top(_Controller(stored.key, uid))
                if top in wanted:
                    wanted[top] -= count
        return {workload: max(count, 0) for workload, count in wanted.items()}


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
