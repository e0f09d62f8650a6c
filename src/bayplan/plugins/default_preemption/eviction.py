"""Evicting victims, while the scheduler goes on: KEP-4832.

Nothing of it is done in the cycle that decided on it. The pods that were nominated to the node with
less right to it lose their nomination; then all victims but the last are told to go, side by side;
then the last one. Until that is done the pod that preempts is kept out of the queue: an earlier
attempt would look for victims once more. Upstream: framework/preemption/executor.go (v1.37),
prepareCandidateAsync.
"""

from collections.abc import Sequence
from typing import final

from bayplan.framework.interface import Handle
from bayplan.framework.preemption import Victims
from bayplan.plugins.default_preemption.awaited import AwaitedEviction
from bayplan.plugins.default_preemption.telling import Preemptor, Telling, clear_nomination
from bayplan.ports import ApiError, BindPort, OutcomeUnknownError
from bayplan.state.pods import PodInfo


@final
class Evictions:
    """Those under way."""

    def __init__(self, handle: Handle, instance_name: str) -> None:
        self._handle = handle
        self._instance_name = instance_name
        #: By the uids of the pods that room is made for.
        self._running: dict[str, _Eviction] = {}

    def is_running(self, uid: str) -> bool:
        """Whether room is still being made. Who is turned away for that is tried again when it
        is done."""
        found = self._running.get(uid)
        if found is None:
            return False
        found.was_awaited = True
        return True

    def start(self, preemptor: Preemptor, victims: Victims) -> None:
        """Begin to make room."""
        going = self._going(preemptor, victims)
        if not going:
            return
        eviction = _Eviction(self._handle, self._instance_name, preemptor, going)
        for pod in preemptor.pods:
            self._running[pod.uid] = eviction
        eviction.ended = lambda: self._end(preemptor)
        eviction.start()

    def awaited(self, preemptor: Preemptor, victims: Victims) -> AwaitedEviction:
        """Making room, to be begun by whoever waits for it."""
        going = self._going(preemptor, victims)
        return AwaitedEviction(self._handle, self._instance_name, preemptor, going)

    def _going(self, preemptor: Preemptor, victims: Victims) -> list[PodInfo]:
        """Those that are to be told."""
        if victims.pdb_violation_count:
            violations = self._handle.metrics.preemption_pdb_violations
            violations.add(preemptor.kind, count=victims.pdb_violation_count)
        return [pod for pod in victims.pods if not pod.is_terminating]

    def _end(self, preemptor: Preemptor) -> None:
        for pod in preemptor.pods:
            self._running.pop(pod.uid, None)


@final
class _Eviction:
    """Making room once."""

    def __init__(
        self,
        handle: Handle,
        instance_name: str,
        preemptor: Preemptor,
        victims: Sequence[PodInfo],
    ) -> None:
        self._handle = handle
        self._preemptor = preemptor
        self._telling = Telling(handle, instance_name, preemptor)
        self._last = victims[-1]
        #: Those before the last one that were not told to go yet.
        self._others = {pod.uid: pod for pod in victims[:-1]}
        self._began_seconds = handle.now_seconds
        self._has_failed = False
        #: Whether somebody was turned away because this was not done.
        self.was_awaited = False

    def ended(self) -> object:
        """Called when all is done, or given up."""

    def start(self) -> None:
        others = list(self._others.values())
        for pod in self._telling.outranked():
            self._handle.perform(pod.key, lambda port, pod=pod: clear_nomination(port, pod))
        for pod in others:
            self._handle.perform(pod.key, lambda port, pod=pod: self._evict_other(port, pod))
        if not others:
            self._handle.perform(self._last.key, self._evict_last)

    async def _evict_other(self, port: BindPort, victim: PodInfo) -> None:
        try:
            await self._telling.evict(port, victim)
        except (ApiError, OutcomeUnknownError):
            self._has_failed = True
            raise
        finally:
            del self._others[victim.uid]
            if not self._others:
                self._all_but_last_are_done()

    def _all_but_last_are_done(self) -> None:
        """Where one could not be told to go the last one stays: the pod is tried again sooner."""
        if self._has_failed:
            self._end(activate=True)
        else:
            self._handle.perform(self._last.key, self._evict_last)

    async def _evict_last(self, port: BindPort) -> None:
        activate = True
        try:
            activate = await self._telling.evict(port, self._last)
        except (ApiError, OutcomeUnknownError):
            self._has_failed = True
            raise
        finally:
            self._end(activate=activate)

    def _end(self, *, activate: bool) -> None:
        self.ended()
        result = "error" if self._has_failed else "success"
        metrics = self._handle.metrics
        metrics.preemption_goroutines_execution.add(result)
        seconds = self._handle.now_seconds - self._began_seconds
        metrics.preemption_goroutines_duration.observe(seconds, result)
        metrics.preemption_execution_duration.observe(seconds, self._preemptor.kind, result)
        if activate or self.was_awaited:
            self._handle.activate(self._preemptor.pods)
