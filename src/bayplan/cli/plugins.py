"""`bayplan plugins`: every plugin there is, and what it does where."""

import click
import msgspec
import yaml
from rich.table import Table

from bayplan.cli.console import reader
from bayplan.cli.problems import read_config, refusals
from bayplan.engine.plugin_table import PluginRow, plugin_table
from bayplan.plugins.registry import default_registry


@click.command("plugins")
@click.option("--plugin", "plugins", multiple=True, metavar="FILE.py", help="further plugins")
@click.option("--config", "config_path", metavar="FILE", help="show the instances of this one")
@click.option("--format", "output", type=click.Choice(("text", "json")), default="text")
def plugins_command(plugins: tuple[str, ...], config_path: str | None, output: str) -> None:
    """List every plugin: extension points, args with defaults, events, scope, signed or not."""
    with refusals():
        registry = default_registry(plugins)
        config = read_config(config_path, "") if config_path is not None else None
        rows = plugin_table(registry, config)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        return
    reader().print(_table(rows))


def _table(rows: list[PluginRow]) -> Table:
    table = Table("plugin", "extension points", "args (defaults)", "woken by", "scope", "signed")
    for column in table.columns:
        column.overflow = "fold"
    table.show_lines = True
    for row in rows:
        if row.note:
            table.add_row(row.name, f"[dim]{row.note}[/dim]")
            continue
        table.add_row(
            row.name if row.origin in ("", "in tree") else f"{row.name}\n[dim]{row.origin}[/dim]",
            ", ".join(row.extension_points),
            _args(row),
            ", ".join(row.events),
            row.scope,
            "yes" if row.is_signed else "no",
        )
    return table


def _args(row: PluginRow) -> str:
    if not row.args:
        return ""
    return yaml.safe_dump(row.args, sort_keys=False, default_flow_style=None, width=60).rstrip()
