"""From a profile's plugin sets to one ordered list per extension point. Names only.

MultiPoint stands for every extension point a plugin implements; an extension point's own set
overrides it. Upstream: mergePluginSet in apis/config/v1/default_plugins.go and
expandMultiPointPlugins in framework/runtime/framework.go, v1.37.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from bayplan.config.behaviour import NEWEST_BEHAVIOUR, Behaviour
from bayplan.config.feature_gates import FeatureGates, default_gates
from bayplan.config.schema import PluginEntry, Plugins, PluginSet, Profile
from bayplan.config.upstream import (
    REMOVED_PLUGINS,
    UPSTREAM_PLUGINS,
    plugins_absent,
    points_absent,
)
from bayplan.config.validation import ALL_PLUGINS, LABEL_SEPARATOR
from bayplan.framework.profile import (
    EXTENSION_POINTS,
    extension_points_of,
    may_be_enabled_at,
)
from bayplan.framework.types import MAX_NODE_SCORE, MAX_TOTAL_SCORE
from bayplan.plugins.registry import Registry
from bayplan.problems import Problem, suggestion

#: The extension points whose plugins have weights.
WEIGHTED = ("score", "placementScore")

#: The extension point of groups that do not fit. Versions without it call these plugins, wherever
#: they are enabled. Upstream: NewFramework, v1.36.
GROUP_POINT = "podGroupPostFilter"

#: Extension point → entries in the order in which they run. Entries at `WEIGHTED` have weights.
PluginLists = Mapping[str, Sequence[PluginEntry]]


def plugin_name(instance_name: str) -> str:
    """The plugin's name in an instance name: "TopologyScorer/rack" → "TopologyScorer"."""
    return instance_name.partition(LABEL_SEPARATOR)[0]


def absence(name: str, registry: Registry) -> tuple[str, str]:
    """(problem, what to write instead) for a name that no plugin has."""
    plugin = plugin_name(name)
    if plugin in REMOVED_PLUGINS:
        return f'no plugin "{plugin}"', "kube-scheduler has removed it"
    meant = suggestion(plugin, registry.names)
    return f'no plugin "{plugin}"', meant or _WHERE_PLUGINS_COME_FROM


_WHERE_PLUGINS_COME_FROM = (
    "a plugin in a file is loaded by --plugin FILE.py; `bayplan plugins` lists those that are here"
)


# ---- checking ------------------------------------------------------------------------------


def set_problems(
    plugins: Plugins, registry: Registry, path: str, gates: FeatureGates | None = None
) -> Iterator[Problem]:
    """Problems of names without a plugin, of plugins at an extension point that they do not
    implement, and of repeated names. ``gates``: those of the version; None: the newest one's."""
    version = default_gates() if gates is None else gates
    for point, plugin_set in {"multiPoint": plugins.multi_point, **plugins.by_point()}.items():
        at = f"{path}.{point}.enabled"
        yield from _enabled_problems(plugin_set, point, registry, at, gates=version)
        for index, entry in enumerate(plugin_set.disabled):
            if not _may_be_disabled(entry.name, registry):
                at = f"{path}.{point}.disabled[{index}].name"
                yield Problem(at, *absence(entry.name, registry))


def argument_problems(
    profile: Profile, defaults: Iterable[PluginEntry], registry: Registry, path: str
) -> Iterator[Problem]:
    """Problems of plugins without arguments: kube-scheduler makes no default arguments for plugins
    that are enabled only at podGroupPostFilter. Upstream: pluginsNames in v1/defaults.go, v1.37."""
    plugins = profile.plugins
    configured = {config.name for config in profile.plugin_config}
    sets = [each for point, each in plugins.by_point().items() if point != GROUP_POINT]
    others = {entry.name for each in sets for entry in each.enabled}
    others |= {entry.name for entry in _merged(defaults, plugins.multi_point)}
    for index, entry in enumerate(plugins.pod_group_post_filter.enabled):
        plugin = registry.find(entry.name)
        if plugin is None or plugin.args_type is None or entry.name not in UPSTREAM_PLUGINS:
            continue
        if entry.name not in others | configured:
            at = f"{path}.plugins.{GROUP_POINT}.enabled[{index}].name"
            expected = "wanted it at another extension point too, or in pluginConfig"
            yield Problem(at, f"{entry.name} gets no default arguments here", expected)


def _may_be_disabled(name: str, registry: Registry) -> bool:
    """Whether a name may be in a list of disabled plugins: any plugin that Bayplan has, or that
    kube-scheduler has or had.

    Unlike kube-scheduler, Bayplan refuses other names: a misspelled name would leave a plugin
    enabled. `config.validation` reports empty names.
    """
    plugin = plugin_name(name)
    return (
        registry.find(plugin) is not None
        or plugin in ("", ALL_PLUGINS)
        or plugin in REMOVED_PLUGINS
        or plugin in UPSTREAM_PLUGINS
    )


def _enabled_problems(
    plugin_set: PluginSet, point: str, registry: Registry, path: str, *, gates: FeatureGates
) -> Iterator[Problem]:
    first: dict[str, int] = {}
    absent, points = plugins_absent(gates.version), points_absent(gates.behaviour)
    for index, entry in enumerate(plugin_set.enabled):
        at = f"{path}[{index}].name"
        plugin = registry.find(plugin_name(entry.name))
        if plugin is None:
            if plugin_name(entry.name) not in ("", ALL_PLUGINS):
                yield Problem(at, *absence(entry.name, registry))
        elif plugin.name in absent:
            expected = f"kube-scheduler {gates.version} does not have it yet"
            yield Problem(at, f'no plugin "{plugin.name}"', expected)
        elif point != "multiPoint" and (
            not may_be_enabled_at(point, plugin) or point in points.get(plugin.name, ())
        ):
            implemented = ", ".join(_points_of(entry.name, registry, gates.behaviour))
            yield Problem(at, f'"{entry.name}" has no {point}', f"it has {implemented}")
        elif first.setdefault(entry.name, index) != index:
            expected = f"enabled[{first[entry.name]}] is the same; wanted each once"
            yield Problem(at, f'"{entry.name}" again', expected)
        elif point == "tieBreak" and entry.weight:
            expected = "wanted none: tie-break keys are compared one after another"
            yield Problem(f"{path}[{index}].weight", str(entry.weight), expected)


# ---- expanding -----------------------------------------------------------------------------


def expand(
    plugins: Plugins,
    defaults: Iterable[PluginEntry],
    registry: Registry,
    behaviour: Behaviour = NEWEST_BEHAVIOUR,
) -> PluginLists:
    """The lists of a profile without problems; ``defaults``: plugins that exist."""
    own = plugins.by_point()
    multi_point = _merged(defaults, plugins.multi_point)
    points_of = {entry.name: _points_of(entry.name, registry, behaviour) for entry in multi_point}
    lists = {
        point: _ordered(own[point], [e for e in multi_point if point in points_of[e.name]])
        for point in EXTENSION_POINTS
    }
    if not behaviour.has_pod_group_post_filter:
        lists[GROUP_POINT] = [
            entry
            for entry in {each.name: each for point in lists.values() for each in point}.values()
            if GROUP_POINT in _points_of(entry.name, registry, behaviour)
        ]
    for point in WEIGHTED:
        lists[point] = [PluginEntry(name=e.name, weight=e.weight or 1) for e in lists[point]]
    return lists


def _points_of(name: str, registry: Registry, behaviour: Behaviour) -> list[str]:
    plugin = registry.find(plugin_name(name))
    assert plugin is not None, f"{name} was not checked"
    absent = points_absent(behaviour).get(plugin.name, ())
    return [point for point in extension_points_of(plugin) if point not in absent]


def _merged(defaults: Iterable[PluginEntry], plugin_set: PluginSet) -> tuple[PluginEntry, ...]:
    """The enabled plugins of MultiPoint: defaults first. An entry with the name of a default
    replaces the default at its place."""
    disabled = {entry.name for entry in plugin_set.disabled}
    named = {entry.name: entry for entry in plugin_set.enabled}
    remaining_defaults = [
        named.pop(entry.name, entry)
        for entry in defaults
        if ALL_PLUGINS not in disabled and entry.name not in disabled
    ]
    return (*remaining_defaults, *named.values())


def _ordered(own: PluginSet, multi_point: Sequence[PluginEntry]) -> list[PluginEntry]:
    """The plugins of one extension point: first the entries that override an entry of MultiPoint,
    then the other entries of MultiPoint, then the entries of this extension point only."""
    disabled = {entry.name for entry in own.disabled}
    if ALL_PLUGINS in disabled:
        return list(own.enabled)
    from_multi_point = [entry for entry in multi_point if entry.name not in disabled]
    expanded = {entry.name for entry in from_multi_point}
    named = {entry.name for entry in own.enabled}
    return [
        *(entry for entry in own.enabled if entry.name in expanded),
        *(entry for entry in from_multi_point if entry.name not in named),
        *(entry for entry in own.enabled if entry.name not in expanded),
    ]


# ---- what a profile needs ------------------------------------------------------------------


def list_problems(lists: PluginLists, path: str) -> Iterator[Problem]:
    """Problems of a profile without exactly one QueueSort plugin, without a Bind plugin, with
    several PlacementGenerate plugins, or with weights whose total score may exceed 63 bits."""
    sorts = [entry.name for entry in lists["queueSort"]]
    if len(sorts) != 1:
        value = f"{len(sorts)} queue sorts: {', '.join(sorts)}" if sorts else "no queue sort"
        yield Problem(f"{path}.queueSort", value, "wanted exactly one")
    if not lists["bind"]:
        yield Problem(f"{path}.bind", "no plugin that binds", "wanted one at least")
    generators = [entry.name for entry in lists["placementGenerate"]]
    if len(generators) > 1:
        value = f"{len(generators)} plugins: {', '.join(generators)}"
        yield Problem(f"{path}.placementGenerate", value, "wanted one at most")
    for point in WEIGHTED:
        total = sum(entry.weight for entry in lists[point])
        if total * MAX_NODE_SCORE > MAX_TOTAL_SCORE:
            expected = f"wanted {MAX_TOTAL_SCORE // MAX_NODE_SCORE} or less, so that scores add up"
            yield Problem(f"{path}.{point}", f"weights that come to {total}", expected)
