"""FilterRunner: Filters of what-ifs, with overlays and filter keys."""

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.handle import FilterRunner
from bayplan.framework.status import Code
from bayplan.profile.filter_runner import filter_key, filter_overlay, only_amounts_matter
from bayplan.state.amounts_overlay import VictimAmounts, without_victims
from bayplan.state.change_log import Facet
from bayplan.testing import node, pod
from tests.framework.answering import answering, framework_of
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


def test_filters_see_nodes_without_the_removed_pods() -> None:
    over = world()
    state, snapshot = over.cycle(HIGH).state, over.cluster.lent_snapshot
    assert snapshot is not None
    ranked = snapshot.ranked_pods(snapshot.nodes)
    relief = VictimAmounts(ranked, ranked.priorities < 9)
    view = without_victims(snapshot.nodes, relief)
    every = runner_of(over).filter_overlay(state, HIGH, view)
    assert every.feasible.tolist() == [True, False] and every.error is None
    amounts = runner_of(over).filter_overlay(state, HIGH, view, Facet.REQUESTED)
    assert np.all(amounts.feasible)


def test_an_overlay_is_not_evaluated_if_a_filter_reads_pods_or_ports() -> None:
    over = scene(node("n1", cpu=2), pod("a", cpu=2, node="n1"))
    assert only_amounts_matter(over.framework, over.cycle(HIGH).state)
    pod_with_port = pod("p", cpu=2, priority=9, host_ports=[80])
    assert not only_amounts_matter(over.framework, over.cycle(pod_with_port).state)


def test_a_filter_that_reads_more_than_amounts_is_an_error_of_the_outcome() -> None:
    over = scene(node("n1", cpu=2), pod("a", cpu=2, node="n1"))
    state, snapshot = over.cycle(HIGH).state, over.cluster.lent_snapshot
    assert snapshot is not None
    calls = over.framework.calls(state, HIGH)
    name, _ = calls.filter[-1]
    calls.filter[-1] = (name, lambda state, pod, nodes, feasible: nodes.info(0))  # type: ignore[index]
    ranked = snapshot.ranked_pods(snapshot.nodes)
    no_victims = np.zeros(ranked.priorities.shape, np.bool_)
    view = without_victims(snapshot.nodes, VictimAmounts(ranked, no_victims))
    error = filter_overlay(over.framework, state, HIGH, view).error
    assert error is not None and error.code is Code.ERROR
    assert "NodeView.info does not answer in an overlay of amounts" in error.message


def test_pods_with_equal_signatures_have_equal_filter_keys() -> None:
    over = scene(node("n1", cpu=2), pod("a", cpu=2, node="n1"))
    state = over.cycle(HIGH).state
    over.framework.plugins.reuse_bytes_max = 1

    def of(cpu: int) -> object:
        return filter_key(over.framework, state, pod(f"q{cpu}", cpu=cpu), lambda kind: [kind])

    first = of(2)
    assert first is not None
    assert first == filter_key(over.framework, state, HIGH, lambda kind: [])
    assert of(1) != first


def test_a_filter_key_has_the_facets_and_objects_of_the_results() -> None:
    over = scene(node("n1", cpu=2), pod("a", cpu=2, node="n1"))
    state = over.cycle(HIGH).state
    over.framework.plugins.reuse_bytes_max = 1
    result = filter_key(over.framework, state, HIGH, lambda kind: [kind])
    assert result is not None
    assert result.facet_bits & Facet.REQUESTED and result.facet_bits & Facet.TAINTS
    assert not result.facet_bits & Facet.PODS
    assert list(result.objects) == [["resource.k8s.io/v1 DeviceClass"]]


def test_there_is_no_filter_key_without_reuse_or_with_an_unsigned_filter() -> None:
    over = scene(node("n1", cpu=2), pod("a", cpu=2, node="n1"))
    state = over.cycle(HIGH).state
    assert filter_key(over.framework, state, HIGH, lambda kind: []) is None
    framework = framework_of(answering("A", filter_node=None))
    framework.plugins.reuse_bytes_max = 1
    assert filter_key(framework, CycleState(), HIGH, lambda kind: []) is None


def test_pods_nominated_ahead_have_at_least_the_same_priority() -> None:
    over = world()
    over.nominate(*(pod(f"n{p}", priority=p, nominated_node="n1") for p in (8, 9, 10)))
    ahead = runner_of(over).nominated_ahead(HIGH)
    assert [each.name for each in ahead["n1"]] == ["n9", "n10"]
    assert not runner_of(over).nominated_ahead(pod("p", priority=11))


def test_only_amounts_matter_if_no_filter_of_the_pod_reads_pods() -> None:
    over = world()
    assert runner_of(over).only_amounts_matter(over.cycle(HIGH).state)
    with_port = pod("p", cpu=2, priority=9, host_ports=[80])
    assert not runner_of(over).only_amounts_matter(over.cycle(with_port).state)
