"""An experiment: what is compared, from a file or from the command line.

    apiVersion: bayplan.dev/v1alpha1
    kind: Experiment
    metadata: {name: racks}
    spec:
      inputs:                                  # each is one input of every configuration
      - {name: small, paths: [cluster.yaml, workload.yaml]}
      arrivals: {shuffled: true, untilDemand: {resource: cpu, percent: 130}}
      prepare: [typicalPods]                   # what installed packages add to an input
      configurations:
      - {name: packed, file: packed.yaml}
      - {name: spread, config: {apiVersion: …, kind: KubeSchedulerConfiguration, …}}
      seeds: 0..9
      metrics: [placed, waiting]               # left out: all
      topologyKeys: [topology.kubernetes.io/zone]
      baseline: packed                         # left out: the first

Paths are relative to the file. The file is read to its end, and all problems are reported together.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, dataclass_transform

from msgspec import Struct, field

from bayplan.comparison.metrics.scheduling import Arrivals
from bayplan.config.decoding import decode
from bayplan.problems import Problem, wrong
from bayplan.sim.input.errors import InputErrors
from bayplan.sim.input.sources import OWN_API_VERSION
from bayplan.yaml_documents import Document, DocumentError, load_documents

KIND = "Experiment"
DEFAULT_TOPOLOGY_KEYS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The base of all parts of the document."""


class InputSpec(_Part):
    paths: tuple[str, ...]
    name: str = ""


class ConfigurationSpec(_Part):
    """A file, or the configuration itself; with neither, the default configuration."""

    name: str = ""
    file: str | None = None
    config: dict[str, Any] | None = None
    feature_gates: str = ""
    kubernetes: str = ""


class ExperimentSpec(_Part):
    configurations: tuple[ConfigurationSpec, ...]
    #: The inputs; none: those of the command line.
    inputs: tuple[InputSpec, ...] = ()
    #: "arrivals" or "trace", as for `simulate --time`.
    time: str = "arrivals"
    arrivals: Arrivals = Arrivals()
    prepare: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    seeds: str | int | tuple[int, ...] = 0
    metrics: tuple[str, ...] = ()
    topology_keys: tuple[str, ...] = DEFAULT_TOPOLOGY_KEYS
    baseline: str = ""


class Metadata(_Part):
    name: str = ""


class ExperimentDocument(_Part):
    spec: ExperimentSpec
    api_version: str = OWN_API_VERSION
    kind: str = KIND
    metadata: Metadata = field(default_factory=Metadata)


def is_experiment(path: str) -> bool:
    """Whether a file is meant to be an experiment. Unreadable files are not."""
    if Path(path).suffix.lower() not in (".yaml", ".yml", ".json") or not Path(path).is_file():
        return False
    try:
        documents = load_documents(Path(path).read_bytes(), path)
    except (OSError, DocumentError):
        return False
    return any(isinstance(d.value, dict) and d.value.get("kind") == KIND for d in documents)


def read_experiment(path: str, errors: InputErrors) -> ExperimentDocument | None:
    """The document of a file, with absolute paths; None if it is invalid."""
    try:
        documents = load_documents(Path(path).read_bytes(), path)
    except OSError as problem:
        errors.add(path, f"cannot be read: {problem.strerror}")
        return None
    except DocumentError as problem:
        errors.add(path, str(problem))
        return None
    if len(documents) != 1:
        errors.add(path, f"found {len(documents)} documents, wanted one {KIND}")
        return None
    return _decoded(documents[0], path, errors)


def _decoded(document: Document, path: str, errors: InputErrors) -> ExperimentDocument | None:
    document_or_none, problems = decode(document.value, ExperimentDocument, "")
    if document_or_none is not None:
        problems += _problems(document_or_none)
    errors.add_all(path, problems)
    return (
        None
        if document_or_none is None or problems
        else _under(document_or_none, Path(path).parent)
    )


def _problems(document: ExperimentDocument) -> list[Problem]:
    problems: list[Problem] = []
    spec = document.spec
    if document.api_version != OWN_API_VERSION:
        problems.append(wrong("apiVersion", document.api_version, OWN_API_VERSION))
    if spec.time not in ("arrivals", "trace"):
        problems.append(wrong("spec.time", spec.time, '"arrivals" or "trace"'))
    if not spec.configurations:
        problems.append(wrong("spec.configurations", None, "one configuration or more"))
    for index, one in enumerate(spec.configurations):
        path = f"spec.configurations[{index}]"
        if one.file is not None and one.config is not None:
            problems.append(Problem(path, "has file and config", "wanted one of them"))
        if not one.name and one.file is None and len(spec.configurations) > 1:
            problems.append(wrong(f"{path}.name", one.name, "a name"))
    demand = spec.arrivals.until_demand
    if demand is not None and not 0 < demand.percent <= 100_000:
        at = "spec.arrivals.untilDemand.percent"
        problems.append(wrong(at, demand.percent, "a percentage above 0, such as 130"))
    return problems


def _under(document: ExperimentDocument, folder: Path) -> ExperimentDocument:
    """The document with paths relative to the current folder."""
    spec = document.spec

    def placed(paths: Sequence[str]) -> tuple[str, ...]:
        return tuple(str(folder / path) for path in paths)

    return ExperimentDocument(
        metadata=document.metadata,
        spec=ExperimentSpec(
            inputs=tuple(InputSpec(name=i.name, paths=placed(i.paths)) for i in spec.inputs),
            configurations=tuple(_placed(one, folder) for one in spec.configurations),
            plugins=placed(spec.plugins),
            time=spec.time,
            arrivals=spec.arrivals,
            prepare=spec.prepare,
            seeds=spec.seeds,
            metrics=spec.metrics,
            topology_keys=spec.topology_keys,
            baseline=spec.baseline,
        ),
    )


def _placed(one: ConfigurationSpec, folder: Path) -> ConfigurationSpec:
    return ConfigurationSpec(
        name=one.name or (Path(one.file).stem if one.file else "default"),
        file=None if one.file is None else str(folder / one.file),
        config=one.config,
        feature_gates=one.feature_gates,
        kubernetes=one.kubernetes,
    )
