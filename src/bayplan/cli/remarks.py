"""Lines of a command on standard error, and its exit codes."""

import sys
from typing import NoReturn

import click

from bayplan.printable import printable

#: The run ended and an attempt failed with an error, or the compared runs differ.
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
#: The exit code that a shell gives a program ended by SIGINT.
EXIT_INTERRUPTED = 130


def fail(text: str) -> NoReturn:
    """Print an error and end the process."""
    remark(text)
    sys.exit(EXIT_BAD_INPUT)


def remark(text: str) -> None:
    """Print a line on standard error."""
    for line in text.split("\n"):
        click.echo(f"bayplan: {printable(line)}", err=True)
