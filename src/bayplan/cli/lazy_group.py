"""A group of commands that are imported when they are called.

What one command needs the others should not wait for: the client of a real API server alone costs
a third of a second (docs/decisions/0006). Upstream: click's documentation, "Lazily Loading
Subcommands".
"""

import importlib
from typing import Any, final

import click


@final
class LazyGroup(click.Group):
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
