"""Command groups: complete lists, suggestions for misspelt names, imports on demand.

A group knows the name, the place and the first sentence of each of its commands. The list of
commands and shell completion import no command; a command that runs imports no other one
(docs/decisions/0016). Upstream: click's documentation, "Lazily Loading Subcommands".
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, final

import click

from bayplan.lazy_loader import load

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class CommandEntry(NamedTuple):
    """One command of a group."""

    #: "module:attribute"
    place: str
    #: The first sentence of the command's help.
    summary: str


@final
class LazyGroup(click.Group):
    """``entries``: the commands by name, in the order in which they are listed."""

    def __init__(self, *args: Any, entries: Mapping[str, CommandEntry], **options: Any) -> None:
        super().__init__(*args, **options)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        return None if entry is None else load(entry.place)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of the help. Long sentences are wrapped, not cut."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.entries.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        completion_item = load("click.shell_completion:CompletionItem")
        commands = [
            completion_item(name, help=entry.summary)
            for name, entry in self.entries.items()
            if name.startswith(incomplete)
        ]
        # The method of click.Group would import each command.
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments start with. Raises click.UsageError."""
        name = args[0]
        if name not in self.entries and not name.startswith("-"):
            hint = load("bayplan.problems:suggestion")(name, self.list_commands(ctx))
            ctx.fail(f'No such command "{name}"' + (f"; {hint}" if hint else ""))
        return super().resolve_command(ctx, args)
