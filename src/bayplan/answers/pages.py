"""Answers for a reader: rich texts and tables as plain text and as HTML.

Names and messages of a cluster's objects may hold any characters. `PrintableConsole` writes each
text and each cell of a table without control characters, so that an object cannot move the cursor
of a terminal or forge a line. HTML escapes the characters that have a meaning in it.
"""

import io
from collections.abc import Iterable
from typing import final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from bayplan.printable import printable

#: Tables must stay readable when they are written to a file, a pager or a notebook.
PAGE_WIDTH = 160
_HTML = '<pre style="white-space: pre; line-height: normal; font-family: monospace">{code}</pre>'


@final
class PrintableConsole(Console):
    """Writes each text and each cell of a table on its own lines, without control characters."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        # Python counts more characters as unprintable than `printable` replaces.
        if isinstance(renderable, str):
            if not renderable.isprintable():
                renderable = printable(renderable)
        elif isinstance(renderable, Text) and not renderable.plain.isprintable():
            text = printable(renderable.plain)
            if text != renderable.plain:
                # The positions of styles within the text no longer hold.
                renderable = Text(text, renderable.style, end=renderable.end)
        return super().render(renderable, options)


def as_text(parts: Iterable[RenderableType]) -> str:
    """The parts one below the other, without colours and without blanks at the end of lines."""
    page = io.StringIO()
    _write(_console(page, is_recorded=False), parts)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines())


def as_html(parts: Iterable[RenderableType]) -> str:
    """One HTML element, for a notebook."""
    console = _console(io.StringIO(), is_recorded=True)
    _write(console, parts)
    return console.export_html(inline_styles=True, code_format=_HTML)


def _console(page: io.StringIO, *, is_recorded: bool) -> PrintableConsole:
    return PrintableConsole(
        file=page,
        width=PAGE_WIDTH,
        record=is_recorded,
        color_system=None,
        markup=False,
        emoji=False,
        highlight=False,
    )


def _write(console: Console, parts: Iterable[RenderableType]) -> None:
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Text))
