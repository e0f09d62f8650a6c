"""Objects of controllers that the API server refuses, such as pods above a quota.

A controller that is refused tries again after a delay, which doubles with each failure, as the work
queues of kube-controller-manager do. If no object is gone and only pods have changed since the last
try, another try would fail in the same way. So such a delay does not keep a run going.

Upstream: client-go util/workqueue (default_rate_limiters.go); job_controller.go has times of its
own.
"""

from asyncio import TimerHandle
from collections.abc import Callable
from typing import final

from msgspec import Struct

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.answers.amounts import pod_count
from bayplan.api.objects import DEPLOYMENT, JOB, STATEFUL_SET
from bayplan.objects.keys import ObjectKey
from bayplan.ports import ApiError, EmitEvent, ObjectReference
from bayplan.sim.loop import running_loop

#: (shortest, longest) delay in seconds.
_DELAYS = (0.005, 1000.0)
_DELAYS_OF_JOBS = (1.0, 60.0)
#: Beyond this exponent the delay is the longest one.
_EXPONENT_MAX = 20


class _Refusal(Struct):
    """The last try of a controller."""

    timer: TimerHandle
    #: `RefusedCreations.change_count` at that time.
    change_count: int
    message: str
    failure_count: int
    #: The number of pods that were not created.
    lacking_count: int


@final
class RefusedCreations:
    """The refusals of one cluster, by the controller that was refused."""

    def __init__(self, cluster: EmbeddedCluster, retry: Callable[[ObjectKey], None]) -> None:
        """``retry`` lets a controller try again."""
        self._cluster = cluster
        self._retry = retry
        #: Controllers that wait before they try again.
        self.waiting: dict[ObjectKey, _Refusal] = {}
        #: The number of changes that may make room: a pod is gone or has ended, or another object
        #: has changed.
        self.change_count = 0

    @property
    def due_seconds(self) -> float | None:
        """When the next controller tries again that may succeed; None: there is none."""
        times = [
            one.timer.when()
            for one in self.waiting.values()
            if one.change_count != self.change_count
        ]
        return min(times, default=None)

    def __contains__(self, controller: ObjectKey) -> bool:
        """Whether a controller waits before it tries again."""
        return controller in self.waiting

    def add(
        self, controller: ObjectKey, refused: ObjectKey, problem: ApiError, *, lacking_count: int
    ) -> None:
        """Note that a controller was refused an object, and that it tries again later.

        ``lacking_count``: how many pods it could not create.
        """
        before = self.waiting.get(controller)
        failure_count = 1 if before is None else before.failure_count + 1
        if before is not None:
            before.timer.cancel()
        shortest, longest = _DELAYS_OF_JOBS if controller.kind == JOB else _DELAYS
        delay = min(shortest * 2 ** min(failure_count - 1, _EXPONENT_MAX), longest)
        self.waiting[controller] = _Refusal(
            timer=running_loop().call_later(delay, self._retry, controller),
            change_count=self.change_count,
            message=str(problem),
            failure_count=failure_count,
            lacking_count=lacking_count,
        )
        self._emit(controller, refused, problem)

    def skip(self, controller: ObjectKey) -> None:
        """Count one more pod that a waiting controller does not try to create."""
        self.waiting[controller].lacking_count += 1

    def forget(self, controller: ObjectKey) -> None:
        """Forget a controller that was refused nothing, or that is gone."""
        refusal = self.waiting.pop(controller, None)
        if refusal is not None:
            refusal.timer.cancel()

    def _emit(self, controller: ObjectKey, refused: ObjectKey, problem: ApiError) -> None:
        stored = self._cluster.get(controller)
        if stored is None:
            return
        reason, note = _event(controller, refused, problem)
        event = EmitEvent(
            _reference(stored), "Warning", reason, reason, note, _reporter(controller)
        )
        self._cluster.create_event_now(event)

    def notes(self) -> list[str]:
        """The notes about controllers that lack pods at the end, with the reasons."""
        return [
            f"{key} lacks {pod_count(one.lacking_count)}: {one.message}"
            for key, one in self.waiting.items()
        ]


def _event(controller: ObjectKey, refused: ObjectKey, problem: ApiError) -> tuple[str, str]:
    """(reason, note) as upstream's controllers write them."""
    if controller.kind == DEPLOYMENT:
        note = f'Failed to create new replica set "{refused.name}": {problem}'
        return "ReplicaSetCreateError", note
    if controller.kind == STATEFUL_SET:
        pod = refused.name[refused.name.rindex(f"{controller.name}-") :]
        claim = "" if pod == refused.name else f"Claim {refused.name} for "
        end = f"in StatefulSet {controller.name} failed error: {problem}"
        return "FailedCreate", f"create {claim}Pod {pod} {end}"
    return "FailedCreate", f"Error creating: {problem}"


def _reporter(controller: ObjectKey) -> str:
    """`replicaset-controller`."""
    kind = controller.kind.rpartition(" ")[2].lower()
    return "replication-controller" if kind == "replicationcontroller" else f"{kind}-controller"


def _reference(stored: StoredObject) -> ObjectReference:
    uid: str = stored.content["metadata"]["uid"]
    return ObjectReference(*stored.key, uid, str(stored.version))
