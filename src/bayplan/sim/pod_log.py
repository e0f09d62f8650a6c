"""Each pod's fate, written down as the API server's objects change."""

from typing import final

from bayplan.adapters.object_store import Stored
from bayplan.api.objects import ObjectMeta, Pod, Workload, is_terminal
from bayplan.clock import Clock
from bayplan.sim.result import PodResult

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

    def __init__(self, clock: Clock) -> None:
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
        now = self._clock.now()
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
        found = self._replica_set_owners.get((meta.namespace or "", name))
        template_hash = (meta.labels or {}).get(TEMPLATE_HASH_LABEL, "")
        if found is None and template_hash and name.endswith(f"-{template_hash}"):
            # The ReplicaSet is not in the input; its name says which Deployment made it.
            found = f"Deployment/{name.removesuffix(f'-{template_hash}')}"
        return found or owner

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
