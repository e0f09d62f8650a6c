"""What each feature gate of kube-scheduler does here, in one sentence for each gate.

A row of `EFFECTS` says what a gate that is on does, or what a gate that is on by default does when
it is off. `NOT_BUILT` has the states of gates that older versions of kube-scheduler have and
Bayplan does not: naming one of them in such a version is a remark at start, and a workload of
scheduler_perf that needs one is refused.
`docs/feature-gates.md` is made from these tables.
"""

import re
from collections.abc import Iterator, Mapping

from bayplan.config.feature_gates import FeatureGates
from bayplan.config.kubernetes_versions import KubernetesVersion

_ROWS = """
CompositePodGroup: Groups of groups: enough groups of a tree are placed together, in the domain of
  its topology, or none; a tree preempts and is preempted as its disruption mode says.
DRAAdminAccess: Off, a request with adminAccess is an error.
DRAConsumableCapacity: Off, no device is shared, and a claim that requests capacity is an error.
DRADerivedAttributes: Requests derive attributes of devices from others, for constraints.
DRADeviceBindingConditions: Off, devices with binding conditions are not allocated.
DRADeviceCompatibilityGroups: Devices that consume the same counters must share a group. Off, slices
  with groups are ignored.
DRADeviceTaintRules: Off, DeviceTaintRules add no taints.
DRADeviceTaints: Off, taints of devices have no effect.
DRAExtendedResource: Off, no DeviceClass provides an extended resource.
DRAFractionalCapacityRange: Amounts of shared capacity and their steps may be fractions of one.
DRAListTypeAttributes: Attributes may be lists, and constraints compare them as sets. Selectors read
  lists with and without the gate.
DRANodeAllocatableResources: Devices add to what a pod takes of its node's allocatable resources.
  The amounts count from the moment at which the pod is assumed, and are written to its status. A
  claim whose devices stand for resources of the node is not shared by pods.
DRAOptionalNodeOperations: Devices of a slice with skipNodeOperations need a node that declares the
  feature, and the allocation names what is skipped.
DRAPartitionableDevices: Off, slices with counters or a node for each device are ignored, and so
  are devices that consume counters.
DRAPrioritizedList: Off, a request with alternatives is an error.
DRAResourceClaimDeviceStatus: Off, as DRADeviceBindingConditions off.
DRASchedulerFilterTimeout: Off, the search for devices on a node has no time limit.
DRAWorkloadResourceClaims: A claim that a PodGroup lists belongs to the group and is reserved for
  it, and no longer for each of its pods. Simulations make claims from the templates of a PodGroup.
  A claim is released if the group finds no place, or is gone.
DynamicResourceAllocation: Off, the default profile has no DynamicResources.
GangScheduling: The default profile has the plugin GangScheduling.
GenericWorkload: The default profile has GangScheduling, and a new pod wakes its group. As a victim,
  a pod of a group outranks a plain pod of equal priority. Groups are placed in one pass with and
  without the gate.
InPlacePodLevelResourcesVerticalScaling: Off, a resize of the pod as a whole does not count.
InPlacePodVerticalScaling: Off, what a kubelet reports about a resize does not count.
InPlacePodVerticalScalingSchedulerPreemption: A running pod with a deferred resize preempts pods of
  its node.
InterPodAffinityHostnameFastPath: No answer differs. kube-scheduler checks fewer pods for terms
  whose domain is one node; Bayplan counts pods by node in both cases.
MatchLabelKeysInPodAffinity: Locked. The API server merges matchLabelKeys into the selector.
MatchLabelKeysInPodTopologySpread: Off, matchLabelKeys of constraints have no effect.
NodeDeclaredFeatures: Off, features that nodes declare are not read.
NodeInclusionPolicyInPodTopologySpread: Locked. nodeAffinityPolicy and nodeTaintsPolicy count.
NominatedNodeNameForExpectation: Off, a pod that waits at Permit or in PreBind gets no
  nominatedNodeName.
OpportunisticBatching: Off, no result of a cycle is used again.
PodGroupPreemptionPolicy: The preemptionPolicy of a group counts; its pods must have the same.
PodLevelResources: Off, the requests of a pod as a whole (spec.resources) do not count.
SchedulerAsyncAPICalls: No answer differs. In both cases a write to the API is an effect that other
  attempts do not wait for.
SchedulerAsyncPreemption: Off, an attempt ends when its victims are deleted.
SchedulerPopFromBackoffQ: Off, no pod leaves the backoff queue early.
SchedulerPreQueueingHints: No answer differs. kube-scheduler asks fewer hints when a claim changes;
  the others would skip the pod.
SchedulerQueueingHints: Locked. Hints decide which events retry a pod.
StorageCapacityScoring: Off, VolumeBinding does not score, and its argument shape is refused.
TaintTolerationComparisonOperators: The operators Lt and Gt of tolerations compare numbers. Off, a
  toleration with them tolerates nothing.
TopologyAwareWorkloadScheduling: The default profile has TopologyPlacementGenerator and
  PodGroupPodsCount. A plugin of PlacementGenerate makes the placements of a group, and those of
  PlacementScore choose one. Off, the engine makes and compares the domains of a group.
VolumeAttributesClass: Off, a claim with a volumeAttributesClassName is an error, and a volume with
  one is not bound.
VolumeLimitScaling: Off, preventPodSchedulingIfMissing of a driver has no effect.
WorkloadAwarePreemption: Groups preempt as groups. They do so with and without the gate.
"""


def _effects() -> dict[str, str]:
    rows = (row.partition(": ") for row in re.split(r"\n(?=\S)", _ROWS.strip()))
    return {name: " ".join(text.split()) for name, _, text in rows}


#: Gate → what it does.
EFFECTS: Mapping[str, str] = _effects()

#: (gate, state) → the first version in which it is built, and what is missing before.
NOT_BUILT: Mapping[tuple[str, bool], tuple[KubernetesVersion, str]] = {
    ("DRANodeAllocatableResources", True): (
        KubernetesVersion.V1_37_0,
        "before 1.37, other fields say what devices take of a node's resources",
    ),
}


def changes_no_answer(name: str) -> bool:
    """Whether answers are the same with the gate on and off."""
    return EFFECTS[name].startswith("No answer differs.")


def not_built(gates: FeatureGates) -> Iterator[tuple[str, str]]:
    """(gate, what is missing) of each gate whose state is not built."""
    for (name, state), (since, missing) in NOT_BUILT.items():
        is_older = gates.version.position < since.position
        if is_older and gates.values.get(name, not state) is state:
            yield name, missing


def has_effect(gates: FeatureGates, name: str) -> bool:
    """Whether a gate is on, and built in its version."""
    return gates.enabled(name) and all(gate != name for gate, _ in not_built(gates))
