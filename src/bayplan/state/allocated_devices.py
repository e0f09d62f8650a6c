"""Which devices are taken: counted from the claims that have them, one claim at a time.

A device is taken as a whole, or, where it allows several allocations, by shares that each consume
some of its capacity. Devices given with admin access are nobody's. Amounts are in billionths.
Upstream: dynamicresources/allocateddevices.go.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple, final

from bayplan.api.device_objects import AllocationResult, DeviceRequestAllocationResult
from bayplan.api.quantity import nanos

#: Capacity name → billionths.
Amounts = Mapping[str, int]
_NOTHING: Amounts = {}


class DeviceId(NamedTuple):
    """A device among all; told as "driver/pool/device"."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


@final
class AllocatedDevices:
    """Taken devices, and how much is consumed of those that are shared."""

    def __init__(self) -> None:
        #: Claims that have the whole device; more than one only if somebody blundered.
        self._whole: Counter[DeviceId] = Counter()
        self._shares: Counter[DeviceId] = Counter()
        self._consumed: dict[DeviceId, Counter[str]] = {}

    def is_whole_taken(self, device: DeviceId) -> bool:
        return device in self._whole

    def is_shared(self, device: DeviceId) -> bool:
        return device in self._shares

    def is_taken(self, device: DeviceId) -> bool:
        """As a whole or in part."""
        return device in self._whole or device in self._shares

    def consumed(self, device: DeviceId) -> Amounts:
        """What shares of the device consume, by capacity."""
        return self._consumed.get(device, _NOTHING)

    def devices(self) -> Iterator[DeviceId]:
        """All that are taken, in no particular order."""
        yield from self._whole
        yield from self._shares

    def add(self, allocation: AllocationResult) -> None:
        """A claim has these devices. Raises QuantityError."""
        for result in allocation.results:
            if not result.admin_access:
                self._count(result, 1)

    def remove(self, allocation: AllocationResult) -> None:
        """A claim that was added has them no longer."""
        for result in allocation.results:
            if not result.admin_access:
                self._count(result, -1)

    def _count(self, result: DeviceRequestAllocationResult, by: int) -> None:
        device = DeviceId(result.driver, result.pool, result.device)
        if result.share_id is None:
            _change(self._whole, device, by)
            return
        _change(self._shares, device, by)
        if result.consumed_capacity:
            consumed = self._consumed.setdefault(device, Counter())
            for name, amount in result.consumed_capacity.items():
                consumed[name] += by * nanos(amount)
            if not any(consumed.values()):
                del self._consumed[device]


def _change(counts: Counter[DeviceId], device: DeviceId, by: int) -> None:
    counts[device] += by
    if not counts[device]:
        del counts[device]
