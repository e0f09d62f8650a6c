"""Filter while pods are nominated to nodes."""

from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.objects import Node
from bayplan.engine import schedule_one
from bayplan.engine.cycle import Cycle
from bayplan.engine.schedule_one import CycleRunner
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.types import QueuedPodInfo
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from tests.plugins.preemption_kit import Scene, scene
from tests.seeded import depth

WEB = pod("web", cpu=2, priority=5)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Scene, PodInfo]:
    objects: list[Node | PodInfo] = []
    for index in range(draw(st.integers(1, 6))):
        taints = [{"key": "k", "effect": "NoSchedule"}] if draw(st.booleans()) else []
        name = f"n{index}"
        objects.append(node(name, cpu=draw(st.integers(1, 4)), memory=4, pods=3, taints=taints))
        objects += [
            pod(f"{name}-{number}", cpu=1, node=name) for number in range(draw(st.integers(0, 2)))
        ]
    over = scene(*objects)
    for index in range(draw(st.integers(0, 8))):
        options: dict[str, Any] = {"host_ports": [80]} if draw(st.booleans()) else {}
        over.nominate(
            pod(
                f"nominated{index}",
                cpu=draw(st.integers(0, 3)),
                memory=draw(st.integers(0, 3)),
                priority=draw(st.integers(4, 6)),
                nominated_node=f"n{draw(st.integers(0, 6))}",
                **options,
            )
        )
    return over, pod("pending", cpu=draw(st.integers(0, 3)), memory=1, priority=5)


def outcome_of(over: Scene, pending: PodInfo) -> FilterOutcome:
    cycle = over.cycle(pending)
    assert cycle.outcome is not None
    return cycle.outcome


def results(outcome: FilterOutcome) -> tuple[Any, ...]:
    statuses = outcome.statuses()
    return outcome.feasible.tolist(), statuses, outcome.rejection_counts(), outcome.error


@settings(max_examples=depth(40, 200), deadline=None)
@given(worlds())
def test_all_nominated_nodes_at_once_have_the_same_results_as_one_by_one(
    drawn: tuple[Scene, PodInfo],
) -> None:
    over, pending = drawn
    at_once = results(outcome_of(over, pending))
    with patch.object(schedule_one, "only_amounts_matter", return_value=False):
        assert results(outcome_of(over, pending)) == at_once


def test_a_node_without_room_for_its_nominated_pods_is_rejected() -> None:
    over = scene(node("n1", cpu=4), node("n2", cpu=4))
    over.nominate(pod("high", cpu=3, priority=10, nominated_node="n1"))
    assert outcome_of(over, WEB).feasible.tolist() == [False, True]
    assert outcome_of(over, WEB).statuses()["n1"].reasons == ("Insufficient cpu",)


def test_a_nominated_pod_that_is_on_its_node_counts_once() -> None:
    """In a trial of a pod group, a member may be on the node it is nominated to."""
    over = scene(node("n1", cpu=4))
    member = pod("member", cpu=2, priority=10, nominated_node="n1")
    over.nominate(member)
    snapshot = over.cluster.lend()
    with snapshot.trial() as trial:
        trial.assume(member, "n1")
        cycle = Cycle(QueuedPodInfo(WEB, 0.0), over.framework, snapshot)
        CycleRunner(over.cluster.nominator, seed=0, extenders=()).run(cycle)
    assert cycle.choice is not None and cycle.choice.node_name == "n1"


def test_trials_are_used_if_a_filter_reads_more_than_amounts() -> None:
    over = scene(node("n1", cpu=4), node("n2", cpu=4))
    over.nominate(pod("high", priority=10, nominated_node="n1", host_ports=[80]))
    with_port = pod("pending", priority=5, host_ports=[80])
    assert outcome_of(over, with_port).feasible.tolist() == [False, True]
