"""What became of one node that took a pod is what becomes of the next that is like it."""

import pytest

from bayplan.engine.alike_nodes import AlikeNodes
from bayplan.engine.kept_answers import ALIKE_MAX, PASSES, KeptVerdicts
from bayplan.engine.likes import Like
from bayplan.engine.standing import FEASIBLE
from bayplan.framework.status import Code
from bayplan.state.change_log import Facet
from bayplan.testing import SampleCluster, node, pod

PLACED = int(Facet.REQUESTED | Facet.PODS)
NO = ((Code.UNSCHEDULABLE, ("full",)),)


def three() -> SampleCluster:
    return SampleCluster().add(*(node(f"n{number}") for number in range(3)))


def alike(cluster: SampleCluster, *, by_amounts: bool = True) -> tuple[AlikeNodes, KeptVerdicts]:
    """For pods about whom one Filter is asked."""
    table = cluster.cache.table
    kept = KeptVerdicts(table, Facet.REQUESTED, by_amounts)
    like = Like(
        filters=[("A", kept)], shares=[], skipped_filters=set(), skipped_scores=None, counts={}
    )
    return AlikeNodes(table, like, PLACED), kept


def fill(cluster: SampleCluster, name: str) -> int:
    """A pod more; the node's row."""
    cluster.add(pod(f"p{len(cluster.cache.pods())}", node=name))
    return cluster.cache.table.row_of[name]


def test_a_node_that_became_alike_has_what_the_first_had() -> None:
    cluster = three()
    nodes, kept = alike(cluster)
    first = fill(cluster, "n0")
    assert nodes.find(first) is None
    kept.catch_up()
    kept.learn_one(first, ())
    nodes.learn(first, FEASIBLE, 70)
    second = fill(cluster, "n1")
    assert nodes.find(second) == (FEASIBLE, 70)
    assert nodes.renew(second, is_wanted=True) and kept.ids[second] == PASSES
    assert nodes.find(cluster.cache.table.row_of["n2"]) is None
    nodes.forget()
    assert nodes.find(second) is None


@pytest.mark.parametrize("is_wanted", [True, False])
def test_what_nobody_said_of_such_a_node_is_asked_if_it_is_wanted(is_wanted: bool) -> None:
    cluster = three()
    nodes, kept = alike(cluster)
    row = cluster.cache.table.row_of["n1"]
    kept.learn_one(row, NO)
    fill(cluster, "n1")
    assert nodes.renew(row, is_wanted=is_wanted) is not is_wanted
    assert is_wanted or not kept.ids[row], "it is forgotten"


def test_nothing_is_learnt_where_answers_follow_from_more() -> None:
    cluster = three()
    nodes, _ = alike(cluster, by_amounts=False)
    nodes.learn(0, FEASIBLE, 70)
    assert not nodes.is_used and nodes.find(0) is None


def test_no_more_than_so_many_are_remembered() -> None:
    cluster = three()
    nodes, _ = alike(cluster)
    for _ in range(ALIKE_MAX + 1):
        cluster.cache.table.resources.alike.set_unlike(0)
        nodes.learn(0, FEASIBLE, 1)
    assert nodes.find(0) is not None
    nodes.learn(1, FEASIBLE, 2)
    assert nodes.find(1) == (FEASIBLE, 2)
