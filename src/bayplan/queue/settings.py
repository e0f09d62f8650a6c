"""What the queue is told at start, and whom it tells what happens."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bayplan.framework.events import ClusterEventWithHint
from bayplan.framework.plugin import PreEnqueuePlugin
from bayplan.framework.queued_group import QueueGroup
from bayplan.framework.status import Code, Status
from bayplan.framework.types import QueuedPodInfo
from bayplan.state.pods import PodInfo

#: (plugin instance, pod) → the part of the pod its answers follow from; None: not signed.
SignPart = Callable[[str, PodInfo], Hashable | None]


@dataclass(frozen=True, slots=True)
class QueueProfile:
    """The plugins of one scheduler name, as far as the queue asks them."""

    #: In the order they are asked.
    pre_enqueue: Sequence[PreEnqueuePlugin]
    #: Plugin instance → what may help the pods it rejects. Every plugin that can reject is here;
    #: one that registers nothing stands with `default_events`.
    events: Mapping[str, Sequence[ClusterEventWithHint]]
    #: Pods of one part get one answer of the plugin's hints, but for events about themselves.
    sign: SignPart


def _alone(pod: PodInfo) -> None:
    """No pod waits for others."""


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Delays and order. Defaults are upstream's."""

    #: QueueSort's key: activeQ is in ascending order of it, then first come, first served.
    sort_key: Callable[[QueuedPodInfo], Any]
    #: The first delay; it doubles with every failed attempt. 0 < initial <= max.
    initial_backoff_seconds: float = 1.0
    #: 0: no delay at all.
    max_backoff_seconds: float = 10.0
    #: Gate SchedulerPopFromBackoffQ: an idle scheduler does not wait for a delay to end.
    pop_from_backoff_q: bool = True
    #: Longer than this no entry waits for an event.
    unschedulable_max_seconds: float = 300.0
    #: How often that is looked at.
    flush_period_seconds: float = 30.0
    #: The group with whose other members a pod waits; None: it is tried alone.
    queue_group: Callable[[PodInfo], QueueGroup | None] = _alone


class QueueRecorder(Protocol):
    """Told what metrics and journal keep."""

    def incoming(self, queue: str, event: str, pod_count: int, kind: str) -> None:
        """A pod entered a queue, or a group with so many: scheduler_queue_incoming_pods_total."""
        ...

    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None:
        """A pod rejected by a plugin entered (+1) or left (-1): scheduler_unschedulable_pods."""
        ...

    def gated(self, pod: PodInfo, plugin: str, status: Status) -> None:
        """A PreEnqueue plugin begins to hold a pod back, or does so with another message."""
        ...

    def pre_enqueue_took(self, profile: str, seconds: float) -> None:
        """A pod was asked about: scheduler_framework_extension_point_duration_seconds."""
        ...

    def pre_enqueue_plugin_took(self, plugin: str, code: Code, seconds: float) -> None:
        """One plugin was asked, in a sample: scheduler_plugin_execution_duration_seconds."""
        ...

    def hint_took(self, plugin: str, event: str, answer: str, seconds: float) -> None:
        """A hint was asked: scheduler_queueing_hint_execution_duration_seconds."""
        ...

    def hint_failed(self, plugin: str, event: str, error: BaseException) -> None:
        """A hint raised, or gave no answer; it counts as Queue."""
        ...
