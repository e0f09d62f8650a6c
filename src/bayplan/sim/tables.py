"""How all tables look: no upright lines, so that they are narrow and easy to copy from."""

from rich import box
from rich.table import Table
from rich.text import Text

#: Between a table and what follows it.
BLANK = Text()


def table(*headings: str, numbers: bool = False) -> Table:
    """``numbers``: all columns but the first are flush right. What is too long is folded, not cut:
    the end of a name is what tells it from others."""
    made = Table(*headings, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for index, column in enumerate(made.columns):
        column.overflow = "fold"
        column.justify = "right" if numbers and index else "left"
    return made
