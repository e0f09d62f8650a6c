"""Scenario files for tests, and functions that run them under virtual time."""

from pathlib import Path
from typing import Any

import yaml

from bayplan.clock import ManualClock
from bayplan.perf.planning import Plan, RefusedWorkload, Selection, Setting, plan_all
from bayplan.perf.reading import ReadCase, read_files
from bayplan.perf.running import WorkloadOutcome, WorkloadRun
from bayplan.plugins.registry import Registry
from bayplan.sim.input.errors import InputErrors
from bayplan.sim.loop import run

Value = dict[str, Any]

SMALL_POD = """
apiVersion: v1
kind: Pod
metadata: {generateName: pod-}
spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}
"""
LARGE_POD = SMALL_POD.replace("cpu: 1", "cpu: 64")


def op(opcode: str, **fields: Any) -> Value:
    return {"opcode": opcode, **fields}


def case(*operations: Value, params: Value | None = None, **fields: Any) -> Value:
    """A test case of one workload."""
    workloads = [{"name": "small", "params": params or {}}]
    return {
        "name": "Case",
        "workloadTemplate": list(operations),
        "workloads": workloads,
        **fields,
    }


def write_cases(folder: Path, *cases: Any, **files: str) -> Path:
    """Write a file of test cases and further files beside it: ``pod=…`` becomes pod.yaml."""
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    path = folder / "performance-config.yaml"
    path.write_text(yaml.safe_dump(list(cases)))
    return path


def read(path: Path) -> list[ReadCase]:
    errors = InputErrors()
    cases = read_files([str(path)], errors)
    errors.raise_if_any()
    return cases


def complaints_about(path: Path) -> str:
    """The message about a file that must be refused, without the file's name."""
    errors = InputErrors()
    read_files([str(path)], errors)
    try:
        errors.raise_if_any()
    except ValueError as problem:
        return str(problem).replace(f"{path}: ", "")
    raise AssertionError("nothing was wrong")


def planned(path: Path, **setting: Any) -> list[Plan | RefusedWorkload]:
    return plan_all(read(path), Selection(), Setting(Registry(), **setting))


def plan(path: Path, **setting: Any) -> Plan:
    (result,) = planned(path, **setting)
    assert isinstance(result, Plan), result
    return result


def refusal(path: Path, **setting: Any) -> str:
    (refused,) = planned(path, **setting)
    assert isinstance(refused, RefusedWorkload)
    return "\n".join(refused.reasons)


def run_of(path: Path, clock: ManualClock, **options: Any) -> WorkloadRun:
    return WorkloadRun(plan(path), Registry(), clock, **options)


def run_cases(path: Path, **options: Any) -> WorkloadOutcome:
    """Run a file's only workload under virtual time. Returns its outcome."""
    clock = ManualClock()
    return run(run_of(path, clock, **options).play(), clock)


def pod_with_spec(**spec: Any) -> Value:
    """The manifest of a pod."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
