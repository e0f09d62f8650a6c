"""NodeResourcesFit about a pod that runs and is to get more where it is."""

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


def resizing(**wants: Any) -> PodInfo:
    return pod("p", node="n1", status=DEFERRED, **wants)


def plugin(*, gate: bool = True) -> NodeResourcesFit:
    return NodeResourcesFit(None, handle(SampleCluster(gates={GATE: gate})))


def said(who: PodInfo, *others: PodInfo, gate: bool = True, pods: int = 110) -> Any:
    """About its node, of 4 cpu and one GPU, where it runs beside others."""
    there = node("n1", cpu=4, pods=pods, allocatable={"example.com/gpu": 1})
    nodes = SampleCluster().add(there, who, *others).lend().nodes
    recorded = plugin(gate=gate)
    assert filter_is_row_wise(recorded, who, nodes, [0])
    return rejected(recorded, who, nodes)


def other(**wants: Any) -> PodInfo:
    return pod("other", node="n1", **wants)


@pytest.mark.parametrize(
    ("who", "beside", "expected"),
    [
        pytest.param(resizing(cpu=3), other(cpu=1), {}, id="what it holds counts once"),
        pytest.param(resizing(cpu=3), other(cpu=2), SHORT, id="both are too much"),
        pytest.param(resizing(cpu=5), other(), TOO_SMALL, id="it alone is too much"),
        pytest.param(resizing(cpu=0), other(cpu=5), {}, id="it is not to blame"),
        pytest.param(
            resizing(requests={"example.com/gpu": 1}),
            other(requests={"example.com/gpu": 1}),
            {},
            id="devices are not resized",
        ),
    ],
)
def test_it_fits_unless_its_node_holds_too_much(
    who: PodInfo, beside: PodInfo, expected: Any
) -> None:
    assert said(who, beside) == expected


def test_a_place_among_the_pods_is_counted_once_more() -> None:
    """As upstream does."""
    assert said(resizing(cpu=1), pods=2) == {}
    assert said(resizing(cpu=1), pods=1) == FULL


def test_without_the_gate_the_plugin_skips_the_pod() -> None:
    assert said(resizing(cpu=3), other(), gate=False) == SHORT
    assert said(pod("p", node="n1", cpu=3), other()) == SHORT


def test_deferred_pods_of_one_node_have_equal_signatures() -> None:
    result, waits = plugin(), pod("p", cpu=3)
    elsewhere = pod("p", node="n2", cpu=3, status=DEFERRED)
    parts = [result.sign_pod(each) for each in (resizing(cpu=3), elsewhere, waits)]
    assert len(set(parts)) == 3
    assert result.sign_pod(resizing(cpu=3)) == parts[0]
    without = plugin(gate=False)
    assert without.sign_pod(resizing(cpu=3)) == without.sign_pod(waits) == parts[2]


def test_its_own_node_alone_is_waited_for() -> None:
    before, after = node("n1", cpu=1), node("n1", cpu=8)
    changed = ("Node", ActionType.UPDATE_NODE_ALLOCATABLE)
    assert hint(plugin(), changed, resizing(cpu=3), before, after) is QueueingHint.QUEUE
    skipped = hint(plugin(), changed, resizing(cpu=3), node("n2", cpu=1), node("n2", cpu=8))
    assert skipped is QueueingHint.QUEUE_SKIP


def test_growth_is_waited_for_where_the_gate_is_on() -> None:
    grown = [("AssignedPod", "UpdatePodScaleUp", True), ("TargetPod", "UpdatePodScaleUp", True)]
    assert registered(plugin())[-2:] == grown
    assert registered(plugin())[:-2] == registered(plugin(gate=False))
