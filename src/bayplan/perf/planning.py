"""The workloads to run: selection by name and label filter, requirements, and plans.

A plan contains everything that a workload needs, checked before anything runs. A workload that
cannot run here is a `RefusedWorkload` with its reasons; the others run all the same. Reasons are: a
missing parameter, a file with an unknown field, or a feature gate that is locked. Upstream's files
have some of each.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from bayplan.adapters.embedded.api_validation import problems
from bayplan.config import ConfigError, SchedulerConfig, config_from, load_config
from bayplan.config.feature_gates import FeatureGates
from bayplan.config.gate_effects import not_built
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.perf.manifests import ManifestError, scope_fault
from bayplan.perf.parameters import filled_in
from bayplan.perf.reading import ReadCase
from bayplan.perf.scenario_files import ScenarioFiles
from bayplan.perf.schema import CreateAny, NotSupported, Operation, UpdateAny, Workload
from bayplan.plugins.registry import Registry
from bayplan.profile.resolved_config import resolve

# ---- selecting ------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Selection:
    """``names``: patterns of which one occurs in "TestCase/Workload"; none: all names.

    ``label_filter``: upstream's -perf-scheduling-label-filter: labels that must be there, those
    with "-" (or "!") in front must not, separated by commas.
    """

    names: Sequence[re.Pattern[str]] = ()
    label_filter: str = ""

    def takes(self, name: str, labels: Iterable[str]) -> bool:
        """``labels``: those of the test case and of the workload."""
        if self.names and not any(pattern.search(name) for pattern in self.names):
            return False
        present = set(labels)
        return all(_holds(part.strip(), present) for part in self.label_filter.split(","))


def _holds(part: str, present: set[str]) -> bool:
    if not part:
        return True
    if part[0] in "-!":
        return part[1:] not in present
    return part.removeprefix("+") in present


# ---- needs ----------------------------------------------------------------------------------


def features_missing(gates: FeatureGates) -> Iterator[str]:
    """The gates that a workload sets and that are not built."""
    for name, missing in not_built(gates):
        state = "on" if gates.enabled(name) else "off"
        yield f"the feature gate {name} is {state}, which is not built yet: {missing}"


# ---- planning -------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One workload, ready to run."""

    name: str
    workload: Workload
    operations: Sequence[Operation]
    manifests: ScenarioFiles
    config: SchedulerConfig


@final
@dataclass(frozen=True, slots=True)
class RefusedWorkload:
    """A workload that cannot be run here, and why."""

    name: str
    reasons: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """The options of the command line for the schedulers of all workloads."""

    registry: Registry
    #: The configuration that replaces those of the files: its text and its place.
    config: SchedulerConfig | None = None
    feature_gates: str = ""


def plan_all(
    cases: Iterable[ReadCase], selection: Selection, setting: Setting
) -> list[Plan | RefusedWorkload]:
    """The selected workloads in the order of the files."""
    plans: list[Plan | RefusedWorkload] = []
    for case in cases:
        for index, workload in enumerate(case.case.workloads):
            name = f"{case.case.name}/{workload.name}"
            if selection.takes(name, (*case.case.labels, *workload.labels)):
                plans.append(_planned(case, index, setting))
    return plans


def _planned(case: ReadCase, index: int, setting: Setting) -> Plan | RefusedWorkload:
    workload = case.case.workloads[index]
    name = f"{case.case.name}/{workload.name}"
    path = f"{case.path}.workloads[{index}]"
    operations, wrong = filled_in(case.operations, workload.params, path)
    if wrong:
        return RefusedWorkload(name, tuple(f"{case.source}: {problem}" for problem in wrong))
    manifests = ScenarioFiles(case.source.parent, case.case.default_pod_template_path)
    try:
        _check(operations, manifests)
        config = _config(case, workload, setting)
    except ManifestError as problem:
        return RefusedWorkload(name, (f"{case.source}: {path}: {problem}",))
    except ConfigError as problem:
        return RefusedWorkload(name, tuple(str(problem).splitlines()))
    reasons = [
        *_not_supported(operations),
        *features_missing(config.gates),
    ]
    if reasons:
        return RefusedWorkload(name, tuple(dict.fromkeys(reasons)))
    return Plan(
        name=name,
        workload=workload,
        operations=operations,
        manifests=manifests,
        config=config,
    )


def _not_supported(operations: Iterable[Operation]) -> Iterator[str]:
    for operation in operations:
        if isinstance(operation, NotSupported):
            yield f"the operation {operation.opcode} is not supported"


def _check(operations: Iterable[Operation], manifests: ScenarioFiles) -> None:
    """Look at an example of each object of a workload. Raises ManifestError for an invalid one."""
    for operation in operations:
        for file, content in manifests.examples(operation):
            where = f"{file}: " if file else ""
            if isinstance(operation, CreateAny | UpdateAny):
                fault = scope_fault(content, operation.namespace)
                if fault is not None:
                    raise ManifestError(f"{where}{fault}")
            meta = {"name": "any", **(content.get("metadata") or {})}
            wrong = problems({**content, "metadata": meta})
            if wrong:
                raise ManifestError(f"{where}{wrong[0]}")


def _config(case: ReadCase, workload: Workload, setting: Setting) -> SchedulerConfig:
    """The configuration of a workload. Feature gates of the workload go before those of the test
    case, and those of the command line before both. Raises ConfigError."""
    feature_gates = {**case.case.feature_gates, **workload.feature_gates}
    gates = [f"{name}={str(value).lower()}" for name, value in feature_gates.items()]
    flags = ",".join(filter(None, (*gates, setting.feature_gates)))
    if setting.config is not None:
        own = setting.config
        config = load_config(own.text, own.source, flags)
    elif case.case.scheduler_config_path:
        file = case.source.parent / case.case.scheduler_config_path
        try:
            text = file.read_bytes()
        except OSError as problem:
            raise ManifestError(f"{file}: cannot be read: {problem.strerror}") from None
        config = load_config(text, str(file), flags)
    else:
        config = config_from(DEFAULT_CONFIG, "", flags)
    resolve(config, setting.registry)
    return config
