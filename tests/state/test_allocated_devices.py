"""Taken devices follow the claims that have them."""

from bayplan.api.device_objects import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from bayplan.api.quantity import NANOS
from bayplan.state.allocated_devices import AllocatedDevices, DeviceId

GPU = DeviceId("d", "p", "gpu")


def one(**fields: object) -> AllocationResult:
    result = DeviceRequestAllocationResult(driver="d", pool="p", device="gpu", **fields)  # pyright: ignore[reportArgumentType]
    return AllocationResult(devices=DeviceAllocationResult(results=(result,)))


def test_a_device_is_taken_until_its_claim_has_it_no_longer() -> None:
    taken = AllocatedDevices()
    taken.add(one())
    assert taken.is_whole_taken(GPU)
    assert list(taken.devices()) == [GPU]
    taken.remove(one())
    assert not taken.is_taken(GPU)
    assert list(taken.devices()) == []


def test_admin_access_takes_nothing() -> None:
    taken = AllocatedDevices()
    taken.add(one(admin_access=True))
    assert not taken.is_taken(GPU)


def test_shares_add_up_and_leave_the_device_open() -> None:
    taken = AllocatedDevices()
    first = one(share_id="1", consumed_capacity={"memory": "1"})
    taken.add(first)
    taken.add(one(share_id="2", consumed_capacity={"memory": "500m"}))
    assert taken.is_shared(GPU)
    assert taken.is_taken(GPU)
    assert not taken.is_whole_taken(GPU)
    assert taken.consumed(GPU) == {"memory": 3 * NANOS // 2}
    taken.remove(first)
    assert taken.consumed(GPU) == {"memory": NANOS // 2}


def test_two_claims_of_one_device_are_counted_both() -> None:
    taken = AllocatedDevices()
    taken.add(one())
    taken.add(one())
    taken.remove(one())
    assert taken.is_whole_taken(GPU)
