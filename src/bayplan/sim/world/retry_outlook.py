"""Whether a retry of a pod can have another outcome than the attempt before it.

Timers retry pods without end, so retries alone do not keep a simulation running. But a pod in
backoff gets no events. If a node was added since its last attempt, the simulation waits for the
retry. The same holds for a retry that a plugin postponed, if something changed since.

Failing pods may wake one another without end. For example, each of two pods that time out at Permit
may free the resources for which the other one waits. What a scheduler writes about such pods is no
progress. If each pod that is still being tried was tried `TRIES_MAX` times since the last progress,
further retries are futile. The backoff of a pod has stopped growing by then, so its attempts
repeat.
"""

from collections import Counter
from itertools import count
from math import inf
from typing import final

from bayplan.adapters.embedded.cluster import EVENT, EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import PodChange, PodSteps, StoredObject
from bayplan.api.objects import NODE, Pod
from bayplan.clock import ManualClock
from bayplan.engine.scheduler import Scheduler
from bayplan.journal import AttemptRecord, Record
from bayplan.objects.keys import Content

#: The number of attempts at each pod without progress after which retries are futile.
TRIES_MAX = 10


@final
class RetryOutlook:
    """Observes the embedded API server and is a sink of the journal, so it gets both in one
    order."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._steps = PodSteps()
        #: The last arrival or binding of a pod that was counted as progress.
        self._last_step = 0
        self._moments = count(1)
        self._changed = 0
        self._changed_seconds = -inf
        #: uid → the moment of the last attempt.
        self._tried: dict[str, int] = {}
        #: uid → attempts since the last progress.
        self._tries: Counter[str] = Counter()

    def follow(self, cluster: EmbeddedCluster) -> None:
        """Observe the changes of a cluster from now on."""
        self._steps = cluster.steps
        # Each arrival and each binding is progress: `_note_steps`.
        steps = (PodChange.ARRIVES, PodChange.IS_BOUND)
        cluster.observe(self._observe, ignored_kinds=(EVENT,), ignored_changes=steps)

    def _note_steps(self) -> None:
        """Note pods that have arrived or were bound."""
        self._last_step = self._steps.version
        self._tries.clear()

    def _observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        if after is not None and isinstance(after.object, Pod):
            if before is None:
                # A new pod helps no other pod.
                self._tries.clear()
                return
            if before.placed_pod is None and after.placed_pod is not None:
                # A binding is progress, and helps no other pod.
                self._tries.clear()
                return
        if _may_help(before, after):
            self._changed = next(self._moments)
            self._changed_seconds = self._clock.now_seconds
        if _is_progress(before, after):
            self._tries.clear()

    def write(self, record: Record) -> None:
        if isinstance(record, AttemptRecord):
            if self._last_step != self._steps.version:
                # This is the usual case, and is written without a call of `_note_steps`.
                self._last_step = self._steps.version
                self._tries.clear()
            self._tried[record.uid] = next(self._moments)
            # A missing count of a Counter costs a call.
            self._tries[record.uid] = self._tries.get(record.uid, 0) + 1

    def retry_may_succeed(self, scheduler: Scheduler) -> bool:
        """Whether something changed since the last attempt at a pod that will be retried."""
        if scheduler.activations.any_requested_by(self._changed_seconds):
            return True
        waiting = scheduler.queue.pending_pods()["backoff"]
        return any(self._tried.get(pod.uid, 0) < self._changed for pod in waiting)

    def retries_are_futile(self, scheduler: Scheduler) -> bool:
        """Whether all pods that are being tried have failed often enough since the last
        progress."""
        if self._last_step != self._steps.version:
            self._note_steps()
        if max(self._tries.values(), default=0) < TRIES_MAX:
            return False
        if scheduler.activations.any_requested_by(self._changed_seconds):
            return False
        queues = scheduler.queue.pending_pods()
        trying = [*queues["active"], *queues["backoff"]]
        trying += [waiting_pod.pod for waiting_pod in scheduler.waiting_pods()]
        return all(self._tries[pod.uid] >= TRIES_MAX for pod in trying)


def _is_progress(before: StoredObject | None, after: StoredObject | None) -> bool:
    """Whether a change is progress: an object is created or deleted, a pod gets its node or ends,
    or anything but a status changes. What a scheduler writes about a failure is no progress."""
    if before is None or after is None or after.key.kind == NODE:
        return True
    if before.placed_pod is not None:
        return after.placed_pod is None
    return _without_status(before) != _without_status(after)


def _without_status(stored: StoredObject) -> Content:
    meta = stored.content["metadata"]
    own = {name: value for name, value in meta.items() if name != "resourceVersion"}
    return {**stored.content, "metadata": own, "status": None}


def _may_help(before: StoredObject | None, after: StoredObject | None) -> bool:
    """Whether a change may let a failed pod pass: freed resources, a node, or what plugins read.

    New pods, bindings, and what the scheduler itself writes do not help.
    """
    changed = after or before
    assert changed is not None
    if not isinstance(changed.object, Pod):
        return True
    if before is not None and before.placed_pod is not None:
        return after is None or after.placed_pod is None
    return _is_another(before, after) and (after is None or after.placed_pod is None)


def _is_another(before: StoredObject | None, after: StoredObject | None) -> bool:
    """Whether a user changed a pod; the scheduler changes only the status."""
    if before is None or after is None:
        return False
    old, new = before.object, after.object
    assert isinstance(old, Pod)
    assert isinstance(new, Pod)
    return old.spec != new.spec or old.metadata.labels != new.metadata.labels
