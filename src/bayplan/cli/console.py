"""The output of a command for a reader: texts and tables, and its progress."""

import io
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from textwrap import wrap
from typing import final

import click
from rich.console import Console, RenderableType
from rich.text import Text

from bayplan.answers.document import Answer
from bayplan.answers.formats import OutputFormat, written
from bayplan.answers.pages import PAGE_WIDTH, PrintableConsole
from bayplan.answers.table import Table
from bayplan.cli.streams import fail, put
from bayplan.clock import wall_seconds
from bayplan.lazy_loader import load
from bayplan.problems import BadInputError

#: See `progress`.
OnProgress = Callable[..., None]

#: The width of tables with -o wide: a narrower terminal breaks their lines.
WIDE_WIDTH = 240
#: Without a terminal, progress is reported this often.
PROGRESS_SECONDS = 10.0


def show_answer(answer: Answer, output: OutputFormat) -> None:
    """Print an answer in the format of `-o`. Ends the command for a path to a field that does not
    exist."""
    if output.is_text:
        show(answer.parts(is_wide=output.is_wide), is_wide=output.is_wide)
        return
    try:
        content = written(answer, output)
    except BadInputError as problem:
        fail(str(problem))
    put(content)


def show(parts: Iterable[RenderableType], *, is_wide: bool = False) -> None:
    """Print for a reader: as wide as the terminal, or, without one, as wide as COLUMNS says or as
    tables need. ``is_wide``: names in tables stay whole."""
    is_piped = not Console(file=sys.stdout).is_terminal
    columns = os.environ.get("COLUMNS", "")
    piped_width = int(columns) if columns.isascii() and columns.isdigit() else 0
    width = (piped_width or PAGE_WIDTH) if is_piped else Console(file=sys.stdout).width
    page = io.BytesIO()
    console = PrintableConsole(
        file=io.TextIOWrapper(page, sys.stdout.encoding, sys.stdout.errors, write_through=True),
        force_terminal=not is_piped,
        width=max(width, WIDE_WIDTH) if is_wide else width,
        markup=False,
        emoji=False,
        highlight=False,
    )
    for part in parts:
        if isinstance(part, Table):
            part.is_wide = is_wide
        # In a file, a line is not wrapped unless COLUMNS is set. Tables always have a width. A
        # command for a shell is one line everywhere: a line break in it would be copied, too.
        is_whole = is_wide or (is_piped and not piped_width)
        is_line = isinstance(part, Text) and (part.no_wrap or is_whole)
        for line in [part] if is_line else _hanging(part, console.width):
            console.print(line, soft_wrap=bool(is_line))
    lines = page.getvalue().splitlines()
    put(b"".join((line.rstrip() if is_piped else line) + b"\n" for line in lines))


def command_text(*words: str) -> Text:
    """A command as a shell takes it, on a line of its own that is not wrapped."""
    return Text(f"  {shlex.join(words)}", style="cyan", no_wrap=True, overflow="ignore")


def _hanging(part: RenderableType, width: int) -> Iterable[RenderableType]:
    """A line that is indented and too long as several lines, the further ones indented more."""
    if not isinstance(part, Text) or len(part.plain) <= width or part.plain[:1] != " ":
        return [part]
    indent = part.plain[: len(part.plain) - len(part.plain.lstrip())]
    lines = wrap(
        part.plain.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [Text(line, part.style) for line in lines]


@contextmanager
def progress(doing: str, noun: str = "") -> Iterator[OnProgress]:
    """Show on a terminal what the block does and for how long. The function takes the number done,
    the total (0: it is not known) and a text."""
    if not sys.stderr.isatty():
        yield _ignore
        return
    with load("bayplan.cli.progress_bar:progress_bar")(doing, noun) as update:
        yield update


def counting(on_progress: OnProgress) -> Callable[[], None]:
    """A function that counts its calls; how many there will be is not known."""
    numbers = count(1)
    return lambda: on_progress(next(numbers), 0)


def _ignore(_done: int, _total: int, _text: str = "") -> None: ...


@final
class ProgressLines:
    """Progress as lines on standard error, if no terminal shows a bar."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._next_seconds = wall_seconds() + PROGRESS_SECONDS

    def update(self, done: int, total: int) -> None:
        """One line, if the last one was long enough ago."""
        now = wall_seconds()
        if now >= self._next_seconds:
            self._next_seconds = now + PROGRESS_SECONDS
            click.echo(f"bayplan: {done:,} of {total:,} {self._noun}", err=True)
