"""Devices as the API has them: resource.k8s.io/v1, as far as a scheduler reads it.

A ResourceSlice lists devices of a node or a fabric, a DeviceClass selects among them, a
ResourceClaim requests devices and stores their allocation. Upstream: k8s.io/api/resource/v1
(v1.37).
"""

from typing import Any

from msgspec import field

from bayplan.api.object_meta import Api, Int64, NodeSelector, ObjectMeta, Quantities
from bayplan.api.pod_groups import UPSTREAM_GROUP

Amount = str | Int64 | float
#: Opaque to a scheduler: handed on as it is.
Configuration = dict[str, Any]

#: allocationMode
EXACT_COUNT = "ExactCount"
ALL_DEVICES = "All"
#: A claim lists at most so many devices.
ALLOCATION_RESULTS_MAX = 32
#: A request lists at most so many alternatives.
FIRST_AVAILABLE_MAX = 8
EXTENDED_RESOURCE_CLAIM_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
#: Names the entry of a pod's resourceClaims that a claim was made for.
POD_CLAIM_NAME_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
DEVICE_CLASS_RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"

# ---- devices -------------------------------------------------------------------------------


class DeviceAttribute(Api):
    """Exactly one of them is set; the lists belong to the gate DRAListTypeAttributes."""

    int_value: Int64 | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string_value: str | None = field(default=None, name="string")
    version_value: str | None = field(default=None, name="version")
    int_values: tuple[Int64, ...] | None = field(default=None, name="ints")
    bool_values: tuple[bool, ...] | None = field(default=None, name="bools")
    string_values: tuple[str, ...] | None = field(default=None, name="strings")
    version_values: tuple[str, ...] | None = field(default=None, name="versions")


class CapacityRange(Api):
    minimum: Amount | None = field(default=None, name="min")
    maximum: Amount | None = field(default=None, name="max")
    step: Amount | None = None


class CapacityRequestPolicy(Api):
    """The amounts that may be requested of a shared capacity, and the default of a request without
    an amount."""

    default: Amount | None = None
    valid_values: tuple[Amount, ...] | None = None
    valid_range: CapacityRange | None = None


class DeviceCapacity(Api):
    value: Amount = 0
    request_policy: CapacityRequestPolicy | None = None


class Counter(Api):
    value: Amount = 0


class CounterSet(Api):
    name: str = ""
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(Api):
    counter_set: str = ""
    counters: dict[str, Counter] = {}
    compatibility_groups: tuple[str, ...] | None = None


class DeviceTaint(Api):
    key: str = ""
    value: str | None = None
    effect: str = ""
    time_added: str | None = None


class DeviceToleration(Api):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: Int64 | None = None


class NodeAllocatableMapping(Api):
    """The part of a node's resource that a device stands for: a multiple of the capacity that a
    claim consumes, or an amount for the device."""

    capacity_key: str | None = None
    capacity_multiplier: Amount | None = None
    device_multiplier: Amount | None = None


class NodeAllocatableOverhead(Api):
    """The cost of a device in a node's resource."""

    per_pod: Amount | None = None
    per_container: Amount | None = None


class NodeAllocatableResource(Api):
    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(Api):
    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: tuple[DeviceCounterConsumption, ...] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] | None = None
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None
    #: Resource of the node → what the device takes of it: gate DRANodeAllocatableResources.
    node_allocatable_resources: dict[str, NodeAllocatableResource] | None = None


class ResourcePool(Api):
    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(Api):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] | None = None
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] | None = None
    #: What a kubelet can do without for these devices: gate DRAOptionalNodeOperations.
    skip_node_operations: tuple[str, ...] | None = None


class ResourceSlice(Api):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(Api):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Api):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(Api):
    """Taints devices that other drivers' slices list."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


# ---- classes -------------------------------------------------------------------------------


class CELDeviceSelector(Api):
    expression: str = ""


class DeviceSelector(Api):
    cel: CELDeviceSelector | None = None


class DeviceClassConfiguration(Api):
    opaque: Configuration | None = None


class DeviceClassSpec(Api):
    selectors: tuple[DeviceSelector, ...] | None = None
    config: tuple[DeviceClassConfiguration, ...] | None = None
    extended_resource_name: str | None = None


class DeviceClass(Api):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


# ---- what a claim asks for -----------------------------------------------------------------


class CapacityRequirements(Api):
    requests: Quantities | None = None


class DeviceDerivedAttribute(Api):
    """An attribute that an expression computes: gate DRADerivedAttributes."""

    name: str = ""
    expression: str = ""


class ExactDeviceRequest(Api):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] | None = None


class DeviceSubRequest(Api):
    """One of several alternatives of a request."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] | None = None


class DeviceRequest(Api):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] | None = None


class DeviceConstraint(Api):
    requests: tuple[str, ...] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Api):
    requests: tuple[str, ...] | None = None
    opaque: Configuration | None = None


class DeviceClaim(Api):
    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] | None = None
    config: tuple[DeviceClaimConfiguration, ...] | None = None


class ResourceClaimSpec(Api):
    devices: DeviceClaim = DeviceClaim()


# ---- what it was given ---------------------------------------------------------------------


class DeviceRequestAllocationResult(Api):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: Quantities | None = None
    skip_node_operations: tuple[str, ...] | None = None


class DeviceAllocationConfiguration(Api):
    source: str = ""
    requests: tuple[str, ...] | None = None
    opaque: Configuration | None = None


class DeviceAllocationResult(Api):
    results: tuple[DeviceRequestAllocationResult, ...] | None = None
    config: tuple[DeviceAllocationConfiguration, ...] | None = None


class AllocationResult(Api):
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None

    @property
    def results(self) -> tuple[DeviceRequestAllocationResult, ...]:
        """The devices, request by request."""
        return self.devices.results or ()


class ConsumerReference(Api):
    """An object that may use a claim: usually a pod."""

    api_group: str | None = None
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Api):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class AllocatedDeviceStatus(Api):
    """A driver's report about a device that it prepares."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[DeviceCondition, ...] | None = None


class ResourceClaimStatus(Api):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ConsumerReference, ...] | None = None
    devices: tuple[AllocatedDeviceStatus, ...] | None = None


class ResourceClaim(Api):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def key(self) -> str:
        """``namespace/name``"""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def uid(self) -> str:
        return self.metadata.uid or ""

    @property
    def allocation(self) -> AllocationResult | None:
        return self.status.allocation

    def is_reserved_for(self, uid: str) -> bool:
        """Whether the pod of this uid is among its users."""
        return any(consumer.uid == uid for consumer in self.status.reserved_for or ())

    def is_reserved_for_group(self, name: str) -> bool:
        """Whether a PodGroup of this name in the claim's namespace is among its users."""
        return any(
            (consumer.api_group, consumer.resource, consumer.name)
            == (UPSTREAM_GROUP, "podgroups", name)
            for consumer in self.status.reserved_for or ()
        )


RESOURCE_CLAIM = "resource.k8s.io/v1 ResourceClaim"
RESOURCE_CLAIM_TEMPLATE = "resource.k8s.io/v1 ResourceClaimTemplate"
RESOURCE_SLICE = "resource.k8s.io/v1 ResourceSlice"
DEVICE_CLASS = "resource.k8s.io/v1 DeviceClass"
DEVICE_TAINT_RULE = "resource.k8s.io/v1 DeviceTaintRule"
