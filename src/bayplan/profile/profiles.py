"""Profiles with their plugin instances: the lists per extension point, the events, the signer.

Every instance is made once per profile and registers its events once. If an instance cannot start,
the instances that have started are closed, and the error names every instance that failed.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, cast, final

from msgspec import Struct

from bayplan.config.behaviour import Behaviour
from bayplan.config.decoding import path_within
from bayplan.config.loading import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.framework.calls import with_parts
from bayplan.framework.events import (
    KIND_OF_RESOURCE,
    ClusterEventWithHint,
    EventResource,
    default_events,
    resource_of_kind,
)
from bayplan.framework.handle import Handle, undeclared
from bayplan.framework.lookups import undeclared_kinds
from bayplan.framework.plugin import (
    EnqueueExtensions,
    FilterPlugin,
    PermitPlugin,
    PlacementGeneratePlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
    ScalarFilterPlugin,
)
from bayplan.framework.profile import ProfilePlugins
from bayplan.framework.signing import Signer, enforce_signature
from bayplan.framework.validation import WrongAnswer, described, line_of
from bayplan.plugins.registry import Registry
from bayplan.ports import raise_interruption
from bayplan.problems import ConfigError, Problem, joined
from bayplan.profile.older_registrations import queued_in, registered_in
from bayplan.profile.plugin_sets import WEIGHTED, absence, plugin_name
from bayplan.profile.resolved_config import Instance, ResolvedProfile, checked_args, resolve

#: (profile name, instance name, class) → the handle of that instance.
HandleFor = Callable[[str, str, type[Plugin]], Handle]

Events = Sequence[ClusterEventWithHint]

#: Plugins that can reject a pod. Rejected pods wait for events of these plugins. Upstream:
#: shouldHaveEnqueueExtensions.
REJECTING = (
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    ScalarFilterPlugin,
    ReservePlugin,
    PermitPlugin,
    PlacementGeneratePlugin,
)


@final
class BuiltProfile(Struct, frozen=True):
    """One profile, ready to run."""

    plugins: ProfilePlugins
    #: Instance name → the events that it registers; only `REJECTING` plugins.
    events: Mapping[str, Events]
    #: Instance name → the events that its rejected pods wait for.
    queued_events: Mapping[str, Events]
    signer: Signer


class NestedArgsError(ConfigError):
    """A wrong name, or wrong args, of a plugin that another plugin makes. The name or args may come
    from the args of that other plugin."""

    def __init__(self, problems: Sequence[Problem], nested: Any, path: str) -> None:
        super().__init__([problem.under(path) for problem in problems])
        #: The problems with paths relative to ``nested``.
        self.relative = tuple(problems)
        self.nested = nested


class PartFailed(Exception):
    """A plugin that another plugin makes cannot start."""


def build_profiles(
    config: SchedulerConfig, registry: Registry, handle_for: HandleFor
) -> list[BuiltProfile]:
    """The profiles in order. Raises ConfigError with all errors, including plugins that cannot
    start."""
    problems: list[Problem] = []
    built: list[BuiltProfile] = []
    started: list[Plugin] = []
    #: (path, instance, its events)
    registrations: list[tuple[str, str, Events]] = []
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
                registered = _events(plugin, path, problems)
                events[name] = registered_in(config.gates.behaviour, registered)
        if not problems:
            built.append(_built(profile, running, events, config.gates.behaviour))
            registrations += [(path, name, events[name]) for name in events]
    declared = {resource_of_kind(kind) for plugin in with_parts(started) for kind in plugin.kinds}
    declared |= set(map(resource_of_kind, group_kinds(config.spec.pod_groups.kinds)))
    problems += [p for entry in registrations for p in _without_kind(*entry, declared)]
    if problems:
        for plugin in started:
            # An exception in `close` must not hide why the start failed.
            with suppress(Exception, SystemExit):
                plugin.close()
        raise ConfigError(problems, config.source)
    return built


def event_kinds(profiles: Iterable[BuiltProfile], has_extenders: bool) -> frozenset[str]:
    """Kinds that are watched because plugins or extenders wait for their events. Upstream: the
    dynamic handlers of addAllEventHandlers."""
    registered = [each for built in profiles for each in chain(*built.events.values())]
    if has_extenders:
        registered += default_events()
    if any(each.event.is_wildcard for each in registered):
        registered += default_events()
    kinds = (e.event.kind or KIND_OF_RESOURCE.get(e.event.resource, "") for e in registered)
    return frozenset(kind for kind in kinds if kind)


def make_plugin(
    registry: Registry, name: str, args: Any, handle: Handle, *, path: str = ""
) -> Plugin:
    """Make a plugin for another plugin: the implementation of `handle.make`.

    ``args``: plain values as in pluginConfig, the plugin's own struct, or None for its defaults.
    Raises ConfigError for a wrong name or wrong args, and PartFailed if the plugin cannot start.
    ``path``: the place of the name or args in messages; "": the call of `make`. If they come from
    the args of the other plugin, `build_profiles` replaces it with the place in the configuration.
    """
    path = path or f"{handle.instance_name}.make({name})"
    plugin = registry.find(plugin_name(name))
    if plugin is None:
        raise NestedArgsError([Problem("", *absence(name, registry))], name, path)
    checked, problems = checked_args(plugin, {} if args is None else args, handle.gates)
    if problems:
        whose = f"(args of {name}, made by {handle.instance_name})"
        texts = [
            Problem(p.path, p.actual, f"{p.expected} {whose}")
            if p.expected
            else Problem(p.path, f"{p.actual} {whose}")
            for p in problems
        ]
        raise NestedArgsError(texts, args, path)
    inside = handle.inside(name, plugin.kinds)
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
    except BaseException as error:  # noqa: BLE001 - the problem names the plugin
        raise_interruption(error)
        text = f"plugin {instance.name} cannot start: {type(error).__name__}: {error}"
        problems.append(Problem(path, text))
    return None


_REGISTRATIONS = "a list of ClusterEventWithHint"


def _events(plugin: Plugin, path: str, problems: list[Problem]) -> Events:
    """The events that the plugin registers, or the default events if it registers none."""
    if not isinstance(plugin, EnqueueExtensions):
        return default_events(plugin.kinds)
    method = plugin.events_to_register
    try:
        events = cast("Any", method())
        listed = cast("Sequence[Any]", events if isinstance(events, list | tuple) else (None,))
        if not all(isinstance(each, ClusterEventWithHint) for each in listed):
            raise WrongAnswer(described(cast("Any", events)), _REGISTRATIONS, method)
        return tuple(listed)
    except BaseException as error:  # noqa: BLE001 - the problem names the plugin
        raise_interruption(error)
        is_wrong = isinstance(error, WrongAnswer)
        text = str(error) if is_wrong else f"{type(error).__name__}: {error}{line_of(error)}"
        problems.append(Problem(path, f"events of plugin {plugin.instance_name}: {text}"))
        return ()


#: The resources that every scheduler watches.
_ALWAYS_WATCHED = frozenset(map(str, EventResource)) - frozenset(KIND_OF_RESOURCE)


def _without_kind(
    path: str, name: str, events: Events, declared: Container[str]
) -> Iterator[Problem]:
    """Problems of events that can never occur: no plugin declares the kind of their resource, so
    its version is unknown and it is not watched."""
    watched = (*_ALWAYS_WATCHED, *KIND_OF_RESOURCE)
    for resource in dict.fromkeys(e.event.resource for e in events if not e.event.kind):
        if resource in watched or resource in declared:
            continue
        text = f"plugin {name} registers events of {resource}, which is not watched"
        group, _, kind = resource.rpartition("/")
        example = f"{group}/v1 {kind}" if group else f"v1 {kind}"
        expected = f'register them by kind, such as "{example}", or declare the kind in `kinds`'
        yield Problem(path, text, expected)


def _built(
    profile: ResolvedProfile,
    running: Mapping[str, Plugin],
    events: Mapping[str, Events],
    behaviour: Behaviour,
) -> BuiltProfile:
    lists: dict[str, Any] = {
        _attribute(point): [running[entry.name] for entry in entries]
        for point, entries in profile.lists.items()
    }
    for point in WEIGHTED:
        weights = [entry.weight for entry in profile.lists[point]]
        lists[_attribute(point)] = list(zip(lists[_attribute(point)], weights, strict=True))
    [lists["queue_sort"]] = lists["queue_sort"]
    lists["sources"] = [running[name] for name in profile.sources]
    plugins = ProfilePlugins(
        profile_name=profile.name,
        percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
        reuse_bytes_max=profile.reuse_bytes_max,
        tries_resizes=profile.tries_resizes,
        has_parallel_pre_bind=behaviour.pre_bind_is_parallel,
        **lists,
    )
    queued = {name: queued_in(behaviour, each) for name, each in events.items()}
    return BuiltProfile(plugins, events, queued, Signer(plugins))


def _attribute(point: str) -> str:
    """The attribute of ProfilePlugins for an extension point: preEnqueue → pre_enqueue."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in point)
