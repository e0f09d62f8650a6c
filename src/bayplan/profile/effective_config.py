"""The effective configuration: all values after defaults, and the values that Bayplan ignores.

The result is itself a configuration with the same lists and arguments. The portability check lists
what an unmodified kube-scheduler would not understand: fields and plugins of Bayplan, and more than
one instance of a plugin.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from bayplan.api.objects import DEFAULT_SCHEDULER
from bayplan.config.feature_gates import FeatureGates, gates_of
from bayplan.config.gate_effects import changes_no_answer, not_built
from bayplan.config.loading import SchedulerConfig
from bayplan.config.schema import (
    KUBE_SCHEDULER_LEASE,
    OWN_LEASE,
    LeaderElection,
    PluginEntry,
    Profile,
    verb_paths,
)
from bayplan.config.upstream import REMOVED_PLUGINS, UPSTREAM_PLUGINS
from bayplan.config.validation import ALL_PLUGINS, LABEL_SEPARATOR
from bayplan.framework.plugin import EnqueueExtensions, PluginArgs
from bayplan.framework.profile import extension_points_of, may_be_enabled_at
from bayplan.plugins.registry import Registry
from bayplan.profile.plugin_sets import GROUP_POINT, plugin_name
from bayplan.profile.profiles import REJECTING
from bayplan.profile.resolved_config import ResolvedProfile, resolve

# ---- effective ------------------------------------------------------------------------------


_IS_TYPE = frozenset(("apiVersion", "kind"))

#: Key that only kube-scheduler uses → why it has no effect here.
_WITHOUT_EFFECT = {
    "parallelism": "all nodes are evaluated in one array operation",
    "enableProfiling": "there is no Go profiler to serve",
    "enableContentionProfiling": "there is no Go profiler to serve",
}


def effective(config: SchedulerConfig, registry: Registry) -> dict[str, Any]:
    """The configuration after defaults as plain data: each extension point's list with its
    weights, each instance's arguments, each gate. Raises ConfigError if it is refused.
    `dry_start` checks whether its plugins start."""
    resolved = resolve(config, registry)
    spec = _plain(config.spec)
    spec["featureGates"] = dict(sorted(config.gates.values.items()))
    spec["profiles"] = [_profile(profile) for profile in resolved.profiles]
    return spec


def _profile(profile: ResolvedProfile) -> dict[str, Any]:
    lists: dict[str, Any] = {"multiPoint": {"disabled": [{"name": ALL_PLUGINS}]}}
    for point, entries in profile.lists.items():
        lists[point] = {"enabled": [_entry(entry, point) for entry in entries]}
    configured = [
        {"name": name, "args": plain_args(instance.args)}
        for name, instance in profile.instances.items()
        if instance.args is not None
    ]
    return {
        "schedulerName": profile.name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "plugins": lists,
        "pluginConfig": configured,
        "reuse": bool(profile.reuse_bytes_max),
        "strictSignatures": profile.strict_signatures,
    }


def _entry(entry: PluginEntry, point: str) -> dict[str, Any]:
    named = {"name": entry.name}
    return {**named, "weight": entry.weight} if point == "score" else named


def plain_args(args: PluginArgs) -> dict[str, Any]:
    """Args as plain values in the form of pluginConfig; apiVersion and kind come first."""
    plain = _plain(args)
    return {name: plain[name] for name in sorted(plain, key=_IS_TYPE.__contains__, reverse=True)}


def _plain(value: Any) -> Any:
    """A struct as plain values for YAML: lists in place of tuples, without unset fields."""
    return _set_parts(msgspec.to_builtins(value))


def _set_parts(value: Any) -> Any:
    if isinstance(value, Mapping):
        parts = cast("Mapping[str, Any]", value).items()
        return {name: _set_parts(part) for name, part in parts if part is not None}
    if isinstance(value, list | tuple):
        return [_set_parts(part) for part in cast("list[Any]", value)]
    return value


# ---- remarks -------------------------------------------------------------------------------


def remarks(config: SchedulerConfig, registry: Registry) -> list[str]:
    """Remarks on accepted values that have no effect or an unexpected one; one line each.

    Raises ConfigError for a configuration that is refused.
    """
    resolved = resolve(config, registry)
    texts = [*_general(config), *_gates(config.gates)]
    pairs = zip(config.spec.profiles, resolved.profiles, strict=True)
    for index, (written, profile) in enumerate(pairs):
        path = f"profiles[{index}]"
        texts += _idle_args(written, profile, path)
        texts += _idle_weights(written, registry, path)
        texts += _unasked_events(profile, path)
        for point in ("postFilter", GROUP_POINT):
            texts += _left_out(profile, point, path)
    return texts


def _general(config: SchedulerConfig) -> Iterator[str]:
    plain = _plain(config.spec)
    for key, reason in _WITHOUT_EFFECT.items():
        if key in config.written:
            yield f"{key}: {json.dumps(plain[key])} has no effect: {reason}"
    connection, election = config.spec.client_connection, config.spec.leader_election
    if "clientConnection" in config.written and "json" not in connection.content_type:
        yield f"clientConnection.contentType: {connection.content_type} has no effect: JSON is used"
    if election.leader_elect and "leaderElection" in config.written:
        yield from _lease(election, config.spec.profiles)
    is_written = "percentageOfNodesToScore" in config.written
    percentages = [profile.percentage_of_nodes_to_score for profile in config.spec.profiles]
    if is_written and not plain["percentageOfNodesToScore"] and not all(percentages):
        yield (
            "percentageOfNodesToScore: 0: all nodes are evaluated, "
            "where kube-scheduler takes a share that depends on their number"
        )
    for index, extender in enumerate(config.spec.extenders):
        if not verb_paths(extender):
            yield f"extenders[{index}]: {extender.url_prefix} has no verb, so it is not called"


def _lease(election: LeaderElection, profiles: tuple[Profile, ...]) -> Iterator[str]:
    """Remarks on the name of the lease. Schedulers for the same pods must share a lease; schedulers
    for different pods must not."""
    name = election.resource_name
    is_default = any(profile.scheduler_name == DEFAULT_SCHEDULER for profile in profiles)
    if is_default and name != KUBE_SCHEDULER_LEASE:
        yield (
            f"leaderElection.resourceName: {name} is not kube-scheduler's lease, and both take the "
            f"pods of {DEFAULT_SCHEDULER}: stop kube-scheduler first"
        )
    elif name == KUBE_SCHEDULER_LEASE and not is_default:
        yield (
            f"leaderElection.resourceName: {KUBE_SCHEDULER_LEASE} is kube-scheduler's own lease: "
            "where both run, give another name"
        )
    elif name == OWN_LEASE:
        yield (
            f"leaderElection.resourceName: {name} on purpose, where kube-scheduler has "
            f"{KUBE_SCHEDULER_LEASE}: both may run, for pods of different scheduler names"
        )


def _gates(gates: FeatureGates) -> Iterator[str]:
    """Remarks on gates that are not at their defaults and that change nothing here."""
    for name, missing in not_built(gates):
        yield f"featureGates: {name}={str(gates.enabled(name)).lower()} is not built yet: {missing}"
    defaults = gates_of(gates.version)
    for name in gates.named:
        if name not in defaults:
            yield f"featureGates: {name} has no effect"
        elif gates.enabled(name) is not defaults[name].default and changes_no_answer(name):
            yield f"featureGates: {name} has no effect on any answer"


def _idle_args(written: Profile, profile: ResolvedProfile, path: str) -> Iterator[str]:
    for index, entry in enumerate(written.plugin_config):
        at = f"{path}.pluginConfig[{index}]"
        if entry.name not in profile.instances:
            yield f"{at}: {entry.name} is not enabled: its args have no effect"
        else:
            args = profile.instances[entry.name].args
            for name, why in () if args is None else args.remarks(frozenset(entry.args)):
                yield f"{at}.args.{name}: has no effect: {why}"


def _idle_weights(written: Profile, registry: Registry, path: str) -> Iterator[str]:
    sets = {"multiPoint": written.plugins.multi_point, **written.plugins.by_point()}
    for point, plugin_set in sets.items():
        for index, entry in enumerate(plugin_set.enabled):
            plugin = registry.find(plugin_name(entry.name))
            scores = plugin is not None and "score" in extension_points_of(plugin)
            if entry.weight and not (scores and point in ("score", "multiPoint")):
                at = f"{path}.plugins.{point}.enabled[{index}]"
                yield f"{at}: the weight of {entry.name} has no effect: weights are for scores"


def _left_out(profile: ResolvedProfile, point: str, path: str) -> Iterator[str]:
    """Remarks on plugins that are enabled only at other extension points than this one."""
    enabled = {entry.name for entry in profile.lists.get(point, ())}
    elsewhere = {
        entry.name
        for other, entries in profile.lists.items()
        if other not in (point, "queueSort")
        for entry in entries
    }
    for name, instance in profile.instances.items():
        is_left_out = name in elsewhere and name not in enabled
        if is_left_out and may_be_enabled_at(point, instance.plugin):
            yield f"{path}: {name} is enabled, but not at {point}, where it has something to do"


def _unasked_events(profile: ResolvedProfile, path: str) -> Iterator[str]:
    for name, instance in profile.instances.items():
        if issubclass(instance.plugin, EnqueueExtensions) and not issubclass(
            instance.plugin, REJECTING
        ):
            yield f"{path}: {name} is not asked for its events: it cannot reject a pod"


# ---- portability ----------------------------------------------------------------------------


#: Field that only Bayplan has → the remark for kube-scheduler.
_OUR_FIELDS = {
    "featureGates": "kube-scheduler takes its gates from the command line, as --feature-gates",
    "reuse": "kube-scheduler has no such field",
}


def foreign(config: SchedulerConfig) -> list[str]:
    """Fields and plugins that kube-scheduler does not have: one line for each, with all its
    places."""
    texts = [f"{name}: {why}" for name, why in _OUR_FIELDS.items() if name in config.written]
    for index, profile in enumerate(config.spec.profiles):
        texts += _of_profile(profile, f"profiles[{index}]")
    return texts


def _of_profile(profile: Profile, path: str) -> Iterator[str]:
    if not profile.reuse:
        yield f"{path}.reuse: kube-scheduler has no such field"
    if profile.strict_signatures:
        yield f"{path}.strictSignatures: kube-scheduler has no such field"
    if profile.plugins.tie_break.enabled or profile.plugins.tie_break.disabled:
        yield f"{path}.plugins.tieBreak: kube-scheduler has no such extension point"
    places: dict[str, list[str]] = {}
    for at, entry in _named(profile):
        if _complaint(entry):
            places.setdefault(entry, []).append(f"{path}.{at}")
    for name, at in places.items():
        yield f"{', '.join(at)}: {name}: {_complaint(name)}"


def _named(profile: Profile) -> Iterator[tuple[str, str]]:
    """(path, name) of each enabled or configured plugin. Disabled plugins do not matter."""
    sets = {"multiPoint": profile.plugins.multi_point, **profile.plugins.by_point()}
    for point, plugin_set in sets.items():
        entries: tuple[PluginEntry, ...] = plugin_set.enabled
        for index, entry in enumerate(entries):
            if point != "tieBreak":
                yield f"plugins.{point}.enabled[{index}]", entry.name
    for index, config in enumerate(profile.plugin_config):
        yield f"pluginConfig[{index}]", config.name


def _complaint(name: str) -> str:
    """Why kube-scheduler refuses the name; "" if kube-scheduler has the plugin."""
    plugin = plugin_name(name)
    if plugin in REMOVED_PLUGINS:
        return "kube-scheduler has removed this plugin"
    if plugin not in UPSTREAM_PLUGINS and name != ALL_PLUGINS:
        return "kube-scheduler has no such plugin"
    if LABEL_SEPARATOR in name:
        return f"kube-scheduler has one {plugin} in a profile, without a label"
    return ""
