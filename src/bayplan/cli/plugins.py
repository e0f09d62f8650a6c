"""`bayplan plugins`: list all plugins; `new` writes one, and `test` checks those of a file."""

from collections.abc import Iterator
from typing import ClassVar, Literal, final

import click
import yaml
from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.document import Answer, Rows
from bayplan.answers.formats import OutputFormat
from bayplan.answers.table import BLANK
from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.console import show_answer
from bayplan.cli.lazy_group import CommandEntry, LazyGroup
from bayplan.cli.options import config_option, output_option, plugin_option
from bayplan.cli.problems import refusals
from bayplan.plugins.registry import IN_TREE
from bayplan.profile.plugin_table import PluginRow, plugin_table

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
@output_option()
@click.pass_context
def plugins_command(
    context: click.Context,
    plugins: tuple[str, ...],
    config_path: str | None,
    output: OutputFormat,
) -> None:
    """List all plugins with their extension points, arguments and events."""
    if context.invoked_subcommand is not None:
        return
    with refusals():
        registry = read_plugins(plugins)
        config = read_config(config_path, "") if config_path is not None else None
        rows = plugin_table(registry, config)
    show_answer(PluginList(plugins=tuple(rows)), output)


@final
class PluginList(Answer, frozen=True, kw_only=True):
    """The answer of `bayplan plugins`."""

    kind: Literal["PluginList"] = "PluginList"
    field_of_list: ClassVar[str] = "plugins"
    plugins: tuple[PluginRow, ...]

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        """One paragraph for each plugin, because the columns of a table would be too narrow."""
        parts: list[RenderableType] = []
        for row in self.plugins:
            parts += [Text(row.name, style="bold"), *_facts(row), BLANK]
        return parts

    def rows(self) -> Rows:
        """The plugins."""
        headings = ("name", "origin", "extension_points", "profiles", "scope", "signed", "note")
        rows = (
            (
                row.name,
                row.origin,
                " ".join(row.extension_points),
                " ".join(row.profiles),
                row.scope,
                row.is_signed,
                row.note,
            )
            for row in self.plugins
        )
        return Rows(headings, rows)


def _facts(row: PluginRow) -> Iterator[Text]:
    facts = {
        "from": "" if row.origin == IN_TREE else row.origin,
        "at": ", ".join(row.extension_points),
        "profiles": ", ".join(row.profiles),
        "args": _args(row),
        "woken by": ", ".join(row.events),
        "scope": f"{row.scope}, {'signed' if row.is_signed else 'not signed'}",
        "but": row.note,
    }
    width = max(len(name) for name, fact in facts.items() if fact)
    for name, fact in facts.items():
        for index, line in enumerate(fact.splitlines()):
            yield Text(f"  {'' if index else name:{width}}  {line}")


def _args(row: PluginRow) -> str:
    if not row.args:
        return ""
    return yaml.safe_dump(row.args, sort_keys=False, default_flow_style=None, width=60).rstrip()
