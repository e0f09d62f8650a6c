"""A case's configuration and cluster, made with the scheduler's own classes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from bayplan.config import ConfigError, config_from
from bayplan.config.feature_gates import FeatureGates
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.config.upstream import UPSTREAM_PLUGINS, default_plugins
from bayplan.framework.handle import Handle
from bayplan.framework.plugin import Plugin
from bayplan.framework.status import Code, Status
from bayplan.plugins.registry import Registry
from bayplan.profile.plugin_sets import plugin_name
from bayplan.profile.profiles import BuiltProfile, build_profiles
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.queue.settings import QueueProfile, QueueRecorder, QueueSettings
from bayplan.state.pods import PodInfo
from bayplan.testing.clusters import SampleCluster
from tests.parity.question import ProfileUnderTest
from tests.parity.tally import Sheet

Json = dict[str, Any]

#: The plugins that exist here.
REGISTRY = Registry()
#: All gates are at their defaults.
NO_GATES: Mapping[str, bool] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class World:
    """A cluster with the profiles of one configuration over it."""

    cluster: SampleCluster
    built: Mapping[str, BuiltProfile]
    profiles: Mapping[str, ProfileUnderTest]
    #: Plugins of the configuration that do not exist here.
    missing: frozenset[str]
    #: All plugins in order; empty if the configuration has its own order.
    order: Sequence[str]

    def queue(self, clock: Callable[[], float], recorder: QueueRecorder) -> SchedulingQueue:
        """A real queue with the settings of kube-scheduler's default configuration."""
        profiles = {
            name: QueueProfile(each.plugins.pre_enqueue, each.queued_events, each.signer.part)
            for name, each in self.built.items()
        }
        sort = next(iter(self.built.values())).plugins.queue_sort
        return SchedulingQueue(profiles, QueueSettings(sort.key), clock, recorder)


class Remarks:
    """A queue's recorder that stores the hints that failed."""

    def __init__(self) -> None:
        #: (plugin, label of the event)
        self.failed: set[tuple[str, str]] = set()

    def incoming(self, queue: str, event: str, pod_count: int, kind: str) -> None: ...
    def pre_enqueue_took(self, profile: str, seconds: float) -> None: ...

    def pre_enqueue_plugin_took(self, plugin: str, code: Code, seconds: float) -> None: ...

    def hint_took(self, plugin: str, event: str, answer: str, seconds: float) -> None: ...
    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None: ...
    def gated(self, pod: PodInfo, plugin: str, status: Status) -> None: ...
    def hint_failed(self, plugin: str, event: str, error: BaseException) -> None:
        self.failed.add((plugin, event))


def make_world(
    config: Json | None, kubernetes: KubernetesVersion, gates: Mapping[str, bool] = NO_GATES
) -> World:
    """An empty cluster under a configuration. ``gates``: those that are not at their defaults.
    Raises ConfigError."""
    cluster = SampleCluster(registry=REGISTRY, kubernetes=kubernetes, gates=gates)
    services = cluster.services

    def handle_for(profile: str, instance: str, plugin: type[Plugin]) -> Handle:
        return Handle(services, profile, instance, plugin.kinds)

    written = DEFAULT_CONFIG if config is None else _without_missing(config)
    flag = ",".join(f"{name}={str(value).lower()}" for name, value in gates.items())
    parsed = config_from(written, "", flag, kubernetes=kubernetes)
    built = {b.plugins.profile_name: b for b in build_profiles(parsed, REGISTRY, handle_for)}
    profiles = {name: ProfileUnderTest(each.plugins, cluster) for name, each in built.items()}
    cluster.frameworks.update({name: each.framework for name, each in profiles.items()})
    own_sets = any(profile.get("plugins") for profile in (config or {}).get("profiles") or ())
    order = () if own_sets else UPSTREAM_PLUGINS
    return World(cluster, built, profiles, missing_plugins(config, parsed.gates), order)


def missing_plugins(config: Json | None, gates: FeatureGates) -> frozenset[str]:
    """Plugins of kube-scheduler that the configuration enables and the registry lacks."""
    defaults = {entry.name for entry in default_plugins(gates)}
    enabled: set[str] = set()
    for profile in (config or {}).get("profiles") or [{}]:
        sets: Mapping[str, Json] = profile.get("plugins") or {}
        disabled = _names(sets.get("multiPoint") or {}, "disabled")
        enabled |= set() if "*" in disabled else defaults - disabled
        for entries in sets.values():
            enabled |= _names(entries or {}, "enabled")
    return frozenset(filter(is_missing, enabled))


def _names(entries: Json, which: str) -> set[str]:
    return {entry.get("name", "") for entry in entries.get(which) or ()}


def is_missing(name: str) -> bool:
    """Whether this is a plugin of kube-scheduler that the registry lacks."""
    return name in UPSTREAM_PLUGINS and REGISTRY.find(plugin_name(name)) is None


def _without_missing(config: Json) -> Json:
    """The configuration without the missing plugins that it enables by name, and their args."""

    def stripped(entries: Any) -> Any:
        if not isinstance(entries, dict) or not isinstance(entries.get("enabled"), list):
            return entries
        remaining = [e for e in entries["enabled"] if not is_missing(e.get("name", ""))]
        return {**entries, "enabled": remaining}

    profiles: list[Json] = []
    for profile in config.get("profiles") or ():
        sets, args = profile.get("plugins"), profile.get("pluginConfig")
        if isinstance(sets, dict):
            profile = {**profile, "plugins": {point: stripped(s) for point, s in sets.items()}}
        if isinstance(args, list):
            there = [one for one in args if not is_missing(one.get("name", ""))]
            profile = {**profile, "pluginConfig": there}
        profiles.append(profile)
    return {**config, "profiles": profiles} if profiles else config


def compare_config(case: Json, sheet: Sheet) -> World | None:
    """Compare whether the configuration is refused. Returns None if either side refuses it."""
    config: Json | None = case.get("config")
    answers: Json = case.get("answers") or {}
    #: A version whose kube-scheduler panicked accepted the configuration by mistake.
    text: str | None = answers.get("configError", answers.get("PANIC"))
    recorded = text is not None
    try:
        world = make_world(config, sheet.kubernetes, case.get("gates") or {})
    except ConfigError as error:
        sheet.compare("configError", recorded, True, str(error))
        return None
    shared = _missing_in_refusal(text or "", config, world.missing)
    if shared:
        sheet.pass_over("configError", shared)
    else:
        sheet.compare("configError", recorded, False)
    return None if recorded else world


def _missing_in_refusal(text: str, config: Json | None, missing: frozenset[str]) -> list[str]:
    """Missing plugins whose name or whose args upstream may have refused."""
    with_args = {
        entry.get("name", "")
        for profile in (config or {}).get("profiles") or ()
        for entry in profile.get("pluginConfig") or ()
        if "pluginConfig" in text
    }
    return sorted(plugin for plugin in missing if plugin in text or plugin in with_args)
