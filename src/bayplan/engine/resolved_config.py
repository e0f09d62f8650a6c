"""A configuration and the plugins there are, put together: every name found, all args checked.

`resolve` says everything that is wrong, at once; what it returns needs no further checks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bayplan.config.decoding import decode
from bayplan.config.loading import SchedulerConfig
from bayplan.config.problems import ConfigError
from bayplan.config.schema import API_VERSION, Profile
from bayplan.config.upstream import UPSTREAM_PLUGINS, default_plugins
from bayplan.engine.plugin_sets import (
    PluginLists,
    absence,
    expand,
    is_awaited,
    list_problems,
    plugin_name,
    set_problems,
)
from bayplan.framework.interface import Plugin, PluginArgs
from bayplan.plugins.registry import Registry
from bayplan.problems import Problem, shown


@dataclass(frozen=True, slots=True)
class Instance:
    """One plugin instance of a profile, to be made."""

    name: str
    plugin: type[Plugin]
    args: PluginArgs | None
    #: Where its args stand, or would stand.
    args_path: str


@dataclass(frozen=True, slots=True)
class ResolvedProfile:
    """One profile, with what is in the defaults and not here left out."""

    name: str
    percentage_of_nodes_to_score: int
    lists: PluginLists
    #: By instance name, in order of first appearance.
    instances: Mapping[str, Instance]
    #: Bytes that answers may be kept in for reuse; 0: none are.
    reuse_bytes_max: int = 0

    @property
    def queue_sort(self) -> Instance:
        return self.instances[self.lists["queueSort"][0].name]


@dataclass(frozen=True, slots=True)
class ResolvedConfig:
    """A configuration that nothing is wrong with."""

    config: SchedulerConfig
    profiles: tuple[ResolvedProfile, ...]


def resolve(config: SchedulerConfig, registry: Registry) -> ResolvedConfig:
    """The configuration with its plugins. Raises ConfigError with all that is wrong with it."""
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
    """There is one queue, so it is sorted in one way. Upstream: cfgValidator."""
    first = profiles[0].queue_sort
    problems: list[Problem] = []
    for index, profile in enumerate(profiles):
        sort = profile.queue_sort
        if (sort.name, sort.args) != (first.name, first.args):
            found = sort.name if sort.name != first.name else f"other args of {sort.name}"
            wanted = f"all profiles share one queue: wanted {first.name} as in profiles[0]"
            problems.append(Problem(f"profiles[{index}].plugins.queueSort", found, wanted))
    return problems


class _Resolver:
    """One profile: first its lists, then its args; adds to the problems known already."""

    def __init__(
        self, config: SchedulerConfig, registry: Registry, path: str, problems: list[Problem]
    ) -> None:
        self._config = config
        self._registry = registry
        self._path = path
        self._problems = problems

    def of(self, profile: Profile) -> ResolvedProfile | None:
        """None: there is a problem with the profile's plugin sets."""
        lists = self._lists(profile)
        given = self._given(profile)
        if lists is None:
            return None
        percentage = profile.percentage_of_nodes_to_score
        if percentage is None:
            percentage = self._config.spec.percentage_of_nodes_to_score
        names = dict.fromkeys(entry.name for entries in lists.values() for entry in entries)
        instances = {name: given.get(name) or self._unconfigured(name) for name in names}
        reuses = profile.reuse and self._config.gate("OpportunisticBatching")
        bytes_max = self._config.spec.reuse.max_bytes if reuses else 0
        name = profile.scheduler_name or ""
        return ResolvedProfile(name, percentage, lists, instances, reuse_bytes_max=bytes_max)

    def _lists(self, profile: Profile) -> PluginLists | None:
        path = f"{self._path}.plugins"
        self._problems += set_problems(profile.plugins, self._registry, path)
        if any(problem.path.startswith(path) for problem in self._problems):
            return None
        defaults = [
            entry
            for entry in default_plugins(self._config.gates)
            if not is_awaited(entry.name, self._registry)
        ]
        lists = expand(profile.plugins, defaults, self._registry)
        wrong = list(list_problems(lists, path))
        self._problems += wrong
        return None if wrong else lists

    def _given(self, profile: Profile) -> dict[str, Instance]:
        """Instances with args of their own. Those of plugins that are not here yet may wait."""
        found: dict[str, Instance] = {}
        for index, config in enumerate(profile.plugin_config):
            path = f"{self._path}.pluginConfig[{index}]"
            plugin = self._registry.find(plugin_name(config.name))
            if plugin is not None:
                instance = self._instance(config.name, plugin, config.args, f"{path}.args")
                found.setdefault(config.name, instance)
            elif config.name and not is_awaited(config.name, self._registry):
                found_wanted = absence(config.name, self._registry)
                self._problems.append(Problem(f"{path}.name", *found_wanted))
        return found

    def _unconfigured(self, name: str) -> Instance:
        """An instance without args of its own: the defaults must do."""
        plugin = self._registry.find(plugin_name(name))
        assert plugin is not None, f"{name} was not checked"
        return self._instance(name, plugin, {}, f"{self._path}.pluginConfig[{name}].args")

    def _instance(self, name: str, plugin: type[Plugin], args: Any, path: str) -> Instance:
        checked, problems = checked_args(plugin, args)
        self._problems += [problem.under(path) for problem in problems]
        return Instance(name, plugin, checked, path)


def checked_args(plugin: type[Plugin], value: Any) -> tuple[PluginArgs | None, list[Problem]]:
    """(args, what is wrong with them, by paths that begin inside). None: it takes none."""
    if plugin.args_type is None:
        unwanted = [name for name in value if name not in ("apiVersion", "kind")]
        wanted = f"{plugin.name} takes no args"
        return None, [Problem(name, "unknown field", wanted) for name in unwanted]
    if isinstance(value, PluginArgs):
        args, problems = value, _type_problems(plugin.args_type, value)
    else:
        args, problems = decode(value, plugin.args_type, "")
    if args is not None and not problems:
        problems += _kind_problems(plugin.name, args)
        problems += [Problem(path, text) for path, text in args.problems()]
    return args, problems


def _type_problems(wanted: type[PluginArgs], value: PluginArgs) -> list[Problem]:
    if isinstance(value, wanted):
        return []
    return [Problem("", type(value).__name__, f"wanted {wanted.__name__}")]


def _kind_problems(name: str, args: PluginArgs) -> list[Problem]:
    """Upstream's plugins have a kind for their args; those of others may be called anything."""
    if name not in UPSTREAM_PLUGINS:
        return []
    pairs = {"apiVersion": (args.api_version, API_VERSION), "kind": (args.kind, f"{name}Args")}
    return [
        Problem(field, shown(found), f"wanted {wanted}")
        for field, (found, wanted) in pairs.items()
        if found and found != wanted
    ]
