"""What plugins' handles ask for, done by the engine: see profile.handle.Services.

It stands before the plugins do, so that they may use their handles from the beginning. What would
change something in the middle of a turn comes after it.
"""

from collections.abc import Iterable
from typing import Any, final

from bayplan.config.feature_gates import FeatureGates
from bayplan.engine.engine_state import EngineState
from bayplan.engine.waiting import PodWaitingOnPermit
from bayplan.framework.plugin import Plugin
from bayplan.framework.runtime import Framework
from bayplan.plugins.registry import Registry
from bayplan.ports import EmitEvent
from bayplan.profile.handle import PluginHandle, Write
from bayplan.profile.profiles import make_plugin
from bayplan.queue.nominator import Nominator
from bayplan.state.cluster_objects import KindObjects
from bayplan.state.device_table import Devices
from bayplan.state.pod_groups import PodGroups
from bayplan.state.pods import PodInfo
from bayplan.state.snapshot import Snapshot
from bayplan.state.volumes import Volumes


@final
class EngineServices:
    """profile.handle.Services over the engine's state."""

    def __init__(self, engine: EngineState, registry: Registry) -> None:
        self._engine = engine
        self._registry = registry
        self.metrics = engine.metrics
        #: In the order in which they are asked.
        self.extenders = tuple(engine.extenders)
        self.pods_in_pre_bind = engine.pods_in_pre_bind

    def handle_for(
        self, profile_name: str, instance_name: str, plugin: type[Plugin]
    ) -> PluginHandle:
        """The handle of one instance."""
        return PluginHandle(self, profile_name, instance_name, plugin.kinds)

    @property
    def seed(self) -> int:
        return self._engine.seed

    @property
    def gates(self) -> FeatureGates:
        return self._engine.gates

    @property
    def nominator(self) -> Nominator:
        return self._engine.nominator

    @property
    def lent_snapshot(self) -> Snapshot | None:
        return self._engine.lent

    @property
    def volumes(self) -> Volumes:
        return self._engine.volumes

    def now_seconds(self) -> float:
        return self._engine.clock.now()

    def epoch_seconds(self) -> float:
        return self._engine.clock.epoch_seconds()

    def framework(self, profile_name: str) -> Framework:
        return self._engine.frameworks[profile_name]

    @property
    def devices(self) -> Devices:
        return self._engine.devices

    def objects(self, kind: str) -> KindObjects:
        return self._engine.objects.of(kind)

    @property
    def pod_groups(self) -> PodGroups:
        return self._engine.pod_groups

    def perform(self, subject: str, write: Write, plugin: str) -> None:
        self._engine.perform(subject, write, plugin)

    def activate(self, pods: Iterable[PodInfo], at_seconds: float | None = None) -> None:
        engine, chosen = self._engine, list(pods)
        if at_seconds is not None:
            engine.activations.ask(chosen, at_seconds)
            engine.wake()
            return
        engine.executor.run("activate", lambda: engine.queue.activate(chosen))
        engine.wake()

    def waiting_pods(self) -> list[PodWaitingOnPermit]:
        return self._engine.waiting.all()

    def waiting_pod(self, uid: str) -> PodWaitingOnPermit | None:
        return self._engine.waiting.get(uid)

    def reject_waiting_pod(self, uid: str, plugin: str) -> bool:
        held = self._engine.waiting.get(uid)
        if held is not None:
            held.reject(plugin, "removed")
        return held is not None

    def make_plugin(self, name: str, args: Any, handle: PluginHandle) -> Plugin:
        path = f"{handle.instance_name}.make({name})"
        return make_plugin(self._registry, name, args, handle, path)

    def emit(self, pod: PodInfo, event: EmitEvent) -> None:
        engine = self._engine
        engine.emit_event(event)
        engine.note(pod.key, f"event {event.reason}: {event.note}")
        engine.wake()
