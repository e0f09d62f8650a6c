"""What the queue holds: entries, tried as a whole."""

from collections.abc import Collection
from typing import final

from bayplan.framework.queued_group import QueuedPodGroupInfo
from bayplan.framework.types import QueuedPodInfo
from bayplan.queue.transitions import State
from bayplan.state.pods import PodInfo


@final
class Entry:
    """A pod, or pods that are tried together.

    ``queued`` carries the entry's own counts and time stamps, ``pods`` what it consists of: of a
    single pod it is the only one. Every pod has its own rejecting plugins and its own gate.
    """

    __slots__ = (
        "group",
        "key",
        "pods",
        "popped_count",
        "queued",
        "sequence",
        "since_seconds",
        "state",
    )

    def __init__(self, queued: QueuedPodInfo, since_seconds: float | None = None) -> None:
        """``since_seconds``: when it came, where that is not what it is ordered by."""
        self.group = queued if isinstance(queued, QueuedPodGroupInfo) else None
        #: Identity: the object's uid. A pod made anew under an old name is another entry.
        self.key = queued.pod.uid if self.group is None else f"group {self.group.key!r}"
        self.queued = queued
        self.pods: Collection[QueuedPodInfo] = (queued,)
        if self.group is not None:
            self.pods = self.group.members.values()
        #: Who came first, among equals.
        self.sequence = queued.sequence
        #: From here its delay counts.
        self.since_seconds = queued.timestamp_seconds if since_seconds is None else since_seconds
        self.state = State.ABSENT
        #: Members that a group had when it was last taken to be tried.
        self.popped_count = 0

    def come_back(self, queued: QueuedPodInfo, now_seconds: float, sequence: int) -> None:
        """Its attempt failed: count that, and line up anew behind those that came meanwhile."""
        self.queued = queued
        if self.group is None:
            self.pods = (queued,)
            queued.timestamp_seconds = now_seconds
            queued.sequence = sequence
        self.since_seconds, self.sequence = now_seconds, sequence
        if self.has_rejectors:
            queued.unschedulable_count += 1
            queued.consecutive_errors_count = 0
        else:
            queued.consecutive_errors_count += 1
        queued.was_flushed = False
        queued.flushed_at_seconds = None

    def of(self, uid: str) -> QueuedPodInfo:
        """One of its pods."""
        return self.queued if self.group is None else self.group.members[uid]

    def take(self, pod: PodInfo) -> None:
        """One of its pods has a newer version."""
        self.of(pod.uid).pod = pod
        if self.group is not None and self.group.pod.uid == pod.uid:
            self.group.pod = pod

    def begin(self) -> None:
        """An attempt at the group begins."""
        assert self.group is not None
        self.group.attempts += 1
        for queued in self.pods:
            if queued.initial_attempt_seconds is None:
                queued.initial_attempt_seconds = self.group.initial_attempt_seconds

    @property
    def has_rejectors(self) -> bool:
        """Whether some plugin is to blame for its last attempt, or holds it back."""
        if self.group is None:
            return bool(self.queued.unschedulable_plugins or self.queued.pending_plugins)
        return any(queued.unschedulable_plugins or queued.pending_plugins for queued in self.pods)

    @property
    def gating_plugin(self) -> str:
        """Who holds it back; one pod that is held back holds back all. "" for nobody."""
        return next((queued.gating_plugin for queued in self.pods if queued.gated), "")

    @property
    def is_short(self) -> bool:
        """Whether it is a group that lacks members."""
        return self.group is not None and not self.group.is_complete

    @property
    def name(self) -> str:
        """Orders groups of one moment."""
        return "" if self.group is None else str(self.group.key)

    @property
    def waiting_since_seconds(self) -> float:
        """From when its time among the unschedulable counts."""
        flushed_at = self.queued.flushed_at_seconds
        since = self.since_seconds
        return since if flushed_at is None else max(since, flushed_at)

    def __repr__(self) -> str:
        return f"Entry({self.name or self.queued.pod.key} {self.state.name})"


def rejectors(queued: QueuedPodInfo) -> list[str]:
    """Every plugin that rejected the pod, whether it makes it wait or pend; sorted."""
    if not queued.unschedulable_plugins and not queued.pending_plugins:
        return []
    return sorted(queued.unschedulable_plugins | queued.pending_plugins)
