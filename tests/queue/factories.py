"""Pods, plugins and queues for the tests of the queue."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from bayplan.clock import ManualClock
from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.framework.plugin import PreEnqueuePlugin
from bayplan.framework.status import Code, Status, unresolvable
from bayplan.framework.types import QueuedPodInfo
from bayplan.metrics import Buckets
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.queue.settings import QueueProfile, QueueSettings
from bayplan.state.pods import PodInfo
from bayplan.testing import pod

PROFILE = "default-scheduler"

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
OWN_LABEL = ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_LABEL)
OWN_SCALE_DOWN = ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_SCALE_DOWN)

Events = Mapping[str, Sequence[ClusterEventWithHint]]


def queued(
    name: str = "p", *, rejected_by: Sequence[str] = (), pending: Sequence[str] = (), at: float = 0
) -> QueuedPodInfo:
    return QueuedPodInfo(
        pod(name),
        at,
        unschedulable_plugins=frozenset(rejected_by),
        pending_plugins=frozenset(pending),
    )


@final
class Gate(PreEnqueuePlugin):
    """Refuses every pod, or the pods for which ``refuses`` returns True."""

    name = "Gate"

    def setup(self) -> None:
        self.calls: list[str] = []

    def refuse(self, refuses: Callable[[PodInfo], bool] | bool) -> None:
        self.args = refuses

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        self.calls.append(pod.name)
        refuses = self.args(pod) if callable(self.args) else self.args
        return unresolvable("not yet") if refuses else None


def gate(name: str = "Gate", refuses: Callable[[PodInfo], bool] | bool = True) -> Gate:
    handle: Any = None
    return Gate(refuses, handle, name)


@final
class Hint:
    """A hint with a fixed answer that records the pods for which it is called."""

    def __init__(self, answer: QueueingHint | Callable[[PodInfo], QueueingHint]) -> None:
        self.answer = answer
        self.calls: list[str] = []

    def __call__(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        self.calls.append(pod.name)
        return self.answer(pod) if callable(self.answer) else self.answer


def on(event: ClusterEvent, hint: Any = None) -> ClusterEventWithHint:
    return ClusterEventWithHint(event, hint)


@final
class Recorder:
    def __init__(self) -> None:
        #: (plugin, event, answer, seconds)
        self.hints: list[tuple[str, str, str, float]] = []
        #: (plugin, code, seconds)
        self.pre_enqueue_plugins: list[tuple[str, Code, float]] = []
        self.unschedulable: Counter[str] = Counter()
        self.gates: list[tuple[str, str, str]] = []
        self.failures: list[tuple[str, str, str]] = []

    def pre_enqueue_observer(self, profile: str) -> Buckets:
        return Buckets([])

    def pre_enqueue_plugin_took(self, plugin: str, code: Code, seconds: float) -> None:
        self.pre_enqueue_plugins.append((plugin, code, seconds))

    def hint_took(self, plugin: str, event: str, answer: str, seconds: float) -> None:
        self.hints.append((plugin, event, answer, seconds))

    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None:
        self.unschedulable[plugin] += delta

    def gated(self, pod: PodInfo, plugin: str, status: Status) -> None:
        self.gates.append((pod.name, plugin, status.message))

    def hint_failed(self, plugin: str, event: str, error: BaseException) -> None:
        self.failures.append((plugin, event, str(error)))


def by_shape(plugin: str, pod: PodInfo) -> Hashable | None:
    """Signs the label ``shape``; a pod without it is not signed."""
    return pod.labels.get("shape")


def by_priority(queued: QueuedPodInfo) -> tuple[int, float]:
    return -queued.priority, queued.timestamp_seconds


@dataclass
class Rig:
    """A queue with its clock and recorder."""

    queue: SchedulingQueue
    clock: ManualClock
    recorder: Recorder = field(default_factory=Recorder)

    def run_until(self, seconds: float) -> None:
        """Advance time as the simulation does: from one deadline to the next."""
        while (due := self.queue.next_deadline_seconds()) is not None and due <= seconds:
            self.clock.advance_to(due)
            self.queue.run_timers()
        self.clock.advance_to(seconds)

    def pop(self) -> QueuedPodInfo:
        result = self.queue.pop()
        assert result is not None
        return result

    def try_and_fail(self, *rejected_by: str, pending: Sequence[str] = ()) -> QueuedPodInfo:
        """One attempt that fails at once, by an error if no plugin is named."""
        entry = self.pop()
        self.fail(entry, *rejected_by, pending=pending)
        return entry

    def fail(self, queued: QueuedPodInfo, *rejected_by: str, pending: Sequence[str] = ()) -> None:
        queued.unschedulable_plugins = frozenset(rejected_by)
        queued.pending_plugins = frozenset(pending)
        self.queue.add_unschedulable(queued)

    def state(self, pod: PodInfo) -> str:
        return self.queue.state_of(pod.uid).name


def rig(
    *,
    events: Events | None = None,
    gates: Sequence[PreEnqueuePlugin] = (),
    sign: Callable[[str, PodInfo], Hashable | None] = by_shape,
    at: float = 0.0,
    **settings: Any,
) -> Rig:
    clock, recorder = ManualClock(at), Recorder()
    profiles = {PROFILE: QueueProfile(gates, events or {}, sign)}
    chosen = QueueSettings(sort_key=by_priority, **settings)
    return Rig(SchedulingQueue(profiles, chosen, clock.now, recorder), clock, recorder)
