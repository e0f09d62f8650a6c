"""Command groups: complete lists, suggestions for misspelt names, imports on demand.

A command must not wait for the imports of another: the client of a real API server alone takes a
third of a second (docs/decisions/0006). Upstream: click's documentation, "Lazily Loading
Subcommands".
"""

import importlib
from typing import Any, final

import click

from bayplan.problems import suggestion

#: The list wraps a first sentence and never cuts it.
_SENTENCE_LENGTH_MAX = 1000


class CommandGroup(click.Group):
    """A group whose help shows the complete first sentence of each command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [
            (name, command.get_short_help_str(_SENTENCE_LENGTH_MAX))
            for name, command in commands
            if command is not None and not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments start with. Raises click.UsageError."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            hint = suggestion(name, self.list_commands(ctx))
            ctx.fail(f'No such command "{name}"' + (f"; {hint}" if hint else ""))
        return super().resolve_command(ctx, args)


@final
class LazyGroup(CommandGroup):
    """``places``: command → module and attribute, in the order in which they are listed."""

    def __init__(self, *args: Any, places: dict[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._places:
            return None
        module, attribute = self._places[cmd_name]
        return getattr(importlib.import_module(module), attribute)
