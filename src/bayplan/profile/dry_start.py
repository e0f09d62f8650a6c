"""A dry start: plugins are started for a scheduler that never schedules, to check and list them.

A plugin that fails here also fails in a real start: in both cases no snapshot is lent and no object
exists yet.
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from bayplan.clock import ManualClock
from bayplan.config.cluster_version import in_other_versions
from bayplan.config.feature_gates import FeatureGates, default_gates
from bayplan.config.loading import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.framework.calls import fields_of, with_parts
from bayplan.framework.cluster_rules import device_rules, group_rules
from bayplan.framework.handle import Handle, HandleServices
from bayplan.framework.plugin import Plugin
from bayplan.metrics import SchedulerMetrics
from bayplan.plugins.registry import Registry
from bayplan.problems import ConfigError
from bayplan.profile.filter_runner import ProfileFilters
from bayplan.profile.profiles import BuiltProfile, build_profiles, event_kinds, make_plugin
from bayplan.queue.nominator import Nominator
from bayplan.state.cache import ClusterView


def dry_start(config: SchedulerConfig, registry: Registry) -> None:
    """Start and close every plugin of a configuration. Raises ConfigError as a real start does."""
    kinds_to_follow(config, registry)


def dry_start_of_server(config: SchedulerConfig, registry: Registry) -> SchedulerConfig:
    """A dry start before the API server has said its version: the configuration in the newest
    version that accepts it. Raises ConfigError as its own version does if none accepts it."""
    try:
        dry_start(config, registry)
    except ConfigError:
        for other in in_other_versions(config):
            with suppress(ConfigError):
                dry_start(other, registry)
                return other
        raise
    return config


def kinds_to_follow(config: SchedulerConfig, registry: Registry) -> list[str]:
    """The kinds that plugins look up, or that plugins or extenders wait for; sorted.

    Kinds of pod groups are included only if a plugin looks them up. Starts and closes every plugin.
    Raises ConfigError as a real start does.
    """
    profiles, plugins = _started(config, registry)
    listed = {kind for plugin in with_parts(plugins) for kind in plugin.kinds}
    waited_for = event_kinds(
        profiles, bool(config.spec.extenders or registry.extenders)
    ) - frozenset(group_kinds(config.spec.pod_groups.kinds))
    return sorted(listed | waited_for)


def declared_fields(
    configs: Iterable[SchedulerConfig], registry: Registry
) -> dict[str, tuple[str, ...]]:
    """Kind → further field paths that plugins of the configurations read, as
    `Scheduler.declared_fields`. Raises as `kinds_to_follow`."""
    return fields_of(plugin for each in configs for plugin in _started(each, registry)[1])


def _started(
    config: SchedulerConfig, registry: Registry
) -> tuple[list[BuiltProfile], list[Plugin]]:
    """The profiles, and their plugins, which were started and closed."""
    services = _idle_services(registry, config.gates)

    def handle_for(profile_name: str, instance_name: str, plugin: type[Plugin]) -> Handle:
        return Handle(services, profile_name, instance_name, plugin.kinds)

    profiles = build_profiles(config, registry, handle_for)
    plugins = [plugin for profile in profiles for plugin in profile.plugins.instances()]
    for plugin in plugins:
        plugin.close()
    return profiles, plugins


def idle_handle(
    registry: Registry, profile_name: str, instance_name: str, plugin: type[Plugin]
) -> Handle:
    """A handle of a scheduler that does nothing, under the default gates."""
    services = _idle_services(registry, default_gates())
    return Handle(services, profile_name, instance_name, plugin.kinds)


def _idle_services(registry: Registry, gates: FeatureGates) -> HandleServices:
    """Those of a scheduler that never schedules a pod."""
    cluster = ClusterView(
        lambda _: False, device_rules=device_rules(gates), group_rules=group_rules(gates)
    )
    return HandleServices(
        seed=0,
        gates=gates,
        clock=ManualClock(),
        metrics=SchedulerMetrics(),
        cluster=cluster,
        devices=cluster.devices,
        nominator=Nominator(),
        extenders=(),
        waiting={},
        pods_in_pre_bind={},
        filter_runner=partial(ProfileFilters, cluster, {}),
        make_plugin=partial(make_plugin, registry, path="args"),
        activate=_do_nothing,
        emit=_do_nothing,
        perform=_do_nothing,
    )


def _do_nothing(*_: object) -> None: ...
