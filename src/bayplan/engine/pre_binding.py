"""PreBind of one pod: its plugins in groups, and a binding that can be cancelled until they end.

Neighbours that allow it (`PreBindPlugin.allows_parallel_pre_bind`) form a group and run side by
side. The first that fails cancels the rest of its group. A preemption may cancel them all: then the
binding fails, the pod goes back to the queue, and nothing is deleted. Upstream:
runtime/framework.go, RunPreBindPlugins; runtime/pods_in_prebind_map.go.
"""

from collections.abc import Awaitable, Callable, Iterable
from itertools import groupby
from typing import Final, final

from bayplan.framework.answers import as_error
from bayplan.framework.calls import Bind, Calls, NamedCalls
from bayplan.framework.status import Code, Status, is_success
from bayplan.ports import BindPort, StartWork, Work

#: Between two looks at whether a binding that was cancelled has ended.
POLL_SECONDS: Final = 0.01

#: (instance name, its PreBind) → its answer; does not raise.
Run = Callable[[str, Bind], Awaitable[Status | None]]


@final
class PodInPreBind:
    """Implements framework.interface.PodInPreBind."""

    def __init__(self) -> None:
        self._works: list[Work] = []
        #: Whether all plugins have agreed; whether PreBind has ended in whatever way.
        self._is_finished = False
        self._has_ended = False
        #: Why the binding was cancelled; "" while it was not.
        self.cause = ""

    def cancel(self, message: str) -> bool:
        if self._is_finished:
            return False
        if not self.cause:
            self.cause = message
            for work in self._works:
                work.cancel()
        return True

    async def ended(self, port: BindPort) -> None:
        while not self._has_ended:
            # PreBind may not have begun: a binding waits for a patch of the pod that is under way.
            await port.sleep(POLL_SECONDS)

    def end(self) -> None:
        """No plugin runs any more, and none will."""
        self._has_ended = True

    def mark_prebound(self) -> bool:
        """PreBind has ended: from here on nothing cancels the binding. False: it is cancelled."""
        self._is_finished = not self.cause
        return self._is_finished

    async def run(
        self, calls: Calls, skipped: set[str], run: Run, start: StartWork
    ) -> Status | None:
        """Run all groups in order. Returns the first failure; None: the binding goes on."""
        try:
            for group in groups_of(calls, skipped):
                status = await self._run_group(group, run, start)
                if status is not None:
                    return status
        finally:
            self.end()
        return None if self.mark_prebound() else Status(Code.ERROR, (self.cause,))

    async def _run_group(
        self, group: NamedCalls[Bind], run: Run, start: StartWork
    ) -> Status | None:
        first_failure: Status | None = None
        unfinished = [name for name, _ in group]

        async def run_one(name: str, call: Bind) -> None:
            nonlocal first_failure
            status = await run(name, call)
            unfinished.remove(name)
            if first_failure is None and not is_success(status):
                first_failure = status
                for neighbour, work in works.items():
                    if neighbour != name:
                        work.cancel()

        works = {name: start(run_one(name, call)) for name, call in group}
        self._works = list(works.values())
        if self.cause:
            _cancel(self._works)
        try:
            for work in self._works:
                await work.wait()
        finally:
            _cancel(self._works)
        if first_failure is None and unfinished:
            assert self.cause, f"PreBind of {unfinished} ended without an answer"
            return as_error(Status(Code.ERROR, (self.cause,)), "PreBind", unfinished[0])
        return first_failure


def groups_of(calls: Calls, skipped: set[str]) -> Iterable[NamedCalls[Bind]]:
    """What runs side by side, group after group. Upstream: getPreBindPluginGroups.

    A plugin that does not allow it separates its neighbours, even where it is skipped itself.
    """
    left = [(name, call) for name, call in calls.pre_bind if name not in skipped]
    for _, group in groupby(left, key=lambda named: calls.pre_bind_groups[named[0]]):
        yield list(group)


def _cancel(works: Iterable[Work]) -> None:
    for work in works:
        work.cancel()
