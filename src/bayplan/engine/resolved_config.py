"""A configuration and the plugins there are, put together: every name found, all args checked.

`resolve` says everything that is wrong, at once; what it returns needs no further checks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bayplan.config.extenders import ignored_resources
from bayplan.config.loading import SchedulerConfig
from bayplan.config.problems import ConfigError
from bayplan.config.schema import Profile
from bayplan.config.upstream import default_plugins
from bayplan.config.validation import LABEL_SEPARATOR
from bayplan.engine.instances import Instance, checked_args
from bayplan.engine.plugin_sets import (
    PluginLists,
    absence,
    expand,
    is_awaited,
    list_problems,
    plugin_name,
    set_problems,
)
from bayplan.engine.score_sources import SourceFinder, is_reader, scoring
from bayplan.framework.interface import Plugin
from bayplan.plugins.node_resources_fit import NodeResourcesFitArgs
from bayplan.plugins.registry import Registry
from bayplan.problems import Problem


@dataclass(frozen=True, slots=True)
class ResolvedProfile:
    """One profile, with what is in the defaults and not here left out."""

    name: str
    percentage_of_nodes_to_score: int
    lists: PluginLists
    #: By instance name, in order of first appearance; what is only read stands last.
    instances: Mapping[str, Instance]
    #: Bytes that answers may be kept in for reuse; 0: none are.
    reuse_bytes_max: int = 0
    #: Whether pods that run are tried for a resize that was deferred.
    tries_resizes: bool = False
    #: Instances that others read and that do not score by themselves.
    sources: tuple[str, ...] = ()

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
        sources = self._sources(profile, lists, {**given, **instances})
        reuses = profile.reuse and self._config.gate("OpportunisticBatching")
        return ResolvedProfile(
            profile.scheduler_name or "",
            percentage,
            lists,
            {**instances, **{n: i for n, i in sources.items() if n not in instances}},
            reuse_bytes_max=self._config.spec.reuse.max_bytes if reuses else 0,
            tries_resizes=self._config.gate("InPlacePodVerticalScalingSchedulerPreemption"),
            sources=tuple(name for name in sources if name not in scoring(lists)),
        )

    def _sources(
        self, profile: Profile, lists: PluginLists, known: Mapping[str, Instance]
    ) -> Mapping[str, Instance]:
        """What the profile's score plugins read; tells of instances that nobody uses."""
        finder = SourceFinder(self._registry, known, self._unconfigured)
        sources = finder.sources_of(scoring(lists))
        enabled = {entry.name for entries in lists.values() for entry in entries}
        unused = [name for name in known if name not in enabled and name not in sources]
        finder.look_for_cycles(unused)
        self._problems += finder.problems
        # Whom a misspelled name meant, nobody knows: it would only seem unused.
        if not any(problem.path.startswith(f"{self._path}.") for problem in self._problems):
            wanted = "wanted it enabled, or named in another's scoreFrom"
            for index, config in enumerate(profile.plugin_config):
                if config.name in unused and _must_be_used(known[config.name]):
                    at = f"{self._path}.pluginConfig[{index}].name"
                    found = f'"{config.name}" is neither enabled nor read'
                    self._problems.append(Problem(at, found, wanted))
        return sources

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
        ignored = ignored_resources(self._config.spec.extenders)
        if ignored and isinstance(checked, NodeResourcesFitArgs):
            # In place of what is written there, as upstream: buildExtenders.
            checked = msgspec.structs.replace(checked, ignored_resources=ignored)
        return Instance(name, plugin, checked, path)


def _must_be_used(instance: Instance) -> bool:
    """Args of a plugin without a label may be idle, as in kube-scheduler; a reader's may not."""
    return LABEL_SEPARATOR in instance.name or is_reader(instance)
