"""Profiles made of plugin instances: each profile's lists, the events it waits for, its signer.

Every instance is made once per profile and asked once for its events. If one of them cannot start,
those made before it are closed, and all that failed are named.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, final

from bayplan.config.decoding import path_within
from bayplan.config.loading import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.config.problems import ConfigError
from bayplan.framework.calls import with_parts
from bayplan.framework.events import (
    KIND_OF_RESOURCE,
    ClusterEventWithHint,
    EventResource,
    default_events,
    resource_of_kind,
)
from bayplan.framework.handle import Handle
from bayplan.framework.lookups import undeclared_kinds
from bayplan.framework.plugin import (
    EnqueueExtensions,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
    ScalarFilterPlugin,
)
from bayplan.framework.profile import ProfilePlugins
from bayplan.framework.signing import Signer
from bayplan.framework.strict_signatures import enforce_signature
from bayplan.plugins.registry import Registry
from bayplan.ports import raise_interruption
from bayplan.problems import Problem, joined
from bayplan.profile.handle import PluginHandle
from bayplan.profile.plugin_sets import absence, plugin_name
from bayplan.profile.resolved_config import Instance, ResolvedProfile, checked_args, resolve
from bayplan.state.cluster_objects import undeclared

#: (profile name, instance name, class) → the handle of that instance.
HandleFor = Callable[[str, str, type[Plugin]], Handle]

Events = Sequence[ClusterEventWithHint]

#: Pods wait for the events of those that can reject them. Upstream: shouldHaveEnqueueExtensions.
REJECTING = (
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    ScalarFilterPlugin,
    ReservePlugin,
    PermitPlugin,
)


@final
@dataclass(frozen=True, slots=True)
class BuiltProfile:
    """One profile, ready to run."""

    plugins: ProfilePlugins
    #: Instance name → what its rejections wait for; only of those that can reject.
    events: Mapping[str, Events]
    signer: Signer


class NestedArgsError(ConfigError):
    """Name or args of a plugin that another plugin makes; its own args may contain them."""

    def __init__(self, problems: Sequence[Problem], nested: Any, path: str) -> None:
        super().__init__([problem.under(path) for problem in problems])
        #: By paths that begin inside ``nested``.
        self.relative = tuple(problems)
        self.nested = nested


class PartFailed(Exception):
    """A plugin that another one makes cannot start."""


def build_profiles(
    config: SchedulerConfig, registry: Registry, handle_for: HandleFor
) -> list[BuiltProfile]:
    """The profiles in order. Raises ConfigError with all that is wrong, or fails to start."""
    problems: list[Problem] = []
    built: list[BuiltProfile] = []
    started: list[Plugin] = []
    #: (path, instance, its events)
    unwatched: list[tuple[str, str, Events]] = []
    for index, profile in enumerate(resolve(config, registry).profiles):
        path = f"profiles[{index}]"
        running: dict[str, Plugin] = {}
        events: dict[str, Events] = {}
        for name, instance in profile.instances.items():
            handle = handle_for(profile.name, name, instance.plugin)
            plugin = _start(instance, handle, path, problems)
            if plugin is None:
                continue
            started.append(plugin)
            running[name] = plugin
            if profile.strict_signatures:
                enforce_signature(plugin)
            if isinstance(plugin, REJECTING):
                events[name] = _events(plugin, path, problems)
        if not problems:
            built.append(_built(profile, running, events))
            unwatched += [(path, name, events[name]) for name in events]
    declared = {resource_of_kind(kind) for plugin in with_parts(started) for kind in plugin.kinds}
    declared |= set(map(resource_of_kind, group_kinds(config.spec.pod_groups.kinds)))
    problems += [p for entry in unwatched for p in _without_kind(*entry, declared)]
    if problems:
        for plugin in started:
            # What fails now is not why the start failed.
            with suppress(Exception, SystemExit):
                plugin.close()
        raise ConfigError(problems, config.source)
    return built


def event_kinds(profiles: Iterable[BuiltProfile], has_extenders: bool) -> frozenset[str]:
    """Kinds that are watched because somebody waits for their events. Upstream: the dynamic
    handlers of addAllEventHandlers."""
    registered = [each for built in profiles for each in chain(*built.events.values())]
    if has_extenders:
        registered += default_events()
    if any(each.event.is_wildcard for each in registered):
        registered += default_events()
    kinds = (e.event.kind or KIND_OF_RESOURCE.get(e.event.resource, "") for e in registered)
    return frozenset(kind for kind in kinds if kind)


def make_plugin(
    registry: Registry, name: str, args: Any, handle: PluginHandle, *, path: str
) -> Plugin:
    """A plugin for composition in another one: what `handle.make` does.

    ``args``: plain values as in pluginConfig, the plugin's own struct, or None for its defaults.
    Raises ConfigError for a name or args that are wrong. Where the maker's own args contain them,
    `build_profiles` tells their place in the configuration; ``path`` stands for it elsewhere.
    """
    plugin = registry.find(plugin_name(name))
    if plugin is None:
        raise NestedArgsError([Problem("", *absence(name, registry))], name, path)
    checked, problems = checked_args(plugin, {} if args is None else args)
    if problems:
        whose = f"(args of {name}, made by {handle.instance_name})"
        texts = [
            Problem(p.path, p.actual, f"{p.expected} {whose}")
            if p.expected
            else Problem(p.path, f"{p.actual} {whose}")
            for p in problems
        ]
        raise NestedArgsError(texts, args, path)
    inside = handle.inside(plugin, name)
    try:
        return plugin(checked, inside, inside.instance_name)
    except ConfigError:
        raise
    except BaseException as error:
        raise_interruption(error)
        raise PartFailed(f"{name} cannot start: {type(error).__name__}: {error}") from error


# ---- starting one instance -----------------------------------------------------------------


def _start(instance: Instance, handle: Handle, path: str, problems: list[Problem]) -> Plugin | None:
    undeclared_there = undeclared_kinds(instance.plugin)
    if undeclared_there:
        problems += [Problem(path, undeclared(kind, instance.name)) for kind in undeclared_there]
        return None
    try:
        return instance.plugin(instance.args, handle, instance.name)
    except NestedArgsError as error:
        inside = path_within(instance.args, error.nested)
        if inside is None:
            problems += error.problems
        else:
            at = joined(instance.args_path, inside)
            problems += [problem.under(at) for problem in error.relative]
    except ConfigError as error:
        problems += error.problems
    except BaseException as error:  # noqa: BLE001 - whatever a plugin raises, it is named
        raise_interruption(error)
        text = f"plugin {instance.name} cannot start: {type(error).__name__}: {error}"
        problems.append(Problem(path, text))
    return None


def _events(plugin: Plugin, path: str, problems: list[Problem]) -> Events:
    """What the plugin registers, or everything where it does not say."""
    if not isinstance(plugin, EnqueueExtensions):
        return default_events(plugin.kinds)
    try:
        return tuple(plugin.events_to_register())
    except BaseException as error:  # noqa: BLE001 - whatever a plugin raises, it is named
        raise_interruption(error)
        text = f"events of plugin {plugin.instance_name}: {type(error).__name__}: {error}"
        problems.append(Problem(path, text))
        return ()


#: What every scheduler watches.
_ALWAYS_WATCHED = frozenset(map(str, EventResource)) - frozenset(KIND_OF_RESOURCE)


def _without_kind(
    path: str, name: str, events: Events, declared: Container[str]
) -> Iterator[Problem]:
    """Events that could never come: of their resource no kind, and so no version, is told."""
    watched = (*_ALWAYS_WATCHED, *KIND_OF_RESOURCE)
    for resource in dict.fromkeys(e.event.resource for e in events if not e.event.kind):
        if resource in watched or resource in declared:
            continue
        text = f"plugin {name} registers events of {resource}, and nobody watches them"
        group, _, kind = resource.rpartition("/")
        example = f"{group}/v1 {kind}" if group else f"v1 {kind}"
        expected = f'register them by kind, such as "{example}", or declare the kind in `kinds`'
        yield Problem(path, text, expected)


def _built(
    profile: ResolvedProfile, running: Mapping[str, Plugin], events: Mapping[str, Events]
) -> BuiltProfile:
    lists: dict[str, Any] = {
        _attribute(point): [running[entry.name] for entry in entries]
        for point, entries in profile.lists.items()
    }
    weights = [entry.weight for entry in profile.lists["score"]]
    lists["score"] = list(zip(lists["score"], weights, strict=True))
    [lists["queue_sort"]] = lists["queue_sort"]
    lists["sources"] = [running[name] for name in profile.sources]
    plugins = ProfilePlugins(
        profile_name=profile.name,
        percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
        reuse_bytes_max=profile.reuse_bytes_max,
        tries_resizes=profile.tries_resizes,
        **lists,
    )
    return BuiltProfile(plugins, events, Signer(plugins))


def _attribute(point: str) -> str:
    """The name of a list in ProfilePlugins: preEnqueue → pre_enqueue."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in point)
