"""The configuration with the registry applied: every plugin looked up, all args checked.

`resolve` reports all errors at once. Its result needs no further checks.

A score source must be a score plugin, and no plugin may read itself, directly or through other
plugins. A name with a label must be configured or enabled somewhere: otherwise a typing error in a
label would create an instance with default args.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import msgspec
from msgspec import Struct, field

from bayplan.config.decoding import decode
from bayplan.config.feature_gates import FeatureGates, default_gates
from bayplan.config.loading import SchedulerConfig
from bayplan.config.schema import API_VERSION, Profile, ignored_resources
from bayplan.config.upstream import UPSTREAM_PLUGINS, default_plugins
from bayplan.config.validation import LABEL_SEPARATOR
from bayplan.framework.plugin import Plugin, PluginArgs
from bayplan.framework.profile import EXTENSION_POINTS, extension_points_of
from bayplan.framework.score_sources import reads_of
from bayplan.plugins.node_resources_fit import NodeResourcesFitArgs
from bayplan.plugins.registry import Registry
from bayplan.problems import ConfigError, Problem, joined, shown, suggestion
from bayplan.profile import plugin_sets

# ---- instances ------------------------------------------------------------------------------


class Instance(Struct, frozen=True):
    """The description of one plugin instance of a profile; `build_profiles` makes the instance."""

    name: str
    plugin: type[Plugin]
    args: PluginArgs | None
    #: The path of its args in the configuration, even if there are none.
    args_path: str


def checked_args(
    plugin: type[Plugin], value: Any, gates: FeatureGates | None = None
) -> tuple[PluginArgs | None, list[Problem]]:
    """(args, their problems). Paths of problems are relative to the args. The args are None if the
    plugin takes none, or if a wrong field has no default. ``gates``: None: the default gates."""
    if plugin.args_type is None:
        unwanted = [name for name in value if name not in ("apiVersion", "kind")]
        expected = f"{plugin.name} takes no args"
        return None, [Problem(name, "unknown field", expected) for name in unwanted]
    if isinstance(value, PluginArgs):
        args, problems = value, _type_problems(plugin.args_type, value)
    else:
        args, problems = decode(value, plugin.args_type, "")
    if args is not None and not problems:
        problems += _kind_problems(plugin.name, args)
        version = default_gates() if gates is None else gates
        complaints = (*args.problems(), *args.problems_in_version(version))
        problems += [Problem(path, text) for path, text in complaints]
    return args, problems


def _type_problems(args_type: type[PluginArgs], value: PluginArgs) -> list[Problem]:
    if isinstance(value, args_type):
        return []
    return [Problem("", type(value).__name__, f"wanted {args_type.__name__}")]


def _kind_problems(name: str, args: PluginArgs) -> list[Problem]:
    """Problems of apiVersion and kind in the args of an upstream plugin. Other plugins may have any
    kind."""
    if name not in UPSTREAM_PLUGINS:
        return []
    pairs = {"apiVersion": (args.api_version, API_VERSION), "kind": (args.kind, f"{name}Args")}
    return [
        Problem(field, shown(value), f"wanted {expected}")
        for field, (value, expected) in pairs.items()
        if value and value != expected
    ]


# ---- resolved config ------------------------------------------------------------------------


class ResolvedProfile(Struct, frozen=True):
    """One profile with its plugins. Default plugins that Bayplan lacks are left out."""

    name: str
    percentage_of_nodes_to_score: int
    lists: plugin_sets.PluginLists
    #: Instance name → instance, in order of first appearance; instances that are only sources come
    #: last.
    instances: Mapping[str, Instance]
    #: Maximum size of the results cache in bytes; 0: no result is cached.
    reuse_bytes_max: int = 0
    #: Whether running pods with a deferred resize are scheduled.
    tries_resizes: bool = False
    #: Sources that do not count in the total.
    sources: tuple[str, ...] = ()
    #: Whether a plugin fails if it reads a part of a pod that it does not sign.
    strict_signatures: bool = False

    @property
    def queue_sort(self) -> Instance:
        return self.instances[self.lists["queueSort"][0].name]


class ResolvedConfig(Struct, frozen=True):
    """A configuration without errors."""

    config: SchedulerConfig
    profiles: tuple[ResolvedProfile, ...]


def resolve(config: SchedulerConfig, registry: Registry) -> ResolvedConfig:
    """The configuration with its plugins. Raises ConfigError with all its errors."""
    problems = list(config.problems)
    profiles: list[ResolvedProfile] = []
    for index, profile in enumerate(config.spec.profiles):
        resolved = _Resolver(config, registry, f"profiles[{index}]", problems).of(profile)
        if resolved is not None:
            profiles.append(resolved)
    if not problems:
        problems += _queue_problems(profiles)
    if problems:
        raise ConfigError(problems, config.source)
    return ResolvedConfig(config, tuple(profiles))


def _queue_problems(profiles: Sequence[ResolvedProfile]) -> list[Problem]:
    """Problems of profiles with different queue sorts: all profiles share one queue. Upstream:
    cfgValidator."""
    first = profiles[0].queue_sort
    problems: list[Problem] = []
    for index, profile in enumerate(profiles):
        sort = profile.queue_sort
        if (sort.name, sort.args) != (first.name, first.args):
            value = sort.name if sort.name != first.name else f"other args of {sort.name}"
            expected = f"all profiles share one queue: wanted {first.name} as in profiles[0]"
            problems.append(Problem(f"profiles[{index}].plugins.queueSort", value, expected))
    return problems


class _Resolver:
    """Resolves one profile: first its lists of plugins, then their args. Extends ``problems``."""

    def __init__(
        self, config: SchedulerConfig, registry: Registry, path: str, problems: list[Problem]
    ) -> None:
        self._config = config
        self._registry = registry
        self._path = path
        self._problems = problems

    def of(self, profile: Profile) -> ResolvedProfile | None:
        """The resolved profile; None if its plugin sets have a problem."""
        lists = self._lists(profile)
        configured = self._configured_instances(profile)
        if lists is None:
            return None
        percentage = profile.percentage_of_nodes_to_score
        if percentage is None:
            percentage = self._config.spec.percentage_of_nodes_to_score
        names = dict.fromkeys(entry.name for entries in lists.values() for entry in entries)
        instances = {name: configured.get(name) or self._unconfigured(name) for name in names}
        sources = self._sources(profile, lists, {**configured, **instances})
        # A version without the gate has no batching, but decides the same with cached results.
        has_batching = self._config.gates.values.get("OpportunisticBatching", True)
        reuses = profile.reuse and has_batching
        return ResolvedProfile(
            profile.scheduler_name or "",
            percentage,
            lists,
            {**instances, **{n: i for n, i in sources.items() if n not in instances}},
            reuse_bytes_max=self._config.spec.reuse.max_bytes if reuses else 0,
            tries_resizes=self._config.gate("InPlacePodVerticalScalingSchedulerPreemption"),
            sources=tuple(name for name in sources if name not in scoring(lists)),
            strict_signatures=profile.strict_signatures,
        )

    def _sources(
        self, profile: Profile, lists: plugin_sets.PluginLists, configured: Mapping[str, Instance]
    ) -> Mapping[str, Instance]:
        """The sources of the profile's score plugins. Reports instances that are not used."""
        finder = SourceFinder(self._registry, configured, self._unconfigured)
        sources = finder.sources_of(scoring(lists))
        enabled = {entry.name for entries in lists.values() for entry in entries}
        unused = [name for name in configured if name not in enabled and name not in sources]
        finder.look_for_cycles(unused)
        self._problems += finder.problems
        # With another problem, such as a misspelled name, an instance may only seem to be unused.
        if not any(problem.path.startswith(f"{self._path}.") for problem in self._problems):
            expected = "wanted it enabled, or named in another's scoreFrom"
            for index, config in enumerate(profile.plugin_config):
                if config.name in unused and _must_be_used(configured[config.name]):
                    at = f"{self._path}.pluginConfig[{index}].name"
                    text = f'"{config.name}" is neither enabled nor read'
                    self._problems.append(Problem(at, text, expected))
        return sources

    def _lists(self, profile: Profile) -> plugin_sets.PluginLists | None:
        path = f"{self._path}.plugins"
        gates = self._config.gates
        self._problems += plugin_sets.set_problems(profile.plugins, self._registry, path, gates)
        if any(problem.path.startswith(path) for problem in self._problems):
            return None
        defaults = [
            entry for entry in default_plugins(gates) if self._registry.find(entry.name) is not None
        ]
        lists = plugin_sets.expand(profile.plugins, defaults, self._registry, gates.behaviour)
        wrong = list(plugin_sets.list_problems(lists, path))
        wrong += plugin_sets.argument_problems(profile, defaults, self._registry, self._path)
        self._problems += wrong
        return None if wrong else lists

    def _configured_instances(self, profile: Profile) -> dict[str, Instance]:
        """Instances with args in pluginConfig."""
        instances: dict[str, Instance] = {}
        for index, config in enumerate(profile.plugin_config):
            path = f"{self._path}.pluginConfig[{index}]"
            plugin = self._registry.find(plugin_sets.plugin_name(config.name))
            if plugin is not None:
                instance = self._instance(config.name, plugin, config.args, f"{path}.args")
                instances.setdefault(config.name, instance)
            elif config.name:
                found_wanted = plugin_sets.absence(config.name, self._registry)
                self._problems.append(Problem(f"{path}.name", *found_wanted))
        return instances

    def _unconfigured(self, name: str) -> Instance:
        """An instance with default args."""
        plugin = self._registry.find(plugin_sets.plugin_name(name))
        assert plugin is not None, f"{name} was not checked"
        return self._instance(name, plugin, {}, f"{self._path}.pluginConfig[{name}].args")

    def _instance(self, name: str, plugin: type[Plugin], args: Any, path: str) -> Instance:
        checked, problems = checked_args(plugin, args, self._config.gates)
        self._problems += [problem.under(path) for problem in problems]
        ignored = ignored_resources(self._config.spec.extenders)
        if ignored and isinstance(checked, NodeResourcesFitArgs):
            # As upstream, this replaces the configured list: buildExtenders.
            checked = msgspec.structs.replace(checked, ignored_resources=ignored)
        return Instance(name, plugin, checked, path)


def _must_be_used(instance: Instance) -> bool:
    """Whether an unused instance is an error: an instance with a label, or a reader. As in
    kube-scheduler, args of other plugins may be unused."""
    return LABEL_SEPARATOR in instance.name or is_reader(instance)


# ---- score sources --------------------------------------------------------------------------


#: An instance that is configured nowhere, with default args.
Unconfigured = Callable[[str], Instance]


@final
class SourceFinder(Struct):
    """Finds the sources of one profile, and the problems of their names."""

    registry: Registry
    #: Name → instance, for instances that are enabled or have args in pluginConfig.
    configured: Mapping[str, Instance]
    unconfigured: Unconfigured
    problems: list[Problem] = field(default_factory=list[Problem])
    _sources_by_name: dict[str, Instance] = field(default_factory=dict[str, Instance])
    #: The instances of each cycle that was reported.
    _reported_cycles: set[frozenset[str]] = field(default_factory=set[frozenset[str]])

    def sources_of(self, readers: Sequence[str]) -> dict[str, Instance]:
        """All sources of these instances, direct and indirect. A source comes before its
        readers."""
        for name in readers:
            self._visit(self.configured[name], (name,))
        return self._sources_by_name

    def look_for_cycles(self, names: Sequence[str]) -> None:
        """Report cycles of these instances, which are not enabled. In a cycle each instance is
        read, so none would be reported as unused."""
        apart = SourceFinder(self.registry, self.configured, self.unconfigured, self.problems)
        apart.sources_of(names)

    def _visit(self, reader: Instance, path: tuple[str, ...]) -> None:
        for at, name in reads_of(reader.args).named:
            problem = self._problem(name, path)
            if problem is not None:
                self.problems.append(problem.under(joined(reader.args_path, at)))
            elif name not in path and name not in self._sources_by_name:
                source = self.configured.get(name) or self.unconfigured(name)
                self._visit(source, (*path, name))
                self._sources_by_name[name] = source

    def _problem(self, name: str, path: tuple[str, ...]) -> Problem | None:
        if name in path:
            return self._cycle((*path[path.index(name) :], name))
        plugin = self.registry.find(plugin_sets.plugin_name(name))
        if plugin is None:
            return Problem("", *plugin_sets.absence(name, self.registry))
        if not issubclass(plugin, EXTENSION_POINTS["score"]):
            implemented = ", ".join(extension_points_of(plugin))
            return Problem("", f'"{name}" is not a score plugin', f"it has {implemented}")
        if LABEL_SEPARATOR in name and name not in self.configured:
            labelled = [instance for instance in self.configured if LABEL_SEPARATOR in instance]
            meant = suggestion(name, labelled)
            return Problem("", f'no instance "{name}"', meant or "its args stand in pluginConfig")
        return None

    def _cycle(self, names: tuple[str, ...]) -> Problem | None:
        members = frozenset(names)
        if members in self._reported_cycles:
            return None
        self._reported_cycles.add(members)
        if len(members) == 1:
            return Problem("", f"{names[0]} reads itself", "wanted another's name")
        return Problem("", f"a cycle of scores, {' → '.join(names)}", "wanted one that ends")


def is_reader(instance: Instance) -> bool:
    """Whether the instance reads scores of other instances."""
    return bool(reads_of(instance.args).names)


def scoring(lists: plugin_sets.PluginLists) -> list[str]:
    """The instances at score and tieBreak, each once."""
    return list(dict.fromkeys(e.name for point in ("score", "tieBreak") for e in lists[point]))
