"""examples/gangs: two jobs that deadlock pod by pod, but not in one pass."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.command_line import answer
from tests.examples.policies import EXAMPLES

FOLDER = EXAMPLES / "gangs"
JOBS = ("train-a", "train-b")


def simulated(*arguments: Any) -> Any:
    return json.loads(answer("simulate", *arguments, "-o", "json"))


def bound_at(result: Any, job: str) -> list[float | None]:
    """The time of binding of each pod of a job."""
    start = f"default/{job}"
    return [pod["boundAt"] for key, pod in result["pods"].items() if key.startswith(start)]


@pytest.mark.parametrize("options", [(), ("--config", FOLDER / "one_pass.yaml")])
def test_in_one_pass_one_job_runs_after_the_other(options: tuple[Any, ...]) -> None:
    result = simulated(FOLDER, *options)
    assert [bound_at(result, job) for job in JOBS] == [[300.0] * 4, [900.0] * 4]


def test_pod_by_pod_each_job_holds_resources_that_the_other_needs() -> None:
    result = simulated(FOLDER, "--config", FOLDER / "pod_by_pod.yaml")
    assert [bound_at(result, job) for job in JOBS] == [[None] * 4, [None] * 4]
    messages = {pod["message"] for key, pod in result["pods"].items() if "train" in key}
    reason = "rejected due to timeout after waiting 1m0s at plugin Coscheduling"
    assert messages == {f"0/1 nodes are available: 1 {reason}."}


def test_the_example_for_a_cluster_is_placed_as_one_group() -> None:
    """In `deploy/examples`: a PodGroup, and a ReplicaSet whose pods name the PodGroup."""
    folder = EXAMPLES.parent / "deploy" / "examples"
    group, replicas = yaml.safe_load_all((folder / "gang.yaml").read_text(encoding="utf-8"))
    template = replicas["spec"]["template"]
    assert template["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "nginx"
    (container,) = template["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "100m", "memory": "200Mi"}
    assert (group["metadata"]["name"], group["spec"]["minMember"]) == ("nginx", 3)
    result = simulated(folder / "gang.yaml", EXAMPLES / "gang_nodes.yaml")
    assert sorted(result["placements"].values()) == ["n1", "n2", "n3"]
    assert result["podGroups"]["default/nginx"]["phase"] == "Running"


# ---- the generator --------------------------------------------------------------------------


def nodes_of(folder: Path, *gpus: int) -> Path:
    """Write a node list in the format of the trace."""
    lines = [f"node-{n},96000,786432,{count},G2" for n, count in enumerate(gpus)]
    file = folder / "nodes.csv"
    file.write_text("\n".join(["sn,cpu_milli,memory_mib,gpu,model", *lines, ""]))
    return file


def generated(nodes: Path, *options: str) -> str:
    command = [sys.executable, str(FOLDER / "generate.py"), str(nodes), *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_seed_determines_the_scenario(tmp_path: Path) -> None:
    nodes = nodes_of(tmp_path, 8, 8)
    assert generated(nodes, "--seed", "1") == generated(nodes, "--seed", "1")
    assert generated(nodes, "--seed", "1") != generated(nodes, "--seed", "2")


def test_a_gang_has_as_many_members_as_its_quorum(tmp_path: Path) -> None:
    scenario = yaml.safe_load(generated(nodes_of(tmp_path, 8), "--gangs", "30"))
    events = scenario["spec"]["events"]
    assert len(events) == 30
    for group, *members in (event["create"] for event in events):
        assert group["spec"]["minMember"] == len(members)
        (label,) = {
            member["metadata"]["labels"][f"{group_of(group)}/pod-group"] for member in members
        }
        assert label == group["metadata"]["name"]


def group_of(manifest: Any) -> str:
    return manifest["apiVersion"].partition("/")[0]


def test_more_gpus_get_gangs_at_a_higher_rate(tmp_path: Path) -> None:
    few = yaml.safe_load(generated(nodes_of(tmp_path, 8)))["spec"]["events"]
    many = yaml.safe_load(generated(nodes_of(tmp_path, 8, 8, 8, 8)))["spec"]["events"]
    last_few, last_many = (float(events[-1]["at"].removesuffix("s")) for events in (few, many))
    assert last_few == pytest.approx(4 * last_many, rel=1e-4)


@pytest.mark.parametrize("config", ["one_pass", "pod_by_pod"])
def test_generated_gangs_are_placed_in_both_modes(tmp_path: Path, config: str) -> None:
    nodes = nodes_of(tmp_path, *[8] * 20)
    scenario = tmp_path / "gangs.yaml"
    scenario.write_text(generated(nodes, "--gangs", "10"))
    result = simulated(nodes, scenario, "--config", FOLDER / f"{config}.yaml")
    assert not result["unschedulable"]
    assert result["pods"]
    assert all(pod["boundAt"] is not None for pod in result["pods"].values())
