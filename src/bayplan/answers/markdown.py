"""Parts of an answer as Markdown, for a comment in a review.

Names and messages of a cluster are text: what has a meaning in Markdown or HTML is escaped, and
nobody is mentioned. A comment is bounded (GitHub refuses more than 65,536 characters), so a table
shows its first rows and says how many follow.
"""

import re
from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.table import Table
from bayplan.printable import printable

#: The most rows of a table.
ROWS_MAX = 50
#: Longer texts in cells are cut.
_CELL_MAX = 300
_MEANINGFUL = re.compile(r"([\\`*_{}\[\]<>#|~])")
#: In an entry of a list, a number would begin another list.
_NUMBER = re.compile(r"^(\d+)\.(?= )")
_BLANKS = re.compile(r"\n{3,}")
_MENTION = re.compile(r"@(?=\w)")
_ENTITY = re.compile(r"&(?=#?\w+;)")


def as_markdown(parts: Iterable[RenderableType]) -> str:
    """The parts one below the other, with a line break at the end."""
    text = "\n".join(_lines(parts)).strip("\n")
    return _BLANKS.sub("\n\n", text) + "\n"


def _lines(parts: Iterable[RenderableType]) -> Iterator[str]:
    is_code = False
    for part in parts:
        is_command = isinstance(part, Text) and part.no_wrap is True
        if is_command is not is_code:
            yield "```" if is_code else "```sh"
            is_code = is_command
        if isinstance(part, Table):
            yield from ("", *_table(part), "")
        elif is_command:
            # A fence ends where a line has three backticks.
            yield printable(str(part)).strip().replace("```", "'''")
        elif isinstance(part, Text):
            yield from _line(part)
        else:
            raise TypeError(f"{part!r} is neither a line nor a table")
    if is_code:
        yield "```"


def _line(line: Text) -> Iterator[str]:
    """A line with a break at its end. A line below another one that is indented is an entry of a
    list."""
    text = printable(line.plain)
    if not text.strip():
        yield ""
        return
    depth = (len(text) - len(text.lstrip())) // 2
    shown = _escaped(text.strip())
    if line.style == "bold":
        shown = f"**{shown}**"
    if depth:
        shown = "  " * (depth - 1) + "- " + _NUMBER.sub(r"\1\\.", shown)
    yield shown if depth else f"{shown}  "


def _table(table: Table) -> Iterator[str]:
    yield _row(table.headings)
    yield _row(
        ["--:" if column.kind == "number" else "---" for column in table.columns], is_rule=True
    )
    for row in table.rows[:ROWS_MAX]:
        yield _row(row)
    further = len(table.rows) - ROWS_MAX
    if further > 0:
        yield ""
        yield f"and {further:,} more"


def _row(cells: Iterable[str], *, is_rule: bool = False) -> str:
    return f"| {' | '.join(cells if is_rule else map(_cell, cells))} |"


def _cell(text: str) -> str:
    text = printable(text).strip()
    return _escaped(text if len(text) <= _CELL_MAX else f"{text[: _CELL_MAX - 1]}…")


def _escaped(text: str) -> str:
    text = _ENTITY.sub("&amp;", _MEANINGFUL.sub(r"\\\1", text))
    # A character without a width between the sign and the name: nobody gets a message.
    return _MENTION.sub("@\u200b", text)
