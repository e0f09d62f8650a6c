"""Table: the one table of all answers, laid out for the width that a terminal has.

A table that fits is printed as it is. Otherwise four things happen, one after the other, until it
fits. Columns without any content are left out. The suffix that all names of nodes share is left out
and printed once below the table, and of several examples the first is shown. Columns of text become
narrower, down to a readable width, and wrap between words; lines are cut, with an ellipsis. A table
with a column for each of several nodes is divided into two. At last, long words and then names are
broken, behind a dash, a dot, a slash or an underscore.
"""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, Literal, NamedTuple, TypeVar, final

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group
from rich.table import Table as RichTable
from rich.text import Text

from bayplan.answers.names import common_suffix
from bayplan.printable import printable

T = TypeVar("T")

#: The blank line between a table and the next part.
BLANK = Text()
#: text wraps between words, a line is cut, a name stays whole, a number is on the right. Examples
#: are names with a comma between them.
Kind = Literal["text", "line", "name", "examples", "number"]
#: Blanks between two columns.
_GAP = 3
#: Columns do not become narrower than this, in two stages.
_READABLE, _NARROW = 24, 12
#: A word with the blanks behind it.
_WORD = re.compile(r"\S*\s*")
#: Where a name may be broken: behind a dash, a dot, a slash or an underscore,
#: and between words in camel case.
_PIECE = re.compile(r"[^-./_\s]*?(?:[-./_\s]|(?<=[a-z])(?=[A-Z])|$)")


class Column(NamedTuple):
    """The heading of a column, and what its cells are."""

    heading: str
    kind: Kind = "text"
    #: Whether the heading is the name of a node.
    is_node: bool = False


def number_columns(*headings: str) -> list[Column]:
    """Columns of numbers."""
    return [Column(heading, "number") for heading in headings]


def name_columns(*headings: str) -> list[Column]:
    """Columns of names of objects."""
    return [Column(heading, "name") for heading in headings]


def node_columns(headings: Iterable[str]) -> list[Column]:
    """Columns of numbers, one for each of these nodes."""
    return [Column(heading, "number", is_node=True) for heading in headings]


@final
class Table:
    """Rows below headings."""

    def __init__(self, *columns: str | Column) -> None:
        self.columns = [c if isinstance(c, Column) else Column(c) for c in columns]
        self.rows: list[tuple[str, ...]] = []
        #: Whether names stay whole and lines are not cut, whatever the width is.
        self.is_wide = False
        self._bold_rows: set[int] = set()

    def add_row(self, *cells: str, is_bold: bool = False) -> None:
        assert len(cells) == len(self.columns), "a cell for each column"
        if is_bold:
            self._bold_rows.add(len(self.rows))
        self.rows.append(tuple(cells))

    @property
    def headings(self) -> list[str]:
        return [column.heading for column in self.columns]

    # ---- layout -----------------------------------------------------------------------------

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        layout = _Layout(self, options.max_width)
        empty = set() if layout.is_whole or self.is_wide else self._empty_columns()
        if empty:
            yield self._without(empty)
            return
        if not layout.is_readable and sum(column.is_node for column in self.columns) > 1:
            first, second = self._halves()
            yield from (first, BLANK, second)
            return
        drawn = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for column, heading, width in zip(
            self.columns, layout.headings, layout.widths, strict=True
        ):
            is_cut = column.kind == "line" and not self.is_wide
            drawn.add_column(
                _lines(heading, width),
                justify="right" if column.kind == "number" else "left",
                overflow="ellipsis" if is_cut else "fold",
                no_wrap=is_cut,
                width=width,
            )
        for index, row in enumerate(layout.rows):
            cells = (
                Text(cell) if column.kind == "line" else _lines(cell, width)
                for column, cell, width in zip(self.columns, row, layout.widths, strict=True)
            )
            drawn.add_row(*cells, style="bold" if index in self._bold_rows else None)
        yield drawn
        if layout.suffix:
            yield Text(f"names without {layout.suffix}")

    def _empty_columns(self) -> set[int]:
        """The columns without any content; of a table without rows, none."""
        columns = zip(*self.rows, strict=True)
        return {index for index, cells in enumerate(columns) if not any(cells)}

    def _halves(self) -> tuple["Table", "Table"]:
        """Two tables with one half of the nodes each, and with all other columns."""
        at = [index for index, column in enumerate(self.columns) if column.is_node]
        halves = at[: len(at) // 2], at[len(at) // 2 :]
        first, second = (self._without(set(half)) for half in reversed(halves))
        return first, second

    def _without(self, columns: Set[int]) -> "Table":
        def remaining(row: Iterable[T]) -> Iterator[T]:
            return (each for index, each in enumerate(row) if index not in columns)

        part = Table(*remaining(self.columns))
        part.is_wide = self.is_wide
        for index, row in enumerate(self.rows):
            part.add_row(*remaining(row), is_bold=index in self._bold_rows)
        return part


@final
class _Layout:
    """The texts of a table and the widths of its columns, for the width of a terminal."""

    def __init__(self, table: Table, width: int) -> None:
        self._columns = table.columns
        self.suffix = ""
        self.headings = [printable(heading) for heading in table.headings]
        self.rows = [[printable(cell) for cell in row] for row in table.rows]
        self.widths = self._natural_widths()
        room = width - _GAP * (len(self._columns) - 1)
        #: Whether the table fits as it is.
        self.is_whole = sum(self.widths) <= room
        if not self.is_whole and not table.is_wide:
            self._leave_out_suffix()
            self._show_first_examples(room)
        first, *further = self._floors()
        _shrink(self.widths, first, room)
        #: Whether the table fits with all names whole and all texts at a readable width.
        self.is_readable = sum(self.widths) <= room
        for floors in further:
            _shrink(self.widths, floors, room)

    def _natural_widths(self) -> list[int]:
        lines = [self.headings, *self.rows]
        return [max(map(cell_len, column), default=0) for column in zip(*lines, strict=True)]

    def _leave_out_suffix(self) -> None:
        is_name = [column.kind == "name" for column in self._columns]
        cells = (c for row in self.rows for c, has in zip(row, is_name, strict=True) if has)
        headings = (h for h, c in zip(self.headings, self._columns, strict=True) if c.is_node)
        self.suffix = suffix = common_suffix([*cells, *headings])
        if suffix:
            self.headings = [
                heading.removesuffix(suffix) if column.is_node else heading
                for heading, column in zip(self.headings, self._columns, strict=True)
            ]
            self.rows = [
                [c.removesuffix(suffix) if has else c for c, has in zip(row, is_name, strict=True)]
                for row in self.rows
            ]
            self.widths = self._natural_widths()

    def _show_first_examples(self, room: int) -> None:
        for index, column in enumerate(self._columns):
            if column.kind == "examples" and sum(self.widths) > room:
                for row in self.rows:
                    first, comma, _ = row[index].partition(", ")
                    row[index] = f"{first}, …" if comma else first
                self.widths = self._natural_widths()

    def _floors(self) -> Iterator[list[int]]:
        """The least width of each column, stage by stage."""
        cells = [max(map(cell_len, column), default=0) for column in self._cells()]
        whole = [
            max(cell, _longest_piece(heading))
            for cell, heading in zip(cells, self.headings, strict=True)
        ]
        texts, all_names = ("text", "line"), ("text", "line", "name", "examples")
        words = [
            max(map(_longest_word, cells), default=0) if column.kind == "text" else 0
            for column, cells in zip(self._columns, self._cells(), strict=True)
        ]
        pieces = [max(map(_longest_piece, cells), default=0) for cells in self._cells()]
        any_width = [0] * len(words)
        for narrow, flexible, word_widths in (
            (_READABLE, texts, words),
            (_NARROW, texts, words),
            # A word that is too long, such as a taint, is broken where a name would be. So both
            # get narrower together: a whole name beside slivers of text has many lines.
            (_NARROW, all_names, pieces),
            (_NARROW, all_names, any_width),
        ):
            yield [
                max(narrow, word) if column.kind in flexible else least
                for column, least, word in zip(self._columns, whole, word_widths, strict=True)
            ]

    def _cells(self) -> list[tuple[str, ...]]:
        """The cells of each column."""
        return list(zip(*self.rows, strict=True)) or [()] * len(self._columns)


def _shrink(widths: list[int], floors: Sequence[int], room: int) -> None:
    """Make the widest columns narrower, none below its floor, until they fit into ``room``."""
    while sum(widths) > room:
        above = [index for index, width in enumerate(widths) if width > floors[index]]
        if not above:
            return
        widest = max(above, key=lambda index: widths[index])
        widths[widest] -= 1


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def _longest_piece(text: str) -> int:
    return max((cell_len(piece.rstrip()) for piece in _PIECE.findall(text)), default=0)


def _lines(text: str, width: int) -> Text | Group:
    """``text`` on lines of at most ``width``: broken behind blanks, and within a longer word behind
    dashes, dots and slashes."""
    if cell_len(text) <= width:
        return Text(text)
    lines = [""]
    for piece in _pieces(text, width):
        if lines[-1] and cell_len(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return Group(*(Text(line.rstrip()) for line in lines))


def _pieces(text: str, width: int) -> Iterator[str]:
    for word in _WORD.findall(text):
        yield from [word] if cell_len(word.rstrip()) <= width else _PIECE.findall(word)
