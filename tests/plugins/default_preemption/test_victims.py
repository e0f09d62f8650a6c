"""Victims on one node, by trial.

Victims on many nodes at once; test_dry_run.py compares them with victims of one node at a time.
"""

from typing import Any

import numpy as np

from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET
from bayplan.framework.preemption import Victims
from bayplan.plugins.default_preemption.budgets import Budgets
from bayplan.plugins.default_preemption.victims import Side, victims_on, victims_on_all
from bayplan.state.disruption_units import Units
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from tests.plugins.preemption_kit import EARLY, LATER, Scene, budget, scene, started

# ---- on one node ----------------------------------------------------------------------------


def on_node(over: Any, pod: PodInfo, name: str = "n1") -> Any:
    """(names of the victims, number of violations), or the reason why evictions do not help."""
    state = over.cycle(pod).state
    snapshot = over.cluster.lent_snapshot
    budgets = Budgets(over.cluster.objects(POD_DISRUPTION_BUDGET).list())
    question = (over.plugin.handle.runner, state.clone(), pod)
    units = Units(over.cluster.cluster.group_trees, snapshot.nodes)
    victims = victims_on(snapshot.node(name), question, snapshot, budgets, units=units)
    if isinstance(victims, Victims):
        return [each.name for each in victims.pods], victims.pdb_violation_count
    return str(victims.code), victims.message


def test_host_ports_can_make_evictions_necessary() -> None:
    over = scene(
        node("n1"), pod("holder", node="n1", host_ports=[80], priority=3), pod("low", node="n1")
    )
    assert on_node(over, pod("p", host_ports=[80], priority=9)) == (["holder"], 0)


def test_among_equal_pods_the_longest_running_one_stays() -> None:
    placed = [
        pod("later", cpu=1, node="n1", status=started(LATER)),
        pod("early", cpu=1, node="n1", status=started(EARLY)),
        pod("not-started", cpu=1, node="n1"),
    ]
    over = scene(node("n1", cpu=3), *placed)
    assert on_node(over, pod("p", cpu=1, priority=9)) == (["not-started"], 0)
    assert on_node(over, pod("p", cpu=2, priority=9)) == (["later", "not-started"], 0)


def test_protected_pods_are_reprieved_first() -> None:
    labels = {"app": "a"}
    new_pod = pod("spare", cpu=1, node="n1", labels=labels)
    over = scene(node("n1", cpu=2), new_pod, pod("more", cpu=1, node="n1", priority=3))
    over.put_budgets(budget("b", labels, 0))
    assert on_node(over, pod("p", cpu=1, priority=9)) == (["more"], 0)
    assert on_node(over, pod("p", cpu=2, priority=9)) == (["more", "spare"], 1)


def test_nodes_are_unchanged_after_the_search() -> None:
    placed = [pod(f"l{index}", cpu=1, node="n1", priority=index) for index in range(3)]
    over = scene(node("n1", cpu=3), *placed)
    before = [id(each) for each in over.cluster.lend().node("n1").pods]
    assert on_node(over, pod("p", cpu=2, priority=9)) == (["l1", "l0"], 0)
    assert [id(each) for each in over.cluster.lend().node("n1").pods] == before


def test_an_unresolvable_node_has_a_reason() -> None:
    over = scene(node("n1", cpu=2), pod("h", cpu=1, node="n1", priority=9), pod("l", node="n1"))
    result = on_node(over, pod("p", cpu=2, priority=9))
    assert result == ("Unschedulable", "Insufficient cpu")
    alone = scene(node("n1", cpu=1), pod("h", cpu=1, node="n1", priority=9))
    expected = "No preemption victims found for incoming pod"
    assert on_node(alone, pod("p", cpu=1, priority=9)) == ("UnschedulableAndUnresolvable", expected)


# ---- on many nodes --------------------------------------------------------------------------


HIGH = pod("p", cpu=2, priority=9)


def searched(over: Scene) -> tuple[Side | None, NodeView]:
    state = over.cycle(HIGH).state
    snapshot = over.cluster.lent_snapshot
    assert snapshot is not None
    every = np.arange(len(snapshot.nodes))
    question = (over.plugin.handle.runner, state, HIGH)
    return victims_on_all(snapshot, every, question, Budgets()), snapshot.nodes


def full() -> Scene:
    return scene(
        node("n1", cpu=2), pod("a", cpu=1, node="n1"), pod("b", cpu=1, node="n1"),
        node("n2", cpu=2), pod("c", cpu=1, node="n2", priority=9),
        node("n3", cpu=4), pod("d", cpu=1, node="n3"),
    )  # fmt: skip


def test_nodes_are_candidates_or_fit_already_or_cannot_be_helped() -> None:
    side, nodes = searched(full())
    assert side is not None
    assert [nodes.name(position) for position in side.batch.positions.tolist()] == ["n1"]
    assert [p.name for p in side.batch.victims(0).pods] == ["a", "b"]
    assert side.needless == ["n3"]
    assert list(side.without_all.statuses()) == ["n2"]


def test_the_search_does_not_change_the_cluster() -> None:
    over = full()
    over.cycle(HIGH)
    before = over.cluster.cache.table.log.generation
    searched(over)
    assert over.cluster.cache.table.log.generation == before


def test_victims_have_their_newest_versions() -> None:
    over = full()
    searched(over)
    over.cluster.take_back()
    newer = pod("a", cpu=1, node="n1", annotations={"new": "value"})
    over.cluster.cache.update_pod(newer)
    side, _ = searched(over)
    assert side is not None and side.batch.victims(0).pods[0] is newer


def test_filters_that_read_more_than_amounts_are_left_to_the_search_node_by_node() -> None:
    over = full()
    fit = over.framework.plugins.filter[-1]
    original = fit.filter  # type: ignore[union-attr]

    def closer(state: object, p: object, nodes: NodeView, feasible: object) -> object:
        nodes.info(0)
        return original(state, p, nodes, feasible)  # type: ignore[arg-type]

    calls = over.framework.calls(over.cycle(HIGH).state, HIGH)
    calls.filter[-1] = (fit.instance_name, closer)  # type: ignore[index]
    assert searched(over)[0] is None
