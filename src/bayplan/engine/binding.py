"""A pod's binding cycle: PreBind, Bind, PostBind, as one coroutine the shell runs.

The engine hands it out inside a BindPod effect and takes back how it ended. It touches nothing of
the engine: whatever follows from its outcome is decided when the outcome comes back as an event.
"""

from dataclasses import dataclass
from typing import final

from bayplan.framework.interface import CycleState
from bayplan.framework.profile import ProfilePlugins
from bayplan.framework.runtime import failure_of
from bayplan.framework.status import Code, Status, is_rejected, is_success
from bayplan.ports import BindPort
from bayplan.state.pods import PodInfo


@dataclass(frozen=True, slots=True)
class BindingOutcome:
    """How a binding cycle ended. ``status`` None: the pod is bound."""

    uid: str
    status: Status | None
    #: Failures of PostBind plugins, which change nothing.
    remarks: tuple[Status, ...] = ()


@final
class BindingCycle:
    """Callable with a port; does not raise."""

    def __init__(
        self, plugins: ProfilePlugins, state: CycleState, pod: PodInfo, node_name: str
    ) -> None:
        self._plugins = plugins
        self._state = state
        self._pod = pod
        self._node_name = node_name

    async def __call__(self, port: BindPort) -> BindingOutcome:
        status = await self._pre_bind(port)
        if status is None:
            status = await self._bind(port)
        if status is not None:
            return BindingOutcome(self._pod.uid, status)
        return BindingOutcome(self._pod.uid, None, tuple(await self._post_bind(port)))

    async def _pre_bind(self, port: BindPort) -> Status | None:
        for plugin in self._plugins.pre_bind:
            if plugin.instance_name in self._state.skip_pre_bind_plugins:
                continue
            try:
                status = await plugin.pre_bind(self._state, self._pod, self._node_name, port)
            except Exception as problem:  # noqa: BLE001 - a plugin's failure is its pod's
                return failure_of(plugin, "PreBind", problem)
            if not is_success(status):
                assert status is not None
                return _named(status, "PreBind", plugin.instance_name)
        return None

    async def _bind(self, port: BindPort) -> Status | None:
        for plugin in self._plugins.bind:
            try:
                status = await plugin.bind(self._state, self._pod, self._node_name, port)
            except Exception as problem:  # noqa: BLE001
                return failure_of(plugin, "Bind", problem)
            if status is not None and status.code is Code.SKIP:
                continue
            if is_success(status):
                return None
            assert status is not None
            return _named(status, "Bind", plugin.instance_name)
        reason = f"no bind plugin took pod {self._pod.key}: all of them skipped it"
        return Status(Code.ERROR, (reason,))

    async def _post_bind(self, port: BindPort) -> list[Status]:
        remarks: list[Status] = []
        for plugin in self._plugins.post_bind:
            try:
                await plugin.post_bind(self._state, self._pod, self._node_name, port)
            except Exception as problem:  # noqa: BLE001
                remarks.append(failure_of(plugin, "PostBind", problem))
        return remarks


def _named(status: Status, point: str, name: str) -> Status:
    """A rejection keeps its reasons; anything else is an Error that names the plugin."""
    if is_rejected(status):
        return status.with_plugin(name)
    message = status.message or f"answered {status.code}, which it may not"
    return Status(Code.ERROR, (f'running {point} plugin "{name}": {message}',), name)
