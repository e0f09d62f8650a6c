"""The enabled features of dynamic resource allocation. They follow from gates, once at start.

A disabled feature in slices and claims is ignored, or is an error if ignoring it would surprise the
author of a claim. Each part of the search reads the one field that concerns it. Upstream:
AllocatorFeatures in dynamicresources.go, and where the allocator reads them.
"""

import msgspec
from msgspec import Struct

from bayplan.api.device_objects import Device, ResourceSlice
from bayplan.config.behaviour import NEWEST_BEHAVIOUR, Behaviour
from bayplan.config.feature_gates import FeatureGates
from bayplan.config.gate_effects import has_effect


class DeviceFeatures(Struct, frozen=True):
    """The features of devices. The defaults are those of the newest version."""

    admin_access: bool = True
    alternatives: bool = True
    taints: bool = True
    binding_conditions: bool = True
    consumable_capacity: bool = True
    partitionable_devices: bool = True
    filter_timeout: bool = True
    list_attributes: bool = False
    derived_attributes: bool = False
    compatibility_groups: bool = False
    optional_node_operations: bool = False
    fractional_ranges: bool = False
    #: Whether pods of a group may share claims that are reserved for the group.
    group_claims: bool = False
    #: Whether devices may take resources of their node.
    node_allocatable: bool = False
    behaviour: Behaviour = NEWEST_BEHAVIOUR

    @property
    def are_basic(self) -> bool:
        """Whether the allocator of upstream without consumable capacity is used. It does not know
        the requests and constraints of that feature."""
        has_more = self.consumable_capacity or self.binding_conditions
        return self.behaviour.has_basic_allocator and not has_more

    @property
    def are_experimental(self) -> bool:
        """Whether upstream's newest allocator is used, which knows all features."""
        return (
            self.list_attributes
            or self.derived_attributes
            or self.compatibility_groups
            or self.optional_node_operations
        )

    def seen(self, resource_slice: ResourceSlice) -> ResourceSlice:
        """The slice without the fields of disabled features. It is the slice itself if no device
        has such a field."""
        if self.taints and self.consumable_capacity:
            return resource_slice
        devices = tuple(self._seen_device(device) for device in resource_slice.spec.devices or ())
        spec = msgspec.structs.replace(resource_slice.spec, devices=devices)
        return msgspec.structs.replace(resource_slice, spec=spec)

    def _seen_device(self, device: Device) -> Device:
        taints = device.taints if self.taints else None
        shared = device.allow_multiple_allocations if self.consumable_capacity else None
        return msgspec.structs.replace(device, taints=taints, allow_multiple_allocations=shared)

    def counts(self, resource_slice: ResourceSlice) -> bool:
        """Whether the allocator reads a slice."""
        spec = resource_slice.spec
        if uses_compatibility_groups(resource_slice) and not self.compatibility_groups:
            return False
        is_partitioned = spec.per_device_node_selection is not None or bool(spec.shared_counters)
        return self.partitionable_devices or not is_partitioned


def uses_compatibility_groups(resource_slice: ResourceSlice) -> bool:
    """Whether the slice uses compatibility groups. Without the feature such a slice is ignored, and
    its pool is incomplete."""
    return any(
        consumption.compatibility_groups
        for device in resource_slice.spec.devices or ()
        for consumption in device.consumes_counters or ()
    )


def features_of(gates: FeatureGates) -> DeviceFeatures:
    return DeviceFeatures(
        admin_access=gates.enabled("DRAAdminAccess"),
        alternatives=gates.enabled("DRAPrioritizedList"),
        taints=gates.enabled("DRADeviceTaints"),
        binding_conditions=gates.enabled("DRADeviceBindingConditions")
        and gates.enabled("DRAResourceClaimDeviceStatus"),
        consumable_capacity=gates.enabled("DRAConsumableCapacity"),
        partitionable_devices=gates.enabled("DRAPartitionableDevices"),
        filter_timeout=gates.enabled("DRASchedulerFilterTimeout"),
        list_attributes=gates.enabled("DRAListTypeAttributes"),
        derived_attributes=gates.enabled("DRADerivedAttributes"),
        compatibility_groups=gates.enabled("DRADeviceCompatibilityGroups"),
        optional_node_operations=gates.enabled("DRAOptionalNodeOperations"),
        fractional_ranges=gates.enabled("DRAFractionalCapacityRange"),
        group_claims=gates.enabled("DRAWorkloadResourceClaims"),
        node_allocatable=has_effect(gates, "DRANodeAllocatableResources"),
        behaviour=gates.behaviour,
    )


#: The features that kube-scheduler has by default.
ALL_ON = DeviceFeatures()
