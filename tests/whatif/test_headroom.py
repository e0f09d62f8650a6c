"""How many more pods of several shapes fit."""

import pytest

from bayplan.api.objects import POD
from bayplan.api.pod_groups import BUILT_IN_KINDS
from bayplan.whatif.headroom import headroom
from bayplan.whatif.text import PendingPodCounts
from tests.kit.manifests import node, pod, pod_group
from tests.sim.manifests import controller
from tests.whatif.clusters import additions_to, cluster_of, deployment, model_of


def test_each_shape_is_counted_alone() -> None:
    cluster = cluster_of(node("n1"), node("n2"), pod("waiting", cpu="8"))
    model = model_of(cluster)
    shapes = [pod("small", cpu="1"), pod("large", cpu="3"), deployment("web", 3, "2")]
    additions = additions_to(cluster, *shapes)
    answer = headroom(model, additions, BUILT_IN_KINDS)
    assert {one.shape: one.max.count for one in answer.shapes} == {"small": 8, "large": 2, "web": 4}
    assert [one.requests for one in answer.shapes] == [{"cpu": 1000}, {"cpu": 3000}, {"cpu": 2000}]
    assert answer.waiting == PendingPodCounts(waiting=1)
    assert [each.metadata.name for each in model.objects(POD)] == ["waiting"]


def test_equal_names_are_distinguished_by_their_namespaces() -> None:
    cluster = cluster_of(node("n1"))
    shapes = [pod("a"), pod("a", namespace="shop")]
    answer = headroom(model_of(cluster), additions_to(cluster, *shapes), BUILT_IN_KINDS)
    assert [one.shape for one in answer.shapes] == ["Pod default/a", "Pod shop/a"]


def test_a_group_is_one_shape_with_the_sum_of_its_members_requests() -> None:
    job = controller("Job", "train", parallelism=3, completions=3)
    job["spec"]["template"]["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "g"}
    cluster = cluster_of(node("n1"), node("n2"))
    additions = additions_to(cluster, pod_group(minimum=3), job)
    [shape] = headroom(model_of(cluster), additions, BUILT_IN_KINDS).shapes
    assert (shape.shape, shape.max.workload) == ("g", "PodGroup default/g")
    assert shape.requests["cpu"] == 3000
    assert shape.max.count == 2


@pytest.mark.parametrize("limit", [1, 3])
def test_a_limited_count_is_marked(limit: int) -> None:
    cluster = cluster_of(node("n1"))
    answer = headroom(model_of(cluster), additions_to(cluster, pod("a")), BUILT_IN_KINDS, limit)
    assert [(one.max.count, one.max.is_limit) for one in answer.shapes] == [(limit, True)]


def test_room_that_other_pods_hold_is_not_shown_as_free() -> None:
    cluster = cluster_of(node("n1"), pod("low", cpu="3", nodeName="n1", priority=-1))
    shapes = [pod("a", cpu="1"), pod("b", cpu="4")]
    answer = headroom(model_of(cluster), additions_to(cluster, *shapes), BUILT_IN_KINDS)
    assert [(one.max.count, one.max.victim_count) for one in answer.shapes] == [(4, 1), (1, 1)]
    assert "evicted pods" in str(answer)
    free = cluster_of(node("n1"))
    counted = headroom(model_of(free), additions_to(free, shapes[0]), BUILT_IN_KINDS)
    assert "evicted pods" not in str(counted)
