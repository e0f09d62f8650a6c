"""NodeResourcesFit for a running pod with a deferred resize."""

from typing import Any

import pytest

from bayplan.framework.events import ActionType, QueueingHint
from bayplan.framework.status import Code
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.state.pods import PodInfo
from bayplan.testing import SampleCluster, handle, node, pod
from tests.plugins.row_kit import filter_is_row_wise, hint, registered, rejected

DEFERRED: Any = {"conditions": [{"type": "PodResizePending", "reason": "Deferred"}]}
GATE = "InPlacePodVerticalScalingSchedulerPreemption"
SHORT = {"n1": (Code.UNSCHEDULABLE, ("Insufficient cpu",))}
TOO_SMALL = {"n1": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("Insufficient cpu",))}
FULL = {"n1": (Code.UNSCHEDULABLE, ("Too many pods",))}


def resizing(**requests: Any) -> PodInfo:
    return pod("p", node="n1", status=DEFERRED, **requests)


def plugin(*, gate: bool = True) -> NodeResourcesFit:
    return NodeResourcesFit(None, handle(SampleCluster(gates={GATE: gate})))


def result_of(resizing_pod: PodInfo, *beside: PodInfo, gate: bool = True, pods: int = 110) -> Any:
    """The result for the pod's node, with 4 cpu, one GPU and further pods."""
    there = node("n1", cpu=4, pods=pods, allocatable={"example.com/gpu": 1})
    nodes = SampleCluster().add(there, resizing_pod, *beside).lend().nodes
    recorded = plugin(gate=gate)
    assert filter_is_row_wise(recorded, resizing_pod, nodes, [0])
    return rejected(recorded, resizing_pod, nodes)


def other(**requests: Any) -> PodInfo:
    return pod("other", node="n1", **requests)


@pytest.mark.parametrize(
    ("resizing_pod", "beside", "expected"),
    [
        pytest.param(resizing(cpu=3), other(cpu=1), {}, id="its current requests count once"),
        pytest.param(resizing(cpu=3), other(cpu=2), SHORT, id="both pods exceed the node"),
        pytest.param(resizing(cpu=5), other(), TOO_SMALL, id="the pod alone exceeds the node"),
        pytest.param(resizing(cpu=0), other(cpu=5), {}, id="the other pod exceeds the node"),
        pytest.param(
            resizing(requests={"example.com/gpu": 1}),
            other(requests={"example.com/gpu": 1}),
            {},
            id="devices are not resized",
        ),
    ],
)
def test_a_resize_fits_unless_the_node_lacks_resources(
    resizing_pod: PodInfo, beside: PodInfo, expected: Any
) -> None:
    assert result_of(resizing_pod, beside) == expected


def test_the_pod_counts_once_more_in_the_number_of_pods() -> None:
    """As upstream does."""
    assert result_of(resizing(cpu=1), pods=2) == {}
    assert result_of(resizing(cpu=1), pods=1) == FULL


def test_without_the_gate_the_plugin_skips_the_pod() -> None:
    assert result_of(resizing(cpu=3), other(), gate=False) == SHORT
    assert result_of(pod("p", node="n1", cpu=3), other()) == SHORT


def test_deferred_pods_of_one_node_have_equal_signatures() -> None:
    result, waits = plugin(), pod("p", cpu=3)
    elsewhere = pod("p", node="n2", cpu=3, status=DEFERRED)
    parts = [result.sign_pod(each) for each in (resizing(cpu=3), elsewhere, waits)]
    assert len(set(parts)) == 3
    assert result.sign_pod(resizing(cpu=3)) == parts[0]
    without = plugin(gate=False)
    assert without.sign_pod(resizing(cpu=3)) == without.sign_pod(waits) == parts[2]


def test_only_its_own_node_can_help() -> None:
    before, after = node("n1", cpu=1), node("n1", cpu=8)
    changed = ("Node", ActionType.UPDATE_NODE_ALLOCATABLE)
    assert hint(plugin(), changed, resizing(cpu=3), before, after) is QueueingHint.QUEUE
    skipped = hint(plugin(), changed, resizing(cpu=3), node("n2", cpu=1), node("n2", cpu=8))
    assert skipped is QueueingHint.QUEUE_SKIP


def test_growth_of_the_node_helps_if_the_gate_is_on() -> None:
    grown = [("AssignedPod", "UpdatePodScaleUp", True), ("TargetPod", "UpdatePodScaleUp", True)]
    assert registered(plugin())[-2:] == grown
    assert registered(plugin())[:-2] == registered(plugin(gate=False))
