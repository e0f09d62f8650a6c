"""What a command reads before it starts, and how it ends when its input is bad: exit code 2."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bayplan.cli.remarks import EXIT_FAILED, fail, remark
from bayplan.config import ConfigError, Problem, SchedulerConfig, config_from, load_config
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.plugins.registry import Registry, default_registry
from bayplan.ports import RunAborted
from bayplan.problems import BadInputError

STANDARD_INPUT = "-"


@contextmanager
def refusals() -> Iterator[None]:
    """Turn errors in the input into lines on standard error and the exit code 2.

    A broken invariant ends the command with a line, too, and the exit code 1. Output of plugins
    goes to standard error: standard output is for the answer.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except BadInputError as problem:
        fail(str(problem))
    except RunAborted as problem:
        remark(f"a broken invariant ended the run: {problem}")
        sys.exit(EXIT_FAILED)


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
