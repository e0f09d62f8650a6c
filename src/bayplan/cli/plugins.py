"""`bayplan plugins`: list all plugins; `new` writes one, and `test` checks those of a file."""

from collections.abc import Iterator

import click
import msgspec
import yaml
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.console import show
from bayplan.cli.lazy_group import CommandEntry, LazyGroup
from bayplan.cli.options import config_option, format_option, plugin_option
from bayplan.cli.problems import refusals
from bayplan.cli.streams import put
from bayplan.plugins.registry import IN_TREE
from bayplan.profile.plugin_table import NOT_HERE_YET, PluginRow, plugin_table

_COMMANDS = {
    "new": CommandEntry(
        "bayplan.cli.new_plugin:new_command",
        "Write a package with a working, tested plugin called NAME, as a starting point.",
    ),
    "test": CommandEntry(
        "bayplan.cli.check_plugins:test_command",
        "Check that the plugins of files keep the contract of a plugin.",
    ),
}


@click.group("plugins", cls=LazyGroup, entries=_COMMANDS, invoke_without_command=True)
@plugin_option()
@config_option("Configuration whose plugin instances to list")
@format_option()
@click.pass_context
def plugins_command(
    context: click.Context, plugins: tuple[str, ...], config_path: str | None, output: str
) -> None:
    """List all plugins with their extension points, arguments and events."""
    if context.invoked_subcommand is not None:
        return
    with refusals():
        registry = read_plugins(plugins)
        config = read_config(config_path, "") if config_path is not None else None
        rows = plugin_table(registry, config)
    if output == "json":
        put(msgspec.json.format(msgspec.json.encode(rows), indent=2) + b"\n")
    else:
        show(_listed(rows))


def _listed(rows: list[PluginRow]) -> Iterator[RenderableType]:
    """One paragraph for each plugin, because the columns of a table would be too narrow."""
    for row in rows:
        if row.note != NOT_HERE_YET:
            yield Text(row.name, style="bold")
            yield Padding(_facts(row), (0, 0, 1, 2))
    missing = [row.name for row in rows if row.note == NOT_HERE_YET]
    if missing:
        yield Text(f"{NOT_HERE_YET}: {', '.join(missing)}")


def _facts(row: PluginRow) -> Table:
    grid = Table.grid(padding=(0, 2))
    facts = {
        "from": "" if row.origin == IN_TREE else row.origin,
        "at": ", ".join(row.extension_points),
        "profiles": ", ".join(row.profiles),
        "args": _args(row),
        "woken by": ", ".join(row.events),
        "scope": f"{row.scope}, {'signed' if row.is_signed else 'not signed'}",
        "but": row.note,
    }
    for name, fact in facts.items():
        if fact:
            grid.add_row(name, Text(fact, overflow="fold"))
    return grid


def _args(row: PluginRow) -> str:
    if not row.args:
        return ""
    return yaml.safe_dump(row.args, sort_keys=False, default_flow_style=None, width=60).rstrip()
