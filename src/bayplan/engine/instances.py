"""One plugin instance of a profile: its class, and its args, decoded and checked."""

from dataclasses import dataclass
from typing import Any

from bayplan.config.decoding import decode
from bayplan.config.schema import API_VERSION
from bayplan.config.upstream import UPSTREAM_PLUGINS
from bayplan.framework.interface import Plugin, PluginArgs
from bayplan.problems import Problem, shown


@dataclass(frozen=True, slots=True)
class Instance:
    """One plugin instance of a profile, to be made."""

    name: str
    plugin: type[Plugin]
    args: PluginArgs | None
    #: Where its args stand, or would stand.
    args_path: str


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
