"""Preemption for a resize that the kubelet has deferred."""

import asyncio
from typing import Any

import msgspec
import pytest

from bayplan.api.objects import NODE, Node, Pod, decode
from bayplan.ports import AskExtender, EmitEvent, ExtenderAnswer, PatchPodStatus, Perform
from bayplan.queue.entry import State
from bayplan.testing import api_pod, node
from tests.engine.kit import FAR, Engine, Far, uid, waiting_pod
from tests.kit.ports import RecordingPort

GATE = "InPlacePodVerticalScalingSchedulerPreemption"
KIND = "scheduling.x-k8s.io/v1alpha1 PodGroup"
IN_CACHE = "pod uid-default/p(default/p) is in the cache, so can't be assumed"
MADE = "preemption: found a potential placement for pod on node n1, preempting 1 victims"


def resizing(name: str = "p", *, reason: str = "Deferred", **options: Any) -> Pod:
    """A pod that runs on n1 and now requests 3 cpu."""
    pending = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    there: Any = {"node": "n1", "cpu": 3, "priority": 9, "status": {"conditions": pending}}
    return waiting_pod(name, **(there | options))


def running(name: str = "low", **options: Any) -> Pod:
    there: Any = {"node": "n1", "cpu": 2}
    return api_pod(name, **(there | options))


def closed(name: str) -> Node:
    """A node that disables preemption for resizes."""
    policy: Any = {"disableResizePreemption": ["policy"]}
    new_node = node(name, cpu=4, declared={"spec.podPreemptionPolicy": policy})
    decoded = decode(NODE, {"metadata": {"name": name}, "spec": {"podPreemptionPolicy": policy}})
    assert isinstance(decoded, Node)
    return msgspec.structs.replace(new_node, spec=decoded.spec)


def engine(*objects: Any, gates: dict[str, bool] | None = None, **options: Any) -> Engine:
    """Two nodes of 4 cpu with these objects."""
    named = options.pop("plugins", ["DeferredPodScheduling", "NodeResourcesFit"])
    plugins = [*named, "DefaultPreemption"]
    setup = Engine(plugins=plugins, gates={GATE: True, **(gates or {})}, **options)
    setup.add(node("n1", cpu=4), node("n2", cpu=4), *objects)
    return setup


def perform(effects: list[Any]) -> list[str]:
    """Perform the effects. Returns the deleted pods."""
    port = RecordingPort()
    for effect in effects:
        if isinstance(effect, Perform):
            asyncio.run(effect.run(port))
    return port.deleted


def evicted(engine: Engine) -> list[str]:
    return perform(engine.run())


# ---- which pods are tried -------------------------------------------------------------------


def test_less_important_pods_of_the_node_are_evicted_for_a_resize() -> None:
    setup = engine(running(), resizing())
    assert evicted(setup) == ["default/low"]
    (attempt,) = setup.attempts()
    assert (attempt.result, attempt.nominated_node) == ("unschedulable", "")
    assert attempt.message.startswith("0/2 nodes are available: 1 Insufficient cpu")
    assert attempt.message.endswith(MADE)
    assert setup.state_of("p") is State.UNSCHEDULABLE
    assert setup.blamed("p") == {"NodeResourcesFit", "DeferredPodScheduling"}


def test_a_resize_attempt_writes_no_status_and_no_event() -> None:
    result = engine(running(), resizing())
    effects = result.run()
    assert not [effect for effect in effects if isinstance(effect, PatchPodStatus | EmitEvent)]
    assert result.nominated_on("n1") == []
    assert result.placed_on("p") == "n1"


@pytest.mark.parametrize(
    ("pod", "gates"),
    [
        pytest.param(resizing(), {GATE: False}, id="the gate is off"),
        pytest.param(resizing(reason="Infeasible"), {}, id="an infeasible resize"),
        pytest.param(resizing(scheduler_name="theirs"), {}, id="a pod of another scheduler"),
        pytest.param(resizing(status={}), {}, id="no pending resize"),
    ],
)
def test_other_running_pods_are_ignored(pod: Pod, gates: dict[str, bool]) -> None:
    setup = engine(running(), pod, gates=gates)
    assert evicted(setup) == []
    assert setup.state_of("p") is State.ABSENT
    assert setup.attempts() == []


def test_a_resize_is_tried_while_the_kubelet_reports_it_as_deferred() -> None:
    setup = engine(running(priority=9), resizing(status={}))
    assert setup.run() == [] and setup.state_of("p") is State.ABSENT
    setup.update(resizing())
    assert len(evicted(setup)) == 0 and len(setup.attempts()) == 1
    assert setup.state_of("p") is State.UNSCHEDULABLE
    setup.update(resizing(status={}))
    assert setup.state_of("p") is State.ABSENT


@pytest.mark.parametrize("is_assumed", [False, True])
def test_a_binding_and_a_deferred_resize_in_one_update_start_attempts(*, is_assumed: bool) -> None:
    setup = engine(running())
    setup.add(waiting_pod("p", cpu=1 if is_assumed else 8, priority=9))
    setup.run()
    assert bool(setup.placed_on("p")) is is_assumed
    setup.update(resizing())
    assert evicted(setup) == ["default/low"]
    assert setup.attempts()[-1].message.endswith(MADE)
    assert setup.state_of("p") is State.UNSCHEDULABLE


def test_a_deleted_pod_is_no_longer_tried() -> None:
    for go in (
        lambda setup: setup.delete(resizing()),
        lambda setup: setup.update(resizing(status={"phase": "Succeeded"})),
    ):
        setup = engine(running(priority=9), resizing())
        setup.run()
        go(setup)
        assert setup.state_of("p") is State.ABSENT
        assert setup.placed_on("p") == ""


def test_a_pod_that_is_being_deleted_is_skipped() -> None:
    result = engine(running(), resizing(terminating=True))
    assert result.notes() == ["skip schedule deleting pod: default/p"]
    assert result.state_of("p") is State.ABSENT


def test_a_member_of_a_group_is_tried_alone() -> None:
    group: Any = {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}
    setup = engine()
    content = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 3}}
    setup.put(KIND, content)
    setup.add(waiting_pod("q", **group), running(), resizing(**group))
    assert evicted(setup) == ["default/low"]
    assert setup.state_of("q") is not State.UNSCHEDULABLE
    assert setup.state_of("p") is State.UNSCHEDULABLE


def test_a_member_is_tried_alone_if_it_is_bound_during_the_attempt_of_its_group() -> None:
    group: Any = {"labels": {"scheduling.x-k8s.io/pod-group": "g", "far": "yes"}}
    setup = engine(extenders=[Far()])
    content = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 2}}
    setup.put(KIND, content)
    setup.add(waiting_pod("q", **group), waiting_pod("p", **group))
    calls = setup.run_for(AskExtender)
    setup.update(resizing(**group))
    answer = ExtenderAnswer(node_names=frozenset(("n1", "n2")))
    for call in calls:
        setup.scheduler.extender_answered(call.token, answer)
    assert setup.state_of("p") is State.ACTIVE


# ---- evaluation -----------------------------------------------------------------------------


def test_plugins_other_than_resources_do_not_reject_a_resize() -> None:
    plugins = ["NodeUnschedulable", "NodeAffinity", "TaintToleration", "NodePorts"]
    plugins += ["DeferredPodScheduling", "NodeResourcesFit", "InterPodAffinity"]
    setup = engine(plugins=plugins)
    hostile = [{"key": "k", "value": "v", "effect": "NoExecute"}]
    setup.update(node("n1", cpu=4, taints=hostile, unschedulable=True))
    setup.add(running(), resizing(node_selector={"on": "the moon"}, host_ports=[80]))
    assert evicted(setup) == ["default/low"]


def test_the_current_requests_of_the_pod_count_once() -> None:
    """The pod already uses 3 of the 4 cpu."""
    setup = engine(running(cpu=1), resizing())
    assert evicted(setup) == []
    (attempt,) = setup.attempts()
    assert (attempt.result, attempt.message, attempt.node) == ("error", IN_CACHE, "n1")


def test_nothing_is_evicted_on_a_node_that_is_too_small() -> None:
    setup = engine(running(), resizing(cpu=5))
    assert evicted(setup) == []
    assert setup.state_of("p") is State.UNSCHEDULABLE


def test_the_pod_counts_once_more_in_the_number_of_pods() -> None:
    """As in upstream: the pod is on the node and is counted again."""
    setup = engine()
    setup.update(node("n1", cpu=4, pods=2))
    setup.add(running(cpu=1), resizing(cpu=1))
    assert evicted(setup) == ["default/low"]
    assert "Too many pods" in setup.attempts()[0].message


@pytest.mark.parametrize(
    ("who", "options"),
    [
        pytest.param(running(priority=9), {}, id="no less important pods"),
        pytest.param(
            running(), {"spec": {"preemptionPolicy": "Never"}}, id="preemption policy Never"
        ),
        pytest.param(
            running(node="n2", cpu=4), {"cpu": 5}, id="less important pods on other nodes"
        ),
    ],
)
def test_pods_that_must_not_be_evicted_stay(who: Pod, options: dict[str, Any]) -> None:
    setup = engine(who, resizing(**options))
    assert evicted(setup) == []
    assert setup.state_of("p") is State.UNSCHEDULABLE


def test_nothing_is_evicted_on_an_unschedulable_node() -> None:
    setup = engine()
    setup.update(closed("n1"))
    setup.add(running(), resizing())
    assert evicted(setup) == []
    setup.update(node("n1", cpu=4))
    setup.until(20)
    assert evicted(setup) == ["default/low"]


def test_a_resize_on_an_unknown_node_waits_for_the_node() -> None:
    setup = engine(running(node="n3"), resizing(node="n3"))
    assert evicted(setup) == []
    setup.add(node("n4", cpu=4))
    assert len(setup.attempts()) == 1 and setup.run() == []
    setup.add(node("n3", cpu=4))
    setup.until(20)
    assert evicted(setup) == ["default/low"]


# ---- after the attempt ----------------------------------------------------------------------


def test_a_resize_that_fits_waits_for_the_kubelet() -> None:
    setup = engine(running(), resizing())
    evicted(setup)
    setup.run()
    setup.delete(running())
    setup.until(20)
    assert setup.run() == []
    assert [attempt.result for attempt in setup.attempts()] == ["unschedulable", "error"]
    assert setup.state_of("p") is State.ERROR_BACKOFF
    assert setup.scheduler.only_retries_wait
    setup.update(resizing(status={}))
    assert setup.state_of("p") is State.ABSENT
    setup.until(100)
    assert setup.run() == []


def test_a_resize_evicts_again_if_another_pod_took_the_room() -> None:
    setup = engine(resizing())
    assert evicted(setup) == []
    setup.add(running())
    setup.until(20)
    assert evicted(setup) == ["default/low"]


def test_a_resize_with_a_larger_request_is_tried_again() -> None:
    setup = engine(running(cpu=2, priority=9), running("lower", cpu=1), resizing(cpu=2))
    assert evicted(setup) == ["default/lower"]
    setup.delete(running("lower", cpu=1))
    setup.until(20)
    setup.run()
    setup.update(resizing(cpu=3))
    setup.until(40)
    setup.run()
    assert [attempt.result for attempt in setup.attempts()][-1] == "unschedulable"


def test_events_on_other_nodes_do_not_activate_a_resize() -> None:
    result = engine(running(priority=9), running("far", node="n2"), resizing())
    result.run()
    result.delete(running("far", node="n2"))
    result.update(node("n2", cpu=8))
    result.until(20)
    assert len(result.attempts()) == 1 and result.run() == []
    result.delete(running(priority=9))
    result.until(40)
    result.run()
    assert len(result.attempts()) == 2


def test_with_the_gate_off_an_attempt_waits_for_its_evictions() -> None:
    result = engine(running(), resizing(), gates={"SchedulerAsyncPreemption": False})
    effects = result.run()
    assert result.state_of("p") is State.IN_FLIGHT
    assert result.nominated_on("n1") == []
    assert perform(effects) == ["default/low"]
    assert result.patches() == []
    assert result.state_of("p") is State.UNSCHEDULABLE


@pytest.mark.parametrize("is_over", [False, True])
def test_a_resize_may_end_while_an_extender_is_called(is_over: bool) -> None:
    result = engine(resizing(**FAR), running(), extenders=[Far()])
    result.update(node("n1", cpu=8))
    (ask,) = result.run_for(AskExtender)
    if is_over:
        result.update(resizing(status={}, **FAR))
    result.scheduler.extender_answered(ask.token, ExtenderAnswer(node_names=frozenset(("n1",))))
    assert result.run() == []
    assert result.state_of("p") is (State.ABSENT if is_over else State.ERROR_BACKOFF)
    assert result.scheduler.cache.pod(uid("p")) is not None
