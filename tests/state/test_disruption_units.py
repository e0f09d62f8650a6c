"""Pods that are evicted together."""

from typing import Any

from bayplan.api.composite_pod_groups import composite_key
from bayplan.api.objects import decode
from bayplan.api.pod_groups import KINDS, UPSTREAM_GROUP, GroupKey
from bayplan.state.disruption_units import Unit, Units
from bayplan.testing import SampleCluster, api_pod, node, pod

KIND = "scheduling.k8s.io/v1beta1 PodGroup"
WHOLE = {"disruptionMode": {"all": {}}}
GROUP = GroupKey(UPSTREAM_GROUP, "default", "g")


def member(name: str, group: str = "g", **options: Any) -> Any:
    return pod(name, spec={"schedulingGroup": {"podGroupName": group}}, **options)


def cluster(*placed: Any, **groups: dict[str, Any]) -> SampleCluster:
    """Nodes n1 to n3, pods on them, and groups by name with their specs."""
    sample = SampleCluster().add(*(node(f"n{number}") for number in (1, 2, 3)), *placed)
    for name, spec in groups.items():
        content = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
        sample.pod_groups.put(KINDS[KIND].compile(KIND, decode(KIND, content)))
    for each in placed:
        sample.pod_groups.put_pod(each.pod)
    return sample


def units(cluster: SampleCluster) -> Units:
    return Units(cluster.cluster.group_trees, cluster.lend().nodes)


def names(units: list[Unit]) -> list[list[str]]:
    return [[each.name for each in unit.pods] for unit in units]


def test_pods_are_evicted_one_by_one_unless_their_group_is_a_unit() -> None:
    placed = [member("a", node="n1"), member("b", node="n2"), pod("x", node="n1")]
    for spec in ({}, {"disruptionMode": {"single": {}}}):
        result = units(cluster(*placed, g=spec))
        assert result.are_single
        assert names(result.of(placed)) == [["a"], ["b"], ["x"]]


def test_members_of_a_group_with_mode_all_are_one_unit_on_any_nodes() -> None:
    placed = [pod("x", node="n1"), member("a", node="n1"), member("b", node="n2")]
    result = units(cluster(*placed, g=WHOLE))
    assert not result.are_single
    assert result.node_names() == {"n1", "n2"}
    assert names(result.of(placed[:2])) == [["x"], ["a", "b"]]
    assert result.priorities_of_groups() == {0}


def test_a_group_without_placed_members_concerns_no_node() -> None:
    sample = cluster(pod("x", node="n1"), g=WHOLE)
    sample.pod_groups.put_pod(api_pod("waits", spec={"schedulingGroup": {"podGroupName": "g"}}))
    assert units(sample).are_single


def test_a_unit_has_the_priority_of_its_group_or_else_of_its_most_important_pod() -> None:
    placed = [member("a", node="n1", priority=3), member("b", node="n2", priority=7)]
    for spec, expected in (({**WHOLE, "priority": 5}, 5), (WHOLE, 7)):
        [unit] = units(cluster(*placed, g=spec)).of(placed)
        assert (unit.priority, unit.group is not None) == (expected, True)


def test_the_most_important_units_come_first() -> None:
    """Order: priority, groups of groups, groups, members, pods; size of groups, running time."""

    def at(second: int) -> dict[str, Any]:
        return {"status": {"startTime": f"2026-01-01T00:00:0{second}Z"}}

    def unit(name: str, count: int = 1, second: int = 5, **options: Any) -> Unit:
        pods = tuple(pod(f"{name}{n}", **at(second)) for n in range(count))
        return Unit(pods, **{"priority": 0, **options})

    ordered = [
        unit("urgent", priority=1),
        unit("tree", 2, 3, group=composite_key("default", "tree")),
        unit("big", 3, group=GROUP),
        unit("old", 2, 1, group=GROUP),
        unit("young", 2, 2, group=GROUP),
        unit("member", second=4, is_member=True),
        unit("early", second=1),
        unit("late", second=2),
    ]
    mixed = [ordered[at] for at in (3, 0, 5, 2, 7, 6, 4, 1)]
    assert sorted(mixed, key=lambda each: each.importance) == ordered
