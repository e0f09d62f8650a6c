"""Evicting victims before the attempt that decided on it ends: gate SchedulerAsyncPreemption off.

All victims are told to go, side by side; then the pods that were nominated to the node with less
right to it lose their nomination. Where a victim could not be told, the attempt has failed to make
room and nobody loses a nomination. Upstream: framework/preemption/executor.go (v1.37),
prepareCandidate.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import final

from bayplan.framework.interface import Handle
from bayplan.framework.status import Code
from bayplan.plugins.default_preemption.telling import (
    GROUP_PREFIX,
    POD_GROUP,
    PREFIX,
    Preemptor,
    Telling,
    clear_nomination,
)
from bayplan.ports import BindPort
from bayplan.state.pods import PodInfo


@final
class AwaitedEviction:
    """framework.preemption.Evicting for one preemptor."""

    def __init__(
        self, handle: Handle, instance_name: str, preemptor: Preemptor, victims: Sequence[PodInfo]
    ) -> None:
        self._handle = handle
        self._preemptor = preemptor
        self._telling = Telling(handle, instance_name, preemptor)
        self._victims = victims
        self._began_seconds = handle.now_seconds
        #: Writes under way.
        self._left_count = 0
        self._problems: list[str] = []

    def start(self, ended: Callable[[str], None]) -> None:
        self._ended = ended
        writes = [(pod, self._telling.evict) for pod in self._victims]
        self._write(writes, self._evicted, self._problems)

    def _evicted(self) -> None:
        if self._problems:
            self._end()
            return
        # What fails here is noted, and no failure of the preemption.
        outranked = [(pod, _clear) for pod in self._telling.outranked()]
        self._write(outranked, self._end, [])

    def _end(self) -> None:
        result = "error" if self._problems else "success"
        seconds = self._handle.now_seconds - self._began_seconds
        duration = self._handle.metrics.preemption_execution_duration
        duration.observe(seconds, self._preemptor.kind, result)
        prefix = PREFIX
        if self._preemptor.kind == POD_GROUP:
            prefix = GROUP_PREFIX
            attempts = self._handle.metrics.workload_preemption_attempts
            attempts.add(Code.ERROR if self._problems else Code.SUCCESS)
        self._ended(f"{prefix}{self._problems[0]}" if self._problems else "")

    def _write(
        self,
        writes: Sequence[tuple[PodInfo, Callable[[BindPort, PodInfo], Awaitable[object]]]],
        then: Callable[[], None],
        problems: list[str],
    ) -> None:
        """All of these side by side; ``then``: called when the last one has ended."""
        self._left_count = len(writes)

        async def run(
            port: BindPort, pod: PodInfo, write: Callable[[BindPort, PodInfo], Awaitable[object]]
        ) -> None:
            try:
                await write(port, pod)
            except Exception as problem:
                problems.append(str(problem))
                raise
            finally:
                self._left_count -= 1
                if not self._left_count:
                    then()

        for pod, write in writes:
            self._handle.perform(pod.key, lambda port, pod=pod, write=write: run(port, pod, write))
        if not writes:
            then()


async def _clear(port: BindPort, pod: PodInfo) -> None:
    await clear_nomination(port, pod)
