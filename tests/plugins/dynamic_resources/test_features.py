"""Each feature gate of devices, on and off, as in kube-scheduler."""

from typing import Any

import pytest

from bayplan.config.feature_gates import default_gates, resolve_gates
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.objects.object_store import ObjectStore
from bayplan.plugins.dynamic_resources.allocator import Allocator, PoolsByNode
from bayplan.plugins.dynamic_resources.features import ALL_ON, DeviceFeatures, features_of
from bayplan.plugins.dynamic_resources.pools import AllocationError
from bayplan.state.device_table import Devices
from bayplan.state.node_table import NodeTable
from bayplan.testing import node
from tests.plugins.devices_kit import (
    Json,
    all_of,
    as_claim,
    claim,
    class_of,
    device,
    exactly,
    first_of,
    put,
    slice_of,
)

TAINTED = device("a", taints=[{"key": "old", "effect": "NoSchedule"}])
#: The first device has binding conditions.
TO_PREPARE = (device("a", bindingConditions=["ready"]), device("b"))
SHARED = device("a", allowMultipleAllocations=True, capacity={"memory": "10Gi"})
PART = device("a", consumesCounters=[{"counterSet": "s", "counters": {"c": {"value": "1"}}}])


def devices_of(features: DeviceFeatures, contents: tuple[Json, ...], *claims: Json) -> Any:
    """Devices per claim; None if there are too few."""
    store = ObjectStore[Any]()
    put(store, class_of(), *contents)
    devices = Devices(NodeTable(), store)
    pools = PoolsByNode(devices.resource_slices, features)
    allocator = Allocator(pools, devices.device_classes, devices.resource_claims.allocated)
    allocations = allocator.allocate(node("n1"), [as_claim(each) for each in claims], lambda: None)
    return allocations and [[result.device for result in each.results] for each in allocations]


def test_the_default_features_are_those_of_kube_scheduler() -> None:
    assert features_of(default_gates()) == ALL_ON


@pytest.mark.parametrize(
    "gate",
    [
        "DRADeviceTaints",
        "DRADeviceBindingConditions",
        "DRAConsumableCapacity",
        "DRAPartitionableDevices",
        "DRAPrioritizedList",
        "DRAResourceClaimDeviceStatus",
        "DRASchedulerFilterTimeout",
    ],
)
def test_each_gate_switches_one_feature(gate: str) -> None:
    needing = {
        "DRADeviceTaints": ("DRADeviceTaintRules",),
        "DRAResourceClaimDeviceStatus": (
            "DRADeviceBindingConditions",
            "DRAResourceClaimGranularStatusAuthorization",
        ),
    }
    gate_values = dict.fromkeys((gate, *needing.get(gate, ())), False)
    gates, problems = resolve_gates(("", gate_values), version=KubernetesVersion.V1_36)
    assert not problems
    features = features_of(gates)
    default = features_of(default_gates(KubernetesVersion.V1_36))
    differing = [
        name
        for name in features.__struct_fields__
        if getattr(features, name) is not getattr(default, name)
    ]
    assert len(differing) == 1


def test_without_device_taints_a_tainted_device_is_allocated() -> None:
    new_claim = claim("c", exactly())
    slices = (slice_of("n1", TAINTED),)
    assert devices_of(ALL_ON, slices, new_claim) is None
    assert devices_of(DeviceFeatures(taints=False), slices, new_claim) == [["a"]]


def test_without_the_gate_a_device_with_binding_conditions_is_not_allocated() -> None:
    new_claim = claim("c", exactly())
    slices = (slice_of("n1", *TO_PREPARE),)
    assert devices_of(ALL_ON, slices, new_claim) == [["a"]]
    off = DeviceFeatures(binding_conditions=False)
    assert devices_of(off, slices, new_claim) == [["b"]]
    assert devices_of(off, slices, claim("c", all_of())) == [["b"]]


def test_without_consumable_capacity_no_device_is_shared() -> None:
    one, other = claim("c", exactly()), claim("d", exactly())
    slices = (slice_of("n1", {**SHARED, "capacity": {}}),)
    assert devices_of(ALL_ON, slices, one, other) == [["a"], ["a"]]
    assert devices_of(DeviceFeatures(consumable_capacity=False), slices, one, other) is None


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (exactly(capacity={"requests": {"memory": "1Gi"}}), "request r"),
        (first_of("r", big={"capacity": {"requests": {"memory": "1Gi"}}}), "subrequest big"),
    ],
)
def test_without_the_gate_a_request_for_capacity_is_an_error(content: Json, word: str) -> None:
    slices = (slice_of("n1", SHARED),)
    assert devices_of(ALL_ON, slices, claim("c", content)) == [["a"]]
    with pytest.raises(AllocationError) as error:
        devices_of(DeviceFeatures(consumable_capacity=False), slices, claim("c", content))
    text = f"claim default/c, {word}: has capacity requests, but the DRAConsumableCapacity"
    assert str(error.value) == f"{text} feature is disabled"


def test_without_partitionable_devices_partitions_and_their_slices_do_not_count() -> None:
    counters = slice_of(
        "n1-counters",
        nodeName="n1",
        pool={"name": "n1", "resourceSliceCount": 2},
        sharedCounters=[{"name": "s", "counters": {"c": {"value": "1"}}}],
        devices=None,
    )
    devices = slice_of("n1", PART, "b", pool={"resourceSliceCount": 2})
    new_claim = claim("c", exactly())
    off = DeviceFeatures(partitionable_devices=False)
    assert devices_of(ALL_ON, (counters, devices), new_claim) == [["a"]]
    assert devices_of(off, (counters, devices), new_claim) == [["b"]]
    picky = slice_of("n1", device("a", nodeName="n1"), perDeviceNodeSelection=True)
    assert devices_of(ALL_ON, (picky,), new_claim) == [["a"]]
    assert devices_of(off, (picky,), new_claim) is None
