"""Trees of groups: roots, missing and circular parents, quorums, and units of eviction."""

from typing import Any

import pytest

from bayplan.api.composite_pod_groups import COMPOSITE_POD_GROUP, CompositePodGroup, composite_key
from bayplan.api.objects import decode
from bayplan.api.pod_groups import KINDS, UPSTREAM_GROUP, GroupKey
from bayplan.state.disruption_units import Units
from bayplan.state.pod_group_trees import PodGroupTrees
from bayplan.testing import SampleCluster, node, pod
from tests.scenarios.trees import GATES

KIND = "scheduling.k8s.io/v1beta1 PodGroup"
WHOLE: dict[str, Any] = {"disruptionMode": {"all": {}}}


def leaf_key(name: str) -> GroupKey:
    return GroupKey(UPSTREAM_GROUP, "default", name)


def sample(*composites: tuple[str, str], **leaves: str) -> SampleCluster:
    """``composites``: (name, parent); ``leaves``: name → parent."""
    cluster = SampleCluster(gates=GATES)
    for name, parent in composites:
        put(cluster, name, parent)
    for name, parent in leaves.items():
        put_leaf(cluster, name, parent)
    return cluster


def put(
    cluster: SampleCluster, name: str, parent: str = "", stamp: str = "", **spec: Any
) -> CompositePodGroup:
    if parent:
        spec["parentCompositePodGroupName"] = parent
    meta = {"name": name, "namespace": "default", "creationTimestamp": stamp or None}
    group = decode(COMPOSITE_POD_GROUP, {"metadata": meta, "spec": spec})
    assert isinstance(group, CompositePodGroup)
    cluster.cluster.group_trees.put(group)
    return group


def put_leaf(cluster: SampleCluster, name: str, parent: str, stamp: str = "", **spec: Any) -> None:
    meta = {"name": name, "namespace": "default", "creationTimestamp": stamp or None}
    content = {"metadata": meta, "spec": {"parentCompositePodGroupName": parent, **spec}}
    group = KINDS[KIND].compile(KIND, decode(KIND, content))
    cluster.pod_groups.put(group)
    cluster.cluster.group_trees.follow(group.key)


def trees(cluster: SampleCluster) -> PodGroupTrees:
    return cluster.cluster.group_trees


def root(cluster: SampleCluster, leaf: str) -> str:
    group = trees(cluster).root_of(leaf_key(leaf))
    return "" if group is None else group.metadata.name


def test_the_root_is_above_all_groups_whatever_came_first() -> None:
    cluster = sample(a="m")
    assert root(cluster, "a") == ""
    put(cluster, "m", "t")
    assert root(cluster, "a") == ""
    put(cluster, "t")
    assert root(cluster, "a") == "t"
    trees(cluster).remove(composite_key("default", "m"))
    assert root(cluster, "a") == ""


def test_groups_above_each_other_have_no_root() -> None:
    assert root(sample(("m", "t"), ("t", "m"), a="m"), "a") == ""
    assert root(sample(("m", "m"), a="m"), "a") == ""


@pytest.mark.parametrize(("height", "expected"), [(4, "c3"), (5, "")])
def test_a_tree_has_four_groups_above_a_leaf_at_most(height: int, expected: str) -> None:
    above = [(f"c{nth}", f"c{nth + 1}" if nth + 1 < height else "") for nth in range(height)]
    assert root(sample(*above, a="c0"), "a") == expected


def test_groups_of_a_tree_are_in_the_order_of_their_age_and_then_of_their_names() -> None:
    cluster = sample(("t", ""))
    put_leaf(cluster, "young", "t", "2026-01-01T00:00:02Z")
    put_leaf(cluster, "b", "t", "2026-01-01T00:00:01Z")
    put(cluster, "a", "t", "2026-01-01T00:00:01Z")
    group = trees(cluster).get(composite_key("default", "t"))
    assert group is not None
    assert [child.key.name for child in trees(cluster).tree(group).children] == ["a", "b", "young"]


def test_without_the_gate_a_group_has_no_parent() -> None:
    cluster = SampleCluster()
    put_leaf(cluster, "a", "t")
    assert not trees(cluster).has_parent(leaf_key("a"))


def placed(cluster: SampleCluster, **groups: str) -> list[Any]:
    """Pods on nodes: name → group."""
    cluster.add(node("n1"), node("n2"))
    pods = [
        pod(name, node=f"n{1 + nth % 2}", spec={"schedulingGroup": {"podGroupName": group}})
        for nth, (name, group) in enumerate(groups.items())
    ]
    cluster.add(*pods)
    for each in pods:
        cluster.pod_groups.put_pod(each.pod)
    return pods


def test_the_highest_group_that_leaves_whole_decides_what_is_evicted_together() -> None:
    cluster = sample(("t", ""))
    put(cluster, "m", "t", **WHOLE)
    put_leaf(cluster, "a", "m", **WHOLE)
    put_leaf(cluster, "b", "m")
    put_leaf(cluster, "c", "t")
    put(cluster, "t", priority=7)
    pods = placed(cluster, a0="a", b0="b", c0="c", a1="a")
    units = Units(trees(cluster), cluster.cluster.lend().nodes).of(pods)
    assert [sorted(each.name for each in unit.pods) for unit in units] == [
        ["a0", "a1", "b0"],
        ["c0"],
    ]
    assert units[0].group == composite_key("default", "m")
    assert units[0].priority == 7
