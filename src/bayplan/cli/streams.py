"""The standard streams of a command: a terminal, a pipe or a closed stream; and its exit codes.

Standard output is for the answer (`put`), standard error for remarks and errors.
"""

import codecs
import io
import os
import sys
from contextlib import suppress
from typing import NoReturn

import click

from bayplan.printable import printable

#: Replacements of the same width for characters that the terminal does not have.
_LOOKALIKES = str.maketrans({"→": ">", "…": ".", "–": "-"})
_UNKNOWN = "?"
_ERRORS = "bayplan-lookalikes"


def prepare_streams() -> None:
    """Make standard streams that are closed, or cannot write a character, harmless."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    codecs.register_error(_ERRORS, _lookalikes)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERRORS)


def _lookalikes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end].translate(_LOOKALIKES)
    return "".join(c if c.isascii() else _UNKNOWN for c in text), error.end


def put(content: bytes) -> None:
    """Write to standard output; ends the command if that fails."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The reader closed the pipe: `bayplan … | head`.
        _leave_output(0)
    except OSError as problem:
        click.echo(f"bayplan: standard output: cannot be written: {problem.strerror}", err=True)
        _leave_output(1)


def _leave_output(exit_code: int) -> NoReturn:
    """End the process so that Python does not try to write the rest again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(exit_code)


#: The run ended and an attempt failed with an error, or the compared runs differ.
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
#: The cluster cannot be read: no kubeconfig, no answer of its API server, or a refusal.
EXIT_UNREADABLE = 3
#: A question about a workload of which no pod, or not every pod, could be judged.
EXIT_NOT_JUDGED = 4
#: The exit code that a shell gives a program ended by SIGINT.
EXIT_INTERRUPTED = 130


def fail(text: str, exit_code: int = EXIT_BAD_INPUT) -> NoReturn:
    """Print an error and end the process."""
    remark(text)
    sys.exit(exit_code)


def remark(text: str) -> None:
    """Print a line on standard error."""
    for line in text.split("\n"):
        click.echo(f"bayplan: {printable(line)}", err=True)
