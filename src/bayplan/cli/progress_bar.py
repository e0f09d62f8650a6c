"""The progress of a long command as a bar on a terminal.

This is a module of its own, because only a terminal needs the parts of rich that draw bars.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def progress_bar(noun: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """A bar on standard error; the function takes the number done and a text beside the bar."""
    columns = (TextColumn(noun), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    text_column = TextColumn("{task.description}")
    with Progress(*columns, text_column, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)

        def update(done: int, text: str) -> None:
            progress.update(task, completed=done, description=text)

        yield update
