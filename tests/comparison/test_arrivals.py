"""What a seed makes of a workload."""

from typing import Any

import pytest

from bayplan.comparison.arrivals import Arrivals, Demand, arranged, asked_of
from bayplan.sim.workload import Workload
from tests.comparison.kit import node, pod

WORKLOAD = Workload(initial=(node("n", cpu=10), *(pod(f"p{i}") for i in range(8))))


def names(workload: Workload) -> list[str]:
    return [one["metadata"]["name"] for one in workload.initial if one["kind"] == "Pod"]


def until(percent: float, resource: str = "cpu") -> Arrivals:
    return Arrivals(shuffled=True, until_demand=Demand(resource=resource, percent=percent))


def test_as_written_nothing_changes() -> None:
    assert arranged(WORKLOAD, Arrivals(), 1) is WORKLOAD


def test_a_seed_shuffles_the_pods_and_loses_none() -> None:
    one, other = (arranged(WORKLOAD, Arrivals(shuffled=True), seed) for seed in (1, 2))
    assert names(one) != names(other)
    assert sorted(names(one)) == sorted(names(other)) == names(WORKLOAD)
    assert one.initial[0]["kind"] == "Node"


def test_nodes_get_numbers_only_where_it_is_asked_for() -> None:
    asked, left = (
        arranged(WORKLOAD, Arrivals(shuffled=True, nodes_renumbered=flag), 1)
        for flag in (True, False)
    )
    assert [asked.initial[0]["metadata"]["name"], left.initial[0]["metadata"]["name"]] == [
        "0-n",
        "n",
    ]
    assert names(asked) == names(left)


def test_the_same_seed_makes_the_same_workload() -> None:
    assert arranged(WORKLOAD, until(200), 3) == arranged(WORKLOAD, until(200), 3)


def test_pods_are_drawn_until_enough_is_asked_for() -> None:
    found = arranged(WORKLOAD, until(130), 1)
    assert len(names(found)) == 13  # 10 cores, one each
    assert len(set(names(found))) == 13
    drawn = [name.partition(".")[0] for name in names(found)[8:]]
    assert set(drawn) <= set(names(WORKLOAD))


def test_nothing_is_drawn_where_enough_is_asked_for_already() -> None:
    assert len(names(arranged(WORKLOAD, until(50), 1))) == 8


def test_drawing_ends_where_no_pod_asks_for_the_resource() -> None:
    assert len(names(arranged(WORKLOAD, until(130, "example.com/x"), 1))) == 8


def test_a_pod_drawn_again_is_another_pod() -> None:
    first = pod("a")
    first["metadata"]["uid"] = "of-a"
    [_, _, again] = arranged(Workload(initial=(node("n", cpu=2), first)), until(100), 1).initial
    assert again["metadata"] == {"name": "a.1", "namespace": "default"}


@pytest.mark.parametrize(
    ("annotations", "asked"),
    [({}, 2.0), ({"bayplan.dev/gpu-milli": "460"}, 0.92), ({"bayplan.dev/gpu-milli": "x"}, 2.0)],
)
def test_a_share_of_a_gpu_counts_as_such(annotations: dict[str, str], asked: float) -> None:
    content: dict[str, Any] = pod("a")
    content["metadata"]["annotations"] = annotations
    limits = {"nvidia.com/gpu": "2"}
    content["spec"]["containers"][0]["resources"] = {"limits": limits, "requests": limits}
    assert asked_of(content, "nvidia.com/gpu") == pytest.approx(asked)
