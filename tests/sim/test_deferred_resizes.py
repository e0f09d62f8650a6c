"""A running pod needs more than its node has free: victims are evicted and the pod stays."""

from typing import Any

from bayplan.api.objects import POD
from bayplan.config import SchedulerConfig, config_from
from bayplan.journal import AttemptRecord, MemorySink
from bayplan.objects.keys import object_key
from bayplan.sim.input.workload import Step, Verb
from bayplan.sim.output.result import SimulationResult
from tests.kit.manifests import Content, container, node, pod
from tests.sim.runs import create, simulation, workload

GATE = "InPlacePodVerticalScalingSchedulerPreemption"


def config(*, gate: bool) -> SchedulerConfig:
    return config_from(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "featureGates": {GATE: gate},
            "profiles": [{"schedulerName": "default-scheduler"}],
        }
    )


def running(name: str, cpu: str, priority: int) -> Content:
    return pod(name, nodeName="n1", cpu=cpu, priority=priority)


def patch(at: float, content: Content) -> Step:
    key = object_key(POD, "default", "p")
    return Step(at_seconds=at, verb=Verb.PATCH, key=key, content=content)


def resized(at: float) -> Step:
    """A resize to three cpu, of which the kubelet allocates one."""
    pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
    one: Content = {"requests": {"cpu": "1"}}
    container_status = {"name": "c", "allocatedResources": one["requests"], "resources": one}
    status = {"conditions": [pending], "containerStatuses": [container_status]}
    return patch(at, {"spec": {"containers": [container("3")]}, "status": status})


def run(*steps: Step, gate: bool = True) -> tuple[SimulationResult, list[tuple[float, str]]]:
    """Two nodes of four cpu; (seconds, result) of each attempt at the pod."""
    initial = [node("n1"), node("n2"), running("p", "1", 9), running("low", "2", 0)]
    sink = MemorySink()
    feed = workload(*initial, steps=steps)
    result = simulation(feed, config=config(gate=gate), sinks=[sink]).run()
    records: list[Any] = [r for r in sink.records if isinstance(r, AttemptRecord)]
    attempts = [(r.at_seconds, r.result) for r in records if r.pod == "default/p"]
    return result, attempts


def test_victims_are_evicted_on_its_node_and_the_kubelet_decides() -> None:
    conditions_cleared = patch(7.5, {"status": {"conditions": []}})
    late = create(8, pod("late", cpu="2"))
    result, attempts = run(resized(5), conditions_cleared, late)
    assert result.pods["default/low"].deleted_at == 5.0
    assert result.pods["default/p"].node == "n1"
    assert result.pods["default/p"].deleted_at is None
    assert (result.placements, result.unschedulable) == ({"default/late": "n2"}, {})
    assert attempts == [(5.0, "unschedulable"), (5.0, "error"), (7.0, "error")]


def test_a_deferred_resize_is_retried_and_the_run_ends() -> None:
    result, attempts = run(resized(5))
    assert result.pods["default/low"].deleted_at == 5.0
    assert [result for _, result in attempts] == ["unschedulable", "error"]


def test_without_the_gate_nothing_is_evicted() -> None:
    result, attempts = run(resized(5), gate=False)
    assert result.pods["default/low"].deleted_at is None
    assert attempts == []
