"""A configuration from text: decoded, with defaults, and with its errors.

The errors stay with the configuration: when its plugins are known, all errors are reported
together. `profile.profiles.resolve` does that, and nothing runs that it has not accepted.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from bayplan.config.decoding import decode
from bayplan.config.feature_gates import (
    FeatureGates,
    default_gates,
    parse_gates,
    resolve_gates,
)
from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion
from bayplan.config.schema import API_VERSION, KIND, KubeSchedulerConfiguration, with_defaults
from bayplan.config.validation import problems_of, version_problems
from bayplan.problems import ConfigError, Problem
from bayplan.yaml_documents import DocumentError, load_documents

FEATURE_GATES_FLAG = "--feature-gates"


#: The configuration if there is no file.
DEFAULT_CONFIG: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}


def _default_spec() -> KubeSchedulerConfiguration:
    return with_defaults(KubeSchedulerConfiguration(api_version=API_VERSION, kind=KIND))


class SchedulerConfig(Struct, frozen=True):
    """A configuration with its defaults. Without arguments: the default configuration."""

    spec: KubeSchedulerConfiguration = field(default_factory=_default_spec)
    gates: FeatureGates = field(default_factory=default_gates)
    #: The name of the source, for messages; and its text.
    source: str = ""
    text: str = ""
    #: The errors that can be found without the plugins.
    problems: tuple[Problem, ...] = ()
    #: Whether the version to answer as was named; otherwise that of a cluster may replace it.
    names_version: bool = False
    #: What depends on the version: (path, gates) of each source, the plain values, and the errors
    #: of everything else.
    gate_sources: tuple[tuple[str, Mapping[str, bool]], ...] = ()
    value: Any = None
    other_problems: tuple[Problem, ...] = ()
    #: Top-level keys that were written.
    written: frozenset[str] = frozenset()
    #: The longest time that a pod waits for an event. In kube-scheduler this is a flag.
    unschedulable_max_seconds: float = 300.0

    @property
    def pod_initial_backoff_seconds(self) -> int:
        return self.spec.pod_initial_backoff_seconds

    @property
    def pod_max_backoff_seconds(self) -> int:
        return self.spec.pod_max_backoff_seconds

    def gate(self, name: str) -> bool:
        """Whether a feature gate is on. Raises KeyError for an unknown gate."""
        return self.gates.enabled(name)


def load_config(
    text: str | bytes,
    source: str,
    feature_gates: str = "",
    overrides: Mapping[str, Any] = MappingProxyType({}),
    *,
    kubernetes: KubernetesVersion | None = None,
) -> SchedulerConfig:
    """A configuration from YAML or JSON.

    ``kubernetes``: the version to answer as; None: the newest, unless a cluster says which.
    ``feature_gates``: as in kube-scheduler's flag.
    ``overrides``: fields that flags set, in the form of a file.

    Raises ConfigError for text that is not a document; other errors stay with the configuration.
    """
    try:
        documents = load_documents(text, source)
    except DocumentError as problem:
        place = f"line {problem.line}" if problem.line is not None else ""
        raise ConfigError([Problem(place, problem.message)], source) from None
    if len(documents) != 1:
        problem = Problem("", f"{len(documents) or 'no'} documents", f"wanted one {KIND}")
        raise ConfigError([problem], source)
    value = documents[0].value
    config = config_from(value, source, feature_gates, overrides, kubernetes=kubernetes)
    return replace(config, text=text if isinstance(text, str) else text.decode("utf-8-sig"))


def config_from(
    value: Any,
    source: str = "",
    feature_gates: str = "",
    overrides: Mapping[str, Any] = MappingProxyType({}),
    *,
    kubernetes: KubernetesVersion | None = None,
) -> SchedulerConfig:
    """A configuration from plain values, as decoded from YAML or JSON; see `load_config`."""
    decoded, problems = decode(_over(value, overrides), KubeSchedulerConfiguration, "")
    spec = with_defaults(decoded or KubeSchedulerConfiguration())
    _add(problems, problems_of(spec))
    from_flag, bad_parts = parse_gates(feature_gates, FEATURE_GATES_FLAG)
    problems += bad_parts
    written = frozenset(cast("dict[str, Any]", value) if isinstance(value, dict) else ())
    config = SchedulerConfig(
        spec=spec,
        source=source,
        written=written,
        names_version=kubernetes is not None,
        gate_sources=(("featureGates", spec.feature_gates), (FEATURE_GATES_FLAG, from_flag)),
        value=value,
        other_problems=tuple(problems),
    )
    return in_version(config, kubernetes or NEWEST)


def in_version(config: SchedulerConfig, version: KubernetesVersion) -> SchedulerConfig:
    """The configuration as kube-scheduler of a version reads it."""
    gates, bad_gates = resolve_gates(*config.gate_sources, version=version)
    problems = [*config.other_problems, *bad_gates]
    _add(problems, version_problems(config.value, gates.behaviour))
    return replace(config, gates=gates, problems=tuple(problems))


def _over(value: Any, overrides: Mapping[str, Any]) -> Any:
    """``value`` with some fields replaced, mappings field by field. The decoder reports a value
    that is not a mapping."""
    if not overrides or not isinstance(value, dict):
        return value
    merged = dict(cast("dict[str, Any]", value))
    for name, override in overrides.items():
        if isinstance(override, Mapping):
            nested = cast("Mapping[str, Any]", override)
            merged[name] = _over(merged.get(name) or {}, nested)
        else:
            merged[name] = override
    return merged


def _add(problems: list[Problem], more: Iterable[Problem]) -> None:
    """Add problems, without those whose path is within the path of a known problem."""
    paths = {problem.path for problem in problems}
    problems += [p for p in more if not any(_is_within(p.path, path) for path in paths)]


def _is_within(path: str, whole: str) -> bool:
    return not whole or path == whole or path.startswith((f"{whole}.", f"{whole}["))
