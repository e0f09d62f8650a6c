"""How a command ends when its input is bad: lines on standard error, exit code 2."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import click

from bayplan.config import ConfigError, Problem, SchedulerConfig, config_from, load_config
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.plugins.registry import Registry, default_registry
from bayplan.printable import printable
from bayplan.sim.input.inputs import InputError
from bayplan.sim.output.run_folder import RunFolderError

#: The run ended and an attempt failed with an error, or the compared runs differ.
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
#: The exit code that a shell gives a program ended by SIGINT.
EXIT_INTERRUPTED = 130
STANDARD_INPUT = "-"


@contextmanager
def refusals() -> Iterator[None]:
    """Turn errors in the input into lines on standard error and the exit code 2.

    Output of plugins goes to standard error: standard output is for the answer.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (ConfigError, InputError, RunFolderError) as problem:
        fail(str(problem))


def fail(text: str) -> NoReturn:
    """Print an error and end the process."""
    remark(text)
    sys.exit(EXIT_BAD_INPUT)


def remark(text: str) -> None:
    """Print a line on standard error."""
    for line in text.split("\n"):
        click.echo(f"bayplan: {printable(line)}", err=True)


def read_config(
    path: str | None, feature_gates: str, overrides: Mapping[str, Any] = MappingProxyType({})
) -> SchedulerConfig:
    """A configuration file, or the default; ``overrides``: fields that flags set.

    Raises ConfigError.
    """
    if path is None:
        return config_from(DEFAULT_CONFIG, "", feature_gates, overrides)
    if path == STANDARD_INPUT:
        return load_config(sys.stdin.buffer.read(), "standard input", feature_gates, overrides)
    return load_config(_read(path), path, feature_gates, overrides)


def read_plugins(files: Sequence[str]) -> Registry:
    """All plugins, including those in the files. Raises ConfigError."""
    for path in files:
        _read(path)
    return default_registry(files)


def read_text(path: str) -> str:
    """A text file. Raises ConfigError."""
    return _read(path).decode(errors="replace")


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise ConfigError([Problem("", f"cannot be read: {reason}")], path) from None
