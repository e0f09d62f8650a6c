"""Pods that arrive one after another in a cluster that answers at once, as in a simulation.

The theory. Such a cluster creates a pod only when the scheduler has nothing more to do. Between two
creations the same steps follow one another: the pod enters the queue, leaves it, gets its node, is
bound, is reported as bound, and its event is written. Or it gets no node, and its event and its
status are written. A shell that takes each of these steps in a turn of its own spends more on the
turns than on the steps. So the engine takes the steps itself, and asks a source for the next pod.

Why it stays true. The steps are those of the turns, in their order: changes, attempts, records,
versions and events come as they come in turns. After each step this file compares what a turn would
look at: work that waits, pods that are ready, due timers, and effects of another kind. If there is
any, the run ends there, and the shell goes on from that step in a turn.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import final

from bayplan.engine.attempts import Attempts
from bayplan.engine.binding import BindingCycle
from bayplan.engine.core import GroupController, SerialExecutor
from bayplan.engine.event_handlers import EventHandlers
from bayplan.engine.outbox import Outbox
from bayplan.engine.telemetry import StateLog
from bayplan.ports import (
    ApiError,
    BindPod,
    EmitEvent,
    ImmediateCluster,
    PatchPodStatus,
    PodSource,
)
from bayplan.queue.scheduling_queue import SchedulingQueue


@final
class Arrivals:
    """Places pods that come one after another."""

    def __init__(
        self,
        queue: SchedulingQueue,
        executor: SerialExecutor,
        outbox: Outbox,
        group_controller: GroupController,
        *,
        attempts: Attempts,
        events: EventHandlers,
        state_log: StateLog | None,
        timed: Iterable[object],
        has_due_timer: Callable[[], bool],
    ) -> None:
        """``timed``: all that has deadlines. While all of it is empty, no timer is due."""
        self._attempts = attempts
        self._events = events
        self._executor = executor
        self._group_controller = group_controller
        self._has_due_timer = has_due_timer
        self._outbox = outbox
        self._queue = queue
        self._state_log = state_log
        self._timed = timed
        #: Whether the present attempt has effects that are not performed.
        self._has_attempted = False

    def place(self, source: PodSource, cluster: ImmediateCluster) -> bool:
        """Place the pods of the source, until something else comes first.

        Returns whether the effects of an attempt are to be performed before anything else.
        """
        self._has_attempted = False
        if not (self._outbox.effects or self._group_controller.changes or any(self._queue.ready)):
            self._executor.run("arrivals", partial(self._place_all, source, cluster))
        return self._has_attempted

    def _place_all(self, source: PodSource, cluster: ImmediateCluster) -> None:
        # One loop, because each call in it is a call per pod.
        effects, executor, log, timed = (
            self._outbox.effects,
            self._executor,
            self._state_log,
            self._timed,
        )
        queue, observers, waiting_work = self._queue, executor.observers, executor.pending
        apply, groups = self._events.apply, self._group_controller
        # The two may be the same object. They are tested one by one, because `any` would be a call.
        active, popped_early = queue.ready[0], queue.ready[-1]
        start, finished = self._attempts.start, self._attempts.placements.binding_finished
        while (added := source.arrival()) is not None:
            if log is not None:
                log.handled(added)
            apply(added)
            if (observers or waiting_work) and executor.between():
                return
            if any(timed) and self._has_due_timer():
                return
            queued = queue.pop()
            if queued is None:
                return
            self._has_attempted = True
            start([queued])
            if (observers or waiting_work) and executor.between():
                return
            if effects and type(effects[0]) is EmitEvent:
                if self._report_failure(source, cluster):
                    continue
                return
            binding = effects[0] if len(effects) == 1 and not groups.changes else None
            if type(binding) is not BindPod or not isinstance(binding.run, BindingCycle):
                return
            outcome = binding.run.run_now(cluster) if binding.run.is_one_request else None
            if outcome is None:
                return
            effects.clear()
            self._has_attempted = False
            finished(outcome)
            if (observers or waiting_work) and executor.between():
                return
            # A ready pod is tried before the scheduler learns of the binding.
            bound = None if active or popped_early else source.change()
            if bound is None:
                return
            if log is not None:
                log.handled(bound)
            apply(bound)
            if (observers or waiting_work) and executor.between():
                return
            if active or popped_early or (any(timed) and self._has_due_timer()):
                return
            event = effects[0] if len(effects) == 1 and not groups.changes else None
            if type(event) is not EmitEvent:
                return
            effects.clear()
            try:  # noqa: SIM105 - `suppress` costs three calls per pod
                cluster.create_event_now(event)
            except ApiError:
                pass  # A lost event harms nothing.

    def _report_failure(self, source: PodSource, cluster: ImmediateCluster) -> bool:
        """Write what a failed attempt says about its pod, and hand over what the watch reports of
        it. False: something else comes first."""
        effects, ready = self._outbox.effects, self._queue.ready
        events = [each for each in effects if isinstance(each, EmitEvent)]
        patches = [each for each in effects if isinstance(each, PatchPodStatus)]
        is_report = len(events) + len(patches) == len(effects) and len(patches) <= 1
        if not is_report or self._group_controller.changes:
            return False
        reports = list(effects)
        effects.clear()
        self._has_attempted = False
        for each in reports:
            with suppress(ApiError):  # A lost event harms nothing.
                if isinstance(each, PatchPodStatus):
                    cluster.patch_pod_status_now(each)
                elif isinstance(each, EmitEvent):
                    cluster.create_event_now(each)
        if patches:
            # As in turns, a ready pod is tried before the scheduler learns of the patch.
            patched = None if any(ready) else source.change()
            if patched is None:
                return False
            if self._state_log is not None:
                self._state_log.handled(patched)
            self._events.apply(patched)
            if self._executor.between():
                return False
        if effects or self._group_controller.changes or any(ready):
            return False
        return not (any(self._timed) and self._has_due_timer())
