"""A pod's binding cycle: PreBind, Bind, PostBind, as one coroutine that the shell runs.

The engine puts the coroutine into a BindPod effect, and its outcome comes back as an event. The
coroutine changes nothing of the engine.

Consecutive PreBind plugins that allow it (`PreBindPlugin.allows_parallel_pre_bind`) run side by
side as a group. The first failure cancels the rest of its group. A preemption may cancel the
binding until PreBind ends: then the pod returns to the queue, and nothing is deleted. Upstream:
runtime/framework.go, RunPreBindPlugins; runtime/pods_in_prebind_map.go.
"""

from collections.abc import Awaitable, Callable, Iterable
from itertools import groupby
from typing import Final, TypeVar, final

from msgspec import Struct

from bayplan.engine.extenders.results import ExtenderBinding
from bayplan.framework.calls import Bind, Calls, NamedCalls
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Status, is_skip, is_success
from bayplan.framework.timing import code_in
from bayplan.framework.validation import as_error, checked, failure_of, rejection_or_error
from bayplan.ports import (
    ApiError,
    Ask,
    BindPort,
    ImmediateCluster,
    StartWork,
    Work,
)
from bayplan.state.pods import PodInfo

# ---- pre binding ----------------------------------------------------------------------------


#: The time between two checks for the end of a cancelled binding, in seconds.
POLL_SECONDS: Final = 0.01

#: (instance name, its PreBind) → its answer; does not raise.
Run = Callable[[str, Bind], Awaitable[Status | None]]


@final
class PodInPreBind:
    """Implements framework.handle.PodInPreBind."""

    def __init__(self) -> None:
        self._works: list[Work] = []
        #: Whether all plugins succeeded; whether PreBind ended, with success or not.
        self._is_finished = False
        self._has_ended = False
        #: The reason of the cancellation; "": not cancelled.
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
            # PreBind may not have started: a binding waits for a pending patch of its pod.
            await port.sleep(POLL_SECONDS)

    def end(self) -> None:
        """PreBind ended: no plugin runs any more."""
        self._has_ended = True

    def mark_prebound(self) -> bool:
        """PreBind ended: the binding cannot be cancelled any more. False: it is cancelled."""
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
    """The groups of plugins that run side by side, in order. Upstream: getPreBindPluginGroups.

    A plugin that does not allow it separates its neighbours, even if the plugin itself is skipped.
    """
    left = [(name, call) for name, call in calls.pre_bind if name not in skipped]
    for _, group in groupby(left, key=lambda named: calls.pre_bind_groups[named[0]]):
        yield list(group)


def _cancel(works: Iterable[Work]) -> None:
    for work in works:
        work.cancel()


# ---- binding --------------------------------------------------------------------------------


T = TypeVar("T")


class BindingOutcome(Struct, frozen=True):
    """How a binding cycle ended. ``status`` None: the pod is bound."""

    uid: str
    status: Status | None
    #: Failures of PostBind plugins. They do not change the outcome.
    remarks: tuple[Status, ...] = ()


class BindingCycle(Struct):
    """The binding cycle of one pod, as a callable that does not raise."""

    framework: Framework
    state: CycleState
    pod: PodInfo
    node_name: str
    #: The extenders that may bind the pod, before the Bind plugins.
    extender_binding: ExtenderBinding | None = None
    #: None: no PreBind plugin has work for the pod.
    in_pre_bind: PodInPreBind | None = None
    #: Whether the cycle is one request to the API server.
    is_one_request: bool = False

    async def __call__(self, port: BindPort, start: StartWork, ask: Ask) -> BindingOutcome:
        """``start``: starts work beside the cycle. ``ask``: sends a request to an extender."""
        uid = self.pod.uid
        status = await self._timed("PreBind", self._pre_bind(port, start))
        if status is None or is_success(status):
            status = await self._bound(port, ask)
        if status is not None and not is_success(status):
            return BindingOutcome(uid, status)
        return BindingOutcome(uid, None, await self._timed("PostBind", self._post_bind(port)))

    def run_now(self, cluster: ImmediateCluster) -> BindingOutcome | None:
        """Run a cycle that is one request. None: the server rejects it; then call the cycle, which
        reports the reason.
        """
        watches = self.framework.stopwatches
        bind = watches["Bind"]
        start = bind.now()
        try:
            cluster.bind_now(self.pod, self.node_name)
        except ApiError:
            return None
        # This does what `Stopwatch.idle` does, without further calls, because most bindings come
        # this way.
        watches["PreBind"].took[Code.SUCCESS](0.0)
        seconds = bind.now() - start
        bind.took[Code.SUCCESS](seconds)
        if self.state.record_plugin_metrics:
            self.framework.first_bind.took[Code.SUCCESS](seconds)
        watches["PostBind"].took[Code.SUCCESS](0.0)
        return BindingOutcome(self.pod.uid, None)

    def _calls(self) -> Calls:
        return self.framework.calls(self.state, self.pod)

    async def _timed(self, point: str, run: Awaitable[T]) -> T:
        watch = self.framework.stopwatches[point]
        start = watch.now()
        answer = await run
        watch.took[code_in(answer)](watch.now() - start)
        return answer

    async def _pre_bind(self, port: BindPort, start: StartWork) -> Status | None:
        """The first status that is no success. Plugins that skipped at preflight do not run."""
        if self.in_pre_bind is None:
            return None

        async def run(name: str, ask: Bind) -> Status | None:
            status = await self._evaluated(name, ask, "PreBind", port)
            if status is None or is_success(status):
                return None
            return _named(status, "PreBind", name, ask)

        skipped = self.state.skip_pre_bind_plugins
        return await self.in_pre_bind.run(self._calls(), skipped, run, start)

    async def _bound(self, port: BindPort, ask: Ask) -> Status | None:
        """Bind by an extender that binds this pod, else by plugins. Upstream: extendersBinding."""
        if self.extender_binding is not None:
            is_taken, status = await self.extender_binding.bind(self.pod, self.node_name, ask)
            if is_taken:
                return status
        return await self._timed("Bind", self._bind(port))

    async def _bind(self, port: BindPort) -> Status | None:
        """The status of the first Bind plugin that does not skip the pod."""
        for name, bind in self._calls().bind:
            status = await self._evaluated(name, bind, "Bind", port)
            if status is None or is_success(status):
                return None
            if not is_skip(status):
                return _named(status, "Bind", name, bind)
        reason = f"no bind plugin took pod {self.pod.key}: all of them skipped it"
        return Status(Code.ERROR, (reason,))

    async def _post_bind(self, port: BindPort) -> tuple[Status, ...]:
        """Run all PostBind plugins. Returns their failures."""
        remarks: list[Status] = []
        for name, ask in self._calls().post_bind:
            try:
                await ask(self.state, self.pod, self.node_name, port)
            except GeneratorExit:
                raise
            except BaseException as problem:  # noqa: BLE001
                remarks.append(failure_of(name, "PostBind", problem, ask))
        return tuple(remarks)

    async def _evaluated(self, name: str, ask: Bind, point: str, port: BindPort) -> Status | None:
        try:
            answer = await ask(self.state, self.pod, self.node_name, port)
            return None if answer is None else checked(answer)
        except GeneratorExit:
            raise
        except BaseException as problem:  # noqa: BLE001 - a plugin's failure is its pod's
            return failure_of(name, point, problem, ask)


def result_now(awaitable: Awaitable[T]) -> T | None:
    """The result of an awaitable that does not wait. None: it would wait, so it is ended."""

    async def run() -> T:
        return await awaitable

    coroutine = run()
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    coroutine.close()
    return None


def _named(status: Status, point: str, name: str, ask: Bind) -> Status:
    """A rejection keeps its reasons; anything else is an Error that names the plugin."""
    if status.plugin:
        return status
    further = (Code.SKIP,) if point == "Bind" else ()
    return rejection_or_error(status, point, name, ask, further=further)
