"""Filters asked about nodes as they would be."""

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import Code
from bayplan.profile.handle import filter_key, filter_relieved, only_amounts_matter
from bayplan.state.change_log import Facet
from bayplan.state.victim_overlay import VictimAmounts, without_victims
from bayplan.testing import node, pod
from tests.framework.answering import answering, framework_of
from tests.plugins.preemption_kit import scene

HIGH = pod("p", cpu=2, priority=9)


def test_a_filter_that_counts_pods_or_ports_is_not_asked_about_an_overlay() -> None:
    over = scene(node("n1", cpu=2), pod("a", cpu=2, node="n1"))
    assert only_amounts_matter(over.framework, over.cycle(HIGH).state)
    wants_port = pod("p", cpu=2, priority=9, host_ports=[80])
    assert not only_amounts_matter(over.framework, over.cycle(wants_port).state)


def test_a_filter_that_asks_for_more_than_amounts_fails_the_question_alone() -> None:
    over = scene(node("n1", cpu=2), pod("a", cpu=2, node="n1"))
    state, snapshot = over.cycle(HIGH).state, over.cluster.lent_snapshot
    assert snapshot is not None
    calls = over.framework.calls(state, HIGH)
    name, _ = calls.filter[-1]
    calls.filter[-1] = (name, lambda state, pod, nodes, feasible: nodes.info(0))  # type: ignore[index]
    ranked = snapshot.ranked_pods(snapshot.nodes)
    nobody = np.zeros(ranked.priorities.shape, np.bool_)
    view = without_victims(snapshot.nodes, VictimAmounts(ranked, nobody))
    error = filter_relieved(over.framework, state, HIGH, view).error
    assert error is not None and error.code is Code.ERROR
    assert "NodeView.info does not answer for nodes without their victims" in error.message


def test_pods_that_are_signed_alike_are_alike_and_others_are_not() -> None:
    over = scene(node("n1", cpu=2), pod("a", cpu=2, node="n1"))
    state = over.cycle(HIGH).state
    over.framework.plugins.reuse_bytes_max = 1

    def of(cpu: int) -> object:
        return filter_key(over.framework, state, pod(f"q{cpu}", cpu=cpu), lambda kind: [kind])

    first = of(2)
    assert first is not None
    assert first == filter_key(over.framework, state, HIGH, lambda kind: [])
    assert of(1) != first


def test_what_answers_follow_from_comes_with_it() -> None:
    over = scene(node("n1", cpu=2), pod("a", cpu=2, node="n1"))
    state = over.cycle(HIGH).state
    over.framework.plugins.reuse_bytes_max = 1
    found = filter_key(over.framework, state, HIGH, lambda kind: [kind])
    assert found is not None
    assert found.facets & Facet.REQUESTED and found.facets & Facet.TAINTS
    assert not found.facets & Facet.PODS
    assert list(found.objects) == [["resource.k8s.io/v1 DeviceClass"]]


def test_nothing_is_alike_where_a_filter_does_not_sign_or_nothing_is_kept() -> None:
    over = scene(node("n1", cpu=2), pod("a", cpu=2, node="n1"))
    state = over.cycle(HIGH).state
    assert filter_key(over.framework, state, HIGH, lambda kind: []) is None
    framework = framework_of(answering("A", filter_node=None))
    framework.plugins.reuse_bytes_max = 1
    assert filter_key(framework, CycleState(), HIGH, lambda kind: []) is None
