"""A run as a whole: its result and its end."""

from collections.abc import Callable
from typing import Any

import pytest

from bayplan import (
    UPDATE,
    ClusterEvent,
    ClusterEventWithHint,
    Code,
    CycleState,
    Handle,
    NodeInfo,
    NodeView,
    PluginArgs,
    PodInfo,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ScalarFilterPlugin,
    Status,
    unresolvable,
    unschedulable,
)
from bayplan.durations import DURATION_ANNOTATION
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.sim.output.result import Usage
from bayplan.sim.world.checkers import InvariantBroken
from tests.framework.answering import answering
from tests.kit.manifests import Content, container, node, pod
from tests.sim.runs import create, delete, patch, profile, simulate, simulation, workload


def lasting(name: str, duration: str, **fields: Any) -> Content:
    return pod(name, annotations={DURATION_ANNOTATION: duration}, **fields)


# ---- results --------------------------------------------------------------------------------


def test_pods_that_start_on_a_node_are_counted_and_not_placed() -> None:
    result = simulate(node("n1"), pod("r", nodeName="n1"), pod("a"))
    assert result.counts.running == 1
    assert result.placements == {"default/a": "n1"}
    assert (result.pods["default/r"].node, result.pods["default/r"].bound_at) == ("n1", None)


def test_a_deleted_pod_is_not_pending_and_stays_listed() -> None:
    waits = pod("a", cpu="64")
    feed = workload(node("n1"), waits, steps=[delete(7, waits)])
    result = simulation(feed).run()
    assert (result.placements, result.unschedulable) == ({}, {})
    assert result.pods["default/a"].deleted_at == 7.0


def test_attempts_are_counted_per_pod_and_not_per_name() -> None:
    waits = pod("a", cpu="64")
    again = [delete(1, waits), create(2, pod("a", cpu="1"))]
    result = simulation(workload(node("n1"), waits, steps=again)).run()
    assert result.pods["default/a"].attempts == 1
    assert result.attempts == 2


def test_times_are_those_of_the_events() -> None:
    small = node("small", status={"allocatable": {"cpu": "1m", "pods": "110"}})
    feed = workload(small, pod("a", cpu="1"), steps=[create(30, node("n1"))])
    a = simulation(feed).run().pods["default/a"]
    assert (a.created_at, a.bound_at, a.deleted_at, a.attempts) == (0.0, 30.0, None, 2)


def test_usage_is_reported_at_the_end_and_at_the_peak() -> None:
    pods = [lasting("a", "5s"), lasting("b", "5s"), pod("c")]
    result = simulate(node("n1"), *pods)
    cpu = Usage(resource="cpu", requested=1000, peak=3000, allocatable=4000, peak_allocatable=4000)
    assert cpu in result.usage


def test_an_object_refused_by_the_api_server_is_noted() -> None:
    feed = workload(node("n1"), steps=[create(3, node("n1"))])
    [note] = simulation(feed).run().notes
    assert note.startswith("at 3 s: create Node n1: ")


def test_notes_of_the_workload_come_first() -> None:
    feed = workload(node("n1"), notes=("made up",), ended_pods=("default/ended",) * 4)
    result = simulation(feed).run()
    assert result.notes == ("made up",)
    assert result.counts.completed == 4


def test_an_empty_run_has_an_empty_result() -> None:
    result = simulate()
    assert (result.nodes, result.counts.pods, result.attempts) == (0, 0, 0)
    assert result.usage == ()


def test_progress_is_reported_for_every_pod() -> None:
    reports: list[tuple[int, int]] = []
    feed = workload(node("n1"), pod("a"), steps=[create(3, pod("b"))])
    run = simulation(feed)
    run.on_progress(lambda number, count: reports.append((number, count)))
    run.run()
    assert reports == [(1, 2), (2, 2)]


# ---- the end of a run -----------------------------------------------------------------------


def test_retry_timers_alone_do_not_continue_the_run() -> None:
    assert simulate(node("n1"), pod("a", cpu="64")).simulated_seconds == 0.0


def test_a_retry_that_may_succeed_is_waited_for() -> None:
    """Without any node, only the backoff retries a pod: the new node is no event for it."""
    feed = workload(pod("a"), steps=[create(25, node("n1"))])
    result = simulation(feed).run()
    assert result.placements == {"default/a": "n1"}
    assert result.simulated_seconds == result.pods["default/a"].bound_at
    assert 25.0 < result.simulated_seconds < 40.0


def test_a_retry_that_failed_is_not_waited_for_again() -> None:
    feed = workload(pod("bad"), steps=[create(25, node("n1"))])
    result = simulation(feed, Broken).run()
    assert list(result.unschedulable) == ["default/bad"]
    assert result.simulated_seconds < 40.0


def test_until_determines_the_end_of_the_run() -> None:
    feed = workload(node("n1"), pod("a", cpu="64"), until_seconds=400.0)
    result = simulation(feed).run()
    assert result.simulated_seconds == 400.0
    assert result.pods["default/a"].attempts == 2  # the flush after five minutes


def boom_for_bad(pod: PodInfo) -> None:
    if pod.name == "bad":
        raise RuntimeError("boom")


#: Fails for pods called bad.
Broken = answering("Broken", filter_node=lambda state, pod, node: boom_for_bad(pod))


def test_a_plugin_that_fails_for_a_pod_neither_ends_nor_prolongs_the_run() -> None:
    result = simulate(node("n1"), pod("bad"), pod("good"), plugins=[Broken])
    assert result.placements == {"default/good": "n1"}
    assert 'Filter plugin "Broken": RuntimeError: boom' in result.unschedulable["default/bad"]


def closed_today(pod: PodInfo) -> Status:
    boom_for_bad(pod)
    return unschedulable("closed today")


def test_a_pod_gated_by_pre_enqueue_has_plugin_and_reason() -> None:
    result = simulate(
        node("n1"),
        pod("bad"),
        pod("good"),
        plugins=[answering("Gatekeeper", pre_enqueue=closed_today)],
    )
    prefix = "held back at PreEnqueue by plugin Gatekeeper: "
    assert result.unschedulable["default/good"] == f"{prefix}closed today"
    assert result.pods["default/good"].message == f"{prefix}closed today"
    failed = 'running PreEnqueue plugin "Gatekeeper": RuntimeError: boom ('
    assert result.unschedulable["default/bad"].startswith(prefix + failed)
    (failure,) = result.failures
    assert (failure.plugin, failure.count, failure.example) == ("Gatekeeper", 1, "default/bad")


def test_a_pod_with_scheduling_gates_has_the_message_of_the_api_server() -> None:
    gated = pod("a", schedulingGates=[{"name": "example.com/wait"}])
    result = simulate(node("n1"), gated)
    message = "Scheduling is blocked due to non-empty scheduling gates"
    assert result.unschedulable == {"default/a": message}


def test_a_failure_at_post_bind_is_in_the_result_and_the_pod_is_placed() -> None:
    afterthought = answering("Afterthought", post_bind=RuntimeError("boom"))
    result = simulate(node("n1"), pod("a"), plugins=[afterthought])
    assert result.placements == {"default/a": "n1"}
    (failure,) = result.failures
    assert (failure.plugin, failure.example) == ("Afterthought", "default/a")
    assert failure.message.startswith('running PostBind plugin "Afterthought": RuntimeError: boom')


#: Lets every pod wait for a minute.
Holds = answering("Holds", permit=(Status(Code.WAIT), 60.0))


class Prepares(PreBindPlugin):
    """Takes a minute at PreBind."""

    name = "Prepares"

    async def pre_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: Any
    ) -> Status | None:
        await port.sleep(60.0)
        return None


@pytest.mark.parametrize("plugin", [Holds, Prepares])
def test_a_pod_that_is_being_bound_at_the_end_is_pending_and_not_lost(plugin: type[Any]) -> None:
    feed = workload(node("n1"), pod("a"), until_seconds=10.0)
    result = simulation(feed, plugin).run()
    assert list(result.unschedulable) == ["default/a"]
    assert result.pods["default/a"].nominated_node == "n1"


def test_the_run_waits_for_a_pod_in_pre_bind() -> None:
    result = simulate(node("n1"), pod("a"), plugins=[Prepares])
    assert result.pods["default/a"].bound_at == 60.0


def test_a_pod_deleted_during_its_binding_is_deleted_in_the_result() -> None:
    feed = workload(node("n1"), pod("a"), steps=[delete(5, pod("a"))], until_seconds=10.0)
    result = simulation(feed, Prepares).run()
    assert result.pods["default/a"].deleted_at == 5.0
    assert result.unschedulable == {}


# ---- plugins of users -----------------------------------------------------------------------


class KubeletArgs(PluginArgs):
    """The accepted version of the kubelet."""

    version: str = "v1.37.0"


class Kubelet(ScalarFilterPlugin):
    """Reads a field of nodes that no other plugin reads."""

    name = "Kubelet"
    args_type = KubeletArgs
    fields = ("Node.status.nodeInfo.kubeletVersion",)

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        version = node.declared["Node.status.nodeInfo.kubeletVersion"]
        return (
            None if version == self.args.version else unresolvable(f"node(s) had kubelet {version}")
        )


def with_kubelet(name: str, version: str) -> Content:
    content = node(name)
    return {**content, "status": {**content["status"], "nodeInfo": {"kubeletVersion": version}}}


def test_a_plugin_can_read_a_declared_field() -> None:
    nodes = [with_kubelet("old", "v1.30.0"), with_kubelet("new", "v1.37.0")]
    result = simulate(*nodes, pod("a", cpu="3"), pod("b", cpu="3"), plugins=[Kubelet])
    assert result.placements == {"default/a": "new"}
    assert "1 node(s) had kubelet v1.30.0" in result.unschedulable["default/b"]


QUOTA = {
    "apiVersion": "example.com/v1",
    "kind": "Quota",
    "metadata": {"name": "q", "namespace": "default"},
}


class NeedsQuota:
    """Requires an object of its own kind in the pod's namespace; registers no events."""

    kinds = ("example.com/v1 Quota",)
    handle: Handle

    def _status(self, pod: PodInfo) -> Status | None:
        quota = self.handle.objects("example.com/v1 Quota").get("q", pod.namespace)
        return unschedulable("no quota yet") if quota is None else None


class QuotaFilter(NeedsQuota, PreFilterPlugin):
    """In the cycle."""

    name = "QuotaFilter"

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        return self._status(pod)


class QuotaGate(NeedsQuota, PreEnqueuePlugin):
    """Before the pod enters activeQ."""

    name = "QuotaGate"

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return self._status(pod)


@pytest.mark.parametrize(("plugin", "attempts"), [(QuotaGate, 1), (QuotaFilter, 2)])
def test_an_object_of_a_declared_kind_activates_the_waiting_pod(
    plugin: type[Any], attempts: int
) -> None:
    feed = workload(node("n1"), pod("a"), steps=[create(40, QUOTA)])
    result = simulation(feed, plugin).run().pods["default/a"]
    assert (result.bound_at, result.attempts) == (40.0, attempts)


def closed_once() -> Callable[..., Status | None]:
    """The answers of a Filter that rejects at its first call."""
    answers = iter([unschedulable("closed")])
    return lambda state, pod, node: next(answers, None)


ATTACHMENT = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "VolumeAttachment",
    "metadata": {"name": "a"},
    "spec": {"attacher": "csi.example.com", "nodeName": "n1", "source": {}},
}
SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "s"},
    "spec": {
        "driver": "d.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
    },
}


@pytest.mark.parametrize(
    ("before", "step"),
    [
        pytest.param((), create(40, SLICE), id="a slice is added"),
        pytest.param((ATTACHMENT,), delete(40, ATTACHMENT), id="an attachment is deleted"),
    ],
)
def test_a_plugin_without_registered_events_is_activated_by_any_kind(
    before: tuple[Content, ...], step: Any
) -> None:
    only = profile(
        plugins={
            "multiPoint": {
                "disabled": [{"name": "*"}],
                "enabled": [
                    {"name": "PrioritySort"},
                    {"name": "DefaultBinder"},
                    {"name": "Closed"},
                ],
            }
        }
    )
    feed = workload(node("n1"), *before, pod("a"), steps=[step])
    result = simulation(feed, answering("Closed", filter_node=closed_once()), config=only).run()
    assert result.pods["default/a"].bound_at == 40.0


def test_an_update_of_a_registered_kind_activates_the_waiting_pod() -> None:
    changed = {**QUOTA, "spec": {"pods": 5}}
    feed = workload(node("n1"), QUOTA, pod("a"), steps=[patch(40, changed)])
    event = ClusterEventWithHint(ClusterEvent("example.com/v1 Quota", UPDATE))
    waits = answering("Waits", filter_node=closed_once(), events_to_register=[event])
    result = simulation(feed, waits).run()
    assert result.pods["default/a"].bound_at == 40.0


def test_plugins_are_closed_even_if_the_run_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    closing = answering("Closing", filter_node=None, close=None)
    monkeypatch.setattr(NodeResourcesFit, "filter", lambda *_: iter(()))
    run = simulation(workload(node("n1"), pod("a", cpu="64")), closing)
    with pytest.raises(InvariantBroken):
        run.run()
    assert closing.calls[-1] == ("Closing", "close")


# ---- attempts and progress ------------------------------------------------------------------


def test_capacity_is_not_checked_if_the_configuration_does_not_filter_by_it() -> None:
    config = profile(plugins={"filter": {"disabled": [{"name": "NodeResourcesFit"}]}})
    feed = workload(node("n1"), pod("a", cpu="3"), pod("b", cpu="3"))
    assert len(simulation(feed, config=config).run().placements) == 2


def test_capacity_is_not_checked_for_an_ignored_resource() -> None:
    args = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/gpu"]}}
    gpu = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    feed = workload(node("n1"), pod("a", containers=[container(resources=gpu)]))
    config = profile(pluginConfig=[args])
    assert simulation(feed, config=config).run().placements == {"default/a": "n1"}
