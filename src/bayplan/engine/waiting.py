"""What the engine does at a later time: deadlines, requested activations, waits at Permit.

A wait is a record with deadlines, not a thread. A pod that waits at Permit lists the plugin
instances that have not allowed the pod yet, each with its own deadline. The wait ends when all
instances have allowed the pod, when one rejects it, or when the first deadline passes. Upstream:
runtime/waiting_pods_map.go.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar, final

from bayplan.clock import Clock, go_duration
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.state.pods import PodInfo

# ---- deadlines ------------------------------------------------------------------------------


K = TypeVar("K", bound=Hashable)


@final
class Deadlines(dict[K, float]):
    """One time for each key, in seconds on the scheduler's clock."""

    def take_due(self, now_seconds: float) -> list[K]:
        """Remove and return the keys whose time has come, in the order of their insertion."""
        due = [key for key, seconds in self.items() if seconds <= now_seconds]
        for key in due:
            del self[key]
        return due

    def next_seconds(self) -> float | None:
        """The earliest time; None: there is no deadline."""
        return min(self.values(), default=None)


@final
class Activations:
    """The times at which plugins asked for an attempt at a pod. A later request for a pod replaces
    its earlier time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: By uid.
        self.deadlines = Deadlines[str]()
        #: When the first request for each pod came, by uid.
        self._requested_seconds: dict[str, float] = {}

    def add(self, pods: Iterable[PodInfo], at_seconds: float) -> None:
        for pod in pods:
            self.deadlines[pod.uid] = at_seconds
            self._requested_seconds.setdefault(pod.uid, self._clock.now())

    def take_due(self) -> list[str]:
        """Uids of the pods whose time has come; each is removed."""
        due = self.deadlines.take_due(self._clock.now())
        for uid in due:
            del self._requested_seconds[uid]
        return due

    def any_requested_by(self, seconds: float) -> bool:
        """Whether an activation that is still to come was requested at this time or before."""
        return any(requested <= seconds for requested in self._requested_seconds.values())


# ---- waiting --------------------------------------------------------------------------------


#: Called at the end of a wait: with None if all plugins allowed the pod, else with the rejection.
Ended = Callable[["PodWaitingOnPermit", Status | None], None]


@dataclass(slots=True, eq=False)
class PodWaitingOnPermit:
    """One pod at Permit. Implements framework.handle.WaitingPod."""

    pod: PodInfo
    node_name: str
    since_seconds: float
    #: Instance → its longest wait, in seconds.
    timeouts: dict[str, float]
    _ended: Ended
    _is_over: bool = field(default=False)

    @property
    def pending_plugins(self) -> list[str]:
        return sorted(self.timeouts)

    @property
    def deadline_seconds(self) -> float:
        return self.since_seconds + min(self.timeouts.values(), default=inf)

    def allow(self, plugin: str) -> None:
        """Allow the pod for an instance. No effect if the instance is not pending."""
        if self.timeouts.pop(plugin, None) is not None and not self.timeouts:
            self._end(None)

    def reject(self, plugin: str, message: str) -> None:
        self._end(unschedulable(message).with_plugin(plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        return self._end(Status(Code.ERROR, (f"waiting on permit for pod: {message}",), plugin))

    def time_out(self) -> None:
        """Reject the pod at its first deadline."""
        seconds, plugin = min((s, name) for name, s in self.timeouts.items())
        waited = go_duration(seconds)
        self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")

    def _end(self, status: Status | None) -> bool:
        """End the wait. False: it has ended before."""
        if self._is_over:
            return False
        self._is_over = True
        self._ended(self, status)
        return True


class WaitingPods:
    """All pods at Permit, by uid."""

    def __init__(self) -> None:
        self.by_uid: dict[str, PodWaitingOnPermit] = {}
        #: A lower bound of all deadlines. A deadline can only become later, by `allow`.
        self._not_before_seconds = inf

    def hold(self, waiting_pod: PodWaitingOnPermit) -> None:
        self.by_uid[waiting_pod.pod.uid] = waiting_pod
        self._not_before_seconds = min(self._not_before_seconds, waiting_pod.deadline_seconds)

    def leave(self, uid: str) -> None:
        self.by_uid.pop(uid, None)

    def get(self, uid: str) -> PodWaitingOnPermit | None:
        return self.by_uid.get(uid)

    def all(self) -> list[PodWaitingOnPermit]:
        """The pods in the order of their uids."""
        return [self.by_uid[uid] for uid in sorted(self.by_uid)]

    def __len__(self) -> int:
        return len(self.by_uid)

    def time_out_until(self, now_seconds: float) -> None:
        """Reject the pods whose first deadline has passed, the earliest first."""
        if now_seconds < self._not_before_seconds:
            return
        due = [
            waiting_pod
            for waiting_pod in self.by_uid.values()
            if waiting_pod.deadline_seconds <= now_seconds
        ]
        for waiting_pod in sorted(due, key=lambda h: (h.deadline_seconds, h.pod.uid)):
            # The rejection of another pod may have caused a plugin to allow this one.
            if waiting_pod.timeouts:
                waiting_pod.time_out()
        remaining = (waiting_pod.deadline_seconds for waiting_pod in self.by_uid.values())
        self._not_before_seconds = min(remaining, default=inf)
