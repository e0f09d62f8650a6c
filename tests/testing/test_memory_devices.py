"""A scheduler reads devices through the manager that its caller passes."""

from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.objects import NODE, POD
from bayplan.clock import ManualClock
from bayplan.config import config_from
from bayplan.config.schema import API_VERSION, KIND
from bayplan.engine.scheduler import Scheduler
from bayplan.plugins.registry import default_registry
from bayplan.ports import EventType, WatchEvent
from bayplan.testing import MemoryDevices, SampleCluster, api_pod, node
from tests.plugins.devices_kit import (
    allocated,
    as_claim,
    as_class,
    as_slice,
    claim,
    class_of,
    exactly,
    put,
    slice_of,
)

GPU = "example.com/gpu"
CONFIG = {"apiVersion": API_VERSION, "kind": KIND}


def test_a_pod_gets_a_device_that_only_the_passed_manager_lists() -> None:
    devices = MemoryDevices(
        claims=[as_claim(claim("c", exactly()))],
        slices=[as_slice(slice_of("n2", "x"))],
        classes=[as_class(class_of())],
    )
    scheduler = Scheduler(config_from(CONFIG), default_registry(), ManualClock(), devices=devices)
    wanting = api_pod("p", spec={"resourceClaims": [{"name": "g", "resourceClaimName": "c"}]})
    for each in (node("n1", cpu=4), node("n2", cpu=4), wanting):
        scheduler.handle(WatchEvent(EventType.ADDED, POD if each is wanting else NODE, each))
    scheduler.schedule_one()
    pending = devices.resource_claims.pending_allocation("uid-c")
    assert pending is not None
    assert [result.pool for result in pending.results] == ["n2"]


@given(
    sizes=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    taken=st.sets(st.integers(0, 3)),
)
def test_both_managers_count_the_same_devices(sizes: list[int], taken: set[int]) -> None:
    names = [f"n{position}" for position in range(len(sizes))]
    slices = [
        slice_of(name, *map(str, range(size))) for name, size in zip(names, sizes, strict=True)
    ]
    claims = [
        claim(f"c{position}", exactly(), status=allocated((f"n{position}", "0")))
        for position in sorted(taken)
    ]
    device_class = class_of("gpu", extendedResourceName=GPU)
    nodes = [node(name, cpu=1) for name in names]
    cluster = SampleCluster().add(*nodes)
    put(cluster.store, device_class, *slices, *claims)
    memory = MemoryDevices(
        claims=map(as_claim, claims),
        slices=map(as_slice, slices),
        classes=[as_class(device_class)],
        nodes=nodes,
    )
    expected, counts = cluster.devices.counts(GPU), memory.counts(GPU)
    assert expected is not None and counts is not None
    assert counts.tolist() == expected[: len(nodes)].tolist()
    assert memory.counts("example.com/other") is None
