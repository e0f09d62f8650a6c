"""Victims on one node, found by trying."""

from typing import Any

from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET
from bayplan.framework.preemption import Victims
from bayplan.plugins.default_preemption.budgets import Budgets
from bayplan.plugins.default_preemption.on_one_node import victims_on
from bayplan.state.disruption_units import Units
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from tests.plugins.preemption_kit import EARLY, LATER, budget, scene, started


def on_node(over: Any, wanted: PodInfo, name: str = "n1") -> Any:
    """Names of the victims, how many violations; or why it is of no use."""
    state = over.cycle(wanted).state
    snapshot = over.cluster.lent_snapshot
    budgets = Budgets(over.cluster.objects(POD_DISRUPTION_BUDGET).list())
    question = (over.plugin.handle.runner, state.clone(), wanted)
    units = Units(over.cluster.pod_groups, snapshot.nodes)
    found = victims_on(snapshot.node(name), question, snapshot, budgets, units)
    if isinstance(found, Victims):
        return [each.name for each in found.pods], found.pdb_violation_count
    return str(found.code), found.message


def test_ports_count_like_anything_else() -> None:
    over = scene(
        node("n1"), pod("holder", node="n1", host_ports=[80], priority=3), pod("low", node="n1")
    )
    assert on_node(over, pod("p", host_ports=[80], priority=9)) == (["holder"], 0)


def test_the_longest_running_of_equals_stays() -> None:
    placed = [
        pod("later", cpu=1, node="n1", status=started(LATER)),
        pod("early", cpu=1, node="n1", status=started(EARLY)),
        pod("not-started", cpu=1, node="n1"),
    ]
    over = scene(node("n1", cpu=3), *placed)
    assert on_node(over, pod("p", cpu=1, priority=9)) == (["not-started"], 0)
    assert on_node(over, pod("p", cpu=2, priority=9)) == (["later", "not-started"], 0)


def test_who_is_protected_comes_back_first() -> None:
    labels = {"app": "a"}
    kept = pod("kept", cpu=1, node="n1", labels=labels)
    over = scene(node("n1", cpu=2), kept, pod("more", cpu=1, node="n1", priority=3))
    over.put_budgets(budget("b", labels, 0))
    assert on_node(over, pod("p", cpu=1, priority=9)) == (["more"], 0)
    assert on_node(over, pod("p", cpu=2, priority=9)) == (["more", "kept"], 1)


def test_nodes_are_left_as_they_were() -> None:
    placed = [pod(f"l{index}", cpu=1, node="n1", priority=index) for index in range(3)]
    over = scene(node("n1", cpu=3), *placed)
    before = [id(each) for each in over.cluster.lend().node("n1").pods]
    assert on_node(over, pod("p", cpu=2, priority=9)) == (["l1", "l0"], 0)
    assert [id(each) for each in over.cluster.lend().node("n1").pods] == before


def test_a_node_that_cannot_be_helped_says_why() -> None:
    over = scene(node("n1", cpu=2), pod("h", cpu=1, node="n1", priority=9), pod("l", node="n1"))
    found = on_node(over, pod("p", cpu=2, priority=9))
    assert found == ("Unschedulable", "Insufficient cpu")
    alone = scene(node("n1", cpu=1), pod("h", cpu=1, node="n1", priority=9))
    expected = "No preemption victims found for incoming pod"
    assert on_node(alone, pod("p", cpu=1, priority=9)) == ("UnschedulableAndUnresolvable", expected)


def test_a_node_that_the_pod_fits_anyhow_is_an_error() -> None:
    over = scene(node("n1", cpu=2), pod("l", cpu=1, node="n1"))
    expected = 'expected at least one victim pod on node "n1"'
    assert on_node(over, pod("p", cpu=1, priority=9)) == ("Error", expected)
