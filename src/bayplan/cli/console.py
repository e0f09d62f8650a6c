"""Where a command prints what a person reads."""

from rich.console import Console

#: Tables must stay readable when they are piped into a file or a pager.
_PIPED_WIDTH = 160


def reader() -> Console:
    """Standard output: as wide as the terminal, or wide enough where there is none."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(width=_PIPED_WIDTH, highlight=False)
