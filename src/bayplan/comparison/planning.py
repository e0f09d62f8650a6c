"""From an experiment to its jobs: reads and prepares inputs, checks configurations and names.

All problems of an experiment are reported together, before its first run. Seeds are written as
`0..9`, `42` or `1,2,10..12`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec

from bayplan.api.objects import POD, Pod, decode
from bayplan.comparison.experiment import ConfigurationSpec, ExperimentSpec, InputSpec
from bayplan.comparison.extensions import installed_metrics, installed_preparations
from bayplan.comparison.job import Configuration, Job, PluginFile, WatchedMetrics, config_of
from bayplan.comparison.metrics.catalogue import BUILT_IN
from bayplan.comparison.renumbering import name_users
from bayplan.comparison.table import About, ComparedConfiguration
from bayplan.config import ConfigError
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.objects.keys import key_of as object_key_of
from bayplan.plugins.registry import Registry, default_registry
from bayplan.problems import Problem, joined, listed, wrong
from bayplan.profile.resolved_config import resolve
from bayplan.sim.input.errors import InputErrors
from bayplan.sim.input.inputs import InputError, load_inputs
from bayplan.sim.input.workload import Content, Workload, is_pending_pod
from bayplan.state.pods import PodInfo, pod_info

# ---- seeds ----------------------------------------------------------------------------------


EXPECTED_SEEDS = "seeds such as 0..9, or 1,2,5"
#: More seeds are assumed to be a typing error.
SEEDS_MAX = 100_000
_RANGE = re.compile(r"(\d+)(?:\.\.(\d+))?")


def parse_seeds(value: object, path: str) -> tuple[tuple[int, ...], list[Problem]]:
    """The seeds in the order in which they are written, each once, and the problems."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return (value,), []
    if isinstance(value, str):
        return _parsed(value.split(","), value, path)
    if isinstance(value, Sequence):
        return _parsed([str(part) for part in value], value, path)
    return (), [wrong(path, value, EXPECTED_SEEDS)]


def _parsed(
    parts: Sequence[str], value: object, path: str
) -> tuple[tuple[int, ...], list[Problem]]:
    seeds: dict[int, None] = {}
    for part in parts:
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            return (), [wrong(path, value, EXPECTED_SEEDS)]
        first = int(match[1])
        last = int(match[2]) if match[2] is not None else first
        if last < first or last - first >= SEEDS_MAX:
            return (), [wrong(path, part.strip(), f"an ascending range, of {SEEDS_MAX:,} at most")]
        seeds.update(dict.fromkeys(range(first, last + 1)))
    return tuple(seeds), [] if seeds else [wrong(path, None, EXPECTED_SEEDS)]


# ---- planning -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared, and the jobs in the order of the results."""

    inputs: tuple[str, ...]
    configurations: tuple[str, ...]
    seeds: tuple[int, ...]
    baseline: str
    jobs: tuple[Job, ...]
    about: About


def plan(spec: ExperimentSpec, source: str, *, is_strict: bool = False) -> Plan:
    """Raises InputError with all problems. ``source``: the place of the spec, for messages.

    ``is_strict``: unread kinds and unknown fields of the inputs are problems, too.
    """
    errors = InputErrors()
    seeds, problems = parse_seeds(spec.seeds, "spec.seeds")
    errors.add_all(source, problems)
    errors.add_all(source, _names(spec))
    watched = _watched(spec, source, errors)
    files = _plugin_files(spec.plugins, errors)
    configurations = _configurations(spec.configurations, source, errors)
    errors.raise_if_any()
    registry = default_registry([file.path for file in files])
    kinds = {*registry.kinds, *_check(configurations, registry, errors)}

    def read(one: InputSpec) -> Workload:
        return load_inputs(one.paths, time_mode=spec.time, is_strict=is_strict, read_kinds=kinds)

    inputs = [(one, _workload(one, read, spec, source, errors=errors)) for one in spec.inputs]
    errors.raise_if_any()
    jobs = [
        Job(
            input=one.name,
            workload=workload,
            arrivals=spec.arrivals,
            configuration=configuration,
            plugin_files=files,
            seed=seed,
            watched=watched,
        )
        for one, workload in inputs
        for configuration in configurations
        for seed in seeds
    ]
    names = tuple(configuration.name for configuration in configurations)
    baseline = spec.baseline or names[0]
    about = About(
        inputs={one.name: one.paths for one in spec.inputs},
        configurations=tuple(
            ComparedConfiguration(one.name, one.source, one.text) for one in configurations
        ),
        plugin_files=tuple(file.path for file in files),
    )
    inputs_names = tuple(one.name for one in spec.inputs)
    return Plan(inputs_names, names, seeds, baseline, tuple(jobs), about)


def _names(spec: ExperimentSpec) -> Iterable[Problem]:
    """Problems of names: missing ones and duplicates."""
    if not spec.inputs:
        yield wrong("spec.inputs", None, "an input here, or --nodes and --pods")
    for path, names in (
        ("spec.inputs", [one.name for one in spec.inputs]),
        ("spec.configurations", [one.name for one in spec.configurations]),
    ):
        for index, name in enumerate(names):
            if name in names[:index]:
                yield wrong(f"{path}[{index}].name", name, "a name that no other has")
    configurations = [one.name for one in spec.configurations]
    if spec.baseline and spec.baseline not in configurations:
        yield wrong("spec.baseline", spec.baseline, listed(configurations), configurations)


def _watched(spec: ExperimentSpec, source: str, errors: InputErrors) -> WatchedMetrics:
    metric_names = [*(one.name for one in BUILT_IN), *installed_metrics()]
    for index, name in enumerate(spec.metrics):
        if name not in metric_names:
            errors.add(
                source, wrong(f"spec.metrics[{index}]", name, listed(metric_names), metric_names)
            )
    return WatchedMetrics(
        metrics=spec.metrics or tuple(metric_names), topology_keys=spec.topology_keys
    )


def _plugin_files(paths: Sequence[str], errors: InputErrors) -> tuple[PluginFile, ...]:
    files: list[PluginFile] = []
    for path in paths:
        content = _read(path, errors)
        if content is not None:
            files.append(PluginFile(path, content))
    return tuple(files)


def _configurations(
    specs: Sequence[ConfigurationSpec], source: str, errors: InputErrors
) -> list[Configuration]:
    configurations: list[Configuration] = []
    for index, one in enumerate(specs):
        text: str | None = None
        origin = source
        if one.file is not None:
            content = _read(one.file, errors)
            text = None if content is None else content.decode("utf-8-sig", "replace")
            origin = one.file
        elif one.config is not None:
            text = msgspec.json.encode(one.config).decode()
            origin = f"{source}: {joined('spec', f'configurations[{index}].config')}"
        configurations.append(
            Configuration(
                name=one.name,
                text=text,
                source=origin,
                feature_gates=one.feature_gates,
                kubernetes=one.kubernetes,
            )
        )
    return configurations


def _check(
    configurations: Sequence[Configuration], registry: Registry, errors: InputErrors
) -> set[str]:
    """Check that each configuration would start with the installed plugins. Returns the kinds of
    pod groups of the configurations."""
    kinds = set[str]()
    for one in configurations:
        try:
            config = config_of(one)
            kinds.update(group_kinds(config.spec.pod_groups.kinds))
            resolve(config, registry)
        except ConfigError as problem:
            for line in str(problem).splitlines():
                errors.add(f"configuration {one.name}", line)
    return kinds


def _workload(
    one: InputSpec,
    read: Callable[[InputSpec], Workload],
    spec: ExperimentSpec,
    source: str,
    *,
    errors: InputErrors,
) -> bytes:
    try:
        workload = read(one)
    except InputError as problem:
        for line in problem.lines:
            errors.add(f"input {one.name}" if one.name else "input", line)
        return b""
    if spec.arrivals.nodes_renumbered:
        _refuse_name_users(workload, source, errors)
    return msgspec.json.encode(_prepared(workload, spec.prepare, source, errors))


def _refuse_name_users(workload: Workload, source: str, errors: InputErrors) -> None:
    first = next(name_users(workload), None)
    if first is not None:
        text = f"found {first}, wanted an input in which nothing names a node"
        errors.add(source, Problem("spec.arrivals.nodesRenumbered", text))


# ---- preparing ------------------------------------------------------------------------------


def _prepared(
    workload: Workload, names: Sequence[str], source: str, errors: InputErrors
) -> Workload:
    """The workload with the objects that preparations add."""
    if not names:
        return workload
    preparations, added = installed_preparations(), list[Content]()
    pods = [_compiled(one) for one in workload.initial if is_pending_pod(one)]
    for index, name in enumerate(names):
        if name not in preparations:
            at = f"spec.prepare[{index}]"
            errors.add(
                source, wrong(at, name, listed(preparations) or "no such name", preparations)
            )
            continue
        added += [dict(content) for content in preparations[name](pods)]
    return msgspec.structs.replace(workload, initial=(*added, *workload.initial))


def _compiled(content: Content) -> PodInfo:
    """A pod without a uid: its name serves as its uid here."""
    key = object_key_of(content)
    meta: dict[str, Any] = {**content["metadata"], "uid": f"{key.namespace}/{key.name}"}
    return pod_info(cast(Pod, decode(POD, {**content, "metadata": meta})))


def _read(path: str, errors: InputErrors) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        errors.add(path, f"cannot be read: {reason}")
        return None
