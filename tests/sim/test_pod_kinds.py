"""A run tells, kind of pods by kind of pods, what reuse of answers spared."""

import json
from pathlib import Path
from typing import Any

from tests.cli.command_line import answer, written


def api_node(name: str, allocatable: dict[str, str]) -> dict[str, Any]:
    status = {"allocatable": allocatable}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def api_pod(name: str, cpu: str) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def kinds(tmp_path: Path, *flags: str) -> list[dict[str, Any]]:
    allocatable = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    nodes = [api_node(f"n{number}", allocatable) for number in range(4)]
    pods = [api_pod(f"small-{number}", "100m") for number in range(6)]
    pods += [api_pod(f"large-{number}", "2") for number in range(2)]
    path = written(tmp_path / "cluster.yaml", *nodes, *pods)
    return json.loads(answer("simulate", path, "--format", "json", *flags))["pod_kinds"]


def test_each_kind_has_its_pods_cycles_and_rows(tmp_path: Path) -> None:
    small, large = kinds(tmp_path)
    assert (small["example"], small["pods"], small["cycles"]) == ("default/small-0", 6, 6)
    assert (large["example"], large["pods"], large["cycles"]) == ("default/large-0", 2, 2)
    assert small["profile"] == "default-scheduler"
    assert small["rows_kept"] > small["rows_asked"] > 0


def test_without_reuse_there_is_nothing_to_tell(tmp_path: Path) -> None:
    told = kinds(tmp_path, "--feature-gates", "OpportunisticBatching=false")
    assert all(kind["rows_kept"] == 0 for kind in told)
