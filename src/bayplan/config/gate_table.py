"""The feature gates of each version: data, which `feature_gates` reads.

A row of `HISTORY` is the life of one gate that kube-scheduler reads: from each version on its
stage, its default, and whether it is locked to the default; "gone" where the gate was removed, and
naming it is an error. ``needs``: gates that must be on if this gate is on, where the version has
them; kube-scheduler checks them from `NEEDS_SINCE` on. Recorded from the binaries; the needs are in
pkg/features/kube_features.go. `other_gates` has the gates that kube-scheduler accepts and does not
read.
"""

from collections.abc import Mapping

from bayplan.config.kubernetes_versions import KubernetesVersion

NEEDS_SINCE = KubernetesVersion.V1_35

HISTORY = """
CompositePodGroup: 1.37.0 alpha off; needs GenericWorkload TopologyAwareWorkloadScheduling
DRAAdminAccess: 1.34 beta on, 1.36 ga on locked; needs DynamicResourceAllocation
DRAConsumableCapacity: 1.34 alpha off, 1.36 beta on; needs DynamicResourceAllocation
DRADerivedAttributes: 1.37.0 alpha off
DRADeviceBindingConditions: 1.34 alpha off, 1.36 beta on; needs DRAResourceClaimDeviceStatus
DRADeviceCompatibilityGroups: 1.37.0 alpha off; needs DRAPartitionableDevices
DRADeviceTaintRules: 1.35 alpha off, 1.36 beta off, 1.37.0 ga on, 1.38-preview ga on locked;
  needs DRADeviceTaints
DRADeviceTaints: 1.34 alpha off, 1.36 beta on, 1.37.0 ga on, 1.38-preview ga on locked;
  needs DynamicResourceAllocation
DRAExtendedResource: 1.34 alpha off, 1.36 beta on, 1.37.0 ga on locked;
  needs DynamicResourceAllocation
DRAFractionalCapacityRange: 1.37.0 beta off; needs DRAConsumableCapacity
DRAListTypeAttributes: 1.36 alpha off
DRANodeAllocatableResources: 1.36 alpha off
DRAOptionalNodeOperations: 1.37.0 alpha off
DRAPartitionableDevices: 1.34 alpha off, 1.36 beta on; needs DynamicResourceAllocation
DRAPrioritizedList: 1.34 beta on, 1.36 ga on, 1.37.0 ga on locked; needs DynamicResourceAllocation
DRAResourceClaimDeviceStatus: 1.34 beta on, 1.37.0 ga on locked
DRASchedulerFilterTimeout: 1.34 beta on; needs DynamicResourceAllocation
DRAWorkloadResourceClaims: 1.36 alpha off, 1.37.0 beta off; needs GenericWorkload
DynamicResourceAllocation: 1.34 ga on, 1.35 ga on locked, 1.38-preview gone
GangScheduling: 1.35 alpha off, 1.37.0 gone; needs GenericWorkload
GenericWorkload: 1.35 alpha off, 1.37.0 beta off
InPlacePodLevelResourcesVerticalScaling: 1.35 alpha off, 1.36 beta on;
  needs PodLevelResources NodeDeclaredFeatures
InPlacePodVerticalScaling: 1.34 beta on, 1.35 ga on locked
InPlacePodVerticalScalingSchedulerPreemption: 1.37.0 alpha off
InterPodAffinityHostnameFastPath: 1.37.0 alpha off
MatchLabelKeysInPodAffinity: 1.34 ga on locked, 1.38-preview gone
MatchLabelKeysInPodTopologySpread: 1.34 beta on
NodeDeclaredFeatures: 1.35 alpha off, 1.36 beta on, 1.37.0 ga on locked
NodeInclusionPolicyInPodTopologySpread: 1.34 ga on locked
NominatedNodeNameForExpectation: 1.34 alpha off, 1.35 beta on
OpportunisticBatching: 1.35 beta on
PodGroupPreemptionPolicy: 1.37.0 alpha off; needs GenericWorkload
PodLevelResources: 1.34 beta on
SchedulerAsyncAPICalls: 1.34 beta off
SchedulerAsyncPreemption: 1.34 beta on
SchedulerPopFromBackoffQ: 1.34 beta on
SchedulerPreQueueingHints: 1.37.0 alpha off
SchedulerQueueingHints: 1.34 ga on locked, 1.37.0 gone
StorageCapacityScoring: 1.34 alpha off, 1.37.0 beta on
TaintTolerationComparisonOperators: 1.35 alpha off
TopologyAwareWorkloadScheduling: 1.36 alpha off; needs GenericWorkload
VolumeAttributesClass: 1.34 ga on, 1.36 ga on locked
VolumeLimitScaling: 1.35 alpha off, 1.37.0 beta on
WorkloadAwarePreemption: 1.36 alpha off, 1.37.0 gone; needs GangScheduling
"""

#: Gates that are gone, and whose feature another gate switches.
SUCCESSORS: Mapping[str, str] = {
    "GangScheduling": "GenericWorkload",
    "WorkloadAwarePreemption": "GenericWorkload",
}
