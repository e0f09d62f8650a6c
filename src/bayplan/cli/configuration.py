"""The configuration and the plugins that a command uses."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from bayplan.cli.problems import STANDARD_INPUT, read_bytes
from bayplan.config import SchedulerConfig, config_from, load_config
from bayplan.config.kubernetes_versions import KubernetesVersion, requested_version
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.plugins.registry import Registry, default_registry
from bayplan.problems import BadInputError, Problem, suggestion
from bayplan.yaml_documents import load_documents

#: The file of ours beside a configuration. kube-scheduler refuses unknown fields in its own file.
SETTINGS_FILE = "bayplan.yaml"
_SETTINGS = ("kubernetesVersion",)


def read_config(
    path: str | None,
    feature_gates: str,
    overrides: Mapping[str, Any] = MappingProxyType({}),
    *,
    kubernetes: str = "",
) -> SchedulerConfig:
    """A configuration file, or the default; ``overrides``: fields that flags set.

    ``kubernetes``: the version to answer as; "": as the file `bayplan.yaml` beside the
    configuration says. Raises BadInputError.
    """
    version = requested_version(kubernetes, "--kubernetes")
    if path is None:
        return config_from(DEFAULT_CONFIG, "", feature_gates, overrides, kubernetes=version)
    if path == STANDARD_INPUT:
        content, path = sys.stdin.buffer.read(), "standard input"
    else:
        content, version = read_bytes(path), version or _version_beside(Path(path))
    return load_config(content, path, feature_gates, overrides, kubernetes=version)


def _version_beside(path: Path) -> KubernetesVersion | None:
    """The version that the settings beside a configuration name. Raises BadInputError."""
    settings = path.parent / SETTINGS_FILE
    if path.name == SETTINGS_FILE or not settings.is_file():
        return None
    documents = load_documents(read_bytes(str(settings)), str(settings))
    value: Any = documents[0].value if documents else {}
    if not isinstance(value, dict) or len(documents) > 1:
        raise BadInputError(f'{settings}: wanted one document, as kubernetesVersion: "1.36"')
    fields = cast("dict[str, Any]", value)
    for name in fields:
        if name not in _SETTINGS:
            problem = Problem(str(name), "unknown field", suggestion(str(name), _SETTINGS))
            raise BadInputError(f"{settings}: {problem}")
    text = fields.get("kubernetesVersion")
    if text is not None and not isinstance(text, str):
        raise BadInputError(f"{settings}: kubernetesVersion: found {text}; write it in quotes")
    return requested_version(text or "", f"{settings}: kubernetesVersion")


def read_plugins(files: Sequence[str]) -> Registry:
    """All plugins, including those in the files. Raises BadInputError."""
    for path in files:
        read_bytes(path)
    return default_registry(files)
