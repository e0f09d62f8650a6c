"""Pod garbage collection: fails and removes pods that no kubelet can end.

A pass handles three kinds of pods, in upstream's order: terminating pods on a node that is not
ready and has the taint ``out-of-service``; orphans, whose node does not exist; and terminating pods
without a node. The name of a missing node is quarantined first. Its pods are removed at the first
pass after the quarantine, unless the node exists again by then. Upstream passes every 20 s and
quarantines for 40 s, so an orphan is removed 40 s to 60 s after its node.

A pass is scheduled only while there is a pod to handle, so that an idle collector sets no timer.
Upstream: pkg/controller/podgc. Terminated pods above a threshold, which upstream also collects,
stay: such a pod takes no resources.
"""

import contextlib
import math
from typing import NamedTuple, cast, final

from bayplan.adapters.embedded.api_server import ApiServer, Later, failed
from bayplan.adapters.embedded.versioned_store import PodChange, StoredObject, VersionedStore
from bayplan.api.objects import NODE, POD, Node, Pod, is_terminal
from bayplan.clock import Clock, rfc3339
from bayplan.objects.keys import Content, ObjectKey
from bayplan.ports import ApiError

#: Upstream's gcCheckPeriod and quarantineTime.
UPSTREAM_PERIOD_SECONDS = 20.0
UPSTREAM_QUARANTINE_SECONDS = 40.0

OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service"
ORPHANED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


class PodGcTimes(NamedTuple):
    """How long a missing node is quarantined, and how often there is a pass.

    A period of 0: a pass comes as soon as there is work.
    """

    quarantine_seconds: float = 0.0
    period_seconds: float = 0.0


@final
class PodGcController:
    """Follows the pods and nodes of one store."""

    def __init__(
        self,
        server: ApiServer,
        store: VersionedStore,
        clock: Clock,
        later: Later,
        *,
        times: PodGcTimes,
    ) -> None:
        self._server = server
        self._store = store
        self._clock = clock
        self._later = later
        self._times = times
        #: Missing nodes, and when their quarantine ends.
        self._quarantine: dict[str, float] = {}
        #: When the next pass is due; None: there is nothing to do.
        self.due_seconds: float | None = None
        self._earliest_seconds = 0.0
        self._node_names: set[str] = set()
        store.observe(self._observe, (NODE, POD), ignored_changes=(PodChange.ARRIVES,))

    def _observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        changed = after or before
        assert changed is not None
        if changed.key.kind == NODE:
            if after is None:
                self._node_names.discard(changed.key.name)
            else:
                self._node_names.add(changed.key.name)
            if after is None or _is_out_of_service(cast(Node, after.object)):
                self._set_pass(self._clock.now())
        elif after is not None and isinstance(pod := after.object, Pod):
            name, is_leaving = pod.spec.node_name, pod.metadata.deletion_timestamp is not None
            if (is_leaving or (name and name not in self._node_names)) and self._concerns(after):
                self._set_pass(self._clock.now())

    def _concerns(self, stored: StoredObject) -> bool:
        """Whether a pass changes a pod, now or after the quarantine."""
        pod = cast(Pod, stored.object)
        is_leaving = pod.metadata.deletion_timestamp is not None
        if is_leaving and is_terminal(pod) and not self._has_grace(pod):
            return False  # only a finalizer prevents the removal
        if not pod.spec.node_name:
            return is_leaving
        node = self._node(pod.spec.node_name)
        return node is None or (is_leaving and _is_out_of_service(node))

    def _has_grace(self, pod: Pod) -> bool:
        return (pod.metadata.uid or "") in self._server.terminating

    def _node(self, name: str) -> Node | None:
        stored = self._store.get(ObjectKey(NODE, "", name))
        return None if stored is None else cast(Node, stored.object)

    # ---- passes -----------------------------------------------------------------------------

    def _set_pass(self, from_seconds: float) -> None:
        """Schedule a pass at the first end of a period at or after ``from_seconds``."""
        period, due = self._times.period_seconds, max(from_seconds, self._earliest_seconds)
        if period:
            due = math.ceil((due - _ROUNDING_SECONDS) / period) * period
        if self.due_seconds is not None and self.due_seconds <= due:
            return
        # Without a running loop there is no timer; the first change in a loop calls this again.
        with contextlib.suppress(RuntimeError):
            self._later(max(due - self._clock.now(), 0.0), self._pass_if_due)
            self.due_seconds = due

    def _pass_if_due(self) -> None:
        now = self._clock.now()
        if self.due_seconds is None or now < self.due_seconds - _ROUNDING_SECONDS:
            return  # an earlier pass has done the work
        self.due_seconds, self._earliest_seconds = None, now + self._times.period_seconds
        self._collect([one for one in self._store.all(POD) if self._concerns(one)])
        if self._quarantine:
            self._set_pass(min(self._quarantine.values()))

    def _collect(self, pods: list[StoredObject]) -> None:
        placed = [(one, cast(Pod, one.object).spec.node_name) for one in pods]
        on_nodes = [(one, name) for one, name in placed if name]
        for one, name in on_nodes:
            if self._node(name) is not None:
                self._remove(one)
        for _, name in on_nodes:
            if self._node(name) is None:
                due = self._clock.now() + self._times.quarantine_seconds
                self._quarantine.setdefault(name, due)
        missing = self._released()
        for one, name in on_nodes:
            if name in missing:
                self._remove(one, ORPHANED)
        for one, name in placed:
            if not name:
                self._remove(one)

    def _released(self) -> set[str]:
        """The nodes whose quarantine has ended and that are still missing."""
        now = self._clock.now() + _ROUNDING_SECONDS
        ended = [name for name, due in self._quarantine.items() if due <= now]
        for name in ended:
            del self._quarantine[name]
        return {name for name in ended if self._node(name) is None}

    def _remove(self, stored: StoredObject, condition: Content | None = None) -> None:
        """Fail a pod that has not ended, then delete it without grace, if it still exists."""
        key = stored.key
        with contextlib.suppress(ApiError):
            current = self._server.get(key)
            if not is_terminal(cast(Pod, current.object)):
                stamp = rfc3339(self._clock.epoch_seconds())
                status = failed(current.content["status"], condition, stamp)
                self._server.patch(key, {"status": status})
            self._server.delete(key, is_forced=True)


#: Sums of times are not exact: a quarantine that ends within this ends now.
_ROUNDING_SECONDS = 1e-6


def _is_out_of_service(node: Node) -> bool:
    """Whether the node is not ready and an operator has marked it as out of service."""
    if not any(taint.key == OUT_OF_SERVICE_TAINT for taint in node.spec.taints or ()):
        return False
    conditions = node.status.conditions or ()
    return not any(one.type == "Ready" and one.status == "True" for one in conditions)
