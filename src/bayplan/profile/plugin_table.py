"""The table of all plugins, and the score graph of a profile, for `bayplan plugins`.

Only an instance of a plugin can name its events. So one instance of each class is made with default
args, for a scheduler that does not run. If that fails, the row has the reason.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from bayplan.answers.document import Value
from bayplan.config.decoding import decode
from bayplan.config.loading import SchedulerConfig
from bayplan.config.upstream import UPSTREAM_PLUGINS
from bayplan.framework.events import default_events
from bayplan.framework.plugin import EnqueueExtensions, Plugin, PluginArgs, SignPlugin
from bayplan.framework.profile import extension_points_of
from bayplan.framework.score_sources import reads_of
from bayplan.plugins.registry import Registry
from bayplan.ports import raise_interruption
from bayplan.profile.dry_start import idle_handle
from bayplan.profile.effective_config import plain_args
from bayplan.profile.profiles import REJECTING, make_plugin
from bayplan.profile.resolved_config import Instance, ResolvedProfile, resolve

# ---- plugin table ---------------------------------------------------------------------------


class PluginRow(Value, frozen=True, kw_only=True):
    """A plugin, an instance of a plugin in a configuration, or a plugin that Bayplan lacks."""

    name: str
    #: "in tree", an entry point, a file; "" for a plugin that Bayplan lacks.
    origin: str = ""
    extension_points: tuple[str, ...] = ()
    #: Name in pluginConfig → plain value; None: the plugin takes no args or has no default args.
    args: dict[str, Any] | None = None
    #: Labels of the events for which pods wait that the plugin rejected.
    events: tuple[str, ...] = ()
    #: "row" or "cluster": see `Plugin.scope`.
    scope: str = ""
    is_signed: bool = False
    #: Profiles of the configuration that use the plugin.
    profiles: tuple[str, ...] = ()
    #: Why its events are missing.
    note: str = ""


def plugin_table(registry: Registry, config: SchedulerConfig | None = None) -> list[PluginRow]:
    """One row per plugin: first kube-scheduler's plugins in the order of its default profile.

    With ``config``, each row lists the profiles that use the plugin, and instances with a label
    follow their plugin. Raises ConfigError for a configuration that is refused.
    """
    used = _used(config, registry) if config is not None else []
    rows: list[PluginRow] = []
    for name in dict.fromkeys((*UPSTREAM_PLUGINS, *registry.names)):
        plugin = registry.find(name)
        if plugin is None:
            continue
        own = [(profile, instance) for profile, instance in used if instance.plugin is plugin]
        rows += _rows(plugin, own, registry)
    return rows


def _used(config: SchedulerConfig, registry: Registry) -> list[tuple[str, Instance]]:
    return [
        (profile.name, instance)
        for profile in resolve(config, registry).profiles
        for instance in profile.instances.values()
    ]


def _rows(
    plugin: type[Plugin], used: list[tuple[str, Instance]], registry: Registry
) -> Iterator[PluginRow]:
    """The rows of a plugin and of its instances with a label."""
    events, note = _events(plugin, registry)
    args = _default_args(plugin)
    row = PluginRow(
        name=plugin.name,
        origin=registry.origin(plugin.name),
        extension_points=tuple(extension_points_of(plugin)),
        args=plain_args(args) if args is not None else None,
        events=events,
        scope=plugin.scope,
        is_signed=issubclass(plugin, SignPlugin),
        note=note,
    )
    profiles = tuple(profile for profile, instance in used if instance.name == plugin.name)
    yield replace(row, profiles=profiles)
    for profile, instance in used:
        if instance.name != plugin.name:
            args = plain_args(instance.args) if instance.args is not None else None
            yield replace(row, name=instance.name, args=args, profiles=(profile,), note="")


def _default_args(plugin: type[Plugin]) -> PluginArgs | None:
    return decode({}, plugin.args_type, "")[0] if plugin.args_type is not None else None


def _events(plugin: type[Plugin], registry: Registry) -> tuple[tuple[str, ...], str]:
    """(labels of the events, why there are none)"""
    if not issubclass(plugin, REJECTING):
        return (), ""
    events = default_events(plugin.kinds)
    if issubclass(plugin, EnqueueExtensions):
        handle = idle_handle(registry, "", plugin.name, plugin)
        try:
            made = make_plugin(registry, plugin.name, None, handle, path="args")
            assert isinstance(made, EnqueueExtensions)
            events = made.events_to_register()
            made.close()
        except BaseException as error:  # noqa: BLE001 - the row reports any exception
            raise_interruption(error)
            return (), f"events depend on how it is configured: {error}"
    return tuple(dict.fromkeys(registered.event.label for registered in events)), ""


# ---- score edges ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScoreEdge:
    """One plugin reads the scores of another."""

    source: str
    reader: str
    #: Whether the reader needs the scores of all nodes, and not only of the feasible nodes.
    over_all: bool


@dataclass(frozen=True, slots=True)
class ProfileGraph:
    """The score graph of one profile. Instances are names."""

    profile: str
    #: (instance, weight) of each term of the total, in order.
    added: tuple[tuple[str, int], ...]
    tie_break: tuple[str, ...]
    #: Sources that do not count in the total.
    read_only: tuple[str, ...]
    edges: tuple[ScoreEdge, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all instances, each once."""
        added = (name for name, _ in self.added)
        return tuple(dict.fromkeys((*added, *self.tie_break, *self.read_only)))

    def sources_of(self, reader: str) -> list[str]:
        return [edge.source for edge in self.edges if edge.reader == reader]

    def role(self, name: str) -> str:
        """The use of an instance's scores: "weight 1, tie-break key 2" or "read only"."""
        weights = dict(self.added)
        roles = [f"weight {weights[name]}"] if name in weights else []
        if name in self.tie_break:
            roles.append(f"tie-break key {self.tie_break.index(name) + 1}")
        return ", ".join(roles) or "read only"


def profile_graphs(config: SchedulerConfig, registry: Registry) -> list[ProfileGraph]:
    """The score graph of each profile, in order. Raises ConfigError for a configuration that is
    refused."""
    return [_graph(profile) for profile in resolve(config, registry).profiles]


def _graph(profile: ResolvedProfile) -> ProfileGraph:
    added = tuple((entry.name, entry.weight) for entry in profile.lists["score"])
    keys = tuple(entry.name for entry in profile.lists["tieBreak"])
    scoring = dict.fromkeys((*(name for name, _ in added), *keys, *profile.sources))
    edges = tuple(edge for name in scoring for edge in _edges(profile, name))
    return ProfileGraph(profile.name, added, keys, profile.sources, edges)


def _edges(profile: ResolvedProfile, name: str) -> Iterator[ScoreEdge]:
    reads = reads_of(profile.instances[name].args)
    for source in reads.names:
        yield ScoreEdge(source, name, reads.over_all)
