"""The plugins that a plan covers, and results that equivalent nodes share."""

from typing import Any

import pytest

from bayplan.engine.ranking.evaluation_plan import EvaluationPlan, SkipSet
from bayplan.engine.ranking.node_equivalence import NodeEquivalence
from bayplan.engine.ranking.node_feasibility import FEASIBLE
from bayplan.engine.ranking.row_cache import EQUIVALENT_MAX, PASSES, CachedFilterResults
from bayplan.framework.status import Code
from bayplan.state.change_log import Facet
from bayplan.testing import SampleCluster, node, pod
from tests.engine.cached_attempts import (
    Attempts,
    Bad,
    Company,
    MaxRank,
    NotTheFirst,
    Rank,
    Unsigned,
    Worse,
    labelled,
    last_ranking,
)

# ---- plans ----------------------------------------------------------------------------------


def plan_of(*plugins: Any) -> EvaluationPlan | None:
    attempts = Attempts(*plugins, nodes=labelled(9))
    for _ in range(3):
        attempts.attempt()
    ranking = last_ranking(attempts.entry)
    return None if ranking is None else ranking.plan


@pytest.mark.parametrize(
    ("plugins", "filters", "shares", "calls"),
    [
        ((Bad, Rank, MaxRank), ["Bad"], ["Rank", "MaxRank"], []),
        ((Bad, NotTheFirst, Rank), ["Bad"], ["Rank"], [(1, "NotTheFirst")]),
        ((NotTheFirst, Bad, Rank), ["Bad"], ["Rank"], [(0, "NotTheFirst")]),
        ((Bad, Worse, Rank, Company), ["Bad", "Worse"], ["Rank"], ["Company"]),
        ((Bad, Rank, Unsigned), ["Bad"], ["Rank"], ["Unsigned"]),
        # Normalised by extremes, which depend on the other evaluated plugins.
        ((Bad, NotTheFirst, Rank, MaxRank), ["Bad"], ["Rank"], [(1, "NotTheFirst"), "MaxRank"]),
    ],
)
def test_row_wise_plugins_that_sign_are_covered_by_the_plan(
    plugins: Any, filters: list[str], shares: list[str], calls: list[Any]
) -> None:
    plan = plan_of(*plugins)
    assert plan is not None
    assert [name for name, _ in plan.filters] == filters
    assert [share.name for share in plan.scores] == shares
    assert [*plan.called_filters, *plan.called_scores] == calls
    assert plan.is_complete == (not calls)


def test_without_a_cacheable_plugin_there_is_no_plan() -> None:
    assert plan_of(NotTheFirst, Company) is None


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


def test_a_node_that_becomes_equivalent_gets_the_results_of_the_first_node() -> None:
    cluster = three()
    nodes, equivalence = equivalence_of(cluster)
    first = fill(cluster, "n0")
    assert nodes.find(first) is None
    equivalence.catch_up()
    equivalence.learn_one(first, ())
    nodes.learn(first, FEASIBLE, 70)
    second = fill(cluster, "n1")
    assert nodes.find(second) == (FEASIBLE, 70)
    assert nodes.renew(second) == (FEASIBLE, 70) and equivalence.marks[second] == PASSES
    assert nodes.find(cluster.cache.table.row_of["n2"]) is None


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
    assert (nodes.renew(row) is None) is is_needed
    assert is_needed or not equivalence.marks[row], "the results were dropped"


def test_results_that_depend_on_more_than_amounts_are_not_copied() -> None:
    cluster = three()
    nodes, _ = equivalence_of(cluster, follows_amounts=False)
    nodes.learn(0, FEASIBLE, 70)
    assert not nodes.is_used and nodes.find(0) is None


def test_the_number_of_remembered_equivalent_nodes_is_bounded() -> None:
    cluster = three()
    nodes, _ = equivalence_of(cluster)
    for _ in range(EQUIVALENT_MAX + 1):
        cluster.cache.table.resources.equivalence.set_unique(0)
        nodes.learn(0, FEASIBLE, 1)
    assert nodes.find(0) is not None
    nodes.learn(1, FEASIBLE, 2)
    assert nodes.find(1) == (FEASIBLE, 2)
