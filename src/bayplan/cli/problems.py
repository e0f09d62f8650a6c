"""How a command ends when its input is bad: lines on standard error, exit code 2."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from bayplan.config import ConfigError, Problem, SchedulerConfig, config_from, load_config
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.sim.inputs import InputError
from bayplan.sim.run_folder import RunFolderError

EXIT_BAD_INPUT = 2


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what is wrong with the input into lines and the exit code 2."""
    try:
        yield
    except (ConfigError, InputError, RunFolderError) as problem:
        fail(str(problem))
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


def fail(text: str) -> None:
    """Say what is wrong and end."""
    for line in text.splitlines():
        click.echo(f"bayplan: {line}", err=True)
    sys.exit(EXIT_BAD_INPUT)


def read_config(path: str | None, feature_gates: str) -> SchedulerConfig:
    """A configuration file, or the default. Raises ConfigError."""
    if path is None:
        return config_from(DEFAULT_CONFIG, "", feature_gates)
    try:
        text = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as problem:
        raise ConfigError([Problem("", f"cannot be read: {problem.strerror}")], path) from None
    return load_config(text, path, feature_gates)
