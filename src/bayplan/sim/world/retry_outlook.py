"""Whether a retry could come to something else than the attempt before it.

Timers that try pods again run for ever, so they alone do not keep a simulation going. But a pod
that waits out a backoff is not told what happens meanwhile: if a node came since it was tried, the
retry is worth waiting for. So is one that a plugin put off, if something came after that.

Failing pods may wake one another without end: where two time out at Permit, the room that one
leaves is what the other waits for. What a scheduler writes about such pods is no progress. When
each pod that is still being tried was tried `TRIES_MAX` times since anything else changed, it is in
vain. The backoff of a pod no longer grows by then, so that its tries repeat.
"""

from collections import Counter
from itertools import count
from math import inf
from typing import final

from bayplan.adapters.embedded.cluster import EVENT
from bayplan.adapters.embedded.object_names import Content
from bayplan.adapters.embedded.object_store import Stored
from bayplan.api.objects import NODE, Pod
from bayplan.clock import ManualClock
from bayplan.engine.scheduler import Scheduler
from bayplan.journal import AttemptRecord, Record

#: Tries at each pod without progress in between, after which no more are waited for.
TRIES_MAX = 10


@final
class RetryOutlook:
    """An observer of the embedded API server and a journal sink, in one order."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._moments = count(1)
        self._changed = 0
        self._changed_seconds = -inf
        #: By uid: when it was tried last.
        self._tried: dict[str, int] = {}
        #: By uid: how often it was tried since the last progress.
        self._tries: Counter[str] = Counter()

    def observe(self, before: Stored | None, after: Stored | None) -> None:
        changed = after or before
        assert changed is not None
        if changed.key.kind == EVENT:
            return
        if _may_help(before, after):
            self._changed = next(self._moments)
            self._changed_seconds = self._clock.now_seconds
        if _is_progress(before, after):
            self._tries.clear()

    def write(self, record: Record) -> None:
        if isinstance(record, AttemptRecord):
            self._tried[record.uid] = next(self._moments)
            self._tries[record.uid] += 1

    def retry_may_succeed(self, scheduler: Scheduler) -> bool:
        """Whether something changed since a pod was tried that is going to be tried again."""
        if scheduler.activations.any_requested_by(self._changed_seconds):
            return True
        waiting = scheduler.queue.pending_pods()["backoff"]
        return any(self._tried.get(pod.uid, 0) < self._changed for pod in waiting)

    def retries_are_futile(self, scheduler: Scheduler) -> bool:
        """Whether all that goes on is that pods fail again which failed often enough."""
        if max(self._tries.values(), default=0) < TRIES_MAX:
            return False
        if scheduler.activations.any_requested_by(self._changed_seconds):
            return False
        queues = scheduler.queue.pending_pods()
        trying = [*queues["active"], *queues["backoff"]]
        trying += [waiting_pod.pod for waiting_pod in scheduler.waiting_pods()]
        return all(self._tries[pod.uid] >= TRIES_MAX for pod in trying)


def _is_progress(before: Stored | None, after: Stored | None) -> bool:
    """Whether a change is more than what a scheduler writes about a failure: an object comes or
    goes, a pod gets its node or ends, or anything but a status is changed."""
    if before is None or after is None or after.key.kind == NODE:
        return True
    if before.placed_pod is not None:
        return after.placed_pod is None
    return _without_status(before) != _without_status(after)


def _without_status(stored: Stored) -> Content:
    meta = stored.content["metadata"]
    own = {name: value for name, value in meta.items() if name != "resourceVersion"}
    return {**stored.content, "metadata": own, "status": None}


def _may_help(before: Stored | None, after: Stored | None) -> bool:
    """Whether a change may let a pod pass that failed: room, a node, whatever plugins read.

    Other pods that come, or that are bound, and what the scheduler itself writes help nobody.
    """
    changed = after or before
    assert changed is not None
    if not isinstance(changed.object, Pod):
        return True
    if before is not None and before.placed_pod is not None:
        return after is None or after.placed_pod is None
    return _is_another(before, after) and (after is None or after.placed_pod is None)


def _is_another(before: Stored | None, after: Stored | None) -> bool:
    """Whether a user changed a pod, not the scheduler its status."""
    if before is None or after is None:
        return False
    old, new = before.object, after.object
    assert isinstance(old, Pod)
    assert isinstance(new, Pod)
    return old.spec != new.spec or old.metadata.labels != new.metadata.labels
