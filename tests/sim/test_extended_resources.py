"""Devices that stand for an extended resource, around the scheduler: the checkers of a run, its
figures, the page and questions."""

from typing import Any

import pytest

from bayplan.api.device_objects import ExactDeviceRequest
from bayplan.api.pod_groups import BUILT_IN_KINDS
from bayplan.config import SchedulerConfig
from bayplan.plugins.dynamic_resources import extended
from bayplan.plugins.registry import default_registry
from bayplan.sim.input.what_if import WhatIf
from bayplan.sim.input.workload import Workload
from bayplan.sim.output.result import SimulationResult, Usage
from bayplan.sim.world.checkers import InvariantBroken
from bayplan.state.device_table import AllocatedDevices
from bayplan.whatif.comparison import Utilization
from bayplan.whatif.headroom import headroom
from bayplan.whatif.over_time import what_if_over_time
from tests.history.stored_runs import folded
from tests.kit.manifests import Content, container, node, pod
from tests.plugins.devices_kit import class_of, slice_of
from tests.sim.runs import create, delete, simulate, simulation, workload
from tests.whatif.clusters import additions_to, cluster_of, model_of

GPU = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"
API_VERSION = {"apiVersion": "resource.k8s.io/v1"}
CANNOT_ALLOCATE = (
    "0/2 nodes are available: 2 cannot allocate all claims. preemption: "
    "0/2 nodes are available: 2 Preemption is not helpful for scheduling."
)


def gpu_class(name: str = "gpu", **spec: Any) -> Content:
    return {**API_VERSION, "kind": "DeviceClass", **class_of(name, extendedResourceName=GPU)}


def devices_of(node_name: str, *devices: str, **spec: Any) -> Content:
    return {**API_VERSION, "kind": "ResourceSlice", **slice_of(node_name, *devices, **spec)}


def requesting(name: str, count: int, resource: str = GPU, **fields: Any) -> Content:
    resources = {"limits": {resource: count}, "requests": {resource: count}}
    return pod(name, containers=[container(resources=resources)], **fields)


def figures_of(result: SimulationResult, resource: str = GPU) -> Usage:
    return next(usage for usage in result.usage if usage.resource == resource)


def test_a_pod_gets_a_device_on_a_node_that_does_not_know_the_resource() -> None:
    result = simulate(node("n1"), gpu_class(), devices_of("n1", "d0"), requesting("one", 1))
    assert result.placements == {"default/one": "n1"}
    assert figures_of(result) == Usage(
        resource=GPU, requested=1, peak=1, allocatable=1, peak_allocatable=1
    )
    assert result.node_usage["n1"].requested[GPU] == 1
    assert result.node_usage["n1"].allocatable[GPU] == 1


def test_a_pod_waits_if_no_node_has_enough_devices() -> None:
    none_of_its_own = {"cpu": "4", "pods": "110", GPU: "0"}
    result = simulate(
        node("n1"),
        node("n2", status={"allocatable": none_of_its_own}),
        gpu_class(),
        devices_of("n1", "d0"),
        devices_of("n2", "d0"),
        requesting("one", 1),
        requesting("two", 2),
    )
    assert list(result.placements) == ["default/one"]
    assert result.unschedulable == {"default/two": CANNOT_ALLOCATE}
    assert figures_of(result) == Usage(
        resource=GPU, requested=1, peak=1, allocatable=2, peak_allocatable=2
    )


def test_the_implicit_name_of_a_class_is_a_resource_only_if_a_pod_requests_it() -> None:
    objects = node("n1"), gpu_class(), devices_of("n1", "d0", "d1")
    assert [usage.resource for usage in simulate(*objects).usage][:2] == ["cpu", GPU]
    result = simulate(*objects, requesting("a", 1, IMPLICIT))
    assert figures_of(result, IMPLICIT).requested == 1
    assert figures_of(result, IMPLICIT).allocatable == 2


def test_a_device_for_all_nodes_counts_once() -> None:
    shared = devices_of("pool", "d0", "d1", allNodes=True)
    pods = [requesting(name, 1) for name in ("a", "b", "c")]
    result = simulate(node("n1"), node("n2"), gpu_class(), shared, *pods)
    assert len(result.placements) == 2
    assert figures_of(result).allocatable == 2


def test_a_node_with_the_resource_counts_with_its_own_amount() -> None:
    own = {"cpu": "4", "pods": "110", GPU: "1"}
    result = simulate(
        node("n1", status={"allocatable": own}),
        gpu_class(),
        devices_of("n1", "d0", "d1"),
        requesting("a", 1),
        requesting("b", 1),
    )
    assert len(result.placements) == 1
    assert figures_of(result) == Usage(
        resource=GPU, requested=1, peak=1, allocatable=1, peak_allocatable=1
    )


def feed_with_changes(**options: Any) -> Workload:
    steps = (
        create(10, devices_of("n1", "d0", "d1")),
        create(20, requesting("b", 1, IMPLICIT)),
        delete(30, devices_of("n2", "d0")),
    )
    objects = (node("n1"), node("n2"), gpu_class(), devices_of("n2", "d0"), requesting("a", 1))
    return workload(*objects, steps=steps, **options)


@pytest.mark.parametrize("seconds", [5.0, 15.0, 25.0, 35.0])
def test_the_page_has_the_figures_of_the_run(seconds: float) -> None:
    line = folded(feed_with_changes())
    state = line.state(line.change_at(seconds))
    stopped = simulation(feed_with_changes(until_seconds=seconds)).run()
    for name, usage in stopped.node_usage.items():
        row = line.node_rows[name]
        used = dict(zip(line.resources, state.used[row].tolist(), strict=True))
        allocatable = dict(zip(line.resources, state.allocatable[row].tolist(), strict=True))
        assert {key: used[key] for key in usage.requested} == usage.requested
        assert {key: allocatable[key] for key in usage.allocatable} == usage.allocatable


def test_questions_know_the_devices() -> None:
    cluster = cluster_of(
        node("n1"), gpu_class(), devices_of("n1", "d0", "d1"), requesting("one", 1)
    )
    change = WhatIf(cordon=("n1",), until="60s")
    registry = default_registry(())
    answer = what_if_over_time(model_of(cluster), change, SchedulerConfig(), registry)
    assert answer.before.utilization[GPU] == Utilization(requested=1, allocatable=2)
    assert answer.after.utilization[GPU] == Utilization(requested=1, allocatable=2)
    more = additions_to(cluster, requesting("more", 1, IMPLICIT))
    [shape] = headroom(model_of(cluster), more, BUILT_IN_KINDS).shapes
    # The pod that waits takes the other device first.
    assert shape.max.count == 1


# ---- planted faults -------------------------------------------------------------------------


def test_a_device_that_two_claims_get_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AllocatedDevices, "is_whole_taken", lambda self, device: False)
    objects = node("n1"), gpu_class(), devices_of("n1", "d0")
    with pytest.raises(InvariantBroken, match=r"device gpu\.example\.com/n1/d0 was allocated to"):
        simulate(*objects, requesting("a", 1), requesting("b", 1))


def test_too_few_devices_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_one(**fields: Any) -> ExactDeviceRequest:
        return ExactDeviceRequest(**{**fields, "count": 1})

    monkeypatch.setattr(extended.device_objects, "ExactDeviceRequest", with_one)
    text = r"container c requests 2 example\.com/gpu, and its claim \S+ has 1 devices for it"
    with pytest.raises(InvariantBroken, match=text):
        simulate(node("n1"), gpu_class(), devices_of("n1", "d0", "d1"), requesting("a", 2))
