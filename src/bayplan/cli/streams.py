"""The standard streams of a command: a terminal, a pipe or a closed stream."""

import codecs
import io
import os
import sys
from contextlib import suppress
from typing import NoReturn

import click

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
