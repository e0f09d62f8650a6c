"""The plugins that a plan covers, and results that equivalent nodes share."""

import pytest

from bayplan.engine.ranking.evaluation_plan import EvaluationPlan, SkipSet
from bayplan.engine.ranking.node_equivalence import NodeEquivalence
from bayplan.engine.ranking.node_feasibility import FEASIBLE
from bayplan.engine.ranking.row_cache import EQUIVALENT_MAX, CachedFilterResults
from bayplan.framework.status import Code
from bayplan.state.change_log import Facet
from bayplan.testing import SampleCluster, node, pod

# ---- equivalent nodes -----------------------------------------------------------------------


NO = ((Code.UNSCHEDULABLE, ("full",)),)


def three() -> SampleCluster:
    return SampleCluster().add(*(node(f"n{number}") for number in range(3)))


def equivalence_of(
    cluster: SampleCluster, *, follows_amounts: bool = True
) -> tuple[NodeEquivalence, CachedFilterResults]:
    """The equivalence for pods that one Filter evaluates."""
    table = cluster.cache.table
    results = CachedFilterResults(table, Facet.REQUESTED, follows_amounts)
    plan = EvaluationPlan(SkipSet(frozenset(), None), filters=[("A", results)], scores=[])
    return NodeEquivalence(table, plan), results


def fill(cluster: SampleCluster, name: str) -> int:
    """Add a pod to a node. Returns the node's row."""
    cluster.add(pod(f"p{len(cluster.cache.pods())}", node=name))
    return cluster.cache.table.row_of[name]


@pytest.mark.parametrize("is_needed", [True, False])
def test_a_missing_result_of_an_equivalent_node_is_computed_if_it_is_needed(
    is_needed: bool,
) -> None:
    cluster = three()
    nodes, equivalence = equivalence_of(cluster)
    row = cluster.cache.table.row_of["n1"]
    equivalence.learn_one(row, NO)
    fill(cluster, "n1")
    nodes.learn(row, FEASIBLE if is_needed else FEASIBLE + 1, 0)
    log, number = cluster.cache.table.log, cluster.cache.table.resources.equivalence.numbers[row]
    assert (nodes.renew(row, number, log.generation) is None) is is_needed
    assert is_needed or not equivalence.marks[row], "the results were dropped"


def test_the_number_of_remembered_equivalent_nodes_is_bounded() -> None:
    cluster = three()
    nodes, _ = equivalence_of(cluster)
    for _ in range(EQUIVALENT_MAX + 1):
        cluster.cache.table.resources.equivalence.set_unique(0)
        nodes.learn(0, FEASIBLE, 1)
    assert nodes.find(0) is not None
    nodes.learn(1, FEASIBLE, 2)
    assert nodes.find(1) == (FEASIBLE, 2)
