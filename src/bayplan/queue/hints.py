"""Queueing hints: the events that may help the rejected pods of one profile.

A change wakes a pod only if a plugin that rejected the pod registered for the event and its hint
does not return Skip. A hint that raises or returns another value counts as Queue: a faulty plugin
costs an attempt, and no pod waits forever. Upstream: isPodWorthRequeuing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, final

from msgspec import Struct

from bayplan.framework.events import (
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    QueueingHintFn,
    matching,
)
from bayplan.framework.types import QueuedPodInfo
from bayplan.framework.validation import WrongAnswer, described
from bayplan.queue.settings import QueueRecorder
from bayplan.state.pods import PodInfo


class Strategy(IntEnum):
    """What an event means for an entry. The greatest value of all plugins counts."""

    SKIP = 0
    AFTER_BACKOFF = 1
    #: The event helps a plugin that returned Pending, so the pod skips its backoff.
    IMMEDIATELY = 2


class Change(Struct, frozen=True):
    """An event and its object: ``old`` is None for an add, ``new`` is None for a delete."""

    event: ClusterEvent
    old: Any
    new: Any

    @property
    def subject_uid(self) -> str:
        """The uid of the pod of the event; "" for an event of another kind."""
        about = self.old if self.new is None else self.new
        return about.uid if isinstance(about, PodInfo) else ""


#: The label of a hint that failed, in place of its answer. Upstream: queueingHintToLabel.
HINT_ERROR: Final = "Error"


#: Plugin instance → its hints for one event; None: the plugin registered without a hint.
Interested = Mapping[str, Sequence[QueueingHintFn | None]]


@final
class Hints:
    """The registered events of one profile."""

    def __init__(
        self,
        events: Mapping[str, Sequence[ClusterEventWithHint]],
        recorder: QueueRecorder,
        clock: Callable[[], float],
    ) -> None:
        self._events: Final = events
        self._recorder = recorder
        self._clock = clock
        # There are few distinct events, each with a resource and an action.
        self._interested: dict[ClusterEvent, Interested] = {}

    def interested(self, event: ClusterEvent) -> Interested:
        """The plugins that registered for an event, with their hints."""
        interested = self._interested.get(event)
        if interested is None:
            interested = self._interested[event] = matching(self._events, event)
        return interested

    def helps(self, plugin: str, change: Change, pod: PodInfo) -> bool:
        """Whether a hint of the plugin returns Queue."""
        hints = self.interested(change.event).get(plugin, ())
        return any(self._is_queue(plugin, hint, change, pod) for hint in hints)

    def strategy(self, queued: QueuedPodInfo, change: Change) -> Strategy:
        """What the change means for one pod."""
        pending, unschedulable = queued.pending_plugins, queued.unschedulable_plugins
        if not pending and not unschedulable:
            return Strategy.AFTER_BACKOFF
        if change.event.is_wildcard:
            return _of_wildcard(queued.pod, change)
        # The pending plugins come first, because their strategy is the greatest one.
        for plugins, strategy in (
            (pending, Strategy.IMMEDIATELY),
            (unschedulable, Strategy.AFTER_BACKOFF),
        ):
            for plugin in self.interested(change.event):
                if plugin in plugins and self.helps(plugin, change, queued.pod):
                    return strategy
        return Strategy.SKIP

    def _is_queue(
        self, plugin: str, hint: QueueingHintFn | None, change: Change, pod: PodInfo
    ) -> bool:
        if hint is None:
            return True
        start, outcome = self._clock(), HINT_ERROR
        try:
            answer: Any = hint(pod, change.old, change.new)
            if not isinstance(answer, QueueingHint):
                raise WrongAnswer(described(answer), "a QueueingHint", hint)
            outcome = str(answer)
        except BaseException as problem:  # noqa: BLE001 - a plugin's failure costs one attempt
            self._recorder.hint_failed(plugin, change.event.label, problem)
            return True
        finally:
            took = self._clock() - start
            self._recorder.hint_took(plugin, change.event.label, outcome, took)
        return answer is QueueingHint.QUEUE


def strategy_of(
    hints: Mapping[str, Hints], pods: Iterable[QueuedPodInfo], changes: Iterable[Change]
) -> Strategy:
    """The greatest strategy of all changes and pods; ``hints`` by profile."""
    pods = tuple(pods)
    pends = any(queued.pending_plugins for queued in pods)
    most = Strategy.IMMEDIATELY if pends else Strategy.AFTER_BACKOFF
    best = Strategy.SKIP
    for change in changes:
        for queued in pods:
            best = max(best, hints[queued.pod.scheduler_name].strategy(queued, change))
        if best is most:
            break
    return best


def _of_wildcard(pod: PodInfo, change: Change) -> Strategy:
    """What a wildcard means: it helps every pod, or only the pod of the event."""
    if change.new is not None and change.subject_uid != pod.uid:
        return Strategy.SKIP
    return Strategy.AFTER_BACKOFF
