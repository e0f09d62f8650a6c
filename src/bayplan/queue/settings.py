"""The settings of the queue, and the recorder of its metrics."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from bayplan.framework.events import ClusterEventWithHint
from bayplan.framework.plugin import PreEnqueuePlugin
from bayplan.framework.status import Code, Status
from bayplan.framework.types import QueuedPodInfo
from bayplan.metrics import Buckets
from bayplan.queue.entry import QueueGroup
from bayplan.state.pods import PodInfo

#: (plugin instance, pod) → the part of the pod that decides the plugin's answers; None: unsigned.
SignPart = Callable[[str, PodInfo], Hashable | None]


class QueueProfile(Struct, frozen=True):
    """The plugins of one profile that the queue calls."""

    #: The PreEnqueue plugins, in the order of their calls.
    pre_enqueue: Sequence[PreEnqueuePlugin]
    #: Plugin instance → the events that may help the pods that it rejects. Each plugin that can
    #: reject a pod has an item. A plugin that registers no events has `default_events`.
    events: Mapping[str, Sequence[ClusterEventWithHint]]
    #: The signed part of a pod for a plugin. A hint has one answer for all pods with the same part,
    #: except for a pod's own events.
    sign: SignPart


def _alone(pod: PodInfo) -> None:
    """Return None: no pod belongs to a group."""


class QueueSettings(Struct, frozen=True):
    """The delays and the order of a queue. The defaults are upstream's."""

    #: The key of QueueSort. activeQ is in ascending order of this key, then of arrival.
    sort_key: Callable[[QueuedPodInfo], Any]
    #: The delay after the first failure. It doubles with each failure. 0 < initial <= max.
    initial_backoff_seconds: float = 1.0
    #: The longest delay; 0: there are no delays.
    max_backoff_seconds: float = 10.0
    #: Whether an idle scheduler pops entries before their delays end (gate
    #: SchedulerPopFromBackoffQ).
    pop_from_backoff_q: bool = True
    #: The time after which an unschedulable entry is tried again without an event.
    unschedulable_max_seconds: float = 300.0
    #: The time between two checks of `unschedulable_max_seconds`.
    flush_period_seconds: float = 30.0
    #: The group of a pod that names one. None: the pod is tried alone.
    queue_group: Callable[[PodInfo], QueueGroup | None] = _alone


class QueueRecorder(Protocol):
    """Receives the events of the queue that metrics and the journal record."""

    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None:
        """Count a pod that a plugin rejected and that came (+1) or left (-1):
        scheduler_unschedulable_pods."""
        ...

    def gated(self, pod: PodInfo, plugin: str, status: Status) -> None:
        """Record that a PreEnqueue plugin rejects a pod that it admitted before, or that it changes
        its message."""
        ...

    def pre_enqueue_observer(self, profile: str) -> Buckets:
        """The observer of the durations of PreEnqueue:
        scheduler_framework_extension_point_duration_seconds. It is fetched before the first
        observation."""
        ...

    def pre_enqueue_plugin_took(self, plugin: str, code: Code, seconds: float) -> None:
        """Record the duration of one plugin, in a sample:
        scheduler_plugin_execution_duration_seconds."""
        ...

    def hint_took(self, plugin: str, event: str, answer: str, seconds: float) -> None:
        """Record the duration of a hint: scheduler_queueing_hint_execution_duration_seconds."""
        ...

    def hint_failed(self, plugin: str, event: str, error: BaseException) -> None:
        """Record that a hint raised an exception or returned no answer. The queue treats this as
        Queue."""
        ...
