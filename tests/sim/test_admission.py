"""Admission in simulations and questions: what a run places, and what the answers say."""

from pathlib import Path
from typing import Any

import pytest

import bayplan
from bayplan.sim.input.errors import InputError
from bayplan.whatif.cluster import Cluster
from tests.cli.command_line import answer, write_objects
from tests.kit.manifests import container, node, pod
from tests.sim.manifests import scenario
from tests.whatif.clusters import deployment

CASES = Path(__file__).parents[1] / "cases"
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "team", "namespace": "default"},
    "spec": {"hard": {"requests.cpu": "3"}},
}
LIMITS = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "lr", "namespace": "default"},
    "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]},
}
TWO_CPUS = container(resources={"limits": {"cpu": "2"}})
LARGE = node("n1", status={"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}})


def placements(*inputs: Any, **options: Any) -> dict[str, str | None]:
    return dict(bayplan.simulate(*inputs, **options).summary.placements)


def test_a_runtime_class_decides_where_its_pods_run() -> None:
    placed = placements(CASES / "131-rcpods.yaml")
    assert placed == {"default/web-1": "n1", "default/web-2": "n1"}


def test_the_default_request_of_a_limit_range_counts() -> None:
    result = bayplan.simulate(CASES / "11-podtruth.yaml")
    assert dict(result.summary.placements) == {"default/a": "n1", "default/b": "n1"}
    assert list(result.summary.unschedulable) == ["default/d"]


def test_fit_says_how_many_pods_a_quota_refuses_and_why() -> None:
    with Cluster.from_files(LARGE, QUOTA, pod("a", nodeName="n1")) as cluster:
        answered = cluster.fit(deployment("web", 5))
    [note] = [each for each in answered.notes if "cannot be created" in each]
    assert note.startswith("3 pods of ReplicaSet default/web-")
    assert note.endswith(
        " cannot be created: forbidden: exceeded quota: team, requested: requests.cpu=1, "
        "used: requests.cpu=3, limited: requests.cpu=3"
    )
    assert [each.node for each in answered.pods if each.node] == ["n1", "n1"]
    assert len(answered.pods) == 5


def test_fit_applies_the_limit_ranges_and_runtime_classes_of_the_cluster() -> None:
    with Cluster.from_files(LARGE, LIMITS) as cluster:
        answered = cluster.fit(pod("b", containers=[TWO_CPUS]))
    [note] = [each for each in answered.notes if "forbidden" in each]
    assert note.endswith("maximum cpu usage per Container is 1, but limit is 2")


def test_a_scenario_names_the_plugins_that_run() -> None:
    inputs = [LARGE, LIMITS, pod("b", containers=[TWO_CPUS])]
    off = scenario({"at": 0}, admission={"disable": ["LimitRanger"]})
    assert placements(*inputs, off) == {"default/b": "n1"}
    assert placements(*inputs) == {}
    with pytest.raises(InputError, match=r'spec\.admission: .* plugin "LimitRangr"'):
        placements(*inputs, scenario({"at": 0}, admission={"disable": ["LimitRangr"]}))


def test_options_name_the_plugins_that_run(tmp_path: Path) -> None:
    objects = write_objects(tmp_path / "in.yaml", LARGE, LIMITS)
    workload = write_objects(tmp_path / "wl.yaml", pod("b", containers=[TWO_CPUS]))
    off = ("--disable-admission-plugins", "LimitRanger,ResourceQuota")
    assert "1 of 1 pod placed" in answer("simulate", objects, workload, *off)
    assert "maximum cpu usage per Container is 1, but limit is 2" in answer(
        "simulate", objects, workload
    )
    assert "1 pod fits" in answer("fit", "-f", workload, objects, *off)
