"""What the Handle shows of devices, as small protocols with upstream's names.

One plugin allocates devices, others may ask what is there: all of them see the same claims in
flight. Upstream: k8s.io/kube-scheduler/framework, SharedDRAManager.
"""

from collections.abc import Sequence
from typing import Protocol

from bayplan.api.device_objects import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from bayplan.state.device_table import AllocatedDevices, CountsByRow


class ResourceClaimTracker(Protocol):
    """Claims as the API tells them, and those that are being allocated."""

    @property
    def allocated(self) -> AllocatedDevices:
        """Devices that are taken, those of claims in flight included; kept current.

        Upstream: ListAllAllocatedDevices, GatherAllocatedState.
        """
        ...

    def get(self, namespace: str, name: str) -> ResourceClaim | None: ...

    def list(self, namespace: str | None = None) -> Sequence[ResourceClaim]:
        """All, or those of one namespace, in order of their keys."""
        ...

    def pending_allocation(self, uid: str) -> AllocationResult | None:
        """What the claim of this uid is about to be given; None: it is not in flight. `get` does
        not tell of it."""
        ...

    def put_in_flight(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        """Take these devices for a claim that the API does not know as allocated yet.

        They are given back by `remove_in_flight`, or become the claim's own when the API tells.
        Upstream: SignalClaimPendingAllocation.
        """
        ...

    def remove_in_flight(self, uid: str, allocation: AllocationResult) -> bool:
        """Give back what was taken. False: that is not in flight any more."""
        ...

    def assume(self, claim: ResourceClaim) -> bool:
        """What a write has returned: `get` and `list` give it until the watch has caught up.

        False: the claim is another one or newer by now. Upstream: AssumeClaimAfterAPICall.
        """
        ...

    def restore(self, namespace: str, name: str) -> None:
        """What was assumed turned out not to hold. Upstream: AssumedClaimRestore."""
        ...


class ResourceSliceLister(Protocol):
    """Devices that there are."""

    @property
    def revision(self) -> int:
        """One more whenever a slice or a taint rule changed."""
        ...

    def list_with_device_taint_rules(self) -> Sequence[ResourceSlice]:
        """All slices by name, with the taints that DeviceTaintRules add."""
        ...


class DeviceClassLister(Protocol):
    """Classes of devices."""

    def get(self, name: str) -> DeviceClass | None: ...
    def list(self) -> Sequence[DeviceClass]: ...

    def behind(self, resource: str) -> DeviceClass | None:
        """The class whose devices stand for an extended resource. Upstream: GetDeviceClass."""
        ...


class SharedDRAManager(Protocol):
    """Everything about devices."""

    @property
    def resource_claims(self) -> ResourceClaimTracker: ...
    @property
    def resource_slices(self) -> ResourceSliceLister: ...
    @property
    def device_classes(self) -> DeviceClassLister: ...

    def counts(self, resource: str) -> CountsByRow | None:
        """COUNTS [rows]: how many devices stand for a resource on the node of each row of the
        table, and how many of those are taken; None: no class stands for it. Kept current: a
        change is a change of what the node offers (`Facet.ALLOCATABLE`), or of its labels.
        """
        ...
