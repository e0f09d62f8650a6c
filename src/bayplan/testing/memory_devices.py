"""Devices from plain lists of objects: a second `SharedDRAManager`, without a cluster behind it.

A simulation or an autoscaler that has slices, classes and claims of its own passes this manager to
`Scheduler(devices=…)` or `SampleCluster(devices=…)`. The plugins read it through `handle.devices`
and do not notice the difference. Everything is computed when it is read, so the manager is also the
reference that tests compare `state.device_table.Devices` with.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import final

import numpy as np

from bayplan.api.device_objects import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from bayplan.api.objects import Node
from bayplan.state import device_table


@final
class MemoryClaims:
    """ResourceClaims in a dict. Implements framework.handle.ResourceClaimTracker."""

    def __init__(self, claims: Iterable[ResourceClaim] = ()) -> None:
        self._stored = {claim.key: claim for claim in claims}
        self._assumed: dict[str, ResourceClaim] = {}
        #: By uid: allocations that are not written yet.
        self._in_flight: dict[str, AllocationResult] = {}
        #: By uid: the number of pods that use such an allocation.
        self._sharer_counts = Counter[str]()

    def put(self, claim: ResourceClaim) -> None:
        """Store a new version. An assumed version of the same claim ends."""
        self._stored[claim.key] = claim
        self._assumed.pop(claim.key, None)
        if claim.allocation is not None:
            self._end_flight(claim.uid)

    def remove(self, namespace: str, name: str) -> None:
        """Delete a claim; no effect if it does not exist."""
        self._stored.pop(f"{namespace}/{name}", None)
        self._assumed.pop(f"{namespace}/{name}", None)

    def _end_flight(self, uid: str) -> None:
        self._in_flight.pop(uid, None)
        self._sharer_counts.pop(uid, None)

    @property
    def allocated(self) -> device_table.AllocatedDevices:
        """The devices of all allocations, written, assumed or in flight; made at each call."""
        allocations = dict(self._in_flight)
        for claim in self.list():
            if claim.allocation is not None:
                allocations[claim.uid] = claim.allocation
        allocated = device_table.AllocatedDevices()
        for allocation in allocations.values():
            allocated.add(allocation)
        return allocated

    def get(self, namespace: str, name: str) -> ResourceClaim | None:
        key = f"{namespace}/{name}"
        return self._assumed.get(key, self._stored.get(key))

    def list(self, namespace: str | None = None) -> Sequence[ResourceClaim]:
        """All, or those of one namespace, in order of their keys."""
        current = {**self._stored, **self._assumed}
        return [
            current[key]
            for key in sorted(current)
            if namespace is None or current[key].metadata.namespace == namespace
        ]

    def pending_allocation(self, uid: str) -> AllocationResult | None:
        return self._in_flight.get(uid)

    def put_in_flight(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        uid = claim.uid
        if self._in_flight.setdefault(uid, allocation) is not allocation:
            raise AssertionError(f"claim {uid} is in flight already")
        self._sharer_counts[uid] += 1

    def remove_in_flight(self, uid: str, allocation: AllocationResult) -> bool:
        if self._in_flight.get(uid) is not allocation:
            return False
        self._sharer_counts[uid] -= 1
        if self._sharer_counts[uid]:
            return False
        del self._in_flight[uid]
        return True

    def assume(self, claim: ResourceClaim) -> bool:
        current = self.get(claim.metadata.namespace or "", claim.metadata.name)
        if current is None or current.uid != claim.uid or device_table.is_older(claim, current):
            return False
        self._assumed[claim.key] = claim
        if claim.allocation is not None:
            self._end_flight(claim.uid)
        return True

    def restore(self, namespace: str, name: str) -> None:
        self._assumed.pop(f"{namespace}/{name}", None)


@final
class MemorySlices:
    """ResourceSlices in a dict. Implements framework.handle.ResourceSliceLister."""

    def __init__(self, slices: Iterable[ResourceSlice] = ()) -> None:
        self._by_name = {each.metadata.name: each for each in slices}
        self.revision = 0

    def put(self, resource_slice: ResourceSlice) -> None:
        self._by_name[resource_slice.metadata.name] = resource_slice
        self.revision += 1

    def remove(self, name: str) -> None:
        self._by_name.pop(name, None)
        self.revision += 1

    def list_with_device_taint_rules(self) -> Sequence[ResourceSlice]:
        """All by name. There are no DeviceTaintRules here: write the taints into the slices."""
        return [self._by_name[name] for name in sorted(self._by_name)]


@final
class MemoryClasses:
    """DeviceClasses in a dict. Implements framework.handle.DeviceClassLister."""

    def __init__(self, classes: Iterable[DeviceClass] = ()) -> None:
        self._by_name = {each.metadata.name: each for each in classes}

    def put(self, device_class: DeviceClass) -> None:
        self._by_name[device_class.metadata.name] = device_class

    def remove(self, name: str) -> None:
        self._by_name.pop(name, None)

    def get(self, name: str) -> DeviceClass | None:
        return self._by_name.get(name)

    def list(self) -> Sequence[DeviceClass]:
        return [self._by_name[name] for name in sorted(self._by_name)]

    def behind(self, resource: str) -> DeviceClass | None:
        """If several classes name one resource, the newest wins, then the first by name."""
        return device_table.class_by_resource(self.list()).get(resource)


@final
class MemoryDevices:
    """Claims, slices and classes in memory. Implements framework.handle.SharedDRAManager."""

    def __init__(
        self,
        *,
        claims: Iterable[ResourceClaim] = (),
        slices: Iterable[ResourceSlice] = (),
        classes: Iterable[DeviceClass] = (),
        nodes: Sequence[Node] = (),
    ) -> None:
        """``nodes``: the nodes in the order of the cluster's rows, for `counts`."""
        self.resource_claims = MemoryClaims(claims)
        self.resource_slices = MemorySlices(slices)
        self.device_classes = MemoryClasses(classes)
        self.nodes = nodes

    def counts(self, resource: str) -> device_table.CountsByRow | None:
        """COUNTS [nodes], computed at each call; None if no class stands for the resource."""
        device_class = self.device_classes.behind(resource)
        if device_class is None:
            return None
        slices = self.resource_slices.list_with_device_taint_rules()
        counts = device_table.ClassDevices(device_class, slices).counts(
            self.nodes, self.resource_claims.allocated
        )
        return np.array(list(counts), device_table.COUNTS)
