"""Pods held at Permit: a record with deadlines, not a thread.

Each waiting pod lists the instances that have not allowed it yet, each with its own deadline. It
leaves when all have allowed it, when one rejects it, or when the first deadline passes. Upstream:
runtime/waiting_pods_map.go.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from bayplan.clock import go_duration
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.state.pods import PodInfo

#: What ends a wait: None when all allowed, else the rejection that names its plugin.
Ended = Callable[["PodWaitingOnPermit", Status | None], None]


@dataclass(slots=True, eq=False)
class PodWaitingOnPermit:
    """One pod at Permit. Implements framework.handle.WaitingPod."""

    pod: PodInfo
    node_name: str
    since_seconds: float
    #: Instance → seconds it waits at most.
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
        """An instance that is not pending, or comes too late, changes nothing."""
        if self.timeouts.pop(plugin, None) is not None and not self.timeouts:
            self._end(None)

    def reject(self, plugin: str, message: str) -> None:
        self._end(unschedulable(message).with_plugin(plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        return self._end(Status(Code.ERROR, (f"waiting on permit for pod: {message}",), plugin))

    def time_out(self) -> None:
        """The first deadline has passed."""
        seconds, plugin = min((s, name) for name, s in self.timeouts.items())
        waited = go_duration(seconds)
        self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")

    def _end(self, status: Status | None) -> bool:
        """False: it is over already."""
        if self._is_over:
            return False
        self._is_over = True
        self._ended(self, status)
        return True


class WaitingPods:
    """All pods at Permit, by uid."""

    def __init__(self) -> None:
        self._held: dict[str, PodWaitingOnPermit] = {}
        #: No deadline is earlier. Those of a pod only get later: when an instance allows it.
        self._not_before_seconds = inf

    def hold(self, waiting_pod: PodWaitingOnPermit) -> None:
        self._held[waiting_pod.pod.uid] = waiting_pod
        self._not_before_seconds = min(self._not_before_seconds, waiting_pod.deadline_seconds)

    def leave(self, uid: str) -> None:
        self._held.pop(uid, None)

    def get(self, uid: str) -> PodWaitingOnPermit | None:
        return self._held.get(uid)

    def all(self) -> list[PodWaitingOnPermit]:
        """In order of their uids."""
        return [self._held[uid] for uid in sorted(self._held)]

    def __len__(self) -> int:
        return len(self._held)

    def next_deadline_seconds(self) -> float | None:
        return min(
            (waiting_pod.deadline_seconds for waiting_pod in self._held.values()), default=None
        )

    def time_out_until(self, now_seconds: float) -> None:
        """Reject all whose first deadline has passed, the earliest first."""
        if now_seconds < self._not_before_seconds:
            return
        due = [
            waiting_pod
            for waiting_pod in self._held.values()
            if waiting_pod.deadline_seconds <= now_seconds
        ]
        for waiting_pod in sorted(due, key=lambda h: (h.deadline_seconds, h.pod.uid)):
            # What the one before it set off may have allowed it.
            if waiting_pod.timeouts:
                waiting_pod.time_out()
        next_seconds = self.next_deadline_seconds()
        self._not_before_seconds = inf if next_seconds is None else next_seconds
