"""Counters that the devices of a pool share: partitions of one chip draw on the same memory.

A device consumes counters once, however many share it. Upstream: checkAvailableCounters.
"""

from collections import Counter
from collections.abc import Iterator
from typing import final

from bayplan.api.device_objects import Device
from bayplan.api.quantity import QuantityError, nanos
from bayplan.plugins.dynamic_resources.pools import Candidate, Pool, PoolId
from bayplan.plugins.dynamic_resources.problems import AllocationError
from bayplan.state.allocated_devices import AllocatedDevices, DeviceId

#: (counter set, counter)
_Name = tuple[str, str]


@final
class Counters:
    """What is left of the counters of each pool, during one search."""

    def __init__(self, allocated: AllocatedDevices) -> None:
        self._allocated = allocated
        self._available: dict[PoolId, Counter[_Name]] = {}

    def take(self, candidate: Candidate) -> bool:
        """Consume what the device needs, unless some counter would not suffice."""
        available = self._of(candidate.pool)
        needed = _consumed(candidate.device)
        for name, amount in needed.items():
            available[name] -= amount
        # Whatever is short already (somebody blundered) keeps every consumer away.
        if all(amount >= 0 for amount in available.values()):
            return True
        available.update(needed)
        return False

    def give_back(self, candidate: Candidate) -> None:
        """The device is not taken after all."""
        self._of(candidate.pool).update(_consumed(candidate.device))

    def _of(self, pool: Pool) -> Counter[_Name]:
        found = self._available.get(pool.id)
        if found is None:
            found = self._available[pool.id] = self._left(pool)
        return found

    def _left(self, pool: Pool) -> Counter[_Name]:
        left: Counter[_Name] = Counter()
        for counter_set in pool.counter_sets.values():
            for name, counter in counter_set.counters.items():
                left[(counter_set.name, name)] = _nanos(counter.value)
        for device in _devices(pool):
            device_id = DeviceId(pool.id.driver, pool.id.name, device.name)
            if device.consumes_counters and self._allocated.is_taken(device_id):
                left.subtract(_consumed(device))
        return left


def _devices(pool: Pool) -> Iterator[Device]:
    """Those for other nodes, too."""
    for candidate in pool.candidates:
        yield candidate.device
    for each in pool.other_slices:
        yield from each.spec.devices or ()


def _consumed(device: Device) -> Counter[_Name]:
    found: Counter[_Name] = Counter()
    for consumption in device.consumes_counters or ():
        for name, counter in consumption.counters.items():
            found[(consumption.counter_set, name)] += _nanos(counter.value)
    return found


def _nanos(amount: str | int | float) -> int:
    try:
        return nanos(amount)
    except QuantityError as problem:
        raise AllocationError(str(problem)) from None
