"""DeferredPodScheduling: running pods with a deferred resize."""

from typing import Any

import msgspec
import pytest

from bayplan.api.objects import NODE, Node, decode
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import QueueingHint
from bayplan.framework.status import SKIP, Status, unresolvable
from bayplan.framework.types import PreFilterResult
from bayplan.plugins.deferred_pod_scheduling import DeferredPodScheduling
from bayplan.testing import SampleCluster, check_plugin, handle, node, pod
from tests.seeded import depth

ON = {"InPlacePodVerticalScalingSchedulerPreemption": True}
CLOSED: Any = {"podPreemptionPolicy": {"disableResizePreemption": ["All"]}}
EMPTY: Any = {"podPreemptionPolicy": {"disableResizePreemption": []}}
DEFERRED: Any = {"conditions": [{"type": "PodResizePending", "reason": "Deferred"}]}
INFEASIBLE: Any = {"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}
RUNNING = pod("p", node="n1", status=DEFERRED)
STATE = CycleState()


def made(gates: dict[str, bool], *nodes: Node) -> tuple[DeferredPodScheduling, SampleCluster]:
    cluster = SampleCluster(gates=gates).add(*nodes)
    return DeferredPodScheduling(None, handle(cluster)), cluster


def with_policy(name: str, spec: Any) -> Node:
    """A node as decoded for a plugin that declares the field."""
    policy = spec.get("podPreemptionPolicy")
    new_node = node(name, declared={"spec.podPreemptionPolicy": policy})
    decoded = decode(NODE, {"metadata": {"name": name}, "spec": spec})
    assert isinstance(decoded, Node)
    return msgspec.structs.replace(new_node, spec=decoded.spec)


def verdict(where: str) -> Status | None:
    nodes = [with_policy("n1", {}), with_policy("n2", {}), with_policy("closed", CLOSED)]
    plugin, cluster = made(ON, *nodes, with_policy("empty", EMPTY))
    who = RUNNING if where in ("n1", "n2") else pod("p", node=where, status=DEFERRED)
    return plugin.filter_node(STATE, who, cluster.lend().node(where))


def test_a_deferred_pod_is_tried_on_its_own_node_alone() -> None:
    assert verdict("n1") is None
    assert verdict("n2") == unresolvable("pod assigned to different node")


def test_no_other_node_is_evaluated() -> None:
    plugin, cluster = made(ON, node("n1"), node("n2"))
    result = plugin.pre_filter(STATE, RUNNING, cluster.lend().nodes)
    assert result == PreFilterResult(frozenset(("n1",)))


def test_a_node_that_disables_preemption_for_resizes_is_rejected() -> None:
    assert verdict("closed") == unresolvable("node had resize preemption disabled")
    assert verdict("empty") is None


def test_a_pod_that_fits_waits_for_the_kubelet() -> None:
    plugin, _ = made(ON)
    expected = unresolvable("pod resize fits, waiting for Kubelet actuation")
    assert plugin.permit(STATE, RUNNING, "n1") == (expected, 0.0)


@pytest.mark.parametrize(
    ("gates", "status"),
    [
        pytest.param({}, DEFERRED, id="the gate is off"),
        pytest.param(ON, {}, id="no pending resize"),
        pytest.param(ON, INFEASIBLE, id="an infeasible resize"),
    ],
)
def test_other_pods_are_skipped(gates: dict[str, bool], status: Any) -> None:
    plugin, cluster = made(gates, node("n1"), with_policy("n2", CLOSED))
    who, snapshot = pod("p", node="n1", status=status), cluster.lend()
    assert plugin.pre_filter(STATE, who, snapshot.nodes) is SKIP
    assert plugin.filter_node(STATE, who, snapshot.node("n2")) is None
    assert plugin.permit(STATE, who, "n1") == (None, 0.0)
    assert plugin.sign_pod(who) == ()
    for event in plugin.events_to_register():
        assert event.hint is not None
        assert event.hint(who, None, node("n1")) is QueueingHint.QUEUE_SKIP


@pytest.mark.parametrize(
    ("old", "new", "is_worth_it"),
    [
        pytest.param(
            with_policy("n1", CLOSED), with_policy("n1", EMPTY), True, id="preemption is enabled"
        ),
        pytest.param(node("n1"), with_policy("n1", CLOSED), False, id="preemption is disabled"),
        pytest.param(node("n1"), node("n1"), False, id="preemption was enabled before"),
        pytest.param(with_policy("n2", CLOSED), node("n2"), False, id="another node"),
        pytest.param(None, node("n1"), True, id="its node is added"),
        pytest.param(
            None, with_policy("n1", CLOSED), False, id="its node is added with preemption disabled"
        ),
        pytest.param(None, node("n2"), False, id="another node is added"),
    ],
)
def test_a_pod_is_tried_again_when_its_node_allows_preemption(
    old: Node | None, new: Node, is_worth_it: bool
) -> None:
    plugin, _ = made(ON)
    changed, added = plugin.events_to_register()
    hint = added.hint if old is None else changed.hint
    assert hint is not None
    expected = QueueingHint.QUEUE if is_worth_it else QueueingHint.QUEUE_SKIP
    assert hint(RUNNING, old, new) is expected


def test_it_satisfies_the_plugin_contract() -> None:
    check_plugin(DeferredPodScheduling, clusters=depth(3, 6))
