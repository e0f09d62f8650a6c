"""What the queue holds: entries, tried as a whole."""

from typing import final

from bayplan.framework.interface import QueuedPodInfo
from bayplan.queue.transitions import State


@final
class Entry:
    """A pod, or pods that are tried together.

    ``queued`` carries the entry's own counts and time stamps, ``pods`` what it consists of: of a
    single pod it is the only one. Every pod has its own rejecting plugins and its own gate.
    """

    __slots__ = ("key", "pods", "queued", "state")

    def __init__(self, queued: QueuedPodInfo) -> None:
        #: Identity: the object's uid. A pod made anew under an old name is another entry.
        self.key = queued.pod.uid
        self.queued = queued
        self.pods: tuple[QueuedPodInfo, ...] = (queued,)
        self.state = State.ABSENT

    def come_back(self, queued: QueuedPodInfo, now_seconds: float, sequence: int) -> None:
        """Its attempt failed: count that, and line up anew behind those that came meanwhile."""
        self.queued, self.pods = queued, (queued,)
        if self.has_rejectors:
            queued.unschedulable_count += 1
            queued.consecutive_errors_count = 0
        else:
            queued.consecutive_errors_count += 1
        queued.timestamp_seconds = now_seconds
        queued.sequence = sequence
        queued.was_flushed = False
        queued.flushed_at_seconds = None

    @property
    def sequence(self) -> int:
        """Who came first, among equals."""
        return self.queued.sequence

    @property
    def has_rejectors(self) -> bool:
        """Whether some plugin is to blame for its last attempt, or holds it back."""
        return any(queued.unschedulable_plugins or queued.pending_plugins for queued in self.pods)

    @property
    def gating_plugin(self) -> str:
        """Who holds it back; one pod that is held back holds back all. "" for nobody."""
        return next((queued.gating_plugin for queued in self.pods if queued.gated), "")

    @property
    def waiting_since_seconds(self) -> float:
        """From when its time among the unschedulable counts."""
        flushed_at = self.queued.flushed_at_seconds
        since = self.queued.timestamp_seconds
        return since if flushed_at is None else max(since, flushed_at)

    def __repr__(self) -> str:
        return f"Entry({self.queued.pod.key} {self.state.name})"


def rejectors(queued: QueuedPodInfo) -> list[str]:
    """Every plugin that rejected the pod, whether it makes it wait or pend; sorted."""
    if not queued.unschedulable_plugins and not queued.pending_plugins:
        return []
    return sorted(queued.unschedulable_plugins | queued.pending_plugins)
