"""The kinds of objects that the plugins of a configuration use.

Plugins that need a kind which an API server does not have are disabled: an older server lacks an
API group, or an administrator disabled one. The scheduler continues with the other plugins and
names the disabled ones.
"""

from collections.abc import Callable
from dataclasses import dataclass

from msgspec import structs

from bayplan.config import SchedulerConfig
from bayplan.config.schema import PluginEntry, Plugins, PluginSet, Profile
from bayplan.framework.plugin import Plugin
from bayplan.plugins.registry import Registry
from bayplan.profile.dry_start import kinds_to_follow
from bayplan.profile.plugin_sets import plugin_name
from bayplan.profile.resolved_config import ResolvedConfig, resolve


@dataclass(frozen=True, slots=True)
class AbsentKind:
    """A plugin that needs kinds which the API server does not offer."""

    plugin: str
    kinds: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.plugin} is switched off: the API server does not offer {_listed(self.kinds)}"


def kinds_in_use(config: SchedulerConfig, registry: Registry) -> list[str]:
    """Kinds that the configured plugins look up or wait for, sorted. Raises ConfigError."""
    plugins = _plugins(resolve(config, registry))
    looked_up = {kind for plugin in plugins for kind in plugin.kinds}
    return sorted(looked_up.union(kinds_to_follow(config, registry)))


def without_absent(
    config: SchedulerConfig, registry: Registry, is_offered: Callable[[str], bool]
) -> tuple[SchedulerConfig, list[AbsentKind]]:
    """The configuration without plugins that cannot work, and the kinds that these lack.

    Raises ConfigError.
    """
    needed = _plugins(resolve(config, registry))
    missing = {
        plugin.name: tuple(kind for kind in _needed(plugin) if not is_offered(kind))
        for plugin in sorted(needed, key=lambda plugin: plugin.name)
    }
    absent = [AbsentKind(name, kinds) for name, kinds in missing.items() if kinds]
    if not absent:
        return config, []
    names = frozenset(each.plugin for each in absent)
    profiles = tuple(_profile(profile, names) for profile in config.spec.profiles)
    return structs.replace(config, spec=structs.replace(config.spec, profiles=profiles)), absent


def _plugins(resolved: ResolvedConfig) -> set[type[Plugin]]:
    """The configured plugins."""
    return {
        instance.plugin for profile in resolved.profiles for instance in profile.instances.values()
    }


def _needed(plugin: type[Plugin]) -> list[str]:
    return [kind for kind in plugin.kinds if kind not in plugin.optional_kinds]


def _profile(profile: Profile, names: frozenset[str]) -> Profile:
    plugins = profile.plugins
    parts = {part: _set(getattr(plugins, part), names) for part in Plugins.__struct_fields__}
    return structs.replace(profile, plugins=structs.replace(plugins, **parts))


def _set(plugins: PluginSet, names: frozenset[str]) -> PluginSet:
    """A plugin set without these plugins, which may be enabled in it or by default."""
    enabled = tuple(e for e in plugins.enabled if plugin_name(e.name) not in names)
    disabled = {entry.name for entry in plugins.disabled}
    more = tuple(PluginEntry(name=name) for name in sorted(names - disabled))
    return PluginSet(enabled=enabled, disabled=(*plugins.disabled, *more))


def _listed(kinds: tuple[str, ...]) -> str:
    return ", ".join(f"{kind.rpartition(' ')[2]} of {kind.partition(' ')[0]}" for kind in kinds)
