"""What of a configuration an unmodified kube-scheduler would not understand.

It knows neither our fields nor our plugins, and has one instance of each of its own.
"""

from collections.abc import Iterator

from bayplan.config.loading import SchedulerConfig
from bayplan.config.schema import PluginEntry, Profile
from bayplan.config.upstream import REMOVED_PLUGINS, UPSTREAM_PLUGINS
from bayplan.config.validation import ALL_PLUGINS, LABEL_SEPARATOR
from bayplan.engine.plugin_sets import plugin_name

#: Fields that are ours → what kube-scheduler has in their place.
_OUR_FIELDS = {
    "featureGates": "kube-scheduler takes its gates from the command line, as --feature-gates",
    "reuse": "kube-scheduler has no such field",
}


def foreign(config: SchedulerConfig) -> list[str]:
    """One line for each field, and each plugin with all places that name it."""
    found = [f"{name}: {why}" for name, why in _OUR_FIELDS.items() if name in config.written]
    for index, profile in enumerate(config.spec.profiles):
        found += _of_profile(profile, f"profiles[{index}]")
    return found


def _of_profile(profile: Profile, path: str) -> Iterator[str]:
    if not profile.reuse:
        yield f"{path}.reuse: kube-scheduler has no such field"
    if profile.plugins.tie_break.enabled or profile.plugins.tie_break.disabled:
        yield f"{path}.plugins.tieBreak: kube-scheduler has no such extension point"
    places: dict[str, list[str]] = {}
    for at, entry in _named(profile):
        if _complaint(entry):
            places.setdefault(entry, []).append(f"{path}.{at}")
    for name, at in places.items():
        yield f"{', '.join(at)}: {name}: {_complaint(name)}"


def _named(profile: Profile) -> Iterator[tuple[str, str]]:
    """(where, name) of each plugin; what is off there already need not be understood."""
    sets = {"multiPoint": profile.plugins.multi_point, **profile.plugins.by_point()}
    for point, given in sets.items():
        entries: tuple[PluginEntry, ...] = given.enabled
        for index, entry in enumerate(entries):
            if point != "tieBreak":
                yield f"plugins.{point}.enabled[{index}]", entry.name
    for index, config in enumerate(profile.plugin_config):
        yield f"pluginConfig[{index}]", config.name


def _complaint(name: str) -> str:
    """ "" for a name that kube-scheduler knows."""
    plugin = plugin_name(name)
    if plugin in REMOVED_PLUGINS:
        return "kube-scheduler has removed this plugin"
    if plugin not in UPSTREAM_PLUGINS and name != ALL_PLUGINS:
        return "kube-scheduler has no such plugin"
    if LABEL_SEPARATOR in name:
        return f"kube-scheduler has one {plugin} in a profile, without a label"
    return ""
