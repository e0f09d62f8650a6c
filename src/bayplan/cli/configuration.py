"""The configuration and the plugins that a command uses."""

import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from bayplan.cli.problems import STANDARD_INPUT, read_bytes
from bayplan.config import SchedulerConfig, config_from, load_config
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.plugins.registry import Registry, default_registry


def read_config(
    path: str | None, feature_gates: str, overrides: Mapping[str, Any] = MappingProxyType({})
) -> SchedulerConfig:
    """A configuration file, or the default; ``overrides``: fields that flags set.

    Raises BadInputError.
    """
    if path is None:
        return config_from(DEFAULT_CONFIG, "", feature_gates, overrides)
    if path == STANDARD_INPUT:
        return load_config(sys.stdin.buffer.read(), "standard input", feature_gates, overrides)
    return load_config(read_bytes(path), path, feature_gates, overrides)


def read_plugins(files: Sequence[str]) -> Registry:
    """All plugins, including those in the files. Raises BadInputError."""
    for path in files:
        read_bytes(path)
    return default_registry(files)
