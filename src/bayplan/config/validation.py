"""Checks that types cannot express: fields that must agree, be unique, or exist.

None of these checks needs to know a plugin. Upstream:
pkg/scheduler/apis/config/validation/validation.go, component-base/config/validation.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from bayplan.api.pod_requests import is_extended
from bayplan.api.selectors import is_label_key
from bayplan.config import schema
from bayplan.config.behaviour import Behaviour
from bayplan.config.pod_group_kinds import kind_problems
from bayplan.config.topology_levels import level_problems
from bayplan.durations import duration_seconds
from bayplan.problems import Problem, shown

#: Separates a plugin's name from the label of one of its instances.
LABEL_SEPARATOR = "/"
ALL_PLUGINS = "*"


def problems_of(spec: schema.KubeSchedulerConfiguration) -> Iterator[Problem]:
    """The errors of a configuration whose defaults are filled in."""
    yield from _must_be("apiVersion", spec.api_version, schema.API_VERSION)
    yield from _must_be("kind", spec.kind, schema.KIND)
    if spec.leader_election.leader_elect:
        yield from _leader_election(spec.leader_election)
    if spec.pod_max_backoff_seconds < spec.pod_initial_backoff_seconds:
        expected = f"wanted podInitialBackoffSeconds, {spec.pod_initial_backoff_seconds}, or more"
        yield Problem("podMaxBackoffSeconds", str(spec.pod_max_backoff_seconds), expected)
    for index, profile in enumerate(spec.profiles):
        yield from _profile(f"profiles[{index}]", profile)
    yield from _scheduler_names(spec.profiles)
    yield from _queue_sorts(spec.profiles)
    yield from _extenders(spec.extenders)
    yield from kind_problems(spec.pod_groups.kinds)
    yield from level_problems(spec.pod_groups.topology)


def version_problems(written: Any, behaviour: Behaviour) -> Iterator[Problem]:
    """Fields that kube-scheduler of a version does not know. ``written``: the plain values."""
    has_field = {
        "placementGenerate": behaviour.has_placement_points,
        "placementScore": behaviour.has_placement_points,
        "podGroupPostFilter": behaviour.has_pod_group_post_filter,
    }
    for index, profile in enumerate(_entries(_fields(written).get("profiles"))):
        for point in _fields(_fields(profile).get("plugins")):
            if not has_field.get(point, True):
                path = f"profiles[{index}].plugins.{point}"
                yield Problem(path, "unknown field", "newer versions of Kubernetes have it")


def _fields(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _entries(value: Any) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _must_be(path: str, actual: str, expected: str) -> Iterator[Problem]:
    if actual != expected:
        yield Problem(path, shown(actual) if actual else "missing", f"wanted {expected}")


def _leader_election(election: schema.LeaderElection) -> Iterator[Problem]:
    """Checked only if there is an election."""
    path = "leaderElection"
    durations = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    for name, duration in durations.items():
        if duration_seconds(duration) <= 0:
            yield Problem(f"{path}.{name}", duration, "wanted more than 0s")
    if duration_seconds(election.lease_duration) <= duration_seconds(election.renew_deadline):
        expected = f"wanted more than renewDeadline, {election.renew_deadline}"
        yield Problem(f"{path}.leaseDuration", election.lease_duration, expected)
    # Upstream: NewLeaderElector refuses this at start, although validation accepts it.
    if duration_seconds(election.renew_deadline) <= 1.2 * duration_seconds(election.retry_period):
        expected = f"wanted more than 1.2 times retryPeriod, {election.retry_period}"
        yield Problem(f"{path}.renewDeadline", election.renew_deadline, expected)
    yield from _must_be(f"{path}.resourceLock", election.resource_lock, "leases")


# ---- profiles ------------------------------------------------------------------------------


def _profile(path: str, profile: schema.Profile) -> Iterator[Problem]:
    sets = {"multiPoint": profile.plugins.multi_point, **profile.plugins.by_point()}
    for point, plugins in sets.items():
        for index, entry in enumerate(plugins.enabled):
            yield from _enabled(f"{path}.plugins.{point}.enabled[{index}].name", entry)
        for index, entry in enumerate(plugins.disabled):
            yield from _named(f"{path}.plugins.{point}.disabled[{index}].name", entry.name)
    first: dict[str, int] = {}
    for index, config in enumerate(profile.plugin_config):
        at = f"{path}.pluginConfig[{index}].name"
        yield from _named(at, config.name)
        if config.name and first.setdefault(config.name, index) != index:
            actual = f'"{config.name}" again'
            yield Problem(at, actual, f"pluginConfig[{first[config.name]}] has its args already")


def _enabled(path: str, entry: schema.PluginEntry) -> Iterator[Problem]:
    if entry.name == ALL_PLUGINS:
        yield Problem(path, '"*"', 'wanted a name; only disabled has "*"')
    yield from _named(path, entry.name)


def _named(path: str, name: str) -> Iterator[Problem]:
    """A plugin's name, or the name and the label of one instance."""
    plugin, separator, label = name.partition(LABEL_SEPARATOR)
    if not name:
        yield Problem(path, "missing", "wanted the name of a plugin")
    elif not plugin or (separator and (not label or LABEL_SEPARATOR in label)):
        yield Problem(
            path, f'"{name}"', "wanted Plugin, or Plugin/label if there are several instances"
        )


def _scheduler_names(profiles: tuple[schema.Profile, ...]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}].schedulerName"
        name = profile.scheduler_name
        if not name:
            yield Problem(path, "missing", "wanted the name that pods have in schedulerName")
        elif first.setdefault(name, index) != index:
            expected = f"profiles[{first[name]}] has this name already"
            yield Problem(path, f'"{name}" again', expected)


def _queue_sorts(profiles: tuple[schema.Profile, ...]) -> Iterator[Problem]:
    """As upstream, compares the text and not its meaning."""
    for index, profile in enumerate(profiles):
        if profile.plugins.queue_sort != profiles[0].plugins.queue_sort:
            path = f"profiles[{index}].plugins.queueSort"
            expected = "wanted the same in all profiles, because they share one queue"
            yield Problem(path, "differs from profiles[0]", expected)


# ---- extenders -----------------------------------------------------------------------------


def _extenders(extenders: tuple[schema.Extender, ...]) -> Iterator[Problem]:
    binder: int | None = None
    managed: dict[str, str] = {}
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if schema.verb_paths(extender) and not _is_address(extender.url_prefix):
            expected = "wanted http://HOST:PORT/PATH or https://HOST:PORT/PATH"
            yield Problem(f"{path}.urlPrefix", shown(extender.url_prefix), expected)
        if extender.prioritize_verb and extender.weight <= 0:
            expected = "wanted 1 or more with a prioritizeVerb"
            yield Problem(f"{path}.weight", str(extender.weight), expected)
        if extender.bind_verb and binder is not None:
            expected = f"only one extender may bind, and extenders[{binder}] has a bindVerb, too"
            yield Problem(f"{path}.bindVerb", shown(extender.bind_verb), expected)
        elif extender.bind_verb:
            binder = index
        for position, resource in enumerate(extender.managed_resources):
            at = f"{path}.managedResources[{position}].name"
            if not _is_extended_resource(resource.name):
                yield Problem(at, shown(resource.name), "wanted a name such as example.com/gpu")
            elif managed.setdefault(resource.name, at) != at:
                first = managed[resource.name]
                yield Problem(at, f"{shown(resource.name)} again", f"{first} is the same")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _is_extended_resource(name: str) -> bool:
    """Upstream: validateExtendedResourceName; the name must also be valid in a quota."""
    return is_extended(name) and is_label_key(name) and is_label_key(f"requests.{name}")
