"""Output for a person, as plain text."""

from collections.abc import Iterable

from rich.console import Console, RenderableType


def printed(parts: Iterable[RenderableType], width: int = 120) -> str:
    console = Console(width=width, color_system=None, markup=False, emoji=False, highlight=False)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
