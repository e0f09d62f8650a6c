"""How a command ends when its input is bad, and files that it reads: lines, exit code 2."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from bayplan.cli.streams import EXIT_FAILED, fail, remark
from bayplan.lazy_loader import load
from bayplan.ports import RunAborted
from bayplan.problems import BadInputError

STANDARD_INPUT = "-"


@contextmanager
def refusals() -> Iterator[None]:
    """Turn errors in the input into lines on standard error and the exit code 2.

    A broken invariant ends the command with a line, too, and the exit code 1; `entry` does so for
    every other defect. Output of plugins goes to standard error: standard output is for the answer.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except BadInputError as problem:
        fail(str(problem))
    except RunAborted as problem:
        report = load("bayplan.internal_errors:REPORT")
        line = f"a broken invariant ended the run: {problem}"
        remark(f"{line}; if no plugin of yours did it, {report}")
        sys.exit(EXIT_FAILED)


def read_text(path: str) -> str:
    """A text file. Raises BadInputError."""
    return read_bytes(path).decode(errors="replace")


def read_bytes(path: str) -> bytes:
    """A file. Raises BadInputError."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise BadInputError(f"{path}: cannot be read: {reason}") from None
