"""The table of all plugins, and the score graph of a profile, for `bayplan plugins`.

Only an instance can name its events. So one of each class is made with default args, for a
scheduler that does not run; if that fails, the row says why.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

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


NOT_HERE_YET = "not here yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginRow:
    """A plugin, an instance of it in a configuration, or one that is not here yet."""

    name: str
    #: "in tree", an entry point, a file; "" for a plugin that is not here yet.
    origin: str = ""
    extension_points: tuple[str, ...] = ()
    #: Plain values by their names in pluginConfig; None: it takes none, or they cannot be told.
    args: dict[str, Any] | None = None
    #: Labels of the events that pods it rejected wait for.
    events: tuple[str, ...] = ()
    #: "row" or "cluster": see `Plugin.scope`.
    scope: str = ""
    is_signed: bool = False
    #: Profiles of the configuration that have it.
    profiles: tuple[str, ...] = ()
    #: Why something is missing.
    note: str = ""


def plugin_table(registry: Registry, config: SchedulerConfig | None = None) -> list[PluginRow]:
    """A row per plugin: kube-scheduler's in the order of its default profile, then all others.

    With ``config``, rows tell the profiles that have them, and instances with a label follow their
    plugin. Raises ConfigError for a configuration that is refused.
    """
    used = _used(config, registry) if config is not None else []
    rows: list[PluginRow] = []
    for name in dict.fromkeys((*UPSTREAM_PLUGINS, *registry.names)):
        plugin = registry.find(name)
        if plugin is None:
            rows.append(PluginRow(name=name, note=NOT_HERE_YET))
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
    """The plugin's row and those of its labelled instances."""
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
    """(labels, why there are none)"""
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
        except BaseException as error:  # noqa: BLE001 - whatever a plugin raises, it is said in its row
            raise_interruption(error)
            return (), f"events depend on how it is configured: {error}"
    return tuple(dict.fromkeys(registered.event.label for registered in events)), ""


# ---- score edges ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScoreEdge:
    """One plugin reads another."""

    source: str
    reader: str
    #: Over all nodes, and not only the feasible ones.
    over_all: bool


@dataclass(frozen=True, slots=True)
class ProfileGraph:
    """One profile's scores. Instances by name."""

    profile: str
    #: (instance, weight) of those that are added up, in order.
    added: tuple[tuple[str, int], ...]
    tie_break: tuple[str, ...]
    #: Computed because others read them.
    read_only: tuple[str, ...]
    edges: tuple[ScoreEdge, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of all instances, each once."""
        added = (name for name, _ in self.added)
        return tuple(dict.fromkeys((*added, *self.tie_break, *self.read_only)))

    def sources_of(self, reader: str) -> list[str]:
        return [edge.source for edge in self.edges if edge.reader == reader]

    def role(self, name: str) -> str:
        """What becomes of an instance's scores, in words."""
        weights = dict(self.added)
        roles = [f"weight {weights[name]}"] if name in weights else []
        if name in self.tie_break:
            roles.append(f"tie-break key {self.tie_break.index(name) + 1}")
        return ", ".join(roles) or "read only"


def profile_graphs(config: SchedulerConfig, registry: Registry) -> list[ProfileGraph]:
    """One for each profile, in order. Raises ConfigError for a configuration that is refused."""
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
