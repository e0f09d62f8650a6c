"""The progress of a long command as one line on a terminal.

This is a module of its own, because only a terminal needs the parts of rich that draw bars.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def progress_bar(doing: str, noun: str = "") -> Iterator[Callable[[int, int, str], None]]:
    """A line on standard error that is gone at the end: what is being done, how much of it, and for
    how long. The function takes the number done, the total (0: it is not known) and a text."""
    count_column = TextColumn("{task.fields[count]}")
    columns = (SpinnerColumn(), TextColumn(doing), BarColumn(20), count_column, TimeElapsedColumn())
    text_column = TextColumn("{task.description}")
    with Progress(*columns, text_column, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None, count="")

        def update(done: int, total: int, text: str = "") -> None:
            of_total = f" of {total:,}" if total else ""
            count = f"{done:,}{of_total} {noun}"
            progress.update(
                task, completed=done, total=total or None, description=text, count=count
            )

        yield update
