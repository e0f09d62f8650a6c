"""What plugins may ask of the Filters about nodes as they would be."""

import numpy as np

from bayplan.framework.handle import FilterRunner
from bayplan.state.change_log import Facet
from bayplan.state.victim_overlay import VictimAmounts, without_victims
from bayplan.testing import node, pod
from tests.plugins.preemption_kit import Scene, scene

HIGH = pod("p", cpu=2, priority=9)


def world() -> Scene:
    taints = [{"key": "k", "effect": "NoSchedule"}]
    return scene(
        node("n1", cpu=2), pod("a", cpu=2, node="n1"),
        node("n2", cpu=2, taints=taints), pod("b", cpu=2, node="n2"),
    )  # fmt: skip


def runner_of(over: Scene) -> FilterRunner:
    return over.plugin.handle.runner


def test_only_amounts_matter_where_no_filter_that_is_asked_looks_at_pods() -> None:
    over = world()
    assert runner_of(over).only_amounts_matter(over.cycle(HIGH).state)
    with_port = pod("p", cpu=2, priority=9, host_ports=[80])
    assert not runner_of(over).only_amounts_matter(over.cycle(with_port).state)


def test_filters_see_nodes_without_the_removed_pods() -> None:
    over = world()
    state, snapshot = over.cycle(HIGH).state, over.cluster.lent_snapshot
    assert snapshot is not None
    ranked = snapshot.ranked_pods(snapshot.nodes)
    relief = VictimAmounts(ranked, ranked.priorities < 9)
    view = without_victims(snapshot.nodes, relief)
    every = runner_of(over).filter_relieved(state, HIGH, view)
    assert every.feasible.tolist() == [True, False] and every.error is None
    amounts = runner_of(over).filter_relieved(state, HIGH, view, Facet.REQUESTED)
    assert np.all(amounts.feasible)


def test_pods_nominated_ahead_are_those_of_at_least_the_same_priority() -> None:
    over = world()
    over.nominate(*(pod(f"n{p}", priority=p, nominated_node="n1") for p in (8, 9, 10)))
    ahead = runner_of(over).nominated_ahead(HIGH, "n1")
    assert [each.name for each in ahead] == ["n9", "n10"]
