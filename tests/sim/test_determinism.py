"""A run depends on its inputs and its seed only."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bayplan.sim.output.run_folder import RunFolder
from tests.kit.manifests import Content, node, pod
from tests.sim.manifests import controller, scenario

SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


def busy_cluster() -> list[Content]:
    """Ties, labels in sets, pods that wait, retries, controllers, and events."""
    nodes = [node(f"n{i}", labels={"zone": "abc"[i % 3], "disk": "xy"[i % 2]}) for i in range(9)]
    spread = [
        pod(f"s{i}", labels={"app": "web"}, topologySpreadConstraints=[SPREAD]) for i in range(9)
    ]
    large = [pod(f"l{i}", cpu="3") for i in range(12)]
    gang = [group(2), *(member(f"g{i}", f"{i + 1}00m") for i in range(6))]
    events = [
        {
            "at": "5s",
            "patch": [
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": "n1", "labels": {"zone": "c"}},
                }
            ],
        },
        {
            "at": "9s",
            "delete": [
                {"kind": "Pod", "name": "s3"},
                {"apiVersion": "v1", "kind": "Node", "name": "n7"},
            ],
        },
        {"at": "20s", "create": [node("late"), pod("after")]},
        # Members that waited one by one now wait as a group.
        {"at": "21s", "patch": [group(7)]},
        {"at": "30s", "create": [member("g6", "1")]},
    ]
    return [*nodes, *spread, *large, *gang, controller("Deployment", replicas=6), scenario(*events)]


def group(minimum: int) -> Content:
    meta = {"name": "gang", "namespace": "default"}
    kind = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup"}
    return {**kind, "metadata": meta, "spec": {"minMember": minimum}}


def member(name: str, cpu: str) -> Content:
    labels = {"scheduling.x-k8s.io/pod-group": "gang"}
    return pod(name, labels=labels, cpu=cpu)


def bayplan(*arguments: str, hash_seed: str) -> bytes:
    """Standard output of a process of its own."""
    completed = subprocess.run(
        [sys.executable, "-c", "from bayplan.cli import main; main()", *arguments],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=False,
        timeout=100,
    )
    assert completed.returncode == 0, completed.stderr.decode()
    return completed.stdout


def simulated(path: Path, *options: str, hash_seed: str = "0") -> dict[str, Any]:
    """The output for the busy cluster, without its wall-clock time."""
    source = path / "input.yaml"
    source.write_text("\n---\n".join(map(json.dumps, busy_cluster())))
    output = bayplan("simulate", str(source), "-o", "json", *options, hash_seed=hash_seed)
    summary = json.loads(output)
    del summary["wallSeconds"]
    return summary


def test_two_processes_with_different_hash_seeds_decide_equally(tmp_path: Path) -> None:
    first = simulated(tmp_path, "--seed", "3", hash_seed="1")
    assert first["placements"]
    assert first["unschedulable"]
    assert simulated(tmp_path, "--seed", "3", hash_seed="4711") == first


def test_another_seed_breaks_ties_differently(tmp_path: Path) -> None:
    first, other = simulated(tmp_path, "--seed", "3"), simulated(tmp_path, "--seed", "4")
    assert first["digest"] != other["digest"]
    assert first["placements"] != other["placements"]
    assert (first["seed"], other["seed"]) == (3, 4)


def test_writing_a_run_folder_does_not_change_the_run(tmp_path: Path) -> None:
    stored = simulated(tmp_path, "--out", str(tmp_path / "run"))
    assert stored == simulated(tmp_path)
    result = RunFolder(tmp_path / "run").result()
    assert result is not None
    assert result.digest == stored["digest"]


@pytest.mark.parametrize("attempt", ["first", "last"])
def test_an_attempt_of_a_stored_run_is_the_same_in_another_process(
    tmp_path: Path, attempt: str
) -> None:
    """`why --node` compares the repeated attempt with the journal, and says if they differ."""
    simulated(tmp_path, "--out", str(tmp_path / "run"), hash_seed="1")
    lines = (tmp_path / "run/journal.jsonl").read_text().splitlines()
    records = [r for r in map(json.loads, lines) if r["type"] == "attempt"]
    record = records[0 if attempt == "first" else -1]
    number, folder = str(record["attempt"]), str(tmp_path / "run")
    options = ("--run", folder, "--node", "n2", "--attempt", number)
    message = bayplan("why", record["pod"], *options, hash_seed="99").decode()
    assert f"attempt {number} at {record['pod']}" in message
    assert "differs from the record" not in message
