"""Plugins started for a scheduler that never schedules: to check them, and to ask what they are.

What fails here fails in a real start too: there, no snapshot is lent and no object is known yet,
either.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, NoReturn, final

from bayplan.config.feature_gates import FeatureGates, default_gates
from bayplan.config.loading import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.framework.composition import with_parts
from bayplan.framework.handle import PodInPreBind
from bayplan.framework.plugin import Plugin
from bayplan.metrics import SchedulerMetrics
from bayplan.plugins.registry import Registry
from bayplan.ports import EmitEvent
from bayplan.profile.handle import PluginHandle, Write
from bayplan.profile.profiles import build_profiles, event_kinds, make_plugin
from bayplan.queue.nominator import Nominator
from bayplan.state.cluster_objects import ClusterObjects, KindObjects
from bayplan.state.device_table import Devices
from bayplan.state.node_table import NodeTable
from bayplan.state.pod_groups import PodGroups
from bayplan.state.pods import PodInfo
from bayplan.state.volumes import Volumes


def dry_start(config: SchedulerConfig, registry: Registry) -> None:
    """Start every plugin of a configuration, and close it. Raises ConfigError as a start would."""
    kinds_to_follow(config, registry)


def kinds_to_follow(config: SchedulerConfig, registry: Registry) -> list[str]:
    """Kinds that the configured plugins look up or wait for, and extenders wait for; sorted.

    Groups of pods only where a plugin looks them up. Starts every plugin, and closes it. Raises
    ConfigError as a start would.
    """
    handle_for = partial(idle_handle, registry, gates=config.gates)
    profiles = build_profiles(config, registry, handle_for)
    plugins = [plugin for profile in profiles for plugin in profile.plugins.instances()]
    listed = {kind for plugin in with_parts(plugins) for kind in plugin.kinds}
    waited_for = event_kinds(
        profiles, bool(config.spec.extenders or registry.extenders)
    ) - frozenset(group_kinds(config.spec.pod_groups.kinds))
    for plugin in plugins:
        plugin.close()
    return sorted(listed | waited_for)


def idle_handle(
    registry: Registry,
    profile_name: str,
    instance_name: str,
    plugin: type[Plugin],
    *,
    gates: FeatureGates | None = None,
) -> PluginHandle:
    """A handle whose scheduler does nothing. ``gates``: None: as they are by default."""
    scheduler = _IdleScheduler(registry, gates or default_gates())
    return PluginHandle(scheduler, profile_name, instance_name, plugin.kinds)


@final
class _IdleScheduler:
    """profile.handle.Services of a scheduler that never schedules anything."""

    seed = 0
    lent_snapshot = None
    extenders = ()

    def __init__(self, registry: Registry, gates: FeatureGates) -> None:
        self._registry = registry
        self.gates = gates
        self.nominator = Nominator()
        self.pod_groups = PodGroups(lambda _: False)
        self.volumes = Volumes(NodeTable(), ClusterObjects())
        self.devices = Devices(NodeTable(), ClusterObjects())
        self.metrics = SchedulerMetrics()
        self.pods_in_pre_bind: dict[str, PodInPreBind] = {}

    def now_seconds(self) -> float:
        return 0.0

    def epoch_seconds(self) -> float:
        return 0.0

    def framework(self, profile_name: str) -> NoReturn:
        raise RuntimeError("no profile is running")

    def objects(self, kind: str) -> KindObjects:
        return KindObjects()

    def perform(self, subject: str, write: Write, plugin: str) -> None: ...

    def activate(self, pods: Iterable[PodInfo], at_seconds: float | None) -> None: ...

    def waiting_pods(self) -> list[Any]:
        return []

    def waiting_pod(self, uid: str) -> None: ...

    def reject_waiting_pod(self, uid: str, plugin: str) -> bool:
        return False

    def make_plugin(self, name: str, args: Any, handle: PluginHandle) -> Plugin:
        return make_plugin(self._registry, name, args, handle, "args")

    def emit(self, pod: PodInfo, event: EmitEvent) -> None: ...
