"""The upstream workloads that run, and the exceptions."""

from pathlib import Path

import pytest
import yaml

from bayplan.plugins.registry import default_registry
from benchmarks.bench_upstream import cases_of, exception_of, lines_of, results_of, smallest_of

NODES = {"opcode": "createNodes", "count": 2, "nodeTemplatePath": "node.yaml"}
PODS = {"opcode": "createPods", "countParam": "$pods", "podTemplatePath": "pod.yaml"}


def folder_with(path: Path, name: str, *workloads: dict[str, object]) -> Path:
    """A folder like upstream's, with one test case."""
    folder = path / "basic"
    folder.mkdir()
    case = {"name": name, "workloadTemplate": [NODES, PODS], "workloads": [*workloads]}
    (folder / "performance-config.yaml").write_text(yaml.safe_dump([case]))
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    node = {"metadata": {"generateName": "node-"}, "status": {"capacity": room}}
    (folder / "node.yaml").write_text(yaml.safe_dump(node | {"apiVersion": "v1", "kind": "Node"}))
    spec = {"containers": [{"name": "c", "image": "x"}]}
    pod = {"metadata": {"generateName": "pod-"}, "spec": spec}
    (folder / "pod.yaml").write_text(yaml.safe_dump(pod | {"apiVersion": "v1", "kind": "Pod"}))
    return path


def workload(name: str, *labels: str, **params: int) -> dict[str, object]:
    return {"name": name, "labels": [*labels], "params": params or {"pods": 3}}


def test_the_smallest_workloads_run_and_the_larger_ones_are_planned(tmp_path: Path) -> None:
    small, large = workload("small", "integration-test", "short"), workload("large", "performance")
    folder = folder_with(tmp_path, "Basic", large, small)
    (case,) = cases_of(folder)
    completed = results_of(case, folder, default_registry(()))
    assert {one.name: one.has_run for one in completed.workloads} == {
        "Basic/large": False,
        "Basic/small": True,
    }
    assert not any(one.problem or one.exception for one in completed.workloads)
    assert "| basic | 1 | 1 | 2 | 2 |" in lines_of([completed], "1.37.0")


def test_without_labels_the_first_workload_runs(tmp_path: Path) -> None:
    (case,) = cases_of(folder_with(tmp_path, "Basic", workload("a"), workload("b")))
    assert smallest_of(case) == {"Basic/a"}


@pytest.mark.parametrize(
    ("name", "pods", "problem"),
    [
        ("Basic", "mods", 'no "pods"'),
        ("NodeDeclaredFeaturesEnabled", "mods", ""),
        ("NodeDeclaredFeaturesEnabled", "pods", "it is listed as an exception, and can run"),
    ],
)
def test_a_workload_that_cannot_run_must_be_an_exception(
    tmp_path: Path, name: str, pods: str, problem: str
) -> None:
    folder = folder_with(tmp_path, name, workload("a", **{pods: 1}))
    (case,) = cases_of(folder)
    (result,) = results_of(case, folder, default_registry(())).workloads
    assert problem in result.problem
    assert bool(result.problem) == bool(problem)


def test_exceptions_are_patterns_of_names() -> None:
    assert "numNodeDeclaredFeatures" in exception_of("NodeDeclaredFeaturesEnabled/fast")
    assert not exception_of("SchedulingBasic/5Nodes")
