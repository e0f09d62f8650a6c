"""Small comparisons for tests: manifests, configurations, and results without runs."""

import json
from pathlib import Path
from typing import Any

from bayplan.comparison.experiment import ConfigurationSpec, ExperimentSpec, InputSpec
from bayplan.comparison.job import RunResult
from bayplan.comparison.store import Run

API_VERSION = "kubescheduler.config.k8s.io/v1"


def node_with_cpu(name: str, cpu: int = 4, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": str(cpu), "memory": "64Gi", "pods": "10"}},
    }


def pod_with_cpu(name: str, cpu: int = 1) -> dict[str, Any]:
    resources = {"requests": {"cpu": str(cpu)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": resources}]},
    }


def configuration(strategy: str) -> dict[str, Any]:
    """Only NodeResourcesFit scores: "MostAllocated" packs, "LeastAllocated" spreads."""
    scoring = {"type": strategy, "resources": [{"name": "cpu", "weight": 1}]}
    enabled = [{"name": "NodeResourcesFit"}]
    return {
        "apiVersion": API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": enabled}},
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": scoring}}
                ],
            }
        ],
    }


def cluster_file(folder: Path, *extra: dict[str, Any]) -> Path:
    """Three nodes and four pods of one core, in one file."""
    objects = [
        *(node_with_cpu(f"n{i}") for i in range(3)),
        *(pod_with_cpu(f"p{i}") for i in range(4)),
        *extra,
    ]
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return file


def spec(folder: Path, **fields: Any) -> ExperimentSpec:
    """An experiment that compares packing with spreading on `cluster_file`."""
    inputs = (InputSpec(paths=(str(cluster_file(folder)),)),)
    configurations = (
        ConfigurationSpec(name="packed", config=configuration("MostAllocated")),
        ConfigurationSpec(name="spread", config=configuration("LeastAllocated")),
    )
    return ExperimentSpec(**{"inputs": inputs, "configurations": configurations, **fields})


def run(configuration_name: str, seed: int, **metrics: float) -> Run:
    """A run with these metrics, without a simulation."""
    result = RunResult(metrics=metrics, curves={}, digest="", attempts=10, wall_seconds=2.0)
    name = configuration_name
    return Run(key=f"{name}{seed}", input="", configuration=name, seed=seed, result=result)
